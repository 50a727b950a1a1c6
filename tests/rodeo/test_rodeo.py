"""Algorithms 1 and 2 on arrays, against plain loops."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import optimize

import paper_oracle
from corral import kernels, parallel
from corral.data.tiles import ClassRows
from corral.parallel import Computation
from corral.rodeo import density
from corral.rodeo.density import ClassDensity, class_log_densities
from corral.rodeo.descent import critical_ratio, rodeo, squared_factor
from corral.rodeo.path import density_path, rodeo_path
from corral.rodeo.relevance import zscores
from corral.rodeo.settings import RodeoSettings
from support.exploring import examples

UPDATES = ("simultaneous", "sequential")
Sweep = tuple[list[float], dict[int, float]]  # bandwidths after it, and |Z_j| / lambda_j of those tested
PATIENCE = 600  # seconds, for a machine on which many other programs run


def local_estimates(
    classes: list[ClassRows], x: np.ndarray, update: str, computation: Computation
) -> np.ndarray:
    """Log densities of classes, with the Rodeo on all variables."""
    densities = [
        ClassDensity(rows, RodeoSettings().grid(rows.n), np.arange(rows.n_features)) for rows in classes
    ]
    return class_log_densities(densities, x, update, computation)[0]


@contextmanager
def constants(**values: int) -> Iterator[None]:
    """Other constants of the kernels, which are sized for caches, so that small data fills many tiles."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(kernels, name, value)
        yield


# ------------------------------------------------------------------------------------------ the referee


@dataclass
class Case:
    """A class, new rows and settings: the input of both implementations."""

    X: np.ndarray
    x: np.ndarray
    weights: np.ndarray | None = None
    beta: float = 0.9
    c0: float = 1.0
    min_bandwidth: float | None = None

    def arrange(self) -> tuple[ClassRows, np.ndarray]:
        """The rows, and the bandwidths that they may come to."""
        rows = ClassRows.arrange(self.X, self.weights)
        settings = RodeoSettings(beta=self.beta, c0=self.c0, min_bandwidth=self.min_bandwidth)
        return rows, settings.grid(rows.n)


# Doubles decide |Z_j| > lambda_j as fractions do unless Z_j^2 and lambda_j^2 agree to this relative distance.
# Exponents are good to 1e-11 (`kernels._ROUNDING_LIMIT`), and a sum of Z_ji at the threshold loses a factor
# of sqrt(n) at most.
KNIFE_EDGE = 1e-9


def quotient(a: Fraction, b: Fraction) -> float:
    """a / b, rounded once, without the fraction in its lowest terms, which takes long to find."""
    try:
        return (a.numerator * b.denominator) / (a.denominator * b.numerator)
    except OverflowError:
        return math.inf


def referee(
    case: Case, q: int, update: str, own: int | None = None, sweeps: list[Sweep] | None = None
) -> tuple[list[float], float, float]:
    """Bandwidths and log density by plain loops, and the relative distance of the closest decision."""
    n = paper_oracle.effective_number(case.X, case.weights)
    h0 = paper_oracle.initial_bandwidth(n, case.c0)
    settings = {
        "h0": h0,
        "floor": h0 / max(n, 1.0) if case.min_bandwidth is None else case.min_bandwidth,
        "beta": case.beta,
        "update": update,
        "weights": case.weights,
    }
    margins = [math.inf]
    derivative = paper_oracle._derivative

    def watched(column: Any, exponents: Any, h: float, m: Any) -> tuple[Fraction, Fraction]:
        Z_j, s2_j = derivative(column, exponents, h, m)
        n = sum(m)
        lambda2_j = s2_j * Fraction(2 * math.log(n * math.log(max(n, 16))))
        if lambda2_j > 0:
            margins.append(abs(quotient(Z_j**2, lambda2_j) - 1.0))
        return Z_j, s2_j

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper_oracle, "_derivative", watched)
        if own is None:
            h, log_density = paper_oracle.rodeo(case.X, case.x[q], sweeps=sweeps, **settings)
        else:
            h, log_density = paper_oracle.leave_one_out(case.X, own, **settings)
    return h, log_density, min(margins)


def certain(condition: bool) -> None:
    """The counterpart of `assume` for a case that is not drawn at random."""
    assert condition


