"""Tests of findings that rest on a quick model or on the file: groups, leakage, order, labels, short rows."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine

from corral import check_table
from corral.checking.categories import mixed_answers
from corral.checking.quick_model import held_out_hits, left_out_probabilities, ranked_columns
from corral.cli.check import sentence_of
from support.cli import answered, run


def findings_of(table, target="y", **options):
    return {finding.kind: finding for finding in check_table(table, target, **options)}


def shuffled(table):
    return table.sample(frac=1.0, random_state=0, ignore_index=True)


@pytest.fixture
def visits():
    """Rows of 80 patients that are alike, in order; labels vary within a patient."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(80), rng.integers(2, 7, 80))
    label = np.where(rng.random(patient.size) < 0.9, rng.integers(0, 2, 80)[patient], 1)
    X = rng.normal(size=(80, 4))[patient] + 0.3 * label[:, np.newaxis]
    X += 0.3 * rng.normal(size=X.shape)
    return pd.DataFrame(X.round(3), columns=list("abcd")).assign(
        patient=rng.permutation(1000)[:80][patient], y=np.where(label, "ill", "well")
    )


# Groups


def test_repeated_ids_are_groups_and_the_loss_of_accuracy_is_shown(visits):
    finding = findings_of(shuffled(visits))["likely groups"]
    by_rows, by_groups = re.findall(r"[\d.]+(?=%)", finding.description)
    assert float(by_rows) > float(by_groups) + 10.0
    assert finding.description == (
        "column 'patient' has 80 different values, each in 2 to 6 (median 4) rows, and seems to identify "
        "groups: "
        f"a quick model predicts {by_rows}% of the labels right if rows are held out at random, and "
        f"{by_groups}% if all rows with the same value are held out together"
    )
    assert sentence_of(finding).endswith(
        "use it as the group column if it identifies groups such as patients, otherwise leave it out "
        "(--group "
        "patient, or --drop patient)."
    )
    assert "likely groups" not in findings_of(visits, group="patient")


def test_repeated_ids_are_told_though_accuracy_does_not_fall():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(240, 3)), columns=list("abc")).assign(y=rng.integers(0, 2, 240))
    assert findings_of(table.assign(subject_id=rng.permutation(240) % 60))["likely groups"].columns == (
        "subject_id",
    )
    assert "likely groups" not in findings_of(table.assign(age=rng.permutation(240) % 60))


def test_blocks_of_any_name_are_groups_if_accuracy_falls(visits):
    blocks = visits.rename(columns={"patient": "z"})
    assert (
        "consecutive rows, and seems to identify groups" in findings_of(blocks)["likely groups"].description
    )
    assert "likely groups" not in findings_of(shuffled(blocks))  # any whole number may be a measurement
    unrelated = blocks.assign(z=np.sort(blocks["z"])[::-1], **shuffled(blocks)[[*"abcd", "y"]])
    assert "likely groups" not in findings_of(unrelated)


def test_texts_are_groups_if_accuracy_falls(visits):
    names = visits.assign(patient=visits["patient"].map("storm {}".format)).rename(columns={"patient": "z"})
    assert findings_of(shuffled(names))["likely groups"].columns == ("z",)
    unrelated = names.assign(z=shuffled(names)["z"])
    assert "likely groups" not in findings_of(unrelated)


def test_the_finest_of_nested_groups_is_told(visits):
    nested = shuffled(visits.assign(z=visits["patient"].map("p{}".format), zone=visits["patient"] % 40))
    nested = nested.assign(zone=nested["zone"].map("zone {}".format)).drop(columns="patient")
    assert findings_of(nested)["likely groups"].columns == ("z",)


def test_repeated_ids_are_told_without_labels(visits):
    finding = findings_of(visits.drop(columns="y"), None)["likely groups"]
    assert finding.description == (
        "column 'patient' has 80 different values, each in 2 to 6 (median 4) consecutive rows"
    )


# Leakage


def test_a_column_as_good_as_the_model_is_told():
    """As the expenditure by a credit card, which is 0 without one, but sometimes with one, too."""
    rng = np.random.default_rng(0)
    y = rng.random(1000) < 0.8
    spent = np.where(y & (rng.random(1000) < 0.98), rng.exponential(size=1000), 0.0)
    table = pd.DataFrame(rng.normal(size=(1000, 3)) + 0.5 * y[:, np.newaxis], columns=list("abc"))
    finding = findings_of(table.assign(spent=spent, y=y))["leakage"]
    assert finding.columns == ("spent",)
    assert (
        "alone predicts the label of 98.4% of the rows; all variables together predict 9"
        in finding.description
    )
    assert sentence_of(finding).endswith("unless its value is known before the label (--drop spent).")


