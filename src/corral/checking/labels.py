"""Mistakes in labels: missing ones, those that look alike, and classes of few rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Bools
from corral.checking.findings import Finding
from corral.sentences import MOST_LISTED, counted, listed

if TYPE_CHECKING:
    pass


# Fewer rows of a class say little of it, and less of how well it is recognised.
FEW_ROWS = 10


def of_labels(y: NDArray[Any]) -> Iterator[Finding]:
    """Labels that are missing or look alike, and classes of few rows."""
    missing = is_missing(y)
    if missing.any():
        yield Finding(
            "missing labels",
            (),
            tuple(np.flatnonzero(missing)[:MOST_LISTED].tolist()),
            f"the label is missing in {missing.sum()} of {counted(y.size, 'row')}",
            "fill it in, or leave such rows out",
        )
    classes, counts = np.unique(y[~missing].astype(str), return_counts=True)
    groups = alike(classes.tolist())
    if groups:
        shown = ", ".join(f"({listed(group)})" for group in groups[:MOST_LISTED])
        yield Finding(
            "labels alike",
            (),
            (),
            "labels that differ only by case, by spaces around them or in how a number is written are "
            f"classes of their own: {shown}",
            "write each class in one way",
        )
    yield from small_classes(dict(zip(classes.tolist(), counts.tolist(), strict=True)))


def small_classes(counts: dict[str, int]) -> Iterator[Finding]:
    """Classes of which there are too few rows to say much."""
    small = {label: n for label, n in counts.items() if n < FEW_ROWS}
    if not small:
        return
    shown = listed([f"{label!r} ({n})" for label, n in small.items()], str)
    fewest = min(small.values())
    margin = 0.98 / math.sqrt(max(fewest, 1))  # the half width of a 95 % interval around one half
    yield Finding(
        "few rows",
        (),
        (),
        f"fewer than {FEW_ROWS} rows have the class{'es' * (len(small) > 1)} {shown}, so that the "
        f"accuracy of a class of {fewest} is known to within {min(margin, 0.5):.2f} at best",
        "collect more rows, or leave such classes out",
    )


def alike(labels: Sequence[str]) -> list[list[str]]:
    """Groups of labels that differ only by case, by spaces around them or in how a number is written."""
    groups: dict[Hashable, list[str]] = {}
    for label in labels:
        groups.setdefault(_essence(label), []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def _essence(label: str) -> Hashable:
    """What labels have in common that look alike."""
    text = " ".join(label.split()).casefold()
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) else text


def is_missing(y: NDArray[Any]) -> Bools:
    """Which labels are missing."""
    import pandas as pd

    missing: Bools = pd.isna(y)
    return missing
