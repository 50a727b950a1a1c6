"""Tests of near duplicates: every kind is found and reported, and no table without them gets a warning."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from corral import CorralClassifier, MarkerSelector, NearDuplicatesWarning, RodeoClassifier
from corral.checking.table import check_table
from corral.data.near_duplicates import near_duplicates
from corral.datasets import make_shifted_groups, make_ten_groups, make_waveform
from support.cli import run


def noise(kind, seed=0, n=75, d=5):
    """Rows of pure noise, each twice, as a frame, and their labels."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.choice(["a", "b"], n)
    lost = X.copy()
    lost[np.arange(n), rng.integers(0, d, n)] = np.nan
    twins = {"rounded": X.round(3), "lost": lost, "noise": X + 1e-3 * rng.normal(size=X.shape)}
    frame = pd.DataFrame(np.vstack([X, twins.get(kind, X)])).rename(columns=lambda j: f"x{j}")
    if kind == "counter":
        frame["n"] = rng.permutation(2 * n)
    elif kind == "date":
        frame["day"] = rng.integers(0, 400, 2 * n)
    return frame, np.append(y, y)


DIFFERENCES = {
    "rounded": "small differences",
    "noise": "small differences",
    "lost": "a missing value",
    "counter": "column 'n'",
    "date": "column 'day'",
}


@pytest.mark.parametrize("kind", DIFFERENCES)
def test_every_kind_is_found(kind):
    for seed in range(24):
        X, _ = noise(kind, seed)
        duplicates = near_duplicates(X.to_numpy())
        assert duplicates.n_rows >= 0.95 * len(X)
        assert (duplicates.pairs[:, 1] - duplicates.pairs[:, 0] == 75).mean() > 0.95
        assert DIFFERENCES[kind] == (
            duplicates.kind if duplicates.column is None else f"column {X.columns[duplicates.column]!r}"
        )


@pytest.mark.parametrize("n_twins", [3, 20, 60])
def test_small_differences_in_columns_of_few_values_are_found(n_twins):
    """Magnesium has 53 values in 178 rows of wine: it is not continuous, and twins differ in it, too."""
    wine = load_wine().data
    twins = wine[:n_twins] * (1.0 + 1e-6)
    duplicates = near_duplicates(np.vstack([wine, twins]))
    assert (duplicates.n_rows, duplicates.kind) == (2 * n_twins, "small differences")
    twins[:, 4] = wine[:n_twins, 4] + 1.0  # the smallest difference in the table
    assert near_duplicates(np.vstack([wine, twins])) is None


@pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")
@pytest.mark.parametrize(
    ("estimator", "kind"),
    [(CorralClassifier(random_state=0), kind) for kind in DIFFERENCES]
    + [(RodeoClassifier(), "counter"), (MarkerSelector(), "counter")],
)
def test_a_fit_warns_of_them(estimator, kind):
    with pytest.warns(NearDuplicatesWarning) as warned:
        estimator.fit(*noise(kind))
    (message,) = (str(each.message) for each in warned if each.category is NearDuplicatesWarning)
    assert message.startswith(f"150 of 150 rows equal another row except for {DIFFERENCES[kind]}")
    advice = "leave the column out, remove one row of each pair, or pass groups"
    assert (advice in message) == (kind in ("counter", "date"))


@pytest.mark.parametrize("kind", DIFFERENCES)
def test_check_tells_of_them_and_blames_no_column(kind, tmp_path):
    X, y = noise(kind)
    X.assign(label=y).to_csv(tmp_path / "table.csv", index=False)
    output = run("check", tmp_path / "table.csv", "-t", "label").stdout
    assert f"150 of 150 rows equal another row except for {DIFFERENCES[kind]}" in " ".join(output.split())
    assert "alone predicts" not in output


def test_fit_on_the_command_line_tells_of_them_once(tmp_path):
    X, y = noise("counter")
    X.assign(label=y, pair=np.tile(np.arange(75), 2)).to_csv(tmp_path / "table.csv", index=False)
    arguments = ("fit", tmp_path / "table.csv", "-t", "label")
    assert run(*arguments, "--drop", "pair").stderr.count("150 of 150 rows equal another row") == 1
    assert "equal another row" not in run(*arguments, "--group", "pair").stderr


