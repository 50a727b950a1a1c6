"""Sentences about classes, rows and scores, each composed once for `repr`, the console and the report.

Functions take plain values and names, so that every package above can use them. The first part writes numbers
and values. Four digits are enough to read, but not to tell codes or dates apart: whole numbers keep all their
digits, and numbers that are compared get as many as it takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# Significant digits of measured numbers, of numbers that are told apart, and of numbers that somebody wrote:
# a number with more digits was calculated.
_DIGITS = 4
_MOST_DIGITS = 12
_DIGITS_WRITTEN = 10

# Whole numbers below it have at most 15 digits, which a float holds exactly.
_TOO_LONG = 1e15

# Names in a list; phrases about a class; variables of a row for and against its label.
MOST_LISTED = 5
_MOST_PHRASES = 4
_MOST_REASONS = 3

# Evidence that changes odds by less than a twentieth.
NO_EVIDENCE = 0.05

# A ratio whose decimal logarithm is this close to a whole number looks like a change of units.
_NEAR_A_POWER = 0.1

# Share of novel rows, of which chance would make 1 in 100, beyond which a reason is given, and how many
# variables it names.
_MANY_NOVEL = 0.05
_MOST_UNLIKE = 3


# Numbers


def rounded_number(value: float, digits: int = _DIGITS) -> int | float:
    """Round to significant digits, but no digit before the point; an integer if it is whole and not long."""
    value = float(value)
    if math.isfinite(value) and not value.is_integer():
        value = float(f"{value:.{digits}g}") if abs(value) < 10.0**digits else float(round(value))
    return int(value) if value.is_integer() and abs(value) < _TOO_LONG else value


def number_text(value: float, digits: int = _DIGITS) -> str:
    """Write a number as `rounded_number`, such as 47.654 as "47.65" and 24730.5 as "24730".

    It has an exponent only below 1e-4 and from 1e15 on.
    """
    rounded = rounded_number(value, digits)
    return str(rounded) if isinstance(rounded, int) else f"{rounded:.{digits}g}"


def different_texts(values: Sequence[float], least_digits: int = _DIGITS) -> list[str]:
    """Write numbers with so many digits that those that differ look different, as in 52.371 and 52.375.

    Numbers that agree in twelve digits count as equal.
    """
    n_different = len({f"{value:.{_MOST_DIGITS - 1}e}" for value in values})
    for digits in range(least_digits, _MOST_DIGITS):
        texts = [number_text(value, digits) for value in values]
        if len(set(texts)) >= n_different:
            return texts
    return [number_text(value, _MOST_DIGITS) for value in values]


def range_texts(first: Sequence[float], second: Sequence[float]) -> list[str]:
    """Write two ranges, such as "1.2 to 1.5", with so many digits that the wider one looks wider."""
    ends = [*first, *second]
    wider = _compare_widths(ends)
    for digits in range(_DIGITS, _MOST_DIGITS + 1):
        texts = different_texts(ends, digits)
        if _compare_widths([float(text) for text in texts]) == wider:
            break
    return [f"{texts[0]} to {texts[1]}", f"{texts[2]} to {texts[3]}"]


def _compare_widths(ends: Sequence[float]) -> int:
    """1 if the first of two ranges is wider, -1 if the second one is, 0 if they are equally wide."""
    widths = ends[1] - ends[0], ends[3] - ends[2]
    if math.isclose(*widths, rel_tol=1e-9, abs_tol=1e-12 * max(map(abs, ends))):
        return 0
    return 1 if widths[0] > widths[1] else -1


def exact_text(value: float) -> str:
    """Write a number that many rows have as the table has it, unless it has more than ten digits."""
    value = float(value)
    if value.is_integer() or float(f"{value:.{_DIGITS_WRITTEN}g}") != value:
        return number_text(value)
    return number_text(value, _DIGITS_WRITTEN)


def interval_text(interval: tuple[float, float] | None, style: str = ".3f") -> str:
    """Write the ends of an interval; empty if there is none."""
    return "" if interval is None else f"{interval[0]:{style}} to {interval[1]:{style}}"


def counted(n: float, what: str) -> str:
    """Write a number of things, as in "1 row" and "2 rows"."""
    return f"{number_text(n)} {what}" if n == 1 else f"{number_text(n)} {what}s"


def listed(
    names: Sequence[Any], show: Callable[[Any], str] = repr, most: int = MOST_LISTED, rest: str = ""
) -> str:
    """Write the first names, and how many more there are; `rest` says what of them."""
    more = f" and {len(names) - most} more{rest}" if len(names) > most else ""
    return ", ".join(map(show, names[:most])) + more


def begun(sentence: str) -> str:
    """Write the sentence with a capital letter."""
    return sentence[:1].upper() + sentence[1:]


# Values of variables

_MISSING = ("None", "nan", "NaT", "<NA>")  # how missing values of any library are written


def value_text(value: Any) -> str:
    """Write a number, the name of a category, or "missing"."""
    if not isinstance(value, str) and str(value) in _MISSING:
        return "missing"
    return number_text(value) if isinstance(value, float) else str(value)


def named_value(name: str, value: Any, text: str | None = None) -> str:
    """Write a variable and its value, as in "length = 1.5"; categories have quotes."""
    text = value_text(value) if text is None else text
    return f'{name} = "{text}"' if isinstance(value, str) else f"{name} = {text}"


# Classes

NO_MARKER = "no variable found"
NO_MARKER_AT_ALL = (
    "No variable stands out as describing a class: no test of values or of single levels shows one to differ "
    "from the others by more than chance and not negligibly. Labels rest on variables together."
)


def difference(
    name: str,
    direction: str,
    middles: Sequence[float],
    ranges: Sequence[Sequence[float]],
    value: float,
    shares: Sequence[float],
) -> str:
    """Say how a class differs in a variable, as in "petal length low (1.5; others 4.9)".

    Numbers are those of the class and of its background: medians, quartiles, and shares of a value.
    """
    if not direction:  # too few values, or no difference
        return f"{name} (direction unknown)"
    medians, quartiles = different_texts(middles), range_texts(*ranges)
    percents = [f"{share:.0%}" for share in shares]
    if direction.endswith(" often"):
        shown = percents
    elif direction in ("high", "low") and medians[0] != medians[1]:
        shown = medians
    elif quartiles[0] != quartiles[1]:
        shown = quartiles
    else:  # as where most values are zero
        shown = [f"{exact_text(value)} in {percents[0]}", f"in {percents[1]}"]
    return f"{name} {direction} ({shown[0]}; others {shown[1]})"


def often_missing(name: str, share: float, background_share: float) -> str:
    """Say that a class lacks values of a variable more or less often than its background."""
    often = "more" if share > background_share else "less"
    return f"{name} missing {often} often ({share:.0%}; others {background_share:.0%})"


def class_lines(differences: Sequence[str], missing: Sequence[str], rests_on: Sequence[str]) -> list[str]:
    """Lines on a class: its first markers, values that it often lacks, and what its labels also rest on."""
    lines = [*_first(differences or [NO_MARKER]), *_first(missing)]
    return [*lines, f"labels also rest on {', '.join(rests_on)}"] if rests_on else lines


def _first(phrases: Sequence[str]) -> list[str]:
    more = len(phrases) - _MOST_PHRASES
    return [*phrases[:_MOST_PHRASES], *([f"and {more} more"] if more > 0 else [])]


def number_of_markers(n_described: int, n_variables: int, fewest: int, most: int) -> str:
    """Say how many variables describe a class, and what that means."""
    if not n_described:
        return NO_MARKER_AT_ALL
    each = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return (
        f"{counted(n_described, 'variable')} of {n_variables} "
        f"{'describes' if n_described == 1 else 'describe'} at least one class, {each} in each class. A "
        "variable describes a class if its values there are higher, lower, closer together, further apart or "
        "otherwise distributed than in the background of the class, by more than chance and not negligibly. "
        "The background is all other classes; or, where most classes are alike in the variable, only these."
    )


def needless_variables(needless: Sequence[str], carrying: Sequence[str], n_variables: int) -> str:
    """Say which variables neither describe a class nor carry evidence; empty if there are none."""
    if not needless:
        return ""
    describe, carry, they, them = (
        ("describes", "carries", "it", "it") if len(needless) == 1 else ("describe", "carry", "they", "them")
    )
    said = (
        f"{counted(len(needless), 'variable')} of {n_variables} {describe} no class and, on average over the "
        f"rows of each class, {carry} no evidence: {listed(needless, str, 10)}. Evidence depends on the "
        f"other values of a row, so that {they} may count in single ones. Where measuring is costly, try "
        f"without {them}."
    )
    if not carrying:
        return said
    return f"{said} Others describe no class either, but labels rest on them: {listed(carrying, str, 10)}."


# Rows


def label_of_row(called: str, label: Any, probability: float, rival: Any, rival_probability: float) -> str:
    """Say which label a row gets, and which class comes next."""
    return (
        f"{called} is {label} with probability {probability:.3f}, rather than {rival} with probability "
        f"{rival_probability:.3f}."
    )


def wrong(truth: Any, label: Any) -> str:
    """Say that a label is not the recorded class."""
    return f"recorded {truth}, predicted {label}: check the record or the measurements"


def torn(rival: Any, probability: float) -> str:
    """Say that another class is nearly as probable."""
    return f"torn: {rival} has {probability:.3f}"


def value_beside_others(
    name: str, value: Any, ends: Sequence[float], typical: tuple[Any, Any] | None = None
) -> str:
    """Name a value, the range of the training rows, and the typical value of a class if it is given.

    As in "length = 9.1 (setosa typically 1.5; training rows 1 to 6.9)", with so many digits that numbers that
    differ look different. Categories have no range: `ends` is empty.
    """
    compared = [value, *([] if typical is None else [typical[1]]), *ends]
    are_numbers = all(isinstance(each, float) and not math.isnan(each) for each in compared)
    texts = different_texts(compared) if are_numbers else [value_text(each) for each in compared]
    beside = [] if typical is None else [f"{typical[0]} typically {texts[1]}"]
    beside += [f"training rows {texts[-2]} to {texts[-1]}"] if ends else []
    said = named_value(name, value, texts[0])
    return f"{said} ({'; '.join(beside)})" if beside else said


def novelty(nearest: Any, values: Sequence[str]) -> str:
    """Say that a row is unlike all training rows, and which values make it so."""
    if not values:
        return (
            f"unlike all training rows, and nearest to those of {nearest}, from which it differs by all "
            "variables a little"
        )
    return (
        f"unlike all training rows; from {nearest}, the nearest class, it differs most by {', '.join(values)}"
    )


def place(nearest: Any, typicality: float, novel: str) -> str:
    """Say how typical a row is of the nearest class, or that it is novel."""
    if novel:
        return f"It is novel: {novel}. The label means little."
    return (
        f"Of the training rows of {nearest}, the class nearest to it, "
        f"{typicality:.{int(typicality < 0.1)}%} are at most as typical."
    )


def reasons(
    label: Any, rival: Any, names: Sequence[str], values: Sequence[Any], evidence: Sequence[float]
) -> str:
    """Say which values favour the label, and which the rival, the strongest evidence first."""
    order = sorted(range(len(names)), key=lambda j: -abs(evidence[j]))
    strong = [j for j in order if abs(evidence[j]) > NO_EVIDENCE]
    if not strong:
        return f"No single variable tells {label} from {rival} here."
    sides = [
        (label, [j for j in strong if evidence[j] > 0.0]),
        (rival, [j for j in strong if evidence[j] < 0.0]),
    ]
    return " ".join(
        f"In favour of {name}: "
        + ", ".join(
            f"{named_value(names[j], values[j])} ({times(evidence[j])})" for j in side[:_MOST_REASONS]
        )
        + "."
        if side
        else f"No single variable favours {name}."
        for name, side in sides
    )


def odds(label: Any, rival: Any, base: float, log_odds: float) -> str:
    """Say how the odds of two classes stand before any variable is known, and with all of them."""
    return (
        f"Before any variable is known, {_more_likely(base, label, rival)}; with all of them, "
        f"{_more_likely(log_odds, label, rival)}."
    )


def times(evidence: float) -> str:
    """Write a factor of odds, whichever way it points."""
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
    """Say how many training rows carry the density of the label at a row."""
    return f"The density of {label} here is carried as if by {counted(round(effective_rows), 'row')}."


def rests_on_row(name: str, share: float) -> str:
    """Say that a label rests on one training row."""
    return f"the label rests on one training row: {name} has {share:.0%} of its density"


def rests_on_group(share: float) -> str:
    """Say that a label rests on the training rows of one group."""
    return f"the label rests on one group: its rows have {share:.0%} of its density"


def rows_to_look_at(n_found: int, n_rows: int, counts: Mapping[str, int], *, several: bool) -> str:
    """Say how many rows deserve a look, and how many for each reason; `several` if a row has two reasons."""
    more = ", some for more than one reason" if several else ""
    named = ", ".join(f"{n} {name}" for name, n in counts.items())
    return f"{n_found} of {counted(n_rows, 'row')} on this page{more}: {named}."


# Models and scores

EVERY_DIGIT = (
    "Rows are compared in every digit, so a training row that was rounded or converted counts as new."
)
ASK_FOR_SAMPLE_SIZES = (
    "How many rows of each class a wanted accuracy takes is not on this page: ask for it by --goal, or hand "
    "over what estimate_sample_sizes returns."
)


def fitted_model(
    name: str, n_classes: int, n_rows: float, n_variables: int, steps: Sequence[str], source: str | None
) -> str:
    """Say what a model was fitted to; `steps` come before it in a pipeline."""
    said = f"{name} learnt {n_classes} classes from {counted(n_rows, 'row')} with "
    said += f"{counted(n_variables, 'variable')}."
    if steps:
        said += f" It is the last step of a pipeline; values are those after {', '.join(steps)}."
    return f"{said} The rows on this page are of {source}." if source else said


def expected_accuracy(accuracy: float, log_loss: float) -> str:
    """Say what cross-validation lets expect of new rows."""
    return (
        f"Of new rows like the training rows, about {accuracy:.1%} should get the right label, with a log "
        f"loss of {log_loss:.3f}: so it was in cross-validation, each training row predicted without itself."
    )


def accuracy_of_known_rows(n_rows: int, accuracy: float) -> str:
    """Say how many labels of rows are right that a model may have been fitted to."""
    return (
        f"The {counted(n_rows, 'row')} given may be training rows, which a model knows already: that "
        f"{accuracy:.1%} of them get the right label says little of new rows, of which fewer would."
    )


def accuracy_of_new_rows(
    rows: str, accuracy: float, interval: str, baseline: float, log_loss: float, calibration_error: float
) -> str:
    """Say how many labels are right of rows that a model has not seen, and how good probabilities are."""
    return (
        f"Of {rows}, {accuracy:.1%} get the right label ({interval}); the most frequent class has "
        f"{baseline:.1%} of them. The log loss is {log_loss:.3f}, and the probability of a label is off by "
        f"{calibration_error:.3f} on average."
    )


def most_frequent_mistake(label: Any, mistaken_for: Any, n_mistaken: int, n_rows: int) -> str:
    """Say which class is taken for which other one most often."""
    if not n_mistaken:
        return "None is wrong."
    rows = f"{n_mistaken} of {counted(n_rows, 'row')} of {label}"
    return f"The most frequent mistake is to take {label} for {mistaken_for}: {rows}."


def recall_known_least(
    label: Any, n_rows: int, interval: tuple[float, float] | None, n_more: int | None
) -> str:
    """Say which recall has the widest interval, and how many more rows halve it; None if rows have groups."""
    rows = counted(n_rows, "row")
    known = f"from {interval_text(interval)}, by {rows}"
    if interval is None:
        known = f"there is no interval, by {rows} of one group"
    more = f"More rows of {label}, of new groups, would tell most."
    if n_more is not None:
        more = (
            f"To know it twice as well, which does not raise it, judge about {n_more} more rows of {label}, "
            f"{n_more + n_rows} in all."
        )
    return f"The recall known least is that of {label}: {known}. {more}"


def recognised_least(label: Any, n_right: int, n_rows: int, mistaken_for: Any) -> str:
    """Say which class has the lowest recall."""
    return (
        f"The class recognised least is {label}, with {n_right} of {counted(n_rows, 'row')} right, most "
        f"often taken for {mistaken_for}: look for variables that tell these two apart."
    )


def curve_begins(n_rows: int, accuracy: float) -> str:
    """Say where a learning curve begins."""
    return (
        f"With the {n_rows} rows there are, the curve has the accuracy {accuracy:.3f}, estimated from "
        "training rows that are predicted by each other."
    )


def other_accuracy(accuracy: float, claim: str) -> str:
    """Say why the accuracy on held-out rows is not that of a learning curve."""
    return (
        f"The {accuracy:.1%} of the summary were counted on rows {claim}: the two differ by chance and by "
        "how many rows were learnt from. Compare what more rows would bring with the first."
    )


def accuracy_interval(
    interval: tuple[float, float] | None, n_groups: int | None = None, style: str = ".3f"
) -> str:
    """Write the 95 % interval of an accuracy, and how many groups it rests on if rows have groups."""
    if interval is None:
        return "no interval, since all are of one group"
    groups = "" if n_groups is None else f" from {counted(n_groups, 'group')}"
    return f"95% interval {interval_text(interval, style)}{groups}"


def label_precision(label: Any, n_right: int, n_rows: int, confidence: float) -> str:
    """Say how many rows with a label are of its class, and how many would be by their probabilities."""
    return (
        f"Of {counted(n_rows, 'row')} called {label}, {n_right} {'is' if n_right == 1 else 'are'} "
        f"({n_right / n_rows:.1%}); by the probabilities it would be {confidence:.1%}."
    )


def reliability(n_groups: int | None) -> str:
    """Say how to read a picture of how often labels are right, by their probability."""
    groups = (
        ""
        if n_groups is None
        else f" from {counted(n_groups, 'group')}; where all rows are of one group there is none"
    )
    return (
        "On the diagonal, labels are right as often as they claim. A larger dot stands for more rows; bars "
        f"are 95 % intervals{groups}."
    )


NO_DIFFERENCE = "these variables may not tell the classes apart, so do not rely on its labels"


def below_most_frequent(accuracy: float, baseline: float, advice: str = NO_DIFFERENCE) -> str:
    """Say that labels are worse than the same label for all rows; empty if they are not."""
    if accuracy >= baseline:
        return ""
    return (
        f"the accuracy, {accuracy:.3f}, is below the {baseline:.3f} of always naming the most frequent "
        f"class: {advice}."
    )


# Warnings


def copied_rows(n_copies: int, n_rows: int) -> str:
    """Say how many rows are copies, and what follows."""
    verb = "is a copy of another" if n_copies == 1 else "are copies of others"
    return f"{n_copies} of {n_rows} rows {verb}; a row and its copies are left out together."


def groups_of_rows(n_groups: int | None) -> str:
    """Say how many groups the training rows have, or that groups may have been overlooked."""
    if n_groups is None:
        return (
            "Rows have no groups. If several come from one thing, such as a patient, name it (--group, or "
            "groups in fit): scores are too good otherwise."
        )
    return (
        f"The training rows are of {counted(n_groups, 'group')}, and were left out by groups: rows of new "
        "groups tell more than further rows of these."
    )


def novel_rows(n_novel: int, n_rows: int) -> str:
    """Say how many rows are novel."""
    if not n_novel:
        return (
            f"None of {counted(n_rows, 'row')} looked at one by one is novel, which means less typical than "
            "99 in 100 training rows of all classes together."
        )
    are, their = ("is", "Its label means") if n_novel == 1 else ("are", "Their labels mean")
    return (
        f"{n_novel} of {counted(n_rows, 'row')} looked at one by one {are} novel: less typical, at the class "
        f"that fits best, than 99 in 100 training rows of all classes together. {their} little."
    )


def why_novel(
    n_novel: int,
    n_rows: int,
    counts: Mapping[str, int],
    medians: Mapping[str, tuple[float, float]],
) -> str:
    """Say which variables make novel rows so, the most frequent first; empty if chance may have made them.

    `counts` has the novel rows of each variable, `medians` its median in them and in the training rows.
    """
    beside = {name: f"; {_two_medians(*pair)}" for name, pair in medians.items()}
    named = [
        f"{name} (in {n} of {n_novel}{beside.get(name, '')})"
        for name, n in list(counts.items())[:_MOST_UNLIKE]
        if n >= n_novel / 2.0
    ]
    if not named or n_novel < max(3.0, _MANY_NOVEL * n_rows):
        return ""
    return (
        "These are more than chance makes novel. What makes them unlike the training rows is most often "
        f"{', '.join(named)}: see whether the units are those of the training rows, and whether the rows "
        "were measured in the same way."
    )


def _two_medians(median: float, training_median: float) -> str:
    """Write two medians, and the power of ten between them if it is one, as where units differ."""
    texts = different_texts([median, training_median])
    said = f"median {texts[0]}, of training rows {texts[1]}"
    if median * training_median <= 0.0:
        return said
    power = math.log10(median / training_median)
    if round(power) == 0 or abs(power - round(power)) > _NEAR_A_POWER:
        return said
    return f"{said}: about {10 ** abs(round(power))} times {'larger' if power > 0.0 else 'smaller'}"
