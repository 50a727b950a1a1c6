"""Questions to all blocks of all classes at once: tasks that answer, merged in the order of the blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed, delayed
from distributed import default_client, get_worker, worker_client
from distributed.client import ClosedClientError
from distributed.comm import CommClosedError

from corral._core.blocks import Descent, merge_nearest, merge_sums, nearest, sweep
from corral._core.density import ClassDensity, kernel_density
from corral._core.rodeo import rodeo
from corral._core.rows import ClassRows, Left, Measure
from corral._core.settings import Floats, Integers, Update

# Answers that one task merges.
_FAN_IN = 16

# Queries in a task of the whole Rodeo, where a class has one block: few enough to keep all workers busy.
_TASK = 256


@dataclass(frozen=True, eq=False)
class Blocks:
    """The rows of one class on a cluster; stands where `ClassRows` stand for rows at hand.

    Attributes
    ----------
    blocks : tasks that make a ClassRows each, with the measure and the bandwidths of the class.
    block_rows : rows in each of them but the last.
    measure : as in ClassRows, of the whole class.
    variables : which columns take part, or None for all.
    """

    blocks: list[Delayed]
    block_rows: int
    measure: Measure
    variables: Integers | None = None

    def select(self, variables: Integers) -> Blocks:
        """The same rows with some of the variables."""
        return replace(self, variables=variables)

    def ask(
        self, function: Callable[..., Any], *arguments: Any, own: Integers | None = None
    ) -> list[Delayed]:
        """Tasks that call a function of `ClassRows` for each block; `own` numbers rows of the class."""
        sent = [shared(argument) for argument in (own, *arguments)]
        return [
            _answer(block, b * self.block_rows, self.variables, function, *sent)
            for b, block in enumerate(self.blocks)
        ]


class Queries(NamedTuple):
    """Where the Rodeo of one class starts: points, what they leave of it, and rows to leave out."""

    rows: Blocks
    grid: Floats
    x: Floats
    left: Left
    own: Integers | None = None


def estimates(
    densities: Sequence[ClassDensity], x: Floats, update: Update, client: Any
) -> list[tuple[Floats, Floats]]:
    """What `ClassDensity.estimate` returns, for each class, where rows are `Blocks`.

    Given bandwidths take one reduction for all classes together, local ones one more than there are sweeps.
    """
    found: list[Any] = []
    if densities[0].plan.fixed is None:
        start = [_queries(density, x) for density in densities]
        for queries, (log_density, steps) in zip(start, descend(start, update, client), strict=True):
            found.append((log_density, queries.grid[steps]))
    else:
        queries_of_all = shared(x)
        merged = [_fixed(density, queries_of_all) for density in densities]
        for density, log_density in zip(densities, compute(merged, client), strict=True):
            found.append((log_density, density.plan.fixed))
    return [
        density.completed(log_density, h, x.shape[1])
        for density, (log_density, h) in zip(densities, found, strict=True)
    ]


def _queries(density: Any, x: Floats) -> Queries:
    left = density.rows.measure.left(np.zeros(len(x)))
    return Queries(density.rows, density.grid, x[:, density.plan.variables], left)


def _fixed(density: Any, x: Delayed) -> Delayed:
    """Log densities with given bandwidths."""
    arguments = x, density.plan.variables, density.plan.fixed
    return tree(density.rows.ask(_log_densities, *arguments), _add_densities)


def descend(start: Sequence[Queries], update: Update, client: Any) -> list[tuple[Floats, Integers]]:
    """Algorithm 1 in several classes at once: for each, log densities and indices of bandwidths in its grid.

    A class with one block does all of it there. The others take one reduction for the nearest rows and one
    for each sweep, over all classes and the queries that are not done.
    """
    tasks = [
        _whole(queries, update)
        if len(queries.rows.blocks) == 1
        else tree(queries.rows.ask(nearest, queries.x, own=queries.own), merge_nearest)
        for queries in start
    ]
    found = compute(tasks, client)
    descents = {
        k: Descent(queries.x, found[k].row, queries.grid, queries.left, update)
        for k, queries in enumerate(start)
        if len(queries.rows.blocks) > 1
    }
    while going := {k: at for k, descent in descents.items() if (at := descent.going).size}:
        asked = []
        for k, at in going.items():
            own = start[k].own
            own = None if own is None else own[at]
            asked.append(tree(start[k].rows.ask(sweep, descents[k].question(), own=own), merge_sums))
        for k, sums in zip(going, compute(asked, client), strict=True):
            descents[k].answer(sums)
    for k, descent in descents.items():
        found[k] = descent.log_density(), descent.steps
    return found


def compute(tasks: Sequence[Any], client: Any) -> list[Any]:
    """Run tasks on the cluster of a client, or by dask's default where there is none."""
    with _losses_told():
        return list(dask.compute(*tasks, scheduler=client))