def test_groups_that_hold_them_together_and_rows_without_weight_are_no_reason_to_warn():
    X, y = noise("noise")
    together, apart = np.tile(np.arange(75), 2), np.arange(150)
    assert near_duplicates(X.to_numpy(), groups=together) is None
    assert near_duplicates(X.to_numpy(), groups=apart).n_rows == 150
    with warnings.catch_warnings():
        warnings.simplefilter("error", NearDuplicatesWarning)
        CorralClassifier(random_state=0).fit(X, y, groups=together)
        CorralClassifier(random_state=0).fit(X, y, sample_weight=np.repeat([1.0, 0.0], 75))


def test_a_column_that_gives_the_label_away_is_found_among_near_duplicates():
    X, y = noise("counter", n=100)
    rng = np.random.default_rng(0)
    twice = np.tile(rng.normal(size=100) + 20 * (y[:100] == "a"), 2)
    kinds = {finding.kind: finding.columns for finding in check_table(X.assign(leak=twice, y=y), "y")}
    assert kinds["leakage"] == ("leak",)
    assert "near duplicates" in kinds


def test_pairs_are_those_of_all_distances():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 7))
    X[200:240] = X[:40] + 1e-4 * rng.normal(size=(40, 7))
    distances = np.linalg.norm(X[:, np.newaxis] - X, axis=2)
    expected = np.argwhere(np.triu(distances < 0.01, 1))
    assert np.array_equal(near_duplicates(X).pairs, expected)
    assert len(expected) == 40


def test_few_of_many_rows_are_estimated_from_a_subsample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 4))
    duplicates = near_duplicates(np.vstack([X, X[:30_000] + 1e-6]))
    assert duplicates.n_rows == pytest.approx(60_000, rel=0.2)


def sound_tables():
    """Tables without near duplicates, of every kind that might be mistaken for them."""
    rng = np.random.default_rng(0)
    measured, patient = rng.normal(size=(300, 5)), rng.normal(size=(60, 4))[rng.integers(0, 60, 300)]
    missing = np.where(rng.random((300, 5)) < 0.5, np.nan, measured)
    yield "iris", load_iris().data
    yield "wine", load_wine().data
    yield "breast cancer", load_breast_cancer().data
    yield "digits", load_digits().data
    yield "ten groups", make_ten_groups(60, random_state=0)[0]
    yield "shifted groups", make_shifted_groups(60, random_state=0)[0]
    yield "waveform", make_waveform(300, random_state=0)[0]
    yield "exact duplicates", np.vstack([measured, measured[:100]])
    yield "categories", rng.integers(0, 3, (300, 5)).astype(float)
    yield "categories and a number", np.column_stack([measured[:, 0], rng.integers(0, 3, (300, 4))])
    yield "rare flags", (rng.random((300, 20)) < 0.03).astype(float)
    yield "flags and prices", np.column_stack([np.exp(measured[:, :2]).round(2), rng.random((300, 8)) < 0.1])
    yield "whole numbers", rng.integers(0, 30, (300, 3)).astype(float)
    yield "counts", rng.poisson(0.5, (300, 6)).astype(float)
    yield "rounded to 0 digits", measured.round(0)
    yield "rounded to 1 digit", measured[:, :3].round(1)
    yield "heavy tails", rng.standard_cauchy((300, 3))
    yield "mostly zeros", np.exp(measured) * (rng.random(measured.shape) < 0.2)
    yield "missing values", missing
    yield "one column", measured[:, :1]
    yield "two rows", measured[:2]
    yield "one variable in five columns", measured[:, :1] * np.arange(1.0, 6.0)
    yield "a curve", np.column_stack([np.sin(measured[:, 0]), np.cos(measured[:, 0]), measured[:, 0]])
    yield "a random walk", measured.cumsum(axis=0)
    yield "several visits of patients", patient + 0.2 * rng.normal(size=patient.shape)
    yield "a design of all combinations", np.stack(np.meshgrid(*[np.arange(4.0)] * 4), -1).reshape(-1, 4)
    yield "indicators of categories", np.eye(5)[rng.integers(0, 5, (300, 3))].reshape(300, -1)
    yield "clusters of different width", measured * 10.0 ** rng.integers(-3, 1, (300, 1))
    yield "a wide table", rng.normal(size=(30, 500))


def test_sound_tables_have_none():
    assert [name for name, X in sound_tables() if near_duplicates(X) is not None] == []
