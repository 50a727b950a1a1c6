"""Sentences about a class: its markers, and what the model rests on."""

from __future__ import annotations

from collections.abc import Sequence

from corral.sentences.numbers import counted, different_texts, exact_text, listed, range_texts

# Phrases about a class.
_MOST_PHRASES = 4


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
