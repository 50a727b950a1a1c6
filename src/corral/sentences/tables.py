"""Sentences about a whole table: duplicates, groups, novel rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from corral.sentences.numbers import counted, different_texts, listed

# A ratio whose decimal logarithm is this close to a whole number looks like a change of units.
_NEAR_A_POWER = 0.1

# Columns with unknown categories that are named.
_MOST_COLUMNS = 3

# Variables that are named as the reason of a shift.
_MOST_UNLIKE = 3

# Level of the test whether novel rows are more than by chance: one report in a hundred would say so wrongly.
_MORE_THAN_CHANCE = 0.01


def group_is_target(name: str) -> str:
    """Refuse the target as the column of the groups."""
    return f"group {name!r} is the target: a group is what several rows come from, such as a patient."


def target_left_out(name: str) -> str:
    """Refuse to leave out the target, for example as an id."""
    return f"the target, {name!r}, cannot be left out."


def duplicate_rows(n_duplicates: int, n_rows: int) -> str:
    """Say how many rows are duplicates, and that they are left out together."""
    verb = "is a duplicate of another" if n_duplicates == 1 else "are duplicates of others"
    return f"{n_duplicates} of {n_rows} rows {verb}; a row and its duplicates are left out together."


def numbers_as_text(name: str, example: str, row: Any, beside: Sequence[str]) -> str:
    """Say that a column holds numbers as text; `beside` lists what stands beside the numbers."""
    if not beside:
        return f"column {name!r} holds numbers as text, such as {example[:40]!r} in row {row}"
    return (
        f"column {name!r} holds numbers with {' and '.join(beside)}, such as {example[:40]!r} in row {row}, "
        "which makes text of them"
    )


def dates_as_variables(name: str, parts: Sequence[str], order: str, remedy: str) -> str:
    """Say which variables a column of dates becomes, and the remedy if the dates are names of categories.

    `order` says how dates were read, as in "month day year", if they could be read in another way.
    """
    are = "is its variable" if len(parts) == 1 else "are its variables"
    read = f", read as {order}" if order else ""
    return f"column {name!r} holds dates{read}: {variables_of_dates(parts)} {are}; {remedy}"


def variables_of_dates(parts: Sequence[str]) -> str:
    """List the variables of a column of dates, as in "days since 2000, month and weekday"."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def no_dates(name: str, counts: Mapping[str, int]) -> str:
    """Say how many values of a column of dates are no dates; `counts` has them, the first one first."""
    n, first = sum(counts.values()), repr(next(iter(counts))[:40])
    if n == 1:
        return f"1 value of column {name!r}, {first}, cannot be read as a date and counts as missing"
    return f"{n} values of column {name!r}, the first {first}, cannot be read as dates and count as missing"


def unknown_categories(unknown: Mapping[str, Counter[str]]) -> str:
    """Say how many values are categories that no training row has; `unknown` counts them by column."""
    n = sum(counts.total() for counts in unknown.values())
    by_column = [
        f"{counts.total()} of {name!r} (such as {next(iter(counts))[:40]!r})"
        for name, counts in unknown.items()
    ]
    shown = listed(by_column, str, _MOST_COLUMNS, " of the columns")
    return (
        f"{n} value{'s are categories' if n > 1 else ' is a category'} that no training row has, and "
        f"count{'s' * (n == 1)} as missing: {shown}."
    )


def groups_of_rows(n_groups: int | None) -> str:
    """Say how many groups the training rows have, or that groups may have been overlooked."""
    if n_groups is None:
        return (
            "Rows have no groups. If several rows come from one thing, such as a patient, name it (--group, "
            "or groups in fit): otherwise scores are too good."
        )
    return (
        f"The training rows are of {counted(n_groups, 'group')}, and each group was left out as a whole. "
        "Rows of new groups improve a model more than further rows of these groups."
    )


def number_of_novel_rows(n_novel: int) -> str:
    """Count novel rows, as in "2 are novel"."""
    return f"{n_novel or 'none'} {'are' if n_novel > 1 else 'is'} novel"


