"""The kernel sums behind fixed bandwidths, against the formula written out."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import paper_oracle
from corral import kernels
from corral.data.tiles import ClassRows
from corral.rodeo.density import kernel_density
from support.exploring import examples


def arrange(X, w=None, tile=None):
    """The rows as the kernel reads them, in tiles of at most `tile` rows."""
    with pytest.MonkeyPatch.context() as patch:
        if tile is not None:
            patch.setattr(kernels, "TILE", tile)
        return ClassRows.arrange(X, w)


def agree(log_density, X, w, x, h):
    # An exponent is a sum of d squares, each rounded a few times; the logarithm of the sum adds little.
    expected = [paper_oracle.kernel_log_density(X, row, h, weights=w) for row in x]
    assert_allclose(log_density, expected, rtol=1e-14 + 1e-16 * X.shape[1], atol=1e-12)


@examples(60)
@given(
    n=st.integers(1, 100),
    d=st.sampled_from([1, 2, 5]),
    tile=st.sampled_from([32, 1024]),
    weights=st.sampled_from([None, "integers", "fractions"]),
    grid=st.booleans(),
    far=st.sampled_from([0.0, 1.0, 1e3, 1e6]),
    seed=st.integers(0, 2**32 - 1),
)
@example(n=33, d=1, tile=32, weights=None, grid=False, far=0.0, seed=0)  # second tile nearly all padding
@example(n=97, d=2, tile=32, weights="integers", grid=True, far=1e6, seed=0)  # a nearer row in a later tile
@example(n=1, d=1, tile=32, weights="fractions", grid=False, far=1e6, seed=0)
def test_sums_equal_the_formula(n, d, tile, weights, grid, far, seed):
    random = np.random.RandomState(seed)
    X = random.uniform(size=(n, d))
    if grid:
        X = np.round(3.0 * X) / 3.0  # ties within columns and whole rows alike
    x = np.vstack([random.uniform(size=(3, d)) + far * random.choice([-1.0, 1.0], d), X[-1:]])
    h = 10.0 ** random.uniform(-2.5, 0.5, d)
    w = {
        None: None,
        "integers": random.randint(1, 9, n).astype(float),
        "fractions": 10.0 ** random.uniform(-6, 6, n),
    }[weights]
    rows = arrange(X, w, tile)
    assert rows.tiles.shape[0] == -(-n // tile)
    agree(kernel_density(rows, x, h), X, w, x, h)


@pytest.mark.parametrize("far", [0.0, 1e6])
def test_two_hundred_variables(far):
    # A single kernel underflows by hundreds of orders of magnitude; only the log domain survives.
    random = np.random.RandomState(0)
    X, x, h = random.uniform(size=(50, 200)), random.uniform(size=(4, 200)), random.uniform(0.02, 0.1, 200)
    x = x + far
    agree(kernel_density(arrange(X, None, 32), x, h), X, None, x, h)
    assert (kernel_density(arrange(X, None, 32), x, h) < -1000.0).all()


def test_rows_far_apart_in_different_tiles():
    # The running minimum falls by more than any exponential can express, in either order of the tiles.
    X = np.concatenate([np.full(32, 1e5), np.full(32, 0.0), np.full(32, -1e5)])[:, np.newaxis]
    x, h = np.array([[-1e5], [0.0], [1e5]]), np.array([0.5])
    log_density = kernel_density(arrange(X, None, 32), x, h)
    assert_allclose(log_density, -math.log(0.5 * math.sqrt(2.0 * math.pi)) - math.log(3.0), rtol=1e-14)


# Rows that leave themselves out


@st.composite
def samples(draw):
    """Rows of a class, weights, samples, which rows these are (or -1), and bandwidths."""
    n, d = draw(st.integers(1, 24)), draw(st.sampled_from([1, 2, 3, 5]))
    random = np.random.RandomState(draw(st.integers(0, 2**32 - 1)))
    X = random.uniform(size=(n, d))
    if draw(st.booleans()):
        X = np.round(3.0 * X) / 3.0  # ties within columns and whole rows alike
    if draw(st.booleans()):
        X[:, -1] = 0.5  # a constant
    w = {
        None: None,
        "integers": random.randint(1, 5, n).astype(float),
        "fractions": random.choice([0.25, 0.75, 1.0, 1.5, 7.0], n),
    }[draw(st.sampled_from([None, "integers", "fractions"]))]
    own = np.append(random.randint(0, n, 4), [-1, -1])
    x = X[own]
    x[-2:] += draw(st.sampled_from([0.1, 30.0, 1e6])) * random.choice([-1.0, 1.0], (2, d))
    h = 10.0 ** random.uniform(-2.5, 0.5, d)
    h[random.uniform(size=d) < 0.2] = np.inf  # takes no part
    return X, w, x, own, h


@examples(30)
@given(sample=samples(), tile=st.sampled_from([16, 1024]))
def test_each_row_leaves_itself_out(sample, tile):
    X, w, x, own, h = sample
    log_density = kernel_density(arrange(X, w, tile), x, h, own)
    weights = np.ones(len(X)) if w is None else w
    others = [np.where(np.arange(len(X)) == i, 0.0, weights) for i in own]
    expected = [paper_oracle.kernel_log_density(X, x[q], h, weights=others[q]) for q in range(6)]
    assert_allclose(log_density, expected, rtol=1e-13, atol=1e-11)


@pytest.mark.parametrize("w", [None, [1.0], [0.5]])
def test_without_any_row_the_density_is_zero(w):
    x, h = np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([0.1, 0.2])
    assert_array_equal(kernel_density(arrange(np.empty((0, 2))), x, h), [-np.inf, -np.inf])
    rows = arrange(np.array([[0.5, 0.5]]), None if w is None else np.array(w))
    alone, new = kernel_density(rows, x, h, np.array([0, -1]))
    assert alone == -np.inf
    assert np.isfinite(new)