def check(case: Case, update: str, own: np.ndarray | None = None, suppose: Any = certain) -> None:
    """Fail unless rows have the bandwidths, densities and sweeps of the referee at every new row."""
    rows, grid = case.arrange()
    log_density, steps = rodeo(rows, grid, case.x, update, own)
    assert log_density.shape == (len(case.x),)
    assert steps.shape == case.x.shape
    for q in range(len(case.x)):
        sweeps: list[Sweep] = []
        h, expected, margin = referee(case, q, update, None if own is None else int(own[q]), sweeps)
        suppose(margin > KNIFE_EDGE)
        if own is None:
            check_path(case, q, update, sweeps)
        # A step is a factor of at least 1.03, so this means the same step. It is not == because numpy's power
        # and Python's may differ in the last bit.
        np.testing.assert_allclose(grid[steps[q]], h, rtol=1e-14, atol=0.0)
        if expected == -math.inf:
            assert log_density[q] == -math.inf
        else:
            assert log_density[q] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def bounded(ratio: np.ndarray) -> np.ndarray:
    """Ratios on a scale from 0 to 1: where Z_ji are equal but for rounding, a ratio is nearly infinite."""
    return 1.0 - 1.0 / (1.0 + ratio)


def check_path(case: Case, q: int, update: str, sweeps: list[Sweep]) -> None:
    """Fail unless every sweep agrees with the referee, and the last bandwidths with the kernels."""
    rows, grid = case.arrange()
    x = case.x[q]
    _, steps = rodeo(rows, grid, x[np.newaxis], update)
    path = rodeo_path(rows, grid, x, update)
    np.testing.assert_array_equal(path.bandwidths[0], grid[0])
    np.testing.assert_array_equal(path.bandwidths[-1], grid[steps[0]])
    np.testing.assert_array_equal(path.n_tests, steps[0] + 1)
    assert not np.isnan(path.ratios).any()
    n = rows.n
    if n <= 1.0:  # the referee makes no sweep, the path one without a result
        assert path.ratios.tolist() == [[0.0] * x.size]
        return
    assert len(path.ratios) == len(sweeps)
    # A path knows 1 - (sum Z_ji)^2 / (n sum Z_ji^2) to 1e-14 n, below which a ratio is infinite.
    finest = math.sqrt(1e-14 * n / (n - 1.0) * squared_factor(n))
    for k, (h, ratios) in enumerate(sweeps):
        np.testing.assert_allclose(path.bandwidths[k + 1], h, rtol=1e-14, atol=0.0)
        assert np.flatnonzero(path.tested[k]).tolist() == list(ratios)
        tested, expected = path.ratios[k, path.tested[k]], np.array(list(ratios.values()))
        # Exponents are sums of squares over 2 h^2, with the rounding errors of the largest of these.
        rounding = 1e-15 * ((x - case.X) ** 2 / path.bandwidths[k + 1] ** 2).max()
        np.testing.assert_allclose(bounded(tested), bounded(expected), atol=finest + rounding)
        assert not path.ratios[k, ~path.tested[k]].any()


# -------------------------------------------------------------------------------- algorithm 1, at random

lattice = st.integers(-4, 4).map(lambda k: k / 4)  # few values, so ties everywhere
smooth = st.floats(-1.0, 1.0, allow_subnormal=False)
integer_weights = st.integers(1, 5).map(float)
fraction_weights = st.one_of(
    st.integers(1, 24).map(lambda k: k / 8), st.floats(0.05, 3.0), st.sampled_from([0.1, 0.2, 0.3])
)


@st.composite
def cases(
    draw: Callable[..., Any],
    *,
    rows: tuple[int, int] = (3, 12),
    columns: tuple[int, int] = (1, 4),
    kinds: tuple[str, ...] = ("lattice", "smooth"),
    column_scales: tuple[float, ...] = (1.0,),
    distinct: int | None = None,
    position: str = "any",
    weights: st.SearchStrategy[float] | None = None,
    floor: bool = False,
) -> Case:
    """A class of rows by columns, and two new rows.

    Columns have the given kinds and scales. `distinct` rows are drawn and then repeated. The position of a
    new row is "any", "at row" (it equals a row), or 1e6 scales away in one ("far in one") or all columns
    ("far in all").
    """
    n, d = draw(st.integers(*rows)), draw(st.integers(*columns))
    n_drawn, n_new = distinct or n, 2
    table = np.empty((n_drawn + n_new, d))
    size = np.empty(d)
    for j in range(d):
        kind = draw(st.sampled_from(kinds))
        value = lattice if kind in ("lattice", "constant") else smooth
        size[j] = draw(st.sampled_from(column_scales))
        table[:, j] = draw(st.lists(value, min_size=len(table), max_size=len(table)))
        if kind == "constant":
            table[:n_drawn, j] = table[0, j]
    table *= size
    X, x = table[:n_drawn], table[n_drawn:]
    if distinct is not None:
        X = X[draw(st.lists(st.integers(0, distinct - 1), min_size=n, max_size=n))]
    if position == "at row":
        x = X[draw(st.lists(st.integers(0, n - 1), min_size=n_new, max_size=n_new))]
    elif position.startswith("far"):
        far = np.zeros(d, dtype=bool)
        far[draw(st.integers(0, d - 1)) if position == "far in one" else slice(None)] = True
        signs = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=d, max_size=d)))
        x = x + 1e6 * size * signs * far
    return Case(
        X=X,
        x=x,
        weights=None if weights is None else np.array(draw(st.lists(weights, min_size=n, max_size=n))),
        beta=draw(st.sampled_from([0.5, 0.7, 0.8, 0.9, 0.95, 0.97])),
        c0=draw(st.sampled_from([0.25, 1.0, 1.5, 4.0])),
        min_bandwidth=draw(st.floats(1e-3, 1.5)) if floor else None,
    )


