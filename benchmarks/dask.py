"""DaskRodeoClassifier on one machine: overhead, scaling with a cost model, and rows beyond memory.

All clusters are worker processes with one thread each. Processor time is that of all processes together: on
a busy machine it says more than the clock.
"""

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil
from distributed import Client, LocalCluster
from scipy.optimize import nnls

from benchmarks._measure import Figure, Options, peak, seconds
from corral.dask import DaskRodeoClassifier
from corral.datasets import make_ten_groups

_FILES, _FILE_ROWS, _COLUMNS = 80, 250_000, 10


def run(options: Options) -> Iterator[Figure]:
    """Everything in turn, from the quick to the slow."""
    yield from overhead(options)
    yield from scaling(options)
    yield from beyond_memory(options)


@contextmanager
def cluster(n_workers: int, memory_limit: str = "auto") -> Iterator[Client]:
    """Worker processes that nobody outside this machine can reach."""
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            memory_limit=memory_limit,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as workers,
        Client(workers) as client,
    ):
        yield client


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock, and of processor time in this process and the workers."""
    wall, cpu = time.perf_counter(), processor_time()
    call()
    return time.perf_counter() - wall, processor_time() - cpu


def processor_time() -> float:
    """Of this process and its children."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    times = [process.cpu_times() for process in processes]
    return sum(of_process.user + of_process.system for of_process in times)


# ------------------------------------------------------------------------------------------- overhead


def overhead(options: Options) -> Iterator[Figure]:
    """2,000 queries against 100,000 rows of ten classes and 30 variables."""
    rounds = min(options.repeats, 3)
    with cluster(2):
        X, y = ten_groups(100_000)
        queries, _ = make_ten_groups(200, random_state=99)
        for what, target, parameters in (
            ("class bandwidths", 1.5, {"bandwidth": "class"}),
            ("local bandwidths", 1.5, {}),
            ("local, four blocks per class", math.inf, {"block_rows": 2500}),
        ):
            model = DaskRodeoClassifier(n_points=20, random_state=0, n_jobs=2, **parameters).fit(X, y)
            local = model.to_local()
            off = np.abs(model.log_density(queries[:50]) - local.log_density(queries[:50])).max()
            here, there = [], []
            for _ in range(rounds):
                here.append(timed(lambda local=local: local.predict_proba(queries)))
                there.append(timed(lambda model=model: model.predict_proba(queries)))
            (wall, cpu), (dask_wall, dask_cpu) = np.min(here, axis=0), np.min(there, axis=0)
            detail = (
                f"{seconds(dask_wall)} / {seconds(wall)}; processor time {dask_cpu / cpu:.2f} "
                f"({seconds(dask_cpu)} / {seconds(cpu)}); log densities within {off:.0e}"
            )
            yield Figure(
                f"time / RodeoClassifier(n_jobs=2), {what}", dask_wall / wall, high=target, detail=detail
            )
            yield Figure(f"  the same in processor time, {what}", dask_cpu / cpu, high=target)


