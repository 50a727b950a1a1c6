"""CorralClassifier of 20 million rows in Parquet files on two workers of 1 GB, some of which are killed."""

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
    """Fit and predict, once undisturbed and once while workers are killed."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # gives memory back, others keep it
    with tempfile.TemporaryDirectory() as folder:
        rows, new = Path(folder, "rows"), Path(folder, "new")
        write(rows, range(_FILES))
        write(new, range(_FILES, _FILES + _NEW_FILES))
        yield Figure("load of the machine before", os.getloadavg()[0], detail=f"{os.cpu_count()} processors")
        with cluster() as client:
            before = set(client.run(os.getpid).values())
            fit, model = fitted(rows)
            predict, found = predicted(model, new)
            peaks = client.run(peak)
            lost = before - set(client.run(os.getpid).values())
        labels = pd.read_parquet(new, columns=["label"])["label"].to_numpy()
        yield from undisturbed(fit, predict, peaks, lost)
        yield Figure("accuracy", float((found.argmax(axis=1) == labels).mean()), digits=4)
        yield from disturbed(rows, new, found, fit, predict)


@contextmanager
def cluster() -> Iterator[Client]:
    """Two worker processes that nobody outside this machine can reach."""
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit="1GB",
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


def undisturbed(
    fit: tuple[float, float], predict: tuple[float, float], peaks: dict[str, float], lost: set[int]
) -> Iterator[Figure]:
    """Time and memory of an undisturbed run."""
    detail = f"processor time {fit[1]:.0f} s; {_FILES * _FILE_ROWS:,} rows of {_COLUMNS} variables"
    yield Figure("fit", fit[0], high=300, unit=" s", digits=0, detail=detail)
    detail = f"processor time {predict[1]:.0f} s"
    yield Figure(
        f"{_NEW_FILES * _FILE_ROWS:,} predictions", predict[0], high=60, unit=" s", digits=0, detail=detail
    )
    for worker, most in enumerate(peaks.values()):
        yield Figure(f"peak memory of worker {worker}", most, high=1000, unit=" MB", digits=0)
    yield Figure("workers lost", len(lost), high=0, digits=0)


def disturbed(
    rows: Path, new: Path, expected: np.ndarray, fit: tuple[float, float], predict: tuple[float, float]
) -> Iterator[Figure]:
    """Probabilities that differ when a worker is killed in fit, and another one in predict."""
    with cluster() as client:
        with killing(client, 0.4 * fit[0]) as killed:
            _, model = fitted(rows)
        yield changed("fit", predicted(model, new)[1], expected, killed)
        with killing(client, 0.4 * predict[0]) as killed:
            _, found = predicted(model, new)
        yield changed("predict", found, expected, killed)


def changed(where: str, found: np.ndarray, expected: np.ndarray, killed: list[int]) -> Figure:
    """Count probabilities that are not the same bits."""
    return Figure(
        f"probabilities changed by a worker killed in {where}",
        int((found != expected).sum()),
        high=0,
        digits=0,
        detail=f"workers killed: {len(killed)}",
    )


def fitted(folder: Path) -> tuple[tuple[float, float], DaskCorralClassifier]:
    """Fit the rows of a folder, and measure seconds of the clock and of processors."""
    table = dd.read_parquet(folder)
    model = DaskCorralClassifier(random_state=0, n_jobs=2)
    return timed(lambda: model.fit(table[_NAMES], table["label"])), model


def predicted(model: DaskCorralClassifier, folder: Path) -> tuple[tuple[float, float], np.ndarray]:
    """Predict the rows of a folder, and measure likewise."""
    found = []
    time_taken = timed(lambda: found.append(model.predict_proba(dd.read_parquet(folder)[_NAMES]).compute()))
    return time_taken, found[0].to_numpy()


@contextmanager
def killing(client: Client, after: float) -> Iterator[list[int]]:
    """Kill a worker some seconds from now, unless it is over before; list those that were killed."""
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
    """Write a file of rows for each part."""
    folder.mkdir()
    for part in parts:
        X, y = make_rows(_FILE_ROWS, part)
        pd.DataFrame(X, columns=_NAMES).assign(label=y).to_parquet(folder / f"{part:03}.parquet", index=False)


def make_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Class 0 is narrow in columns 0 and 1, class 1 in columns 2 and 3; all else is uniform."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((n, _COLUMNS)), rng.permutation(n) % 2
    for label in range(2):
        which = np.flatnonzero(y == label)
        for j in (2 * label, 2 * label + 1):
            X[which, j] = rng.normal(0.5, 0.1, which.size)
    return X, y
