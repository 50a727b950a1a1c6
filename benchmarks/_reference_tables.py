"""Small tables with all kinds of columns and rows, to which `same_numbers` fits all estimators."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris, load_wine

from corral.datasets import make_shifted_groups, make_ten_groups

COLOURS = np.array(["blue", "green", "red", "grey"])
SIZES = np.array(["small", "middle", "large"])


@dataclass(frozen=True)
class ReferenceTable:
    """Training rows, new rows, and parameters of a pool.

    Attributes
    ----------
    name : part of the array names in `same_numbers`.
    X, y : training rows and their classes.
    new_rows : rows to predict and explain.
    weights, groups : weights and groups of the training rows, or None.
    parameters : parameters of the pool.
    """

    name: str
    X: Any
    y: np.ndarray
    new_rows: Any
    weights: np.ndarray | None = None
    groups: np.ndarray | None = None
    parameters: dict[str, Any] = field(default_factory=dict)


def plain_tables() -> Iterator[ReferenceTable]:
    """Yield complete tables of numbers."""
    for name, (X, y) in {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "ten groups": make_ten_groups(12, random_state=0),
    }.items():
        weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
        yield ReferenceTable(name, X, y, with_far_rows(X), weights)


def pool_tables() -> Iterator[ReferenceTable]:
    """Yield tables with missing values, categories, groups, weights, duplicates or many rows."""
    X, y, new_rows = shifted(40)
    random = np.random.default_rng(1)
    weights = random.choice([0.0, 0.5, 1.0, 2.5], len(y))
    groups = random.integers(24, size=len(y))
    grouped = X + 0.1 * random.standard_normal((24, X.shape[1]))[groups]
    frame, new_frame = mixed_frame(X, y, random), mixed_frame(new_rows, y[: len(new_rows)], random)
    text, new_text = frame[["colour", "is wet"]], new_frame[["colour", "is wet"]]
    yield ReferenceTable("weights", X, y, new_rows, weights)
    yield ReferenceTable("groups", grouped, y, new_rows, groups=groups)
    yield ReferenceTable("groups and weights", grouped, y, new_rows, weights, groups)
    yield ReferenceTable("missing values", without_values(X, random), y, without_values(new_rows, random))
    yield ReferenceTable("categories", frame.fillna({"v0": 0.0, "v1": 0.0}), y, new_frame)
    yield ReferenceTable("nothing but categories", text, y, new_text)
    yield ReferenceTable("everything", frame, y, new_frame, weights, groups)
    yield duplicates_table()
    yield wide_table()
    yield odd_table()
    yield from compressed_tables()


def compressed_tables() -> Iterator[ReferenceTable]:
    """Yield tables with classes of more than `max_rows` rows."""
    X, y, new_rows = shifted(150)
    random = np.random.default_rng(2)
    weights = random.lognormal(size=len(y))
    groups = random.integers(120, size=len(y))
    frame, new_frame = mixed_frame(X, y, random), mixed_frame(new_rows, y[: len(new_rows)], random)
    few = {"parameters": {"max_rows": 40}}
    kept = np.flatnonzero((y != 4) | (random.random(len(y)) < 0.2))  # class 4 is not compressed
    yield ReferenceTable("centroids", X, y, new_rows, **few)
    yield ReferenceTable("centroids of one class", X[kept], y[kept], new_rows, weights[kept], **few)
    yield ReferenceTable("drawn rows, categories", frame, y, new_frame, weights, **few)
    yield ReferenceTable("drawn rows, groups", X, y, new_rows, groups=groups, **few)


def long_tables() -> Iterator[ReferenceTable]:
    """Yield tables with so many rows that leave-one-out estimates and the search use subsamples."""
    for name, n, parameters in (("long", 1200, {}), ("very long", 11_000, {"max_rows": 200})):
        X, y, new_rows = shifted(n)
        kept = y != 5
        yield ReferenceTable(name, X[kept, :2], y[kept], new_rows[:, :2], parameters=parameters)


def shifted(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return n rows of each of three overlapping classes, and new rows."""
    X, y = make_shifted_groups(n, groups=(1, 4, 5), random_state=0)
    new_rows, _ = make_shifted_groups(5, groups=(1, 4, 5), random_state=1)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order, :5], y[order], np.vstack([new_rows[:, :5], new_rows[:1, :5] + 40.0])


def with_far_rows(X: np.ndarray) -> np.ndarray:
    """Return every seventh row slightly moved, the mean row, and a row far from all others."""
    return np.vstack([X[::7] + 0.01, X.mean(axis=0), X.max(axis=0) * 2.0])


def without_values(X: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Replace about a tenth of the values by NaN."""
    return np.where(random.random(X.shape) < 0.1, np.nan, X)


def mixed_frame(X: np.ndarray, y: np.ndarray, random: np.random.Generator) -> pd.DataFrame:
    """Return a frame of numbers, text, booleans and ordered categories with missing values."""
    codes = np.searchsorted([1, 4, 5], y)
    frame = pd.DataFrame(without_values(X[:, :2], random), columns=["v0", "v1"])
    other = random.integers(4, size=len(y))
    frame["colour"] = COLOURS[np.where(random.random(len(y)) < 0.6, codes, other)]
    frame.loc[random.random(len(y)) < 0.05, "colour"] = None
    frame["is wet"] = (y > 3) ^ (random.random(len(y)) < 0.2)
    frame["size"] = pd.Categorical(SIZES[other % 3], SIZES, ordered=True)
    return frame


def duplicates_table() -> ReferenceTable:
    """Return a table with duplicates, one of which has a different label."""
    X, y, new_rows = shifted(40)
    repeated = np.concatenate([np.arange(len(y)), np.repeat(np.arange(30), 2), [7]])
    labels = y[repeated].copy()
    labels[-1] = 5 if labels[-1] == 1 else 1
    return ReferenceTable("duplicates", X[repeated], labels, new_rows)


def wide_table() -> ReferenceTable:
    """Return a table with more variables than a member uses."""
    random = np.random.default_rng(3)
    y = np.repeat(["left", "right"], 30)
    X = random.standard_normal((60, 45))
    X[:30, :3] += 1.5
    return ReferenceTable("wide", X, y, X[::7] + 0.1)


def odd_table() -> ReferenceTable:
    """Return a table with a constant, a discrete and a long-tailed variable, and with a class of one row."""
    X, y, new_rows = shifted(30)
    X, new_rows = X.copy(), new_rows.copy()
    X[:, 2] = new_rows[:, 2] = 3.0
    X[:, 3], new_rows[:, 3] = np.round(X[:, 3]), np.round(new_rows[:, 3])
    X[:, 4], new_rows[:, 4] = np.exp(3.0 * X[:, 4]), np.exp(3.0 * np.minimum(new_rows[:, 4], 3.0))
    y = y.copy()
    y[0] = 9
    return ReferenceTable("odd columns", X, y, new_rows, parameters={"priors": "uniform"})
