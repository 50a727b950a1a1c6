"""What `assess` returns: as a frame, printed, and in a notebook."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris

from corral import CorralClassifier

pytestmark = pytest.mark.all_divisions


@pytest.fixture(scope="module")
def flowers():
    iris = load_iris(as_frame=True)
    return iris.data, iris.target_names[iris.target]


@pytest.fixture(scope="module")
def model(flowers):
    X, y = flowers
    return CorralClassifier(random_state=0).fit(X[::2], y[::2])


def test_a_frame_has_what_the_methods_return(model, flowers):
    X = flowers[0][1::2]
    frame = model.assess(X, coverage=0.95).to_frame()
    assert list(frame.columns) == [
        "label", "p_setosa", "p_versicolor", "p_virginica", "typicality", "novelty", "novel", "set",
    ]  # fmt: skip
    assert_array_equal(frame.index, X.index)
    assert_array_equal(frame["label"], model.predict(X))
    assert_array_equal(frame[["p_setosa", "p_versicolor", "p_virginica"]], model.predict_proba(X))
    nearest = model.explain(X).nearest
    by_class = pd.DataFrame(model.typicality(X), columns=model.classes_)
    assert_array_equal(frame["typicality"], [by_class[name][i] for i, name in enumerate(nearest)])
    assert_array_equal(frame["novel"], model.is_novel(X))
    named = [tuple(model.classes_[labels]) for labels in model.predict_set(X, coverage=0.95)]
    assert frame["set"].tolist() == named
    assert {0, 1, 2} <= set(frame["set"].map(len))  # empty sets, and sets of several labels


@pytest.mark.parametrize(
    "index", [None, [7, 7, 7], pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])]
)
def test_a_frame_has_the_index_of_the_rows(model, flowers, index):
    X = flowers[0][:3].set_axis(pd.RangeIndex(3) if index is None else index)
    fitted = model if index is not None else clone(model).fit(flowers[0].to_numpy(), flowers[1])
    frame = fitted.assess(X if index is not None else X.to_numpy()).to_frame()
    pd.testing.assert_index_equal(frame.index, X.index)


def test_the_first_rows_are_printed(model, flowers):
    X = flowers[0]
    lines = repr(model.assess(X[1::2])).splitlines()
    assert lines[0] == "Assessment of 75 rows: 3 are novel"
    assert lines[1] == "  row 1: setosa (0.99), typicality 0.58, set: setosa"
    assert (len(lines), lines[-1]) == (7, "... and 70 more rows")
    assert repr(model.assess(X.loc[[119]])) == (
        "Assessment of 1 row: none is novel\n"
        "  row 119: versicolor (0.78), typicality 0.19, set: versicolor, virginica"
    )
    far = repr(model.assess(10.0 * X.loc[[119]]))
    assert far.startswith("Assessment of 1 row: 1 is novel\n  row 119: ")
    assert far.endswith(", novel, set: empty")


def test_a_notebook_shows_a_table(model, flowers):
    X = flowers[0][1::2].rename(index={1: "<b>"})
    shown = model.assess(X)._repr_html_()
    assert "<td>&lt;b&gt;</td><td>setosa</td><td>0.99</td><td>0.58</td><td></td><td>setosa</td>" in shown
    assert "<th>set with coverage 0.9</th>" in shown
    assert shown.count("<tr>") == 21
    assert "<p>... and 55 more rows</p>" in shown


def test_coverage_is_checked(model, flowers):
    with pytest.raises(ValueError, match=r"coverage must be a number between 0 and 1 .* got 90"):
        model.assess(flowers[0], coverage=90)


def test_sets_grow_with_the_coverage(model, flowers):
    X = flowers[0]
    sizes = [model.assess(X, coverage).sets.sum() for coverage in (0.5, 0.9, 0.99)]
    assert_array_equal(np.sort(sizes), sizes)
    assert sizes[0] < sizes[-1]
