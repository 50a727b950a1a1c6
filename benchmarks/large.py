"""Tables with many rows: accuracy of compressed classes, and time and memory of fits and predictions.

The benchmark `cluster` measures rows on a cluster, and `compression` compares ways to compress a class.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._measure import Figure, Options, fresh_python
from corral import CorralClassifier
from corral.datasets import make_shifted_groups, make_ten_groups, make_waveform

Rows = tuple[Any, np.ndarray]


def run(options: Options) -> Iterator[Figure]:
    """Yield losses by compression, time and memory, and the number of changed values."""
    del options
    yield from _beside_all_rows()
    yield from _costs()
    yield from _costs_of_mixed_rows()
    yield from _unchanged_bits()


# ------------------------------------------------------------------------------- beside all rows


def _beside_all_rows(n: int = 100_000, n_test: int = 20_000) -> Iterator[Figure]:
    """Compare the default with kernels on all rows; the table of mixed columns has no targets."""
    made = {"shifted groups": make_shifted_groups, "waveform": make_waveform, "ten groups": make_ten_groups}
    for name, make in made.items():
        rows = make(n, random_state=0)
        new = make(n_test // np.unique(rows[1]).size, random_state=1)
        few, full = (_predict(rows, new, max_rows) for max_rows in (CorralClassifier().max_rows, None))
        yield from _differences(name, few, full, 0.002, 0.005)
        detail = f"processor time {full.seconds:.1f} s and {few.seconds:.2f} s; a row is compared with "
        detail += f"{full.n_kernels:,} and {few.n_kernels:,} kernels"
        times = full.seconds / few.seconds
        yield Figure(
            f"{name}: prediction time, all rows / compressed", times, low=20.0, digits=1, detail=detail
        )
    rows, new = make_mixed(12_000, 0), make_mixed(3000, 1)
    few, full = (_predict(rows, new, max_rows) for max_rows in (1000, None))
    yield from _differences("missing values and text, 1000 of 4000 per class", few, full, np.inf, np.inf)


def _differences(
    name: str, few: Predicted, full: Predicted, accuracy: float, log_loss: float
) -> Iterator[Figure]:
    """Yield mean losses by compression, with standard errors of the differences in single rows."""
    more_errors, more_loss = full.hits - few.hits, few.losses - full.losses
    n = len(more_loss)
    detail = (
        f"{few.hits.mean():.4f} and {full.hits.mean():.4f} on {n} rows, of which "
        f"{int((more_errors < 0).sum())} and {int((more_errors > 0).sum())} are right in one only; "
        f"standard error {more_errors.std() / np.sqrt(n):.4f}"
    )
    what = f"{name}: accuracy with all rows minus with compression"
    yield Figure(what, float(more_errors.mean()), high=accuracy, digits=4, detail=detail)
    detail = f"{few.losses.mean():.4f} and {full.losses.mean():.4f}, "
    detail += f"standard error {more_loss.std() / np.sqrt(n):.4f}"
    what = f"{name}: log loss with compression minus with all rows"
    yield Figure(what, float(more_loss.mean()), high=log_loss, digits=4, detail=detail)


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of new rows.

    Attributes
    ----------
    hits : (n_samples,) 1 if the label is right, else 0.
    losses : (n_samples,) log losses.
    seconds : processor time.
    n_kernels : number of kernels that are evaluated for a row, in all members and classes.
    """

    hits: np.ndarray
    losses: np.ndarray
    seconds: float
    n_kernels: int


def _predict(rows: Rows, new: Rows, max_rows: int | None) -> Predicted:
    """Fit, and predict new rows."""
    classifier = CorralClassifier(priors="uniform", max_rows=max_rows, random_state=0, n_jobs=2).fit(*rows)
    X, y = new
    classifier.predict_log_proba(X[:1])  # arranges the rows
    start = time.process_time()
    log_proba = classifier.predict_log_proba(X)
    duration = time.process_time() - start
    codes = np.searchsorted(classifier.classes_, y)
    hits = (log_proba.argmax(axis=1) == codes).astype(np.float64)
    members = classifier.model_.pool.members
    n_kernels = sum(len(density.kernel_rows.rows) for member in members for density in member.classes)
    return Predicted(hits, -log_proba[np.arange(len(codes)), codes], duration, n_kernels)


# ------------------------------------------------------------------------------------------- costs

_FIT = """
import json, threading, time
import numpy as np, psutil
from corral import CorralClassifier
from benchmarks.large import {make}
X, y = {make}({n}, 0)
X_test, _ = {make}({n_test}, 1)
CorralClassifier(random_state=0).fit(X[:500], y[:500]).predict(X[:500])
process, stop = psutil.Process(), threading.Event()
base = most = process.memory_info().rss
def watch():
    global most
    while not stop.wait(0.01):
        most = max(most, process.memory_info().rss)
thread = threading.Thread(target=watch)
thread.start()
wall, cpu = time.perf_counter(), time.process_time()
classifier = CorralClassifier(random_state=0, n_jobs=2).fit(X, y)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
stop.set()
thread.join()
predict_wall, predict_cpu = time.perf_counter(), time.process_time()
classifier.predict(X_test)
print(json.dumps(dict(
    wall=wall, cpu=cpu, memory=(most - base) / 1e9,
    predict_wall=time.perf_counter() - predict_wall,
    predict_cpu=time.process_time() - predict_cpu,
)))
"""


