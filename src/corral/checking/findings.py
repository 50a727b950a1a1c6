"""The class `Finding`, and the list of what is looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# In fewer rows a column may be in order, or all its values may differ, by chance.
ENOUGH_ROWS = 10

# What is looked for, in the words of users; short rows exist in text files only.
LOOKED_FOR = (
    "labels that are missing, spelled in two ways or contradicted by left-out probabilities",
    "small classes",
    "ids that are unique, nearly unique or repeated, and likely groups",
    "dates",
    "leakage",
    "columns that are constant, mostly empty, remarks, or functions of another",
    "text among numbers, numbers as text, and categories spelled in two ways",
    "numbers such as -999 or 0 that stand for missing values",
    "mixed units",
    "duplicates beyond chance, and near duplicates",
    "rows that are short, or in order of class or time",
)


@dataclass(frozen=True)
class Finding:
    """Something in a table that is likely to be wrong.

    Attributes
    ----------
    kind : one word or two, such as 'leakage'.
    description : what is wrong, in words.
    advice : what to do.
    columns : names of the columns concerned, if any.
    rows : names, in the index of the table, of the first rows concerned, if any.
    values : texts or numbers that seem to stand for missing values.
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
    """Names of the columns that findings are about."""
    return [name for finding in findings for name in finding.columns]
