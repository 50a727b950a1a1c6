"""Error rates, power and speed of markers, the variables in which a class differs from its background.

A class-trial is one class in one trial; rates are shares of class-trials. Trial s draws its data with the
seed s. In a null set all classes have the same distribution, so every marker is an error. The benchmark
`selection` has the designs of the paper, and columns of noise in real tables.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks._measure import Figure, Options, seconds, time_alternately
from benchmarks._trials import percentage
from corral.markers.contrast import Contrast, contrast

_NULL_TRIALS = 1200
_TRIALS = 200

_Columns = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def run(options: Options) -> Iterator[Figure]:
    """Yield error rates, then power, then times."""
    yield from _null_sets()
    yield from _rare_classes()
    yield from _null_groups()
    yield from _power_with_groups()
    yield from _power()
    yield from _speed(options)


def _contrast(X: np.ndarray, y: np.ndarray) -> Contrast:
    labels, codes = np.unique(y, return_inverse=True)
    return contrast(np.asarray(X, dtype=float), codes, labels.size)


def _on_all_processors(call: Callable[..., Any], n: int, *arguments: Any, **options: Any) -> list[Any]:
    """Call a function with the seeds 0 to n - 1, and return the results."""
    return Parallel(n_jobs=-1)(delayed(call)(seed, *arguments, **options) for seed in range(n))


# ---------------------------------------------------------------------------------- error rates


def _flag(rate: float) -> _Columns:
    return lambda rng, size: (rng.random(size) < rate).astype(float)


_NULL_COLUMNS: dict[str, _Columns] = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "Student t, 2 degrees": lambda rng, size: rng.standard_t(2, size),
    "whole numbers 0 to 4": lambda rng, size: rng.integers(0, 5, size).astype(float),
    "tied": lambda rng, size: np.rint(2.0 * rng.standard_normal(size)),
    "binary": _flag(0.5),
    "flag of 5 %": _flag(0.05),
    "symptoms 0 to 3": lambda rng, size: rng.choice(4, size, p=[0.8, 0.1, 0.07, 0.03]).astype(float),
    "80 % zeros": lambda rng, size: np.where(rng.random(size) < 0.8, 0.0, rng.exponential(size=size)),
}


def _null_set(seed: int, columns: _Columns) -> np.ndarray:
    """Draw a null set of 2 to 8 classes and 10 variables; return for each class whether it has a marker."""
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 9))
    y = np.repeat(np.arange(n_classes), rng.integers(15, 201, n_classes))
    return _contrast(columns(rng, (y.size, 10)), y).markers.any(axis=1)


def _null_sets() -> Iterator[Figure]:
    n = _NULL_TRIALS // len(_NULL_COLUMNS)
    masks = {
        name: np.concatenate(_on_all_processors(_null_set, n, each)) for name, each in _NULL_COLUMNS.items()
    }
    for name, mask in masks.items():
        yield percentage(f"{n} null sets, {name}: share of classes with a marker", mask.sum(), mask.size)
    mask = np.concatenate([*masks.values()])
    yield percentage(
        f"all {n * len(masks)} null sets: share of classes with a marker", mask.sum(), mask.size, high=1.5
    )


def _rare_set(seed: int, n: int, n_others: int, d: int, columns: _Columns) -> bool:
    """Return whether a class of n rows has a marker if all rows have the same distribution in d variables."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [n, n_others])
    return bool(_contrast(columns(rng, (y.size, d)), y).markers[0].any())


