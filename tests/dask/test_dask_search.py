"""CorralClassifier of rows on a cluster: the same numbers for any partitions, and an ordinary model."""

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from corral import ColumnKindWarning, CorralClassifier, load_model, save_model, write_report
from corral.dask import DaskCorralClassifier
from corral.dask.rows import as_collection, partitions, survey
from corral.dask.sample import random_numbers, sample_rows
from corral.datasets import make_shifted_groups
from corral.estimators.encoding import Encoding

X, Y = make_shifted_groups(40, groups=(1, 4, 5), random_state=0)
NEW_ROWS, _ = make_shifted_groups(5, groups=(1, 4, 5), random_state=1)
X, NEW_ROWS = X[:, :5], NEW_ROWS[:, :5]
NAMES = [f"v{j}" for j in range(5)]
RNG = np.random.default_rng(0)
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 2.5], len(X))
GROUPS = RNG.integers(20, size=len(X))
FEW = {"max_rows": 25, "random_state": 0}

# One chunk, chunks that cut columns as well, and unequal chunks.
PARTITIONS = [((120,), (5,)), ((50, 50, 20), (2, 3)), ((7, 90, 23), (5,))]


def mixed_frame():
    """Measurements, text, booleans and ordered categories, all but the booleans with missing values."""
    frame = pd.DataFrame(X[:, :2].copy(), columns=NAMES[:2])  # which pandas 2 would share with X
    frame.loc[RNG.random(len(X)) < 0.1, "v1"] = np.nan
    frame["colour"] = np.where(RNG.random(len(X)) < 0.7, np.array(["blue", "green", "red"])[Y // 2], "grey")
    frame.loc[3, "colour"] = None
    frame["is_wet"] = Y > 3
    sizes = np.array(["small", "middle", "large"])[np.searchsorted([1, 4, 5], Y)]
    frame["size"] = pd.Categorical(sizes, ["small", "middle", "large"], ordered=True)
    return frame


FRAME = mixed_frame()


def chunked(chunks=PARTITIONS[1], rows=X):
    return da.from_array(rows, chunks=chunks), da.from_array(Y, chunks=(chunks[0],))


# ------------------------------------------------------------------------------------ sampling of rows


def test_random_numbers_belong_to_positions():
    numbers = random_numbers(0, 1000, seed=5)
    for first in (0, 1, 3, 4, 17, 500):
        assert_array_equal(random_numbers(first, 100, seed=5), numbers[first : first + 100])
    assert not np.array_equal(random_numbers(0, 1000, seed=6), numbers)
    assert abs(numbers.astype(float).mean() / 2.0**64 - 0.5) < 0.05


def test_a_sample_has_the_rows_with_the_smallest_numbers():
    sizes, numbers = np.array([7, 40, 11]), random_numbers(0, len(X), seed=5)
    for chunks in PARTITIONS:
        rows, labels = chunked(chunks)
        weights = da.from_array(WEIGHTS, chunks=(chunks[0],))
        parts = partitions(as_collection(rows, 50), labels, weights, None, Encoding.all_numbers(X.shape[1]))
        sources, overview = survey(parts, None)
        sample = sample_rows(sources, overview, sizes, 5, None)
        expected = []
        for label, size in zip((1, 4, 5), sizes, strict=True):
            class_rows = [i for i in range(len(X)) if Y[i] == label and WEIGHTS[i] > 0.0]
            expected += sorted(class_rows, key=lambda i: numbers[i])[:size]
        assert_array_equal(sample.numbers, expected)
        assert_array_equal(sample.X, X[sample.numbers])
        assert_array_equal(sample.y, Y[sample.numbers])
        assert_array_equal(sample.weights, WEIGHTS[sample.numbers])


# ------------------------------------------------------------------------------------ the whole classifier


@pytest.mark.parametrize("case", ["numbers", "weighted", "grouped", "mixed"])
def test_few_rows_give_the_model_of_the_local_search(case):
    rows, new_rows = (FRAME, FRAME[::7]) if case == "mixed" else (X, NEW_ROWS)
    weights = WEIGHTS + 0.5 if case == "weighted" else None
    groups = GROUPS if case == "grouped" else None
    local = CorralClassifier(random_state=0).fit(rows, Y, weights, groups)
    fitted = DaskCorralClassifier(random_state=0, block_rows=50).fit(rows, Y, weights, groups)
    assert_allclose(fitted.predict_proba(new_rows), local.predict_proba(new_rows), rtol=0, atol=1e-10)
    assert fitted.cv_accuracy_ == pytest.approx(local.cv_accuracy_, abs=1e-10)
    assert str(fitted.describe()) == str(local.describe())
    assert str(fitted.explain(new_rows)) == str(local.explain(new_rows))


@pytest.fixture(scope="module")
def compressed():
    return DaskCorralClassifier(**FEW).fit(*chunked())


@pytest.mark.parametrize("weights", [None, RNG.lognormal(size=len(X))], ids=["alike", "weighted"])
def test_same_numbers_for_any_partitions(weights):
    first, *others = (DaskCorralClassifier(**FEW).fit(*chunked(chunks), weights) for chunks in PARTITIONS)
    expected = first.predict_proba(NEW_ROWS)
    for other in others:
        assert_allclose(other.predict_proba(NEW_ROWS), expected, rtol=0, atol=1e-10)
        assert_allclose(other.class_prior_, first.class_prior_, rtol=1e-14)
        assert_array_equal(other.model_.data.numbers, first.model_.data.numbers)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
def test_centroids_have_all_rows_but_the_held_out_ones(weights):
    fitted = DaskCorralClassifier(**FEW).fit(*chunked(), weights)
    w = np.ones(len(X)) if weights is None else weights
    compression, data = fitted.model_.compression, fitted.model_.data
    in_cells = np.isin(np.arange(len(X)), compression.held_out.numbers, invert=True) & (w > 0.0)
    totals = []
    for a, label in enumerate(fitted.classes_):
        counted = (w > 0.0) & (label == Y)
        rows = np.flatnonzero(in_cells & counted)
        if a not in compression.held_out.codes:
            assert_array_equal(np.sort(data.numbers[data.codes == a]), np.flatnonzero(counted))
            continue
        assert compression.counts[data.codes == a].sum() == rows.size
        shares = data.weights[data.codes == a]
        totals.append(shares.sum() / w[rows].sum())
        for member in fitted.model_.pool.members:  # the mean of centroids is the mean of the rows
            mean = np.average(member.scale.transform(X[rows]), axis=0, weights=w[rows])
            assert_allclose(np.average(member.classes[a].rows, axis=0, weights=shares), mean, atol=1e-12)
    assert_allclose(totals, totals[0], rtol=1e-12)


def test_counts_and_priors_are_overview_rows(compressed):
    assert_array_equal(compressed.class_count_, [40.0, 40.0, 40.0])
    two = DaskCorralClassifier(**FEW).fit(chunked()[0], da.from_array(np.where(Y == 1, 4, Y), chunks=33))
    assert_array_equal(two.class_count_, [80.0, 40.0])
    assert_array_equal(two.class_prior_, [2 / 3, 1 / 3])


def test_an_ordinary_model(compressed, tmp_path):
    local = compressed.to_local()
    assert type(local) is CorralClassifier
    expected = compressed.predict_proba(NEW_ROWS)
    assert_array_equal(local.predict_proba(NEW_ROWS), expected)
    save_model(local, tmp_path / "groups.corral")
    loaded = load_model(tmp_path / "groups.corral")
    assert_array_equal(loaded.predict_proba(NEW_ROWS), expected)
    assert str(loaded.explain(NEW_ROWS)) == str(compressed.explain(NEW_ROWS))
    with pytest.raises(TypeError, match=r"not DaskCorralClassifier; call its to_local\(\) first"):
        save_model(compressed, tmp_path / "cluster.corral")
    write_report(compressed, NEW_ROWS[:3], path=tmp_path / "report.html")
    assert compressed.typicality(NEW_ROWS).shape == (15, 3)
    assert compressed.predict_set(NEW_ROWS).shape == (15, 3)
    assert not hasattr(compressed, "partial_fit")
    rows = compressed.explain(NEW_ROWS[:1]).rows[0]  # numbers in the table
    assert rows.size == 5
    assert_array_equal(compressed.model_.rows_by_number(rows), X[rows])


@pytest.mark.parametrize("has_categories", [True, False])
def test_categories_missing_values_weights_and_groups_of_many_rows(has_categories, tmp_path):
    frame = FRAME.assign(is_wet=FRAME["is_wet"].astype("category"))
    tables = [dd.from_pandas(frame, npartitions=n, sort=False) for n in (3, 5)]
    columns = pd.DataFrame({"y": Y, "w": WEIGHTS, "g": GROUPS}).assign(g=lambda t: "g" + t["g"].astype(str))
    models = []
    for table in tables:
        if not has_categories:
            table["is_wet"] = table["is_wet"].cat.as_unknown()
        others = dd.from_pandas(columns, npartitions=table.npartitions, sort=False)
        models.append(DaskCorralClassifier(**FEW).fit(table, others["y"], others["w"], others["g"]))
    first, second = models
    assert [len(categories or ()) for categories in first.encoding_.categories] == [0, 0, 3, 2, 3]
    assert_allclose(first.predict_proba(frame), second.predict_proba(frame), rtol=0, atol=1e-10)
    lazy = first.predict_proba(tables[1])
    assert_allclose(lazy.compute(scheduler="sync"), first.predict_proba(frame), rtol=0, atol=1e-10)
    assert_allclose(first.class_count_, np.bincount(np.searchsorted([1, 4, 5], Y), WEIGHTS), rtol=1e-14)
    assert (first.predict(frame) == Y).mean() > 0.9
    rows = first.model_.data
    assert np.bincount(rows.codes).tolist() == [25, 25, 25]
    assert_array_equal(rows.labels[rows.codes], Y[rows.numbers])
    save_model(first.to_local(), tmp_path / "model.corral")
    loaded = load_model(tmp_path / "model.corral")
    assert_array_equal(loaded.predict_proba(frame), first.predict_proba(frame))
    assert_array_equal(loaded.explain(frame[:2]).rows, first.explain(frame[:2]).rows)


def test_numbers_that_are_categories():
    codes = np.searchsorted([1, 4, 5], Y)
    table = np.column_stack([X[:, 0], codes])
    fitted = DaskCorralClassifier(**FEW, categorical_features=[1]).fit(*chunked(((60, 60), (2,)), table))
    assert fitted.encoding_.categories[1] == [0.0, 1.0, 2.0]
    assert (fitted.predict(table) == Y).all()


def test_clones_of_an_estimator(compressed):
    client = object()
    copy = clone(DaskCorralClassifier(client=client, max_rows=7))
    assert (copy.client, copy.max_rows) == (client, 7)  # a client cannot be copied
    copy = pickle.loads(pickle.dumps(compressed))
    assert_array_equal(copy.predict_proba(NEW_ROWS), compressed.predict_proba(NEW_ROWS))


# --------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"max_rows": 0}, "max_rows must be a positive integer, got 0"),
        ({"block_rows": 1.5}, r"block_rows must be a positive integer, got 1\.5"),
        ({"min_effect": 2}, "min_effect must be a number between 0 and 1"),
        ({"priors": [0.5, 0.5]}, "priors must hold a number for each of the 3 classes"),
        ({"categorical_features": "all"}, "categorical_features must be 'from_dtype', None or columns"),
    ],
    ids=str,
)
def test_refuses_parameters(change, complaint):
    model = DaskCorralClassifier(**FEW | change)
    with pytest.raises(ValueError, match=complaint):
        model.fit(*chunked())
    assert not vars(model).keys() & {"classes_", "n_features_in_", "client_", "encoding_"}


