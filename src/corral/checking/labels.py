"""Findings about labels: missing labels, several spellings of a label, and classes with few rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corral.checking.findings import Finding
from corral.estimators.encoding import are_missing
from corral.sentences.numbers import MOST_LISTED, counted, listed

SIMILAR = "differ only by case, spaces or the way a number is written"

# With fewer rows, the 95% interval of a recall is as wide as 0.2 to 0.8.
_FEW_ROWS = 10


def label_findings(y: NDArray[Any]) -> Iterator[Finding]:
    """Yield findings about missing labels, similar labels, and classes with few rows."""
    missing = are_missing(y)
    if missing.any():
        yield Finding(
            "missing labels",
            f"the label is missing in {missing.sum()} of {counted(y.size, 'row')}",
            "fill it in, or leave these rows out",
            rows=tuple(np.flatnonzero(missing)[:MOST_LISTED].tolist()),
        )
    classes, counts = np.unique(y[~missing].astype(str), return_counts=True)
    shown = similar(classes.tolist())
    if shown:
        description = f"some labels {SIMILAR}, and count as different classes: {shown}"
        yield Finding("similar labels", description, "use one spelling for each class")
    yield from small_classes(dict(zip(classes.tolist(), counts.tolist(), strict=True)))


def small_classes(counts: dict[str, int]) -> Iterator[Finding]:
    """Yield a finding about classes with too few rows for a precise recall."""
    small = {label: n for label, n in counts.items() if n < _FEW_ROWS}
    if not small:
        return
    shown = listed([f"{label!r} ({n})" for label, n in small.items()], str)
    fewest = min(small.values())
    margin = 0.98 / math.sqrt(
        max(fewest, 1)
    )  # half the width of the 95% interval of a recall of 0.5, the widest one
    yield Finding(
        "few rows",
        f"{'classes' if len(small) > 1 else 'class'} with fewer than {_FEW_ROWS} rows: {shown}; the measured "
        f"recall of a class with {counted(fewest, 'row')} may be off by up to {min(margin, 0.5):.2f} (95% "
        "interval)",
        "collect more rows, or leave small classes out",
    )


def similar(labels: Sequence[str]) -> str:
    """List the groups of labels that `SIMILAR` describes, as in "('a', 'A')"; empty if there are none."""
    groups: dict[Hashable, list[str]] = {}
    for label in labels:
        groups.setdefault(_essence(label), []).append(label)
    shown = [f"({listed(group)})" for group in groups.values() if len(group) > 1]
    return ", ".join(shown[:MOST_LISTED])


def _essence(label: str) -> Hashable:
    """Return a value that is equal for similar labels."""
    text = " ".join(label.split()).casefold()
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) else text
