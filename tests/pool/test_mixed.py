"""Missing values, categories and groups: the core against plain loops and integrals, and estimators."""

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, cross_validate

from corral import (
    CorralClassifier,
    LSPClassifier,
    MarkerSelector,
    RodeoClassifier,
    RodeoDensity,
    RodeoSelector,
    UnknownCategoriesWarning,
    load_model,
    save_model,
)
from corral.data.tiles import ClassRows
from corral.rodeo.descent import kernel_density, rodeo
from corral.rodeo.factors import draw_kernels
from corral.rodeo.settings import RodeoSettings
from pool import pool_oracle
from support.exploring import seeds
from support.tables import assert_integrates

N_CATEGORIES = [0, 3, 0, 2]


def mixed_rows(seed, n=40, missing_share=0.3, categories=N_CATEGORIES):
    """Rows of measurements and categories with missing values; each row has a value."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, k, n) if k else rng.normal(size=n) for k in categories]).astype(
        float
    )
    holes = rng.random(X.shape) < missing_share
    holes[holes.all(axis=1), 0] = False
    X[holes] = np.nan
    return X


def general(X, weights=None, categories=N_CATEGORIES, group_ids=None):
    return ClassRows.arrange(X, weights, np.array(categories), group_ids)


# ------------------------------------------------------------------------------------- the core, exactly


@pytest.mark.parametrize("seed", range(4))
def test_densities_are_those_of_plain_loops(seed):
    X, x = mixed_rows(seed), mixed_rows(seed + 100, n=6)
    weights = np.random.default_rng(seed).uniform(0.2, 1.0, len(X)) if seed % 2 else np.ones(len(X))
    h = np.array([0.3, 0.6, 0.5, 0.4])
    actual = kernel_density(general(X, weights), x, h)
    expected = [pool_oracle.mixed_log_density(X, weights / weights.max(), q, h, N_CATEGORIES) for q in x]
    assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("update", ["simultaneous", "sequential"])
@pytest.mark.parametrize("seed", range(3))
def test_the_rodeo_is_that_of_plain_loops(seed, update):
    X, x = mixed_rows(seed, n=30), mixed_rows(seed + 50, n=4)
    X[:20, 0] = np.random.default_rng(seed).normal(0, 0.05, 20)  # so that some bandwidths shrink
    grid = RodeoSettings(beta=0.8).grid(len(X))
    log_density, steps = rodeo(general(X), grid, x, update)
    assert steps.max() > 2
    for q, actual, k in zip(x, log_density, steps, strict=True):
        h, expected = pool_oracle.mixed_rodeo(X, q, N_CATEGORIES, grid.tolist(), update)
        assert_allclose(grid[k][~np.isnan(q)], np.array(h)[~np.isnan(q)])
        assert_allclose(actual, expected, rtol=1e-10)


@pytest.mark.parametrize("update", ["simultaneous", "sequential"])
def test_a_group_that_is_left_out_might_not_be_there(update):
    X = mixed_rows(3, n=40)
    group_ids = np.arange(40) // 3
    grid = RodeoSettings().grid(37)
    own = np.array([0, 7, 20])
    actual, steps = rodeo(general(X, group_ids=group_ids), grid, X[own], update, own)
    for i, log_density, k in zip(own, actual, steps, strict=True):
        rest = general(X[group_ids != group_ids[i]])
        expected, expected_steps = rodeo(rest, grid, X[i : i + 1], update)
        assert_allclose(log_density, expected[0], rtol=1e-10)
        assert_array_equal(k, expected_steps[0])


@pytest.mark.parametrize("seed", range(2))
def test_a_missing_value_of_a_sample_is_integrated_out(seed):
    rows, h = general(mixed_rows(seed, n=25)), np.array([0.4, 0.5, 0.6, 0.5])
    assert_integrates(lambda x: kernel_density(rows, x, h), [0.1, 1, 0.2, 0], [0, 2], range(3))


# ------------------------------------------------------------------------------------------ estimators


@pytest.fixture(scope="module")
def table():
    """Two classes of rows with text, a flag, an ordered column and missing values, and samples."""
    rng = np.random.default_rng(0)
    n = 320
    y = np.repeat(["frog", "toad"], n // 2)
    frame = pd.DataFrame(
        {
            "length": rng.normal(np.where(y == "frog", 3.0, 5.0), 1.0),
            "colour": np.where(rng.random(n) < np.where(y == "frog", 0.8, 0.3), "green", "brown"),
            "wet": rng.random(n) < 0.5,
            "size": pd.Categorical(rng.choice(["s", "m", "l"], n), categories=["s", "m", "l"], ordered=True),
        }
    )
    frame.loc[rng.random(n) < 0.2, "length"] = np.nan
    frame["colour"] = frame["colour"].astype(object)
    frame.loc[rng.random(n) < 0.2, "colour"] = None
    train, test = np.split(rng.permutation(n), [160])
    return frame.iloc[train], y[train], frame.iloc[test], y[test]


@pytest.fixture(scope="module")
def pool(table):
    return CorralClassifier(random_state=0).fit(*table[:2])


ESTIMATORS = [
    RodeoClassifier(),
    RodeoClassifier(update="sequential", scale="rank"),
    RodeoClassifier(bandwidth="class", features="selected"),
    RodeoClassifier(bandwidth="class", scale="standard"),
    CorralClassifier(random_state=0),
]


@pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_classifiers_take_a_table_as_it_is(table, estimator, tmp_path):
    X, y, samples, labels = table
    model = clone(estimator).fit(X, y)
    P = model.predict_proba(samples)
    assert_allclose(P.sum(axis=1), 1.0)
    assert model.score(samples, labels) > 0.7
    # A sample that has no value gets the priors.
    nothing = samples.iloc[:1].astype({"wet": object}).reindex([-1])
    assert_allclose(model.predict_proba(nothing), [model.class_prior_], rtol=1e-12)
    # A missing value carries no evidence, and evidence is finite.
    few = samples.iloc[:12]
    evidence = model.explain(few).evidence
    assert np.isfinite(evidence).all()
    assert few.isna().to_numpy().any()
    assert (evidence[few.isna().to_numpy()] == 0.0).all()
    assert np.isfinite(model.feature_importances_).all()
    # Files bring everything back.
    path = tmp_path / "model.corral"
    save_model(model, path)
    restored = load_model(path)
    assert_array_equal(restored.predict_proba(samples), P)
    assert_array_equal(restored.explain(few).evidence, evidence)
    assert str(restored.describe()) == str(model.describe())
    # Threads and the order of rows change nothing but rounding.
    turned = clone(estimator).set_params(n_jobs=2).fit(X.iloc[::-1], y[::-1]).predict_proba(samples)
    assert_allclose(turned, P, rtol=1e-6, atol=1e-9)
    # A sample's bits do not depend on others.
    assert_array_equal(model.predict_proba(samples.iloc[3:5]), P[3:5])


def test_missing_values_of_all_kinds_and_frames_are_alike(table, pool):
    X, y, samples, _ = table
    expected = pool.predict_proba(samples)
    missing = [
        frame.assign(length=frame["length"].astype("Float64"), colour=frame["colour"].astype("string"))
        for frame in (X, samples)
    ]
    actual = CorralClassifier(random_state=0).fit(missing[0], y).predict_proba(missing[1])
    assert_array_equal(actual, expected)
    enum = pl.Enum(["brown", "green", "blue"])  # blue has no rows
    sizes = [frame["size"].cat.codes for frame in (X, samples)]
    enums = [
        pl.from_pandas(frame.assign(size=size)).with_columns(pl.col("colour").cast(enum))
        for frame, size in zip((X, samples), sizes, strict=True)
    ]
    actual = CorralClassifier(random_state=0).fit(enums[0], y).predict_proba(enums[1])
    assert_allclose(actual, expected, rtol=1e-9)


def test_columns_can_be_declared_as_categories():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=90), rng.integers(0, 3, 90)])
    y = (X[:, 1] == 1).astype(int)
    by_position = RodeoClassifier(categorical_features=[1]).fit(X, y)
    by_mask = RodeoClassifier(categorical_features=[False, True]).fit(X, y)
    frame = pd.DataFrame(X, columns=["a", "b"])
    by_name = RodeoClassifier(categorical_features=["b"]).fit(frame, y)
    as_text = RodeoClassifier().fit(frame.assign(b=frame["b"].astype(str)), y)
    expected = as_text.predict_proba(frame.assign(b=frame["b"].astype(str)))
    for model, rows in ((by_position, X), (by_mask, X), (by_name, frame)):
        assert_array_equal(model.predict_proba(rows), expected)
    plain = RodeoClassifier(categorical_features=None).fit(frame, y)
    assert_array_equal(plain.predict_proba(frame), RodeoClassifier().fit(X, y).predict_proba(X))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("all", "categorical_features must be 'from_dtype', None or columns, got 'all'."),
        (["c"], "categorical_features lists 'c', which is not one of the columns."),
        ([7], "categorical_features lists 7, which is not one of the columns."),
        ([True], "categorical_features must be a mask of 2 columns, got \\[True\\]."),
    ],
)
def test_columns_that_are_not_there(given, message):
    with pytest.raises(ValueError, match=message):
        RodeoClassifier(categorical_features=given).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])


def test_a_category_that_training_did_not_have_counts_as_missing(table, pool):
    samples = table[2]
    strange, missing = samples.copy(), samples.copy()
    strange.iloc[:3, 1] = "purple"
    missing.iloc[:3, 1] = None
    with pytest.warns(
        UnknownCategoriesWarning, match=r"count as missing: 3 of 'colour' \(such as 'purple'\)\."
    ):
        actual = pool.predict_proba(strange)
    assert_array_equal(actual, pool.predict_proba(missing))


SHADES = pd.CategoricalDtype(["red", "blue", "amber"])
COLOURS = ["blue", "red", None, "red", "blue", "red", "amber", None, "red", "amber", "blue", "red"]


@pytest.mark.parametrize(
    ("colours", "categories", "parameters"),
    [
        (np.array(COLOURS, dtype=object), ["amber", "blue", "red"], {}),
        (pd.Series(COLOURS, dtype=SHADES), ["red", "blue", "amber"], {}),
        (np.array([7, "b", 7, "b", 7, 7, "a", 3, None, 3, "b", "a"], dtype=object), [3, 7, "a", "b"], {}),
        (pd.Series(["b", "b", "a"] * 4), ["a", "b"], {}),
        ([2, 1] * 3 + [0, 5, 1] * 2, [0, 1, 2, 5], {"categorical_features": ["colour"]}),
    ],
)
def test_parts_of_a_table_may_have_new_categories(colours, categories, parameters):
    frame = pd.DataFrame({"length": np.random.default_rng(0).normal(size=12), "colour": colours})
    y = np.arange(12) % 2
    at_once = RodeoClassifier(**parameters).fit(frame, y)
    parts = RodeoClassifier(**parameters).fit(frame[:6], y[:6]).partial_fit(frame[6:], y[6:])
    assert parts.encoding_.categories == at_once.encoding_.categories == [None, categories]
    assert_array_equal(parts.model_.training.X, at_once.model_.training.X)
    assert_array_equal(parts.model_.training.n_categories, at_once.model_.training.n_categories)
    assert_array_equal(parts.predict_proba(frame), at_once.predict_proba(frame))
    assert str(parts.describe()) == str(at_once.describe())


def test_parts_that_lack_earlier_categories_keep_an_order():
    frame = pd.DataFrame({"x": np.arange(6.0), "c": pd.Categorical(list("babaca"), categories=list("bac"))})
    model = RodeoClassifier().fit(frame, [0, 1] * 3)
    others = pd.DataFrame({"x": [0.5, 1.5], "c": pd.Categorical(["d", "b"], categories=["d", "b"])})
    assert model.partial_fit(others, [0, 1]).encoding_.categories[1] == ["a", "b", "c", "d"]
    assert_array_equal(model.model_.training.X[:, 1], [1, 0, 1, 0, 2, 0, 3, 1])


def test_ordered_categories_take_no_new_ones():
    sizes, more = (pd.CategoricalDtype(names, ordered=True) for names in (["s", "m"], ["s", "m", "l"]))
    frame = pd.DataFrame({"x": np.arange(4.0), "size": pd.Series(["s", "m"] * 2, dtype=sizes)})
    model = RodeoClassifier().fit(frame, [0, 0, 1, 1])
    before = vars(model).copy()
    larger = frame.assign(size=pd.Series(["s", "m", "l", "s"], dtype=more))
    with pytest.raises(
        ValueError, match=r"^Column 'size' has the new category 'l', which has no place in the order "
    ):
        model.partial_fit(larger, [0, 0, 1, 1])
    assert vars(model) == before


@pytest.mark.parametrize(
    ("length", "error", "message"),
    [
        (["long"] * 4, ValueError, "held numbers in fit, but has 'long' in row 0."),
        (pd.date_range("2020-01-01", periods=4), ValueError, "held numbers in fit, but has '2020-01-01"),
        ([[1], 2, 3, 4], TypeError, "holds a list"),
        ([1.0, math.inf, 2.0, 3.0], ValueError, "holds an infinite value in row 1."),
    ],
)
def test_a_column_that_cannot_be_read_is_named(length, error, message):
    frame = pd.DataFrame({"length": [1.0, 2.0, 3.0, 4.0], "colour": ["a", "b", "a", "b"]})
    y = [0, 0, 1, 1]
    for use in (
        RodeoClassifier().fit(frame, y).predict,
        RodeoClassifier().fit(frame[["length"]], y).predict,
        RodeoDensity().fit(frame).score_samples,
        RodeoSelector(cutpoint=math.inf).fit(frame, y).transform,
    ):
        columns = ["length"] if use.__self__.n_features_in_ == 1 else list(frame)
        with pytest.raises(error, match=f"Column 'length' {message}"):
            use(frame.assign(length=length)[columns])


@pytest.mark.parametrize("values", [[{"a": 1}, {"a": 2}], [[1], [2]]])
def test_polars_columns_of_structures_are_named(values):
    frame = pl.DataFrame({"x": [1.0, 2.0], "held": values})
    with pytest.raises(ValueError, match="Column 'held' holds values of type"):
        RodeoClassifier().fit(frame, [0, 1])


def test_a_few_texts_among_numbers_are_not_taken_for_categories():
    values = np.array([*range(3700, 3708), "37O0", None, *range(3708, 3710)], dtype=object)
    frame = pd.DataFrame({"b": np.arange(12.0), "mass": pd.Series(values, dtype=object)})
    y = np.arange(12) % 2
    message = "Column 'mass' holds numbers, but '37O0' in row 8: correct the value, or list the column in "
    for categorical in ("from_dtype", ["b"]):
        with pytest.raises(ValueError, match=message):
            RodeoClassifier(categorical_features=categorical).fit(frame, y)
    with pytest.raises(ValueError, match="Column 'x1' holds numbers, but '37O0' in row 8: "):
        CorralClassifier().fit(frame.to_numpy(object), y)
    model = RodeoClassifier(categorical_features=["mass"]).fit(frame, y)
    assert model.encoding_.categories[1][-1] == "37O0"
    assert np.isfinite(model.predict_proba(frame)).all()
    several = frame.assign(mass=frame["mass"].where(frame["b"] > 2, "none"))
    assert RodeoClassifier().fit(several, y).encoding_.categories[1] is not None


@pytest.mark.parametrize("kind", [float, int, object])
def test_masked_cells_are_missing(kind):
    rng = np.random.default_rng(0)
    X = np.ma.masked_array((10.0 * rng.normal(size=(30, 2))).astype(kind), mask=rng.random((30, 2)) < 0.2)
    y = np.arange(30) % 2
    filled = np.where(X.mask, np.nan, X.data.astype(float))
    model = RodeoClassifier().fit(X, y)
    assert_array_equal(model.model_.training.X, filled)
    assert_array_equal(model.predict_proba(X), model.predict_proba(filled))
    with pytest.raises(ValueError, match="Column 'x0' has missing values"):
        LSPClassifier().fit(X, y)


TAKES_MISSING = [RodeoClassifier, CorralClassifier, RodeoDensity, RodeoSelector, MarkerSelector]


@pytest.mark.parametrize("as_table", [pd.DataFrame, np.array, list])
@pytest.mark.parametrize("estimator", [*TAKES_MISSING, LSPClassifier])
def test_impossible_columns_are_refused_in_a_sentence(estimator, as_table):
    rows = [[float(i), float(i * i % 7)] for i in range(12)]
    y = np.arange(12) % 2
    if estimator in TAKES_MISSING:
        with pytest.raises(
            ValueError, match=r"X holds no value: all cells of all rows are missing \(NaN\)\."
        ):
            estimator().fit(as_table([[np.nan, np.nan]] * 12), y)
    rows[3][1] = 10**400
    name, options = ("1", {"dtype": object}) if as_table is pd.DataFrame else ("x1", {})
    message = f"Column '{name}' holds a number in row 3 that is too large for a float"
    with pytest.raises(ValueError, match=message):
        estimator().fit(as_table(rows, **options), y)
    frame = pd.DataFrame(np.arange(36.0).reshape(12, 3), columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="X has several columns named 'a'"):
        estimator().fit(frame, y)


def test_rows_that_count_may_hold_nothing():
    X = np.full((6, 2), np.nan)
    X[0] = 1.0
    model = RodeoClassifier().fit(X, [0, 1, 0, 1, 0, 1], [0, 1, 1, 1, 1, 1])
    assert_allclose(model.predict_proba(X), 0.5)


def test_describe_names_categories_and_missing_values():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 100)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=300),
            "island": np.where(
                (y == "b") & (rng.random(300) < 0.9), "Dream", rng.choice(["Biscoe", "Torgersen"], 300)
            ),
        }
    )
    frame.loc[(y == "c") & (rng.random(300) < 0.4), "x"] = np.nan
    description = CorralClassifier(random_state=0).fit(frame, y).describe()
    lines = str(description).splitlines()
    assert 'island = "Dream" more often' in lines[1]
    assert "x missing more often" in lines[2]
    assert "missing" not in lines[0] + lines[1]
    shown = description.to_frame().set_index(["class", "variable"])
    assert shown.loc[("b", "island"), "typical"] == "Dream"
    missing = frame["x"].isna()
    assert shown.loc[("c", "x"), "missing"] == pytest.approx(missing[y == "c"].mean())
    assert shown.loc[("c", "x"), "background_missing"] == 0.0
    assert shown["often_missing"].sum() == shown.loc[("c", "x"), "often_missing"] == 1
    complete_frame = frame.assign(x=3.0 * np.searchsorted(["a", "b", "c"], y) + rng.normal(size=300))
    assert "missing" not in MarkerSelector().fit(complete_frame, y).describe().to_frame()
    assert "x missing more often" in str(
        MarkerSelector().fit(complete_frame.where(frame.notna()), y).describe()
    )


def test_chance_does_not_make_values_missing_more_often():
    """At a level of 0.01 for all variables of a class: about 3 of 300 classes with random missing values."""
    n_reported = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        y = np.repeat(["a", "b", "c"], 40)
        X = rng.normal(size=(120, 8))
        X[:, 0] += 3.0 * np.repeat([0, 1, 2], 40)
        X[rng.random(X.shape) < 0.3] = np.nan
        n_reported += int(MarkerSelector().fit(X, y).describe().often_missing.any(axis=1).sum())
    assert n_reported <= 6


def test_a_selector_keeps_columns_of_text(table):
    X, y, samples, _ = table
    selector = MarkerSelector().set_output(transform="pandas").fit(X, y)
    kept = selector.transform(samples)
    assert {"length", "colour"} <= set(kept.columns)
    assert "colour" in str(selector.describe())


def test_the_density_of_a_table_as_it_is(table):
    X, _, samples, _ = table
    density = RodeoDensity().fit(X)
    assert np.isfinite(density.score_samples(samples)).all()
    drawn = density.sample(500, random_state=0)
    assert not np.isnan(drawn).any()
    shares = np.bincount(drawn[:, 1].astype(int)) / 500
    assert_allclose(shares[1], (X["colour"] == "green").sum() / X["colour"].notna().sum(), atol=0.15)
    # In one dimension it integrates to 1, with missing values or without.
    one = RodeoDensity().fit(X[["length"]])
    t = np.linspace(-10.0, 20.0, 2001)
    values = np.exp(one.score_samples(pd.DataFrame({"length": t})))
    assert 0.9 < np.trapezoid(values, t) < 1.25  # the bandwidths change with the sample


@pytest.mark.parametrize("column", ["few heavy rows", "constant", "categories"])
def test_missing_values_of_rows_are_drawn_from_the_density_of_the_variable(column):
    rng = np.random.default_rng(0)
    x = {"constant": np.full(40, 2.0), "categories": rng.integers(0, 2, 40)}.get(column, rng.normal(size=40))
    weights = np.where(np.arange(40) < 3, 1.0, 0.01) if column == "few heavy rows" else np.ones(40)
    n_categories, n = (3 if column == "categories" else 0), 20_000
    rows = general(np.append(x, np.nan)[:, np.newaxis].astype(float), np.append(weights, 1.0), [n_categories])
    random, missing = np.random.RandomState(0), np.full((n, 1), np.nan)
    drawn = draw_kernels(rows, missing, np.full((n, 1), 0.5), random.standard_normal((n, 1)), random)[:, 0]
    pairs = list(zip(x, weights, strict=True))
    t = np.arange(3.0) if n_categories else np.linspace(-8.0, 10.0, 901)
    density = np.array([pool_oracle.value_density(pairs, value, n_categories) for value in t])
    expected = density.cumsum() if n_categories else density.cumsum() * (t[1] - t[0])
    assert_allclose((drawn[:, np.newaxis] <= t).mean(axis=0), expected, atol=0.015)


@pytest.mark.parametrize("estimator", TAKES_MISSING)
def test_tags_list_accepted_inputs(estimator):
    tags = estimator().__sklearn_tags__().input_tags
    assert tags.allow_nan
    assert tags.categorical


# --------------------------------------------------------------------------------------------- groups


def grouped(seed, n_groups=30, size=6, d=5):
    """Rows that resemble their group far more than their class; labels are random by group."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), size)
    X = rng.normal(size=(n_groups, d))[groups] + 0.05 * rng.normal(size=(groups.size, d))
    return X, (rng.random(n_groups) < 0.5).astype(int)[groups], groups


