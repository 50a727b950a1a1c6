"""Near duplicates: noise whose rows stand twice gets a warning, sound tables get none, and what that costs.

Duplicates are rounded to three digits, lack one cell, have another counter or date, or noise of 0.001
standard deviations. One table of each kind is drawn for each seed. All sound tables are fitted as well.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_linnerud,
    load_wine,
)

from benchmarks._measure import Figure, Options, Task, time_alternately
from corral import CorralClassifier, NearDuplicatesWarning
from corral._core.near_duplicates import near_duplicates
from corral._estimators.encoding import encoded
from corral.datasets import (
    load_anuran,
    load_optdigits,
    load_penguins,
    load_waveform,
    make_shifted_groups,
    make_ten_groups,
    make_waveform,
)

_SIZES = ((150, 5), (60, 2000), (3000, 10), (20_000, 20))
_MOST_ROWS = 1000  # of a sound table that is fitted


def run(options: Options) -> Iterator[Figure]:
    """Warnings first, then times."""
    yield from _warned(options.seeds)
    yield from _not_warned()
    yield from _times(options.repeats)


def _noise(seed: int, n: int = 150, d: int = 5) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Tables of noise whose rows all have a near duplicate, and their labels."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.integers(0, 2, n)
    lost = X.copy()
    lost[np.arange(n), rng.integers(0, d, n)] = np.nan
    twice, labels = np.vstack([X, X]), np.append(y, y)
    yield "rounded to 3 digits", np.vstack([X, X.round(3)]), labels
    yield "one cell lost", np.vstack([X, lost]), labels
    yield "another counter", np.column_stack([twice, rng.permutation(2 * n)]), labels
    yield "another date", np.column_stack([twice, rng.integers(0, 400, 2 * n)]), labels
    yield "noise of 0.001 sd", np.vstack([X, X + 1e-3 * rng.normal(size=X.shape)]), labels


def _warned(n_seeds: int) -> Iterator[Figure]:
    shares: dict[str, list[bool]] = {}
    for seed in range(n_seeds):
        for kind, X, y in _noise(seed):
            shares.setdefault(kind, []).append(_is_warned(X, y))
    for kind, warned in shares.items():
        yield Figure(
            f"tables with a warning: {kind}", float(np.mean(warned)), low=1.0, detail=f"{n_seeds} tables"
        )


def _not_warned() -> Iterator[Figure]:
    n_tables, warned = 0, []
    for name, load in _sound_tables():
        try:
            X, y = load()
        except (ImportError, OSError):  # a table that is not at hand
            continue
        n_tables += 1
        rows = np.random.default_rng(0).permutation(len(X))[:_MOST_ROWS]
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
        if near_duplicates(X) is not None or _is_warned(X[rows], y[rows]):
            warned.append(name)
    detail = f"{n_tables} tables" + (f": {', '.join(warned)}" if warned else "")
    yield Figure("sound tables with a warning", len(warned), high=0.0, digits=0, detail=detail)


def _sound_tables() -> Iterator[tuple[str, Callable[[], tuple[np.ndarray, np.ndarray]]]]:
    """Names of tables without near duplicates, and functions that return rows and labels."""
    for load in (load_iris, load_wine, load_breast_cancer, load_digits):
        yield load.__name__, partial(load, return_X_y=True)
    for name, of_numbers in (("diabetes", load_diabetes), ("linnerud", load_linnerud)):
        yield name, partial(_halved, of_numbers)
    for load in (load_anuran, partial(load_anuran, species="all"), load_optdigits, load_waveform):
        yield str(load), partial(load, return_X_y=True)
    yield "penguins", _penguins
    for make in (make_ten_groups, make_shifted_groups, make_waveform):
        for n in (20, 200):
            yield f"{make.__name__} {n}", partial(make, n, random_state=0)
    yield from ((name, partial(_with_labels, X)) for name, X in _drawn_tables())


def _drawn_tables() -> Iterator[tuple[str, np.ndarray]]:
    """Tables whose rows agree or nearly agree by chance."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(500, 6))
    yield "exact duplicates", np.vstack([normal, normal[:200]])
    yield "categories", rng.integers(0, 3, (500, 6))
    yield "categories and a number", np.column_stack([normal[:, 0], rng.integers(0, 3, (500, 4))])
    yield "rare flags", rng.random((500, 20)) < 0.03
    yield "counts", rng.poisson(0.5, (500, 6))
    yield "whole numbers", rng.integers(0, 30, (500, 3))
    yield "rounded to whole numbers", normal.round()
    yield "rounded to 1 digit", normal[:, :3].round(1)
    yield "heavy tails", rng.standard_cauchy((500, 4))
    yield "mostly zeros", np.exp(normal) * (rng.random(normal.shape) < 0.2)
    yield "missing values", np.where(rng.random(normal.shape) < 0.5, np.nan, normal)
    yield "one column", normal[:, :1]
    yield "one variable in five columns", normal[:, :1] * np.arange(1.0, 6.0)
    yield "a random walk", normal.cumsum(axis=0)
    visits = rng.normal(size=(100, 6))[rng.integers(0, 100, 500)]
    yield "visits of patients", visits + 0.2 * normal
    yield "all combinations", np.stack(np.meshgrid(*[np.arange(4.0)] * 4), -1).reshape(-1, 4)
    yield "a wide table", rng.normal(size=(40, 500))


def _with_labels(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return X, np.arange(len(X)) % 2


def _halved(load: Callable[..., tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a regression, and whether the first target is above its median."""
    X, y = load(return_X_y=True)
    first = y.reshape(len(y), -1)[:, 0]
    return X, first > np.median(first)


def _penguins() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_penguins(return_X_y=True)
    return encoded(X), y


def _is_warned(X: np.ndarray, y: np.ndarray) -> bool:
    """Whether a fit warns of near duplicates."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CorralClassifier(random_state=0).fit(X, y)
    return any(issubclass(each.category, NearDuplicatesWarning) for each in caught)


def _times(repeats: int) -> Iterator[Figure]:
    rng = np.random.default_rng(0)
    for n, d in _SIZES:
        X, y = rng.normal(size=(n, d)), rng.integers(0, 2, n)
        tasks = {
            "search": Task(partial(near_duplicates, X)),
            "fit": Task(partial(CorralClassifier(random_state=0).fit, X, y)),
        }
        timings = time_alternately(tasks, 1 if n > _MOST_ROWS else repeats)
        share = timings["search"].best_cpu / timings["fit"].best_cpu
        detail = f"{timings['search'].best_cpu:.3f} s of {timings['fit'].best_cpu:.2f} s"
        yield Figure(
            f"share of a fit's time, {n} x {d}", 100.0 * share, high=5.0, unit=" %", digits=1, detail=detail
        )
