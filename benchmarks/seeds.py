"""How much probabilities depend on chance: on the seed, the order of rows and columns, names and signs.

Every table is fitted again with other seeds, or with one seed after its rows, columns or classes were put in
another order, or some of its columns were given the other sign. A change is the mean absolute difference of
the probabilities of test rows between two fits, over all pairs of fits and all classes. Beside it stand the
0.95 quantile and the maximum, over pairs and rows, of the largest change among the classes. Drawn tables have
normal columns, the first five of which are shifted by class, and 500 test rows. Times are processor seconds
of one thread, the least of three, beside a forest of 300 trees.
"""

import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits

from benchmarks._measure import Figure, Options
from corral import CorralClassifier
from corral.datasets import load_penguins

_MOST_SEEDS = 8
_TEST_ROWS = 500
_LARGEST_CHANGE = 0.02

# Rows, columns and classes of drawn tables, of each so many as `_DRAWS` says.
_DRAWN = ((40, 10, 2), (50, 100, 2), (60, 30, 3), (60, 100, 2))
_DRAWS = 3

Table = tuple[Any, np.ndarray, Any]  # training rows, their classes, test rows


def run(options: Options) -> Iterator[Figure]:
    """Measure changes between seeds, then those by the table's order, then times."""
    n_seeds = max(min(options.seeds, _MOST_SEEDS), 2)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", UserWarning)
        for name, tables in _tables().items():
            fits = [[_proba(table, seed) for seed in range(n_seeds)] for table in tables]
            yield _figure(f"{name}: change between seeds", fits, _LARGEST_CHANGE)
        for name, tables in _tables().items():
            if name == "penguins":  # which has columns of text
                continue
            for what, rearrange in _REARRANGED.items():
                fits = [[_proba(table, 0), *rearrange(table)] for table in tables]
                yield _figure(f"{name}: change by {what}", fits)
        for name, tables in _tables().items():
            X, y, _ = tables[0]
            ours = _least_time(lambda X=X, y=y: CorralClassifier(random_state=0).fit(X, y))
            what, detail = f"{name}: fit", ""
            if name != "penguins":
                forest = RandomForestClassifier(300, random_state=0)
                theirs = _least_time(lambda X=X, y=y, forest=forest: forest.fit(X, y))
                detail = f"{ours / theirs:.2f} of a forest's"
            yield Figure(what, ours, unit=" s", digits=2, detail=detail)


def _tables() -> dict[str, list[Table]]:
    """Every second row of known tables, and drawn ones."""
    tables: dict[str, list[Table]] = {}
    for load in (load_iris, load_wine, load_breast_cancer):
        X, y = load(return_X_y=True)
        name = load.__name__.removeprefix("load_").replace("_", " ")
        tables[f"{name}, {len(X[::2])} rows"] = [(X[::2], y[::2], X[1::2])]
    if find_spec("palmerpenguins") is not None:
        X, y = load_penguins(return_X_y=True)
        tables["penguins"] = [(X[::2], y[::2], X[1::2])]
    else:
        print("  penguins: not measured, because palmerpenguins is not installed")
    for n, d, n_classes in _DRAWN:
        tables[f"{n} x {d}, {n_classes} classes"] = [_draw(n, d, n_classes, seed) for seed in range(_DRAWS)]
    return tables


def _draw(n: int, d: int, n_classes: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    y = np.arange(n + _TEST_ROWS) % n_classes
    X = rng.normal(size=(y.size, d))
    X[:, :5] += 0.8 * rng.normal(size=(n_classes, 5))[y]
    return X[:n], y[:n], X[n:]


def _proba(table: Table, seed: int) -> np.ndarray:
    X, y, X_test = table
    return CorralClassifier(random_state=seed).fit(X, y).predict_proba(X_test)


def _by_rows(table: Table) -> Iterator[np.ndarray]:
    X, y, X_test = table
    order = np.random.default_rng(0).permutation(len(X))
    yield _proba((X[order], y[order], X_test), 0)


def _by_columns(table: Table) -> Iterator[np.ndarray]:
    X, y, X_test = table
    order = np.random.default_rng(0).permutation(X.shape[1])
    yield _proba((X[:, order], y, X_test[:, order]), 0)


def _by_names(table: Table) -> Iterator[np.ndarray]:
    X, y, X_test = table
    for shift in range(1, y.max() + 1):
        new = np.roll(np.arange(y.max() + 1), shift)
        yield _proba((X, new[y], X_test), 0)[:, new]


def _by_signs(table: Table) -> Iterator[np.ndarray]:
    X, y, X_test = table
    signs = np.random.default_rng(0).choice([-1.0, 1.0], X.shape[1])
    yield _proba((X * signs, y, X_test * signs), 0)


_REARRANGED: dict[str, Callable[[Table], Iterator[np.ndarray]]] = {
    "order of rows": _by_rows,
    "order of columns": _by_columns,
    "names of classes": _by_names,
    "signs of columns": _by_signs,
}


def _figure(what: str, fits: list[list[np.ndarray]], high: float = np.inf) -> Figure:
    """The mean change over tables, and the largest ones."""
    changes = [np.abs(a - b) for of_table in fits for a, b in itertools.combinations(of_table, 2)]
    of_rows = np.concatenate([change.max(axis=1) for change in changes])
    detail = f"0.95 quantile {np.quantile(of_rows, 0.95):.3f}, maximum {of_rows.max():.2f}"
    mean = float(np.mean([change.mean() for change in changes]))
    return Figure(what, mean, high=high, digits=4, detail=detail)


def _least_time(call: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)
