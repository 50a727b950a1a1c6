"""Sentences about a row: its label, evidence, typicality and support."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from corral.sentences.numbers import counted, different_texts, listed, named_value, value_text
from corral.sentences.tables import CHANCE_OF_NOVELTY

# Variables that are named for the label of a row, and against it.
_MOST_REASONS = 3

# Labels with a lower probability are often wrong by chance: then an error is no reason to doubt the record.
_CONFIDENT = 0.9

# Less evidence changes odds by less than 5%, which is not worth a sentence.
NO_EVIDENCE = math.log(1.05)


def label_of_row(called: str, label: Any, probability: float, rival: Any, rival_probability: float) -> str:
    """Say which label a row gets, and which class comes next."""
    return (
        f"{called} is {label} with probability {probability:.3f}, rather than {rival} with probability "
        f"{rival_probability:.3f}."
    )


def wrong(truth: Any, label: Any, probability: float) -> str:
    """Say that a label is not the recorded class, and what to check if its `probability` is high."""
    advice = ": check the record or the measurements" if probability >= _CONFIDENT else ""
    return f"recorded {truth}, predicted {label}{advice}"


def ambiguous(rival: Any, probability: float) -> str:
    """Say that another class is nearly as probable."""
    return f"ambiguous: {rival} has probability {probability:.3f}"


def value_beside_class(
    name: str, value: Any, label: Any, ends: Sequence[float], typical: Any = None, *, inside: bool
) -> str:
    """Name a value, and the typical value and the range of the training rows of a class, if there are any.

    As in "length = 9.1 (setosa typically 1.5; from 1 to 1.9)", with so many digits that numbers that differ
    look different. Categories have no range: `ends` is empty. A value `inside` the range is unusual only
    beside the other values of its row.
    """
    compared = [value, *([] if typical is None else [typical]), *ends]
    are_numbers = all(isinstance(each, float) and not math.isnan(each) for each in compared)
    texts = different_texts(compared) if are_numbers else [value_text(each) for each in compared]
    beside = [] if typical is None else [f"typically {texts[1]}"]
    beside += [f"from {texts[-2]} to {texts[-1]}"] if ends else []
    beside += ["unusual beside its other values"] if inside else []
    text = named_value(name, value, texts[0])
    return f"{text} ({label} {'; '.join(beside)})" if beside else text


def novelty(nearest: Any, values: Sequence[str], *, in_training: bool) -> str:
    """Say that a row is unlike all (other) training rows, and which values make it so."""
    unlike = f"unlike all{' other' * in_training} training rows"
    if not values:
        return f"{unlike}; from {nearest}, the nearest class, it differs a little in all variables"
    return f"{unlike}; from {nearest}, the nearest class, it differs most by {', '.join(values)}"


def unknown_values(values: Sequence[tuple[str, Any]]) -> str:
    """Name variables and their values that are categories of no training row; empty if there are none."""
    if not values:
        return ""
    named = listed([named_value(*each) for each in values], str)
    verbs = ("is", "counts") if len(values) == 1 else ("are", "count")
    return f"{named} {verbs[0]} not in the training rows and {verbs[1]} as missing."


def place(nearest: Any, typical_share: float, novel: str, lacking: Sequence[str] = ()) -> str:
    """Say how typical a row is of the nearest class, or that it is novel.

    `typical_share` is the share of the rows of the class, with this one, that are at most as typical as it.
    `lacking` are variables that the row has a value of, and no training row of the class.
    """
    if novel:
        return f"It is novel: {novel}. {CHANCE_OF_NOVELTY}"
    sentence = (
        f"The class nearest to it is {nearest}: {typical_share:.{int(typical_share < 0.1)}%} of the training "
        "rows of this class, this row included, are at most as typical."
    )
    if not lacking:
        return sentence
    names = listed(lacking, str)
    return (
        f"{sentence} No row of {nearest} has a value of {names}, so that only other variables are compared."
    )


def reasons(
    label: Any, rival: Any, names: Sequence[str], values: Sequence[Any], evidence: Sequence[float]
) -> str:
    """Say which values favour the label, and which the rival, the strongest evidence first."""
    order = sorted(range(len(names)), key=lambda j: -abs(evidence[j]))
    strong = [j for j in order if abs(evidence[j]) >= NO_EVIDENCE]
    if not strong:
        return f"No variable changes the odds of {label} and {rival} by 5% or more."
    sides = [
        (label, [j for j in strong if evidence[j] > 0.0]),
        (rival, [j for j in strong if evidence[j] < 0.0]),
    ]
    return " ".join(
        f"In favour of {name}: "
        + ", ".join(
            f"{named_value(names[j], values[j])} (makes it {times(evidence[j])} as likely)"
            for j in side[:_MOST_REASONS]
        )
        + "."
        if side
        else f"No variable changes the odds by 5% or more in favour of {name}."
        for name, side in sides
    )


def odds(label: Any, rival: Any, base: float, log_odds: float) -> str:
    """Say what the odds of two classes are before any variable is known, and with all of them."""
    return (
        f"Before any variable is known, {_more_likely(base, label, rival)}; with all of them, "
        f"{_more_likely(log_odds, label, rival)}."
    )


def times(evidence: float) -> str:
    """Write the factor of the odds, above 1 whatever the sign of the evidence."""
    factor = math.exp(min(abs(evidence), 100.0))
    if factor > 1e6:
        return "more than a million times"
    return f"{factor:.1f} times" if factor < 9.95 else f"{float(f'{factor:.2g}'):.0f} times"


def _more_likely(log_odds: float, label: Any, rival: Any) -> str:
    if abs(log_odds) < NO_EVIDENCE:
        return f"{label} is as likely as {rival}"
    more, less = (label, rival) if log_odds > 0.0 else (rival, label)
    return f"{more} is {times(log_odds)} as likely as {less}"


def support(label: Any, effective_rows: float) -> str:
    """Say how many training rows are behind the density of the label at a row."""
    return f"The label {label} rests on about {counted(round(effective_rows), 'training row')}."


def training_row(name: Any, *, equal: bool = False) -> str:
    """Name a training row by its label or number, and say if it equals the explained row."""
    return (name if isinstance(name, str) else f"row {name}") + ", which equals it" * equal


def nearest_rows(
    label: Any,
    names: Sequence[Any],
    shares: Sequence[float],
    equal: Sequence[bool],
    *,
    stands_out: bool,
    n_tied: int,
) -> str:
    """Name the training rows with the largest shares, or the nearest rows if many shares are alike.

    No row is named if more rows are tied than names are given. `equal` says which of them equal the row.
    """
    if n_tied > len(names):
        return (
            f"{no_row_stands_out(label)}: {n_tied} have the same share of its density, and are equally near."
        )
    called = [training_row(name, equal=is_equal) for name, is_equal in zip(names, equal, strict=True)]
    if not stands_out:
        return (
            f"{no_row_stands_out(label)}: many have the same share of its density. The nearest, by the "
            f"variables with the most evidence, are {', '.join(called)}."
        )
    listed_rows = ", ".join(f"{name} ({share:.0%})" for name, share in zip(called, shares, strict=True))
    return f"Training rows of {label} most like it, with their share of its density: {listed_rows}."


def no_row_stands_out(label: Any) -> str:
    """Say that no training row of a class has a larger share than many others."""
    return f"No training row of {label} stands out"


def nearest_rows_caption(label: Any, equal: Sequence[bool], *, stands_out: bool, n_tied: int) -> str:
    """Say what a table of the training rows most like a row shows; `equal` says which of them equal it."""
    itself = " The first of them equals this row." if any(equal[:1]) else ""
    if n_tied > len(equal):
        return f"Nearest training rows of {label}: {len(equal)} of {n_tied} that are equally near."
    if not stands_out:
        return (
            f"Nearest training rows of {label}, by the variables with the most evidence.{itself} "
            f"{no_row_stands_out(label)}: many have the same share of its density."
        )
    return (
        f"Nearest training rows of {label}.{itself} The density of a class is high where its rows lie close "
        "together; a share is the part of the density that one training row contributes."
    )


def rests_on_row(name: str, share: float) -> str:
    """Say that a label rests on one training row."""
    return f"the label rests on one training row: {name} has {share:.0%} of its density{_UNUSUAL}"


def rests_on_group(share: float) -> str:
    """Say that a label rests on the training rows of one group."""
    return f"the label rests on one group: its rows have {share:.0%} of its density{_UNUSUAL}"


_UNUSUAL = ", more than at 95 in 100 training rows"


def rows_to_look_at(n_listed: int, n_rows: int, counts: Mapping[str, int], *, truth_known: bool) -> str:
    """Say which rows are listed, and how many of all rows have which reason for a look."""
    what = "recorded class" if truth_known else "label"
    named = ", ".join(f"{n} {name}" for name, n in counts.items())
    return (
        f"The {counted(n_listed, 'row')} on this page whose {what} has the least probability, the least "
        f"probable first. Of all {counted(n_rows, 'row')}: {named}."
    )


def assessed_row(
    called: str, label: Any, probability: float, typicality: float, novel: bool, labels: Sequence[Any]
) -> str:
    """Say which label a row gets, how typical it is, whether it is novel, and which labels it may have."""
    place = f"typicality {typicality:.2f}{', novel' * novel}"
    return f"row {called}: {label} ({probability:.2f}), {place}, set: {set_text(labels)}"


def set_text(labels: Sequence[Any]) -> str:
    """Write the labels of a prediction set, as in "ant, bee"; "empty" if there are none."""
    return ", ".join(map(str, labels)) or "empty"
