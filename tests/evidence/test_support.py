"""Training rows behind a label: by their shares, and by their distances where shares are equal."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from corral import CorralClassifier, RodeoClassifier
from corral.data.dataset import LabelledRows, TrainingRows
from corral.datasets import make_ten_groups
from corral.evidence.support import distances
from corral.sentences.rows import nearest_rows_caption
from support.cli import run


@pytest.fixture(scope="module")
def ten_groups():
    """All members of the pool become normal densities, in which every row has the same part."""
    X, y = make_ten_groups(60, random_state=0)
    return CorralClassifier(random_state=0).fit(X, y), X, y


def brute_force(x, rows, importance):
    """Squares of differences over variances, in plain loops."""
    sums = np.zeros(len(rows))
    for j, value in enumerate(x):
        variance = np.var(np.append(rows[:, j], value))
        for i, row in enumerate(rows):
            sums[i] += importance[j] * (row[j] - value) ** 2 / variance
    return sums / importance.sum()


def test_rows_of_equal_shares_are_ranked_by_distance(ten_groups):
    fitted, X, y = ten_groups
    new, truth = make_ten_groups(3, random_state=1)
    explanation = fitted.explain(new)
    assert not explanation.stands_out.any()
    assert_allclose(explanation.shares, 1.0 / 60.0, rtol=1e-9)
    for i in range(len(truth)):
        rows_of_class = np.flatnonzero(y == explanation.label[i])
        nearest = np.argsort(brute_force(new[i], X[rows_of_class], np.abs(explanation.evidence[i])))[:5]
        assert_array_equal(explanation.rows[i], rows_of_class[nearest])
    assert (
        len({tuple(rows) for rows in explanation.rows.tolist()}) > 20
    )  # and not the first rows of the class


def test_that_no_row_stands_out_is_said(ten_groups):
    fitted, X, _ = ten_groups
    explanation = fitted.explain(X[:1])
    names = ["row 0, equal to this row", *(f"row {i}" for i in explanation.rows[0, 1:])]
    assert f"closest:  {', '.join(names[:3])} (no row stands out)" in repr(explanation)
    assert explanation.sentences(0)["nearest"] == (
        f"No training row of {explanation.label[0]} stands out: many have the same share of the class "
        f"density. The nearest, by the variables with the most evidence, are {', '.join(names)}."
    )


def test_rows_that_are_equally_near_are_counted_and_not_named():
    """As a bird of which only the island is known."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 40)
    X = pd.DataFrame({"x": rng.normal(size=80), "island": np.where(rng.random(80) < 0.5, "south", "north")})
    X.loc[y == "a", "x"] += 2.0
    sample = pd.DataFrame({"x": [np.nan], "island": ["south"]})
    explanation = CorralClassifier(random_state=0).fit(X, y).explain(sample)
    n_tied = int(((X["island"] == "south") & (y == explanation.label[0])).sum())
    assert explanation.n_tied.tolist() == [n_tied]
    assert not explanation.stands_out[0]
    assert f"closest:  {n_tied} rows are equally near" in repr(explanation)
    sentence = (
        f"No training row of {explanation.label[0]} stands out: {n_tied} have the same share of the class "
        "density and"
    )
    assert explanation.sentences(0)["nearest"].startswith(sentence)


def test_rows_that_weigh_more_are_not_nearer(ten_groups):
    _, X, y = ten_groups
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    fitted = CorralClassifier(random_state=0).fit(X, y, sample_weight=weights)
    explanation = fitted.explain(X[::20])
    assert not explanation.stands_out.any()
    right = explanation.label == y[::20]
    assert right.mean() > 0.8
    assert_array_equal(explanation.rows[right, 0], np.arange(len(y))[::20][right])


def test_a_row_that_stands_out_comes_first():
    X = np.concatenate([np.linspace(0.0, 1.0, 30), np.linspace(5.0, 6.0, 30)])[:, np.newaxis]
    fitted = RodeoClassifier(bandwidth="class").fit(X, np.repeat(["a", "b"], 30))
    explanation = fitted.explain([[0.5]])
    assert explanation.stands_out[0]
    assert (np.diff(explanation.shares[0]) <= 0.0).all()
    assert explanation.sentences(0)["nearest"].startswith(
        "Training rows of a most like this row, with their share of the class density: row "
        f"{explanation.rows[0, 0]} ("
    )


@pytest.mark.parametrize("stands_out", [True, False])
def test_the_caption_says_that_the_first_row_is_the_row_itself(stands_out):
    itself, others = (
        nearest_rows_caption("a", [equal, False], stands_out=stands_out, n_tied=1) for equal in (True, False)
    )
    assert " The first training row of the table equals this row. " in itself
    assert itself.replace(" The first training row of the table equals this row.", "") == others


def test_rows_of_a_small_class_are_all_listed():
    explanation = (
        RodeoClassifier(bandwidth="class").fit([[0.0], [1.0], [1.1]], ["a", "b", "b"]).explain([[0.0]])
    )
    assert explanation.sentences(0)["nearest"].endswith(
        "with their share of the class density: row 0, equal to this row (100%)."
    )


def test_missing_values_and_categories_have_distances():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [np.nan, 0.0], [0.0, 1.0], [2.0, np.nan]])
    rows = LabelledRows.sort(TrainingRows(X, np.zeros(5), None, np.array([0, 3])))
    variance = np.var([0.0, 1.0, 0.0, 2.0, 0.0])
    expected = np.array([0.0, 3.0 / variance, 6.0, 2.0, 12.0 / variance + 2.0]) / 4.0
    apart = distances(np.array([0.0, 0.0]), rows, np.array([3.0, 1.0]))
    assert_allclose(apart, expected[rows.numbers])
    # A sample's missing value has no part, and without evidence all variables have the same.
    apart = distances(np.array([np.nan, 1.0]), rows, np.array([3.0, 0.0]))
    assert_allclose(apart, np.array([2.0, 2.0, 2.0, 0.0, 2.0])[rows.numbers])
    assert_array_equal(distances(np.array([np.nan, np.nan]), rows, np.zeros(2)), 0.0)


def test_the_command_says_that_no_row_stands_out(ten_groups, tmp_path):
    _, X, y = ten_groups
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(30)]).assign(group=y)
    frame.to_csv(tmp_path / "t.csv", index=False)
    run("fit", tmp_path / "t.csv", "-t", "group", "--model", tmp_path / "m.corral", "-q")
    sentence = run("explain", tmp_path / "m.corral", tmp_path / "t.csv", "--row", 130).stdout
    assert "stands out: many have the same share of the class density." in sentence
    assert "by the variables with the most evidence, are row 130, equal to this row, row " in sentence