CASES = {
    "ties": cases(kinds=("lattice",), columns=(1, 5)),
    "smooth": cases(kinds=("smooth",), rows=(8, 24), columns=(1, 3)),
    "constant columns": cases(kinds=("constant", "constant", "lattice", "smooth"), columns=(2, 5)),
    "duplicated rows": cases(rows=(6, 20), distinct=4),
    "one distinct row": cases(rows=(2, 20), distinct=1),
    "far in one column": cases(position="far in one"),
    "far in all columns": cases(position="far in all"),
    "far from ties": cases(position="far in all", kinds=("lattice", "constant"), distinct=4),
    "one row": cases(rows=(1, 1)),
    "two rows": cases(rows=(2, 2)),
    "one column": cases(rows=(2, 30), columns=(1, 1)),
    "fewer rows than columns": cases(rows=(2, 5), columns=(6, 20)),
    "mixed scales": cases(column_scales=(1e-3, 1.0, 1e6), columns=(2, 5)),
    "mixed scales, at a row": cases(column_scales=(1e-3, 1e6), columns=(2, 5), position="at row"),
    "mixed scales, far": cases(column_scales=(1e-3, 1.0, 1e6), columns=(2, 4), position="far in one"),
    "at a row": cases(position="at row", kinds=("lattice", "smooth", "constant")),
    "integer weights": cases(weights=integer_weights),
    "fractional weights": cases(weights=fraction_weights, rows=(1, 10)),
    "weights, far": cases(weights=fraction_weights, position="far in one", rows=(1, 10)),
    "given floor": cases(floor=True),
}


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("kind", CASES)
@examples(6)
@given(data=st.data())
def test_agrees_with_referee(kind: str, update: str, data: st.DataObject) -> None:
    check(data.draw(CASES[kind]), update, suppose=assume)


LEAVE_ONE_OUT = {
    "rows": cases(rows=(1, 10), kinds=("lattice", "smooth", "constant")),
    "duplicates": cases(rows=(2, 12), distinct=3),
    "integer weights": cases(rows=(1, 8), weights=integer_weights),
    "fractional weights": cases(rows=(1, 8), weights=fraction_weights),
    "mixed scales": cases(rows=(2, 8), column_scales=(1e-3, 1e6), columns=(2, 4)),
}


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("kind", LEAVE_ONE_OUT)
@examples(10)
@given(data=st.data())
def test_leave_one_out_agrees_with_referee(kind: str, update: str, data: st.DataObject) -> None:
    case = data.draw(LEAVE_ONE_OUT[kind])
    n = len(case.X)
    own = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3)))
    check(replace(case, x=case.X[own]), update, own, suppose=assume)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
def test_agrees_with_referee_on_a_sample(weighted: bool, update: str) -> None:
    # What the strategies rarely draw: enough rows that informative variables shrink far, others stop early.
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(0.5, 0.02, 60), rng.exponential(0.1, 60), rng.uniform(0, 1, (60, 3))])
    weights = rng.integers(1, 4, 60) / 2 if weighted else None
    case = Case(X, np.vstack([[0.5, 0.1, 0.5, 0.5, 0.5], rng.uniform(0, 1, 5)]), weights)
    _, steps = rodeo(*case.arrange(), case.x, update)
    assert steps[0, 0] > 30 > steps[0, 1] > 15 > steps[0, 2:].max()
    check(case, update)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize(("n", "far"), [(1, 0.0), (4, 0.0), (4, 1e6)])
