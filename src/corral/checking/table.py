"""A look at a whole table."""

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
from corral.checking.dates import dated_columns, found_dates
from corral.checking.findings import Finding, columns_in
from corral.checking.functions import functions
from corral.checking.groups import likely_groups
from corral.checking.ids import identifiers
from corral.checking.labels import of_labels
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
    group_numbers,
    of_groups,
    of_near_duplicates,
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

# A model is made only of classes that have so many rows on average.
_ROWS_OF_CLASS = 4


def check_table(
    frame: Any,
    target: str | None = None,
    *,
    ids: Sequence[str] = (),
    group: str | None = None,
    categorical: Sequence[str] = (),
) -> list[Finding]:
    """Look for mistakes in a table before a classifier is fitted to it, as `corral check` does.

    These are labels that are missing, spelled in two ways or contradicted by left-out probabilities; small
    classes; ids and likely groups; dates; leakage; columns that are constant, mostly empty or functions of
    another; text among numbers, and categories spelled in two ways; numbers that stand for missing values;
    mixed units; duplicates and near duplicates; rows in order of class or time. That nothing is found does
    not mean that nothing is wrong.

    Parameters
    ----------
    frame : DataFrame
        Columns of numbers or text; missing values are NaN or None. Frames of other libraries than pandas are
        turned into its.
    target : str, default=None
        Column with the classes of the rows, if there is one; a class may be missing.
    ids : sequence of str, default=()
        Columns that name rows.
    group : str, default=None
        Column that names what rows belong to, such as a patient with several measurements.
    categorical : sequence of str, default=()
        Columns whose values are categories, whatever they look like.

    Returns
    -------
    findings : list of Finding
        In the order in which they should be mended. `print` shows one as a sentence.

    Examples
    --------
    >>> import pandas as pd
    >>> from corral import check_table
    >>> heights, weights = [1.7, 1.6, -999.0, 1.8, -999.0, 1.9], [70.5, 66.1, 71.2, 80.3, 69.9, 84.0]
    >>> frame = pd.DataFrame({"height": heights, "weight": weights, "site": 3})
    >>> for finding in check_table(frame):
    ...     print(finding)
    column 'site' holds 3 in every row, which tells nothing: leave it out.
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
    seen = _Columns.read(variables, categorical)
    findings = [] if y is None else [*of_labels(y)]
    findings += seen.findings(categorical)
    labels = np.unique(np.zeros(len(table)) if y is None else y.astype(str), return_inverse=True)[1]
    findings += mixed_units(seen.variables, seen.numeric, labels)
    groups = None if group is None else group_numbers(table[group])
    compared = _Rows.compare(seen, labels, None if y is None else ~are_missing(y), groups)
    alone = None
    if y is not None:
        alone = judge_columns(compared.considered, seen.numbers, labels, compared.distinct, groups)
    leaks: list[Finding] = []
    if y is not None and alone is not None:
        leaks += leakage(compared.considered, seen.numbers, alone)
        others = compared.considered.drop(columns=columns_in(leaks))
        leaks += leaking_missing_values(others, alone, np.unique(y[alone.rows].astype(str)).tolist())
    findings += leaks
    if thorough:
        findings += _thorough_findings(seen, compared, y, leaks, alone, group is not None)
    findings += compared.findings(seen.variables)
    findings += repeated_ids(table, [name for name in ids if name != group])
    return findings if group is None else [*findings, *of_groups(table[group], y)]


def _table_and_labels(
    frame: Any, target: str | None, ids: Sequence[str], group: str | None, categorical: Sequence[str]
) -> tuple[pd.DataFrame, NDArray[Any] | None]:
    """The table without its labels, and these; columns that are not there or cannot be are refused."""
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
class _Columns:
    """The variables of a table, and what each holds."""

    variables: pd.DataFrame  # without columns that no fit takes
    contents: dict[str, Content]
    strange: list[Finding]  # about the columns that no fit takes
    dates: dict[str, Dates]
    numeric: dict[str, Floats]  # columns of numbers
    named: list[Finding]  # about columns that name rows

    @classmethod
    def read(cls, variables: pd.DataFrame, categorical: Sequence[str]) -> _Columns:
        """Decide what each column holds."""
        dates = dated_columns(variables, categorical)
        contents = {name: content_of(column) for name, column in variables.items()}
        undated = variables.drop(columns=list(dates))
        strange = [*neither_numbers_nor_text(undated, contents, categorical)]
        variables = variables.drop(columns=columns_in(strange))
        names = [name for name in undated.columns if name in variables.columns and name not in categorical]
        numeric = {name: contents[name].numbers for name in names if contents[name].is_numeric}
        named = [*identifiers(variables.drop(columns=list(dates)), contents, numeric)]
        return cls(variables, contents, strange, dates, numeric, named)

    @property
    def numbers(self) -> set[str]:
        """Names of columns whose values have an order: numbers and dates."""
        return {*self.numeric, *self.dates}

    def findings(self, categorical: Sequence[str]) -> list[Finding]:
        """What is wrong with single columns."""
        categories = self.variables.drop(columns=[*{*self.numbers, *columns_in(self.named)}])
        texts = categories[[name for name in categories.columns if name not in categorical]]
        slips = [*text_among_numbers(texts, self.contents)]
        written = [*numbers_as_text(texts.drop(columns=columns_in(slips)))]
        odd = odd_categories(categories.drop(columns=columns_in(written)), self.contents)
        mixed = text_and_numbers(
            texts.drop(columns=[*columns_in(slips), *columns_in(written)]), self.contents
        )
        return [
            *self.strange,
            *mostly_empty(self.variables),
            *self.named,
            *found_dates(self.variables, self.dates),
            *slips,
            *written,
            *mixed,
            *odd,
            *constants(self.variables),
            *sentinels(self.variables, self.numeric),
            *zeros_for_missing(self.variables, self.numeric),
        ]

    def coded(self) -> pd.DataFrame:
        """All variables as numbers: texts are coded, dates are days, missing values are NaN."""
        import pandas as pd

        columns = {name: _codes(self.variables[name]) for name in self.variables.columns}
        days = {name: _days(dates) for name, dates in self.dates.items()}
        return pd.DataFrame(
            {name: ({**columns, **self.numeric, **days})[name] for name in columns}, self.variables.index
        )


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a table as numbers, and which of them are alike."""

    coded: pd.DataFrame
    considered: pd.DataFrame  # without columns that name rows, which tell nothing
    labels: Integers  # (n_rows,) numbers of the classes
    unrepeated: Integers  # positions of rows that have a label, of which none is a copy
    distinct: Integers  # those of which none is a near duplicate either
    numbers: Integers | None  # (n_rows,) numbers that copies share; None if nothing can be compared
    duplicates: NearDuplicates | None

    @classmethod
    def compare(
        cls, seen: _Columns, labels: Integers, labelled: Bools | None, groups: Integers | None
    ) -> _Rows:
        """Look for copies and near duplicates."""
        import pandas as pd

        coded = seen.coded()
        kinds = np.array([name not in seen.numbers for name in coded.columns], dtype=np.int64)
        duplicates = near_duplicates(coded.to_numpy(), kinds, groups)
        considered = coded.drop(columns=columns_in(seen.named))
        numbers = number_duplicates(considered.to_numpy(), labels) if considered.size else None
        if numbers is None and coded.size:  # equal names of rows tell copies from rows that agree by chance
            numbers = number_duplicates(coded.to_numpy(), labels)
        unrepeated = np.ones(len(coded), dtype=np.bool_) if labelled is None else labelled
        if numbers is not None:
            unrepeated &= ~pd.DataFrame({"number": numbers, "label": labels}).duplicated().to_numpy()
        distinct = unrepeated.copy()
        distinct[[] if duplicates is None else duplicates.pairs[:, 1]] = False
        rows = np.flatnonzero(unrepeated), np.flatnonzero(distinct)
        return cls(coded, considered, labels, *rows, numbers, duplicates)

    def findings(self, variables: pd.DataFrame) -> list[Finding]:
        """Copies and near duplicates."""
        findings: list[Finding] = []
        n_varying = int((self.considered.nunique(dropna=False) > 1).sum())
        if self.numbers is not None and n_varying > 1:  # rows agree by chance in one column
            findings += duplicates(self.numbers, self.labels, variables.index)
        if self.duplicates is not None:
            findings.append(of_near_duplicates(self.duplicates, variables))
        return findings


