"""Numbers that are written with a unit, a percent sign or marks of thousands, and therefore are text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from corral.checking.findings import Finding
from corral.data.written_numbers import FEWEST_TEXTS, WrittenNumbers, written_numbers
from corral.sentences.tables import numbers_as_text as numbers_as_text_words

if TYPE_CHECKING:
    import pandas as pd

# Where more of them are plain numbers, the others are slips.
_NEARLY_PLAIN = 0.8


def numbers_as_text(columns: pd.DataFrame, fewest: int = FEWEST_TEXTS) -> Iterator[Finding]:
    """Columns of text whose cells are numbers with a unit, a percent sign or marks of thousands.

    They have at least `fewest` different texts: of fewer, doses for example, each may well be a category.
    """
    for name, column in columns.items():
        written = numbers_as_written(column, fewest)
        if written is None:
            continue
        row = column.index[(column.astype(str) == written.example).to_numpy()][0]
        description = numbers_as_text_words(str(name), written.example, row, written.beside)
        kind, advice = "numbers as text", "write plain numbers, or each of them is a category"
        if written.has_comma and not written.unit:
            kind = "numbers with a comma"
            advice = "take the comma out if it marks thousands, or say that it is a decimal comma"
        yield Finding(kind, description, advice, (str(name),), (row,))


def numbers_as_written(column: pd.Series[Any], fewest: int = FEWEST_TEXTS) -> WrittenNumbers | None:
    """How a column writes numbers; None where it holds other texts, or plain numbers but for slips."""
    written = written_numbers(column.dropna().drop_duplicates().astype(str), fewest)
    return None if written is None or written.plain_share >= _NEARLY_PLAIN else written