def test_a_thousand_columns(n: int, far: float, update: str) -> None:
    # Far away, exponents are 1e15, of which all but differences between rows is common.
    rng = np.random.default_rng(n)
    X = np.column_stack([rng.integers(0, 3, (n, 500)) / 8, rng.normal(0, 0.3, (n, 490)), np.ones((n, 10))])
    x = far + np.vstack([X[0] + rng.normal(0, 0.01, 1000), rng.normal(0, 0.3, 1000)])
    case = Case(X, x, beta=0.6, min_bandwidth=0.1)
    _, steps = rodeo(*case.arrange(), x, update)
    assert n == 1 or far or 0 < steps.mean() < steps.max()
    check(case, update)


# ----------------------------------------------------------------------------------- the path, sweep by sweep


def test_path_over_some_of_the_variables() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(0.5, 0.05, (60, 3))
    rows, grid = Case(X, X).arrange()
    variables = np.array([0, 2])
    density_of_class = ClassDensity(rows.select(variables), grid, variables)
    path = density_path(density_of_class, X[0] + 0.01, "simultaneous")
    _, h = density_of_class.estimate(X[:1] + 0.01, "simultaneous")
    np.testing.assert_array_equal(path.bandwidths[-1], h[0])
    assert path.tested[0].tolist() == [True, False, True]
    assert path.n_tests[1] == 0
    assert not path.at_floor.any()


# ------------------------------------------------------------------------------------- tiles and batches


def many_tiles(seed: int, n: int, d: int = 3, weighted: bool = False) -> Case:
    """Unsorted rows and new rows that stop at different sweeps, some of them far away."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(0, 0.05, n), rng.integers(0, 3, n) / 4, rng.uniform(-1, 1, (n, d - 2))])
    x = rng.normal(0, 0.3, (7, d))
    x[1] = X[-1]
    x[2] = X[0] + 0.01
    x[4, 0] = 1e6
    x[5] = [30.0] * d  # so far that weights need a shift, so near that several rows have some
    return Case(X, x, rng.integers(1, 7, n) / 2 if weighted else None)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("left_out", [False, True], ids=["new rows", "rows left out"])
@pytest.mark.parametrize(("n", "weighted"), [(33, False), (64, True), (70, False), (70, True)])
def test_many_tiles_agree_with_referee(n: int, weighted: bool, left_out: bool, update: str) -> None:
    # 2 to 5 tiles; the last is full, or holds one row, or some.
    case = many_tiles(n, n, weighted=weighted)
    own = np.array([0, 15, 16, 31, 32, n - 1, 20]) if left_out else None  # ends of tiles among them
    if own is not None:
        case = replace(case, x=case.X[own])
    with constants(TILE=16 if n == 70 else 32, _LARGE=0, _BATCH=3):
        assert case.arrange()[0].tiles.shape[0] == {33: 2, 64: 2, 70: 5}[n]
        check(case, update, own)


@pytest.mark.parametrize("update", UPDATES)
@examples(20)
@given(data=st.data())
def test_numbers_do_not_depend_on_batches_or_chunks(update: str, data: st.DataObject) -> None:
    n, batch = data.draw(st.integers(1, 200)), data.draw(st.integers(1, 9))
    case = many_tiles(data.draw(st.integers(0, 99)), n, d=4, weighted=data.draw(st.booleans()))
    own = None
    if data.draw(st.booleans()):
        own = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=7, max_size=7)))
        case.x = case.X[own]
    cuts = sorted(data.draw(st.lists(st.integers(0, 7), max_size=3)))
    order = np.array(data.draw(st.permutations(range(7))))
    with constants(TILE=32):
        rows, grid = case.arrange()
        with constants(_LARGE=10**9):  # one new row at a time
            alone = rodeo(rows, grid, case.x, update, own)
        with constants(_LARGE=0, _BATCH=batch):
            together = rodeo(rows, grid, case.x[order], update, None if own is None else own[order])
            pieces = [
                rodeo(rows, grid, case.x[start:end], update, None if own is None else own[start:end])
                for start, end in zip([0, *cuts], [*cuts, 7], strict=True)
            ]
    for k in range(2):
        np.testing.assert_allclose(together[k], alone[k][order], rtol=1e-10, atol=1e-10)
        joined = np.concatenate([piece[k] for piece in pieces])
        np.testing.assert_allclose(joined, alone[k], rtol=1e-10, atol=1e-10)


@examples(30)
@given(n=st.integers(1, 150), tile=st.sampled_from([16, 32, 48, 1024]), weighted=st.booleans())
def test_rows_survive_the_cutting_into_tiles(n: int, tile: int, weighted: bool) -> None:
    case = many_tiles(n, n, weighted=weighted)
    with constants(TILE=tile):
        rows, _ = case.arrange()
    n_tiles, d, size = rows.tiles.shape
    assert size <= tile
    assert size % kernels.LANES == 0
    assert n <= n_tiles * size < n + n_tiles * kernels.LANES  # hardly more padding than the lanes need
    which = np.random.default_rng(0).permutation(n)
    np.testing.assert_array_equal(rows.take(which), case.X[which])
    padding = rows.tiles.transpose(0, 2, 1).reshape(-1, d)[n:]
    np.testing.assert_array_equal(padding, np.broadcast_to(case.X[0], padding.shape))
    weights = np.ones(n) if case.weights is None else case.weights / case.weights.max()
    np.testing.assert_allclose(rows.root.reshape(-1)[:n] ** 2, weights, rtol=1e-15)
    assert not rows.root.reshape(-1)[n:].any()


# -------------------------------------------------------------------- decisions at the edge of the threshold


def normalised(weights: np.ndarray) -> np.ndarray:
    """Weights that sum to the effective number of rows."""
    return weights * (weights.sum() / (weights @ weights))


def statistic(offsets: np.ndarray, h: float, weights: np.ndarray, j: int) -> float:
    """(sum Z_ji)^2 / sum Z_ji^2 of variable j where all bandwidths are h."""
    scaled = (offsets / h) ** 2
    Z = np.exp(-0.5 * scaled.sum(axis=1)) * (scaled[:, j] - 1.0)
    return float((weights @ Z) ** 2 / (weights @ Z**2))


def crossing(function: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Where function, above the target at one end and below it at the other, crosses it."""
    return optimize.bisect(lambda t: function(t) - target, low, high, xtol=1e-300)


