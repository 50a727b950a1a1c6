"""A sample of rows that depends only on their positions and a seed, not on partitions or workers.

A counter-based generator computes the random number of a row from the position of the row alone. The sample
of a class has the rows with the smallest random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from corral.array_types import Integers
from corral.dask.reductions import compute, shared
from corral.dask.rows import Overview, Part, Source, concatenate, read_part
from corral.data.subsample import smallest_by_class

# Random numbers per step of the generator.
_AT_ONCE = 4

# Workers send the rows whose random numbers are below a limit. The expected number of these rows exceeds the
# sample size by this number of standard deviations, so that only one sample in 10^9 has too few rows.
_DEVIATIONS = 6.0


def random_numbers(first: int, n: int, seed: int) -> NDArray[np.uint64]:
    """Generate random integers (n,), uniform from 0 to 2^64 - 1, of the rows from position `first` on."""
    generator = np.random.Philox(key=seed).advance(first // _AT_ONCE)
    skipped = first % _AT_ONCE
    return generator.random_raw(skipped + n)[skipped:].astype(np.uint64)


def sample_rows(
    sources: Sequence[Source], overview: Overview, sizes: Integers, seed: int, client: Any
) -> Part:
    """Sample `sizes` (n_classes,) rows of each class, or all rows of smaller classes.

    Only rows with positive weight are sampled. The result is ordered by class.
    """
    totals = overview.n_rows.sum(axis=0)
    limits = shared(_limits(totals, sizes))
    labels = shared(overview.labels)
    parts = compute([_sample_part(source, labels, limits, seed) for source in sources], client)
    filled = [(part, numbers) for part, numbers in parts if numbers.size]
    rows = concatenate([part for part, _ in filled])
    numbers = np.concatenate([numbers for _, numbers in filled])
    codes = np.searchsorted(overview.labels, rows.y)
    return rows.take(smallest_by_class(numbers, codes, sizes))


def _limits(totals: Integers, sizes: Integers) -> list[int]:
    """Compute for each class the limit below which rows are sent."""
    limits = []
    for n, size in zip(totals.tolist(), sizes.tolist(), strict=True):
        expected = size + _DEVIATIONS * (size**0.5 + _DEVIATIONS)
        limits.append(2**64 if expected >= n else int(expected / n * 2.0**64))
    return limits


@delayed
def _sample_part(
    source: Source, labels: NDArray[Any], limits: list[int], seed: int
) -> tuple[Part, NDArray[np.uint64]]:
    """Return the rows of a partition whose random numbers are below the limits, and the random numbers."""
    every = read_part(source)
    part = every.with_weight()
    numbers = random_numbers(source.first, len(every.X), seed)[part.numbers - source.first]
    is_kept = np.zeros(len(part.X), dtype=np.bool_)
    for label, limit in zip(labels, limits, strict=True):
        is_kept |= (part.y == label) & (numbers <= np.uint64(limit - 1))
    return part.take(is_kept), numbers[is_kept]
