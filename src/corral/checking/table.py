"""`check_table`: run all checks on a table."""

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

# The quick model is fitted only if classes have at least so many rows on average.
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

    The checks look for labels that are missing, spelled in two ways or improbable for a quick model; small
    classes; ids and likely groups; dates; leakage; columns that are constant, mostly empty or functions of
    another column; text among numbers; categories spelled in two ways; numbers that stand for missing values;
    mixed units; duplicates and near duplicates; rows that are sorted by class or time. A table without
    findings may still have errors.

    Parameters
    ----------
    frame : DataFrame
        A data frame of pandas, polars or another library, with columns of numbers, text or dates. Missing
        values are NaN or None.
    target : str, default=None
        Column with the labels; None if the table has no labels. Labels may be missing.
    ids : sequence of str, default=()
        Columns that identify rows; they are not variables.
    group : str, default=None
        Column that identifies groups of rows, such as patients with several measurements.
    categorical : sequence of str, default=()
        Columns whose values are categories even if they look like numbers.

    Returns
    -------
    findings : list of Finding
        The findings, in the order in which to deal with them. `print(finding)` prints a sentence.

    Examples
    --------
    >>> import pandas as pd
    >>> from corral import check_table
    >>> heights, weights = [1.7, 1.6, -999.0, 1.8, -999.0, 1.9], [70.5, 66.1, 71.2, 80.3, 69.9, 84.0]
    >>> frame = pd.DataFrame({"height": heights, "weight": weights, "site": 3})
    >>> for finding in check_table(frame):
    ...     print(finding)
    column 'site' holds 3 in every row; a constant column has no information about the label: leave it out.
    column 'height' holds -999 in 2 rows, and no other value below 1.6: replace -999 with NaN.
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
    """Return findings as `check_table` does; checks that compare columns or fit a model need `thorough`."""
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
    """Return the table without its target, and the labels; refuse columns that do not exist or conflict."""
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
    """The columns of a table that are neither labels, ids nor groups, and what each column holds."""

    variables: pd.DataFrame  # without columns that a fit refuses
    contents: dict[str, Content]
    strange: list[Finding]  # about columns that a fit refuses
    dates: dict[str, Dates]
    numeric: dict[str, Floats]  # (n_rows,) numbers of each numeric column
    named: list[Finding]  # about columns that identify rows

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
        """Names of the columns whose values are ordered: numbers and dates."""
        return {*self.numeric, *self.dates}

    def findings(self, categorical: Sequence[str]) -> list[Finding]:
        """Return the findings about single columns."""
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
        """Return all variables as numbers: texts as codes, dates as days, missing values as NaN."""
        import pandas as pd

        numbers = self.numeric | self.days()
        columns = {name: numbers.get(name, _codes(column)) for name, column in self.variables.items()}
        return pd.DataFrame(columns, self.variables.index)

    def days(self) -> dict[str, Floats]:
        """Return the days since 1970 in each column of dates; NaN for a cell without a date."""
        one_day = np.timedelta64(1, "D")
        return {name: (dates.times - np.datetime64(0, "s")) / one_day for name, dates in self.dates.items()}


@dataclass(frozen=True, eq=False)
class _TableRows:
    """The rows of a table as numbers, and which rows are duplicates or near duplicates."""

    coded: pd.DataFrame  # all variables as numbers
    considered: pd.DataFrame  # `coded` without the columns that identify rows
    labels: Integers  # (n_rows,) index of the class of each row
    unrepeated: Integers  # positions of rows that have a label, without duplicates
    distinct: Integers  # positions of rows that have a label, without duplicates and near duplicates
    numbers: Integers | None  # (n_rows,) codes that are equal for equal rows; None if no rows are equal
    near: NearDuplicates | None

    @classmethod
    def compare(
        cls, columns: _TableColumns, labels: Integers, labelled: Bools | None, groups: Integers | None
    ) -> _TableRows:
        """Find duplicates and near duplicates."""
        import pandas as pd

        coded = columns.coded()
        is_category = np.array([name not in columns.numbers for name in coded.columns], dtype=np.int64)
        near = near_duplicates(coded.to_numpy(), is_category, groups)
        considered = coded.drop(columns=columns_in(columns.named))
        numbers = number_duplicates(considered.to_numpy(), labels) if considered.size else None
        if numbers is None and coded.size:  # if the ids are equal as well, rows are not equal by chance
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
        """Yield findings about duplicates and near duplicates."""
        n_varying = int((self.considered.nunique(dropna=False) > 1).sum())
        if self.numbers is not None and n_varying > 1:  # in a single column, rows are equal by chance
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
    """Yield findings that compare columns with each other, or need a quick model of the labels."""
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
    """Return a code (n_rows,) for the value in each row of a column; NaN for a missing value."""
    codes = column.factorize()[0].astype(np.float64)
    return np.where(codes < 0.0, np.nan, codes)
