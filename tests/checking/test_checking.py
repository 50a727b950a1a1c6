"""Tests of the look at a table before the fit: every planted fault is found, and sound tables have none."""

import json
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from checking import checking_oracle
from corral import load_model
from corral.checking.findings import LOOKED_FOR
from corral.checking.leakage import _accuracy_of_one
from corral.checking.table import check_table
from corral.checking.written_numbers import numbers_as_text
from corral.datasets import load_anuran, make_shifted_groups, make_ten_groups, make_waveform
from corral.sentences.tables import duplicate_rows
from support.cli import answered, notes_of, refused, run
from support.real_data import skip_without_data

SOUND = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "anuran": lambda: (load_anuran().data, load_anuran().target),
    "ten groups": lambda: make_ten_groups(150, random_state=0),
    "shifted groups": lambda: make_shifted_groups(100, random_state=0),
    "waveform": lambda: make_waveform(300, random_state=0),
}


def table_findings(X, y, **options):
    """What is found in a table besides the order of its rows: most of these tables are sorted by class."""
    findings = check_table(X.assign(label=y), "label", **options)
    return [finding for finding in findings if finding.kind != "class order"]


def as_frame(X):
    return pd.DataFrame(np.asarray(X)).rename(columns=lambda j: f"x{j}")


@pytest.mark.parametrize("name", SOUND)
def test_no_false_alarm(name):
    if name == "anuran":
        skip_without_data(name)
    X, y = SOUND[name]()
    assert table_findings(as_frame(X), np.asarray(y)) == []


def test_of_digits_only_constant_columns_are_told():
    X, y = load_digits(return_X_y=True)
    (finding,) = table_findings(as_frame(X), y)
    assert finding.kind == "constant"
    assert finding.columns == tuple(name for name, column in as_frame(X).items() if column.nunique() == 1)


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 2**32 - 1), st.integers(20, 200), st.integers(1, 8), st.integers(2, 4), st.integers(0, 3)
)
def test_no_false_alarm_in_noise(seed, n, d, n_classes, n_digits):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.resize(np.arange(n_classes), max(n, 12 * n_classes)))
    widths = rng.choice([1.0, 100.0], d)
    findings = [
        {each.kind for each in table_findings(as_frame(np.round(X * widths, n_digits)), y)}
        for X in rng.normal(size=(2, y.size, d))
    ]
    by_chance = {"duplicates", "duplicates of two classes", "near duplicates"}  # in one table of about 1,000
    assert (findings[0] & findings[1]) | (findings[0] - by_chance) == set()


@pytest.fixture
def planted():
    """A sound table, to which tests add a fault."""
    X, y = make_ten_groups(30, random_state=0)
    return as_frame(X[:, :6]), np.array([f"class {label}" for label in y])


def patients(y):
    """Names of patients with a class and up to six rows each."""
    number = pd.Series(y).groupby(y).cumcount() // 6
    return np.array([f"{label}-{k}" for label, k in zip(y, number, strict=True)])


def adding(**columns):
    return lambda X, y: (X.assign(**columns), y)


def with_cell(X, row, name, value):
    return X.assign(**{name: X[name].astype(object).where(X.index != row, value)})


def with_numbers(X, name, value, rows):
    return X.assign(**{name: X[name].where(~X.index.isin(rows), value)})


def gives_away(name, advice="leave it out, unless its value is known before the label", more=""):
    return (
        f"column {name!r} alone predicts the label of 100.0% of the rows; always naming the most frequent "
        f"class predicts 10.0%{more}: {advice}."
    )


ROWS = np.arange(300)
PATIENTS_ADVICE = (
    "if it identifies groups such as patients, use it as the group column, otherwise leave it out",
    "; its values repeat, and all rows with the same value have the same class",
)
IF_TEXT = "write plain numbers; otherwise each text is a category."
LATER = "leave the column out if new rows have later dates."
DATES_ADVICE = f"a fit replaces the column with days since 2000, month and weekday; {LATER}"
ALIKE = "differ only by case, spaces or the way a number is written, and count as different"
IF_ID = "if it identifies rows, pass it as the id, or leave it out."
IF_GROUP = "if rows with the same id belong together, use it as the group column, otherwise leave it out."
CONSTANT = "; a constant column has no information about the label: leave it out."

