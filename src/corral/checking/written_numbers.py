"""Find numbers that are text because of a unit, a percent sign or marks of thousands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from corral.checking.findings import Finding
from corral.data.written_numbers import FEWEST_TEXTS, WrittenNumbers, written_numbers
from corral.sentences.tables import numbers_as_text as numbers_as_text_words

if TYPE_CHECKING:
    import pandas as pd

# If a larger share of the texts is plain numbers, the other texts are errors (`text_among_numbers`).
_NEARLY_PLAIN = 0.8


def numbers_as_text(columns: pd.DataFrame, fewest: int = FEWEST_TEXTS) -> Iterator[Finding]:
    """Yield findings about text columns of numbers with a unit, a percent sign or marks of thousands.

    Only columns with at least `fewest` different texts are reported: a few texts, such as doses, may well be
    categories.
    """
    for name, column in columns.items():
        written = numbers_as_written(column, fewest)
        if written is None:
            continue
        row = column.index[(column.astype(str) == written.example).to_numpy()][0]
        description = numbers_as_text_words(str(name), written.example, row, written.beside)
        kind, advice = "numbers as text", "write plain numbers; otherwise each text is a category"
        if written.has_comma and not written.unit:
            kind = "numbers with a comma"
            advice = "remove the commas if they mark thousands, or read the file with decimal commas"
        yield Finding(kind, description, advice, (str(name),), (row,))


def numbers_as_written(column: pd.Series[Any], fewest: int = FEWEST_TEXTS) -> WrittenNumbers | None:
    """Return how numbers are written in a column; None if it holds other texts or mainly plain numbers."""
    written = written_numbers(column.dropna().drop_duplicates().astype(str), fewest)
    return None if written is None or written.plain_share >= _NEARLY_PLAIN else written