def edge(seed: int, weighted: bool) -> tuple[Callable[[float], Case], int, float]:
    """A class with one row that moves, so that one decision can be brought as near to its edge as wanted.

    Returns the case for a relative distance of the statistic from its critical value, the variable that it is
    about and the sweep in which it comes.
    """
    rng = np.random.default_rng(seed)
    n, d, beta = int(rng.integers(3, 30)), int(rng.integers(1, 4)), 0.9
    weights = normalised(rng.integers(1, 9, n) / 4 if weighted else np.ones(n))
    h0 = paper_oracle.initial_bandwidth(weights.sum())
    critical = critical_ratio(weights.sum()).item()
    while True:
        X = rng.normal(0, rng.uniform(0.1, 1.5), (n, d)) * h0
        k = int(rng.integers(0, 4))
        h = h0 * beta**k
        j = int(rng.integers(d))

        def moved(t: float, X: np.ndarray = X, j: int = j) -> np.ndarray:
            Y = X.copy()
            Y[0, j] = t
            return Y

        def ratio_at(t: float, h: float = h, j: int = j, moved: Callable[..., Any] = moved) -> float:
            return statistic(moved(t), h, weights, j)

        grid = np.linspace(-3 * h, 3 * h, 61)
        values = np.array([ratio_at(t) for t in grid])
        crossings = np.flatnonzero((values[:-1] < critical) != (values[1:] < critical))
        if not crossings.size:
            continue
        i = crossings[0]
        ends = float(grid[i]), float(grid[i + 1])
        t = crossing(ratio_at, critical, *ends)
        # All variables must still be active in sweep k, or bandwidths would not be equal.
        earlier = [statistic(moved(t), h0 * beta**s, weights, v) for s in range(k) for v in range(d)]
        if all(value > 1.001 * critical for value in earlier):
            break

    def case(distance: float) -> Case:
        t = crossing(ratio_at, critical * (1.0 + distance), *ends)
        # A floor right below the next bandwidth: the outcome of this decision is the result.
        floor = 0.999 * h * beta
        return Case(moved(t), np.zeros((1, d)), weights if weighted else None, beta, 1.0, floor)

    return case, j, k


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
def test_close_decisions_are_exact(weighted: bool, update: str) -> None:
    # Rough weights are wrong by up to 1e-7, so these distances are beyond them, and not beyond doubles.
    for seed in range(6):
        build, j, k = edge(seed, weighted)
        for distance in (-1e-7, -1e-8, -1e-9, 1e-9, 1e-8, 1e-7):
            case = build(distance)
            rows, grid = case.arrange()
            _, steps = rodeo(rows, grid, case.x, update)
            h, _, margin = referee(case, 0, update)
            np.testing.assert_allclose(grid[steps[0]], h, rtol=1e-14)
            if update == "simultaneous":
                assert margin < 1e-5  # as close as was meant
                assert steps[0, j] == k + (distance > 0)


