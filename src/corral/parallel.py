"""Many rows of many classes on threads: chunks short enough for Ctrl-C, and a progress bar."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal, Self, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

Work = Literal["simultaneous", "sequential", "fixed", "many"]
Result = TypeVar("Result")

# Numbers read in one call of a kernel, which takes about 0.03 s for them, and 0.3 s where all bandwidths
# fall to the floor: often enough for Ctrl-C and for a progress bar. The other kinds of work cost more or
# less than the simultaneous Rodeo.
_CHUNK = 10_000_000
_COST = {"simultaneous": 1.0, "sequential": 5.0, "fixed": 0.1, "many": 5.0}

# Into how many chunks rows are cut at most.
_MOST_CHUNKS = 64

# Smaller chunks would take longer to hand out than to compute.
_LEAST_CHUNK = 1024

# Whether this thread is one of those that `on_threads` has started, which start no others.
_here = threading.local()


def on_threads(tasks: Iterable[Callable[[], Result]], n_jobs: int | None) -> Iterator[Result]:
    """Do tasks on as many threads as joblib would, and give their results in the order of the tasks.

    joblib looks at its threads every hundredth of a second, which is long compared with what small tables
    take; these threads report when they are done. After an error, or Ctrl-C, no other task is begun.
    """
    tasks = list(tasks)
    n_threads = 1 if hasattr(_here, "is_worker") else min(effective_n_jobs(n_jobs), len(tasks))
    if n_threads < 2:
        yield from (task() for task in tasks)
        return
    executor = ThreadPoolExecutor(n_threads, initializer=partial(setattr, _here, "is_worker", True))
    try:
        yield from executor.map(lambda task: task(), tasks)
    finally:
        executor.shutdown(cancel_futures=True)


@cache
def _thread_pools() -> ThreadpoolController:
    """Thread pools of the loaded libraries; to find them takes as long as a tenth of a small fit."""
    return ThreadpoolController()


def one_blas_thread() -> Any:
    """Context in which matrix products use one thread, so that sums have the same bits on any machine."""
    return _thread_pools().limit(limits=1, user_api="blas")


def for_each_class(
    estimate: Callable[[int, slice], object],
    n_rows: Sequence[int],
    sizes: Sequence[int],
    work: Sequence[Work],
    title: str,
    computation: Computation,
) -> None:
    """Call ``estimate(y, chunk)`` for chunks of the rows that every class y evaluates, on threads.

    The kernels release the GIL. The chunks are the same for any number of threads, and so are the numbers.

    Parameters
    ----------
    estimate : does one chunk.
    n_rows : per class how many rows it evaluates.
    sizes : per class how many numbers one row reads.
    work : per class what is done with them.
    title : shown at the progress bar.
    computation : threads and progress.
    """
    total = sum(n_rows)
    # Enough chunks to keep every thread busy. Their sizes do not depend on the number of threads, since BLAS
    # rounds a product of few rows in another way than one of many.
    fair = max(_LEAST_CHUNK, -(-total // _MOST_CHUNKS))

    def run(y: int, chunk: slice) -> int:
        estimate(y, chunk)
        return int(chunk.stop - chunk.start)

    tasks = []
    for y, (n, size, kind) in enumerate(zip(n_rows, sizes, work, strict=True)):
        step = max(1, min(int(_CHUNK / (size * _COST[kind])), fair))
        tasks += [partial(run, y, slice(start, min(start + step, n))) for start in range(0, n, step)]
    with progress(total, title, computation.verbose) as advance:
        for n_done in on_threads(tasks, computation.n_jobs):
            advance(n_done)


@contextmanager
def progress(total: int, title: str, verbose: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on the standard error stream, if `verbose`; gives what moves it on."""
    if verbose <= 0:
        yield lambda n: None
        return
    try:
        from rich.console import Console  # only where a bar is asked for: it takes time to import
        from rich.progress import Progress
    except ImportError as error:
        raise ImportError('verbose > 0 shows a bar and needs rich: pip install "corral[cli]".') from error

    with Progress(console=Console(stderr=True)) as bar:
        line = bar.add_task(title, total=total)
        yield lambda n: bar.advance(line, n)


@dataclass(frozen=True)
class Computation:
    """How work is done, which changes no result."""

    n_jobs: int | None = None  # number of threads, as joblib understands it
    verbose: int = 0  # if positive, progress is shown

    def quieter(self) -> Self:
        """Say less by one degree, for a step of something that shows its own progress."""
        return replace(self, verbose=self.verbose - 1)