FAULTS = {
    "identifier: text ids": (
        adding(who=[f"P{i:04}" for i in ROWS]),
        f"column 'who' has a different text in every row, as ids have: {IF_ID}",
    ),
    "identifier: a counter": (
        adding(n=ROWS + 7),
        f"column 'n' has a different whole number in every row, in order: {IF_ID}",
    ),
    "identifier: mixed numbers called id": (
        adding(sampleID=np.random.default_rng(0).permutation(300)),
        f"column 'sampleID' has a different whole number in every row: {IF_ID}",
    ),
    "constant: a number": (
        adding(site=3),
        f"column 'site' holds 3 in every row{CONSTANT}",
    ),
    "constant: constant text": (
        adding(site="north"),
        f"column 'site' holds 'north' in every row{CONSTANT}",
    ),
    "constant: a long number in every row": (
        adding(batch=20231224),
        f"column 'batch' holds 20231224 in every row{CONSTANT}",
    ),
    "leakage: the label as a number": (
        lambda X, y: (X.assign(code=pd.factorize(y)[0] * 2.5), y),
        gives_away("code"),
    ),
    "leakage: the label with noise": (
        lambda X, y: (X.assign(code=pd.factorize(y)[0] + np.random.default_rng(0).uniform(0, 0.5, 300)), y),
        gives_away("code"),
    ),
    "leakage: the label in other words": (
        lambda X, y: (X.assign(diagnosis=[f"it is {label}" for label in y]), y),
        gives_away("diagnosis"),
    ),
    "names groups: patients as text": (
        lambda X, y: (X.assign(patient=patients(y)), y),
        gives_away("patient", *PATIENTS_ADVICE),
    ),
    "names groups: patients as numbers": (
        lambda X, y: (X.assign(patient=pd.factorize(patients(y))[0] * 37 % 101), y),
        gives_away("patient", *PATIENTS_ADVICE),
    ),
    "duplicates: three rows": (
        lambda X, y: (pd.concat([X, X[:3]], ignore_index=True), np.append(y, y[:3])),
        "3 of 303 rows repeat an earlier row, such as row 300, which equals row 0: if equal rows are the "
        "same "
        "measurement, keep one of them.",
    ),
    "duplicates of two classes: three rows": (
        lambda X, y: (pd.concat([X, X[:3]], ignore_index=True), np.append(y, y[-3:])),
        "3 sets of equal rows have different labels, such as rows 0 and 300: check which label is right.",
    ),
    "near duplicates: three rows": (
        lambda X, y: (pd.concat([X, X[:3] * (1 + 1e-6)], ignore_index=True), np.append(y, y[:3])),
        "6 of 303 rows equal another row except for small differences (near duplicates), such as rows 0 and "
        "300, so scores and probabilities are too good: keep one of these rows, or use a group column in "
        "which "
        "these rows have the same value.",
    ),
    "similar labels: case and spaces": (
        lambda X, y: (X, np.where(ROWS % 30 < 12, np.char.add(np.char.upper(y), " "), y)),
        f"some labels {ALIKE} classes: ('CLASS 1 ', 'class 1'), ('CLASS 10 ', 'class 10'), ('CLASS 2 "
        "', 'class 2'), ('CLASS 3 ', 'class 3'), ('CLASS 4 ', 'class 4'): use one spelling for each class.",
    ),
    "sentinel: -999": (
        lambda X, y: (with_numbers(X, "x1", -999.0, [4, 40]), y),
        "column 'x1' holds -999 in 2 rows, and no other value below {least:.4g}: replace -999 with NaN.",
    ),
    "sentinel: 9999 once": (
        lambda X, y: (with_numbers(X, "x1", 9999.0, [4]), y),
        "column 'x1' holds 9999 in 1 row, and no other value above {most:.4g}: replace 9999 with NaN.",
    ),
    "sentinel: 99999999 in a column of days": (
        adding(day=np.where(ROWS % 50, 20230100 + ROWS * 7 % 30, 99999999)),
        "column 'day' holds 99999999 in 6 rows, and no other value above 20230129: replace 99999999 with "
        "NaN.",
    ),
    "sentinel: -1 among ages": (
        adding(age=np.where(ROWS % 50, 20 + ROWS * 7 % 60, -1)),
        "column 'age' holds -1 in 6 rows, and no other value below 20: replace -1 with NaN.",
    ),
    "few rows: a small class": (
        lambda X, y: (X, np.where(ROWS < 3, "rare", y)),
        "class with fewer than 10 rows: 'rare' (3); the measured recall of a class with 3 rows may be off by "
        "up "
        "to 0.50 (95% interval): collect more rows, or leave small classes out.",
    ),
    "text among numbers: one bad value": (
        lambda X, y: (with_cell(X, 17, "x2", "1.2.3"), y),
        "column 'x2' would be numeric, but row 17 holds '1.2.3': correct the text, or replace it with "
        "NaN if it stands for a missing value.",
    ),
    "similar categories: sexes": (
        adding(sex=np.resize(["m", "f", "F", "m "], 300)),
        f"some categories of column 'sex' {ALIKE}: ('F', 'f'), ('m', 'm '): write each category in one way.",
    ),
    "many categories: remarks": (
        adding(remark=[None if i % 3 else f"seen at {i % 201}" for i in ROWS]),
        "column 'remark' holds 67 different texts in 100 rows, so most texts in new rows will be unknown and "
        "count as missing: leave the column out, or replace the texts by a few categories.",
    ),
    "mostly empty: an empty column": (
        adding(comment=np.nan),
        "1 column has no value in more than half of the 300 rows (rows without a value in parentheses): "
        "'comment' (300): leave it out.",
    ),
    "numbers as text: a unit": (
        adding(weight=[f"{60 + i * 0.1:.1f} kg" for i in ROWS]),
        "column 'weight' holds numbers with 'kg', such as '60.0 kg' in row 0, so the column is read as text: "
        f"{IF_TEXT}",
    ),
    "numbers as text: marks of thousands": (
        adding(price=[f"{700.25 + i * 7:,.2f}" for i in ROWS]),
        "column 'price' holds numbers with marks of thousands, such as '1,001.25' in row 43, so the "
        f"column is read as text: {IF_TEXT}",
    ),
    "numbers with a comma: commas": (
        adding(price=[f"{1000 + i:,}" for i in ROWS]),
        "column 'price' holds numbers with a comma, such as '1,000' in row 0, so the column is read as text: "
        "remove the commas if they mark thousands, or read the file with decimal commas.",
    ),
    "dates: days": (
        adding(day=[f"{2020 + i % 3}-0{1 + i % 9}-11" for i in ROWS]),
        f"column 'day' holds dates, such as '2020-01-11' in row 0: {DATES_ADVICE}",
    ),
    "dates: day and month may be confused": (
        adding(day=[f"0{1 + i % 9}/0{1 + i % 7}/2020" for i in ROWS]),
        "column 'day' holds dates, such as '01/01/2020' in row 0, where either the first or the second "
        "number may "
        "be the month: "
        f"{DATES_ADVICE}",
    ),
    "dates: of pandas, one in each row": (
        adding(day=pd.date_range("2020-01-01", periods=300, freq="h")[np.arange(300) * 7 % 300]),
        "column 'day' holds dates, such as '2020-01-01 00:00:00' in row 0: a fit replaces the column with "
        f"days since 2000, weekday and hour; {LATER}",
    ),
    "dates: one is no date": (
        adding(day=[f"2020-01-{1 + i % 30:02}" if i != 4 else "soon" for i in ROWS]),
        "column 'day' holds dates, such as '2020-01-01' in row 0, and text that is not a date in 1 row, such "
        "as "
        f"'soon' in row 4: a fit replaces the column with days since 2000 and weekday; {LATER}",
    ),
    "zeros: one column": (
        adding(depth=np.where(ROWS % 50, 13.0 + 0.1 * (ROWS * 7 % 60), 0.0)),
        "0 is far from all other values of column 'depth' in 6 rows (the least other value is 13): if 0 "
        "stands "
        "for a missing value, replace it with NaN.",
    ),
    "zeros: zeros elsewhere are numbers": (
        adding(depth=np.where(ROWS % 50, 13.0 + 0.1 * (ROWS * 7 % 60), 0.0), kids=ROWS % 3),
        "0 is far from all other values of column 'depth' in 6 rows (the least other value is 13): if 0 "
        "stands "
        "for a missing value, leave these cells empty.",
    ),
    "mixed units: cm among mm": (
        adding(length=(40.0 + 0.1 * (ROWS * 37 % 100)) * np.where(ROWS % 17 == 3, 0.1, 1.0)),
        "18 values of column 'length', such as 4.11 in row 3, are far from all other values (median 45) and "
        "would fit multiplied by 10: write all values in one unit.",
    ),
    "infinite values: in every fourth row": (
        adding(ratio=np.where(ROWS % 4 == 1, np.inf, np.sqrt(ROWS))),
        "column 'ratio' holds infinite values in 75 rows, such as row 1: replace them with finite numbers, "
        "or "
        "leave these cells empty.",
    ),
    "neither numbers nor text: complex numbers": (
        adding(z=ROWS + 1j),
        "column 'z' holds '1j' in row 0, which is a complex number: leave it out.",
    ),
    "neither numbers nor text: complex numbers as objects": (
        adding(z=pd.Series([*(ROWS + 1j)], dtype=object)),
        "column 'z' holds '1j' in row 0, which is a complex number: leave it out.",
    ),
    "mixed units: m among cm, and zeros": (
        adding(height=(150.0 + 0.5 * (ROWS * 37 % 100)) * np.where(ROWS % 17 == 3, 0.01, ROWS % 151 != 20)),
        "18 values of column 'height', such as 1.555 in row 3, are far from all other values (median 175) "
        "and "
        "would fit multiplied by 100: write all values in one unit.",
    ),
    "mixed units: mm among inches": (
        adding(length=(4.0 + 0.01 * (ROWS * 37 % 100)) * np.where(ROWS % 17 == 3, 25.4, 1.0)),
        "18 values of column 'length', such as 104.394 in row 3, are far from all other values (median 4.5) "
        "and would fit divided by 25.4: write all values in one unit.",
    ),
    "nearly unique ids: numbers": (
        adding(ID=np.random.default_rng(0).permutation(10**6)[ROWS * 7 % 290]),
        f"column 'ID' has 290 different whole numbers in 300 rows, as ids have: {IF_GROUP}",
    ),
    "nearly unique ids: texts": (
        adding(sample=[f"S{i * 7 % 290}" for i in ROWS]),
        f"column 'sample' has 290 different texts in 300 rows, as ids have: {IF_GROUP}",
    ),
    "identifier: shuffled numbers of rows": (
        adding(z=np.random.default_rng(0).permutation(300)),
        f"column 'z' has a different whole number in every row: {IF_ID}",
    ),
    "mixed spellings: yes and Y": (
        adding(smoker=np.resize(["yes", "no", "Y", "n", "no"], 300)),
        "column 'smoker' holds several spellings of the same answer: ('Y', 'yes'), ('n', 'no'): write each "
        "answer in one way.",
    ),
    "functions: groups of ages, and inches": (
        lambda X, y: (X.assign(age=ROWS * 7 % 60, old=ROWS * 7 % 60 > 40, inches=X["x1"] / 2.54), y),
        "a column can be computed from another one: 'inches' from 'x1', 'old' from 'age': keep one column of "
        "each pair, since the other adds no information.",
    ),
    "constant: where it is not empty": (
        adding(ring=np.where(ROWS % 3, 1.0, np.nan)),
        f"column 'ring' holds 1 in all 200 rows that have a value{CONSTANT}",
    ),
    "missing labels: four rows": (
        lambda X, y: (X, np.where(ROWS < 4, None, y)),
        "the label is missing in 4 of 300 rows: fill it in, or leave these rows out.",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_and_nothing_else(fault, planted):
    kind, (plant, sentence) = fault.split(":")[0], FAULTS[fault]
    X, y = plant(*planted)
    limits = {"least": planted[0]["x1"].drop([4, 40]).min(), "most": planted[0]["x1"].drop(4).max()}
    findings = {finding.kind: str(finding) for finding in table_findings(X, y)}
    assert findings[kind] == sentence.format(**limits)
    companions = {"duplicates of two classes": {"duplicates"}, "many categories": {"mostly empty"}}.get(
        kind, set()
    )
    assert findings.keys() - companions == {kind}


def test_ids_and_groups(planted):
    X, y = planted
    who = np.array([f"P{i // 4:03}" for i in range(len(X))])
    table = X.assign(patient=who, visit=np.arange(len(X)))
    (finding,) = table_findings(table, y, ids=["patient", "visit"])
    assert str(finding) == (
        "column 'patient' has 75 different ids in 300 rows; row 1 repeats an earlier one: use it as the "
        "group "
        "column; otherwise rows with the same id are both trained on and held out, and scores are too good."
    )
    (finding,) = table_findings(table, y, ids=["visit"], group="patient")
    assert str(finding) == (
        "column 'patient' identifies 75 groups of 4 to 4 rows (median 4): treat the table as 75 independent "
        "observations, not 300."
    )
    by_class = X.assign(patient=y)
    kinds = [finding.kind for finding in table_findings(by_class, y, group="patient")]
    assert kinds == ["groups", "too few groups"]


def test_check_advises_a_group_that_a_fit_takes(tmp_path):
    """A class of one model of car cannot be held out by models: check and fit say what to do."""
    rng = np.random.default_rng(0)
    model = np.repeat(np.arange(30), 6)
    center = rng.normal(size=(30, 3))[model]
    X = pd.DataFrame(center + 0.05 * rng.normal(size=center.shape), columns=[*"abc"])
    X = X.assign(model=np.array([f"m{i:02}" for i in model]))
    y = np.array(["u", "v"])[(model + (np.arange(180) % 6 == 5)) % 2]
    y = np.where(model == 29, "two-seater", y)
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    shown = run("check", tmp_path / "t.csv", "-t", "y").stdout
    assert "(--group model, or --drop model)" in shown
    sentence = (
        "- class with fewer than 10 rows: 'two-seater' (6); the measured recall of a class with 6 rows may "
        "be "
        "off by up to 0.40 (95% interval): collect more rows, or leave small classes out"
    )
    assert f"{sentence} (--drop-small-classes 10).\n" in shown
    one_group = (
        "- the class 'two-seater' has fewer than two groups in column 'model', so a fit with groups cannot "
        "hold "
        "out one of them: collect more groups, or leave these classes out (--drop-small-classes 2).\n"
    )
    assert one_group in shown
    grouped = run("check", tmp_path / "t.csv", "-t", "y", "--group", "model").stdout
    assert one_group in grouped
    assert f"{sentence}.\n" in grouped  # the option would count groups
    fit = ("fit", tmp_path / "t.csv", "-t", "y", "--group", "model", "--estimator", "rodeo")
    assert refused(*fit) == (
        "class 'two-seater' has 1 group, fewer than the 2 needed to hold some out; leave small classes out "
        "by --drop-small-classes 2."
    )
    result = run(*fit, "--drop-small-classes", 2)
    assert "whose classes have fewer than 2 groups: 'two-seater' (1); " in result.stderr


def test_check_and_fit_tell_of_text_and_numbers(planted, tmp_path):
    X, y = planted
    X = X.assign(drive=np.resize(["4", "f", "r"], len(X)))
    (finding,) = table_findings(X, y)
    assert str(finding) == (
        "column 'drive' holds text in 200 of 300 rows, such as 'f', and numbers in other rows: each text and "
        "each number counts as a category."
    )
    assert finding.columns == ("drive",)
    assert notes_of(run(*fitting(X, y, tmp_path)))[0] == str(finding)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 25), st.integers(1, 12), st.booleans(), st.booleans())
