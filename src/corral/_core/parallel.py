"""Many queries of many classes on threads: chunks short enough for Ctrl-C, and a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Literal

from joblib import Parallel, delayed, effective_n_jobs

from corral._core.settings import Computation

Work = Literal["simultaneous", "sequential", "fixed", "many"]

# Numbers read in one call of a kernel, which takes about 0.03 s for them, and 0.3 s where all bandwidths
# fall to the floor: often enough for Ctrl-C and for a progress bar. The other kinds of work cost more or
# less than the simultaneous Rodeo.
_CHUNK = 10_000_000
_COST = {"simultaneous": 1.0, "sequential": 5.0, "fixed": 0.1, "many": 5.0}


def for_each_class(
    estimate: Callable[[int, slice], object],
    n_queries: Sequence[int],
    sizes: Sequence[int],
    work: Sequence[Work],
    title: str,
    computation: Computation,
) -> None:
    """Call ``estimate(y, chunk)`` for chunks of the queries of every class y, on threads.

    The kernels release the GIL, and each query is computed on its own, so the numbers depend neither on
    chunks nor on threads.

    Parameters
    ----------
    estimate : does one chunk.
    n_queries : per class how many queries there are.
    sizes : per class how many numbers a query reads.
    work : per class what is done with them.
    title : shown at the progress bar.
    computation : threads and progress.
    """
    total = sum(n_queries)
    fair = max(64, -(-total // (4 * effective_n_jobs(computation.n_jobs))))  # so that every thread stays busy

    def run(y: int, chunk: slice) -> int:
        estimate(y, chunk)
        return int(chunk.stop - chunk.start)

    tasks = []
    for y, (n, size, kind) in enumerate(zip(n_queries, sizes, work, strict=True)):
        step = max(1, min(int(_CHUNK / (size * _COST[kind])), fair))
        tasks += [partial(run, y, slice(start, min(start + step, n))) for start in range(0, n, step)]
    parallel = Parallel(n_jobs=computation.n_jobs, require="sharedmem", return_as="generator_unordered")
    with progress(total, title, computation.verbose) as advance:
        for n_done in parallel(delayed(task)() for task in tasks):
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
