"""Colors, axes and names that all displays share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corral.estimators.pipelines import last_step
from corral.estimators.validation import check_position

# Colors of Okabe and Ito, which readers with any color vision distinguish.
BLUE, VERMILION = "#0072B2", "#D55E00"
COLORS = (BLUE, VERMILION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GREY = "0.6"

# Units of scaled values, by the parameter `scale`.
UNITS = {
    "range": "ranges",
    "standard": "standard deviations",
    "rank": "ranks, 0 to 1",
    None: "units of the data",
}

# Size of names on an axis in points, and most letters of a name.
SMALL = 7
LONGEST_NAME = 20


def pyplot() -> Any:
    """Import matplotlib.pyplot, or say how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('drawing needs matplotlib: pip install "corral[plot]"') from error
    return plt


def panels(axes: Any, n: int, *, lines: int = 1, columns: int = 1, **options: Any) -> NDArray[Any]:
    """Return the given axes, or n axes of a new figure, as a flat array; there must be n axes."""
    if axes is None:
        _, grid = pyplot().subplots(lines, columns, squeeze=False, layout="constrained", **options)
        for spare in grid.ravel()[n:]:
            spare.set_axis_off()
        axes = grid.ravel()[:n]
    flat = np.ravel(np.asarray(axes, dtype=object))
    if flat.size != n:
        raise ValueError(f"axes must have {n} matplotlib Axes, got {flat.size}.")
    return flat


def require(display: type, estimator: Any, name: str) -> Any:
    """Return the estimator, or the last step of a pipeline; TypeError if it lacks the attribute `name`."""
    last = last_step(estimator)
    if not hasattr(last, name):
        raise TypeError(f"{display.__name__} cannot draw a {type(last).__name__}: it has no {name}.")
    return last


def one_row(X: Any, sample: Any) -> Any:
    """Return one row as a table of one row, so that an estimator can check its columns."""
    i = check_position("sample", sample, len(X))
    return (X.iloc if hasattr(X, "iloc") else X)[i : i + 1]


def short_name(name: Any) -> str:
    """Return the name as text, shortened for an axis."""
    text = str(name)
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "\N{HORIZONTAL ELLIPSIS}"


def name_room(names: Sequence[str]) -> float:
    """Return the height in inches of upright names below an axis."""
    return SMALL / 120.0 * max(len(short_name(name)) for name in names)


def name_variables(axes: Any, names: Sequence[str]) -> None:
    """Write as many names below the x axis as fit, upright if names would overlap otherwise."""
    inches = axes.figure.get_size_inches()[0] * axes.get_position().width
    points = 72.0 * inches / len(names)
    every = max(1, int(np.ceil(1.2 * SMALL / points)))
    shown = range(0, len(names), every)
    labels = [short_name(names[j]) for j in shown]
    upright = 0.7 * SMALL * max(len(label) for label in labels) > points * every
    axes.set_xticks(shown, labels, rotation=90 if upright else 0, parse_math=False)
