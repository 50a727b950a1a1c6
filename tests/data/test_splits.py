"""Folds and parts of rows: groups stay whole, and the order of rows does not matter."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from corral.data.hashing import content_keys
from corral.data.splits import random_parts, spread_parts, stratified_folds, stratified_parts
from support.tables import labelled, table


def divided(divide, data, n_parts, seed=0):
    if divide is spread_parts:
        return spread_parts(data, data.content_order(), n_parts)
    return divide(data, data.content_order(), n_parts, np.random.RandomState(seed))


DIVISIONS = [stratified_folds, stratified_parts, random_parts, spread_parts]


@pytest.mark.parametrize("divide", DIVISIONS)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_divisions_follow_the_content_of_rows(divide, grouped, missing):
    """Rows in another order, and columns in another order, some of them with the other sign."""
    rng = np.random.default_rng(1)
    X, y = table(60, 3)
    X[::7, 1] = np.nan if missing else X[0, 1]
    groups = np.arange(60) // 2 if grouped else None
    order, columns, signs = rng.permutation(60), rng.permutation(3), rng.choice([-1.0, 1.0], 3)
    first = labelled(X, y, groups=groups)
    other = labelled((X * signs)[order][:, columns], y[order], groups=groups[order] if grouped else None)
    assert_array_equal(divided(divide, other, 4), divided(divide, first, 4)[order])
    if divide is not spread_parts:
        assert (divided(divide, first, 4, seed=1) != divided(divide, first, 4)).any()


@pytest.mark.parametrize("divide", DIVISIONS)
def test_groups_and_duplicates_of_several_classes_share_a_part(divide):
    rng = np.random.default_rng(0)
    X, y = table(80, 3)
    groups = rng.integers(20, size=80)
    parts = divided(divide, labelled(X, y, groups=groups), 4)
    assert np.unique(parts).size == 4
    assert np.unique(groups * 4 + parts).size == np.unique(groups).size
    X[40:] = X[:40]
    data = labelled(X, np.repeat([0, 1], 40))
    parts = divided(divide, data, 4)
    assert_array_equal(parts[:40], parts[40:])


@pytest.mark.parametrize("n_parts", [2, 4, 8])
def test_parts_have_their_share_of_each_class(n_parts):
    rng = np.random.default_rng(0)
    data = labelled(rng.normal(size=(83, 3)), rng.choice(3, 83, p=[0.6, 0.3, 0.1]))
    counts = np.zeros((n_parts, 3), dtype=int)
    np.add.at(counts, (divided(stratified_parts, data, n_parts), data.codes), 1)
    assert np.ptp(counts, axis=0).max() <= 1
    assert np.ptp(counts.sum(axis=1)) <= 1


@pytest.mark.parametrize("n_groups", [(1, 1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3), (7, 4, 2), (6, 6)])
def test_groups_of_all_classes_are_spread_over_the_folds(n_groups):
    """With few groups in each class, folds would otherwise be empty, or hold most of a table."""
    y = np.repeat(np.repeat(np.arange(len(n_groups)), n_groups), 4)
    groups = np.repeat(np.arange(sum(n_groups)), 4)
    data = labelled(np.random.default_rng(0).normal(size=(y.size, 3)), y, groups=groups)
    for seed in range(5):
        folds = divided(stratified_folds, data, 5, seed)[::4]
        assert np.ptp(np.bincount(folds, minlength=5)) <= 1
        for a in range(len(n_groups)):
            assert np.ptp(np.bincount(folds[y[::4] == a], minlength=5)) <= 1


def test_rows_that_agree_by_chance_share_a_fold_if_a_class_has_many_values():
    rng = np.random.default_rng(0)
    for n_values, shared in ((12, True), (4, False)):
        X = rng.integers(n_values, size=(400, 2)).astype(float)
        folds = divided(stratified_folds, labelled(X, np.zeros(400, dtype=int)), 5)
        rows_of_value = [np.unique(folds[(value == X).all(axis=1)]).size for value in np.unique(X, axis=0)]
        assert (max(rows_of_value) == 1) == shared


def test_keys_tell_flags_apart():
    """Columns of flags that are set equally often differ in their rows alone."""
    X = np.array(list(np.ndindex(*[2] * 6)), dtype=float)[np.arange(64) % 3 != 0]
    keys = content_keys(X)
    assert np.unique(keys).size > 1
    assert_array_equal(content_keys(X[::-1, ::-1])[::-1], keys)
    assert_array_equal(content_keys(-X), keys)