def novel_rows(n_novel: int, n_rows: int, pvalue: float | None, where: str = "") -> str:
    """Say how many rows are novel, and whether these are more than by chance.

    `pvalue` belongs to the number of novel rows; None if the rows are no random sample. `where` says where
    the rows are, as in " on this page".
    """
    if not n_novel:
        return (
            f"None of {counted(n_rows, 'row')}{where} is novel, which means less typical than 99 in 100 "
            "training rows of all classes together."
        )
    are, them = ("is", "it") if n_novel == 1 else ("are", "them")
    sentence = (
        f"{n_novel} of {counted(n_rows, 'row')}{where} {are} novel: less typical, at the class nearest to "
        f"{them}, than 99 in 100 training rows of all classes together."
    )
    if pvalue is None:
        return f"{sentence} {CHANCE_OF_NOVELTY}"
    verdict = "significantly" if more_than_chance(pvalue) else "not significantly"
    this = "this is" if n_novel == 1 else "these are"
    return (
        f"{sentence} By chance about {0.01 * n_rows:.2g} would be; {this} {verdict} more (beta-binomial test "
        f"at 0.01, {_pvalue_text(pvalue)})."
    )


CHANCE_OF_NOVELTY = "About 1 in 100 rows that are like the training rows is novel, too."


def more_than_chance(pvalue: float) -> bool:
    """Whether novel rows are more than by chance, from the p-value of their number."""
    return pvalue < _MORE_THAN_CHANCE


def _pvalue_text(pvalue: float) -> str:
    return "p < 0.001" if pvalue < 0.001 else f"p = {pvalue:.2g}"


def why_novel(
    n_novel: int,
    n_explained: int,
    counts: Mapping[str, int],
    medians: Mapping[str, tuple[float, float]],
    *,
    all_training_rows: bool = True,
) -> str:
    """Say which variables make novel rows so, the most frequent first; empty if no variable is frequent.

    `counts` has how many of the explained rows each variable makes novel, `medians` its median in them and in
    the training rows: all of them, or those that the model has kept.
    """
    named = _most_frequent(counts, n_explained, medians, all_training_rows=all_training_rows)
    if not named:
        return ""
    first = "" if n_explained == n_novel else f"{n_explained} of the novel rows were explained. "
    return f"{first}What makes them unlike the training rows is most often {named}: {_CHECK_UNITS}"


def shifted_table(
    n_rows: int,
    counts: Mapping[str, int],
    medians: Mapping[str, tuple[float, float]],
    *,
    all_training_rows: bool = True,
) -> str:
    """Say in which variables most rows of a table lie outside the range of the training rows.

    `counts` has how many of the rows do, by variable, `medians` the medians of the rows and of the training
    rows: all of them, or those that the model has kept.
    """
    named = _most_frequent(counts, n_rows, medians, all_training_rows=all_training_rows)
    return f"Most rows lie outside the range of the training rows in {named}: {_CHECK_UNITS}"


_CHECK_UNITS = (
    "check whether the rows have the units of the training rows, and were measured in the same way."
)


def _most_frequent(
    counts: Mapping[str, int],
    n_rows: int,
    medians: Mapping[str, tuple[float, float]],
    *,
    all_training_rows: bool,
) -> str:
    """Name the variables that are counted in at least half of the rows, with their medians."""
    training = "training rows" if all_training_rows else "the training rows that the model keeps"
    beside = {name: f"; {_two_medians(*pair, training)}" for name, pair in medians.items()}
    most = sorted(counts, key=lambda name: -counts[name])[:_MOST_UNLIKE]
    return ", ".join(
        f"{name} (in {counts[name]} of {n_rows}{beside.get(name, '')})"
        for name in most
        if counts[name] >= n_rows / 2.0
    )


def _two_medians(median: float, training_median: float, training: str) -> str:
    """Write two medians, and the power of ten between them if it is one, as where units differ."""
    texts = different_texts([median, training_median])
    medians = f"median {texts[0]}, of {training} {texts[1]}"
    if median * training_median <= 0.0:
        return medians
    power = math.log10(median / training_median)
    if round(power) == 0 or abs(power - round(power)) > _NEAR_A_POWER:
        return medians
    return f"{medians}: about {10 ** abs(round(power))} times {'larger' if power > 0.0 else 'smaller'}"
