"""Findings about labels: missing labels, similar labels, and classes of few rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corral.checking.findings import Finding
from corral.estimators.encoding import are_missing
from corral.sentences.numbers import MOST_LISTED, counted, listed

SIMILAR = "differ only by case, by spaces around them or in how a number is written"

# With fewer rows the interval of a recall is as wide as from 0.2 to 0.8.
_FEW_ROWS = 10


def label_findings(y: NDArray[Any]) -> Iterator[Finding]:
    """Labels that are missing or similar, and classes of few rows."""
    missing = are_missing(y)
    if missing.any():
        yield Finding(
            "missing labels",
            f"the label is missing in {missing.sum()} of {counted(y.size, 'row')}",
            "fill it in, or leave such rows out",
            rows=tuple(np.flatnonzero(missing)[:MOST_LISTED].tolist()),
        )
    classes, counts = np.unique(y[~missing].astype(str), return_counts=True)
    shown = similar(classes.tolist())
    if shown:
        description = f"labels that {SIMILAR} are different classes: {shown}"
        yield Finding("similar labels", description, "write each class in one way")
    yield from small_classes(dict(zip(classes.tolist(), counts.tolist(), strict=True)))


def small_classes(counts: dict[str, int]) -> Iterator[Finding]:
    """Classes with too few rows to measure how well they are recognized."""
    small = {label: n for label, n in counts.items() if n < _FEW_ROWS}
    if not small:
        return
    shown = listed([f"{label!r} ({n})" for label, n in small.items()], str)
    fewest = min(small.values())
    margin = 0.98 / math.sqrt(max(fewest, 1))  # the half width of a 95 % interval around one half, the widest
    yield Finding(
        "few rows",
        f"fewer than {_FEW_ROWS} rows have the class{'es' * (len(small) > 1)} {shown}, so that the "
        f"recall of a class of {fewest} may be off by up to {min(margin, 0.5):.2f} (95% interval)",
        "collect more rows, or leave such classes out",
    )


def similar(labels: Sequence[str]) -> str:
    """Groups of labels that differ only as `SIMILAR` says, as text; empty if there are none."""
    groups: dict[Hashable, list[str]] = {}
    for label in labels:
        groups.setdefault(_essence(label), []).append(label)
    shown = [f"({listed(group)})" for group in groups.values() if len(group) > 1]
    return ", ".join(shown[:MOST_LISTED])


def _essence(label: str) -> Hashable:
    """A value that similar labels share."""
    text = " ".join(label.split()).casefold()
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) else text
