"""Variables of a table: numbers, or levels of which text is made, both with gaps.

Which of the two a column is, a fit decides by what the column holds. For a new table the model decides. Where
a column would be numeric but for some cells, it is refused: a slip of the pen must not turn measurements into
levels without a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Floats
from corral.checking.columns import content_of, is_time, numbers_in
from corral.cli.formats import TableFile, looks_like_comma_number
from corral.cli.shared import note
from corral.estimators.encoding import Unknown, infinite_value, lost_digits, unknown_sentence

if TYPE_CHECKING:
    import pandas as pd

IF_TEXT = "leave it out by --id if it names rows, by --drop, or all such columns by --numeric-only"
_IF_TIMES = "write a number in its place, such as the days since a certain one"
_TRUTHS = {"true": True, "false": False}


# In a fit


def columns_of_levels(table: pd.DataFrame, path: TableFile, categorical: Collection[str]) -> list[str]:
    """Names of the columns whose values are levels: those that are said to be, and all that hold no numbers.

    A column that would be numeric but for a few cells is refused.
    """
    return [name for name in table.columns if name in categorical or _holds_levels(table[name], path)]


def _holds_levels(column: pd.Series[Any], path: TableFile) -> bool:
    content = content_of(column)
    if column.dtype.kind in "iuf" or content.kind == "number":
        return False
    cells = column[content.wrong & ~np.isinf(content.numbers)]
    if content.kind == "strange":
        raise ValueError(_not_numeric(column[content.wrong], path, IF_TEXT, na_values=False))
    if content.kind == "slips" or (len(cells) and looks_like_comma_number(str(cells.iloc[0]))):
        if not cells.map(lambda value: isinstance(value, str)).all():  # such as dates of a spreadsheet
            raise ValueError(_not_numeric(cells, path, IF_TEXT, na_values=False, is_slip=True))
        advice = f"{IF_TEXT}, or say --categorical {column.name!r} if its values are levels"
        raise ValueError(_not_numeric(cells, path, advice, na_values=True, is_slip=content.kind == "slips"))
    if len(cells) and not hasattr(column.dtype, "categories") and len(cells) < column.notna().sum():
        note(
            f"column {column.name!r} holds text in {len(cells)} of {len(column)} rows, such as "
            f"{_shown(cells.iloc[0])}, and numbers in others: all of them count as levels."
        )
    return True


def learnt_variables(
    table: pd.DataFrame, path: TableFile, levels: Collection[str], if_missing: str
) -> pd.DataFrame:
    """The table with floats in columns of numbers, NaN for gaps, and categories in columns of levels."""
    import pandas as pd

    columns = {
        name: _categories(table[name]) if name in levels else _numbers(table[name], path, IF_TEXT, if_missing)
        for name in table.columns
    }
    return pd.DataFrame(columns, index=table.index)


def refuse_lost_digits(table: pd.DataFrame, path: TableFile) -> None:
    """Refuse a column of integers of which two that differ are the same float."""
    said = lost_digits(table)
    if said:
        raise ValueError(
            f"{path}: {said}: leave it out by --id if it names rows, or by --drop, or make levels of it by "
            "--categorical."
        )


def _categories(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column of categories; yes and no, which text files write as words, become such again."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        return column
    values = column.astype(object).where(column.notna(), None)
    if set(values.dropna().map(lambda value: str(value).casefold())) <= _TRUTHS.keys():
        values = values.map(lambda value: None if value is None else _TRUTHS[str(value).casefold()])
    elif len(set(values.dropna().map(type))) > 1:  # numbers and text, which have no order
        values = values.map(lambda value: None if value is None else str(value))
    return pd.Series(pd.Categorical(values), index=column.index, name=column.name)


# As a model knows them


@dataclass(frozen=True)
class ModelVariables:
    """The variables of a fitted model, which say how a new table is read.

    Attributes
    ----------
    names : of the columns.
    levels : the levels of the columns that have some.
    takes_gaps : whether columns are numbers or these levels, with gaps; else all are numbers without gaps.
    empty : columns without any value in training, in which a new table may hold anything.
    unknown : how often values were met that are no levels of the model, by column and value.
    n_known : how many values were met in each column.
    na_values : what stood for a missing value in the training table, besides the usual.
    """

    names: list[str]
    levels: dict[str, list[Any]]
    takes_gaps: bool
    empty: Collection[str] = ()
    unknown: Unknown = field(default_factory=dict)
    n_known: Counter[str] = field(default_factory=Counter)
    na_values: Sequence[str] = ()

    @classmethod
    def of(cls, fitted: Any) -> ModelVariables:
        """Ask a fitted estimator, which was given names of columns."""
        names = fitted.feature_names_in_.tolist()
        na_values = getattr(fitted, "na_values_", ())
        if not hasattr(fitted, "encoding_"):
            return cls(names, {}, takes_gaps=False, na_values=na_values)
        pairs = zip(names, fitted.encoding_.levels, strict=True)
        levels = {name: levels for name, levels in pairs if levels is not None}
        empty = [names[j] for j in sorted(fitted.encoding_.empty)]
        return cls(names, levels, takes_gaps=True, empty=empty, na_values=na_values)

    def gap_marks(self, given: Sequence[str] | None) -> list[str]:
        """What stands for a missing value: what did in training, and what a user names besides."""
        return list(dict.fromkeys((*self.na_values, *(given or ()))))

    def read(self, table: pd.DataFrame, path: Path | TableFile, if_missing: str = "") -> pd.DataFrame:
        """The variables of some rows; levels that the model does not know become gaps and are counted.

        `if_missing` ends the sentence that refuses a gap, where the model takes none.
        """
        import pandas as pd

        rows = table[self.names]
        self.n_known.update({name: int(n) for name, n in rows.notna().sum().items()})
        if not self.takes_gaps:
            return as_numbers(rows, path, if_missing=if_missing)
        columns = {name: self._values(rows[name], path, if_missing) for name in self.names}
        return pd.DataFrame(columns, index=rows.index)

    def _values(self, column: pd.Series[Any], path: Path | TableFile, if_missing: str) -> NDArray[Any]:
        """Levels or numbers of a column; anything but numbers is missing in a column empty in training."""
        if column.name in self.levels:
            return self._known_levels(column)
        if column.name in self.empty:
            numbers = numbers_in(column)
            numbers = np.where(np.isinf(numbers), np.nan, numbers)
            ignored = column[np.isnan(numbers) & column.notna().to_numpy()].astype(str)
            if len(ignored):
                self.unknown.setdefault(str(column.name), Counter()).update(ignored.tolist())
            return numbers
        return _numbers(column, path, "", if_missing)

    def _known_levels(self, column: pd.Series[Any]) -> NDArray[Any]:
        """Levels of the model, None for gaps and for all other values."""
        by_text = {str(level): level for level in self.levels[column.name]}
        codes, values = column.factorize()
        levels = [_level_called(str(value), by_text) for value in values]
        counts = np.bincount(codes[codes >= 0], minlength=len(levels)).tolist()
        strange = {
            str(value): n for value, level, n in zip(values, levels, counts, strict=True) if level is None
        }
        if strange:
            self.unknown.setdefault(column.name, Counter()).update(strange)
        known = np.empty(len(levels) + 1, dtype=object)  # the last is a gap, whose code is -1
        known[:-1] = levels
        values_of_rows: NDArray[Any] = known[codes]
        return values_of_rows

    def note_what_was_met(self) -> None:
        """Say how many values were levels that the model does not know, and which columns were empty."""
        self.note_unknown_levels()
        for name in self.names:
            if name in self.n_known and not self.n_known[name]:
                note(f"column {name!r} is empty in all rows: labels do without it.")

    def note_unknown_levels(self) -> None:
        """Say how many values were levels that the model does not know."""
        if self.unknown:
            note(unknown_sentence(self.unknown))


def _level_called(text: str, by_text: Mapping[str, Any]) -> Any:
    """The level that a value of a table means, or None: in text files numbers, yes and no are text, too."""
    if text in by_text:
        return by_text[text]
    if isinstance(next(iter(by_text.values()), ""), str):  # levels are of one type
        return None
    try:
        value: Any = _TRUTHS.get(text.casefold())
        value = float(text) if value is None else value
    except ValueError:
        return None
    return next((level for level in by_text.values() if level == value), None)


# Numbers


def as_numbers(
    table: pd.DataFrame, path: Path | TableFile, *, if_text: str = "", if_missing: str = ""
) -> pd.DataFrame:
    """The table as finite floats; text, missing and infinite values are refused, the first one named.

    `if_text` and `if_missing` end the sentence: what can be done about it.
    """
    import pandas as pd

    columns: dict[str, Any] = {}
    for name in table.columns:
        column = table[name]
        columns[name] = numbers = _numbers(column, path, if_text, if_missing)
        missing = np.isnan(numbers)
        if missing.all() and len(table) > 1:
            first, last = table.index[[0, -1]]
            raise ValueError(
                f"{path}: column {name!r} is empty in all rows from {first} to {last}: fill it in."
            )
        if missing.any():
            n = int(missing.sum())
            raise ValueError(
                f"{path}: column {name!r} has {n} missing value{'s' * (n > 1)}, "
                f"the first in row {table.index[missing.argmax()]}: fill {'them' if n > 1 else 'it'} in"
                + (f", or {if_missing}." if if_missing else ".")
            )
    return pd.DataFrame(columns, index=table.index)


def _numbers(column: pd.Series[Any], path: Path | TableFile, if_text: str, if_missing: str) -> Floats:
    """Finite floats, NaN for gaps; text is refused."""
    numbers = numbers_in(column)
    text = np.isnan(numbers) & column.notna().to_numpy()
    if text.any():
        is_slip = if_text == IF_TEXT and content_of(column).kind == "slips"
        raise ValueError(
            _not_numeric(column[text], path, if_text, na_values=bool(if_missing), is_slip=is_slip)
        )
    said = infinite_value(str(column.name), numbers, column.index)
    if said:
        raise ValueError(f"{path}: {said}.")
    return numbers


def _not_numeric(
    held: pd.Series[Any], path: Path | TableFile, if_text: str, *, na_values: bool, is_slip: bool = False
) -> str:
    """Say which text stands among numbers, and what can be done about it.

    Where it `is_slip`, a few cells among many numbers, what mends the cells comes first.
    """
    value = _shown(held.iloc[0])
    are_times = is_time(held.iloc[0]) and not is_slip
    why = "holds dates or times, which are not taken" if are_times else "is not numeric"
    said = [f"{path}: column {held.name!r} {why}: row {held.index[0]} holds {value}"]
    if are_times:
        return "; ".join([*said, f"{if_text}, or {_IF_TIMES}" if if_text else _IF_TIMES]) + "."
    if looks_like_comma_number(str(held.iloc[0])):
        said.append("if the comma is a decimal one, say --decimal ','; if it marks thousands, take it out")
    elif is_slip:
        said += [_mending(held), f"otherwise {if_text}"]
    else:
        said += [if_text] if if_text else []
        if na_values and _is_marker(held):
            said.append(f"if {value} stands for a missing value, say so by --na-values")
    return "; ".join(said) + "."


def _mending(held: pd.Series[Any]) -> str:
    """What can be done about cells of text in a column of numbers."""
    texts = held.astype(str).unique()
    if is_time(held.iloc[0]):  # which no --na-values names
        return f"mend the {f'{len(held)} cells that hold no numbers' if len(held) > 1 else 'cell'}"
    if len(texts) == 1:
        cells = "the cell" if len(held) == 1 else f"the {len(held)} cells that hold it"
        return f"mend {cells}, or say --na-values {_shown(texts[0])} if it stands for a missing value"
    return (
        f"mend the {len(held)} cells that hold no numbers, or say --na-values for each text that stands for "
        "a missing value"
    )


def _is_marker(texts: pd.Series[Any]) -> bool:
    """Whether what stands among numbers may mean that there is none: one text, and repeated or no word."""
    distinct = texts.astype(str).unique()
    return len(distinct) == 1 and (len(texts) > 1 or not any(map(str.isalnum, distinct[0])))


def _shown(value: Any) -> str:
    return repr(str(value)[:40])
