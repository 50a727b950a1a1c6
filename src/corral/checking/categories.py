"""Categories of a column that may be one: written in two ways, or so many that they are rather remarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from corral.checking.columns import Content
from corral.checking.findings import ENOUGH_ROWS, Finding
from corral.checking.labels import ALIKE, alike
from corral.sentences.numbers import counted, listed

if TYPE_CHECKING:
    import pandas as pd

# Answers that mean the same. A column that mixes them holds no other category.
_ANSWERS = (
    (("yes", "y", "true", "t", "1"), ("no", "n", "false", "f", "0")),
    (("male", "m", "man"), ("female", "f", "w", "woman")),
)


def odd_categories(columns: pd.DataFrame, contents: Mapping[str, Content]) -> Iterator[Finding]:
    """Levels that may be one, and columns of so many levels that they are rather remarks."""
    for name in columns.columns:
        if contents[name].kind == "slips":
            continue
        known = columns[name].dropna().astype(str)
        categories = sorted(known.unique().tolist())
        shown = alike(categories)
        if shown:
            found = f"levels of column {name!r} that {ALIKE} are levels of their own: {shown}"
            yield Finding("levels alike", found, "write each level in one way", (name,))
        spellings = mixed_answers(categories)
        if spellings:
            found = f"column {name!r} writes the same answer in several ways: {spellings}"
            yield Finding("mixed spellings", found, "write each answer in one way", (name,))
        if ENOUGH_ROWS <= 0.5 * len(known) < len(categories):
            yield Finding(
                "many levels",
                f"column {name!r} holds {len(categories)} different texts in {counted(len(known), 'row')}, "
                "so that most of a new table's will be unknown",
                "leave it out, or make a few levels of them",
                (name,),
            )


def mixed_answers(categories: Sequence[str]) -> str:
    """Groups of categories that mean the same, such as yes and Y, in words; nothing if there are none."""
    essences = {level: level.strip().casefold() for level in categories}
    for answers in _ANSWERS:
        if not set(essences.values()) <= {spelling for answer in answers for spelling in answer}:
            continue
        groups = [[level for level in categories if essences[level] in answer] for answer in answers]
        mixed = [group for group in groups if len({essences[level] for level in group}) > 1]
        return ", ".join(f"({listed(group)})" for group in mixed)
    return ""
