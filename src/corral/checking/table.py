"""Checks of a whole table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from corral.array_types import Bools, Floats, Integers
from corral.checking.categories import odd_categories
from corral.checking.columns import (
    Content,
    constants,
    content_of,
    mostly_empty,
    neither_numbers_nor_text,
    text_among_numbers,
    text_and_numbers,
)
from corral.checking.contradictions import contradicted_labels
from corral.checking.dates import date_findings, dated_columns
from corral.checking.findings import Finding, columns_in
from corral.checking.functions import functions
from corral.checking.groups import likely_groups
from corral.checking.ids import identifiers
from corral.checking.labels import label_findings
from corral.checking.leakage import (
    SingleColumns,
    judge_columns,
    leakage,
    leaking_missing_values,
    relative_leakage,
)
from corral.checking.order import class_order, time_columns, time_order
from corral.checking.quick_model import left_out_probabilities, modelled_rows, ranked_columns
from corral.checking.rows import (
    classes_of_one_group,
    duplicates,
    group_findings,
    group_numbers,
    near_duplicates_finding,
    repeated_ids,
)
from corral.checking.sentinels import sentinels, zeros_for_missing
from corral.checking.units import mixed_units
from corral.checking.written_numbers import numbers_as_text
from corral.data.dates import Dates
from corral.data.duplicates import number_duplicates
from corral.data.near_duplicates import NearDuplicates, near_duplicates
from corral.estimators.encoding import are_missing
from corral.estimators.tables import distinct_names
from corral.sentences.numbers import listed
from corral.sentences.tables import group_is_target, target_left_out

if TYPE_CHECKING:
    import pandas as pd

# A quick model needs classes with so many rows on average.
_ROWS_OF_CLASS = 4


def check_table(
    frame: Any,
    target: str | None = None,
    *,
    ids: Sequence[str] = (),
    group: str | None = None,
    categorical: Sequence[str] = (),
) -> list[Finding]:
    """Look for errors in a table before a classifier is fitted to it, as `corral check` does.

    It looks for labels that are missing, spelled in two ways or contradicted by left-out probabilities; small
    classes; ids and likely groups; dates; leakage; columns that are constant, mostly empty or functions of
    another; text among numbers, and categories spelled in two ways; numbers that stand for missing values;
    mixed units; duplicates and near duplicates; rows in order of class or time. A table without findings may
    still have errors.

    Parameters
    ----------
    frame : DataFrame
        Columns of numbers or text; missing values are NaN or None. Frames of other libraries are converted to
        pandas.
    target : str, default=None
        Column with the classes of the rows, if there is one; a class may be missing.
    ids : sequence of str, default=()
        Columns that name rows.
    group : str, default=None
        Column that names groups of rows, such as patients with several measurements.
    categorical : sequence of str, default=()
        Columns whose values are categories even if they look like numbers.

    Returns
    -------
    findings : list of Finding
        In the order in which to deal with them. `print` shows one as a sentence.

    Examples
    --------
    >>> import pandas as pd
    >>> from corral import check_table
    >>> heights, weights = [1.7, 1.6, -999.0, 1.8, -999.0, 1.9], [70.5, 66.1, 71.2, 80.3, 69.9, 84.0]
    >>> frame = pd.DataFrame({"height": heights, "weight": weights, "site": 3})
    >>> for finding in check_table(frame):
    ...     print(finding)
    column 'site' holds 3 in every row, which carries no information: leave it out.
    column 'height' holds -999 in 2 rows and nothing else below 1.6: say that -999 stands for a missing value.
    """
    return table_findings(frame, target, ids=ids, group=group, categorical=categorical, thorough=True)


@np.errstate(over="ignore", invalid="ignore")  # differences of the largest numbers are infinite
def table_findings(
    frame: Any,
    target: str | None,
    *,
    ids: Sequence[str],
    group: str | None,
    categorical: Sequence[str],
    thorough: bool,
) -> list[Finding]:
    """Findings as `check_table` returns them; only `thorough` ones need a quick model or compare columns."""
    table, y = _table_and_labels(frame, target, ids, group, categorical)
    variables = table[[name for name in table.columns if name not in {*ids, group}]]
    columns = _TableColumns.read(variables, categorical)
    findings = [] if y is None else [*label_findings(y)]
    findings += columns.findings(categorical)
    labels = np.unique(np.zeros(len(table)) if y is None else y.astype(str), return_inverse=True)[1]
    findings += mixed_units(columns.variables, columns.numeric, labels)
    groups = None if group is None else group_numbers(table[group])
    rows = _TableRows.compare(columns, labels, None if y is None else ~are_missing(y), groups)
    alone = None
    if y is not None:
        alone = judge_columns(rows.considered, columns.numbers, labels, rows.distinct, groups)
    leaks: list[Finding] = []
    if y is not None and alone is not None:
        leaks += leakage(rows.considered, columns.numbers, alone)
        others = rows.considered.drop(columns=columns_in(leaks))
        leaks += leaking_missing_values(others, alone, np.unique(y[alone.rows].astype(str)).tolist())
    findings += leaks
    if thorough:
        findings += _thorough_findings(columns, rows, y, leaks, alone, group is not None)
    findings += rows.findings(columns.variables)
    findings += repeated_ids(table, [name for name in ids if name != group])
    return findings if group is None else [*findings, *group_findings(table[group], y)]


def _table_and_labels(
    frame: Any, target: str | None, ids: Sequence[str], group: str | None, categorical: Sequence[str]
) -> tuple[pd.DataFrame, NDArray[Any] | None]:
    """The table without its labels, and the labels; names of columns that cannot be used are refused."""
    distinct_names(frame, "the table")
    frame = nw.from_native(frame, eager_only=True).to_pandas()
    names = [*ids, *categorical, *(name for name in (target, group) if name is not None)]
    unknown = [name for name in names if name not in frame.columns]
    if unknown:
        raise ValueError(f"the table has no column {unknown[0]!r}; it has {listed(list(frame.columns))}.")
    if target is None:
        return frame, None
    if target == group:
        raise ValueError(group_is_target(target))
    if target in ids:
        raise ValueError(target_left_out(target))
    return frame.drop(columns=target), frame[target].astype(object).to_numpy()


@dataclass(frozen=True, eq=False)
class _TableColumns:
    """The variables of a table, and what each holds."""

    variables: pd.DataFrame  # without columns that no fit takes
    contents: dict[str, Content]
    strange: list[Finding]  # about the columns that no fit takes
    dates: dict[str, Dates]
    numeric: dict[str, Floats]  # columns of numbers
    named: list[Finding]  # about columns that name rows

    @classmethod
    def read(cls, variables: pd.DataFrame, categorical: Sequence[str]) -> _TableColumns:
        """Decide what each column holds."""
        dates = dated_columns(variables, categorical)
        contents = {name: content_of(column) for name, column in variables.items()}
        undated = variables.drop(columns=list(dates))
        strange = [*neither_numbers_nor_text(undated, contents, categorical)]
        variables = variables.drop(columns=columns_in(strange))
        undated = undated.drop(columns=columns_in(strange))
        names = [name for name in undated.columns if name not in categorical]
        numeric = {name: contents[name].numbers for name in names if contents[name].is_numeric}
        return cls(variables, contents, strange, dates, numeric, [*identifiers(undated, contents, numeric)])

    @property
    def numbers(self) -> set[str]:
        """Names of columns whose values have an order: numbers and dates."""
        return {*self.numeric, *self.dates}

    def findings(self, categorical: Sequence[str]) -> list[Finding]:
        """What is wrong with single columns."""
        categories = self.variables.drop(columns=[*{*self.numbers, *columns_in(self.named)}])
        texts = categories.drop(columns=list(categorical), errors="ignore")
        slips = [*text_among_numbers(texts, self.contents)]
        texts = texts.drop(columns=columns_in(slips))
        written = [*numbers_as_text(texts)]
        return [
            *self.strange,
            *mostly_empty(self.variables),
            *self.named,
            *date_findings(self.variables, self.dates),
            *slips,
            *written,
            *text_and_numbers(texts.drop(columns=columns_in(written)), self.contents),
            *odd_categories(categories.drop(columns=columns_in(written)), self.contents),
            *constants(self.variables),
            *sentinels(self.variables, self.numeric),
            *zeros_for_missing(self.variables, self.numeric),
        ]

    def coded(self) -> pd.DataFrame:
        """All variables as numbers: texts are coded, dates are days, missing values are NaN."""
        import pandas as pd

        numbers = self.numeric | self.days()
        columns = {name: numbers.get(name, _codes(column)) for name, column in self.variables.items()}
        return pd.DataFrame(columns, self.variables.index)

    def days(self) -> dict[str, Floats]:
        """Days since 1970 in the columns of dates, NaN where there is no date."""
        one_day = np.timedelta64(1, "D")
        return {name: (dates.times - np.datetime64(0, "s")) / one_day for name, dates in self.dates.items()}


@dataclass(frozen=True, eq=False)
class _TableRows:
    """The rows of a table as numbers, and which of them repeat others."""

    coded: pd.DataFrame
    considered: pd.DataFrame  # without columns that name rows, which describe nothing
    labels: Integers  # (n_rows,) numbers of the classes
    unrepeated: Integers  # positions of rows that have a label, without duplicates
    distinct: Integers  # positions of rows that have a label, without duplicates and near duplicates
    numbers: Integers | None  # (n_rows,) numbers that duplicates share; None if there are no duplicates
    near: NearDuplicates | None

    @classmethod
    def compare(
        cls, columns: _TableColumns, labels: Integers, labelled: Bools | None, groups: Integers | None
    ) -> _TableRows:
        """Look for duplicates and near duplicates."""
        import pandas as pd

        coded = columns.coded()
        is_category = np.array([name not in columns.numbers for name in coded.columns], dtype=np.int64)
        near = near_duplicates(coded.to_numpy(), is_category, groups)
        considered = coded.drop(columns=columns_in(columns.named))
        numbers = number_duplicates(considered.to_numpy(), labels) if considered.size else None
        if numbers is None and coded.size:  # rows with equal names are duplicates, and do not agree by chance
            numbers = number_duplicates(coded.to_numpy(), labels)
        unrepeated = np.ones(len(coded), dtype=np.bool_) if labelled is None else labelled
        if numbers is not None:
            unrepeated &= ~pd.DataFrame({"number": numbers, "label": labels}).duplicated().to_numpy()
        distinct = unrepeated.copy()
        distinct[[] if near is None else near.pairs[:, 1]] = False
        return cls(
            coded, considered, labels, np.flatnonzero(unrepeated), np.flatnonzero(distinct), numbers, near
        )

    def findings(self, variables: pd.DataFrame) -> Iterator[Finding]:
        """Duplicates and near duplicates."""
        n_varying = int((self.considered.nunique(dropna=False) > 1).sum())
        if self.numbers is not None and n_varying > 1:  # rows agree by chance in one column
            yield from duplicates(self.numbers, self.labels, variables.index)
        if self.near is not None:
            yield near_duplicates_finding(self.near, variables)


def _thorough_findings(
    columns: _TableColumns,
    rows: _TableRows,
    y: NDArray[Any] | None,
    leaks: Sequence[Finding],
    alone: SingleColumns | None,
    has_groups: bool,
) -> Iterator[Finding]:
    """Findings that compare columns with each other, or need a quick model of the labels."""
    is_modelled = y is not None and _ROWS_OF_CLASS * np.unique(rows.labels).size <= len(rows.labels)
    sound = rows.considered.drop(columns=columns_in(leaks))
    undated = sound.drop(columns=list(columns.dates), errors="ignore")
    grouping: list[Finding] = []
    if not has_groups:
        labels = rows.labels if is_modelled else None
        grouping += likely_groups(undated, columns.numeric, sound, labels, rows.unrepeated)
    for finding in grouping:
        yield finding
        if y is not None:
            has_label, name = ~are_missing(y), finding.columns[0]
            yield from classes_of_one_group(name, undated[name].to_numpy()[has_label], y[has_label])
    variables = sound.drop(columns=columns_in(grouping))
    times = time_columns(columns.days(), columns.numeric)
    if y is None or not is_modelled or alone is None or not variables.shape[1]:
        yield from time_order(None, rows.labels, rows.distinct, times)
    else:
        modelled = modelled_rows(rows.distinct, variables.shape[1])
        names, codes = np.unique(y[modelled].astype(str), return_inverse=True)
        X = ranked_columns(variables.iloc[modelled])
        probabilities = left_out_probabilities(X, codes)
        yield from relative_leakage(variables, alone, probabilities, codes, modelled)
        yield from time_order(X, codes, modelled, times)
        yield from class_order(rows.labels[~are_missing(y)])
        yield from contradicted_labels(probabilities, codes, names, rows.coded.index[modelled])
    yield from functions(undated, columns.numeric)


def _codes(column: pd.Series[Any]) -> Floats:
    """Numbers in place of the values of a column, NaN where there is none."""
    codes = column.factorize()[0].astype(np.float64)
    return np.where(codes < 0.0, np.nan, codes)
