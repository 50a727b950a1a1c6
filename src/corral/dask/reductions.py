"""Tasks on a cluster: run for their results, and merged in their order."""

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
    """Run tasks on the cluster of a client, or by dask's default where there is none."""
    try:
        return list(dask.compute(*tasks, scheduler=client))
    except (CancelledError, ClosedClientError, CommClosedError) as error:
        raise ConnectionError(
            "the Dask cluster has gone away; connect to a cluster and fit again."
        ) from error


def current_client(client: Any) -> Any:
    """The client given, or the one that dask would use itself, or None where there is no cluster."""
    if client is None:
        with suppress(ValueError):
            return default_client()
    return client


def tree(parts: Sequence[Delayed], merge: Callable[[Sequence[Any]], Any]) -> Delayed:
    """Merge results, some at a time and always in their order."""
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
    """An argument as a task of its own, so that it goes to a worker once and not with every task."""
    return delayed(argument, pure=False, traverse=False)
