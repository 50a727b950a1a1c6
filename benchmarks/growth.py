"""How the time of a prediction grows when rows, variables, classes or queries double.

Ten-group data of any size: class y has six relevant columns y..y+5, normal around 0.5 with standard
deviations 0.02 to 0.12, the rest is uniform. More rows or variables also change how often a bandwidth
shrinks, whatever the implementation: "passes", the mean over queries and classes of sum_j (steps_j + 1),
tells by how much. Many uniform variables leave so few rows near a query that hardly anything shrinks, so
variables double a second time on data where each of them shrinks exactly nine times. While classes double,
the queries belong to none of them, so that all classes are alike to them. Prediction runs on one thread;
fitting is counted in the last lines only.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks._measure import Figure, Options, Task, seconds, time_alternately
from corral import RodeoClassifier

Samples = tuple[np.ndarray, np.ndarray]

_LIMIT = 2.2


def run(options: Options) -> Iterator[Figure]:
    """Double one size at a time, the others held fixed."""
    grow = partial(_grow, options)
    yield from grow("rows", [150 * 2**i for i in range(8)], d=30, classes=2, queries=100)
    yield from grow("d", [10 * 2**i for i in range(7)], rows=300, classes=2, queries=100)
    yield from grow(
        "d", [10 * 2**i for i in range(7)], "equal work", make_equal_work, rows=300, classes=2, queries=100
    )
    yield from grow("classes", [2, 4, 8, 16, 32], rows=150, d=48, queries=200)
    yield from grow("queries", [100 * 2**i for i in range(6)], rows=150, d=30, classes=10)
    yield from _grow_fit(options)


def make_groups(rows: int, d: int, classes: int, seed: int, first: int = 0) -> Samples:
    """`make_ten_groups` for any number of variables and classes, the first of which starts at any column."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(classes * rows, d))
    for label in range(classes):
        relevant = rng.normal(0.5, 0.02 * np.arange(1, 7), (rows, 6))
        X[label * rows : (label + 1) * rows, first + label : first + label + 6] = relevant
    return X, np.repeat(np.arange(classes), rows)


def make_equal_work(rows: int, d: int, classes: int, seed: int) -> Samples:
    """Rows that nearly coincide: every bandwidth shrinks until the floor stops it."""
    rng = np.random.default_rng(seed)
    return rng.normal(0.5, 1e-3, (classes * rows, d)), np.repeat(np.arange(classes), rows)


def _grow(
    options: Options,
    name: str,
    sizes: list[int],
    kind: str = "",
    make: Callable[..., Samples] = make_groups,
    **fixed: int,
) -> Iterator[Figure]:
    tasks, passes = {}, {}
    for size in sizes:
        shape = {**fixed, name: size}
        X, y = make(shape["rows"], shape["d"], shape["classes"], seed=0)
        if name == "classes":
            X_test, _ = make(shape["queries"], shape["d"], 1, seed=1, first=40)
        else:
            X_test, _ = make(shape["queries"] // shape["classes"], shape["d"], shape["classes"], seed=1)
        # No scale: a column's range depends on how many classes there are for which it is noise.
        settings: dict[str, Any] = {"scale": None, "random_state": 0}
        if make is make_equal_work:  # h0 = 1, so the last bandwidth above the floor is 0.9^9
            settings |= {"c0": math.log(math.log(shape["rows"])), "min_bandwidth": 0.38}
        classifier = RodeoClassifier(**settings, n_jobs=-1).fit(X, y)
        shrunk = classifier.local_bandwidths(X_test) / classifier.initial_bandwidth_[:, np.newaxis]
        passes[size] = (np.log(shrunk) / np.log(classifier.beta) + 1.0).sum(axis=2).mean()
        # On one thread, because more of them would be idle for small sizes only.
        tasks[size] = Task(partial(classifier.set_params(n_jobs=1).predict_proba, X_test))
    timings = time_alternately(tasks, options.repeats)
    held = ", ".join(f"{key} {value}" for key, value in fixed.items())
    for small, large in pairwise(sizes):
        detail = (
            f"{seconds(timings[small].best_cpu)} -> {seconds(timings[large].best_cpu)}; "
            f"wall {timings[large].best / timings[small].best:.2f}; "
            f"passes {passes[small]:.0f} -> {passes[large]:.0f}; {held}"
        )
        what = f"{name} {small} -> {large}" + (f", {kind}" if kind else "")
        yield Figure(what, timings[large].best_cpu / timings[small].best_cpu, high=_LIMIT, detail=detail)


def _grow_fit(options: Options) -> Iterator[Figure]:
    """Fitting visits all rows of a class from each of them, from 1000 at most: linear only beyond that."""
    sizes = [150 * 2**i for i in range(6)]
    tasks = {}
    for size in sizes:
        X, y = make_groups(size, 30, 2, seed=0)
        tasks[size] = Task(partial(RodeoClassifier(scale=None, n_jobs=1, random_state=0).fit, X, y))
    timings = time_alternately(tasks, min(options.repeats, 3))
    for small, large in pairwise(sizes):
        before, after = timings[small].best_cpu, timings[large].best_cpu
        detail = f"{seconds(before)} -> {seconds(after)}; d 30, classes 2"
        yield Figure(f"fit, rows {small} -> {large}", after / before, detail=detail)