@pytest.mark.parametrize(
    ("column", "complaint"),
    [
        (
            pd.date_range("2020", periods=len(X)),
            "holds dates, which DaskCorralClassifier does not support",
        ),
        (np.where(Y == 4, np.inf, 1.0), "holds an infinite value"),
        ([f"id {i}" for i in range(len(X))], "holds more than 100 categories"),
    ],
    ids=["dates", "infinite", "ids"],
)
def test_refuses_columns_by_name(column, complaint, monkeypatch):
    monkeypatch.setattr("corral.dask.categories._MOST_CATEGORIES", 100)
    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(more=column), npartitions=2)
    with pytest.raises(ValueError, match=f"Column 'more' {complaint}"):
        DaskCorralClassifier(**FEW).fit(frame, dd.from_pandas(pd.Series(Y), 2))


def test_refuses_unknown_categories_and_groups():
    ordered = dd.from_pandas(FRAME, npartitions=2)
    ordered["size"] = ordered["size"].cat.as_unknown()
    y = dd.from_pandas(pd.Series(Y), npartitions=2)
    for rows, labels, options, groups, complaint in (
        (ordered, y, {}, None, "Column 'size' is ordered, but its categories are not known"),
        (FRAME, Y, {"categorical_features": None}, None, "Column 'colour' holds values .*asks for numbers"),
        (*chunked(), {}, np.where(GROUPS == 3, np.nan, GROUPS), "each row must have a group"),
        (*chunked(), {}, Y, "groups must have rows of some class in at least two groups"),
    ):
        with pytest.raises(ValueError, match=complaint):
            DaskCorralClassifier(**FEW, **options).fit(rows, labels, groups=groups)


def test_text_of_dates_warns_that_it_becomes_categories():
    days = pd.date_range("2020", periods=3).astype(str)[np.arange(len(X)) % 3]
    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(more=days), npartitions=2)
    with pytest.warns(ColumnKindWarning, match="Column 'more' holds dates as text"):
        model = DaskCorralClassifier(**FEW).fit(frame, dd.from_pandas(pd.Series(Y), 2))
    assert model.encoding_.categories[-1] == sorted(set(days))