def test_one_column_predicts_as_the_plain_loop_does(seed, n, n_values, grouped, ordered):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, n_values, n) + rng.choice([0.0, 0.0, 0.5, np.nan], n)
    codes = np.append([0, 1], rng.integers(0, 3, n - 2))
    group_ids = rng.integers(0, rng.integers(1, n + 1), n) if grouped else np.arange(n)
    expected = checking_oracle.accuracy_of_one_column(x, codes, group_ids, ordered=ordered)
    assert _accuracy_of_one(x, codes, group_ids, ordered=ordered) == pytest.approx(expected)


@pytest.mark.parametrize(
    "which", ["some missing values", "missing values in all rows", "one column of numbers"]
)
def test_duplicates_are_counted_as_a_fit_counts_them(planted, which, tmp_path):
    X, y = planted
    rng = np.random.default_rng(0)
    X = X.mask(rng.random(X.shape) < 0.1).assign(kind=rng.choice([*"abc", None], len(X)), x5=X["x5"])
    if which == "missing values in all rows":
        X = X.mask(np.arange(len(X))[:, np.newaxis] % 5 == np.arange(7))
    elif which == "one column of numbers":
        X = X[["x5", "kind"]]
    X, y = pd.concat([X, X[:20]], ignore_index=True), np.append(y, y[:20])
    (finding,) = table_findings(X, y)
    assert finding.description == "20 of 320 rows repeat an earlier row, such as row 300, which equals row 0"
    assert duplicate_rows(20, 320) in run(*fitting(X, y, tmp_path)).stderr


