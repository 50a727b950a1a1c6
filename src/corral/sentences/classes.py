"""Sentences about a class: its markers, and what the model rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corral.sentences.numbers import (
    counted,
    different_texts,
    exact_text,
    listed,
    number_text,
    percent_texts,
    range_texts,
)

# At most four phrases of each kind describe a class: readers skip more.
MOST_PHRASES = 4

# A marker is shown if its effect is at least this part of the largest one.
LEAST_PART = 1.0 / 3.0

# Digits of the ends of a range, which are rounded already: a double holds 15 digits exactly.
_DIGITS_OF_ENDS = 15

NO_MARKER = "no variable found"
NO_MARKER_AT_ALL = (
    "No single variable describes a class: no test of values or of single categories finds a class that "
    "differs from the others by more than chance and not negligibly. Labels rest on several variables "
    "together."
)
RANKING = (
    "The markers that separate the class best from all other rows come first. The effect measures the "
    "separation, from -1 to 1: Cliff's delta (twice the area under the ROC curve, less 1) of values or of "
    f"their distances from the median, or the difference of two shares. At most {MOST_PHRASES} variables are "
    "shown for a class, and none with less than a third of the largest effect."
)


def frequency_words(low: float, high: float, word: str, category: str | None = None, n_alike: int = 1) -> str:
    """Say that a category, a value or a range is "more often" or "less often", as in "= 1 more often".

    NaN is an end without limit. `n_alike` categories have the frequency of the named one, which is included.
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

    The numbers are medians, quartiles and shares, each of the class, of all other rows and of the background.
    The background is shown if it is only `n_background` of the `n_others` other classes; 0 means all of them.
    """
    if not direction:
        return f"{name} (no clear difference)"
    n_samples = 3 if n_background else 2
    if direction.endswith(" often"):
        texts, all_others = percent_texts(shares[:n_samples]), "of all others"
    elif direction in ("high", "low") and middles[0] != middles[1]:
        texts, all_others = different_texts(middles[:n_samples]), "in all others"
    else:
        texts, all_others = range_texts(*ranges[:n_samples]), "in all others"
    return f"{name} {direction} ({_beside_others(texts, n_background, n_others, all_others)})"


def often_missing(name: str, shares: Sequence[float], n_background: int, n_others: int) -> str:
    """Say that a variable is missing more or less often in a class than in all other rows."""
    word = "more" if shares[0] > shares[1] else "less"
    texts = percent_texts(shares[: 3 if n_background else 2])
    return f"{name} missing {word} often ({_beside_others(texts, n_background, n_others, 'of all others')})"


def _beside_others(texts: Sequence[str], n_background: int, n_others: int, all_others: str) -> str:
    if not n_background or texts[1] == texts[2]:
        return f"{texts[0]}; others {texts[1]}"
    return f"{texts[0]}; {texts[2]} in {n_background} of {n_others} other classes; {texts[1]} {all_others}"


def class_lines(
    differences: Sequence[str], n_more: int, missing: Sequence[str], rests_on: Sequence[str]
) -> list[str]:
    """Lines on a class: its first markers, missing values, and variables that its labels also rest on.

    `n_more` markers are not among the first ones.
    """
    lines = [*(differences or [NO_MARKER]), *_more(n_more), *missing[:MOST_PHRASES]]
    lines += _more(len(missing) - MOST_PHRASES)
    return [*lines, *_also(rests_on)]


def mirrored_lines(other: str, rests_on: Sequence[str]) -> list[str]:
    """Lines on the first of two classes if the second one has the same markers."""
    return [f"the same variables as for {other}, the other way round", *_also(rests_on)]


def _more(n: int) -> list[str]:
    return [f"and {n} more"] if n > 0 else []


def _also(rests_on: Sequence[str]) -> list[str]:
    return [f"labels also rest on {', '.join(rests_on)}"] if rests_on else []


def number_of_markers(n_described: int, n_variables: int, fewest: int, most: int) -> str:
    """Say how many variables describe a class, and what that means."""
    if not n_described:
        return NO_MARKER_AT_ALL
    each = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return (
        f"{counted(n_described, 'variable')} of {n_variables} "
        f"{'describes' if n_described == 1 else 'describe'} at least one class, {each} in each class. A "
        "variable describes a class if its values there are higher, lower, closer together, further apart "
        "or differently distributed than in the background of the class, by more than chance and not "
        "negligibly. The background is all other classes, or only the other classes that are alike in the "
        "variable."
    )


def needless_variables(needless: Sequence[str], carrying: Sequence[str], n_variables: int) -> str:
    """Say which variables neither describe a class nor have evidence; empty if there are none.

    `carrying` are variables that describe no class, but have evidence.
    """
    if not needless:
        return ""
    describe, carry, they, them = (
        ("describes", "carries", "it", "it") if len(needless) == 1 else ("describe", "carry", "they", "them")
    )
    sentences = (
        f"{counted(len(needless), 'variable')} of {n_variables} {describe} no class and, on average over the "
        f"rows of each class, {carry} no evidence: {listed(needless, str, 10)}. Evidence depends on the "
        f"other values of a row, so that {they} may matter in single rows. If measuring is costly, try a "
        f"model without {them}."
    )
    if not carrying:
        return sentences
    return (
        f"{sentences} Others describe no class either, but labels rest on them: {listed(carrying, str, 10)}."
    )
