"""Convert the columns of a table to variables: numbers, categories or dates, with missing values.

In a fit, the content of a column determines its type, as in `check`. In a new table, columns are read as the
types that they had in the fit.
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

# Larger numbers are refused, because baselines compute sums of squares, which must be finite.
_LARGEST = 1e150

_TRUTHS = {"true": 1.0, "false": 0.0}


# In a fit


def learnt_variables(table: pd.DataFrame, file: TableFile, categorical: Collection[str]) -> pd.DataFrame:
    """Return the table with each column as numbers, categories or dates.

    A column of another type raises ValueError with the sentence of the finding of `check`. If the file stores
    types, text is always categories.
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
            f"{file}: {lost}: leave the column out by --drop, or use its values as categories by "
            "--categorical."
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
        # Numbers and text cannot be sorted together, and model files cannot contain dates.
        if len(types) > 1 or any(issubclass(each, datetime.date) for each in types):
            column = column.map(str, na_action="ignore")
        columns[name] = column.astype("category")
    return pd.DataFrame(columns, index=table.index)


def _dates(column: pd.Series[Any]) -> NDArray[Any]:
    """Return the cells of a column of dates as estimators accept them: dates, text or None."""
    cells = column if column.dtype.kind == "M" else column.map(str, na_action="ignore")
    dates: NDArray[Any] = cells.astype(object).where(column.notna(), None).to_numpy()
    return dates


def _refuse_unreadable(texts: pd.DataFrame, contents: Mapping[str, Content], file: TableFile) -> None:
    """Raise ValueError for columns of other types, and for numbers with a few texts or with commas."""
    findings = [*neither_numbers_nor_text(texts, contents, ()), *text_among_numbers(texts, contents)]
    findings += [each for each in numbers_as_text(texts, fewest=1) if each.kind == "numbers with a comma"]
    if findings:
        sentence = sentence_of(findings[0]).removesuffix(".")
        if findings[0].kind == "text among numbers":
            sentence += (
                "; or leave the column out by --drop, or use its values as categories by --categorical"
            )
        raise ValueError(f"{file}: {sentence}.")


def without_dates(X: pd.DataFrame) -> pd.DataFrame:
    """Replace dates by days, months and so on, for estimators that do not accept dates."""
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
    """Convert variables to floats; raise ValueError for text and missing values."""
    columns = {}
    for name in X.columns:
        column = X[name].astype(object) if name in text_columns(X) else X[name]
        columns[name] = numbers = numbers_in(column)
        missing, texts = column.isna(), column[np.isnan(numbers)].dropna()
        if len(texts):
            raise ValueError(
                f"{file}: column {name!r} holds text, such as {_shown(texts.iloc[0])}, but only numbers are "
                "accepted: leave it out by --drop, or all columns of text by --numeric-only."
            )
        if missing.any():
            raise ValueError(
                f"{file}: column {name!r} has no value in {missing.sum()} of {len(X)} rows, first in row "
                f"{missing.idxmax()}: fill in the values, or {IF_MISSING}."
            )
    return pd.DataFrame(columns, index=X.index)


# In a new table


class ModelVariables:
    """Reads the variables of a fitted model from new tables, and counts their values.

    Attributes
    ----------
    names : list of str
        The variables of the model.
    categories : dict of str to list
        The categories of each column of categories.
    empty : list of str
        Columns that were empty in all training rows. In new tables, their values count as missing.
    dates : list of str
        Columns of dates.
    na_values : list of str
        Texts that stand for a missing value, given in the fit or in this command.
    unknown : dict of str to Counter
        By column, the number of times that each value was read that is not a category of the model.
    n_values : Counter
        By column, the number of values that were read and are not missing.
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
        """Columns to read as text, with the texts that stand for a missing value, for `read_chunks`."""
        return {name: [*MISSING, *self.na_values] for name in (*self.categories, *self.dates)}

    def read(self, table: pd.DataFrame, file: TableFile) -> pd.DataFrame:
        """Return the variables of the rows of a table; unknown categories are kept and counted."""
        rows = table[self.names]
        self.n_values.update({name: int(n) for name, n in rows.notna().sum().items()})
        return pd.DataFrame({name: self._values(rows[name], file) for name in self.names}, index=rows.index)

    def _values(self, column: pd.Series[Any], file: TableFile) -> NDArray[Any]:
        """Return the cells of a column, according to the type that the column had in the fit."""
        if column.name in self.categories:
            return self._categories_in(column)
        if column.name in self.dates:  # the estimator parses the dates
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
                f"{_shown(texts.iloc[0])}; correct it, or use --na-values if it stands for a missing value."
            )
        _refuse_infinite(column, numbers, file)
        return numbers

    def _categories_in(self, column: pd.Series[Any]) -> NDArray[Any]:
        """Return categories of the model; unknown values stay as they are, missing values become None."""
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
        """Print a note about values that are not categories of the model."""
        if self.unknown:
            note(unknown_categories(self.unknown))

    def note_empty_columns(self) -> None:
        """Print a note about columns that are empty in all rows."""
        for name in self.names:
            if name in self.n_values and not self.n_values[name]:
                note(f"column {name!r} is empty in all rows, so labels are predicted without it.")


def _number_or_text(value: Any) -> float | str:
    """Return the number that is written in a cell, with true as 1 and false as 0; else the text."""
    text = str(value)
    try:
        return _TRUTHS[text.casefold()] if text.casefold() in _TRUTHS else float(value)
    except (TypeError, ValueError):
        return text


def _refuse_infinite(column: pd.Series[Any], numbers: Floats, file: TableFile) -> None:
    sentence = infinite_value(str(column.name), numbers, column.index)
    if sentence:
        raise ValueError(
            f"{file}: {sentence}: correct it, or use --na-values inf if it stands for a missing value."
        )


def _refuse_huge(column: pd.Series[Any], numbers: Floats, file: TableFile) -> None:
    is_huge = np.abs(np.nan_to_num(numbers)) > _LARGEST
    if is_huge.any():
        row = int(is_huge.argmax())
        raise ValueError(
            f"{file}: column {column.name!r} holds {numbers[row]:g} in row {column.index[row]}, which is too "
            "large to compute its square: rescale the column, or leave it out by --drop."
        )


def _shown(value: Any) -> str:
    return repr(str(value)[:40])