def test_labels_that_are_random_by_group_are_not_predictable():
    scores = []
    for seed in range(5):
        X, y, groups = grouped(seed)
        scores.append(CorralClassifier(random_state=0).fit(X, y, groups=groups).cv_accuracy_)
    assert CorralClassifier(random_state=0).fit(X, y).cv_accuracy_ > 0.95
    assert abs(np.mean(scores) - 0.5) < 0.1


def test_groups_are_left_out_by_the_rodeo():
    X, y, groups = grouped(0, n_groups=20, size=4, d=2)
    alone = RodeoClassifier().fit(X, y)
    together = RodeoClassifier().fit(X, y, groups=groups)
    # Without the others of its group a row has no close neighbour for which a bandwidth would shrink.
    assert (together.bandwidths_ > alone.bandwidths_).all()
    by_name = RodeoClassifier().fit(X, y, groups=np.char.add("patient ", groups.astype(str)))
    assert_array_equal(by_name.bandwidths_, together.bandwidths_)
    # Samples belong to no group.
    assert_allclose(together.predict_proba(X), alone.predict_proba(X), rtol=1e-9)


def test_groups_in_parts_and_files(tmp_path):
    X, y, groups = grouped(1, n_groups=12, size=4, d=2)
    at_once = RodeoClassifier().fit(X, y, groups=groups)
    parts = RodeoClassifier().partial_fit(X[:24], y[:24], classes=[0, 1], groups=groups[:24])
    parts.partial_fit(X[24:], y[24:], groups=groups[24:])
    assert_array_equal(parts.bandwidths_, at_once.bandwidths_)
    with pytest.raises(ValueError, match=r"groups must be given for all parts of the rows, or for none\."):
        parts.partial_fit(X[:2] + 0.01, y[:2])
    save_model(at_once, tmp_path / "model.corral")
    restored = load_model(tmp_path / "model.corral")
    assert_array_equal(restored.model_.training.groups, groups)
    assert_array_equal(restored.partial_fit(X[:2] + 0.01, y[:2], groups=[0, 0]).classes_, [0, 1])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], r"groups must have the shape \(4,\), got \(2,\)\."),
        ([1, None, 2, 2], "but row 1 has none"),
        (np.array(["2020", "NaT", "2021", "2021"], dtype="M8[ns]"), "but row 1 has none"),
        ([7, 7, 7, 7], "at least two groups, got one"),
        ([1, 1, 2, 2], "each class is in a single group"),
    ],
)
@pytest.mark.parametrize("estimator", [RodeoClassifier, CorralClassifier])
def test_bad_groups(estimator, groups, message):
    with pytest.raises(ValueError, match=message):
        estimator().fit(np.arange(8.0).reshape(4, 2), [0, 0, 1, 1], groups=groups)