def test_equal_rows_that_may_be_chance_are_no_duplicates(tmp_path):
    # As in cars of few sizes and years: rows agree, and a fit takes them as rows of their own.
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 4, (200, 4)), columns=[*"abcd"], index=[7] * 200)
    y = rng.choice(["u", "v"], 200)
    assert X.assign(y=y).duplicated().sum() > 9
    assert "duplicates" not in {each.kind for each in table_findings(X, y)}
    assert f" of {len(X)} rows " not in run(*fitting(X, y, tmp_path)).stderr
    # If a column of ids repeats with the row, both the fit and the check count duplicates.
    X = X.reset_index(drop=True).assign(code=rng.permutation(10**6)[:200])
    X, y = pd.concat([X, X[:9]], ignore_index=True), np.append(y, y[:9])
    findings = {each.kind: each.description for each in table_findings(X, y)}
    assert (
        findings["duplicates"] == "9 of 209 rows repeat an earlier row, such as row 200, which equals row 0"
    )
    assert duplicate_rows(9, 209) in run(*fitting(X, y, tmp_path)).stderr


def test_near_duplicates_are_counted_among_all_rows(planted):
    X, y = planted
    near = pd.concat(
        [X, X[:3] + 1e-9, X[:40].assign(x0=np.nan, x1=X["x1"][::-1].to_numpy()[:40])], ignore_index=True
    )
    (finding,) = table_findings(near, np.concatenate([y, y[:3], y[:40]]))
    assert finding.description.startswith("6 of 343 rows equal another row except for small differences")
    assert finding.rows == (0, 300)


