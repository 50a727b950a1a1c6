"""Sentences about a whole table: duplicates, groups, novel rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from corral.sentences.numbers import counted, different_texts

# A ratio whose decimal logarithm is this close to a whole number looks like a change of units.
_NEAR_A_POWER = 0.1

# Share of novel rows, of which chance would make 1 in 100, beyond which a reason is given, and how many
# variables it names.
_MANY_NOVEL = 0.05
_MOST_UNLIKE = 3


def copied_rows(n_copies: int, n_rows: int) -> str:
    """Say how many rows are copies, and what follows."""
    verb = "is a copy of another" if n_copies == 1 else "are copies of others"
    return f"{n_copies} of {n_rows} rows {verb}; a row and its copies are left out together."


def numbers_as_text(name: str, example: str, row: Any, beside: Sequence[str]) -> str:
    """Say that a column holds numbers as text, and what stands `beside` them, if anything."""
    if not beside:
        return f"column {name!r} holds numbers as text, such as {example[:40]!r} in row {row}"
    return (
        f"column {name!r} holds numbers with {' and '.join(beside)}, such as {example[:40]!r} in row {row}, "
        "which makes text of them"
    )


def dates_as_variables(name: str, parts: Sequence[str], order: str, remedy: str) -> str:
    """Say which variables a column of dates becomes, and what to do if its dates are rather names.

    `order` says how dates were read, as in "month day year", where they may be read otherwise.
    """
    variables = " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
    are = "is its variable" if len(parts) == 1 else "are its variables"
    read = f", read as {order}" if order else ""
    return f"column {name!r} holds dates{read}: {variables} {are}; {remedy}"


def no_dates(name: str, example: str) -> str:
    """Say that a column of dates holds other texts as well."""
    return f"column {name!r} holds texts that are no dates, such as {example[:40]!r}, which count as missing"


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
