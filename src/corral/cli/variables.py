"""Variables of a table: numbers, categories and dates, all of which may be missing.

In a fit the content of a column decides what it holds, as in `check`. In a new table the model decides.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from corral.array_types import Floats
from corral.checking.columns import (
    Content,
    content_of,
    neither_numbers_nor_text,
    numbers_in,
    text_among_numbers,
    text_and_numbers,
)
from corral.checking.dates import dated_columns
from corral.checking.written_numbers import numbers_as_text
from corral.cli.check import sentence_of
from corral.cli.formats import TableFile
from corral.cli.labels import IF_MISSING
from corral.cli.shared import note
from corral.cli.tables import MISSING, text_columns
from corral.estimators.encoding import (
    Encoding,
    Unknown,
    columns_of,
    infinite_value,
    lost_digits,
    with_dates,
)
from corral.sentences.tables import unknown_categories

# Baselines square numbers, and the sum of many squares must be finite.
_LARGEST = 1e150

_TRUTHS = {"true": 1.0, "false": 0.0}


# In a fit


def learnt_variables(table: pd.DataFrame, file: TableFile, categorical: Collection[str]) -> pd.DataFrame:
    """The table with each column as numbers, categories or dates.

    A column that is none of them is refused with the finding of `check`. Where a file stores types, text is
    always categories.
    """
    categories = set(categorical)
    dates = dated_columns(table, categories)
    if file.is_typed:
        categories |= {name for name in table.columns if pd.api.types.infer_dtype(table[name]) == "string"}
    contents = {name: content_of(table[name]) for name in table.columns if name not in {*categories, *dates}}
    texts = [name for name in text_columns(table) if name in contents]
    _refuse_unreadable(table[texts], contents, file)
    lost = lost_digits(table[list(contents)])
    if lost:
        raise ValueError(
            f"{file}: {lost}: leave it out by --drop, or make categories of it by --categorical."
        )
    for finding in text_and_numbers(table[texts], contents):
        note(str(finding))
    columns: dict[str, Any] = {}
    for name in table.columns:
        column, content = table[name], contents.get(name)
        if name in dates:
            columns[name] = _dates(column)
            continue
        if content is not None and content.kind != "categories":
            columns[name] = column if column.dtype.kind in "iuf" else content.numbers
            _refuse_infinite(column, content.numbers, file)
            _refuse_huge(column, content.numbers, file)
            continue
        types = set(column.dropna().map(type))
        # Numbers and text have no common order, and model files hold no dates.
        if len(types) > 1 or any(issubclass(each, datetime.date) for each in types):
            column = column.map(str, na_action="ignore")
        columns[name] = column.astype("category")
    return pd.DataFrame(columns, index=table.index)


def _dates(column: pd.Series[Any]) -> NDArray[Any]:
    """Cells of a column of dates as a model reads them: dates, text or None."""
    cells = column if column.dtype.kind == "M" else column.map(str, na_action="ignore")
    dates: NDArray[Any] = cells.astype(object).where(column.notna(), None).to_numpy()
    return dates


def _refuse_unreadable(texts: pd.DataFrame, contents: Mapping[str, Content], file: TableFile) -> None:
    """Refuse columns that are neither numbers nor text, or numbers except for a few cells or for commas."""
    findings = [*neither_numbers_nor_text(texts, contents, ()), *text_among_numbers(texts, contents)]
    findings += [each for each in numbers_as_text(texts, fewest=1) if each.kind == "numbers with a comma"]
    if findings:
        sentence = sentence_of(findings[0]).removesuffix(".")
        if findings[0].kind == "text among numbers":
            sentence += "; or leave the column out by --drop, or make categories of it by --categorical"
        raise ValueError(f"{file}: {sentence}.")


def without_dates(X: pd.DataFrame) -> pd.DataFrame:
    """The variables with days, months and so on in place of dates, for estimators that take no dates."""
    variables: dict[str, Any] = {}
    for name in X.columns:
        if X[name].dtype.kind in "biuf" or hasattr(X[name].dtype, "categories"):
            variables[name] = X[name]
            continue
        columns = columns_of(X[[name]])
        for each in with_dates(columns, Encoding.learn(columns).dates)[0]:
            cells = each.cells if each.categories is None else pd.Categorical(each.cells, each.categories)
            variables[each.name] = cells
    return pd.DataFrame(variables, index=X.index)


def as_numbers(X: pd.DataFrame, file: TableFile) -> pd.DataFrame:
    """The variables as floats, for estimators that take only numbers; text and missing values are refused."""
    columns = {}
    for name in X.columns:
        column = X[name].astype(object) if name in text_columns(X) else X[name]
        columns[name] = numbers = numbers_in(column)
        missing, texts = column.isna(), column[np.isnan(numbers)].dropna()
        if len(texts):
            raise ValueError(
                f"{file}: column {name!r} holds text, such as {_shown(texts.iloc[0])}, where only numbers "
                "are taken: leave it out by --drop, or all such columns by --numeric-only."
            )
        if missing.any():
            raise ValueError(
                f"{file}: column {name!r} lacks {missing.sum()} of {len(X)} values, the first in row "
                f"{missing.idxmax()}: fill them in, or {IF_MISSING}."
            )
    return pd.DataFrame(columns, index=X.index)


# In a new table


class ModelVariables:
    """The variables of a fitted model: how columns of new tables are read, and counts of what they held.

    Attributes
    ----------
    names : the columns that the model takes.
    categories : categories of the model, by column.
    empty : columns without any value in training; in new tables anything there counts as missing.
    dates : columns of dates.
    na_values : texts that stand for a missing value, given in the fit or now.
    unknown : by column, how often each value was read that is no category of the model.
    n_values : by column, how many values were read that are not missing.
    """

    def __init__(self, fitted: Any, na_values: Sequence[str] | None) -> None:
        self.names: list[str] = fitted.feature_names_in_.tolist()
        self.categories: dict[str, list[Any]] = {}
        self.empty: list[str] = []
        self.dates: list[str] = []
        if hasattr(fitted, "encoding_"):
            encoding = fitted.encoding_
            pairs = zip(self.names, encoding.column_categories(), strict=True)
            self.categories = {name: categories for name, categories in pairs if categories is not None}
            self.empty = [self.names[j] for j in encoding.column_positions()[sorted(encoding.empty)]]
            self.dates = [self.names[column.position] for column in encoding.dates]
        self.na_values = list(dict.fromkeys((*getattr(fitted, "na_values_", ()), *(na_values or ()))))
        self.unknown: Unknown = {}
        self.n_values: Counter[str] = Counter()

    @property
    def texts(self) -> dict[str, list[str]]:
        """Columns to read as text, and what stands for a missing value there, as `read_chunks` takes them."""
        return {name: [*MISSING, *self.na_values] for name in (*self.categories, *self.dates)}

    def read(self, table: pd.DataFrame, file: TableFile) -> pd.DataFrame:
        """The variables of the rows of a table; categories that the model lacks are kept and counted."""
        rows = table[self.names]
        self.n_values.update({name: int(n) for name, n in rows.notna().sum().items()})
        return pd.DataFrame({name: self._values(rows[name], file) for name in self.names}, index=rows.index)

    def _values(self, column: pd.Series[Any], file: TableFile) -> NDArray[Any]:
        """Categories or numbers of a column; a column that was empty in training may hold anything."""
        if column.name in self.categories:
            return self._categories_in(column)
        if column.name in self.dates:  # which the model reads
            return _dates(column)
        if column.name in self.empty:
            texts = column.map(str, na_action="ignore").astype(object)
            if texts.notna().any():
                self.unknown.setdefault(str(column.name), Counter()).update(texts.dropna().tolist())
            cells: NDArray[Any] = texts.where(texts.notna(), None).to_numpy(dtype=object)
            return cells
        numbers = numbers_in(column)
        texts = column[np.isnan(numbers) & column.notna().to_numpy()].astype(str)
        if len(texts):
            raise ValueError(
                f"{file}: column {column.name!r} is not numeric: row {texts.index[0]} holds "
                f"{_shown(texts.iloc[0])}; mend it, or say --na-values if it stands for a missing value."
            )
        _refuse_infinite(column, numbers, file)
        return numbers

    def _categories_in(self, column: pd.Series[Any]) -> NDArray[Any]:
        """Categories of the model, other values as they are, and None for missing values."""
        categories = self.categories[str(column.name)]
        convert = str if all(isinstance(each, str) for each in categories) else _number_or_text
        by_value = {convert(each): each for each in categories}
        codes, values = column.factorize()
        converted = [convert(value) for value in values]
        counts = np.bincount(codes[codes >= 0], minlength=len(values)).tolist()
        unknown = {str(values[k]): n for k, n in enumerate(counts) if converted[k] not in by_value}
        if unknown:
            self.unknown.setdefault(str(column.name), Counter()).update(unknown)
        values = [by_value.get(value, value) for value in converted]
        cells: NDArray[Any] = np.array([*values, None], dtype=object)[
            codes
        ]  # the code of missing values is -1
        return cells

    def note_unknown_categories(self) -> None:
        """Note how many values were no categories of the model."""
        if self.unknown:
            note(unknown_categories(self.unknown))

    def note_empty_columns(self) -> None:
        """Note columns that had no value in any row."""
        for name in self.names:
            if name in self.n_values and not self.n_values[name]:
                note(f"column {name!r} is empty in all rows: labels do without it.")


def _number_or_text(value: Any) -> float | str:
    """The number that is written in a cell, where true and false are 1 and 0; else the text."""
    text = str(value)
    try:
        return _TRUTHS[text.casefold()] if text.casefold() in _TRUTHS else float(value)
    except (TypeError, ValueError):
        return text


def _refuse_infinite(column: pd.Series[Any], numbers: Floats, file: TableFile) -> None:
    sentence = infinite_value(str(column.name), numbers, column.index)
    if sentence:
        raise ValueError(f"{file}: {sentence}: mend it, or say --na-values inf if it is a missing value.")


def _refuse_huge(column: pd.Series[Any], numbers: Floats, file: TableFile) -> None:
    is_huge = np.abs(np.nan_to_num(numbers)) > _LARGEST
    if is_huge.any():
        row = int(is_huge.argmax())
        raise ValueError(
            f"{file}: column {column.name!r} holds {numbers[row]:g} in row {column.index[row]}, which is too "
            "large to be squared: rescale the column, or leave it out by --drop."
        )


def _shown(value: Any) -> str:
    return repr(str(value)[:40])