def make_million(n: int, seed: int) -> Rows:
    """Draw n rows of five classes, with three clusters each, in 20 variables."""
    random = np.random.default_rng(seed)
    centers = 0.8 * np.random.default_rng(9).normal(size=(5, 3, 20))
    y, k = random.integers(0, 5, n), random.integers(0, 3, n)
    return random.normal(size=(n, 20)) + centers[y, k], y


def make_mixed(n: int, seed: int) -> Rows:
    """Draw n rows of three classes in 18 variables with missing values, and two columns of text."""
    random = np.random.default_rng(seed)
    centers = 0.8 * np.random.default_rng(9).normal(size=(3, 2, 18))
    y, k = random.integers(0, 3, n), random.integers(0, 2, n)
    X = random.normal(size=(n, 18)) + centers[y, k]
    frame = pd.DataFrame(X).add_prefix("x").mask(random.uniform(size=X.shape) < 0.1)
    several = np.array(list("abcde"))[np.digitize(X[:, 0] + random.normal(size=n), [-2.0, -0.5, 0.5, 2.0])]
    many = pd.Series(np.char.add("level ", random.integers(0, 50, n).astype(str)), dtype=object)
    has_value = random.uniform(size=n) < 0.9
    return frame.assign(several=pd.Series(several, dtype=object), many=many.where(has_value)), y


def _measure(make: str, n: int, n_test: int) -> Any:
    """Fit and predict in a fresh process; return seconds, and GB beyond the table."""
    return fresh_python(_FIT.format(make=make, n=n, n_test=n_test))


def _costs() -> Iterator[Figure]:
    """Fit and predict tables of 20 variables in five classes, in fresh processes with two threads."""
    n_test = {10_000: 100_000, 250_000: 1000, 500_000: 1000, 1_000_000: 100_000}
    results = {n: _measure("make_million", n, n_new) for n, n_new in n_test.items()}
    for n, result in results.items():
        detail = f"processor time {result['cpu']:.1f} s; prediction of {n_test[n]} rows "
        detail += f"{result['predict_wall']:.1f} s, processor time {result['predict_cpu']:.1f} s"
        high = 60.0 if n == 1_000_000 else np.inf
        what = f"fit of {n} x 20, two threads"
        yield Figure(what, result["wall"], high=high, unit=" s", digits=1, detail=detail)
    million = results[1_000_000]
    yield Figure("memory of this fit beyond the table", million["memory"], high=2.0, unit=" GB")
    for n in (250_000, 500_000):
        growth = results[2 * n]["cpu"] / results[n]["cpu"]
        yield Figure(f"processor time of a fit, {2 * n} rows / {n} rows", growth, high=2.2)
    ratio = million["predict_cpu"] / results[10_000]["predict_cpu"]
    yield Figure("prediction time of 100,000 rows, 10^6 / 10^4 training rows", ratio, high=2.0)


def _costs_of_mixed_rows() -> Iterator[Figure]:
    """Fit and predict tables with missing values and text; a row has 160 bytes as numbers."""
    few, many = (_measure("make_mixed", n, 5000) for n in (20_000, 200_000))
    what = "fit of 200000 x 20 with missing values and text, two threads"
    detail = f"processor time {many['cpu']:.1f} s"
    yield Figure(what, many["wall"], high=60.0, unit=" s", digits=1, detail=detail)
    detail = f"{many['memory'] / 0.032:.0f} times 32 MB, the size of the table as numbers"
    yield Figure("memory of this fit beyond the table", many["memory"], unit=" GB", detail=detail)
    ratio = many["predict_cpu"] / few["predict_cpu"]
    detail = f"processor time {many['predict_cpu']:.2f} s and {few['predict_cpu']:.2f} s"
    what = "prediction time of 5000 rows, 200000 / 20000 training rows"
    yield Figure(what, ratio, high=2.0, detail=detail)


def _unchanged_bits() -> Iterator[Figure]:
    """Count predictions that change with `max_rows` if no class is compressed."""
    made = {"numbers": make_million(1000, 0), "missing values and text": make_mixed(600, 0)}
    for name, (X, y) in made.items():
        first, second = (
            CorralClassifier(max_rows=max_rows, random_state=0).fit(X, y).predict_log_proba(X)
            for max_rows in (1000, None)
        )
        what = f"{name}: values changed by max_rows if no class is compressed"
        yield Figure(what, int((first != second).sum()), high=0, digits=0)
