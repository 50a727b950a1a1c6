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
from corral.dask.sample import draw_rows, draws
from corral.datasets import make_shifted_groups
from corral.estimators.encoding import Encoding

X, Y = make_shifted_groups(40, groups=(1, 4, 5), random_state=0)
QUERIES, _ = make_shifted_groups(5, groups=(1, 4, 5), random_state=1)
X, QUERIES = X[:, :5], QUERIES[:, :5]
NAMES = [f"v{j}" for j in range(5)]
RNG = np.random.default_rng(0)
WEIGHTS = RNG.choice([0.0, 0.5, 1.0, 2.5], len(X))
GROUPS = RNG.integers(20, size=len(X))
FEW = {"max_rows": 25, "random_state": 0}

# The whole of it in one chunk, in chunks that cut columns as well, and in unequal ones.
PARTITIONS = [((120,), (5,)), ((50, 50, 20), (2, 3)), ((7, 90, 23), (5,))]


def mixed_frame():
    """Measurements, text, booleans and ordered categories, all with gaps but for the booleans."""
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


# ------------------------------------------------------------------------------- what partitions are asked


def test_draws_belong_to_positions():
    whole = draws(0, 1000, seed=5)
    for first in (0, 1, 3, 4, 17, 500):
        assert_array_equal(draws(first, 100, seed=5), whole[first : first + 100])
    assert not np.array_equal(draws(0, 1000, seed=6), whole)
    assert abs(whole.astype(float).mean() / 2.0**64 - 0.5) < 0.05


def test_a_sample_has_the_rows_whose_draws_are_smallest():
    sizes, drawn = np.array([7, 40, 11]), draws(0, len(X), seed=5)
    for chunks in PARTITIONS:
        rows, labels = chunked(chunks)
        weights = da.from_array(WEIGHTS, chunks=(chunks[0],))
        parts = partitions(as_collection(rows, 50), labels, weights, None, Encoding.all_numbers(X.shape[1]))
        sources, of_all = survey(parts, None)
        sample = draw_rows(sources, of_all, sizes, 5, None)
        expected = []
        for label, size in zip((1, 4, 5), sizes, strict=True):
            of_class = [i for i in range(len(X)) if Y[i] == label and WEIGHTS[i] > 0.0]
            expected += sorted(of_class, key=lambda i: drawn[i])[:size]
        assert_array_equal(sample.numbers, expected)
        assert_array_equal(sample.X, X[sample.numbers])
        assert_array_equal(sample.y, Y[sample.numbers])
        assert_array_equal(sample.weights, WEIGHTS[sample.numbers])


# ------------------------------------------------------------------------------------ the whole classifier


@pytest.mark.parametrize("case", ["numbers", "weighted", "grouped", "mixed"])
def test_few_rows_give_the_model_of_the_local_search(case):
    rows, queries = (FRAME, FRAME[::7]) if case == "mixed" else (X, QUERIES)
    weights = WEIGHTS + 0.5 if case == "weighted" else None
    groups = GROUPS if case == "grouped" else None
    local = CorralClassifier(random_state=0).fit(rows, Y, weights, groups)
    found = DaskCorralClassifier(random_state=0, block_rows=50).fit(rows, Y, weights, groups)
    assert_allclose(found.predict_proba(queries), local.predict_proba(queries), rtol=0, atol=1e-10)
    assert found.cv_accuracy_ == pytest.approx(local.cv_accuracy_, abs=1e-10)
    assert str(found.describe()) == str(local.describe())
    assert str(found.explain(queries)) == str(local.explain(queries))


@pytest.fixture(scope="module")
def thinned():
    return DaskCorralClassifier(**FEW).fit(*chunked())


@pytest.mark.parametrize("weights", [None, RNG.lognormal(size=len(X))], ids=["alike", "weighted"])
def test_same_numbers_for_any_partitions(weights):
    first, *others = (DaskCorralClassifier(**FEW).fit(*chunked(chunks), weights) for chunks in PARTITIONS)
    expected = first.predict_proba(QUERIES)
    for other in others:
        assert_allclose(other.predict_proba(QUERIES), expected, rtol=0, atol=1e-10)
        assert_allclose(other.class_prior_, first.class_prior_, rtol=1e-14)
        assert_array_equal(other.model_.data.numbers, first.model_.data.numbers)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
def test_cells_have_all_rows_but_those_held_out(weights):
    found = DaskCorralClassifier(**FEW).fit(*chunked(), weights)
    w = np.ones(len(X)) if weights is None else weights
    compression, data = found.model_.compression, found.model_.data
    in_cells = np.isin(np.arange(len(X)), compression.held_out.numbers, invert=True) & (w > 0.0)
    totals = []
    for a, label in enumerate(found.classes_):
        counted = (w > 0.0) & (label == Y)
        at = np.flatnonzero(in_cells & counted)
        if a not in compression.held_out.codes:
            assert_array_equal(np.sort(data.numbers[data.codes == a]), np.flatnonzero(counted))
            continue
        assert compression.counts[data.codes == a].sum() == at.size
        shares = data.weights[data.codes == a]
        totals.append(shares.sum() / w[at].sum())
        for member in found.model_.pool.members:  # the mean is that of all rows, one by one
            mean = np.average(member.scale.transform(X[at]), axis=0, weights=w[at])
            assert_allclose(np.average(member.classes[a].rows, axis=0, weights=shares), mean, atol=1e-12)
    assert_allclose(totals, totals[0], rtol=1e-12)


