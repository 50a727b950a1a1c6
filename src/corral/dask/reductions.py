"""Run tasks on a cluster, and merge the results in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

import dask
from dask.delayed import Delayed, delayed
from distributed import default_client
from distributed.client import ClosedClientError
from distributed.comm import CommClosedError

# Largest number of results that one task merges.
_FAN_IN = 16


def compute(tasks: Iterable[Any], client: Any) -> list[Any]:
    """Run tasks on the cluster of a client, or with the default scheduler of dask if the client is None."""
    try:
        return list(dask.compute(*tasks, scheduler=client))
    except (CancelledError, ClosedClientError, CommClosedError) as error:
        raise ConnectionError(
            "the Dask cluster is not available any more; connect to a cluster and fit again."
        ) from error


def current_client(client: Any) -> Any:
    """Return the given client, else the current client of dask, else None if there is no cluster."""
    if client is None:
        with suppress(ValueError):
            return default_client()
    return client


def tree(parts: Sequence[Delayed], merge: Callable[[Sequence[Any]], Any]) -> Delayed:
    """Merge the results of tasks in order; each task merges at most 16 results."""
    merged = list(parts)
    while len(merged) > 1:
        merged = [
            _merged(merge, *merged[first : first + _FAN_IN]) for first in range(0, len(merged), _FAN_IN)
        ]
    return merged[0]


@delayed
def _merged(merge: Callable[[Sequence[Any]], Any], *parts: Any) -> Any:
    return merge(parts)


def shared(argument: Any) -> Delayed:
    """Make a task of an argument, so that the argument is sent once to each worker, not with every task."""
    return delayed(argument, pure=False, traverse=False)
