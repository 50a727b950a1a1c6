"""Tables whose rows lie outside the range of the training rows, such as those in other units."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import train_test_split

from corral import (
    CorralClassifier,
    DuplicatesWarning,
    RodeoClassifier,
    ShiftedTableWarning,
    load_model,
    save_model,
)
from support.cli import answered, run

WIDTH = "petal width (cm)"


@pytest.fixture(scope="module")
def iris():
    """A model, and rows of which one variable is in other units."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    train, new = train_test_split(X, random_state=0, stratify=y)
    return (
        CorralClassifier(random_state=0).fit(train, y[train.index]),
        train,
        new,
        new.assign(**{WIDTH: 10 * new[WIDTH]}),
    )


@pytest.mark.parametrize("method", ["predict", "predict_proba", "assess", "log_density"])
def test_the_warning_names_variable_and_medians(iris, method):
    fitted, train, new, shifted = iris
    medians = f"median {10 * new[WIDTH].median():g}, in training rows {train[WIDTH].median():g}"
    with pytest.warns(ShiftedTableWarning) as warned:
        getattr(fitted, method)(shifted)
    outside = int((shifted[WIDTH] > train[WIDTH].max()).sum())
    assert str(warned[0].message).startswith(
        f"Most rows lie outside the range of the training rows in {WIDTH} (in {outside} of {len(new)}; "
        f"{medians}: about 10 times larger): check whether the rows have the units of the training rows"
    )
    getattr(fitted, method)(new)  # a warning would be an error
    getattr(fitted, method)(shifted[:9])  # too few to tell


def test_who_asks_what_is_novel_is_not_warned(iris):
    fitted, _, _, shifted = iris
    assert fitted.is_novel(shifted).mean() > 0.5
    fitted.typicality(shifted)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_ordinary_tables_are_not_warned_of(load):
    X, y = load(return_X_y=True)
    for seed in range(20):
        train, new, y_train, _ = train_test_split(X, y, random_state=seed, train_size=25, stratify=y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DuplicatesWarning)
            RodeoClassifier(bandwidth="class").fit(train, y_train).predict(new[seed : seed + 10])


def test_few_training_values_have_no_range():
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0] * 5, "b": [1.0, 2.0] + [np.nan] * 18})
    y = np.tile(["p", "p", "q", "q"], 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = RodeoClassifier(bandwidth="class").fit(X[["a"]].assign(a=X["a"] + np.arange(20) / 100), y)
    few = CorralClassifier(random_state=0).fit(X.assign(a=X["a"] + np.arange(20) / 100), y)
    few.predict(pd.DataFrame({"a": [1.0] * 12, "b": [50.0] * 12}))
    with pytest.warns(ShiftedTableWarning, match=r"in a \(in 12 of 12; median 50, in training rows 1.5"):
        fitted.predict(pd.DataFrame({"a": [50.0] * 12}))


def test_files_of_compressed_classes_know_the_ranges(iris, tmp_path):
    _, train, _, shifted = iris
    y = load_iris().target[train.index]
    fitted = CorralClassifier(max_rows=20, random_state=0).fit(train, y)
    save_model(fitted, tmp_path / "m.corral")
    loaded = load_model(tmp_path / "m.corral")
    assert not loaded.model_.has_all_rows
    expected, explanation = fitted.explain(shifted), loaded.explain(shifted)
    assert np.isfinite(explanation.nearest_range).all()
    np.testing.assert_array_equal(explanation.nearest_range, expected.nearest_range)
    own = train[y == explanation.nearest[0]]
    np.testing.assert_array_equal(explanation.nearest_range[0], [own.min(), own.max()])
    with pytest.warns(
        ShiftedTableWarning, match="in the training rows that the model keeps 1.3: about 10 times larger"
    ):
        loaded.predict(shifted)


def test_predict_names_the_shifted_variable(iris, tmp_path):
    fitted, _, new, shifted = iris
    save_model(fitted, tmp_path / "m.corral")
    new.to_csv(tmp_path / "new.csv", index=False)
    shifted.to_csv(tmp_path / "shifted.csv", index=False)
    result = run("predict", tmp_path / "m.corral", tmp_path / "shifted.csv", "--out", tmp_path / "o.csv")
    why = "Novel rows are most often unlike the training rows in petal width (cm) (in "
    assert result.stderr.count("note: ") == 1
    assert f"note: {why}" in result.stderr
    assert (
        ": about 10 times larger): check whether the rows have the units of the training rows"
        in result.stderr
    )
    assert answered("predict", tmp_path / "m.corral", tmp_path / "shifted.csv", "-o", tmp_path / "o.csv")[
        "why_novel"
    ].startswith(why)
    calm = run("predict", tmp_path / "m.corral", tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert calm.stderr == ""
