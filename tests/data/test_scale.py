"""Tests of corral.data.scaling: each kind against its plain formula, then columns of extreme numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from corral.data.scaling import SortedColumns, learn_scale
from estimators import estimators_oracle

KINDS = ["range", "standard", "rank", None]
LARGEST = 1e100  # scaled values are clipped to this, as the module says

# Columns on which a careless formula overflows, divides by zero or rounds a spread to nothing.
EXTREMES = {
    "opposite ends of the doubles": [1e308, -1e308],
    "with zero between": [1.7e308, 0.0, -1.7e308],
    "huge and alike": [1e308, 1e308, 1e308],
    "huge neighbours": [1e308, math.nextafter(1e308, math.inf)],
    "huge and tiny": [0.0, 1e-300, 1e300],
    "neighbours of one": [1.0, math.nextafter(1.0, 2.0), 1.0],
    "zero and the smallest double": [0.0, 5e-324],
    "two smallest doubles apart": [0.0, 1e-323],
    "three smallest doubles apart": [0.0, 1.5e-323],
    "smallest doubles in the middle of a column": [0.0, 0.0, 5e-324, 1e-323],
    "subnormal": [1e-320, 2e-320, 3e-320],
    "subnormal, both signs": [-1e-310, 2e-310, 0.0],
    "smallest normal": [2.2250738585072014e-308, 4e-308],
    "constant": [3.0, 3.0, 3.0],
    "zero": [0.0, 0.0],
    "one row": [-7.5],
}


def column(values):
    return np.array(values, dtype=float).reshape(-1, 1)


def transform(x, kind, new_rows=None, weights=None):
    """Learn a scale from one column and scale new rows (the column itself by default)."""
    scale = learn_scale(column(x), None if weights is None else np.array(weights, dtype=float), kind)
    return scale.transform(column(x if new_rows is None else new_rows))[:, 0]


def plain(X, kind, weights, new_rows):
    """The scaled new rows by the formulas of the documentation."""
    if kind != "score":
        return estimators_oracle.scaling_function(X, kind, weights)(new_rows)
    scores, scaled = (
        norm.ppf(estimators_oracle.scaling_function(X, "rank", weights)(rows)) for rows in (X, new_rows)
    )
    return scaled - np.average(scores, axis=0, weights=weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [*KINDS, "score"])
def test_plain_formula(kind, weighted):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal([0, 50, -1], [1, 20, 0.1], size=(40, 3)), 1)  # rounded, so that there are ties
    weights = rng.uniform(0.1, 3, size=40) if weighted else None
    new_rows = X if kind == "score" else np.vstack([X, X - 100.0, X + 0.25, X * 1e6])
    scaled = learn_scale(X, weights, kind).transform(new_rows)
    assert_allclose(scaled, plain(X, kind, weights, new_rows), rtol=1e-12, atol=1e-12)


def test_transform_leaves_its_argument_alone():
    X = np.arange(6.0).reshape(3, 2)
    for kind in KINDS:
        learn_scale(X, None, kind).transform(X)
    assert_array_equal(X, np.arange(6.0).reshape(3, 2))


def test_a_large_offset_costs_no_accuracy():
    # The mean of squares less the square of the mean would lose every digit here.
    x = 1e9 + np.array([-1.0, 0.0, 1.0])
    assert_allclose(transform(x, "standard"), [-math.sqrt(1.5), 0, math.sqrt(1.5)], atol=1e-6)
    assert_array_equal(transform(x, "range"), [0, 0.5, 1])


def test_ranks_are_interpolated_and_end_with_the_column():
    x = [0, 1, 1, 5]  # midranks 1/8, 4/8 and 7/8
    new_rows = [-1e308, -1, 0, 0.25, 1, 3, 5, 6, 1e308]
    expected = [1, 1, 1, 1 + 0.75, 4, 5.5, 7, 7, 7]
    assert_array_equal(transform(x, "rank", new_rows), np.array(expected) / 8)
    assert_array_equal(transform([4, 4, 4], "rank", [3, 4, 5]), [0.5, 0.5, 0.5])


@pytest.mark.parametrize("value", [0.0, 3.0, -1e308, 1e-310])
@pytest.mark.parametrize("kind", ["range", "standard"])
def test_a_constant_column_keeps_its_width(kind, value):
    scale = learn_scale(column([value] * 7), None, kind)
    assert scale.half_width.tolist() == [0.5]
    assert scale.transform(column([value])).tolist() == [[0.0]]
    if abs(value) < 1:
        assert_allclose(scale.transform(column([value + 2.5])), [[2.5]], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@given(
    x=st.lists(st.integers(-5, 5), min_size=2, max_size=8),
    seed=st.integers(0, 2**31),
    factor=st.sampled_from([0.25, 1.0, 3.0, 1e-100]),
)
def test_weights_equal_repeated_rows(kind, x, seed, factor):
    weights = np.random.default_rng(seed).integers(1, 4, size=len(x))
    new_rows = np.linspace(-6, 6, 25)
    duplicates = transform(np.repeat(x, weights), kind, new_rows)
    # Only shares matter to a scale, so a common factor of all weights does not.
    assert_allclose(transform(x, kind, new_rows, weights * factor), duplicates, rtol=1e-9, atol=1e-9)


# Whatever is finite


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", EXTREMES)
def test_extremes_stay_finite_and_in_order(name, kind, weighted):
    x = sorted(EXTREMES[name])
    weights = np.linspace(0.3, 2.0, len(x)) if weighted else None
    for new_rows in (x, [-1.7e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1.7e308]):
        scaled = transform(x, kind, new_rows, weights)  # a warning would be an error
        assert np.all(np.abs(scaled) <= LARGEST)
        assert np.all(np.diff(scaled) >= -1e-12)


# Of columns that spread over less than a normal double can say, it is enough that they stay finite.
@pytest.mark.parametrize("name", [name for name, x in EXTREMES.items() if max(x) - min(x) > 1e-307])
def test_extremes_are_scaled_rightly(name):
    x = EXTREMES[name]
    scaled = transform(x, "range")
    assert scaled.min() == 0.0
    # A range beyond the largest double is taken to be that double.
    assert 1.0 <= scaled.max() <= (1.0 if max(x) - min(x) < math.inf else 2.0)
    standard = transform(x, "standard")
    if name not in {"huge neighbours", "neighbours of one"}:  # where the mean itself is rounded
        assert_allclose([standard.mean(), standard.std()], [0, 1], atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@given(
    x=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6),
    new_rows=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=4),
    weights=st.none() | st.lists(st.floats(1e-6, 1e6), min_size=6, max_size=6),
)
def test_every_finite_column_stays_finite_and_in_order(kind, x, new_rows, weights):
    new_rows = sorted([*x, *new_rows])
    scaled = transform(x, kind, new_rows, None if weights is None else weights[: len(x)])
    assert np.all(np.abs(scaled) <= LARGEST)
    assert np.all(np.diff(scaled) >= -1e-12)


def test_what_is_beyond_telling_apart_is_clipped():
    assert_array_equal(transform([0.0, 1.0], None, [1e99, 1e101, -1e300]), [1e99, LARGEST, -LARGEST])
    assert_array_equal(transform([0.0, 1e-300], "range", [1e-250, 1.0, -1.0]), [1e50, LARGEST, -LARGEST])


# The way back


@pytest.mark.parametrize("kind", ["range", "standard", None])
@given(x=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), new_row=st.floats(-1e6, 1e6))
def test_restore_inverts_transform(kind, x, new_row):
    scale = learn_scale(column(x), None, kind)
    there = scale.transform(column([*x, new_row]))
    # What is clipped cannot come back, and a tiny width times a far value loses that value's last digits.
    if np.abs(there).max() < LARGEST:
        back = scale.restore(there)[:, 0]
        assert_allclose(back, [*x, new_row], rtol=1e-12, atol=1e-14 * max(map(abs, [*x, new_row])) + 1e-320)


@pytest.mark.parametrize("kind", ["range", "standard"])
@pytest.mark.parametrize("name", EXTREMES)
def test_restore_inverts_transform_at_extremes(name, kind):
    x = EXTREMES[name]
    scale = learn_scale(column(x), None, kind)
    back = scale.restore(scale.transform(column(x)))[:, 0]
    assert_allclose(back, x, rtol=1e-9, atol=max(2e-323, 1e-9 * max(map(abs, x))))


def test_log_widths_are_logarithms_of_raw_widths():
    X = np.array([[0.0, 5.0, -1.0], [10.0, 5.0, -3.0]])
    assert_allclose(learn_scale(X, None, "range").log_widths, np.log([10, 1, 2]))
    assert_allclose(learn_scale(X, None, "standard").log_widths, np.log([5, 1, 1]))
    assert_array_equal(learn_scale(X, None, None).log_widths, np.zeros(3))
    wide = np.array([[-1e308], [1e308]])  # whose width overflows
    assert_allclose(learn_scale(wide, None, "range").log_widths, [math.log(1e308) + math.log(2.0)])


@pytest.mark.parametrize("seed", range(12))
def test_ranks_among_some_rows_are_those_of_a_scale_learnt_from_them(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 4)) * 10.0 ** rng.integers(-3, 3)
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = rng.poisson(0.7, 40)
    if seed % 2:
        X[rng.random(X.shape) < 0.2] = np.nan
    if seed % 3 == 0:
        X[:2, 0] = 1.7e308, -1.7e308
    weights = rng.choice([0.5, 1.0, 2.0], 40) if seed % 4 else None
    chosen = rng.random(40) < 0.8
    scaled = SortedColumns(X, weights).among(chosen)
    for kind, values in zip(("rank", "score"), scaled, strict=True):
        scale = learn_scale(X[chosen], None if weights is None else weights[chosen], kind)
        assert_allclose(values, scale.transform(X), rtol=1e-9, atol=1e-12)
