"""Subsamples of rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corral.data.subsample
from corral.data.subsample import (
    balanced_subsample,
    choose_sample,
    evenly_spaced_by_class,
    example_rows,
    proportional_subsample,
    random_rows,
)
from support.tables import labelled


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), np.repeat([0, 1, 2], [160, 125, 15])
    order = rng.permutation(300)
    return [labelled(X[positions], y[positions]) for positions in (np.arange(300), order)]


@pytest.mark.parametrize(
    ("choose", "sizes"), [(proportional_subsample, [27, 21, 10]), (balanced_subsample, [16, 16, 15])]
)
def test_random_subsamples_do_not_depend_on_the_order_of_rows(rows, choose, sizes):
    one, two = (choose(data, data.content_order(), 50, np.random.RandomState(0)) for data in rows)
    assert np.bincount(rows[0].codes[one]).tolist() == sizes
    assert_array_equal(one, np.sort(one))
    assert {row.tobytes() for row in rows[0].X[one]} == {row.tobytes() for row in rows[1].X[two]}


def test_a_sample_does_not_depend_on_the_order_of_rows(rows, monkeypatch):
    monkeypatch.setattr(corral.data.subsample, "SAMPLE_ROWS", 50)
    first, second = rows
    chosen = choose_sample(first, 15, seed=5)
    assert np.bincount(first.codes[chosen]).tolist() == [27, 21, 15]
    assert_array_equal(first.X[chosen], second.X[choose_sample(second, 15, seed=5)])
    assert not np.array_equal(chosen, choose_sample(first, 15, seed=6))


def test_equal_rows_are_drawn_one_by_one(monkeypatch):
    monkeypatch.setattr(corral.data.subsample, "SAMPLE_ROWS", 1000)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (20_000, 2)).astype(np.float64)
    y = rng.integers(0, 2, len(X))
    data = labelled(X, y)
    chosen = choose_sample(data, 30, seed=5)
    drawn = np.bincount((3 * data.X[chosen, 0] + data.X[chosen, 1]).astype(int), minlength=9)
    assert_allclose(drawn / chosen.size, np.full(9, 1 / 9), atol=0.04)
    other = labelled(X[::-1], y[::-1])
    assert_array_equal(data.X[chosen], other.X[choose_sample(other, 30, seed=5)])


def test_examples_do_not_depend_on_the_order_of_rows():
    X, weights = np.repeat(np.eye(2), 10, axis=0), np.arange(20.0)
    assert example_rows(X[:5], weights[:5], 5).tolist() == [0, 1, 2, 3, 4]
    chosen = example_rows(X, weights, 10)
    assert np.unique(chosen).size == 10
    assert_array_equal(weights[chosen], weights[::-1][example_rows(X[::-1], weights[::-1], 10)])


def test_few_rows_are_all_taken():
    assert_array_equal(random_rows(7, 7, np.random.default_rng(0)), np.arange(7))
    subsample = random_rows(100, 7, np.random.default_rng(0))
    assert_array_equal(subsample, np.unique(subsample))
    assert subsample.size == 7


def test_many_rows_are_sampled_evenly():
    codes = np.repeat([0, 1, 2], [10, 2000, 500])
    chosen = evenly_spaced_by_class(codes, 3, 90)
    assert_array_equal(np.bincount(codes[chosen]), [10, 30, 30])
    assert_array_equal(chosen, np.unique(chosen))
    assert_array_equal(evenly_spaced_by_class(codes[:50], 3, 90), np.arange(50))
