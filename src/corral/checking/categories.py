"""Checks of text columns: one category in several spellings, and columns of free text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from corral.checking.columns import Content
from corral.checking.findings import ENOUGH_ROWS, Finding
from corral.checking.labels import SIMILAR, similar
from corral.sentences.numbers import counted, listed

if TYPE_CHECKING:
    import pandas as pd

# Spellings of the same answer: columns that hold any other text are not checked for them.
_ANSWERS = (
    (("yes", "y", "true", "t", "1"), ("no", "n", "false", "f", "0")),
    (("male", "m", "man"), ("female", "f", "w", "woman")),
)


def odd_categories(columns: pd.DataFrame, contents: Mapping[str, Content]) -> Iterator[Finding]:
    """Yield findings about similar categories, mixed spellings of answers, and columns of free text."""
    for name in columns.columns:
        if contents[name].kind == "slips":
            continue
        texts = columns[name].dropna().astype(str)
        categories = sorted(texts.unique().tolist())
        shown = similar(categories)
        if shown:
            description = f"some categories of column {name!r} {SIMILAR}, and count as different: {shown}"
            yield Finding("similar categories", description, "write each category in one way", (name,))
        spellings = mixed_answers(categories)
        if spellings:
            description = f"column {name!r} holds several spellings of the same answer: {spellings}"
            yield Finding("mixed spellings", description, "write each answer in one way", (name,))
        if ENOUGH_ROWS <= 0.5 * len(texts) < len(categories):
            yield Finding(
                "many categories",
                f"column {name!r} holds {len(categories)} different texts in {counted(len(texts), 'row')}, "
                "so most texts in new rows will be unknown and count as missing",
                "leave the column out, or replace the texts by a few categories",
                (name,),
            )


def mixed_answers(categories: Sequence[str]) -> str:
    """List the spellings of each answer that has several, as in "('Y', 'yes')"; empty if none has."""
    essences = {category: category.strip().casefold() for category in categories}
    for answers in _ANSWERS:
        if not set(essences.values()) <= {spelling for answer in answers for spelling in answer}:
            continue
        groups = [[category for category in categories if essences[category] in answer] for answer in answers]
        mixed = [group for group in groups if len({essences[category] for category in group}) > 1]
        return ", ".join(f"({listed(group)})" for group in mixed)
    return ""
