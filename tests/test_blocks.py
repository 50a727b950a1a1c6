"""Algorithm 1 over blocks of rows gives what it gives over all rows at once."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral._core.blocks import Descent, merge_nearest, merge_sums, nearest, sweep
from corral._core.rodeo import rodeo
from corral._core.rows import ClassRows
from corral._core.settings import RodeoSettings


def whole_class(X, weights):
    """All rows in one, and the bandwidths that they may come to."""
    rows = ClassRows.arrange(X, weights)
    return rows, RodeoSettings(beta=0.8).grid(rows.measure.n)


def in_blocks(X, weights, cuts, x, update, own=None):
    """Steps and log densities from blocks that end at the cuts."""
    whole, grid = whole_class(X, weights)
    own = np.full(len(x), -1) if own is None else own
    bounds = list(itertools.pairwise([0, *cuts, len(X)]))
    blocks = [
        ClassRows.arrange(X[a:b], None if weights is None else weights[a:b], whole.measure) for a, b in bounds
    ]
    inside = [np.where((own >= a) & (own < b), own - a, -1) for a, b in bounds]
    near = merge_nearest([nearest(block, x, o) for block, o in zip(blocks, inside, strict=True)])
    descent = Descent(x, near.row, grid, whole.measure.left(whole.weight(own)), update)
    while (going := descent.going).size:
        question = descent.question()
        answers = [sweep(block, question, o[going]) for block, o in zip(blocks, inside, strict=True)]
        descent.answer(merge_sums(answers))
    return descent.log_density(), descent.steps


def some_rows(n, d, rng):
    X = rng.uniform(size=(n, d))
    X[:, 0] = rng.normal(0.5, 0.02, n)
    return X


@pytest.mark.parametrize("update", ["simultaneous", "sequential"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("left_out", [False, True])
def test_blocks_give_what_all_rows_give(update, weighted, left_out):
    rng = np.random.default_rng(0)
    X = some_rows(150, 4, rng)
    weights = rng.choice([0.5, 1.0, 3.0], 150) if weighted else None
    own = np.arange(0, 150, 10) if left_out else None
    x = X[own] if left_out else some_rows(20, 4, rng)
    expected, steps = rodeo(*whole_class(X, weights), x, update, own)
    found, found_steps = in_blocks(X, weights, [60, 61, 100], x, update, own)
    assert steps.max() > 3
    np.testing.assert_array_equal(found_steps, steps)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("distance", [1e-6, 10.0, 1e4, 1e8])
@pytest.mark.parametrize("update", ["simultaneous", "sequential"])
def test_far_queries(distance, update):
    rng = np.random.default_rng(1)
    X = some_rows(60, 3, rng)
    x = X[:5] + distance * np.array([1.0, -1.0, 0.5])
    expected, steps = rodeo(*whole_class(X, None), x, update)
    found, found_steps = in_blocks(X, None, [20, 40], x, update)
    np.testing.assert_array_equal(found_steps, steps)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-11)


@given(
    st.integers(2, 40),
    st.integers(1, 3),
    st.sampled_from(["simultaneous", "sequential"]),
    st.data(),
)
def test_ties_constants_and_small_blocks(n, d, update, data):
    """On a coarse grid rows coincide, bandwidths fall to the floor, and a block may hold one row."""
    values = st.lists(st.integers(0, 3), min_size=n * d, max_size=n * d)
    X = np.array(data.draw(values), dtype=float).reshape(n, d) / 3.0
    cuts = sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=4)))
    own = np.arange(n)
    expected, steps = rodeo(*whole_class(X, None), X, update, own)
    found, found_steps = in_blocks(X, None, cuts, X, update, own)
    np.testing.assert_array_equal(found_steps, steps)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-10)


def test_of_equally_near_rows_the_first_counts():
    X = np.array([[0.0], [1.0]])
    blocks = [ClassRows.arrange(row[np.newaxis], None) for row in X]
    near = merge_nearest([nearest(block, np.array([[0.5]])) for block in blocks])
    np.testing.assert_array_equal(near.row, [[0.0]])