@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("rough_is", ["too large", "too small"])
def test_decision_where_rough_weights_err_most(rough_is: str, weighted: bool) -> None:
    # Many rows near the new row have Z_ji < 0, many others Z_ji > 0, and their sums nearly cancel, which
    # magnifies the errors of the rough weights. Both groups stand where the error is worst, one where it is
    # positive, one where it is negative.
    n = 1000
    weights = normalised(np.resize([0.5, 1.5], n) if weighted else np.ones(n))
    h0 = paper_oracle.initial_bandwidth(weights.sum())
    critical = critical_ratio(weights.sum()).item()
    sign = 1.0 if rough_is == "too large" else -1.0

    def worst(exponents: np.ndarray, sign: float) -> float:
        errors = [sign * (kernels._exp_rough(x) / math.exp(x) - 1.0) for x in exponents]
        assert max(errors) > 0.8e-7
        return h0 * math.sqrt(-2.0 * exponents[np.argmax(errors)])

    near, away = worst(np.linspace(-0.3, -0.01, 2001), -sign), worst(np.linspace(-2.0, -1.2, 4001), sign)

    def ratio(n_near: int, t: float, exponential: Callable[[float], float] = math.exp) -> float:
        scaled = (np.array([0.0, near, away, t]) / h0) ** 2
        Z = np.array([exponential(-0.5 * s) for s in scaled]) * (scaled - 1.0)
        at_place = np.bincount(np.repeat(range(4), [1, n_near, n - 2 - n_near, 1]), weights)
        assert at_place @ Z > 0.0
        return float((at_place @ Z) ** 2 / (at_place @ Z**2))

    # The first row is the nearest, from which exponents are counted; the last does the fine adjustment.
    low, high = 0.0, math.sqrt(3.0) * h0
    n_near = next(k for k in range(n) if ratio(k, low) < critical)
    assert ratio(n_near, high) > critical
    fooled = 0
    for distance in (-7e-7, -1e-8, 1e-8, 7e-7):
        t = crossing(lambda t: ratio(n_near, t), critical * (1.0 + distance), low, high)
        fooled += (ratio(n_near, t, kernels._exp_rough) > critical) != (distance > 0)
        X = np.repeat([[0.0], [near], [away], [t]], [1, n_near, n - 2 - n_near, 1], axis=0)
        case = Case(X, np.zeros((1, 1)), weights if weighted else None, min_bandwidth=0.85 * h0)
        rows, grid = case.arrange()
        _, steps = rodeo(rows, grid, case.x, "simultaneous")
        h, _, _ = referee(case, 0, "simultaneous")
        assert grid[steps[0, 0]] == pytest.approx(h[0], rel=1e-14)
        assert steps[0, 0] == (distance > 0)
    assert fooled == 2  # rough weights alone would decide both cases on one side wrongly


# ------------------------------------------------------------------------------------ formulas of the module


@pytest.mark.parametrize("n", [2.0, 3.0, 7.5, 15.0, 16.0, 17.0, 40.0, 1e3, 1e6])
def test_critical_ratio_at_the_threshold(n: float) -> None:
    # One value -a and n - 1 values 1: mean and variance are simple, a is where |Z| = lambda.
    L = 2.0 * math.log(n * math.log(max(n, 16.0)))

    def squares(a: float) -> tuple[float, float]:
        mean = (n - 1.0 - a) / n
        variance = ((n - 1.0) * (1.0 - mean) ** 2 + (a + mean) ** 2) / (n - 1.0)
        return mean**2, variance / n * L

    a = crossing(lambda a: squares(a)[0] - squares(a)[1], 0.0, -1.0, n - 1.0)
    ratio = (n - 1.0 - a) ** 2 / (n - 1.0 + a**2)
    assert critical_ratio(np.array([n]))[0] == pytest.approx(ratio, rel=1e-9)


@given(one=st.floats(0.0, 1.0), more=st.one_of(st.floats(1.001, 1e9), st.integers(2, 10**6).map(float)))
def test_equal_derivatives_shrink_unless_there_is_one_row(one: float, more: float) -> None:
    # By Cauchy-Schwarz the ratio is at most n, and it is n where all are equal.
    assert critical_ratio(np.array([one]))[0] > 1.0 >= one
    assert 1.0 < critical_ratio(np.array([more]))[0] < more


grids = st.tuples(
    st.floats(1e-3, 1e3), st.one_of(st.floats(0.05, 0.98), st.sampled_from([0.5, 0.9])), st.floats(1e-6, 3.0)
)


