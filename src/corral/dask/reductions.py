"""Run tasks on a cluster, and merge their results in order."""

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

# Results that one task merges.
_FAN_IN = 16


def compute(tasks: Iterable[Any], client: Any) -> list[Any]:
    """Run tasks on the cluster of a client, or by dask's default without a client."""
    try:
        return list(dask.compute(*tasks, scheduler=client))
    except (CancelledError, ClosedClientError, CommClosedError) as error:
        raise ConnectionError(
            "the Dask cluster has gone away; connect to a cluster and fit again."
        ) from error


def current_client(client: Any) -> Any:
    """The given client, or dask's current one, or None without a cluster."""
    if client is None:
        with suppress(ValueError):
            return default_client()
    return client


def tree(parts: Sequence[Delayed], merge: Callable[[Sequence[Any]], Any]) -> Delayed:
    """Merge results in order, 16 at a time."""
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
    """An argument as a task of its own: it is sent to a worker once, not with every task."""
    return delayed(argument, pure=False, traverse=False)