def test_missing_values_that_give_a_class_away_are_leakage():
    """As the category of a storm, which only hurricanes have."""
    rng = np.random.default_rng(0)
    y = rng.choice([*"uvw", "hurricane"], 400)
    table = pd.DataFrame(rng.normal(size=(400, 3)), columns=[*"abc"]).assign(y=y)
    category = pd.Series(rng.integers(1, 6, 400).astype(float))
    for has_value in (y == "hurricane", y != "hurricane"):
        leak = findings_of(table.assign(category=category.where(has_value)), "y")["leakage"]
        assert leak.columns == ("category",)
        inside, outside = ("100.0%", "0.0%") if has_value[y == "hurricane"].all() else ("0.0%", "100.0%")
        assert leak.description == (
            f"column 'category' has a value in {inside} of the rows of the class 'hurricane' and in "
            f"{outside} of all other rows, so this class can be predicted from the missing values alone"
        )
    often = (y == "hurricane") ^ (rng.random(400) < 0.1)
    assert "leakage" not in findings_of(table.assign(category=category.where(often)), "y")


def test_a_good_variable_is_no_leak():
    iris = shuffled(load_iris(as_frame=True).frame)
    assert not findings_of(iris, "target")


def test_a_variable_that_defines_the_label_is_left_out_and_names_no_groups():
    rng = np.random.default_rng(0)
    weeks = rng.integers(30, 44, 400)
    table = pd.DataFrame({"weeks": weeks, "weight": rng.normal(size=400), "premature": weeks < 37})
    finding = findings_of(table, "premature")["leakage"]
    assert sentence_of(finding).endswith("is known before the label (--drop weeks).")


# Units and zeros


def test_a_class_may_have_ten_times_larger_values():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(300) < 0.1, "mouse", "rat")
    length = rng.uniform(3.0, 5.0, 300).round(2)
    table = pd.DataFrame(
        {"length": length * np.where(y == "mouse", 1.0, 10.0), "a": rng.normal(size=300), "y": y}
    )
    assert "mixed units" not in findings_of(table)
    mixed = table.assign(y=rng.permutation(y))
    assert findings_of(mixed)["mixed units"].columns == ("length",)


def test_the_option_for_zeros_is_named_if_it_harms_no_other_column():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"depth": np.append(rng.uniform(13, 20, 97), [0.0] * 3), "a": rng.normal(size=100)})
    (finding,) = check_table(table)
    assert sentence_of(finding).endswith(
        "if 0 stands for a missing value, replace it with NaN (--na-values 0)."
    )
    (finding,) = check_table(table.assign(kids=rng.integers(0, 4, 100)))
    assert sentence_of(finding).endswith("if 0 stands for a missing value, leave these cells empty.")
    assert finding.rows == (97, 98, 99)


# Order


