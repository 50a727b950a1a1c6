"""Columns of dates, and numbers that are stored as text."""

import warnings
from datetime import UTC, date

import numpy as np
import pandas as pd
import polars as pl
import pytest

from corral import (
    ColumnKindWarning,
    CorralClassifier,
    HeldOut,
    MarkerSelector,
    NearDuplicatesWarning,
    RodeoClassifier,
    UnknownCategoriesWarning,
    load_model,
    save_model,
    write_report,
)

DAYS = pd.Series(pd.date_range("2007-11-01 10:30", periods=60, freq="53h"))
NAMES = ["a", "when (days since 2000)", "when (month)", "when (weekday)", "when (hour)"]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = np.repeat(["p", "q"], 30)
    return pd.DataFrame({"a": rng.normal(size=60) + (y == "q")}), y


def fit(X, y, **parameters):
    with pytest.warns(ColumnKindWarning):
        return CorralClassifier(random_state=0, **parameters).fit(X, y)


def test_the_variables_of_a_date(rows):
    X, y = rows
    fitted = fit(X.assign(when=DAYS), y)
    values = fitted.explain(X.assign(when=pd.Timestamp("2024-02-29 18:45"))[:1]).values[0]
    assert fitted.n_features_in_ == 2
    assert fitted.describe().feature_names == NAMES
    assert values[1:].tolist() == [8825 + 18.75 / 24, 2.0, "Thursday", 18.0]


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.assign(when=X["when"].astype(str)),
        lambda X: X.assign(when=X["when"].dt.strftime("%d.%m.%Y %H:%M")),
        lambda X: X.assign(when=X["when"].dt.tz_localize("Asia/Tokyo")),
        lambda X: X.assign(when=X["when"].astype(object)),
        pl.from_pandas,
        lambda X: pl.from_pandas(X).to_arrow(),
        lambda X: pl.from_pandas(X).with_columns(pl.col("when").dt.replace_time_zone("UTC")),
    ],
    ids=["ISO text", "German text", "zone", "objects", "polars", "pyarrow", "polars, zone"],
)
def test_dates_are_the_same_however_they_are_stored(change, rows):
    X, y = rows
    X = X.assign(when=DAYS)
    fitted, other = fit(X, y), fit(change(X), y)
    expected = fitted.predict_proba(X)
    np.testing.assert_array_equal(other.predict_proba(change(X)), expected)
    np.testing.assert_array_equal(other.predict_proba(X), expected)


def test_dates_without_a_time_of_day_have_no_hour(rows):
    X, y = rows
    days = DAYS.dt.date
    assert isinstance(days[0], date)
    fitted = fit(X.assign(when=days), y)
    assert fitted.describe().feature_names == NAMES[:-1]
    constant = fit(X.assign(when=days[0]), y)
    assert constant.describe().feature_names == NAMES[:2]


def test_arrays_of_objects_may_hold_dates(rows):
    X, y = rows
    array = X.assign(when=DAYS.dt.to_pydatetime()).to_numpy(object)
    fitted = fit(array, y)
    assert fitted.explain(array[:1]).feature_names == ["x0", *(f"x1{name[4:]}" for name in NAMES[1:])]


def test_a_column_named_as_categorical_stays_one_variable(rows):
    X, y = rows
    days = DAYS.dt.strftime("2007-11-1%w")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnKindWarning)
        for column in (days, pd.to_datetime(days), days.astype("category")):
            table = X.assign(when=column)
            fitted = CorralClassifier(random_state=0, categorical_features=["when"]).fit(table, y)
            assert fitted.describe().feature_names == ["a", "when"]
            assert len(fitted.encoding_.categories[1]) == 7
            fitted.predict(table)


