"""DaskCorralClassifier: 20 million rows in Parquet files on two workers of 1 GB, and killed workers."""

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil
from distributed import Client, LocalCluster

from benchmarks._measure import Figure, Options, peak
from corral.dask import DaskCorralClassifier

_FILES, _NEW_FILES, _FILE_ROWS, _COLUMNS = 80, 4, 250_000, 10
_NAMES = [f"x{j}" for j in range(_COLUMNS)]


def run(options: Options) -> Iterator[Figure]:
    """Fit and predict, first without and then with a killed worker."""
    del options
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # this pool returns memory to the system
    with tempfile.TemporaryDirectory() as folder:
        rows, new = Path(folder, "rows"), Path(folder, "new")
        write(rows, range(_FILES))
        write(new, range(_FILES, _FILES + _NEW_FILES))
        yield Figure(
            "load average of the machine at the start",
            os.getloadavg()[0],
            detail=f"{os.cpu_count()} processors",
        )
        with cluster() as client:
            workers = set(client.run(os.getpid).values())
            fitted = fit(rows)
            predicted = predict(fitted.result, new)
            peaks = client.run(peak)
            lost = workers - set(client.run(os.getpid).values())
        detail = f"processor time {fitted.cpu:.0f} s; {_FILES * _FILE_ROWS:,} rows of {_COLUMNS} variables"
        yield Figure("fit", fitted.wall, high=300, unit=" s", digits=0, detail=detail)
        what, detail = f"{_NEW_FILES * _FILE_ROWS:,} predictions", f"processor time {predicted.cpu:.0f} s"
        yield Figure(what, predicted.wall, high=60, unit=" s", digits=0, detail=detail)
        for worker, most in enumerate(peaks.values()):
            yield Figure(f"peak memory of worker {worker}", most, high=1000, unit=" MB", digits=0)
        yield Figure("workers lost without a kill", len(lost), high=0, digits=0)
        labels = pd.read_parquet(new, columns=["label"])["label"].to_numpy()
        yield Figure("accuracy", float((predicted.result.argmax(axis=1) == labels).mean()), digits=4)
        with cluster() as client:
            with killing(client, 0.4 * fitted.wall) as killed:
                model = fit(rows).result
            yield changed("fit", predict(model, new).result, predicted.result, killed)
            with killing(client, 0.4 * predicted.wall) as killed:
                proba = predict(model, new).result
            yield changed("predict", proba, predicted.result, killed)


@contextmanager
def cluster() -> Iterator[Client]:
    """Start two worker processes that listen on this machine only."""
    addresses = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1GB", **addresses) as workers,
        Client(workers) as client,
    ):
        yield client


class Timed(NamedTuple):
    """A result, wall seconds, and processor seconds of this process and the workers."""

    result: Any
    wall: float
    cpu: float


def timed(call: Callable[[], object]) -> Timed:
    """Call a function and measure times."""
    wall, cpu = time.perf_counter(), processor_time()
    result = call()
    return Timed(result, time.perf_counter() - wall, processor_time() - cpu)


def processor_time() -> float:
    """Return the processor seconds of this process and its children."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)


def fit(folder: Path) -> Timed:
    """Fit to the rows of a folder."""
    table = dd.read_parquet(folder)
    model = DaskCorralClassifier(random_state=0, n_jobs=2)
    return timed(lambda: model.fit(table[_NAMES], table["label"]))


def predict(model: DaskCorralClassifier, folder: Path) -> Timed:
    """Predict the probabilities of the rows of a folder."""
    return timed(lambda: model.predict_proba(dd.read_parquet(folder)[_NAMES]).compute().to_numpy())


def changed(where: str, proba: np.ndarray, expected: np.ndarray, killed: list[int]) -> Figure:
    """Count probabilities that are not exactly as expected."""
    what = f"probabilities that change if a worker is killed during {where}"
    n_changed = int((proba != expected).sum())
    return Figure(what, n_changed, high=0, digits=0, detail=f"workers killed: {len(killed)}")


@contextmanager
def killing(client: Client, after: float) -> Iterator[list[int]]:
    """Kill a worker after `after` seconds if the block is still running; yield the list of killed workers."""
    killed: list[int] = []
    process = min(client.run(os.getpid).values())
    over = threading.Event()

    def kill() -> None:
        if not over.wait(after):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
                killed.append(process)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def write(folder: Path, parts: range) -> None:
    """Write one file of rows per part."""
    folder.mkdir()
    for part in parts:
        X, y = make_rows(_FILE_ROWS, part)
        pd.DataFrame(X, columns=_NAMES).assign(label=y).to_parquet(folder / f"{part:03}.parquet", index=False)


def make_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Make n rows of two classes: class 0 is narrow in columns 0 and 1, class 1 in columns 2 and 3."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((n, _COLUMNS)), rng.permutation(n) % 2
    for label in range(2):
        rows = np.flatnonzero(y == label)
        for j in (2 * label, 2 * label + 1):
            X[rows, j] = rng.normal(0.5, 0.1, rows.size)
    return X, y
