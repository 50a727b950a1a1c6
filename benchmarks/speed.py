"""The paper's rule: time of predictions relative to KernelDensity of scikit-learn, and peak memory.

*Local bandwidths*: 1,500 training rows of ten groups and 30 variables, 1,000 new rows. KernelDensity has one
fixed bandwidth and needs one pass over the rows. The Rodeo chooses 30 bandwidths for each new row and class.

*Class bandwidths on selected variables*: KernelDensity uses the same selected columns of each class. Its time
does not include labels and probabilities.

*Memory*: one class of 200,000 rows and 50 variables, 1,000 new rows, two threads. A fresh process makes the
data, compiles the code with a small table, and measures its memory. Then it fits a `RodeoDensity` and scores
the new rows. The figure is the peak memory minus the memory before the fit.
"""

import json
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from sklearn.neighbors import KernelDensity

from benchmarks._measure import (
    Figure,
    Options,
    fresh_python,
    peak,
    ratio,
    resident,
    seconds,
    time_alternately,
)
from corral import RodeoClassifier, RodeoDensity
from corral.datasets import make_ten_groups

# Bandwidth of KernelDensity. Its default tolerances are 0, so the bandwidth hardly changes its time.
_BANDWIDTH = 0.2
_ROWS, _VARIABLES, _NEW_ROWS = 200_000, 50, 1000


def run(options: Options) -> Iterator[Figure]:
    """Yield times of alternating predictions, then memory in a fresh process."""
    X, y = make_ten_groups(150, random_state=0)
    X_test, _ = make_ten_groups(100, random_state=1)
    one, two = (RodeoClassifier(n_jobs=n).fit(X, y) for n in (1, 2))
    selected = RodeoClassifier(bandwidth="class", features="selected", n_jobs=1).fit(X, y)

    def densities(masks: np.ndarray, **settings: str) -> Callable[[], object]:
        # Contiguous columns, because score_samples would copy a slice in every call.
        models = [
            KernelDensity(bandwidth=_BANDWIDTH, **settings).fit(X[y == label][:, mask])
            for label, mask in zip(one.classes_, masks, strict=True)
        ]
        parts = list(zip(models, (np.ascontiguousarray(X_test[:, mask]) for mask in masks), strict=True))
        return lambda: [model.score_samples(rows) for model, rows in parts]

    every = np.ones_like(selected.relevant_)
    timings = time_alternately(
        {
            "one": partial(one.predict_proba, X_test),
            "two": partial(two.predict_proba, X_test),
            "selected": partial(selected.predict_proba, X_test),
            "densities": densities(every),
            "ball trees": densities(every, algorithm="ball_tree"),
            "kd_tree": densities(selected.relevant_, algorithm="kd_tree"),
            "ball_tree": densities(selected.relevant_, algorithm="ball_tree"),
        },
        options.repeats,
    )
    own = timings["one"]
    yield ratio(
        "prediction time / ten KernelDensity, 1 thread", own, timings["densities"], high=1.3, cpu=True
    )
    yield ratio(
        "prediction time / ten KernelDensity(ball_tree), 1 thread", own, timings["ball trees"], cpu=True
    )
    yield ratio("prediction time, 1 thread / 2 threads", own, timings["two"])
    yield ratio("time, local / class bandwidths on selected variables", own, timings["selected"], low=10.0)
    for algorithm in ("kd_tree", "ball_tree"):
        what = f"time, ten KernelDensity({algorithm}) / corral, selected variables"
        yield ratio(what, timings[algorithm], timings["selected"], low=1.0)
    yield from _memory()


def _memory() -> Iterator[Figure]:
    numbers = fresh_python("from benchmarks.speed import print_memory; print_memory()")
    before = numbers["before"]
    detail = f"data {numbers['data']:.0f} MB, process before {before:.0f} MB"
    what = f"peak memory above the data, {_NEW_ROWS} new rows"
    yield Figure(what, numbers["peak"] - before, high=300.0, unit=" MB", digits=0, detail=detail)
    yield Figure("  peak during the fit", numbers["fit_peak"] - before, unit=" MB", digits=0)
    yield Figure("  memory of the fitted density", numbers["fitted"] - before, unit=" MB", digits=0)
    detail = f"fit {seconds(numbers['fit_time'])}, score {seconds(numbers['score_time'])}"
    yield Figure(
        "densities per second, 2 threads", _NEW_ROWS / numbers["score_time"], digits=1, detail=detail
    )


def print_memory() -> None:
    """Measure in this process; print MB (10^6 bytes) and seconds as JSON."""
    rng = np.random.default_rng(0)
    # Filled in place, because a temporary array would raise the peak before the measurement begins.
    X = np.empty((_ROWS, _VARIABLES))
    rng.random(out=X)
    for j in range(6):
        X[:, j] = rng.normal(0.5, 0.02 * (j + 1), _ROWS)
    new_rows = rng.random((_NEW_ROWS, _VARIABLES))
    new_rows[:, :6] = rng.normal(0.5, 0.02 * np.arange(1, 7), (_NEW_ROWS, 6))
    tiny = X[:50].copy()
    RodeoDensity(n_jobs=2).fit(tiny).score_samples(tiny)

    density = RodeoDensity(n_jobs=2)
    numbers = {"data": (X.nbytes + new_rows.nbytes) / 1e6, "before": resident()}
    start = time.perf_counter()
    density.fit(X)
    numbers |= {"fit_time": time.perf_counter() - start, "fit_peak": peak(), "fitted": resident()}
    start = time.perf_counter()
    log_density = density.score_samples(new_rows)
    numbers |= {"score_time": time.perf_counter() - start, "peak": peak()}
    if not np.isfinite(log_density).all():
        raise FloatingPointError("a log density is not finite")
    print(json.dumps(numbers))
