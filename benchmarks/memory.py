"""Peak memory above the data: one class of 200,000 rows and 50 variables, 1000 queries, two threads.

A fresh process makes the data, compiles on a tiny problem and notes its resident memory; then it fits a
`RodeoDensity` and scores the queries. What the peak adds to the note is the cost.
"""

import json
import time
from collections.abc import Iterator

import numpy as np

from benchmarks._measure import Figure, Options, fresh_python, peak, resident, seconds
from corral import RodeoDensity

_ROWS, _VARIABLES = 200_000, 50


def run(options: Options) -> Iterator[Figure]:
    """Measure in a fresh process, whose peak nothing else has raised."""
    code = f"from benchmarks.memory import child; child({_ROWS}, {_VARIABLES}, {options.queries})"
    found = fresh_python(code)
    data = f"data {found['data']:.0f} MB, process before {found['before']:.0f} MB"
    yield Figure(
        f"peak above the data, {options.queries} queries",
        found["peak"] - found["before"],
        high=300.0,
        unit=" MB",
        digits=0,
        detail=data,
    )
    yield Figure("  of it while fitting", found["fit_peak"] - found["before"], unit=" MB", digits=0)
    yield Figure("  kept by the fitted density", found["fitted"] - found["before"], unit=" MB", digits=0)
    rate = options.queries / found["score_time"]
    detail = f"fit {seconds(found['fit_time'])}, score {seconds(found['score_time'])}"
    yield Figure("queries per second, 2 threads", rate, digits=1, detail=detail)


def child(n: int, d: int, n_queries: int) -> None:
    """Run in the fresh process; print the findings as JSON, in MB (10^6 bytes) and seconds."""
    rng = np.random.default_rng(0)
    # Filled in place, because a temporary would raise the peak before the measurement begins.
    X = np.empty((n, d))
    rng.random(out=X)
    for j in range(6):
        X[:, j] = rng.normal(0.5, 0.02 * (j + 1), n)
    queries = rng.random((n_queries, d))
    queries[:, :6] = rng.normal(0.5, 0.02 * np.arange(1, 7), (n_queries, 6))
    tiny = X[:50].copy()
    RodeoDensity(n_jobs=2).fit(tiny).score_samples(tiny)

    density = RodeoDensity(n_jobs=2)
    found = {"data": (X.nbytes + queries.nbytes) / 1e6, "before": resident()}
    start = time.perf_counter()
    density.fit(X)
    found |= {"fit_time": time.perf_counter() - start, "fit_peak": peak(), "fitted": resident()}
    start = time.perf_counter()
    log_density = density.score_samples(queries)
    found |= {"score_time": time.perf_counter() - start, "peak": peak()}
    if not np.isfinite(log_density).all():
        raise FloatingPointError("a log density is not finite")
    print(json.dumps(found))
