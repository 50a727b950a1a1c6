"""Findings: what each says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# In fewer rows a column may well be in order, or all its values differ, by chance.
ENOUGH_ROWS = 10


@dataclass(frozen=True)
class Finding:
    """Something in a table that is likely to be a mistake.

    Attributes
    ----------
    kind : what it is, in one word or two.
    found : what was found.
    advice : what to do.
    columns : which ones it is about, if any.
    rows : the first rows that it is about, if any, as the index of the table names them.
    values : texts or numbers that seem to stand for nothing.
    """

    kind: str
    found: str
    advice: str
    columns: tuple[str, ...] = ()
    rows: tuple[Any, ...] = ()
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.found}: {self.advice}."


def columns_in(findings: Sequence[Finding]) -> list[str]:
    """Names of the columns that findings are about."""
    return [name for finding in findings for name in finding.columns]
