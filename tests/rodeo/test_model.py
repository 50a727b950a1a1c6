"""The rows of all classes, what is learnt of them, and probabilities of classes, on arrays."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from corral.data.scaling import learn_scale
from corral.parallel import Computation
from corral.posterior import joint_log_probability, log_probability
from corral.rodeo.model import ClassBandwidths
from corral.rodeo.settings import ModelSettings, RodeoSettings
from support.tables import labelled


def learn(data, *, seed=0, scale=None):
    scaled = learn_scale(data.X, data.weights, scale).transform(data.X)
    return ClassBandwidths.learn(
        data.arrange(scaled),
        np.ptp(scaled, axis=0),
        RodeoSettings(),
        np.random.RandomState(seed),
        Computation(n_jobs=1),
    )


def two_classes(n=30):
    """Class "a" is concentrated in column 0, "b" in column 1; column 2 is noise and 3 constant."""
    random = np.random.RandomState(0)
    y = random.permutation(np.repeat(["a", "b"], n))
    X = random.uniform(size=(2 * n, 4)) * [1.0, 1.0, 2.0, 0.0]
    X[y == "a", 0] = random.normal(0.5, 0.02, n)
    X[y == "b", 1] = random.normal(0.5, 0.02, n)
    return X, y


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


def test_expected_classes_join_the_classes_of_the_rows():
    data = labelled(np.zeros((2, 1)), np.array([3, 1]), expected=np.array([2, 3]))
    assert_array_equal(data.labels, [1, 2, 3])
    assert_array_equal(data.counts, [1, 0, 1])
    assert [members.tolist() for members in data.members()] == [[1], [], [0]]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_part_of_the_rows_keeps_all_classes(weighted):
    X, y = np.arange(6.0)[:, np.newaxis], np.array([0, 1, 2, 0, 1, 2])
    weights = np.array([0.0, 2.0, 3.0, 4.0, 5.0, 6.0]) if weighted else None
    data = labelled(X, y, weights)
    part = data.take(np.array([0, 2]))
    expected = [1, 3] if weighted else [0, 2]
    assert_array_equal(part.numbers, expected)
    assert_array_equal(part.X.ravel(), expected)
    assert_array_equal(part.codes, y[expected])
    assert_array_equal(part.labels, [0, 1, 2])
    assert_allclose(part.counts, [4 / 6, 2 / 6, 0] if weighted else [1, 0, 1])


# What is learnt


def test_relevant_variables():
    X, y = two_classes()
    learnt = learn(labelled(X, y), scale="range")
    relevant = learnt.relevant(-0.5)
    assert_array_equal(relevant[:, :2], [[True, False], [False, True]])
    assert not relevant[:, 3].any()  # constant
    assert_array_equal(learnt.varies, [True, True, True, False])
    assert_array_equal(learnt.widths, [1.0, 1.0, 1.0, 1.0])


def test_a_density_for_each_kind():
    X, y = two_classes()
    data = labelled(X, y, expected=np.array(["z"]))
    learnt = learn(data)
    relevant = np.array([[True, False, False, False], [False] * 4, [False, True, True, False]])

    def densities(bandwidth, features):
        settings = ModelSettings(bandwidth=bandwidth, features=features)
        return [learnt.density(a, rows, relevant[a], settings) for a, rows in enumerate(data.arrange(X))]

    for a, density in enumerate(densities("class", "all")):
        assert_array_equal(density.fixed, learnt.means[a])
        assert_array_equal(density.variables, np.arange(4))
        assert density.outside == 0.0
    assert [density.fixed for density in densities("local", "all")] == [None] * 3

    one, none, two = densities("class", "selected")
    assert_array_equal(one.variables, [0])
    assert_array_equal(one.fixed, learnt.means[0, :1])
    assert_allclose(one.outside, -math.log(np.ptp(X[:, 1])) - math.log(np.ptp(X[:, 2])), rtol=1e-12)
    assert_array_equal(one.rows.all(), X[y == "a"][:, :1])
    assert_array_equal(none.variables, np.arange(4))  # without relevant variables all are kept
    assert none.outside == 0.0
    assert_array_equal(two.variables, [1, 2])
    assert_allclose(two.outside, -math.log(np.ptp(X[:, 0])), rtol=1e-12)


def test_a_class_without_rows_keeps_the_initial_bandwidth():
    X, y = two_classes()
    learnt = learn(labelled(X, y, expected=np.array(["z"])))
    assert_allclose(learnt.means[2], 1.0 / math.log(math.log(16)), rtol=1e-15)
    assert_array_equal(learnt.zscores[2], np.zeros(4))
    assert not learnt.relevant(-0.5)[2].any()


# Probabilities


@pytest.mark.parametrize("far", [1.0, 1e6, 1e100, np.inf])
def test_prior_mixing_adds_the_prior_however_far_a_sample_is(far):
    # Far away the log density is so large that the logarithm of the prior mixing would not change it.
    prior = np.array([0.5, 0.3, 0.2])
    joint = joint_log_probability(-far * np.array([[1.0, 2.0, np.inf]]), prior)
    certain = np.exp(log_probability(joint, prior, 0.0))
    assert far < np.inf or np.allclose(certain, prior, rtol=1e-12)  # without any density there is the prior
    assert_allclose(np.exp(log_probability(joint, prior, 0.25)), 0.75 * certain + 0.25 * prior, rtol=1e-12)