def test_groups_of_all_parts_count_together():
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 0, 0, 1, 1, 1])
    model = RodeoClassifier().fit(X[:3], [0, 1, 1], groups=[1, 2, 3])
    model.partial_fit(X[3:], y[3:], groups=[1, 1, 1])
    assert_array_equal(model.model_.training.groups, [0, 1, 2, 3, 3, 3])


def test_rows_without_weight_are_of_no_group():
    X, y = np.arange(12.0).reshape(6, 2), [0, 0, 0, 1, 1, 1]
    with pytest.raises(ValueError, match="each class is in a single group"):
        RodeoClassifier().fit(X, y, [1, 1, 0, 1, 1, 1], groups=[1, 1, 2, 3, 3, 3])
    RodeoClassifier().fit(X, y, groups=[1, 1, 2, 3, 3, 3])


def test_parts_of_one_group_for_each_class_have_finite_evidence():
    rng = np.random.default_rng(0)
    X, y = 1e3 * rng.normal(size=(40, 3)), np.arange(40) % 2
    model = RodeoClassifier(bandwidth="class").partial_fit(X, y, groups=y)  # others may follow
    assert np.isfinite(model.feature_importances_).all()
    assert np.isfinite(model.typicality(X)).all()
    assert np.isfinite(model.explain(X[:2]).evidence).all()