def ten_groups(n: int, chunk: int = 10_000) -> tuple[da.Array, da.Array]:
    """Rows made by the workers, in chunks."""
    parts = [dask.delayed(make_ten_groups)(chunk // 10, random_state=seed) for seed in range(n // chunk)]
    X = da.concatenate([da.from_delayed(part[0], (chunk, 30), float) for part in parts])
    return X, da.concatenate([da.from_delayed(part[1], (chunk,), int) for part in parts])


# -------------------------------------------------------------------------------------------- scaling


class Measurement(NamedTuple):
    """One prediction: what it did, and its seconds."""

    kind: str
    workers: int
    rows: int
    queries: int
    reductions: int
    tasks: int
    work: float  # queries times rows, times sweeps where there are any
    wall: float


def scaling(options: Options) -> Iterator[Figure]:
    """Strong and weak scaling, and the model t = reductions r + tasks s + work w / workers."""
    found = list(measurements(options))
    for one in found:
        detail = f"{one.reductions} reductions, {one.tasks} tasks, work {one.work:.3g}"
        what = f"{one.kind}, {one.workers} workers, {one.rows} rows, {one.queries} queries"
        yield Figure(what, one.wall, unit=" s", detail=detail)
    for kind in ("class", "local"):
        of_kind = [one for one in found if one.kind == kind]
        table = {(one.workers, one.rows, one.queries): one.wall for one in of_kind}
        most, queries = max(one.rows for one in of_kind), max(one.queries for one in of_kind)
        strong = table[1, most, queries] / table[2, most, queries]
        weak = table[1, most // 2, queries] / table[2, most, queries]
        yield Figure(f"{kind}: strong scaling, speed on 2 workers / on 1", strong)
        yield Figure(f"{kind}: weak scaling, time on 1 / twice the rows on 2", weak)
        model = CostModel.fit(of_kind)
        off = [model.seconds(one) / one.wall - 1.0 for one in of_kind]
        yield Figure(
            f"{kind}: nanoseconds per query, row and sweep",
            1e9 * model.work,
            detail=f"{1e3 * model.reduction:.1f} ms per reduction, {1e3 * model.task:.2f} ms per task; "
            f"the model is off by {min(off):+.0%} to {max(off):+.0%}",
        )


class CostModel(NamedTuple):
    """Seconds per reduction, per task and per query, row and sweep."""

    reduction: float
    task: float
    work: float

    @classmethod
    def fit(cls, found: list[Measurement]) -> "CostModel":
        """Least squares of relative errors, with costs that are not negative."""
        A = np.array([[one.reductions, one.tasks, one.work / one.workers] for one in found])
        wall = np.array([one.wall for one in found])
        costs, _ = nnls(A / wall[:, np.newaxis], np.ones(len(found)))
        return cls(*costs)

    def seconds(self, one: Measurement) -> float:
        """What the model says."""
        return self.reduction * one.reductions + self.task * one.tasks + self.work * one.work / one.workers


def measurements(options: Options) -> Iterator[Measurement]:
    """Predictions by two classes of 10 variables in blocks of 25,000 rows."""
    rounds = min(options.repeats, 3)
    for workers in (1, 2):
        with cluster(workers):
            for rows in (100_000, 200_000, 400_000):
                X, y = two_classes(rows)
                for kind in ("class", "local"):
                    model = DaskRodeoClassifier(
                        bandwidth=kind, block_rows=25_000, n_points=5, beta=0.8, random_state=0
                    ).fit(X, y)
                    for n_queries in (20, 200):
                        queries = make_rows(n_queries, 1000)[0]
                        h = model.local_bandwidths(queries)
                        wall = min(
                            timed(lambda q=queries, m=model: m.log_density(q))[0] for _ in range(rounds)
                        )
                        yield _measured(kind, workers, rows, h, model, wall)


def _measured(
    kind: str, workers: int, rows: int, h: np.ndarray, model: DaskRodeoClassifier, wall: float
) -> Measurement:
    n_queries, n_classes, _ = h.shape
    n_blocks = rows // 25_000
    if kind == "class":
        return Measurement(kind, workers, rows, n_queries, 1, n_blocks, n_queries * rows, wall)
    steps = np.rint(np.log(h / model.initial_bandwidth_[:, np.newaxis]) / math.log(model.beta))
    sweeps = steps.max(axis=2) + 1  # per query and class
    reductions = 1 + int(sweeps.max())
    work = float(sweeps.sum() * rows / n_classes)
    return Measurement(kind, workers, rows, n_queries, reductions, reductions * n_blocks, work, wall)


def two_classes(n: int, chunk: int = 25_000) -> tuple[da.Array, da.Array]:
    """Rows made by the workers."""
    parts = [dask.delayed(make_rows)(chunk, seed) for seed in range(n // chunk)]
    X = da.concatenate([da.from_delayed(part[0], (chunk, _COLUMNS), float) for part in parts])
    return X, da.concatenate([da.from_delayed(part[1], (chunk,), int) for part in parts])


def make_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Class 0 is narrow in columns 0 and 1, class 1 in columns 2 and 3; all else is uniform."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((n, _COLUMNS)), rng.permutation(n) % 2
    for label in range(2):
        which = np.flatnonzero(y == label)
        for j in (2 * label, 2 * label + 1):
            X[which, j] = rng.normal(0.5, 0.1, which.size)
    return X, y


# -------------------------------------------------------------------------------------- beyond memory


def beyond_memory(options: Options) -> Iterator[Figure]:
    """20,000,000 x 10 rows in Parquet files, two workers with 1 GB each, 1,000 predictions."""
    with tempfile.TemporaryDirectory() as folder:
        for part in range(_FILES):
            X, y = make_rows(_FILE_ROWS, part)
            frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(_COLUMNS)]).assign(label=y)
            frame.to_parquet(Path(folder, f"{part:03}.parquet"), index=False)
        size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e9
        queries, labels = make_rows(1000, _FILES)
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # gives memory back, others keep it
        with cluster(2, memory_limit="1GB") as client:
            processes = client.run(os.getpid)
            table = dd.read_parquet(folder)
            model = DaskRodeoClassifier(
                bandwidth="class", persist=False, n_points=20, beta=0.8, random_state=0
            )
            fit = timed(lambda: model.fit(table.drop(columns="label"), table["label"]))
            names = {"X": pd.DataFrame(queries, columns=model.feature_names_in_)}
            predict = timed(lambda: names.update(found=model.predict(names["X"])))
            peaks = client.run(peak)
            lost = set(processes.values()) - set(client.run(os.getpid).values())
        accuracy = float((names["found"] == labels).mean())
    rows = _FILES * _FILE_ROWS
    yield Figure(
        "rows", rows, low=20_000_000, digits=0, detail=f"{size:.2f} GB of Parquet, {_COLUMNS} variables"
    )
    for worker, most in enumerate(peaks.values()):
        yield Figure(f"peak memory of worker {worker}", most, high=1000.0, unit=" MB", digits=0)
    yield Figure("workers lost", len(lost), high=0, digits=0)
    yield Figure("fit", fit[0], unit=" s", digits=0, detail=f"processor time {fit[1]:.0f} s")
    yield Figure(
        "1,000 predictions",
        predict[0],
        unit=" s",
        digits=0,
        detail=f"processor time {predict[1]:.0f} s, accuracy {accuracy:.3f}",
    )