@pytest.mark.parametrize(
    ("text", "beside"),
    [
        (lambda i: f"{i}.5 kg" if i % 3 else f"{i}.5", "'kg'"),  # in some rows alone
        (lambda i: f"{i}.5 kg" if i else "unknown", "'kg'"),
        (lambda i: f"{i * 7 % 79}%", "'%'"),
        (lambda i: f"{i}m2", "'m2'"),
        (lambda i: f"-{i}.5°C", "'°C'"),
        (lambda i: f"$ {1000 * i:,}.00", "marks of thousands and '$'"),
        (lambda i: f"{i}.000 €", "'€'"),
        (lambda i: f"{i},5 kg", "a comma and 'kg'"),
        (lambda i: f"{i + 1}\u202f250", "marks of thousands"),
        (lambda i: f"{i + 1}'250'125", "marks of thousands"),
        (lambda i: f"{i}", None),
        (lambda i: f"{i % 9} mg", None),  # which may be categories
        (lambda i: f"{i:03} A", None),
        (lambda i: f"P{i}", None),
        (lambda i: f"{i}{'abcd'[i % 4]}", None),
        (lambda i: f"{i}-{i + 4}", None),
        (lambda i: f"2024-01-{i}", None),
        (lambda i: f"10.0.{i}.1", None),
        (lambda i: f"{i}:30", None),
        (lambda i: f"{i} Main Street", None),
        (lambda i: f"{i} kg" if i % 4 else "unknown" + "!" * i, None),  # too many others
    ],
)
def test_how_numbers_are_written(text, beside):
    column = pd.DataFrame({"x": [text(i) for i in range(40)]})
    findings = [finding.description for finding in numbers_as_text(column)]
    assert [each.split(" numbers with ")[1].split(", such as ")[0] for each in findings] == [beside] * bool(
        beside
    )


