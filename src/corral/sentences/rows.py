"""Sentences about one row: its label, evidence, typicality and supporting training rows.

The rival is the class with which the label is compared. Evidence is what a variable adds to the log odds of
label and rival. Typicality says how much a row is like the training rows of a class. The share of a training
row is the part of the class density at the explained row that comes from this training row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from corral.sentences.numbers import counted, different_texts, listed, named_value, value_text
from corral.sentences.tables import CHANCE_OF_NOVELTY

# Most variables that are listed in favor of the label, and in favor of the rival.
_MOST_REASONS = 3

# Labels with a lower probability are often wrong by chance, so an error is no reason to doubt the record.
_CONFIDENT = 0.9

# Evidence below this limit changes odds by less than 5% and is not mentioned.
NO_EVIDENCE = math.log(1.05)


def label_of_row(called: str, label: Any, probability: float, rival: Any, rival_probability: float) -> str:
    """Say which label a row gets, and which class is its rival."""
    return (
        f"{called} is {label} with probability {probability:.3f}, rather than {rival} with probability "
        f"{rival_probability:.3f}."
    )


def wrong(truth: Any, label: Any, probability: float) -> str:
    """Say that a label is not the recorded class, and what to check if its `probability` is high."""
    advice = "; check the record or the measurements" if probability >= _CONFIDENT else ""
    return f"recorded {truth}, predicted {label}{advice}"


def ambiguous(rival: Any, probability: float) -> str:
    """Say that another class is nearly as probable."""
    return f"ambiguous: {rival} has probability {probability:.3f}"


def value_beside_class(
    name: str, value: Any, label: Any, ends: Sequence[float], typical: Any = None, *, inside: bool
) -> str:
    """Write a value beside the typical value and the range of the training rows of a class.

    As in "length = 9.1 (setosa typically 1.5; from 1 to 1.9)", with so many digits that different numbers
    look different. `ends` is empty for categories, which have no range. A value `inside` the range is unusual
    only in combination with the other values of the row.
    """
    compared = [value, *([] if typical is None else [typical]), *ends]
    are_numbers = all(isinstance(each, float) and not math.isnan(each) for each in compared)
    texts = different_texts(compared) if are_numbers else [value_text(each) for each in compared]
    beside = [] if typical is None else [f"typically {texts[1]}"]
    beside += [f"from {texts[-2]} to {texts[-1]}"] if ends else []
    beside += ["unusual with the other values of the row"] if inside else []
    text = named_value(name, value, texts[0])
    return f"{text} ({label} {'; '.join(beside)})" if beside else text


def novelty(nearest: Any, values: Sequence[str]) -> str:
    """Say that a row is less typical than most training rows, and which values make it different."""
    differs = f"less typical than 99 in 100 training rows; the row differs from {nearest}, the nearest class"
    if not values:
        return f"{differs}, a little in all variables"
    return f"{differs}, most in {', '.join(values)}"


def unknown_values(values: Sequence[tuple[str, Any]]) -> str:
    """List values that are categories of no training row, with their variables; empty if there are none."""
    if not values:
        return ""
    named = listed([named_value(*each) for each in values], str)
    verbs = ("is", "counts") if len(values) == 1 else ("are", "count")
    return f"{named} {verbs[0]} not in the training rows and {verbs[1]} as missing."


def place(nearest: Any, typical_share: float, novel: str, lacking: Sequence[str] = ()) -> str:
    """Say how typical a row is of its nearest class, or that the row is novel.

    Among the training rows of the class and the row itself, `typical_share` is the share of rows that are at
    most as typical of the class as the row. `lacking` are variables in which the row has a value, but no
    training row of the class has one. `novel` is what `novelty` returns, empty if the row is not novel.
    """
    if novel:
        return f"This row is novel: {novel}. {CHANCE_OF_NOVELTY}"
    sentence = (
        f"The nearest class is {nearest}. "
        f"{typical_share:.{int(typical_share < 0.1)}%} of the training rows of {nearest}, counting this row "
        f"as one of them, are at most as typical of {nearest} as this row."
    )
    if not lacking:
        return sentence
    names = listed(lacking, str)
    return (
        f"{sentence} No training row of {nearest} has a value of {names}, so only the other variables are "
        "compared."
    )


def reasons(
    label: Any, rival: Any, names: Sequence[str], values: Sequence[Any], evidence: Sequence[float]
) -> str:
    """Say which values are in favor of the label and which of the rival, the strongest evidence first."""
    order = sorted(range(len(names)), key=lambda j: -abs(evidence[j]))
    strong = [j for j in order if abs(evidence[j]) >= NO_EVIDENCE]
    if not strong:
        return f"No variable raises the odds of {label} or of {rival} by 5% or more."
    sides = [
        (label, rival, [j for j in strong if evidence[j] > 0.0]),
        (rival, label, [j for j in strong if evidence[j] < 0.0]),
    ]
    return " ".join(
        _in_favor(name, other, [(named_value(names[j], values[j]), _factor(evidence[j])) for j in side])
        if side
        else f"No variable raises the odds of {name} by 5% or more."
        for name, other, side in sides
    )


def _in_favor(name: Any, other: Any, values: Sequence[tuple[str, str]]) -> str:
    """List values in favor of a class, with the factors by which they multiply its odds against the other."""
    (value, factor), *others = values[:_MOST_REASONS]
    first = f"{value} (multiplies the odds of {name} against {other} by {factor})"
    begin = "Mainly in favor" if len(values) > _MOST_REASONS else "In favor"
    return (
        f"{begin} of {name}: {', '.join([first, *(f'{value} (by {factor})' for value, factor in others)])}."
    )


def odds(label: Any, rival: Any, base: float, log_odds: float) -> str:
    """Say how likely two classes are relative to each other, without any variable and with all variables."""
    return (
        f"Without any variable, {_more_likely(base, label, rival)}; with all variables, "
        f"{_more_likely(log_odds, label, rival)}."
    )


def _factor(evidence: float) -> str:
    """Write the factor, at least 1, by which evidence of either sign multiplies the odds that it raises."""
    factor = math.exp(min(abs(evidence), 100.0))
    if factor > 1e6:
        return "more than a million"
    return f"{factor:.1f}" if factor < 9.95 else f"{float(f'{factor:.2g}'):.0f}"


def _more_likely(log_odds: float, label: Any, rival: Any) -> str:
    if abs(log_odds) < NO_EVIDENCE:
        return f"{label} is as likely as {rival}"
    more, less = (label, rival) if log_odds > 0.0 else (rival, label)
    return f"{more} is {_factor(log_odds)} times as likely as {less}"


def support(label: Any, effective_rows: float) -> str:
    """Say from how many training rows the density of the label at a row comes."""
    return (
        f"The density of {label} at this row comes from effectively "
        f"{counted(round(effective_rows), 'training row')}."
    )


def training_row(name: Any, *, equal: bool = False) -> str:
    """Write the index label or the position of a training row, and whether it equals the explained row."""
    return (name if isinstance(name, str) else f"row {name}") + ", equal to this row" * equal


def nearest_rows(
    label: Any,
    names: Sequence[Any],
    shares: Sequence[float],
    equal: Sequence[bool],
    *,
    stands_out: bool,
    n_tied: int,
) -> str:
    """List the training rows with the largest shares, or the nearest rows if many shares are alike.

    No row is listed if `n_tied` rows are equally near and these are more rows than `names`. `equal` says
    which of the listed rows equal the explained row.
    """
    if n_tied > len(names):
        return (
            f"{no_row_stands_out(label)}: {n_tied} have the same share of the class density and are equally "
            "near."
        )
    called = [training_row(name, equal=is_equal) for name, is_equal in zip(names, equal, strict=True)]
    if not stands_out:
        return (
            f"{no_row_stands_out(label)}: many have the same share of the class density. The nearest, by the "
            f"variables with the most evidence, are {', '.join(called)}."
        )
    listed_rows = ", ".join(f"{name} ({share:.0%})" for name, share in zip(called, shares, strict=True))
    return (
        f"Training rows of {label} most like this row, with their share of the class density: {listed_rows}."
    )


def no_row_stands_out(label: Any) -> str:
    """Say that no training row of a class has a larger share than many other rows."""
    return f"No training row of {label} stands out"


def nearest_rows_caption(label: Any, equal: Sequence[bool], *, stands_out: bool, n_tied: int) -> str:
    """Return the caption of the table of training rows; the arguments are as in `nearest_rows`."""
    itself = " The first training row of the table equals this row." if any(equal[:1]) else ""
    if n_tied > len(equal):
        return f"Nearest training rows of {label}: {len(equal)} of {n_tied} that are equally near."
    if not stands_out:
        return (
            f"Nearest training rows of {label}, by the variables with the most evidence.{itself} "
            f"{no_row_stands_out(label)}: many have the same share of the class density."
        )
    return (
        f"Nearest training rows of {label}, ordered by share.{itself} Share: the part of the class density "
        "at this row that comes from one training row."
    )


def rests_on_row(name: str, share: float) -> str:
    """Say that a label rests on one training row."""
    return (
        f"the label rests on one training row: {share:.0%} of the class density comes from {name}{_UNUSUAL}"
    )


def rests_on_group(share: float) -> str:
    """Say that a label rests on the training rows of one group."""
    return f"the label rests on one group: {share:.0%} of the class density comes from its rows{_UNUSUAL}"


_UNUSUAL = ", a larger part than at 95 in 100 training rows"


def rows_to_look_at(n_listed: int, n_rows: int, counts: Mapping[str, int], *, truth_known: bool) -> str:
    """Say which rows are listed, and how many of all rows there are for each reason to look at a row.

    `counts` has the keys of `REASONS_TO_LOOK`, "wrong" only if classes are known.
    """
    what = "recorded class" if truth_known else "label"
    reasons = [REASONS_TO_LOOK[name][n != 1].format(n=n) for name, n in counts.items()]
    return (
        f"The {counted(n_listed, 'row')} on this page whose {what} has the lowest probability, the lowest "
        f"first. Of all {counted(n_rows, 'row')}, {', '.join(reasons[:-1])}, and {reasons[-1]}."
    )


# Why a row should be looked at: words for one row, and for another number of rows.
REASONS_TO_LOOK = {
    "wrong": ("{n} has a wrong label", "{n} have a wrong label"),
    "novel": ("{n} is novel", "{n} are novel"),
    "resting on one row or group": (
        "{n} has a label that rests on one training row or group",
        "{n} have a label that rests on one training row or group",
    ),
    "ambiguous": (
        "{n} is ambiguous (another class is at least half as probable as the label)",
        "{n} are ambiguous (another class is at least half as probable as the label)",
    ),
}


def assessed_row(
    called: str, label: Any, probability: float, typicality: float, novel: bool, labels: Sequence[Any]
) -> str:
    """Say which label a row gets, its typicality, whether it is novel, and its prediction set."""
    place = f"typicality {typicality:.2f}{', novel' * novel}"
    return f"row {called}: {label} ({probability:.2f}), {place}, set: {set_text(labels)}"


def set_text(labels: Sequence[Any]) -> str:
    """Write the labels of a prediction set, as in "ant, bee"; "empty" if there are none."""
    return ", ".join(map(str, labels)) or "empty"