def test_counts_and_priors_are_of_all_rows(thinned):
    assert_array_equal(thinned.class_count_, [40.0, 40.0, 40.0])
    two = DaskCorralClassifier(**FEW).fit(chunked()[0], da.from_array(np.where(Y == 1, 4, Y), chunks=33))
    assert_array_equal(two.class_count_, [80.0, 40.0])
    assert_array_equal(two.class_prior_, [2 / 3, 1 / 3])


def test_an_ordinary_model(thinned, tmp_path):
    local = thinned.to_local()
    assert type(local) is CorralClassifier
    expected = thinned.predict_proba(QUERIES)
    assert_array_equal(local.predict_proba(QUERIES), expected)
    save_model(local, tmp_path / "groups.corral")
    loaded = load_model(tmp_path / "groups.corral")
    assert_array_equal(loaded.predict_proba(QUERIES), expected)
    assert str(loaded.explain(QUERIES)) == str(thinned.explain(QUERIES))
    with pytest.raises(TypeError, match=r"not DaskCorralClassifier; call its to_local\(\) first"):
        save_model(thinned, tmp_path / "cluster.corral")
    write_report(thinned, QUERIES[:3], path=tmp_path / "report.html")
    assert thinned.typicality(QUERIES).shape == (15, 3)
    assert thinned.predict_set(QUERIES).shape == (15, 3)
    assert not hasattr(thinned, "partial_fit")
    rows = thinned.explain(QUERIES[:1]).rows[0]  # those of the table
    assert rows.size == 5
    assert_array_equal(thinned.model_.rows_by_number(rows), X[rows])


@pytest.mark.parametrize("known", [True, False])
def test_levels_gaps_weights_and_groups_of_many_rows(known, tmp_path):
    frame = FRAME.assign(is_wet=FRAME["is_wet"].astype("category"))
    tables = [dd.from_pandas(frame, npartitions=n, sort=False) for n in (3, 5)]
    columns = pd.DataFrame({"y": Y, "w": WEIGHTS, "g": GROUPS}).assign(g=lambda t: "g" + t["g"].astype(str))
    models = []
    for table in tables:
        if not known:
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


def test_numbers_that_are_levels():
    codes = np.searchsorted([1, 4, 5], Y)
    table = np.column_stack([X[:, 0], codes])
    found = DaskCorralClassifier(**FEW, categorical_features=[1]).fit(*chunked(((60, 60), (2,)), table))
    assert found.encoding_.categories[1] == [0.0, 1.0, 2.0]
    assert (found.predict(table) == Y).all()


def test_copies_of_an_estimator(thinned):
    client = object()
    copy = clone(DaskCorralClassifier(client=client, max_rows=7))
    assert (copy.client, copy.max_rows) == (client, 7)  # a client cannot be copied
    copy = pickle.loads(pickle.dumps(thinned))
    assert_array_equal(copy.predict_proba(QUERIES), thinned.predict_proba(QUERIES))


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
            "holds dates, which only CorralClassifier makes variables of",
        ),
        (np.where(Y == 4, np.inf, 1.0), "holds an infinite value"),
        ([f"id {i}" for i in range(len(X))], "holds more than 100 levels"),
    ],
    ids=["dates", "infinite", "ids"],
)
def test_refuses_columns_by_name(column, complaint, monkeypatch):
    monkeypatch.setattr("corral.dask.categories._MOST_CATEGORIES", 100)
    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(more=column), npartitions=2)
    with pytest.raises(ValueError, match=f"Column 'more' {complaint}"):
        DaskCorralClassifier(**FEW).fit(frame, dd.from_pandas(pd.Series(Y), 2))


def test_refuses_categories_and_groups_that_are_not_known():
    ordered = dd.from_pandas(FRAME, npartitions=2)
    ordered["size"] = ordered["size"].cat.as_unknown()
    y = dd.from_pandas(pd.Series(Y), npartitions=2)
    for rows, labels, options, groups, complaint in (
        (ordered, y, {}, None, "Column 'size' is ordered, but its categories are not known"),
        (FRAME, Y, {"categorical_features": None}, None, "Column 'colour' holds values .*asks for numbers"),
        (*chunked(), {}, np.where(GROUPS == 3, np.nan, GROUPS), "groups must name a group for each row"),
        (*chunked(), {}, Y, "groups must spread some class over at least two groups"),
    ):
        with pytest.raises(ValueError, match=complaint):
            DaskCorralClassifier(**FEW, **options).fit(rows, labels, groups=groups)


def test_text_of_dates_is_told_to_be_categories():
    days = pd.date_range("2020", periods=3).astype(str)[np.arange(len(X)) % 3]
    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(more=days), npartitions=2)
    with pytest.warns(ColumnKindWarning, match="Column 'more' holds dates as text"):
        model = DaskCorralClassifier(**FEW).fit(frame, dd.from_pandas(pd.Series(Y), 2))
    assert model.encoding_.categories[-1] == sorted(set(days))