def test_numbers_as_text_are_noted_in_a_fit(planted, tmp_path):
    X, y = planted[0].loc[:59, ["x0", "x1"]], planted[1][:60]
    table = tmp_path / "table.csv"
    X.assign(weight=X["x0"].round(3).astype(str) + " kg", group=y).to_csv(table, index=False)
    fit = ("fit", table, "-t", "group", "--estimator", "rodeo", "--model", tmp_path / "m.corral")
    sentence = "column 'weight' holds numbers with 'kg', such as "
    notes = run(*fit).stderr.splitlines()
    assert [note.startswith(f"note: {sentence}") for note in notes if "'weight'" in note] == [True]
    assert sentence not in run(*fit, "--categorical", "weight").stderr  # where it was asked for
    X.assign(price=[f"{1000 + i:,}" for i in range(len(X))], group=y).to_csv(table, index=False)
    assert (
        "or read the file with decimal commas (--decimal ',')." in run("check", table, "-t", "group").stdout
    )


def test_what_does_not_change_in_a_group_gives_no_label_away(tmp_path):
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(40), 5)
    y = np.where(patient % 2, "ill", "well")
    X = as_frame(rng.normal(size=(200, 2))).assign(age=rng.normal(50, 10, 40)[patient], patient=patient)
    (finding,) = table_findings(X, y, group="patient")
    assert finding.kind == "groups"
    (finding,) = table_findings(X.drop(columns="patient"), y)
    assert finding.kind == "leakage"
    leaky = X.assign(x1=X["x1"] + 10.0 * (y == "ill"))
    findings = {finding.kind: str(finding) for finding in table_findings(leaky, y, group="patient")}
    assert findings["leakage"] == (
        "column 'x1' alone predicts the label of 100.0% of the rows, from rows of other groups; always "
        "naming "
        "the most frequent class predicts 50.0%: leave it out, unless its value is known before the label."
    )
    lost = X.assign(patient=X["patient"].where(X["patient"] != 3))  # 'check' tells of such rows, and goes on
    assert "leakage" not in {each.kind for each in table_findings(lost, y, group="patient")}
    table = tmp_path / "visits.csv"
    X.assign(state=y).to_csv(table, index=False)
    arguments = ("fit", table, "-t", "state", "--estimator", "rodeo", "--model", tmp_path / "m.corral")
    assert "'age' alone predicts" in run(*arguments, "--drop", "patient").stderr
    assert "alone predicts" not in run(*arguments, "--group", "patient").stderr


def test_speed():
    """Pairs of rows are not compared one by one, which would take minutes."""
    rng = np.random.default_rng(0)
    X = as_frame(rng.normal(size=(30_000, 30)))
    start = time.process_time()
    findings = table_findings(pd.concat([X, X[:50] + 1e-7], ignore_index=True), rng.integers(0, 5, 30_050))
    assert [finding.kind for finding in findings] == ["near duplicates"]
    assert time.process_time() - start < 10.0


