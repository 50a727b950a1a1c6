"""The variables that mark each class, by contrast: error rates, power and speed.

Everything is counted in class-trials, one class in one trial. Trial s draws its data from the seed s. Where
nothing distinguishes the classes, whatever is found is a mistake. `selection` has the designs of the paper
and columns of noise in real tables.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from joblib import Parallel, delayed

from benchmarks._measure import Figure, Options, Task, seconds, time_alternately
from benchmarks._trials import percentage
from corral.markers.contrast import Contrast, contrast

_NULL_SETS = 1200
_RARE_SETS = 200
_POWER_SETS = 200
_LIKENESS_SETS = 200

_Columns = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def run(options: Options) -> Iterator[Figure]:
    """Error rates, then power, then times."""
    yield from _levels()
    yield from _rare_classes()
    yield from _groups_unequally_alike()
    yield from _power_with_groups()
    yield from _power()
    yield from _speed(options)


def _describe(X: np.ndarray, y: np.ndarray) -> Contrast:
    labels, codes = np.unique(y, return_inverse=True)
    return contrast(np.asarray(X, dtype=float), codes, labels.size)


# ---------------------------------------------------------------------------------- simulated data


def _flag(rate: float) -> _Columns:
    return lambda rng, size: (rng.random(size) < rate).astype(float)


def _mostly_zero(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    return np.where(rng.random(size) < 0.8, 0.0, rng.exponential(size=size))


_NULL_COLUMNS: dict[str, _Columns] = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "Student t, 2 degrees": lambda rng, size: rng.standard_t(2, size),
    "whole numbers 0 to 4": lambda rng, size: rng.integers(0, 5, size).astype(float),
    "tied": lambda rng, size: np.rint(2.0 * rng.standard_normal(size)),
    "binary": _flag(0.5),
    "flag of 5 %": _flag(0.05),
    "symptoms 0 to 3": lambda rng, size: rng.choice(4, size, p=[0.8, 0.1, 0.07, 0.03]).astype(float),
    "80 % zeros": _mostly_zero,
}


def _null_set(seed: int, columns: _Columns) -> np.ndarray:
    """Which classes get a variable, though 2 to 8 classes of 15 to 200 rows are all alike in 10 variables."""
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 9))
    y = np.repeat(np.arange(n_classes), rng.integers(15, 201, n_classes))
    return _describe(columns(rng, (y.size, 10)), y).markers.any(axis=1)


def _levels() -> Iterator[Figure]:
    per_kind = _NULL_SETS // len(_NULL_COLUMNS)
    total = []
    for name, columns in _NULL_COLUMNS.items():
        sets = Parallel(n_jobs=-1)(delayed(_null_set)(seed, columns) for seed in range(per_kind))
        found = np.concatenate(sets)
        total.append(found)
        yield percentage(f"{per_kind} null sets, {name}: classes with a variable", found.sum(), found.size)
    found = np.concatenate(total)
    what = f"all {per_kind * len(total)} null sets: classes with a variable"
    yield percentage(what, found.sum(), found.size, high=1.5)


def _rare_set(seed: int, n: int, n_others: int, d: int, columns: _Columns) -> bool:
    """Whether a class of n rows gets one of d variables in which it is like all other rows."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [n, n_others])
    return bool(_describe(columns(rng, (y.size, d)), y).markers[0].any())


def _rare_classes() -> Iterator[Figure]:
    kinds = {"normal columns": _NULL_COLUMNS["normal"], "columns of counts": _counts}
    designs = [
        *((n, 200, 500, "normal columns") for n in (3, 10)),
        *((n, 500, 20, "columns of counts") for n in (3, 20)),
    ]
    total = 0
    for n, others, d, name in designs:
        sets = (delayed(_rare_set)(seed, n, others, d, kinds[name]) for seed in range(_RARE_SETS))
        found = sum(Parallel(n_jobs=-1)(sets))
        total += found
        yield percentage(f"{n} rows beside {others} like them, {d} {name}: a variable", found, _RARE_SETS)
    yield percentage("all these rare classes: a variable", total, _RARE_SETS * len(designs), high=1.5)


