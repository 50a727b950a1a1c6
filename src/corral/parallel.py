"""Threads: rows of several classes are computed in chunks on threads, with an optional progress bar.

Chunks are short, so that Ctrl-C takes effect soon and the progress bar moves.
"""

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

# The number of array elements that one call of a kernel reads: the simultaneous Rodeo needs about 0.03 s for
# this, and 0.3 s if all bandwidths shrink to the smallest one. _COST is the time of other kinds of work per
# element, relative to the simultaneous Rodeo.
_CHUNK = 10_000_000
_COST = {"simultaneous": 1.0, "sequential": 5.0, "fixed": 0.1, "many": 5.0}

# The number of chunks into which rows are divided if _CHUNK does not need more.
_MOST_CHUNKS = 64

# The least number of rows in a chunk, unless _CHUNK needs less: smaller chunks take longer to start than to
# compute.
_LEAST_CHUNK = 1024

# Has the attribute `is_worker` in threads that `on_threads` has started. They do not start further threads.
_here = threading.local()


def on_threads(tasks: Iterable[Callable[[], Result]], n_jobs: int | None) -> Iterator[Result]:
    """Run tasks on as many threads as joblib would use, and yield their results in the order of the tasks.

    joblib itself polls its threads every 0.01 s, which is long compared with the time for small tables. After
    an error or Ctrl-C, no further task is started.
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
    """Thread pools of the loaded libraries, cached: the search takes a tenth of the time of a small fit."""
    return ThreadpoolController()


def one_blas_thread() -> Any:
    """Return a context manager in which matrix products use one thread, so that rounding is reproducible."""
    return _thread_pools().limit(limits=1, user_api="blas")


def for_each_class(
    estimate: Callable[[int, slice], object],
    n_rows: Sequence[int],
    sizes: Sequence[int],
    work: Sequence[Work],
    title: str,
    computation: Computation,
) -> None:
    """Call ``estimate(y, chunk)`` on threads, for chunks of the rows to evaluate in each class y.

    The kernels release the GIL. Neither the chunks nor the results depend on the number of threads.

    Parameters
    ----------
    estimate : evaluates one chunk, a slice of rows, in class y.
    n_rows : for each class, the number of rows to evaluate.
    sizes : for each class, the number of array elements that the evaluation of one row reads.
    work : for each class, the kind of work, which determines the time per element.
    title : title of the progress bar.
    computation : threads and progress.
    """
    total = sum(n_rows)
    # Enough chunks to keep every thread busy. Chunks do not depend on the number of threads, since the
    # rounding of a product by BLAS depends on its number of rows.
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
    """Show a progress bar on the standard error stream if `verbose` is positive.

    The context manager yields a function that advances the bar by a number of steps out of `total`.
    """
    if verbose <= 0:
        yield lambda n: None
        return
    try:
        from rich.console import Console  # imported only if needed, because the import is slow
        from rich.progress import Progress
    except ImportError as error:
        message = 'verbose > 0 shows a progress bar, which needs rich: pip install "corral[cli]".'
        raise ImportError(message) from error

    with Progress(console=Console(stderr=True)) as bar:
        line = bar.add_task(title, total=total)
        yield lambda n: bar.advance(line, n)


@dataclass(frozen=True)
class Computation:
    """Options of a computation that do not change its results."""

    n_jobs: int | None = None  # number of threads, with the meaning that it has in joblib
    verbose: int = 0  # if positive, a progress bar is shown

    def quieter(self) -> Self:
        """Return the options with `verbose` reduced by 1, for a part of a computation with its own bar."""
        return replace(self, verbose=self.verbose - 1)
