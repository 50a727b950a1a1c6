"""Sentences about a whole table: duplicates, groups, dates, novel rows.

A group is the source of several rows, such as a patient. A row is novel if it is less typical of its nearest
class than 99 in 100 training rows are of their nearest classes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from corral.sentences.numbers import counted, different_texts, joined, listed

# A ratio whose decimal logarithm is this close to a whole number looks like a change of units.
_NEAR_A_POWER = 0.1

# Most columns with unknown categories that are listed.
_MOST_COLUMNS = 3

# Most variables that are listed as reasons why rows are novel.
_MOST_UNLIKE = 3

# Level of the test whether there are more novel rows than by chance. At this level, at most one report in a
# hundred finds too many novel rows although new rows are like training rows.
_MORE_THAN_CHANCE = 0.01


def group_is_target(name: str) -> str:
    """Say that the target cannot be the column of the groups."""
    return f"group {name!r} is the target: a group is the source of several rows, such as a patient."


def target_left_out(name: str) -> str:
    """Say that the target cannot be left out, for example as an id."""
    return f"the target, {name!r}, cannot be left out."


def duplicate_rows(n_duplicates: int, n_rows: int) -> str:
    """Say how many rows are duplicates, and that duplicates are left out together."""
    verb = "is a duplicate of another row" if n_duplicates == 1 else "are duplicates of other rows"
    return f"{n_duplicates} of {n_rows} rows {verb}; a row and its duplicates are left out together."


def numbers_as_text(name: str, example: str, row: Any, beside: Sequence[str]) -> str:
    """Say that a column holds numbers as text; `beside` lists the text beside the numbers, such as units."""
    if not beside:
        return f"column {name!r} holds numbers as text, such as {example[:40]!r} in row {row}"
    return (
        f"column {name!r} holds numbers with {' and '.join(beside)}, such as {example[:40]!r} in row {row}, "
        "so the column is read as text"
    )


def dates_as_variables(name: str, parts: Sequence[str], order: str, remedy: str) -> str:
    """Say which variables are made of a column of dates, and the remedy if the dates should be categories.

    `order` says how dates were read, as in "month day year", if dates could be read in another way.
    """
    are = "is its variable" if len(parts) == 1 else "are its variables"
    read = f", read as {order}" if order else ""
    return f"column {name!r} holds dates{read}: {variables_of_dates(parts)} {are}; {remedy}"


def variables_of_dates(parts: Sequence[str]) -> str:
    """List the variables of a column of dates, as in "days since 2000, month and weekday"."""
    return joined(parts)


def no_dates(name: str, counts: Mapping[str, int]) -> str:
    """Say how many values of a column of dates are no dates; `counts` has their texts in order."""
    n, first = sum(counts.values()), repr(next(iter(counts))[:40])
    if n == 1:
        return f"1 value of column {name!r}, {first}, cannot be read as a date and counts as missing"
    return f"{n} values of column {name!r}, the first {first}, cannot be read as dates and count as missing"


def unknown_categories(unknown: Mapping[str, Counter[str]]) -> str:
    """Say how many values are categories that no training row has; `unknown` has their counts by column."""
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
    """Say how many groups the training rows belong to, or ask for groups if none were given."""
    if n_groups is None:
        return (
            "No groups were given. If several rows come from one source, such as a patient, pass the column "
            "that identifies it (--group, or groups in fit); otherwise scores are too high."
        )
    return (
        f"The training rows belong to {counted(n_groups, 'group')}, and each group was left out as a whole. "
        "Rows of new groups improve a model more than further rows of these groups."
    )


def number_of_novel_rows(n_novel: int) -> str:
    """Count novel rows, as in "2 are novel"."""
    return f"{n_novel or 'none'} {'are' if n_novel > 1 else 'is'} novel"


def novel_rows(n_novel: int, n_rows: int, pvalue: float | None, where: str = "") -> str:
    """Say how many rows are novel, and whether more rows are novel than by chance.

    `pvalue` is the p-value of the number of novel rows; None if the rows are no random sample. `where` says
    where the rows are, as in " on this page".
    """
    number = str(n_novel) if n_novel else "None"
    sentence = (
        f"{number} of {counted(n_rows, 'row')}{where} {'are' if n_novel > 1 else 'is'} novel. A row is novel "
        "if 99 in 100 training rows are more typical of their nearest class."
    )
    if not n_novel:
        return sentence
    if pvalue is None:
        return f"{sentence} {CHANCE_OF_NOVELTY}"
    verdict = "significantly" if more_than_chance(pvalue) else "not significantly"
    expected = f"{0.01 * n_rows:.2g}"
    return (
        f"{sentence} About {expected} novel row{'s' * (expected != '1')} "
        f"{'is' if expected == '1' else 'are'} expected by chance; {n_novel} "
        f"{'is' if n_novel == 1 else 'are'} {verdict} more (beta-binomial test at 0.01, "
        f"{_pvalue_text(pvalue)})."
    )


CHANCE_OF_NOVELTY = "By chance, about 1 in 100 rows like the training rows is also novel."


def more_than_chance(pvalue: float) -> bool:
    """Return whether there are more novel rows than by chance, given the p-value of their number."""
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
    """Say which variables make rows novel, the most frequent first; empty if no variable is frequent.

    `n_explained` of the `n_novel` novel rows were explained. `counts` has, for each variable, the number of
    explained rows that it makes novel; `medians` has its median in these rows and its median in the training
    rows, or in the training rows that the model keeps if these are not all.
    """
    named = _most_frequent(counts, n_explained, medians, all_training_rows=all_training_rows)
    if not named:
        return ""
    first = "" if n_explained == n_novel else f"{n_explained} of the novel rows were explained. "
    return f"{first}Novel rows are most often unlike the training rows in {named}: {_CHECK_UNITS}"


def shifted_table(
    n_rows: int,
    counts: Mapping[str, int],
    medians: Mapping[str, tuple[float, float]],
    *,
    all_training_rows: bool = True,
) -> str:
    """Say in which variables most rows of a table lie outside the range of the training rows.

    `counts` has, for each variable, the number of rows outside the range; `medians` is as in `why_novel`.
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
    """List the variables with a count of at least half of the rows, with their medians."""
    training = "training rows" if all_training_rows else "the training rows that the model keeps"
    beside = {name: f"; {_two_medians(*pair, training)}" for name, pair in medians.items()}
    most = sorted(counts, key=lambda name: -counts[name])[:_MOST_UNLIKE]
    return ", ".join(
        f"{name} (in {counts[name]} of {n_rows}{beside.get(name, '')})"
        for name in most
        if counts[name] >= n_rows / 2.0
    )


def _two_medians(median: float, training_median: float, training: str) -> str:
    """Write two medians, and their ratio if it is nearly a power of ten, as if units differ."""
    texts = different_texts([median, training_median])
    medians = f"median {texts[0]}, in {training} {texts[1]}"
    if median * training_median <= 0.0:
        return medians
    power = math.log10(median / training_median)
    if round(power) == 0 or abs(power - round(power)) > _NEAR_A_POWER:
        return medians
    return f"{medians}: about {10 ** abs(round(power))} times {'larger' if power > 0.0 else 'smaller'}"