def _thorough_findings(
    seen: _Columns,
    compared: _Rows,
    y: NDArray[Any] | None,
    leaks: Sequence[Finding],
    alone: SingleColumns | None,
    has_groups: bool,
) -> Iterator[Finding]:
    """Findings that compare columns with each other, or need a quick model of the labels."""
    is_modelled = y is not None and _ROWS_OF_CLASS * np.unique(compared.labels).size <= len(compared.labels)
    labels = compared.labels if is_modelled else None
    undated = compared.considered.drop(columns=[*seen.dates, *columns_in(leaks)], errors="ignore")
    grouping = []
    if not has_groups:
        sound = compared.considered.drop(columns=columns_in(leaks))
        grouping = [*likely_groups(undated, seen.numeric, sound, labels, compared.unrepeated)]
        for finding in grouping:
            yield finding
            if y is not None:
                has_label = ~are_missing(y)
                name = finding.columns[0]
                yield from classes_of_one_group(name, undated[name].to_numpy()[has_label], y[has_label])
    variables = compared.considered.drop(columns=[*columns_in(leaks), *columns_in(grouping)])
    times = time_columns({name: _days(dates) for name, dates in seen.dates.items()}, seen.numeric)
    if y is None or not is_modelled or alone is None or not variables.shape[1]:
        yield from time_order([*times], None, compared.labels, compared.distinct, times)
    else:
        rows = modelled_rows(compared.distinct, variables.shape[1])
        names, codes = np.unique(y[rows].astype(str), return_inverse=True)
        X = ranked_columns(variables.iloc[rows])
        probabilities = left_out_probabilities(X, codes)
        yield from relative_leakage(variables, alone, probabilities, codes, rows)
        yield from time_order([*times], X, codes, rows, times)
        yield from class_order(compared.labels[~are_missing(y)])
        yield from contradicted_labels(probabilities, codes, names, compared.coded.index[rows])
    yield from functions(undated, seen.numeric)


def _codes(column: pd.Series[Any]) -> Floats:
    """Numbers in place of the values of a column, NaN where there is none."""
    codes = column.factorize()[0].astype(np.float64)
    return np.where(codes < 0.0, np.nan, codes)


def _days(dates: Dates) -> Floats:
    """Days since 1970, NaN where there is no date."""
    seconds: Floats = dates.times.astype(np.int64).astype(np.float64)
    return np.where(np.isnat(dates.times), np.nan, seconds / 86400.0)
