"""Sentences about a class and the variables that describe it, its markers.

A marker is a variable whose values in the class differ from the background by more than chance and not
negligibly. The background is all other classes or, if several classes hardly differ in the variable, only
these classes (see `markers.background`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from corral.sentences.numbers import (
    counted,
    different_texts,
    exact_text,
    joined,
    listed,
    number_text,
    percent_texts,
    range_texts,
)

# Most markers, and most sentences on missing values, that are listed for a class: readers skip longer lists.
MOST_PHRASES = 4

# A marker is listed if its effect is at least this part of the largest effect in the class.
LEAST_PART = 1.0 / 3.0

# Digits of the ends of a range. The ends are rounded already, and a double holds 15 digits exactly.
_DIGITS_OF_ENDS = 15

NO_MARKER = "no variable found"
NO_MARKER_AT_ALL = (
    "No single variable describes a class: in no variable do the values or a single category of a class "
    "differ from the other classes by more than chance and not negligibly. Labels use all variables together."
)
RANKING = (
    "Variables that separate the class best from all other rows come first. The effect, from -1 to 1, says "
    'how well a variable separates the class from all other rows: for "high" and "low" it is Cliff\'s delta '
    '(twice the area under the ROC curve, minus 1) of the values, for "wide" and "narrow" Cliff\'s delta of '
    'the distances from the median of all rows, for "more often" and "less often" the difference between '
    f"two shares. The table lists at most {MOST_PHRASES} variables for a class, each with at least a third "
    "of the largest effect. "
    '"Others" are all other rows; "in 1 of 2 other classes" is the value in the background, if that is '
    "not all other classes."
)


def frequency_words(low: float, high: float, word: str, category: str | None = None, n_alike: int = 1) -> str:
    """Say that a category, a value or a range is more or less often, as in "= 1 more often".

    An end of NaN means that the range has no limit there. `n_alike` is the number of categories with the
    same frequency as `category`, itself included.
    """
    if category is not None:
        more = (
            f" or {n_alike - 1} other {'category' if n_alike == 2 else 'categories'}" if n_alike > 1 else ""
        )
        return f'= "{category}"{more} {word}'
    if low == high:
        return f"= {exact_text(low)} {word}"
    ends = [number_text(end, _DIGITS_OF_ENDS) for end in (low, high)]
    if math.isnan(low):
        return f"at most {ends[1]} {word}"
    return f"at least {ends[0]} {word}" if math.isnan(high) else f"{ends[0]} to {ends[1]} {word}"


def difference(
    name: str,
    direction: str,
    middles: Sequence[float],
    ranges: Sequence[Sequence[float]],
    shares: Sequence[float],
    n_background: int,
    n_others: int,
) -> str:
    """Say how a class differs in a variable, as in "petal length low (1.5; others 4.9)".

    `middles` (medians), `ranges` (quartiles) and `shares` have three entries: for the class, for all other
    rows and for the background. The background is `n_background` of the `n_others` other classes, or all of
    them if `n_background` is 0; then it is not mentioned.
    """
    if not direction:
        return f"{name} (no clear difference)"
    n_samples = 3 if n_background else 2
    if direction.endswith(" often"):
        texts, all_others = percent_texts(shares[:n_samples]), "of all other rows"
    elif direction in ("high", "low") and middles[0] != middles[1]:
        texts, all_others = different_texts(middles[:n_samples]), "in all other rows"
    else:
        texts, all_others = range_texts(*ranges[:n_samples]), "in all other rows"
    return f"{name} {direction} ({_beside_others(texts, n_background, n_others, all_others)})"


def often_missing(name: str, shares: Sequence[float], n_background: int, n_others: int) -> str:
    """Say that a variable is missing more or less often in a class than in all other rows."""
    word = "more" if shares[0] > shares[1] else "less"
    texts = percent_texts(shares[: 3 if n_background else 2])
    return (
        f"{name} missing {word} often ({_beside_others(texts, n_background, n_others, 'of all other rows')})"
    )


def _beside_others(texts: Sequence[str], n_background: int, n_others: int, all_others: str) -> str:
    if not n_background or texts[1] == texts[2]:
        return f"{texts[0]}; others {texts[1]}"
    return f"{texts[0]}; {texts[2]} in {n_background} of {n_others} other classes; {texts[1]} {all_others}"


def class_lines(
    differences: Sequence[str], n_more: int, missing: Sequence[str], rests_on: Sequence[str]
) -> list[str]:
    """Return lines on a class: markers, missing values, and variables that only carry evidence.

    `differences` are sentences on the first markers, `n_more` is the number of other markers, and `missing`
    are sentences on variables that are missing more or less often. `rests_on` are variables that do not
    describe the class, but carry much evidence for it.
    """
    lines = [*(differences or [NO_MARKER]), *_more(n_more), *missing[:MOST_PHRASES]]
    lines += _more(len(missing) - MOST_PHRASES)
    return [*lines, *_also(rests_on)]


def mirrored_lines(other: str, rests_on: Sequence[str]) -> list[str]:
    """Return lines on the first of two classes, if the second class has the same markers."""
    return [f"the same variables as for {other}, in the opposite direction", *_also(rests_on)]


def _more(n: int) -> list[str]:
    return [f"and {n} more"] if n > 0 else []


def _also(rests_on: Sequence[str]) -> list[str]:
    if not rests_on:
        return []
    verbs = ("does", "carries") if len(rests_on) == 1 else ("do", "carry")
    return [f"{joined(rests_on)} {verbs[0]} not describe the class, but {verbs[1]} much evidence for it"]


def number_of_markers(n_described: int, n_variables: int, fewest: int, most: int) -> str:
    """Say how many variables describe a class, and what it means that a variable describes a class.

    `n_described` of `n_variables` variables describe a class; each class has `fewest` to `most` of them.
    """
    if not n_described:
        return NO_MARKER_AT_ALL
    each = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return (
        f"{n_described} of the {counted(n_variables, 'variable')} "
        f"{'describes' if n_described == 1 else 'describe'} a class, {each} for each class. A variable "
        "describes a class if its values in the class are higher, lower, closer together, further apart or "
        "differently distributed than in the background, by more than chance and not negligibly. The "
        "background is all other classes or, if several classes hardly differ in a variable, only these "
        "classes."
    )


def needless_variables(needless: Sequence[str], carrying: Sequence[str], n_variables: int) -> str:
    """Say which variables neither describe a class nor carry evidence; empty if there are none.

    `carrying` are variables that describe no class, but carry evidence or are missing more often in a class.
    """
    if not needless:
        return ""
    describe, change, these = (
        ("describes", "changes", "this variable")
        if len(needless) == 1
        else ("describe", "change", "these variables")
    )
    sentences = (
        f"{len(needless)} of the {counted(n_variables, 'variable')} {describe} no class and, on average over "
        f"the rows of each class, {change} the odds by less than 5%: {listed(needless, str, 10)}. Evidence "
        f"depends on the other values of a row, so {these} may matter in single rows. If measuring is "
        f"costly, fit a model without {these} and compare the scores."
    )
    if not carrying:
        return sentences
    describe, have = ("describes", "has") if len(carrying) == 1 else ("describe", "have")
    return (
        f"{sentences} {listed(carrying, str, 10)} {describe} no class either, but {have} more evidence, or "
        "more missing values in some class."
    )
