"""Which rows are held out: whole groups, and a share of each class."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from corral.evaluation.splits import RowGroups, split_rows


@given(
    groups=st.lists(st.integers(0, 9), min_size=8, max_size=60),
    share=st.floats(0.05, 0.95),
    seed=st.integers(0, 9),
)
@example(groups=[0, 0, 0, 0, 1, 1, 1, 1], share=0.25, seed=0)
def test_groups_are_held_out_whole(groups, share, seed):
    groups = np.array(groups)
    y = np.where(np.arange(groups.size) % 3 > 0, "u", "v")
    row_groups = RowGroups(np.arange(groups.size), groups)
    n_groups = min(np.unique(groups[y == label]).size for label in ("u", "v"))
    if n_groups < 2:
        with pytest.raises(ValueError, match=r"class '[uv]' has 1 group, fewer than the 2 needed"):
            split_rows(y, row_groups, test_size=share, cv=None, seed=seed)
        return
    [(train, test)] = split_rows(y, row_groups, test_size=share, cv=None, seed=seed)
    assert sorted([*train, *test]) == list(range(groups.size))
    assert not set(groups[train]) & set(groups[test])
    assert test.size
    if all(set(y[groups != g]) == {"u", "v"} for g in np.unique(groups)):
        assert set(y[train]) == {"u", "v"}


def test_a_share_of_the_rows_of_each_class_is_held_out():
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(60), rng.integers(1, 6, 60))
    y = np.where(group % 3 == 0, "u", "v")
    row_groups = RowGroups(np.arange(group.size), group)
    [(_, test)] = split_rows(y, row_groups, test_size=0.25, cv=None, seed=0)
    for label in ("u", "v"):
        assert np.mean(y[test] == label) == pytest.approx(np.mean(y == label), abs=0.02)
        assert np.sum(y[test] == label) == pytest.approx(0.25 * np.sum(y == label), abs=3)


def test_duplicates_of_most_rows_link_groups():
    table = pd.DataFrame({"a": np.random.default_rng(0).normal(size=12), "b": np.arange(12.0)})
    table.loc[3] = table.loc[8]
    one = RowGroups.from_table(table, np.arange(12) % 2, np.repeat(["p", "q", "r", "s"], 3))
    assert_array_equal(one.groups, np.repeat([0, 1, 2, 3], 3))
    assert one.distinct.size == 12
    table.loc[4] = table.loc[7]
    two = RowGroups.from_table(table, np.arange(12) % 2, np.repeat(["p", "q", "r", "s"], 3))
    assert_array_equal(two.groups, np.repeat([0, 1, 1, 2], 3))
    assert two.distinct.size == 10


# By default


def test_few_rows_are_held_out_once_each():
    rng = np.random.default_rng(0)
    y = rng.choice(["u", "v"], 999, p=[0.8, 0.2])
    splits = split_rows(y, RowGroups(np.arange(999)), test_size=None, cv=None, seed=0)
    assert len(splits) == 5
    assert_array_equal(np.sort(np.concatenate([test for _, test in splits])), np.arange(999))
    for train, test in splits:
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(999))
        assert np.mean(y[test] == "v") == pytest.approx(np.mean(y == "v"), abs=0.01)
    y = np.append(y, "u")
    [(_, test)] = split_rows(y, RowGroups(np.arange(1000)), test_size=None, cv=None, seed=0)
    assert test.size == 250
    [(_, test)] = split_rows(y[:999], RowGroups(np.arange(999)), test_size=0.5, cv=None, seed=0)
    assert test.size == 500


def test_a_class_of_two_rows_does_not_reduce_the_folds():
    y = np.repeat(["u", "v", "w"], [2, 40, 40])
    splits = split_rows(y, RowGroups(np.arange(82)), test_size=None, cv=None, seed=0)  # warnings are errors
    assert len(splits) == 5
    assert all(set(y[train]) == {"u", "v", "w"} for train, _ in splits)


@pytest.mark.parametrize(("n_groups", "n_folds"), [(20, 5), (3, 3)])
def test_groups_are_whole_in_folds(n_groups, n_folds):
    groups = np.arange(120) % n_groups
    y = np.where(np.random.default_rng(0).random(120) < 0.5, "u", "v")
    splits = split_rows(y, RowGroups(np.arange(120), groups), test_size=None, cv=None, seed=0)
    assert len(splits) == n_folds
    for train, test in splits:
        assert not set(groups[train]) & set(groups[test])


def test_folds_that_would_lose_a_class_are_not_taken():
    """A class of two groups, which some folds would hold out together."""
    groups = np.arange(90) // 9
    y = np.where(groups < 2, "u", "v")
    for seed in range(10):
        for train, test in split_rows(
            y, RowGroups(np.arange(90), groups), test_size=None, cv=None, seed=seed
        ):
            assert set(y[train]) == {"u", "v"}
            assert test.size


def test_a_part_needs_a_row_of_each_class():
    y = np.array(["u", "v", "u", "v"])
    message = "a held-out share of 0.25 is 1 of 4 rows; training rows and held-out rows need a row of each"
    with pytest.raises(ValueError, match=message):
        split_rows(y, RowGroups(np.arange(4)), test_size=0.25, cv=None, seed=0)
    assert len(split_rows(y, RowGroups(np.arange(4)), test_size=None, cv=None, seed=0)) == 2