@examples(200)
@given(grid=grids)
def test_bandwidth_grid(grid: tuple[float, float, float]) -> None:
    c0, beta, ratio = grid
    h0 = paper_oracle.initial_bandwidth(50, c0)
    floor = h0 * ratio
    h = RodeoSettings(beta=beta, c0=c0, min_bandwidth=floor).grid(50)
    assert h[0] == h0  # even where the floor is higher
    assert (h[1:] >= floor).all()
    np.testing.assert_allclose(h[1:] / h[:-1], beta, rtol=1e-13)
    np.testing.assert_allclose(h, [h0 * beta**k for k in range(len(h))], rtol=1e-15)
    assert (h0 * beta ** np.arange(len(h) + 1))[-1] < floor  # no further step was possible


@examples(200)
@given(grid=grids, k=st.integers(0, 40))
def test_bandwidth_may_be_equal_to_the_floor(grid: tuple[float, float, float], k: int) -> None:
    c0, beta, _ = grid
    powers = paper_oracle.initial_bandwidth(50, c0) * beta ** np.arange(k + 1)
    h = RodeoSettings(beta=beta, c0=c0, min_bandwidth=powers[k]).grid(50)
    np.testing.assert_array_equal(h, powers)


@given(n=st.floats(0.0, 1e9), c0=st.floats(0.01, 100.0))
def test_initial_and_smallest_bandwidth(n: float, c0: float) -> None:
    h0 = RodeoSettings(c0=c0).initial_bandwidth(n)
    assert h0 == paper_oracle.initial_bandwidth(n, c0)
    assert h0 > 0.0
    assert RodeoSettings(c0=c0).floor(n) == pytest.approx(h0 / n if n > 1.0 else h0, rel=1e-15)


@given(h=st.lists(st.floats(0.01, 10.0), min_size=1, max_size=30))
def test_zscores(h: list[float]) -> None:
    bandwidths = np.array(h)
    assume(bandwidths.std() > 1e-9 or len(set(h)) == 1)
    np.testing.assert_allclose(zscores(bandwidths), paper_oracle.zscores(h), rtol=1e-6, atol=1e-6)


def test_zscores_of_bandwidths_equal_but_for_rounding_are_zero() -> None:
    bandwidths = 0.3 * (1.0 + np.array([0, 1, 2, 3]) * 2.0**-52)
    assert bandwidths.std() > 0.0
    np.testing.assert_array_equal(zscores(bandwidths), np.zeros(4))


# ------------------------------------------------------------------------------------------- many classes


def test_threads_share_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = set()
    meeting = threading.Barrier(2)

    def watched(*arguments: Any) -> tuple[np.ndarray, np.ndarray]:
        if threading.get_ident() not in threads:
            threads.add(threading.get_ident())
            meeting.wait(PATIENCE)  # broken unless another thread comes
        return rodeo(*arguments)

    monkeypatch.setattr(density, "rodeo", watched)
    cases = [many_tiles(seed, n, d=4) for seed, n in ((1, 40), (2, 1), (3, 90))]
    x = np.repeat(np.vstack([case.x for case in cases]), 8, axis=0)
    local_estimates([case.arrange()[0] for case in cases], x, "simultaneous", Computation(2))
    assert len(threads) == 2


@examples(100)
@given(
    n_new=st.integers(0, 500),
    n_rows=st.integers(1, 30),
    n_jobs=st.sampled_from([None, 1, 2]),
    limit=st.integers(1, 20_000),
)
def test_every_new_row_is_in_one_chunk(n_new: int, n_rows: int, n_jobs: int | None, limit: int) -> None:
    rows, _ = Case(np.zeros((n_rows, 2)), np.zeros((1, 2))).arrange()
    x = np.arange(2.0 * n_new).reshape(n_new, 2)
    chunks = []

    def pretended(rows: Any, grid: Any, x: np.ndarray, *_: Any) -> tuple[np.ndarray, np.ndarray]:
        chunks.append(x[:, 0])
        return x[:, 1], np.zeros(x.shape, dtype=np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "_CHUNK", limit)
        patch.setattr(density, "rodeo", pretended)
        log_density = local_estimates([rows], x, "simultaneous", Computation(n_jobs))
    np.testing.assert_array_equal(log_density[:, 0], x[:, 1])
    np.testing.assert_array_equal(np.sort(np.concatenate([*chunks, []])), x[:, 0])
    for chunk in chunks:
        assert len(chunk) == 1 or len(chunk) * rows.tiles.size <= limit


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("weight", [None, 1.0, 0.4])
def test_no_row_is_left(weight: float | None, n: int, update: str) -> None:
    weights = None if weight is None else np.full(n, weight)
    rows, grid = Case(np.ones((n, 3)), np.empty((0, 3)), weights, min_bandwidth=0.1).arrange()
    own = np.zeros(2, dtype=np.int64) if n else None
    log_density, steps = rodeo(rows, grid, np.ones((2, 3)), update, own)
    np.testing.assert_array_equal(log_density, [-np.inf, -np.inf])
    np.testing.assert_array_equal(steps, np.zeros((2, 3)))
    assert grid[0] == paper_oracle.initial_bandwidth(float(n))


