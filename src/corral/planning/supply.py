"""Training rows and test rows for algorithm 4, from a table or from a function that generates rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_X_y
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from corral.array_types import Floats, Integers
from corral.estimators.encoding import names_of, refuse_infinite
from corral.estimators.tables import refuse_missing_values

Draw = Callable[[Any, int], tuple[ArrayLike, ArrayLike]]


class Supply:
    """Rows of each class, in the random order of a table or in the order of a function.

    The first `test_size` rows of a class are test rows, the other rows are training rows. `most` (n_classes,)
    is the largest number of training rows; infinite while the function has returned as many rows as
    requested.
    """

    def __init__(
        self,
        X: ArrayLike | Draw,
        y: ArrayLike,
        test_size: int,
        initial_size: int,
        random: np.random.RandomState,
    ) -> None:
        if callable(X):
            labels = column_or_1d(y)
        else:
            rows, labels = check_X_y(X, y, dtype=np.float64, ensure_all_finite=False)
            names = names_of(X, rows.shape[1])
            refuse_missing_values(
                rows, names, "method='bound'", "method='curve', which accepts missing values"
            )
            for name, column in zip(names, rows.T, strict=True):
                refuse_infinite(name, column)
        check_classification_targets(labels)
        self.classes, counts = np.unique(labels, return_counts=True)
        if self.classes.size < 2:
            raise ValueError(f"y must hold at least two classes, got {self.classes.tolist()!r}.")
        self._test_size = test_size
        self._draw = X if callable(X) else None
        if callable(X):
            self.most = np.full(self.classes.size, np.inf)
            self._rows = [np.empty((0, 0)) for _ in self.classes]
        else:
            self.most = counts.astype(np.float64) - test_size
            self._rows = [rows[random.permutation(np.flatnonzero(labels == label))] for label in self.classes]
        for a, label in enumerate(self.classes.tolist()):
            self._fetch(a, initial_size)
            if len(self._rows[a]) < test_size + initial_size:
                raise ValueError(
                    f"class {label!r} has {len(self._rows[a])} rows, fewer than initial_size + test_size = "
                    f"{test_size + initial_size}."
                )
        self.X_test = np.concatenate([rows[:test_size] for rows in self._rows])
        self.y_test = np.repeat(self.classes, test_size)

    def training(self, sizes: Integers) -> tuple[Floats, NDArray[Any]]:
        """Return training rows and labels: the first `sizes` (n_classes,) of each class."""
        parts = [rows[self._test_size :][:n] for rows, n in zip(self._rows, sizes, strict=True)]
        return np.concatenate(parts), np.repeat(self.classes, sizes)

    def provide(self, arrangement: Callable[[int, Floats], Integers], total: int) -> Integers:
        """Fetch training rows, and return the number (n_classes,) of each class.

        The numbers sum to `total`, or to the number of all available rows if that is smaller. `arrangement`
        divides a total among the classes, given the most rows of each class.
        """
        while True:
            most = np.minimum(self.most, total)
            sizes = arrangement(int(min(total, most.sum())), most)
            for a, n in enumerate(sizes.tolist()):
                self._fetch(a, n)
            if np.all(sizes <= self.most):
                return sizes

    def _fetch(self, a: int, n: int) -> None:
        """Request rows of class `a` from the function if the class has fewer than n training rows."""
        label, missing = self.classes.tolist()[a], self._test_size + n - len(self._rows[a])
        if self._draw is None or missing <= 0:
            return
        rows = _generated_rows(self._draw, label, missing)
        first = next((part for part in self._rows if len(part)), rows)
        if rows.shape[1] != first.shape[1]:
            raise ValueError(f"the callable returned {rows.shape[1]} variables, but {first.shape[1]} before.")
        self._rows[a] = np.concatenate([self._rows[a], rows]) if len(self._rows[a]) else rows
        if len(rows) < missing:
            self.most[a] = len(self._rows[a]) - self._test_size


def _generated_rows(draw: Draw, label: Any, n: int) -> Floats:
    """Return at most n rows of a class from the function; raise ValueError if its result is not valid."""
    result = draw(label, n)
    try:
        new_rows, labels = result
    except (TypeError, ValueError):
        raise ValueError(
            f"the callable must return rows and their labels, got {type(result).__name__}."
        ) from None
    labels = column_or_1d(labels)
    others = [other for other in labels.tolist() if other != label]
    if others:
        raise ValueError(
            f"the callable returned a row of class {others[0]!r}, but class {label!r} was requested."
        )
    rows: Floats = check_array(new_rows, dtype=np.float64, ensure_min_samples=0)
    if len(rows) != len(labels) or len(rows) > n:
        raise ValueError(
            f"the callable returned {len(rows)} rows and {len(labels)} labels, but {n} rows were requested."
        )
    return rows
