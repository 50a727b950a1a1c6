"""Tests of model files: every bit is restored, and no file does harm."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal
from safetensors.numpy import save_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB

import corral.files.model_file
from corral import (
    CorralClassifier,
    LSPClassifier,
    MarkerSelector,
    RodeoClassifier,
    RodeoDensity,
    RodeoSelector,
    load_model,
    save_model,
)
from corral.datasets import make_shifted_groups
from corral.estimators.encoding import Encoding
from corral.files.model_file import FORMAT, _checksum, read_header
from support.forgery import forge_value, put_together, take_apart

pytestmark = pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")

ESTIMATORS = [
    RodeoClassifier(),
    RodeoClassifier(update="sequential", scale=None, beta=0.8, c0=0.5, min_bandwidth=0.01, cutpoint=-np.inf),
    RodeoClassifier(scale="standard", priors=np.array([0.5, 0.25, 0.25])),
    RodeoClassifier(scale="rank", bandwidth="class", features="selected"),
    RodeoClassifier(bandwidth="class", priors="empirical", random_state=0),
    CorralClassifier(random_state=0),
    CorralClassifier(priors=np.array([0.2, 0.3, 0.5]), min_effect=0.3, random_state=0),
    CorralClassifier(class_weight="balanced", random_state=0),
    RodeoDensity(),
    RodeoDensity(scale=None),
    RodeoDensity(scale="standard", min_bandwidth=0.1),
    MarkerSelector(),
    RodeoSelector(cutpoint=-0.5),
    LSPClassifier(alphas=(0.1,), cv=3),
    LSPClassifier(scale="rank", sigmas=[0.5, 1.0], alphas=np.array([0.1, 1.0]), cv=3),
    LSPClassifier(scale="standard", sigmas=(1.0,), alphas=(0.1,)),
    LSPClassifier(max_centers=5, random_state=0, sigmas=(1.0,), alphas=(0.1,)),
]
SPECIES = np.array(["ant", "bee", "cat"])
LABELS = [
    [1, 2, 5],
    np.array([1, 2, 5], dtype=np.int8),
    [-3, 0, 2**62],
    [0.0, 1.0, 7.0],
    [False, False, True],
    ["ähre", "b <img src=x>", "zzz"],
    np.array(["a", "b", "c"], dtype=object),
]


@pytest.fixture(scope="module")
def data():
    return make_shifted_groups(30, groups=(1, 2, 5), random_state=0)


@pytest.fixture(scope="module")
def new_rows():
    return make_shifted_groups(5, groups=(1, 2, 5), random_state=1)[0]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.corral"


def saved(model, path):
    save_model(model, path)
    return load_model(path)


def assert_refused(path, header, arrays, message):
    """Check that a forged file with a valid checksum is refused with this message."""
    put_together(path, header, arrays)
    with pytest.raises(ValueError, match=message):
        load_model(path)


def assert_forged(source, path, changes, message):
    """Check that the file is refused after these changes."""
    header, arrays = take_apart(source)
    for where, change in changes.items():
        forge_value(header, arrays, where, change)
    assert_refused(path, header, arrays, message)


def assert_same(one, other, where="value"):
    """Compare two values, all their parts and the types."""
    one, other = (value.item() if isinstance(value, np.generic) else value for value in (one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        assert one.dtype.kind == other.dtype.kind, where
        assert_array_equal(one, other, err_msg=where)
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one:
            assert_same(one[key], other[key], f"{where}[{key!r}]")
    elif isinstance(one, list | tuple):
        assert type(one) is type(other)
        assert len(one) == len(other), where
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    elif hasattr(one, "__dict__") and not isinstance(one, type):
        assert type(one) is type(other), where
        assert_same(vars(one), vars(other), where)
    else:
        assert type(one) is type(other), where
        assert one == other, where


# Restored models


@pytest.mark.parametrize(
    "changed",
    [
        {"update": "sequential", "beta": 0.5, "c0": 3.0, "min_bandwidth": 0.2},
        {"scale": None, "bandwidth": "class", "features": "selected"},
        {"cutpoint": 1.0, "min_effect": 0.6},
        {"beta": -1.0, "update": "never"},
    ],
)
def test_parameters_changed_after_the_fit_change_no_prediction_of_a_file(changed, data, new_rows, path):
    model = RodeoClassifier(c0=2).fit(*data)
    params, proba = model.get_params(), model.predict_proba(new_rows)
    model.set_params(**changed)
    again = saved(model, path)
    assert_array_equal(again.predict_proba(new_rows), proba)
    assert_frame_equal(again.describe().to_frame(), model.describe().to_frame())
    assert again.get_params() == params


def test_a_density_and_a_pool_are_restored_as_they_were_fitted(data, new_rows, path):
    density = RodeoDensity().fit(data[0])
    expected = density.score_samples(new_rows)
    density.set_params(update="sequential", beta=0.5)
    again = saved(density, path)
    assert_array_equal(again.score_samples(new_rows), expected)
    assert_same(again.get_params(), RodeoDensity().get_params())
    pool = CorralClassifier(random_state=0).fit(data[0][::3], data[1][::3]).set_params(min_effect=0.9)
    assert saved(pool, path).min_effect == pool.model_.min_effect


ANSWERS = ("predict", "predict_proba", "explain", "local_bandwidths", "score_samples", "transform")


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("kind", ["plain", "odd"])
def test_every_estimator_is_restored(estimator, kind, data, new_rows, path):
    X, y = data[0].copy(), SPECIES[np.searchsorted([1, 2, 5], data[1])]
    options = {}
    if kind == "odd" and not isinstance(estimator, LSPClassifier):  # which takes numbers alone
        X[::4, 1] = np.nan
        options["sample_weight"] = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model = clone(estimator).fit(X, y, **options)
    loaded = saved(model, path)
    assert_same(vars(loaded), vars(model))  # private ones, too: densities, scale, members, rows
    for name in ANSWERS:
        if hasattr(model, name):
            assert_same(getattr(loaded, name)(new_rows), getattr(model, name)(new_rows), name)
    if hasattr(model, "sample"):
        assert_array_equal(loaded.sample(9, random_state=0), model.sample(9, random_state=0))
    if hasattr(model, "selection_frequency"):
        assert_array_equal(loaded.selection_frequency(2, 0), model.selection_frequency(2, 0))
    if hasattr(model, "members_"):
        assert_same(vars(loaded.members_[0]), vars(model.members_[0]))


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_labels_keep_their_type(labels, data, new_rows, path):
    X, y = data
    labels = np.asarray(labels)
    model = RodeoClassifier().fit(X, labels[np.searchsorted([1, 2, 5], y)])
    loaded = saved(model, path)
    assert loaded.classes_.dtype == model.classes_.dtype
    assert [type(label) for label in loaded.classes_] == [type(label) for label in model.classes_]
    assert_array_equal(loaded.predict(new_rows), model.predict(new_rows))


def test_names_of_variables_come_back_and_are_checked(data, new_rows, path):
    names = [f"x <{j}>" for j in range(data[0].shape[1])]
    frame = pd.DataFrame(data[0], columns=names)
    loaded = saved(CorralClassifier(random_state=0).fit(frame, data[1]), path)
    assert loaded.feature_names_in_.tolist() == names
    assert loaded.explain(pd.DataFrame(new_rows, columns=names)).feature_names == names
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(pd.DataFrame(new_rows, columns=names[::-1]))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("centers_", np.zeros((0, 3)), "dual_coef_ has the shape"),
        ("centers_", np.full((30, 3), 1e200), "centers_ holds a number"),
        ("centers_", np.zeros((30, 2)), "n_features_in_ is 3, but the arrays"),
        ("dual_coef_", np.full((30, 3), 1e200), "dual_coef_ holds a number"),
        ("dual_coef_", np.full((30, 3), np.nan), "dual_coef_ holds a number"),
        ("dual_coef_", np.zeros((29, 3)), "dual_coef_ has the shape"),
        ("class_count_", -np.ones(3), "class_count_ holds a number"),
        ("best_params_", {"sigma": 0.0, "alpha": 1.0}, "sigma must be a number between"),
        ("best_params_", {"sigma": 1.0}, "it has no 'alpha'"),
        ("best_index_", 2, "best_index_ must be an integer from 0 to 1"),
        ("best_score_", 1.5, "best_score_ must be a number between 0 and 1"),
        ("cv_results_", {"a": [1], "b": [1, 2]}, "cv_results_ has columns of different lengths"),
    ],
)
def test_forged_lspc(name, value, message, data, path):
    X, y = data
    save_model(LSPClassifier(sigmas=(0.5, 1.0), alphas=(0.1,), cv=3).fit(X[::3, :3], y[::3]), path)
    change = (lambda _: value) if isinstance(value, np.ndarray) else value
    assert_forged(path, path, {f"state/{name}": change}, f"is damaged: {message}")


def test_class_without_rows_and_partial_fit(data, new_rows, path):
    X, y = data
    model = RodeoClassifier().partial_fit(X[y < 5], y[y < 5], classes=[1, 2, 5])
    loaded = saved(model, path)
    assert_array_equal(loaded.predict_proba(new_rows), model.predict_proba(new_rows))
    for each in (model, loaded):
        each.partial_fit(X[y == 5], y[y == 5])
    assert_array_equal(loaded.predict_proba(new_rows), model.predict_proba(new_rows))


def test_header_describes_the_model_and_not_the_machine(data, path):
    loaded = saved(RodeoClassifier(n_jobs=2, verbose=0, beta=0.7).fit(*data), path)
    assert (loaded.n_jobs, loaded.verbose, loaded.beta) == (None, 0, 0.7)
    header = read_header(path)
    assert (header["estimator"], header["format"]) == ("RodeoClassifier", FORMAT)
    assert header["params"]["beta"] == 0.7
    assert set(header["versions"]) == {"corral", "numpy", "scikit-learn"}


# Refused files


def test_unfitted_and_foreign_estimators(data, path):
    with pytest.raises(NotFittedError, match="RodeoClassifier is not fitted: call fit before saving it"):
        save_model(RodeoClassifier(), path)
    with pytest.raises(TypeError, match=r"a model file can contain RodeoClassifier or .*, not GaussianNB"):
        save_model(GaussianNB().fit(*data), path)

    class Derived(RodeoClassifier):
        pass

    with pytest.raises(TypeError, match="not Derived"):
        save_model(Derived().fit(*data), path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("model", "parameter", "message"),
    [
        (RodeoClassifier(), {"random_state": np.random.RandomState(0)}, r"random_state is a RandomState"),
        (RodeoClassifier(), {"priors": {0.5}}, r"params.priors is a set"),
        (RodeoClassifier(), {"priors": np.array([b"a"])}, r"params.priors is an array of \|S1"),
        (LSPClassifier(alphas=(0.1,)), {"cv": StratifiedKFold(3)}, r"params.cv is a StratifiedKFold"),
    ],
)
def test_parameters_that_no_file_can_hold(model, parameter, message, data, path):
    model.fit(*data).set_params(**parameter)
    with pytest.raises(ValueError, match=message + ", which cannot be written to a model file"):
        save_model(model, path)
    assert list(path.parent.iterdir()) == []


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none\.corral"):
        load_model(tmp_path / "none.corral")
    with pytest.raises(ValueError, match="is not a file"):
        load_model(tmp_path)


def test_without_safetensors(data, path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r'pip install "corral\[cli\]"'):
        save_model(RodeoClassifier().fit(*data), path)


def test_foreign_files(path):
    for content in (b"", b"PK\x03\x04 something else", np.random.default_rng(0).bytes(1000)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is not a model of corral, or is incomplete"):
            load_model(path)
    save_file({"weight": np.ones(3)}, path)
    with pytest.raises(ValueError, match=r"model.corral is not a model of corral\.$"):
        load_model(path)


@pytest.fixture(scope="module")
def file(data, tmp_path_factory):
    """A small file with nearly everything that the format can hold."""
    path = tmp_path_factory.mktemp("file") / "model.corral"
    X, y = data
    model = CorralClassifier(random_state=0)
    save_model(model.fit(X[::3, :3], np.array(["a", "b", "c"])[np.searchsorted([1, 2, 5], y[::3])]), path)
    return path


def test_truncated_anywhere(file, path):
    content = file.read_bytes()
    for n in [*range(0, len(content), 97), len(content) - 1]:
        path.write_bytes(content[:n])
        with pytest.raises(ValueError, match="is incomplete"):
            load_model(path)


def test_factors_that_cannot_be_inverted(data, path):
    X, y = data
    save_model(CorralClassifier(random_state=0).fit(X[:, :3], y), path)
    header, arrays = take_apart(path)
    square = [name for name, x in arrays.items() if name.endswith("/factor") and x.shape == (3, 3)]
    assert square
    arrays[square[-1]][:, 1] = 0.0
    assert_refused(path, header, arrays, r"is damaged: .*factor is singular")


@pytest.mark.parametrize("another", [1, FORMAT - 1, FORMAT + 1])
def test_another_format(another, file, path):
    message = f" has format {another}, but this version of corral reads only format {FORMAT}: load the file "
    assert_forged(file, path, {"format": another, "state": "whatever comes"}, message)


def test_unknown_estimator_and_header_that_lacks_something(file, path):
    message = r"contains 'os\.system', which is not an estimator of corral"
    assert_forged(file, path, {"estimator": "os.system"}, message)
    assert_forged(file, path, {"versions": ["1"]}, "damaged: versions is not a table of values")
    for name in ("params", "state"):
        header, arrays = take_apart(file)
        del header[name]
        assert_refused(path, header, arrays, f"damaged: its header lacks '{name}'")


def test_file_taken_apart_and_put_together_loads(file, path, new_rows):
    expected = load_model(file).predict_proba(new_rows[:, :3])
    put_together(path, *take_apart(file))
    assert_array_equal(load_model(path).predict_proba(new_rows[:, :3]), expected)


MODEL, POOL = "state/model_", "state/model_/pool"


@pytest.mark.parametrize(
    ("where", "change", "message"),
    [
        (f"{MODEL}/data/codes", lambda a: a + 1, "codes holds a number"),
        (f"{MODEL}/data/codes", lambda a: a - 1, "codes holds a number"),
        (f"{MODEL}/data/codes", lambda a: a[1:], "codes has the shape"),
        (f"{MODEL}/data/codes", lambda a: a.astype(float), "codes is not an array of int64"),
        (f"{MODEL}/data/numbers", lambda a: a + 1, "numbers contains a position that is not below"),
        (f"{MODEL}/data/numbers", lambda a: a * 0, "numbers contains a position twice"),
        (f"{MODEL}/data/X", lambda a: a * np.inf, "X holds a number"),
        (f"{MODEL}/data/X", lambda a: a[:, 1:], "X has the shape"),
        (f"{MODEL}/data/counts", lambda a: -a, "counts holds a number"),
        (f"{MODEL}/prior", lambda a: a * 0.5, "prior does not sum to 1"),
        (f"{MODEL}/learnt_contrast/markers", lambda a: a.astype(float), "markers is not an array of bool"),
        (f"{MODEL}/learnt_contrast/effect", lambda a: a[1:], "effect has the shape"),
        (f"{POOL}/weights", lambda a: -a, "weights holds a number"),
        (f"{POOL}/weights", lambda a: a[1:], "weights has the shape"),
        (f"{POOL}/prior", lambda a: a * 0.5, "prior is not the prior of the pool"),
        (f"{POOL}/temperatures", lambda a: a * 0.0, "temperatures holds a number"),
        (f"{POOL}/scores/recall", lambda a: a[1:], "recall has the shape"),
        (f"{POOL}/cross_fitted/points", lambda a: a + 9, "points holds a number"),
        (f"{POOL}/cross_fitted/points", lambda a: a[::-1], "points are not in ascending order"),
        (f"{POOL}/members/0/classes/0/transform/variables", lambda a: a + 9, "variables holds a number"),
        (
            f"{POOL}/members/0/classes/0/transform/variables",
            lambda a: a * 0,
            "variables are not in ascending order",
        ),
        (f"{POOL}/members/0/classes/1/transform/factor", lambda a: a + np.inf, "factor holds a number"),
        (f"{POOL}/members/0/classes/1/transform/factor", lambda a: a[1:], "factor has the shape"),
        (f"{POOL}/members/0/classes/1/transform/factor", lambda a: 1e-320 * np.eye(len(a)), "factor"),
        (f"{POOL}/members/0/classes/1/transform/mean", lambda a: a[1:], "mean has the shape"),
        (f"{POOL}/members/0/scale/half_width", lambda a: a * 0.0, "half_width holds a number"),
        (f"{POOL}/members/0/scale/center", lambda a: a[1:], "half_width has the shape"),
        (MODEL, {"!class": "PoolScores"}, "model_ is not a PoolModel"),
        (f"{MODEL}/data/labels", {"!texts": ["b", "a", "c"]}, "it contains the unknown key '!texts'"),
        (f"{MODEL}/training", None, "training is not a TrainingRows"),
        (f"{MODEL}/n_duplicates", 1.5, "n_duplicates is not a whole number"),
        (f"{MODEL}/n_duplicates", True, "n_duplicates is not a whole number"),
        (f"{MODEL}/min_effect", 1, "min_effect is not a number"),
        (f"{MODEL}/min_effect", 0.5, "min_effect differs from the min_effect of the model"),
        (f"{MODEL}/data/grouped", 1, "grouped is not true or false"),
        (f"{MODEL}/data/colour", 1, "data has no 'colour'"),
        (f"{MODEL}/data/X", "X", "X is not an array"),
        (f"{POOL}/members", {}, "members is not a list"),
        (f"{POOL}/table", [], "table is not a table of values"),
        (f"{POOL}/table", {}, "the columns of the table are not accuracy, bandwidth"),
        (f"{POOL}/table/share", lambda a: np.tile(a, (2, 1)), "share has the shape"),
        (f"{POOL}/table/share", lambda a: a + 1.0, "share holds a number"),
        (f"{POOL}/prior_mixing", {"!float": "nan"}, "prior_mixing is not a number between"),
        (f"{POOL}/members/0/scale/knots", {"!tuple": [None]}, "knots does not have 3 entries"),
        ("params/n_jobs", 10**9, "params has no 'n_jobs'"),
        ("params/colour", 1, "params has no 'colour'"),
        ("params/min_effect", 2.0, ".*min_effect must be a number between 0 and 1"),
        ("params/scales", {"!code": "import os"}, ".*it contains the unknown key '!code'"),
        ("params/scales", {"!array": "nowhere"}, ".*it has no 'nowhere'"),
    ],
)
def test_forged_values(where, change, message, file, path):
    assert_forged(file, path, {where: change}, f"is damaged: {message}")


@pytest.mark.parametrize(
    ("where", "change", "message"),
    [
        ("direction/!texts", ["up"], "it has positions that are not whole numbers"),
        ("direction/!texts", list("abcdefg"), "direction must be a table of"),
        ("quartiles", lambda a: a[1:], "quartiles has the shape"),
        ("middles", lambda a: a * np.inf, "middles holds a number"),
    ],
)
def test_forged_comparisons(where, change, message, data, path):
    save_model(MarkerSelector().fit(*data), path)
    assert_forged(path, path, {f"state/comparison_/{where}": change}, f"is damaged: {message}")


def test_a_field_is_missing(file, path):
    header, arrays = take_apart(file)
    params = {name: value for name, value in header["params"].items() if name != "max_rows"}
    assert_refused(path, header | {"params": params}, arrays, "is damaged: params lacks 'max_rows'")
    del header["state"]["model_"]["pool"]["prior_mixing"]
    assert_refused(path, header, arrays, "is damaged: pool lacks 'prior_mixing'")
    header["state"] = {}
    assert_refused(path, header, arrays, "is damaged: it has no 'model_'")


def test_equal_arrays_are_kept_once(file):
    header, arrays = take_apart(file)
    rows = header["state"]["model_"]
    assert rows["training"]["X"] == rows["data"]["X"]
    assert len({(a.dtype.str, a.shape, a.tobytes()) for a in arrays.values()}) == len(arrays)


def test_deeply_nested_header(path):
    text = "[" * 100_000
    save_file({}, path, {"corral": text, "sha256": _checksum(text, {})})
    with pytest.raises(ValueError, match="its header cannot be read"):
        load_model(path)


# Sizes that a header declares


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=40), "colour": rng.choice(["red", "blue", "grey"], 40)})
    return frame, np.arange(40) % 2


SIZED = {
    "density": RodeoDensity(),
    "classifier": RodeoClassifier(bandwidth="class"),
    "search": CorralClassifier(random_state=0),
    "compressed": CorralClassifier(max_rows=10, random_state=0),
    "selector": RodeoSelector(),
    "marker selector": MarkerSelector(),
    "lspc": LSPClassifier(),
}


@pytest.mark.parametrize("name", SIZED)
def test_a_number_of_variables_that_no_array_has_is_refused_at_once(name, data, path, monkeypatch):
    save_model(SIZED[name].fit(*data), path)
    header, arrays = take_apart(path)
    # No array of this length may be made: with enough memory it would only take long.
    monkeypatch.setattr(Encoding, "all_numbers", None)
    for n in (10**6, 2 * 10**9, 2**62, 2**70):
        with_n = header | {"n_features_in_": n, "feature_names_in_": None}
        message = f"n_features_in_ is {n}, but the arrays have"
        assert_refused(path, with_n, arrays, message)


def test_an_empty_array_does_not_give_the_number_of_variables(data, path):
    save_model(RodeoDensity().fit(data[0]), path)
    changes = {"n_features_in_": 10**9, "feature_names_in_": None}
    changes["state/density_/data/X"] = lambda _: np.empty((0, 10**9))
    assert_forged(path, path, changes, "codes has the shape")


@pytest.mark.parametrize("name", ["density", "classifier", "search", "compressed"])
def test_categories_are_as_many_as_the_encoding_lists(name, mixed, path):
    X, y = mixed
    save_model(SIZED[name].fit(X, *(() if name == "density" else (y,))), path)
    header, arrays = take_apart(path)
    (categories,) = (key for key in arrays if key.endswith("categories"))
    assert arrays[categories].tolist() == [0, 3]
    for n in (4, 10**12):
        message = (
            r"numbers of categories are not those that the encoding has|have different numbers of categories"
        )
        assert_refused(path, header, arrays | {categories: np.array([0, n])}, message)
    header["state"]["encoding_"]["categories"][1] = None
    assert_refused(path, header, arrays, "numbers of categories are not those that the encoding has")


@pytest.mark.parametrize(
    ("where", "change", "message"),
    [
        (f"{POOL}/members/0/scale/center", lambda a: a + 1e6, "center or half_width changes codes of"),
        (f"{POOL}/members/0/scale/half_width", lambda a: a * 0.4, "center or half_width changes codes of"),
        (f"{MODEL}/learnt_contrast/value", lambda a: a * 0.0 + 1e308, "value contains a code that is not"),
    ],
)
def test_numbers_of_categories_are_kept_as_they_are(where, change, message, mixed, path):
    save_model(CorralClassifier(random_state=0).fit(*mixed), path)
    assert_forged(path, path, {where: change}, f"is damaged: {message}")


@pytest.mark.parametrize("categories", [["red", "red", "blue"], [None, "red", "blue"], "red"])
def test_forged_categories(categories, mixed, path):
    save_model(MarkerSelector().fit(*mixed), path)
    message = "categories must be distinct texts or numbers|categories is not a list"
    assert_forged(path, path, {"state/encoding_/categories/1": categories}, message)


def test_texts_that_would_fill_the_memory_are_refused(data, path, tmp_path):
    X, y = data
    save_model(RodeoClassifier(bandwidth="class").fit(X, np.where(y == y[0], "a", "b")), path)
    for where, texts, message in (
        (
            "training/y",
            ["a", "b" * 10**7],
            f"y is too large: {len(y)} texts, the longest of 10000000 characters",
        ),
        ("data/labels", ["a", "b" * 10**5, *[""] * 10**5], "labels is too large: 100002 texts"),
    ):
        assert_forged(path, tmp_path / "forged.corral", {f"{MODEL}/{where}/!texts": texts}, message)


def test_names_of_rows_need_a_table_that_could_have_them(data, path):
    X, y = data
    frame = pd.DataFrame(X, index=[f"row {i}" for i in range(len(X))]).rename(columns=str)
    save_model(CorralClassifier(max_rows=10, random_state=0).fit(frame, y), path)
    message = "it has row_names for a table of 1000000000 rows"
    assert_forged(path, path, {f"{MODEL}/compression/n_rows": 10**9}, message)


def test_too_little_memory_is_the_documented_error(file, path, monkeypatch):
    def fail(*_):
        raise MemoryError

    path.write_bytes(file.read_bytes())
    for name in ("restore_estimator", "_checksum"):
        with monkeypatch.context() as patched:
            patched.setattr(corral.files.model_file, name, fail)
            with pytest.raises(ValueError, match="cannot be read: there is not enough memory"):
                load_model(path)


# The same model, the same bytes


def test_the_same_model_is_the_same_bytes(data, path):
    model = RodeoClassifier(bandwidth="class").fit(*data)
    written = set()
    for _ in range(12):  # safetensors has the names in one of two orders
        save_model(model, path)
        written.add(path.read_bytes())
    assert len(written) == 1
    save_model(load_model(path), path)
    assert path.read_bytes() in written


SAVE = """
import sys, numpy as np, pandas as pd
from corral import CorralClassifier, save_model
rng = np.random.default_rng(0)
X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice(list("xyz"), 60)}, index=map(str, range(60)))
X.loc["3", "a"] = None
save_model(CorralClassifier(random_state=0, n_jobs=int(sys.argv[2])).fit(X, np.arange(60) % 3), sys.argv[1])
"""


@pytest.mark.all_divisions
def test_the_same_fit_in_another_process_is_the_same_bytes(tmp_path, monkeypatch):
    here, there = tmp_path / "here.corral", tmp_path / "there.corral"
    monkeypatch.setattr(sys, "argv", ["", here, "1"])
    exec(SAVE, {})
    environment = os.environ | {"PYTHONHASHSEED": "2"}
    subprocess.run([sys.executable, "-c", SAVE, there, "2"], check=True, env=environment)
    assert here.read_bytes() == there.read_bytes()