def test_rows_of_other_categories_are_no_duplicates(planted):
    X, y = planted
    site = np.resize(["a", "b"], len(X)).astype(object)
    X.loc[7] = X.loc[4]  # equal in all numbers
    X.loc[27] = X.loc[24] + 1e-6  # nearly so
    assert not {"duplicates", "near duplicates"} & {
        each.kind for each in table_findings(X.assign(site=site), y)
    }
    site[[7, 27]] = site[[4, 24]]
    findings = {each.kind: each.rows for each in table_findings(X.assign(site=site), y)}
    assert (findings["duplicates"], findings["near duplicates"]) == ((4, 7), (24, 27))


# The command


@pytest.fixture
def table(planted, tmp_path):
    X, y = planted
    faulty = X.assign(id=[f"P{i:04}" for i in range(len(X))], site=3, group=y)
    with_numbers(faulty, "x1", -999, [4, 40]).to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def test_check_names_options(table):
    shown = run("check", table, "--target", "group").stdout.splitlines()
    assert shown == [
        f"4 findings in 300 rows and 9 columns of {table}",
        f"- {FAULTS['identifier: text ids'][1].replace('who', 'id')[:-1]} (--id id).",
        f"- {FAULTS['constant: a number'][1][:-1]} (--drop site).",
        shown[3],
        "- the rows are sorted by their labels, so the first rows of the file are all of one class: shuffle "
        "the "
        "rows before you use a part of the file.",
        "rows are counted from 0; the line of column names is not counted",
        "categories: id (300)",
        f"looked for: {'; '.join(LOOKED_FOR)}",
    ]
    assert shown[3].endswith(": replace -999 with NaN (--na-values -999).")
    findings = answered("check", table, "-t", "group", "--id", "id", "--na-values", "-999")
    assert [each["kind"] for each in findings["findings"]] == ["constant", "class order"]
    assert findings["looked_for"] == [*LOOKED_FOR]
    assert (findings["categories"], findings["missing_values"]) == ({}, {"x1": 2})
    assert run("check", table, "-t", "group", "-q").stdout == f"{shown[0]}\n"


def test_noise_written_twice_gives_no_label_away():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc")).round(3)
    y = rng.choice(["u", "v"], 40)
    findings = table_findings(pd.concat([X, X], ignore_index=True), np.append(y, y))
    assert [each.kind for each in findings] == ["duplicates"]
    # A leak is still found, in half as many rows.
    leak = X.assign(d=(y == "u") + rng.uniform(0.0, 0.5, 40))
    findings = table_findings(pd.concat([leak, leak], ignore_index=True), np.append(y, y))
    assert [(each.kind, each.columns) for each in findings] == [("leakage", ("d",)), ("duplicates", ())]


def test_check_names_the_group_and_finds_nothing_else(planted, tmp_path):
    X, y = planted
    X.assign(patient=patients(y), y=y).to_csv(tmp_path / "t.csv", index=False)
    shown = run("check", tmp_path / "t.csv", "-t", "y").stdout.splitlines()
    assert shown[1].endswith(
        "use it as the group column, otherwise leave it out (--group patient, or --drop patient)."
    )
    shown = run("check", tmp_path / "t.csv", "-t", "y", "--group", "patient").stdout.splitlines()
    assert shown[1].startswith("- the rows are sorted by their labels, ")
    assert shown[2].startswith("- column 'patient' identifies 50 groups of 6 to 6 rows ")
    table = tmp_path / "shuffled.csv"
    X.assign(y=y).sample(frac=1.0, random_state=0).to_csv(table, index=False)
    shown = run("check", table, "-t", "y").stdout.splitlines()
    assert shown == [
        f"0 findings in 300 rows and 7 columns of {table}",
        f"looked for: {'; '.join(LOOKED_FOR)}",
    ]


def test_check_without_columns_as_fit_does(table):
    arguments = ("check", table, "-t", "group", "--drop", "site", "--drop", "id")
    findings = answered(*arguments)
    assert (findings["columns"], findings["categories"]) == (7, {})
    assert [each["kind"] for each in findings["findings"]] == ["sentinel", "class order"]
    assert refused(*arguments, "--drop", "sit").endswith("has no column 'sit'; did you mean 'site'?")
    assert refused(*arguments, "--drop", "group") == "the target, 'group', cannot be left out."
    sentence = refused("check", table, "--group", "patient")
    assert sentence.startswith(f"{table} has no column 'patient'; it has")


def test_fit_notes_findings(table):
    fit = ("fit", table, "-t", "group", "--id", "id", "--estimator", "rodeo")
    notes = run(*fit).stderr.splitlines()
    assert notes[0] == f"note: {FAULTS['constant: a number'][1][:-1]} (--drop site)."
    assert notes[1].endswith(": replace -999 with NaN (--na-values -999).")
    assert run(*fit, "--quiet").stderr == ""


# Options of fit


def fitting(X, y, folder):
    """The command that fits a model to rows."""
    X.assign(y=y).to_csv(folder / "t.csv", index=False)
    return "fit", folder / "t.csv", "-t", "y", "--estimator", "rodeo", "--json"