# ------------------------------------------------------------------------------------ memory, interruption


@pytest.mark.parametrize("update", UPDATES)
def test_memory_does_not_grow_with_rows_times_columns(update: str) -> None:
    rng = np.random.default_rng(0)
    rows, grid = Case(rng.uniform(0, 1, (8000, 100)), np.zeros((1, 100)), np.linspace(1, 2, 8000)).arrange()
    x = rng.uniform(0, 1, (8, 100))
    rodeo(rows, grid, x[:1], update)
    tracemalloc.start()
    try:
        rodeo(rows, grid, x, update)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    n_batch = max(kernels._BATCH, 1)
    assert peak < 8 * (2 * n_batch + 6) * 8192 + 48 * grid.size * 100 + 100_000
    assert peak < rows.tiles.nbytes / 4


@pytest.mark.parametrize("update", UPDATES)
def test_slowest_chunk_is_short(update: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # No signal is handled while a kernel runs, so a call of it must be short where it has most to do: at a
    # point mass, where every bandwidth falls to the floor.
    class FirstChunkDoneError(Exception):
        pass

    seconds = []

    def watched(*arguments: Any) -> None:
        start = time.thread_time()  # of this thread only: other load does not count
        rodeo(*arguments)
        seconds.append(time.thread_time() - start)
        raise FirstChunkDoneError

    few = Case(np.zeros((20, 50)), np.zeros((1, 50)))
    rodeo(*few.arrange(), few.x, update)  # compiled
    rows, _ = Case(np.zeros((20_000, 50)), few.x).arrange()
    monkeypatch.setattr(density, "rodeo", watched)
    for _ in range(3):  # where other programs use the caches, the same work takes longer
        with pytest.raises(FirstChunkDoneError):
            local_estimates([rows], np.zeros((1000, 50)), update, Computation(1))
        if seconds[-1] < 1.5:
            break
    assert min(seconds) < 1.5


INTERRUPTED = """
    import signal
    import sys
    import numpy as np
    from corral.data.tiles import ClassRows
    from corral.parallel import Computation
    from corral.rodeo.density import ClassDensity, class_log_densities
    from corral.rodeo.settings import RodeoSettings

    signal.signal(signal.SIGINT, signal.default_int_handler)  # off where a shell runs the tests with "&"
    rng = np.random.default_rng(0)
    X = rng.normal(0, 0.1, (20_000, 50))
    x = X[rng.integers(0, len(X), 20_000)]
    few, many = (
        ClassDensity(ClassRows.arrange(X[:n], None), RodeoSettings().grid(n), np.arange(50))
        for n in (20, 20_000)
    )
    for kind in sys.argv[1:]:
        update, n_jobs = kind.split()
        class_log_densities([few], x[:2], update, Computation(int(n_jobs)))  # compiled, threads started
        print("begin", kind, flush=True)
        try:
            class_log_densities([many], x, update, Computation(int(n_jobs)))  # takes minutes
        except KeyboardInterrupt:
            print("interrupted", kind, flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send to another process")
def test_interrupt_is_quick() -> None:
    kinds = ["simultaneous 1", "simultaneous 2", "sequential 1"]
    command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED), *kinds]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        watched = psutil.Process(process.pid)

        def seconds() -> float:
            usage = watched.cpu_times()
            return usage.user + usage.system

        try:
            for kind in kinds:
                assert process.stdout.readline() == f"begin {kind}\n"
                begun = seconds()
                while seconds() < begun + 0.2:  # until it is in the middle of its work
                    time.sleep(0.01)
                start, used = time.monotonic(), seconds()
                process.send_signal(signal.SIGINT)
                assert process.stdout.readline() == f"interrupted {kind}\n"
                # The rest of a chunk takes less than a second, so two leave room for a slow machine. Where
                # other processes keep the cores busy it waits for them as well, which is not its fault, so
                # the time it has worked itself counts if it is less.
                assert min(time.monotonic() - start, seconds() - used) < 2.0
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
