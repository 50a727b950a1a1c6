"""The exponentials inside the compiled loops, and what the loops may cost in memory and in compilation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numba import njit, types
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import _nrt_python, rtsys

from corral import kernels
from corral.data.tiles import ClassRows
from corral.rodeo.descent import rodeo
from corral.rodeo.settings import RodeoSettings

EXACT_ERROR = 4e-16
LIMIT = kernels._STRONGEST

# The loops of the kernels, reduced to the exponential. Their flags allow to reorder sums, which would turn
# (x + c) - c into x, so an exponential that were inlined into such a loop would be destroyed.


@njit(fastmath=kernels._FAST, error_model="numpy")
def exp_in_a_fast_loop(x: Any, out: Any) -> None:
    for i in range(x.size):
        out[i] = kernels._exp(x[i])


@njit(fastmath=kernels._FAST, error_model="numpy")
def exp_rough_in_a_fast_loop(x: Any, out: Any) -> None:
    for i in range(x.size):
        out[i] = kernels._exp_rough(x[i])


def relative_error(values: np.ndarray, x: np.ndarray) -> float:
    expected = np.array([math.exp(t) for t in x])
    return float(np.abs(values / expected - 1.0).max())


def arguments() -> np.ndarray:
    """The range, with more points where weights matter, at multiples of log 2 / 2 and at both ends."""
    rng = np.random.default_rng(0)
    halves = np.arange(-1700, 1701) * (0.5 * math.log(2.0))  # where one polynomial takes over from the next
    x = np.concatenate(
        [
            np.linspace(-LIMIT, LIMIT, 60_001),
            np.linspace(-40.0, 5.0, 60_001),
            rng.uniform(-1.0, 1.0, 20_000),
            halves,
            np.nextafter(halves, np.inf),
            np.nextafter(halves, -np.inf),
            [0.0, -0.0, 1e-300, -1e-300, LIMIT, -LIMIT],
        ]
    )
    return x[np.abs(x) <= LIMIT]


EXPONENTIALS = {
    "exact": (kernels._exp, exp_in_a_fast_loop, EXACT_ERROR),
    "rough": (kernels._exp_rough, exp_rough_in_a_fast_loop, kernels.ROUGH_ERROR),
}


@pytest.mark.parametrize("kind", EXPONENTIALS)
def test_exponential_in_a_fast_loop(kind: str) -> None:
    _, loop, tolerance = EXPONENTIALS[kind]
    x = arguments()
    values = np.empty_like(x)
    loop(x, values)
    # The decisions of `simultaneous` rely on a tolerance that is large enough; much too large, it costs time.
    assert 0.5 * tolerance < relative_error(values, x) <= tolerance


@pytest.mark.parametrize("x", [-LIMIT, -700.0, -1e6, -kernels.EXCLUDED, -math.inf])
@pytest.mark.parametrize("kind", EXPONENTIALS)
def test_exponential_below_its_range(kind: str, x: float) -> None:
    # What is left is positive, so that a sum of weights has a logarithm, but vanishes next to any weight.
    function, _, tolerance = EXPONENTIALS[kind]
    assert function(x) == pytest.approx(math.exp(-LIMIT), rel=tolerance, abs=0.0)


@pytest.mark.parametrize("x", [LIMIT, 700.0, 1e6, math.inf])
def test_exponential_above_its_range(x: float) -> None:
    # Large enough that the weights are found out of range, and finite.
    assert kernels._exp(x) == pytest.approx(math.exp(LIMIT), rel=EXACT_ERROR, abs=0.0)
    assert kernels._exp(x) > kernels._HIGH


# ------------------------------------------------------------------------------------ memory and compilation


GRID = RodeoSettings().grid(100)


def classes() -> list[ClassRows]:
    """A class without weights and one with."""
    X = np.random.default_rng(0).normal(0, 1, (100, 3))
    return [ClassRows.arrange(X, weights) for weights in (None, np.linspace(0.5, 4, 100))]


KERNELS = {"simultaneous": "simultaneous", "sequential": "descend"}


@njit
def allocating(n: int) -> float:
    return np.ones(n).sum()


@contextmanager
def allocations() -> Iterator[Callable[[], int]]:
    """How often compiled code has asked for memory since the beginning."""
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats().alloc
    try:
        yield lambda: rtsys.get_allocation_stats().alloc - before
    finally:
        _nrt_python.memsys_disable_stats()


@pytest.mark.parametrize("update", KERNELS)
def test_kernels_allocate_nothing(update: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, surplus = getattr(kernels, KERNELS[update]), []

    def watched(*arguments: Any) -> None:
        # numba counts every array that it is given, too
        work = [array for each in arguments if isinstance(each, tuple) for array in each]
        arrays = sum(isinstance(each, np.ndarray) for each in (*arguments, *work))
        with allocations() as so_far:
            kernel(*arguments)
            surplus.append(so_far() - arrays)

    monkeypatch.setattr(kernels, KERNELS[update], watched)
    for rows in classes():
        rodeo(rows, GRID, rows.take(np.arange(20)), update)
        rodeo(rows, GRID, rows.take(np.arange(20)), update, np.arange(20))
    assert surplus == [0] * 4
    with allocations() as so_far:
        allocating(9)
        assert so_far() > 0  # so that the line above can fail


@pytest.mark.parametrize("update", KERNELS)
def test_one_compilation_per_variant(update: str) -> None:
    # A kernel takes seconds to compile, so it must not be compiled again for a literal or another layout.
    for rows in classes():
        x = rows.take(np.arange(20))
        for samples in (x, np.asfortranarray(x), x[::2], np.tile(x, 2)[:, :3]):
            rodeo(rows, GRID, samples, update)
        rodeo(rows, GRID, x, update, np.arange(20))
        rodeo(rows, GRID, x[:1], update, np.array([7], dtype=np.int64))
    # Without weights and with them; the general loop multiplies by weights in any case.
    assert len(variants(getattr(kernels, KERNELS[update]))) == {"simultaneous": 2, "sequential": 1}[update]
    # What they call has signatures here only if this process has compiled it instead of reading the cache, as
    # it does in the first run after any change.
    compiled = [each for each in vars(kernels).values() if isinstance(each, Dispatcher)]
    assert len(compiled) > 4
    for function in compiled:
        assert len(variants(function)) <= 2, function


def variants(function: Dispatcher) -> list[Any]:
    """What a function was compiled for, less the read-only arrays of models in mapped files."""
    return [
        signature
        for signature in function.signatures
        if all(each.mutable for each in signature if isinstance(each, types.Array))
    ]
