"""Effective numbers of weighted rows, and design effects of groups."""

import numpy as np
from numpy.testing import assert_allclose

from corral.data.weights import design_effect, effective_number, effective_weights, largest_design_effect


def test_effective_number():
    assert effective_number(np.full(7, 0.3)) == 7.0
    assert effective_number(np.array([1.0, 1.0, 0.0, 1e-300])) == 2.0
    assert_allclose(effective_number(np.array([1e-250, 3e-250])), 1.6)


def test_weights_of_a_group_sum_to_its_effective_number():
    rng = np.random.default_rng(0)
    weights, groups = rng.random((3, 8)), rng.integers(4, size=(3, 8))
    sums = effective_weights(weights, groups, 5)
    for g in np.unique(groups):
        assert_allclose(sums[groups == g].sum(), effective_number(weights[groups == g]))
        assert np.ptp(sums[groups == g] / weights[groups == g]) < 1e-12


def test_design_effect_of_rows_that_agree_and_of_rows_that_have_nothing_in_common():
    rng = np.random.default_rng(0)
    weights, groups = rng.random(60), np.repeat(np.arange(20), 3)
    largest = sum(weights[groups == g].sum() ** 2 for g in range(20)) / sum(weights**2)
    assert_allclose(largest_design_effect(weights, groups), largest)
    # Groups of equal weights are worth Kish's number of their sizes.
    assert_allclose(60 / largest_design_effect(np.ones(60), groups), 20)
    assert_allclose(design_effect(rng.choice([-1.0, 1.0], 20)[groups], weights, groups), largest)
    assert_allclose(design_effect(np.zeros(60), weights, groups), largest)
    assert design_effect(np.tile([1.0, -1.0, 0.0], 20), np.ones(60), groups) == 1.0
    assert design_effect(rng.normal(size=60), weights, np.arange(60)) == 1.0