def test_what_is_no_date_counts_as_missing_and_is_told(rows):
    X, y = rows
    X = X.assign(when=DAYS.astype(str))
    fitted = fit(X, y)
    with pytest.warns(UserWarning, match="column 'when', 'soon', cannot be read as a date"):
        explained = fitted.explain(X[:2].assign(when=["soon", X["when"][1]]))
    assert np.isnan(explained.values[0, 1])
    assert explained.values[0, 3] is None
    X.loc[3, "when"] = "unknown"
    with pytest.warns(UserWarning, match="1 value of column 'when', 'unknown', cannot be read as a date and"):
        fit(X, y)
    with pytest.warns(UnknownCategoriesWarning) as warned:
        labels = fitted.predict(X.assign(when="x"))
    assert [str(each.message) for each in warned] == [
        "60 values of column 'when', the first 'x', cannot be read as dates and count as missing: write "
        "dates as in the training rows, or like 2020-12-31."
    ]
    np.testing.assert_array_equal(fitted.predict(X.assign(when=None)), labels)


def test_the_meaning_of_a_date_does_not_depend_on_other_rows(rows):
    X, y = rows
    fitted = fit(X.assign(when=DAYS), y)
    for texts in (["05/08/2020"], ["05/08/2020", "25/08/2020"], [" ", "05/08/2020"]):
        with pytest.raises(ValueError, match=r"^Column 'when' held dates in fit: '05/08/2020' is neither"):
            fitted.predict(X[: len(texts)].assign(when=texts))
    new = X[:3].assign(when=["2020-08-05", "", None])
    expected = fitted.predict_proba(new)
    for i in range(3):
        np.testing.assert_array_equal(fitted.predict_proba(new[i : i + 1]), expected[i : i + 1])
    np.testing.assert_array_equal(fitted.predict_proba(X[1:2].assign(when=pd.NaT)), expected[1:2])


def test_every_column_of_dates_takes_dates_and_text_with_the_year_first(rows):
    X, y = rows
    fitted = fit(X.assign(when=DAYS.dt.strftime("%d/%m/%Y %H:%M")), y)
    moment = pd.Timestamp("2020-08-05 12:00")
    cells = [moment, "2020-08-05 12:00", "05/08/2020 12:00", moment.to_pydatetime(), "2020-08-05T12:00"]
    new = X[:1].loc[[0] * 5].assign(when=cells)
    probabilities = fitted.predict_proba(new)
    assert (probabilities == probabilities[0]).all()
    np.testing.assert_array_equal(fitted.predict_proba(new[:1].assign(when=moment)), probabilities[:1])


def test_dates_beside_text_are_read_or_named(rows):
    X, y = rows
    mixed = DAYS.astype(object).where(np.arange(60) > 2, DAYS.astype(str))
    expected = fit(X.assign(when=DAYS), y).predict_proba(X.assign(when=DAYS))
    np.testing.assert_array_equal(fit(X.assign(when=mixed), y).predict_proba(X.assign(when=mixed)), expected)
    mixed[1] = "08.05.2020"
    with pytest.raises(ValueError, match=r"^Column 'when' mixes dates and text: '08\.05\.2020' is"):
        CorralClassifier().fit(X.assign(when=mixed), y)
    mixed[1] = 8.5
    with pytest.raises(TypeError, match=r"^Column 'when' mixes dates and other values, such as '"):
        CorralClassifier().fit(X.assign(when=mixed), y)


def test_a_column_of_missing_dates_is_empty(rows):
    X, y = rows
    with pytest.warns(UserWarning, match="no training row has a value of 'when'"):
        fitted = CorralClassifier(random_state=0).fit(X.assign(when=pd.Series(pd.NaT, X.index)), y)
    assert not fitted.encoding_.dates


def test_a_file_knows_the_dates(rows, tmp_path):
    X, y = rows
    X = X.assign(when=DAYS.dt.strftime("%m/%d/%Y"))
    fitted = fit(X, y)
    save_model(fitted, tmp_path / "m.corral")
    loaded = load_model(tmp_path / "m.corral")
    assert loaded.encoding_.dates == fitted.encoding_.dates
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))


def test_further_rows_have_the_same_variables(rows):
    X, y = rows
    X = X.assign(when=DAYS)
    fitted = fit(X, y)
    fitted.partial_fit(pd.DataFrame({"a": X["a"][:20] + 0.1, "when": DAYS[:20] + pd.Timedelta("5D")}), y[:20])
    assert fitted.describe().feature_names == NAMES


