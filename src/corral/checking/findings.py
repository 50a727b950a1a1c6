"""The class `Finding`, and the list of what is looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# With fewer rows, a column may be sorted or have no repeated value by chance.
ENOUGH_ROWS = 10

# What `corral check` looks for; `check_table` does not look for short rows, which only text files have.
LOOKED_FOR = (
    "labels that are missing, spelled in two ways or improbable for a quick model",
    "small classes",
    "ids that are unique, nearly unique or repeated, and likely groups",
    "dates",
    "leakage",
    "columns that are constant, mostly empty, free text, or functions of another column",
    "text among numbers, numbers written as text, and categories spelled in two ways",
    "numbers such as -999 or 0 that stand for missing values",
    "mixed units",
    "duplicates and near duplicates",
    "short rows, and rows that are sorted by class or time",
)


@dataclass(frozen=True)
class Finding:
    """Something in a table that is likely to be wrong.

    Attributes
    ----------
    kind : str
        A short name of the problem, such as 'leakage'.
    description : str
        What seems to be wrong.
    advice : str
        What to do about it.
    columns : tuple of str
        Names of the affected columns.
    rows : tuple
        Index labels of some affected rows.
    values : tuple of str
        Texts or numbers that seem to stand for missing values.
    """

    kind: str
    description: str
    advice: str
    columns: tuple[str, ...] = ()
    rows: tuple[Any, ...] = ()
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.description}: {self.advice}."


def columns_in(findings: Sequence[Finding]) -> list[str]:
    """Return the names of the columns that the findings affect."""
    return [name for finding in findings for name in finding.columns]
