"""Categories that may be one category in two spellings, and columns with so many that they are remarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from corral.checking.columns import Content
from corral.checking.findings import ENOUGH_ROWS, Finding
from corral.checking.labels import SIMILAR, similar
from corral.sentences.numbers import counted, listed

if TYPE_CHECKING:
    import pandas as pd

# Spellings of the same answer. They are compared only in columns that hold no other category.
_ANSWERS = (
    (("yes", "y", "true", "t", "1"), ("no", "n", "false", "f", "0")),
    (("male", "m", "man"), ("female", "f", "w", "woman")),
)


def odd_categories(columns: pd.DataFrame, contents: Mapping[str, Content]) -> Iterator[Finding]:
    """Similar categories, mixed spellings of answers, and columns with very many categories."""
    for name in columns.columns:
        if contents[name].kind == "slips":
            continue
        texts = columns[name].dropna().astype(str)
        categories = sorted(texts.unique().tolist())
        shown = similar(categories)
        if shown:
            description = f"categories of column {name!r} that {SIMILAR} are different categories: {shown}"
            yield Finding("similar categories", description, "write each category in one way", (name,))
        spellings = mixed_answers(categories)
        if spellings:
            description = f"column {name!r} writes the same answer in several ways: {spellings}"
            yield Finding("mixed spellings", description, "write each answer in one way", (name,))
        if ENOUGH_ROWS <= 0.5 * len(texts) < len(categories):
            yield Finding(
                "many categories",
                f"column {name!r} holds {len(categories)} different texts in {counted(len(texts), 'row')}, "
                "so that most texts of a new table will be unknown",
                "leave it out, or make a few categories of them",
                (name,),
            )


def mixed_answers(categories: Sequence[str]) -> str:
    """Groups of categories that mean the same, such as yes and Y, as text; empty if there are none."""
    essences = {category: category.strip().casefold() for category in categories}
    for answers in _ANSWERS:
        if not set(essences.values()) <= {spelling for answer in answers for spelling in answer}:
            continue
        groups = [[category for category in categories if essences[category] in answer] for answer in answers]
        mixed = [group for group in groups if len({essences[category] for category in group}) > 1]
        return ", ".join(f"({listed(group)})" for group in mixed)
    return ""