def test_small_classes_are_dropped(planted, tmp_path):
    X, y = planted
    y[:3], y[3] = "rare", "rarer"
    fit = fitting(X, y, tmp_path)
    result = run(*fit, "--drop-small-classes", 4)
    assert json.loads(result.stdout)["rows"] == 296
    assert "rare" not in json.loads(result.stdout)["rows_by_class"]
    assert notes_of(result)[0] == (
        "left out 4 of 300 rows, whose classes have fewer than 4 rows, duplicates not counted: 'rare' "
        "(3), 'rarer' (1); the other rows keep their numbers."
    )
    sentence = refused(*fit, "--drop-small-classes", 40)
    assert sentence == "--drop-small-classes 40 would leave 0 of 12 classes, but at least two are needed."


def test_duplicates_do_not_make_a_class_large(planted, tmp_path):
    X, y = planted
    y[:3] = "rare", "rare", "rarer"
    twice = [*range(len(X)), 0, 2]
    fit = fitting(X.iloc[twice], y[twice], tmp_path)
    assert refused(*fit) == (
        "class 'rarer' has 1 row (2 with duplicates), fewer than the 2 needed to hold some out; leave small "
        "classes out by --drop-small-classes 2."
    )
    assert refused(*fit, "--cv", 4).endswith("by --drop-small-classes 4.")
    result = run(*fit, "--drop-small-classes", 2)
    assert json.loads(result.stdout)["rows"] == 300
    assert "classes have fewer than 2 rows, duplicates not counted: 'rarer' (1); " in notes_of(result)[0]


def test_rows_of_small_classes_need_not_be_sound(planted, tmp_path):
    X, y = planted
    y[:2] = "rare"
    fit = fitting(with_cell(X, 1, "x2", "?"), y, tmp_path)
    assert "row 1 holds '?'" in refused(*fit)
    assert answered(*fit, "--drop-small-classes", 3)["rows"] == 298


@pytest.mark.parametrize(
    ("options", "params"),
    [
        (("--estimator", "rodeo", "--scale", "rank"), {"scale": "rank"}),
        (
            ("--estimator", "rodeo", "--scale", "none", "--priors", "uniform"),
            {"scale": None, "priors": "uniform"},
        ),
        (("--estimator", "rodeo"), {"scale": "range", "priors": "empirical"}),
        (("--estimator", "lspc", "--scale", "range"), {"scale": "range"}),
        (("--estimator", "lspc"), {"scale": "standard"}),
    ],
)
def test_options_reach_the_estimator(options, params, planted, tmp_path):
    X, y = planted
    run(*fitting(X[["x0", "x1"]], y, tmp_path), "--model", tmp_path / "m.corral", *options)
    findings = load_model(tmp_path / "m.corral").get_params()
    assert {name: findings[name] for name in params} == params


def test_options_that_an_estimator_does_not_have(table):
    sentence = refused("fit", table, "-t", "group", "--estimator", "cv", "--scale", "rank")
    assert sentence == "--scale rank is not for --estimator cv, which uses several scales."


def test_check_table_takes_the_classes_from_a_column():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"height": rng.normal(size=60), "species": np.repeat(["a", "b"], 30)})
    frame["sure"] = (frame["species"] == "a").astype(float)
    frame.loc[3, "species"] = None
    findings = {finding.kind: finding.columns for finding in check_table(frame, "species")}
    assert findings == {"missing labels": (), "leakage": ("sure",), "class order": ()}
    assert check_table(frame[["height"]]) == []


@pytest.mark.parametrize(
    "named", [{"target": "kind"}, {"ids": ["kind"]}, {"group": "kind"}, {"categorical": ["kind"]}]
)
def test_check_table_names_a_column_that_is_not_there(named):
    with pytest.raises(ValueError, match=r"the table has no column 'kind'; it has 'height'\."):
        check_table(pd.DataFrame({"height": [1.0, 2.0]}), **named)


def test_the_target_is_neither_group_nor_id(table):
    frame = pd.read_csv(table)
    sentence = "group 'group' is the target: a group is the source of several rows, such as a patient."
    assert refused("check", table, "-t", "group", "--group", "group") == f"--{sentence}"
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        check_table(frame, "group", group="group")
    sentence = "the target, 'group', cannot be left out."
    assert refused("check", table, "-t", "group", "--id", "group") == sentence
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        check_table(frame, "group", ids=["id", "group"])


def test_check_table_refuses_columns_of_one_name():
    frame = pd.DataFrame([[1.0, 2.0, "a"], [3.0, 4.0, "b"]], columns=["v", "v", "y"])
    with pytest.raises(ValueError, match=r"^the table has several columns named 'v': rename them"):
        check_table(frame, "y")