def test_rows_in_order_of_their_class_are_told():
    iris = load_iris(as_frame=True).frame
    assert findings_of(iris, "target")["class order"].description.startswith(
        "the rows are sorted by their labels"
    )
    blocks = iris.iloc[np.argsort(np.arange(150) % 50 // 10, kind="stable")].reset_index(drop=True)
    assert findings_of(blocks, "target")["class order"].description == (
        "labels come in runs: the label changes 14 times from row to row; 99 changes would be expected in "
        "random order"
    )


@pytest.mark.parametrize("when", ["year", "day"])
def test_rows_in_order_of_time_are_told(when):
    rng = np.random.default_rng(0)
    drift = np.linspace(0.0, 3.0, 400)
    y = rng.random(400) < 0.5
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(400), "D")
    column = np.arange(400) // 10 if when == "year" else days.astype(str)
    table = pd.DataFrame({when: column, "a": y + drift + 0.3 * rng.normal(size=400), "y": y})
    finding = findings_of(table)["time order"]
    assert finding.columns == (when,)
    assert finding.description.startswith(f"the rows are sorted by '{when}'; a quick model predicts ")
    by_chance, by_time = re.findall(r"[\d.]+(?=%)", finding.description)[:2]
    assert float(by_chance) > float(by_time) + 10.0
    assert "time order" not in findings_of(shuffled(table))
    assert (
        findings_of(table.drop(columns="y"), None)["time order"].description
        == f"the rows are sorted by '{when}'"
    )
    newest_first = findings_of(table[::-1])["time order"]
    assert newest_first.description.startswith(f"the rows are sorted by '{when}', the latest first; a quick ")
    assert newest_first.description.endswith(
        f"and {by_time}% in the latest 30% of the rows if it is fitted to the earlier rows"
    )
    assert newest_first.advice.endswith("hold out the first rows and score the model on them")


# Labels


def test_labels_that_the_other_rows_contradict_are_listed():
    wine = shuffled(load_wine(as_frame=True).frame)
    assert findings_of(wine, "target") == {}
    flipped = np.array([3, 30, 60, 90, 120, 150])
    labels = wine["target"].where(~wine.index.isin(flipped), (wine["target"] + 1) % 3)
    finding = findings_of(wine.assign(target=labels), "target")["contradicted labels"]
    assert set(finding.rows) <= set(flipped)
    assert len(finding.rows) >= 4
    row = finding.rows[0]
    assert f"row {row} (label '{labels[row]}': probability 0.0" in finding.description
    assert f"; '{wine['target'][row]}': " in finding.description


def test_overlapping_classes_contradict_no_label():
    rng = np.random.default_rng(0)
    y = rng.random(600) < 0.3
    table = pd.DataFrame(rng.normal(size=(600, 4)) + y[:, np.newaxis], columns=list("abcd")).assign(y=y)
    assert findings_of(table) == {}


@pytest.mark.parametrize(
    ("categories", "expected"),
    [
        (["Y", "no", "yes"], "('Y', 'yes')"),
        (["0", "1", "no", "yes"], "('1', 'yes'), ('0', 'no')"),
        (["F", "M", "female", "male"], "('M', 'male'), ('F', 'female')"),
        (["f", "m"], ""),
        (["no", "yes"], ""),
        (["n", "no", "perhaps"], ""),
        (["f", "t"], ""),
    ],
)
def test_answers_in_several_spellings(categories, expected):
    assert mixed_answers(categories) == expected


# Odd tables


@pytest.mark.parametrize(
    "columns",
    [
        {0: np.arange(60) % 7, 1: np.arange(60) * 7 % 11},
        {"a": np.resize([-1e308, 1e308, 3.0], 60), "b": np.arange(60) * 1e300},
        {"a": [np.nan] * 60, "b": [None] * 60},
        {"a": [1, "x", None, 2.5] * 15, "b": np.arange(60) % 2 > 0},
        {"a": pd.Categorical(["u", "v"] * 30), "b": pd.Categorical([1, 2, 3] * 20)},
        {"a": pd.array([1, None] * 30, dtype="Int64"), "b": pd.to_timedelta(np.arange(60), "h")},
        {},
    ],
    ids=["numbers as names", "huge", "empty", "mixed", "categories", "nullable", "no column"],
)
@pytest.mark.parametrize("y", [np.arange(60) % 2, np.arange(60), np.zeros(60), [None] * 60])
def test_odd_tables_give_findings_and_no_error(columns, y):
    table = pd.DataFrame({**columns, "y": y})
    for rows in (60, 2, 1, 0):
        for finding in check_table(table[:rows], "y"):
            assert str(finding).endswith(".")


# The quick model


def test_the_quick_model_never_sees_the_row_that_it_predicts():
    rng = np.random.default_rng(0)
    X = ranked_columns(pd.DataFrame(rng.normal(size=(300, 3))).mask(rng.random((300, 3)) < 0.1))
    codes = rng.integers(0, 2, 300)
    assert abs((left_out_probabilities(X, codes).argmax(axis=1) == codes).mean() - 0.5) < 0.1
    twice, again = np.tile(X, (2, 1)), np.tile(codes, 2)
    assert held_out_hits(twice, again, np.arange(600)).mean() > 0.65
    assert abs(held_out_hits(twice, again, np.tile(np.arange(300), 2)).mean() - 0.5) < 0.1


# Short rows


@pytest.mark.parametrize(
    ("cut", "shown"),
    [
        (9, "row 9 (2 of 3), the last row, as in an incomplete file: add"),
        (4, "row 4 (2 of 3): add"),
    ],
)
def test_rows_with_too_few_cells_are_told(cut, shown, tmp_path):
    lines = [f"{i}.5,{i * i % 7},{'ab'[i % 2]}" for i in range(10)]
    lines[cut] = lines[cut].rsplit(",", 1)[0]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["length,count,kind", *lines[:6], "", *lines[6:]]))
    findings = f"- 1 row has fewer cells than there are columns, such as {shown}"
    assert findings in run("check", table).stdout
    (finding,) = (each for each in answered("check", table)["findings"] if each["kind"] == "short rows")
    assert finding["rows"] == [cut]


@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
def test_whole_rows_are_not_short(separator, tmp_path):
    lines = [separator.join(["length", "count", "kind"])]
    lines += [
        separator.join([f"{i}.5", f"{i * i % 7}", "'a b'" if separator == "," else "a"]) for i in range(10)
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    findings = answered("check", tmp_path / "t.csv", "--sep", separator)
    assert "short rows" not in {each["kind"] for each in findings["findings"]}
