"""A sample of rows that depends on their positions and a seed alone, not on partitions or workers.

Every row has a number drawn for its position by a counter-based generator, so that any worker finds it
without knowing the rows before. The rows of a class with the smallest of these numbers
are a random choice of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from corral.array_types import Integers
from corral.dask.reductions import compute, shared
from corral.dask.rows import Overview, Part, Source, read_part, together
from corral.data.subsample import smallest_by_class

# Numbers that the generator makes at once.
_AT_ONCE = 4

# Rows are sent if their numbers are below what lets expect those that are wanted, and so many standard
# deviations more: only once in 10^9 samples a class has fewer.
_DEVIATIONS = 6.0


def draws(first: int, n: int, seed: int) -> NDArray[np.uint64]:
    """The numbers of n rows from position `first` on, uniform from 0 to 2^64 - 1."""
    generator = np.random.Philox(key=seed).advance(first // _AT_ONCE)
    skipped = first % _AT_ONCE
    return generator.random_raw(skipped + n)[skipped:].astype(np.uint64)


def draw_rows(sources: Sequence[Source], of_all: Overview, sizes: Integers, seed: int, client: Any) -> Part:
    """Draw so many rows of each class, or all if it has no more, class by class in their order."""
    totals = of_all.n_rows.sum(axis=0)
    limits = shared(_limits(totals, sizes))
    labels = shared(of_all.labels)
    parts = compute([_drawn(source, labels, limits, seed) for source in sources], client)
    filled = [(part, drawn) for part, drawn in parts if drawn.size]
    rows = together([part for part, _ in filled])
    drawn = np.concatenate([drawn for _, drawn in filled])
    codes = np.searchsorted(of_all.labels, rows.y)
    return rows.take(smallest_by_class(drawn, codes, sizes))


def _limits(totals: Integers, sizes: Integers) -> list[int]:
    """Below which numbers the rows of each class are sent."""
    limits = []
    for n, size in zip(totals.tolist(), sizes.tolist(), strict=True):
        expected = size + _DEVIATIONS * (size**0.5 + _DEVIATIONS)
        limits.append(2**64 if expected >= n else int(expected / n * 2.0**64))
    return limits


@delayed
def _drawn(
    source: Source, labels: NDArray[Any], limits: list[int], seed: int
) -> tuple[Part, NDArray[np.uint64]]:
    """Rows of a partition whose numbers are small enough, and these numbers."""
    given = read_part(source)
    part = given.weighty()
    drawn = draws(source.first, len(given.X), seed)[part.numbers - source.first]
    is_kept = np.zeros(len(part.X), dtype=np.bool_)
    for label, limit in zip(labels, limits, strict=True):
        is_kept |= (part.y == label) & (drawn <= np.uint64(limit - 1))
    return part.take(is_kept), drawn[is_kept]
