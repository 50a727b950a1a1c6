"""Decisions: for each row the label of least expected cost, or no label if every label costs too much."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Floats


def check_reject_cost(name: str, cost: float) -> None:
    """Raise ValueError if a cost is not a finite number; `name` is the name of the parameter."""
    if not isinstance(cost, Real) or isinstance(cost, bool | np.bool_) or not math.isfinite(cost):
        raise ValueError(f"{name} must be a finite number, got {cost!r}.")


def least_costly(
    proba: Floats, costs: Floats, classes: NDArray[Any], reject_cost: float | None
) -> NDArray[Any]:
    """Choose the labels (n_samples,) of least expected cost; None if that cost exceeds `reject_cost`.

    `proba` has the shape (n_samples, n_classes) and `costs` the shape (n_classes, n_classes).
    """
    expected = proba @ costs
    labels: NDArray[Any] = classes.astype(object)[expected.argmin(axis=1)]
    if reject_cost is not None:
        labels[expected.min(axis=1) > reject_cost] = None
    return labels


def check_costs(costs: Any, classes: NDArray[Any]) -> Floats:
    """Check the parameter `costs` of `decide`; return an array (n_classes, n_classes).

    Rows are true classes and columns are chosen labels, both in the order of `classes`.
    """
    labels, given = classes.tolist(), costs
    if hasattr(costs, "columns") and hasattr(costs, "loc"):
        check_class_names("the index of costs", list(costs.index), labels)
        check_class_names("the columns of costs", list(costs.columns), labels)
        given = costs.to_dict("index")
    if isinstance(given, Mapping):
        check_class_names("costs", list(given), labels)
        given = [[_cost_in(given, true, decided) for decided in labels] for true in labels]
    try:
        if np.iscomplexobj(given):
            raise TypeError
        matrix: Floats = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        shown = textwrap.shorten(repr(costs), 80, placeholder=" ...")
        raise ValueError(f"costs must be numbers, got {shown}.") from None
    n = len(labels)
    if matrix.shape != (n, n):
        raise ValueError(
            f"costs must have the shape ({n}, {n}), a row and a column for each class, got {matrix.shape}."
        )
    if not np.isfinite(matrix).all():
        a, b = np.argwhere(~np.isfinite(matrix))[0].tolist()
        raise ValueError(
            f"costs must be finite, but the cost of label {labels[b]!r} for class {labels[a]!r} is "
            f"{matrix[a, b]}."
        )
    return matrix


def check_class_names(where: str, names: list[Any], labels: list[Any]) -> None:
    """Raise ValueError unless `names` lists each of `labels` once; `where` is the subject of the message."""
    for name in names:
        if name not in labels:
            raise ValueError(f"{where} must list classes, but {name!r} is not one of {labels}.")
    for label in labels:
        n = names.count(label)
        if n != 1:
            fault = f"{label!r} is missing" if n == 0 else f"{label!r} is listed {n} times"
            raise ValueError(f"{where} must list each class once, but {fault}.")


def _cost_in(costs: Mapping[Any, Any], true: Any, decided: Any) -> Any:
    row = costs[true]
    if not isinstance(row, Mapping):
        raise ValueError(f"costs must be a dict of dicts, but costs[{true!r}] is {row!r}.")
    unknown = [name for name in row if name not in costs]
    if unknown:
        raise ValueError(f"costs[{true!r}] must list classes, but {unknown[0]!r} is not one of them.")
    if decided not in row and decided != true:
        raise ValueError(f"costs[{true!r}] must have the cost of label {decided!r}.")
    return row.get(decided, 0.0)