def _counts(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    return rng.poisson(1.0, size).astype(float)


# Two classes, each with a number of groups, of rows in each of them, and the correlation of rows of a group.
_Groups = tuple[tuple[int, int, float], tuple[int, int, float]]

# All rows have the same distribution. In most designs rows of a group are less alike in the second class.
_LIKENESS: list[_Groups] = [
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

# A shift of the second class, and the percentage of tables in which it was found when one correlation of all
# classes together, at the upper end of its interval, was taken.
_SHIFTS_OF_GROUPS: list[tuple[_Groups, float, float]] = [
    (((20, 10, 0.3), (20, 10, 0.3)), 0.5, 13.5),
    (((20, 10, 0.3), (20, 10, 0.3)), 0.8, 65.5),
    (((20, 10, 0.5), (20, 10, 0.5)), 0.8, 41.5),
    (((20, 10, 0.1), (20, 10, 0.1)), 0.5, 41.5),
    (((20, 5, 0.3), (60, 5, 0.3)), 0.8, 82.5),
    (((40, 5, 0.3), (40, 5, 0.3)), 0.5, 41.5),
]


def _table_of_groups(
    seed: int, classes: _Groups, *, shift: float = 0.0, flag_rate: float | None = None
) -> Contrast:
    """Contrast of two classes in ten standard normal variables or flags, the first of them shifted."""
    rng = np.random.default_rng(seed)
    X, groups = [], []
    for n_groups, size, unscaled_score in classes:
        group = np.repeat(np.arange(n_groups), size)
        shape = n_groups, 10
        if flag_rate is None:
            shared, own = rng.standard_normal(shape)[group], rng.standard_normal((group.size, 10))
            rows = np.sqrt(unscaled_score) * shared + np.sqrt(1.0 - unscaled_score) * own
        else:
            rates = np.full(shape, flag_rate)
            if unscaled_score:
                scale = (1.0 - unscaled_score) / unscaled_score
                rates = rng.beta(scale * flag_rate, scale * (1.0 - flag_rate), shape)
            rows = (rng.random((group.size, 10)) < rates[group]).astype(float)
        rows[:, 0] += shift * len(X)
        X.append(rows)
        groups.append(group + 1000 * len(groups))
    codes = np.repeat([0, 1], [len(rows) for rows in X])
    return contrast(np.vstack(X), codes, 2, groups=np.concatenate(groups))


def _groups_text(classes: _Groups) -> str:
    return " against ".join(f"{m} groups x {size} (correlation {rho:g})" for m, size, rho in classes)


def _groups_unequally_alike() -> Iterator[Figure]:
    designs = [*((classes, None) for classes in _LIKENESS)]
    designs += [(classes, rate) for classes in (_LIKENESS[0], _LIKENESS[2]) for rate in (0.05, 0.3)]
    for classes, rate in designs:
        tables = (delayed(_table_of_groups)(seed, classes, flag_rate=rate) for seed in range(_LIKENESS_SETS))
        marked = sum(int(found.markers.any(axis=1).sum()) for found in Parallel(n_jobs=-1)(tables))
        kind = "" if rate is None else f", flags of {rate:.0%}"
        what = f"{_groups_text(classes)}{kind}: marked classes"
        yield percentage(what, marked, 2 * _LIKENESS_SETS, high=2.0)


def _power_with_groups() -> Iterator[Figure]:
    for classes, shift, before in _SHIFTS_OF_GROUPS:
        tables = (delayed(_table_of_groups)(seed, classes, shift=shift) for seed in range(_LIKENESS_SETS))
        marked = sum(int(found.markers[:, 0].sum()) for found in Parallel(n_jobs=-1)(tables))
        what = f"{_groups_text(classes)}, shift of {shift:g} sd: marked classes"
        yield percentage(what, marked, 2 * _LIKENESS_SETS, low=0.9 * before)


def _single(seed: int, n_classes: int, shift: float, width: float) -> bool:
    """Whether the first class is told by the first of 20 variables, in which alone it differs; 100 rows."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), 100)
    X = rng.standard_normal((y.size, 20))
    X[y == 0, 0] = shift + width * X[y == 0, 0]
    return bool(_describe(X, y).markers[0, 0])


def _power() -> Iterator[Figure]:
    for n_classes in (2, 3, 6):
        for name, shift, width, low in (
            ("shift of one sd", 1.0, 1.0, 95.0),
            ("halved spread", 0.0, 0.5, 90.0),
        ):
            found = sum(_single(seed, n_classes, shift, width) for seed in range(_POWER_SETS))
            yield percentage(f"{name}, 100 rows in each of {n_classes} classes", found, _POWER_SETS, low=low)


# --------------------------------------------------------------------------------------------- costs


def _speed(options: Options) -> Iterator[Figure]:
    rng = np.random.default_rng(0)
    sizes = (
        ("60 x 5,000, 3 classes", 60, 5000, 3, 2.0),
        ("100,000 x 30, 10 classes", 100_000, 30, 10, 5.0),
        ("20,000 x 16, 26 classes", 20_000, 16, 26, np.inf),
    )
    for name, n, d, n_classes, high in sizes:
        y = np.arange(n) % n_classes
        X = rng.standard_normal((n, d))
        X[:, : d // 3] += 0.2 * y[:, np.newaxis]
        timing = time_alternately({"": Task(partial(_describe, X, y))}, min(options.repeats, 3))[""]
        detail = f"one thread; processor time {seconds(timing.best_cpu)}"
        yield Figure(f"contrast of {name}", timing.best, high=high, unit=" s", detail=detail)
