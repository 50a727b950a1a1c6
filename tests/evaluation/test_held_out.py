"""Predictions of rows that took no part in fitting."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from corral import RodeoClassifier
from corral.evaluation.baselines import MixedNaiveBayes
from corral.evaluation.held_out import held_out_predictions
from corral.evaluation.splits import RowGroups, split_rows


def test_classifiers_learn_by_groups_where_they_can():
    seen = []

    class Seen(RodeoClassifier):
        def fit(self, X, y, sample_weight=None, groups=None):
            seen.append(groups)
            return super().fit(X, y, sample_weight, groups)

    group = np.repeat(np.arange(10), 4)
    y = np.where(group % 2 > 0, "u", "v")
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    row_groups = RowGroups.from_table(X, y, group)
    splits = split_rows(y, row_groups, test_size=0.25, cv=None, seed=0)
    baseline = MixedNaiveBayes()
    held_out = held_out_predictions(
        {"own": Seen(), "other": baseline}, X, y, row_groups, splits, lambda name: None
    )
    [(train, test)] = splits
    assert_array_equal(seen[0], group[train])
    assert_array_equal(held_out["own"].truth, y[test])
    assert held_out["own"].claim == "of groups that took no part in fitting"
    assert_array_equal(held_out["own"].groups, group[test])


def test_two_groups_of_a_class_must_be_left_to_fit():
    group = np.repeat(np.arange(4), 5)
    y = np.where(group % 2 > 0, "u", "v")
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["a", "b"])
    row_groups = RowGroups.from_table(X, y, group)
    splits = split_rows(y, row_groups, test_size=0.5, cv=None, seed=0)
    with pytest.raises(ValueError, match="would leave only one group of each class to fit"):
        held_out_predictions({"own": RodeoClassifier()}, X, y, row_groups, splits, lambda name: None)