def test_other_estimators_take_dates(rows):
    X, y = rows
    X = X.assign(when=DAYS)
    with pytest.warns(ColumnKindWarning):
        selector = MarkerSelector().fit(X, y)
    assert selector.get_support().tolist() == [True, True]
    assert list(selector.set_output(transform="pandas").transform(X).columns) == ["a", "when"]
    with pytest.warns(ColumnKindWarning):
        rodeo = RodeoClassifier().fit(X, y)
    assert rodeo.explain(X[:1]).feature_names == NAMES


@pytest.mark.filterwarnings("ignore::corral.ColumnKindWarning")
def test_a_report_of_folds_that_lack_a_variable(rows):
    X, y = rows
    hours = DAYS.dt.normalize().where(np.arange(60) != 7, DAYS)  # only row 7 has an hour
    X = X.assign(when=hours)
    held_out = HeldOut.of_folds(CorralClassifier(random_state=0), X, y, cv=3)
    sizes = {len(part.estimator.encoding_.categories) for part in held_out.parts}
    assert sizes == {4, 5}
    smaller = next(p.estimator for p in held_out.parts if len(p.estimator.encoding_.categories) == 4)
    explanation = smaller.explain(X)
    aligned = explanation.aligned(NAMES)
    assert aligned.evidence.shape == (60, 5)
    np.testing.assert_allclose(aligned.log_odds, explanation.log_odds)
    assert not aligned.evidence[:, 4].any()
    page = write_report(CorralClassifier(random_state=0).fit(X, y), X, y, held_out=held_out)
    assert "when" in page.html


@pytest.mark.parametrize(
    ("write", "beside", "example"),
    [
        (str, "numbers as text", "1.25"),
        (lambda x: f"{x}%", "numbers with '%'", "1.25%"),
        (lambda x: f"${x}", "numbers with '$'", "$1.25"),
        (lambda x: f"{1000 * x:,.2f}", "numbers with marks of thousands", "1,250.00"),
        (lambda x: f"{x:.3e}", "numbers as text", "1.250e+00"),
    ],
)
def test_numbers_stored_as_text_are_told(write, beside, example, rows):
    X, y = rows
    texts = [write(1.25 + i) for i in range(60)]
    for table in (X.assign(price=texts), pl.from_pandas(X.assign(price=texts))):
        with pytest.warns(ColumnKindWarning) as warned:
            CorralClassifier(random_state=0).fit(table, y)
        (message,) = [str(each.message) for each in warned]
        assert message.startswith(f"Column 'price' holds {beside}, such as '{example}' in row 0")
        assert message.endswith("Convert the column to numbers, or list it in categorical_features.")


@pytest.mark.parametrize(
    "texts",
    [
        [f"{i:04}" for i in range(60)],  # codes
        [str(i % 5) for i in range(60)],  # few
        [f"N{i}" for i in range(60)],
        pd.Categorical([str(i) for i in range(60)]),  # which says what they are
    ],
)
def test_other_texts_are_not_told(texts, rows):
    X, y = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnKindWarning)
        CorralClassifier(random_state=0).fit(X.assign(code=texts), y)
        named = X.assign(code=[str(i) for i in range(60)])
        CorralClassifier(random_state=0, categorical_features=["code"]).fit(named, y)


def test_the_clock_counts_whatever_its_time_zone():
    from corral.data.date_variables import as_times

    moment = pd.Timestamp("2020-01-01 23:30", tz=UTC)
    assert as_times([moment, None]).astype(str).tolist() == ["2020-01-01T23:30:00", "NaT"]


def test_a_column_of_dates_is_one_column_among_near_duplicates():
    rng = np.random.default_rng(0)
    y = np.repeat(["p", "q"], 100)
    days = pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 15, 200) * 9, "D")
    X = pd.DataFrame({"sampled": days, "v": rng.normal(size=200) + (y == "q")})
    with warnings.catch_warnings():
        warnings.simplefilter("error", NearDuplicatesWarning)
        fit(X, y)
    twins = pd.DataFrame({"b": rng.normal(size=100), "v": rng.normal(size=100)})
    twins = pd.concat([twins, twins], ignore_index=True).assign(when=pd.date_range("2021-03-01", periods=200))
    with pytest.warns(
        NearDuplicatesWarning, match="200 of 200 rows equal another row except for column 'when'"
    ):
        fit(twins, np.tile(y[50:150], 2))
