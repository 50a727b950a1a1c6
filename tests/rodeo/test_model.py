"""The rows of all classes, and probabilities of classes, on arrays."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from corral.posterior import joint_log_probability, log_probability
from support.tables import labelled

# Rows


def test_classes_are_numbered_in_order():
    X = np.arange(5.0)[:, np.newaxis]
    data = labelled(X, np.array(["c", "a", "c", "b", "a"]))
    assert_array_equal(data.labels, ["a", "b", "c"])
    assert_array_equal(data.codes, [2, 0, 2, 1, 0])
    assert_array_equal(data.counts, [2, 1, 2])
    assert data.weights is None
    assert [members.tolist() for members in data.members()] == [[1, 4], [3], [0, 2]]
    assert_array_equal(data.numbers, np.arange(5))


def test_rows_without_weight_are_gone_but_numbers_stay():
    X, weights = np.arange(5.0)[:, np.newaxis], np.array([0.0, 2.0, 0.5, 0.0, 1.0])
    data = labelled(X, np.array([7, 8, 8, 9, 7]), weights)
    assert_array_equal(data.X.ravel(), [1, 2, 4])
    assert_array_equal(data.numbers, [1, 2, 4])
    assert_array_equal(data.labels, [7, 8])
    assert_array_equal(data.counts, [1.0, 2.5])
    assert_array_equal(data.weights, [1.0, 0.25, 0.5])  # over the largest


def test_expected_classes_join_those_of_the_rows():
    data = labelled(np.zeros((2, 1)), np.array([3, 1]), expected=np.array([2, 3]))
    assert_array_equal(data.labels, [1, 2, 3])
    assert_array_equal(data.counts, [1, 0, 1])
    assert [members.tolist() for members in data.members()] == [[1], [], [0]]


@pytest.mark.parametrize("weighted", [False, True])
def test_some_of_the_rows_keep_all_classes(weighted):
    X, y = np.arange(6.0)[:, np.newaxis], np.array([0, 1, 2, 0, 1, 2])
    weights = np.array([0.0, 2.0, 3.0, 4.0, 5.0, 6.0]) if weighted else None
    data = labelled(X, y, weights)
    some = data.take(np.array([0, 2]))
    expected = [1, 3] if weighted else [0, 2]
    assert_array_equal(some.numbers, expected)
    assert_array_equal(some.X.ravel(), expected)
    assert_array_equal(some.codes, y[expected])
    assert_array_equal(some.labels, [0, 1, 2])
    assert_allclose(some.counts, [4 / 6, 2 / 6, 0] if weighted else [1, 0, 1])


# Probabilities


@pytest.mark.parametrize("far", [1.0, 1e6, 1e100, np.inf])
def test_the_lapse_goes_to_the_prior_however_far_a_sample_is(far):
    # There the logarithm of a density is so large that adding that of the lapse does not change it.
    prior = np.array([0.5, 0.3, 0.2])
    joint = joint_log_probability(-far * np.array([[1.0, 2.0, np.inf]]), prior)
    certain = np.exp(log_probability(joint, prior, 0.0))
    assert far < np.inf or np.allclose(certain, prior, rtol=1e-12)  # without any density there is the prior
    assert_allclose(np.exp(log_probability(joint, prior, 0.25)), 0.75 * certain + 0.25 * prior, rtol=1e-12)
