"""Findings: what each says, and how counts and names are written in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

# In fewer rows a column may well be in order, or all its values differ, by chance.
ENOUGH_ROWS = 10
MOST_NAMED = 5


@dataclass(frozen=True)
class Finding:
    """Something in a table that is likely to be a mistake.

    Attributes
    ----------
    kind : what it is, in one word or two.
    columns : which ones it is about, if any.
    rows : the first rows that it is about, if any, as the index of the table names them.
    found : what was found.
    advice : what to do.
    values : texts or numbers that seem to stand for nothing.
    """

    kind: str
    columns: tuple[str, ...]
    rows: tuple[Any, ...]
    found: str
    advice: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.found}: {self.advice}."


def listed(
    names: Sequence[Any], show: Callable[[Any], str] = repr, most: int = MOST_NAMED, rest: str = ""
) -> str:
    """The first of some names, and how many more there are; `rest` says what of them."""
    more = f" and {len(names) - most} more{rest}" if len(names) > most else ""
    return ", ".join(map(show, names[:most])) + more


def counted(n: int, what: str) -> str:
    """A number of things, as in "1 row" and "2 rows"."""
    return f"{n} {what}{'s' * (n != 1)}"
