"""Tests of RodeoDensity: against plain loops, against scikit-learn's KernelDensity, and what it refuses."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KernelDensity

import paper_oracle
from corral import RodeoDensity, UnknownCategoriesWarning, load_model, save_model
from corral.datasets import make_shifted_groups
from data import data_oracle
from estimators import estimators_oracle
from support.exploring import examples, problems

# Small tables often hold a row twice; tests/data/test_copies.py is about that warning.
pytestmark = pytest.mark.filterwarnings("ignore::corral.DuplicatesWarning")

SCALES = ["range", "standard", None]
UPDATES = ["simultaneous", "sequential"]


def referee(X, new_rows, *, scale, update, weights=None, beta=0.9, c0=1.0, min_bandwidth=None):
    """Log densities in the units of X and bandwidths, by plain loops."""
    X, _, weights, _ = data_oracle.merge_duplicates(X, np.zeros(len(X)), weights)
    center, width = estimators_oracle.center_and_width(X, scale, weights)
    n = paper_oracle.effective_number(X, weights)
    h0 = paper_oracle.initial_bandwidth(n, c0)
    floor = h0 / max(n, 1.0) if min_bandwidth is None else min_bandwidth
    rows = (X - center) / width
    distances = [
        paper_oracle.rodeo(rows, x, h0=h0, floor=floor, beta=beta, update=update, weights=weights)
        for x in (new_rows - center) / width
    ]
    log_volume = sum(math.log(width_j) for width_j in width)
    return [log_p - log_volume for _, log_p in distances], [h for h, _ in distances]


# Against the plain loops


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("scale", SCALES)
@examples(25)
@given(problem=problems(), weighted=st.booleans(), seed=st.integers(0, 2**32))
def test_agrees_with_the_plain_loops(scale, update, problem, weighted, seed):
    X, _, new_rows = problem
    choice = np.random.default_rng(seed).choice
    weights = choice([0.25, 0.6, 1.0, 2.0, 7.5], size=len(X)) if weighted else None
    density = RodeoDensity(scale=scale, update=update).fit(X, sample_weight=weights)
    log_p, h = referee(X, new_rows, scale=scale, update=update, weights=weights)
    assert_allclose(density.local_bandwidths(new_rows), h, rtol=1e-12)
    assert_allclose(density.score_samples(new_rows), log_p, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "parameters", [{"beta": 0.5}, {"c0": 0.3}, {"min_bandwidth": 0.25}, {"beta": 0.7, "min_bandwidth": 1e-4}]
)
def test_parameters_reach_the_algorithm(parameters):
    X = np.random.default_rng(0).normal(size=(12, 2)) * [1, 0.05]
    log_p, h = referee(X, X, scale=None, update="simultaneous", **parameters)
    density = RodeoDensity(scale=None, **parameters).fit(X)
    assert_allclose(density.local_bandwidths(X), h, rtol=1e-12)
    assert_allclose(density.score_samples(X), log_p, rtol=1e-9)
    changed = RodeoDensity(scale=None).fit(X).local_bandwidths(X) != density.local_bandwidths(X)
    assert changed.any()  # or the parameter would not have mattered here


def test_score_is_the_total_log_likelihood():
    X = np.random.default_rng(0).normal(size=(30, 2))
    density = RodeoDensity().fit(X)
    assert density.score(X[:7]) == pytest.approx(sum(density.score_samples(X[:7]).tolist()), rel=1e-12)


# Against KernelDensity, which has one bandwidth


@pytest.mark.parametrize(
    ("d", "scale", "weighted"), [(1, "range", True), (2, "standard", False), (30, None, True)]
)
def test_equals_kernel_density_when_nothing_may_shrink(d, scale, weighted):
    rng = np.random.default_rng(d)
    spread = rng.uniform(0.1, 10, d)
    X, new_rows = rng.normal(5, spread, (80, d)), rng.normal(5, 2 * spread, (40, d))
    weights = rng.uniform(0.1, 3, 80) if weighted else None
    h0 = paper_oracle.initial_bandwidth(paper_oracle.effective_number(X, weights))
    center, width = estimators_oracle.center_and_width(X, scale, weights)
    peer = KernelDensity(bandwidth=h0).fit((X - center) / width, sample_weight=weights)
    expected = peer.score_samples((new_rows - center) / width) - np.log(width).sum()
    # At h0 itself and above it, however far: a floor only says where to stop.
    for floor in (h0, 1.5 * h0, 1e308, math.inf):
        density = RodeoDensity(scale=scale, min_bandwidth=floor).fit(X, sample_weight=weights)
        assert_allclose(density.local_bandwidths(new_rows), h0, rtol=1e-15)
        assert_allclose(density.score_samples(new_rows), expected, rtol=1e-9, atol=1e-9)


# Integrals


def integral(density, X, n_points, margin):
    """Trapezoidal sum over a box that extends the data by `margin` ranges to each side."""
    width = np.ptp(X, axis=0)
    axes = [
        np.linspace(low, high, n_points)
        for low, high in zip(X.min(axis=0) - margin * width, X.max(axis=0) + margin * width, strict=True)
    ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    p = np.exp(density.score_samples(grid.reshape(-1, X.shape[1]))).reshape(grid.shape[:-1])
    for axis in reversed(axes):
        p = np.trapezoid(p, axis, axis=-1)
    return float(p)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize(
    ("shape", "scale", "d", "low", "high"),
    [
        # Flat, so that bandwidths stay wide except near the edges: 1.00-1.07 over ten seeds.
        ("uniform", "range", 1, 0.9, 1.15),
        ("uniform", "range", 2, 0.9, 1.15),
        # Bandwidths shrink on the way from the tails to the middle: 0.97-1.03 over ten seeds.
        ("normal", "standard", 1, 0.9, 1.1),
        ("normal", "standard", 2, 0.9, 1.1),
        # In range units h0 is wide, and in the tails a bandwidth stops at about the distance to the rows:
        # there the density decays no faster than 1 / distance, which adds 0.2-0.7
        # over ten seeds.
        ("normal", "range", 1, 1.0, 1.6),
        ("normal", "range", 2, 1.0, 2.0),
    ],
)
def test_integrates_to_about_one_with_local_bandwidths(shape, scale, d, low, high, update):
    rng = np.random.default_rng(1)
    factors = np.array([1, 10])[:d]
    X = (rng.uniform(size=(300, d)) if shape == "uniform" else rng.normal(size=(300, d))) * factors
    density = RodeoDensity(scale=scale, update=update).fit(X)
    assert low < integral(density, X, 4001 if d == 1 else 121, margin=2) < high


# Sampling


def test_samples_are_rows_plus_noise_of_leave_one_out_bandwidths():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(3, 5, 20), np.repeat([0.0, 1.0], 10) + rng.normal(0, 0.03, 20)])
    weights = np.repeat([1.0, 3.0], 10)
    for w in (None, weights):
        density = RodeoDensity().fit(X, sample_weight=w)
        center, width = estimators_oracle.center_and_width(X, "range")
        share = np.full(20, 1 / 20) if w is None else w / w.sum()
        n = paper_oracle.effective_number(X, w)
        h0 = paper_oracle.initial_bandwidth(n)
        h = np.array(
            [
                paper_oracle.leave_one_out((X - center) / width, i, h0=h0, floor=h0 / n, weights=w)[0]
                for i in range(20)
            ]
        )
        assert h.min() < 0.5 * h0  # something has shrunk
        mean = share @ X
        variance = share @ (X - mean) ** 2 + share @ (h * width) ** 2
        S = density.sample(40_000, random_state=1)
        assert np.all(np.abs(S.mean(axis=0) - mean) < 5 * np.sqrt(variance / len(S)))
        fourth = ((S - mean) ** 4).mean(axis=0)
        assert np.all(np.abs(S.var(axis=0) - variance) < 5 * np.sqrt((fourth - variance**2) / len(S)))
        # Rows stay rows: variables of one sample belong together.
        covariance = (share * (X[:, 0] - mean[0])) @ (X[:, 1] - mean[1])
        error = np.sqrt(variance.prod() + covariance**2) / math.sqrt(len(S))
        assert abs(np.cov(S, rowvar=False)[0, 1] - covariance) < 5 * error


def test_seed_fixes_samples():
    density = RodeoDensity().fit(np.random.default_rng(0).normal(size=(30, 3)))
    assert density.sample().shape == (1, 3)
    assert density.sample(n_samples=np.int64(7)).shape == (7, 3)
    assert_array_equal(density.sample(7, random_state=2), density.sample(7, random_state=2))
    from_generator = density.sample(7, random_state=np.random.RandomState(2))
    assert_array_equal(density.sample(7, random_state=2), from_generator)
    assert not np.any(density.sample(7, random_state=2) == density.sample(7, random_state=3))


def test_samples_of_one_row_have_the_initial_bandwidth():
    # A row that is left out leaves nothing to learn from. A constant column keeps its own units.
    density = RodeoDensity().fit([[5.0, -3.0]])
    S = density.sample(20_000, random_state=0)
    assert_allclose(S.mean(axis=0), [5, -3], atol=5 * density.initial_bandwidth_ / math.sqrt(20_000))
    assert_allclose(S.std(axis=0), density.initial_bandwidth_, rtol=5 / math.sqrt(2 * 20_000))


@pytest.mark.parametrize("scale", SCALES)
def test_samples_of_huge_numbers_are_finite(scale):
    X = np.array([[-1e308], [0.0], [1e308]])
    assert np.all(np.isfinite(RodeoDensity(scale=scale).fit(X).sample(100, random_state=0)))


def test_impossible_number_of_samples():
    density = RodeoDensity().fit([[0.0], [1.0]])
    for n_samples in (0, -1, 2.5, math.nan, "3", True, None):
        with pytest.raises(ValueError, match=rf"n_samples must be .*, got {n_samples!r}\."):
            density.sample(n_samples)


# What is refused; test_classifier.py has the checks of rows and weights that all estimators share


def test_ranks_are_refused():
    with pytest.raises(ValueError, match=r"scale must be one of 'range', 'standard', None, got 'rank'\."):
        RodeoDensity(scale="rank").fit([[0.0], [1.0]])


def test_parameters_set_later_change_nothing_that_was_learnt(tmp_path):
    X, _ = make_shifted_groups(15, groups=(1, 2), random_state=0)
    model = RodeoDensity().fit(X)
    save_model(model, tmp_path / "density.corral")
    for fitted in (model, load_model(tmp_path / "density.corral")):
        before = fitted.sample(5, 0), fitted.score_samples(X[:3]), fitted.bandwidth_path(X[:1]).bandwidths
        fitted.set_params(update="sequential", beta=0.5, c0=2.0, min_bandwidth=0.3)
        after = fitted.sample(5, 0), fitted.score_samples(X[:3]), fitted.bandwidth_path(X[:1]).bandwidths
        for one, other in zip(before, after, strict=True):
            assert_array_equal(one, other)


def test_unknown_levels_are_told_of_once():
    density = RodeoDensity().fit(pd.DataFrame({"x": [0.1, 0.4, 0.9], "island": ["a", "b", "a"]}))
    with pytest.warns(UnknownCategoriesWarning, match="1 of 'island'") as warned:
        density.score_samples(pd.DataFrame({"x": [0.2], "island": ["c"]}))
    assert len(warned) == 1