def keep(tasks: Sequence[Any], client: Any) -> Sequence[Any]:
    """Run tasks likewise, but leave the results where they are."""
    with _losses_told():
        kept: Sequence[Any] = dask.persist(*tasks, scheduler=client)
        return kept


@contextmanager
def _losses_told() -> Iterator[None]:
    """Say in one sentence what several errors of dask mean."""
    try:
        yield
    except (CancelledError, ClosedClientError, CommClosedError) as error:
        raise ConnectionError(
            "the Dask cluster has gone away, and the training rows it kept with it; connect to a cluster and "
            "fit again."
        ) from error


def current_client(client: Any) -> Any:
    """The client given, or the one that dask would use itself, or None where there is no cluster."""
    if client is None:
        with suppress(ValueError):
            return default_client()
    return client


@contextmanager
def within_cluster(client: Any) -> Iterator[Any]:
    """The client, or within a task that of its worker, whose thread takes other tasks meanwhile."""
    try:
        get_worker()
    except ValueError:
        yield client
    else:
        with worker_client() as of_worker:
            yield of_worker


def tree(parts: Sequence[Delayed], merge: Callable[[Sequence[Any]], Any]) -> Delayed:
    """Merge answers, some at a time and always in their order."""
    merged = list(parts)
    while len(merged) > 1:
        merged = [
            _merged(merge, *merged[first : first + _FAN_IN]) for first in range(0, len(merged), _FAN_IN)
        ]
    return merged[0]


@delayed
def _merged(merge: Callable[[Sequence[Any]], Any], *parts: Any) -> Any:
    return merge(parts)


def shared(argument: Any) -> Any:
    """Arrays as a task of their own, so that they go to a worker once and not with every task."""
    ready = argument is None or isinstance(argument, str | bool | Delayed)
    return argument if ready else delayed(argument, pure=False, traverse=False)


def _whole(queries: Queries, update: Update) -> Delayed:
    """The whole Rodeo in the one block of a class."""
    slices = [slice(first, first + _TASK) for first in range(0, len(queries.x), _TASK)]
    parts = []
    for which in slices:
        own = None if queries.own is None else queries.own[which]
        parts += queries.rows.ask(rodeo, queries.grid, queries.x[which], update, own=own)
    return _merged(_concatenate, *parts)


def _concatenate(parts: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))


@delayed
def _answer(
    rows: ClassRows,
    first: int,
    variables: Integers | None,
    function: Callable[..., Any],
    own: Integers | None,
    *arguments: Any,
) -> Any:
    """Call a function for a block whose rows have the numbers from `first` on in their class."""
    if variables is not None:
        rows = rows.select(variables)
    if own is not None:
        own = np.where((own >= first) & (own < first + rows.n_rows), own - first, -1)
    return function(rows, *arguments, own=own)


def _log_densities(
    rows: ClassRows, x: Floats, variables: Integers, h: Floats, own: Integers | None
) -> Floats:
    """Log densities (n_queries,)."""
    return kernel_density(rows, x[:, variables], h, own)


def _add_densities(parts: Sequence[Floats]) -> Floats:
    total: Floats = np.logaddexp.reduce(parts, axis=0)
    return total