def _counts(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    return rng.poisson(1.0, size).astype(float)


def _rare_classes() -> Iterator[Figure]:
    normal = _NULL_COLUMNS["normal"]
    designs = [(n, 200, 500, "normal columns", normal) for n in (3, 10)]
    designs += [(n, 500, 20, "columns of counts", _counts) for n in (3, 20)]
    total = 0
    for n, n_others, d, name, columns in designs:
        hits = sum(_on_all_processors(_rare_set, _TRIALS, n, n_others, d, columns))
        total += hits
        yield percentage(f"class of {n} rows, {n_others} other rows, {d} {name}: any marker", hits, _TRIALS)
    yield percentage("all these rare classes: any marker", total, _TRIALS * len(designs), high=1.5)


# ---------------------------------------------------------------------------------- groups

# For each of two classes: number of groups, rows in a group, and correlation of the rows of a group.
_Groups = tuple[tuple[int, int, float], tuple[int, int, float]]

# Designs in which all rows have the same distribution, but most second classes have smaller correlations.
_NULL_GROUPS: list[_Groups] = [
    ((6, 50, 0.6), (300, 3, 0.2)),
    ((6, 50, 0.5), (500, 2, 0.0)),
    ((20, 30, 0.5), (400, 3, 0.1)),
    ((10, 30, 0.5), (200, 3, 0.1)),
    ((8, 100, 0.3), (300, 3, 0.05)),
    ((6, 50, 0.4), (100, 3, 0.2)),
    ((3, 100, 0.5), (300, 1, 0.5)),
    ((4, 50, 0.5), (300, 3, 0.05)),
    ((6, 50, 0.5), (6, 50, 0.5)),
    ((10, 20, 0.5), (10, 20, 0.5)),
    ((20, 10, 0.3), (20, 10, 0.3)),
    ((3, 10, 0.5), (30, 10, 0.5)),
]

# Design, shift of the second class, and percentage of marked classes of an earlier rule, which used one
# correlation for all classes: the upper end of its interval.
_SHIFTS_OF_GROUPS: list[tuple[_Groups, float, float]] = [
    (((20, 10, 0.3), (20, 10, 0.3)), 0.5, 13.5),
    (((20, 10, 0.3), (20, 10, 0.3)), 0.8, 65.5),
    (((20, 10, 0.5), (20, 10, 0.5)), 0.8, 41.5),
    (((20, 10, 0.1), (20, 10, 0.1)), 0.5, 41.5),
    (((20, 5, 0.3), (60, 5, 0.3)), 0.8, 82.5),
    (((40, 5, 0.3), (40, 5, 0.3)), 0.5, 41.5),
]


def _grouped_set(
    seed: int, classes: _Groups, *, shift: float = 0.0, flag_rate: float | None = None
) -> np.ndarray:
    """Return the markers of two classes in ten standard normal variables or flags; the first is shifted."""
    rng = np.random.default_rng(seed)
    X, groups = [], []
    for n_groups, size, correlation in classes:
        group = np.repeat(np.arange(n_groups), size)
        shape = n_groups, 10
        if flag_rate is None:
            shared, own = rng.standard_normal(shape)[group], rng.standard_normal((group.size, 10))
            rows = np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * own
        else:
            rates = np.full(shape, flag_rate)
            if correlation:
                scale = (1.0 - correlation) / correlation
                rates = rng.beta(scale * flag_rate, scale * (1.0 - flag_rate), shape)
            rows = (rng.random((group.size, 10)) < rates[group]).astype(float)
        rows[:, 0] += shift * len(X)
        X.append(rows)
        groups.append(group + 1000 * len(groups))
    codes = np.repeat([0, 1], [len(rows) for rows in X])
    return contrast(np.vstack(X), codes, 2, groups=np.concatenate(groups)).markers


def _groups_text(classes: _Groups) -> str:
    return " against ".join(f"{m} groups x {size} (correlation {rho:g})" for m, size, rho in classes)


def _null_groups() -> Iterator[Figure]:
    flags = [(classes, rate) for classes in (_NULL_GROUPS[0], _NULL_GROUPS[2]) for rate in (0.05, 0.3)]
    for classes, rate in [*((classes, None) for classes in _NULL_GROUPS), *flags]:
        markers = np.array(_on_all_processors(_grouped_set, _TRIALS, classes, flag_rate=rate))
        kind = "" if rate is None else f", flags of {rate:.0%}"
        what = f"{_groups_text(classes)}{kind}: share of marked classes"
        yield percentage(what, int(markers.any(axis=2).sum()), 2 * _TRIALS, high=2.0)


def _power_with_groups() -> Iterator[Figure]:
    for classes, shift, before in _SHIFTS_OF_GROUPS:
        markers = np.array(_on_all_processors(_grouped_set, _TRIALS, classes, shift=shift))
        what = f"{_groups_text(classes)}, shift of {shift:g} sd: share of marked classes"
        yield percentage(what, int(markers[:, :, 0].sum()), 2 * _TRIALS, low=0.9 * before)


# ------------------------------------------------------------------------------------- power and speed


def _is_marked(seed: int, n_classes: int, shift: float, width: float) -> bool:
    """Return whether the only one of 20 variables that differs marks the first class; 100 rows per class."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), 100)
    X = rng.standard_normal((y.size, 20))
    X[y == 0, 0] = shift + width * X[y == 0, 0]
    return bool(_contrast(X, y).markers[0, 0])


def _power() -> Iterator[Figure]:
    for n_classes in (2, 3, 6):
        for name, shift, width, low in (
            ("shift of one sd", 1.0, 1.0, 95.0),
            ("halved spread", 0.0, 0.5, 90.0),
        ):
            hits = sum(_is_marked(seed, n_classes, shift, width) for seed in range(_TRIALS))
            yield percentage(f"{name}, 100 rows in each of {n_classes} classes", hits, _TRIALS, low=low)


def _speed(options: Options) -> Iterator[Figure]:
    rng = np.random.default_rng(0)
    for n, d, n_classes, high in ((60, 5000, 3, 2.0), (100_000, 30, 10, 5.0), (20_000, 16, 26, np.inf)):
        y = np.arange(n) % n_classes
        X = rng.standard_normal((n, d))
        X[:, : d // 3] += 0.2 * y[:, np.newaxis]
        timing = time_alternately({"": partial(_contrast, X, y)}, min(options.repeats, 3))[""]
        detail = f"one thread; processor time {seconds(timing.best_cpu)}"
        what = f"contrast of {n:,} x {d:,}, {n_classes} classes"
        yield Figure(what, timing.best, high=high, unit=" s", detail=detail)
