"""LSPClassifier beside the paper's figures for it, and its time beside RodeoClassifier's as rows are added.

Trial s draws its data from the seed s. The defaults (raw units, 5 folds) are held against tables 1 and 4 of
the paper; the other lines say what standardised columns and leave-one-out change, and what other classifiers
do on the same rows. Times are those of table 7, for fitting, with selection, and predicting 150 rows per
class, with two threads. Table 7's own seconds are of another machine; what compares is how they grow.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks._measure import Figure, Options, Task, seconds, time_alternately
from benchmarks._trials import draw, rivals, spread
from corral import LSPClassifier, RodeoClassifier
from corral.datasets import make_shifted_groups, make_ten_groups

_SIZES = (50, 150, 500, 1000)
# Table 7, 5 groups: seconds of the paper's algorithm and of LSPC.
_TABLE_7 = {
    "RodeoClassifier": (7.5061, 9.4078, 13.8507, 18.8411),
    "LSPClassifier": (0.1904, 1.1005, 17.4199, 87.6326),
}


def run(options: Options) -> Iterator[Figure]:
    """Accuracy first, then time."""
    yield from _accuracy("ten groups 150/100", make_ten_groups, 150, 100, 0.2111, (0.19, 0.30), options)
    yield from _accuracy("5 shifted 200/150", make_shifted_groups, 200, 150, 0.7100, (0.69, 0.75), options)
    for groups, paper in ((4, 0.7128), (3, 0.7335), (2, 0.7639)):
        make = partial(make_shifted_groups, groups=tuple(range(1, groups + 1)))
        bounds = paper - 0.03, paper + 0.03
        yield from _accuracy(f"{groups} shifted 200/150", make, 200, 150, paper, bounds, options)
    yield from _centers(options)
    yield from _time(options)


def _accuracy(
    name: str,
    make: Callable[..., Any],
    train: int,
    test: int,
    paper: float,
    bounds: tuple[float, float],
    options: Options,
) -> Iterator[Figure]:
    scores: dict[str, list[float]] = {}
    for seed in range(options.seeds):
        X, y, X_test, y_test = draw(make, train, test, seed)
        models = {
            "LSPClassifier": LSPClassifier(n_jobs=-1),
            "LSPClassifier scale=standard": LSPClassifier(scale="standard", n_jobs=-1),
            "RodeoClassifier": RodeoClassifier(n_jobs=-1),
        }
        for label, model in (models | rivals(seed)).items():
            scores.setdefault(label, []).append(model.fit(X, y).score(X_test, y_test))
    for label, found in scores.items():
        low, high = bounds if label == "LSPClassifier" else (-np.inf, np.inf)
        detail = spread(found) + (f"; paper {paper}" if label == "LSPClassifier" else "")
        yield Figure(f"{name}: {label}", float(np.mean(found)), low, high, digits=4, detail=detail)


def _centers(options: Options) -> Iterator[Figure]:
    """What the cap on centres costs in the paper's largest setting."""
    for max_centers in (250, 500, 1000):
        found = []
        for seed in range(min(options.seeds, 5)):
            X, y, X_test, y_test = draw(make_shifted_groups, 1000, 1000, seed)
            model = LSPClassifier(max_centers=max_centers, n_jobs=-1, random_state=seed)
            found.append(model.fit(X, y).score(X_test, y_test))
        detail = spread(found) + "; paper 0.7485 with 5 folds"
        what = f"5 shifted 1000/1000: LSPClassifier, {max_centers} centres"
        yield Figure(what, float(np.mean(found)), digits=4, detail=detail)


def _time(options: Options) -> Iterator[Figure]:
    models = {
        "LSPClassifier": LSPClassifier(n_jobs=2, random_state=0),
        "LSPClassifier, all rows centres": LSPClassifier(max_centers=max(_SIZES), n_jobs=2),
        "RodeoClassifier": RodeoClassifier(n_jobs=2),
    }
    tasks = {}
    for size in _SIZES:
        X, y, X_test, _ = draw(make_shifted_groups, size, 150, 0)
        for name, model in models.items():
            tasks[name, size] = Task(partial(_fit_and_predict, model, X, y, X_test), threads=2)
    timings = time_alternately(tasks, min(options.repeats, 3))
    for name in models:
        for size in _SIZES:
            timing = timings[name, size]
            high = 15.0 if (name, size) == ("LSPClassifier", 1000) else np.inf
            what = f"5 shifted, {size} rows each: {name}, fit and predict"
            detail = f"processor time {seconds(timing.best_cpu)}"
            yield Figure(what, timing.best, high=high, unit=" s", detail=detail)
        for (i, small), (j, large) in pairwise(enumerate(_SIZES)):
            before, after = timings[name, small].best, timings[name, large].best
            table = _TABLE_7[name.split(",")[0].split()[0]]
            power = np.log(after / before) / np.log(large / small)
            detail = f"as rows to the power {power:.2f}; paper {table[j] / table[i]:.2f}"
            yield Figure(f"rows {small} -> {large}: {name}", after / before, detail=detail)


def _fit_and_predict(model: Any, X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    return model.fit(X, y).predict_proba(X_test)