def test_groups_are_routed():
    X, y, groups = grouped(2)
    with sklearn.config_context(enable_metadata_routing=True):
        model = CorralClassifier(random_state=0).set_fit_request(groups=True)
        actual = cross_validate(
            model, X, y, params={"groups": groups}, cv=GroupKFold(3), return_estimator=True
        )
    assert all(fitted.model_.training.groups is not None for fitted in actual["estimator"])


# ------------------------------------------------------------------------------------- hostile tables


def hostile(seed):
    """A table with empty rows, columns or classes, with one category or very many, or mixed types."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 60)), int(rng.integers(1, 6))
    columns = {}
    for j in range(d):
        kind = rng.integers(0, 9)
        x = rng.normal(size=n) * 10.0 ** rng.integers(-200, 200) if kind == 0 else rng.normal(size=n)
        values = {
            0: x,
            1: np.full(n, np.nan),
            2: np.array(["same"] * n, dtype=object),
            3: np.array([f"level {i}" for i in range(n)], dtype=object),
            4: rng.integers(0, 2, n).astype(bool).astype(object),
            5: np.array([None, "a", 1.5, True][: max(1, n)] * n, dtype=object)[:n],
            6: np.where(rng.random(n) < 0.9, np.nan, x),
            7: rng.choice(["a", "b", None], n),
            8: np.round(x),
        }[int(kind)]
        columns[f"c{j}"] = values
    frame = pd.DataFrame(columns)
    y = rng.integers(0, int(rng.integers(2, 4)), n)
    if rng.random() < 0.3:  # values are missing in one class only, or in all of it
        frame.loc[y == 0, "c0"] = None
    if rng.random() < 0.3:
        frame.iloc[:2] = None
    return frame, y


@pytest.mark.filterwarnings(
    "ignore::corral.EmptySelectionWarning",
    "ignore::corral.DuplicatesWarning",
    "ignore::corral.NearDuplicatesWarning",
    "ignore:no training row has a value of:UserWarning",
)
@pytest.mark.hypothesis
@pytest.mark.parametrize("seed", seeds(12))
def test_hostile_tables_get_a_fit_or_one_sentence(seed):
    frame, y = hostile(seed)
    kinds = [CorralClassifier(random_state=0), ESTIMATORS[seed % 4]]
    for estimator in kinds:
        try:
            model = clone(estimator).fit(frame, y)
        except ValueError as error:
            message = str(error)
        else:
            message = None
        if message is not None:
            assert "\n" not in message
            continue
        P = model.predict_proba(frame)
        assert np.isfinite(P).all()
        assert_allclose(P.sum(axis=1), 1.0)
        assert np.isfinite(model.explain(frame.iloc[:3]).evidence).all()
        assert "nan" not in str(model.describe()).replace("missing", "")


def test_five_thousand_categories():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": [f"p{i}" for i in range(5000)], "x": rng.normal(size=5000)})
    y = (frame["x"] + rng.normal(size=5000) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = CorralClassifier(random_state=0).fit(frame.iloc[::5], y[::5])
    assert abs(model.cv_accuracy_ - 0.75) < 0.06  # about the accuracy of x alone: an id is noise


@pytest.mark.parametrize(
    "y",
    [
        np.array(["a", "b"] * 9 + ["a", None], dtype=object),
        np.r_[np.arange(19) % 2 * 1.0, np.nan],
        pd.Series(["a", "b"] * 9 + ["a", pd.NA]),
        pd.Series(pd.Categorical(["a", "b"] * 9 + ["a", None])),
        pd.Series([1, 0] * 9 + [1, None], dtype="Int64"),
        ["a", "b"] * 9 + ["a", None],
        np.array(["2020", "2021"] * 9 + ["2020", "NaT"], dtype="M8[ns]"),
        pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"] * 9 + ["2020-01-01", None])),
        np.array([*np.array([1, 2] * 9 + [1], dtype="m8[h]"), np.timedelta64("NaT")], dtype=object),
    ],
    ids=["objects", "floats", "NA", "categories", "Int64", "list", "times", "dates", "durations"],
)
@pytest.mark.parametrize("make", [RodeoClassifier, CorralClassifier, MarkerSelector, LSPClassifier])
def test_missing_labels_are_counted_and_placed(make, y):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=r"^1 of 20 labels are missing, the first in row 19: fill them in"):
        make().fit(X, y)
