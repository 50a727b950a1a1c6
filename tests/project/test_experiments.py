"""The experiments: published numbers, draws, scores, results that survive a kill, and a smoke run of each."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.metrics import precision_score
from sklearn.neighbors import KernelDensity

from benchmarks.kernel_naive_bayes import KernelNaiveBayes
from corral import RodeoClassifier
from corral.datasets import make_shifted_groups, make_waveform
from experiments import __main__ as command_line
from experiments import _run as running
from experiments import anuran, digits, rates, shifted_groups, ten_groups, waveform
from experiments.__main__ import EXPERIMENTS
from experiments._expected import expected_rodeo, normal_integrals, smoothing_error, uniform_integrals
from experiments._lines import append_line, read_lines
from experiments._paper import paper_table
from experiments._report import summary, write_report
from experiments._run import read_results, run
from experiments._slopes import QUANTITIES, slope, slope_tables, slope_targets, theory
from experiments._trial import Task, child_seeds, split_by_row
from support.real_data import skip_without_data

ROOT = Path(__file__).parents[2]
FEW_CLASSES = ("shifted_groups", "training_sizes", "waveform")
# Of many variables every so manyth is enough to see that all runs, and much faster drawn.
COMPRESSED = {"anuran": 3, "digits": 8}
WITHOUT_PROBABILITIES = ("svc",)
TIMES = ["fit_seconds", "predict_seconds", "processor_seconds"]


# Published numbers


@pytest.mark.parametrize(("name", "d"), [("table_2", 30), ("table_5", 10), ("table_8", 10)])
def test_published_zscores_are_zscores(name, d):
    # A digit typed wrong would show: in every row they sum to zero and their squares to about d - 1.
    rows = paper_table(name).groupby(["cell", "group"])["zscore"]
    assert (rows.count() == d).all()
    assert_allclose(rows.sum(), 0, atol=0.006)
    squares = rows.apply(lambda z: (z**2).sum())
    assert squares.between(0.95 * (d - 1), d - 1).all()


def test_published_accuracies_are_those_quoted_in_the_text():
    table = paper_table("table_4")
    assert set(table["cell"]) == set(EXPERIMENTS["shifted_groups"].cells)
    groups = table["cell"].str.split().str.len()
    quoted = {
        ("new", "max"): [0.9954, 0.9298, 0.8841, 0.7769],
        ("LSPC", "max"): [0.9950, 0.9295, 0.8559, 0.7100],
        ("new", "min"): [0.7818, 0.7836, 0.7652, 0.7769],
        ("LSPC", "min"): [0.7639, 0.7246, 0.7114, 0.7100],
    }
    for (method, which), values in quoted.items():
        rows = table[table["method"] == method]
        assert rows["mean"].groupby(groups).agg(which).tolist() == values


def test_published_means_are_those_of_the_generator():
    X, y = make_shifted_groups(20_000, random_state=0)
    for group, *means in paper_table("table_3").itertuples(index=False):
        assert_allclose(X[y == group, :2].mean(axis=0), means, atol=0.006)


@pytest.mark.parametrize("name", [t for e in EXPERIMENTS.values() for t in e.tables])
def test_published_tables_have_all_cells_and_deviations(name):
    table = paper_table(name)
    [experiment] = [e for e in EXPERIMENTS.values() if name in e.tables]
    assert set(table["cell"]) <= set(experiment.cells)
    assert (table["sd"] > 0).all()
    assert not table.duplicated(["cell", "method", "metric"]).any()


# Draws


def test_a_trial_has_a_seed_of_its_own():
    children = np.random.SeedSequence(3).spawn(5)
    for trial, child in enumerate(children):
        assert child_seeds(3, trial) == tuple(child.generate_state(2))
    assert len({seed for trial in range(100) for seed in child_seeds(0, trial)}) == 200
    assert child_seeds(0, 0) != child_seeds(1, 0)


def test_rows_to_judge_by_are_not_learnt_from():
    y = np.repeat([3, 1, 2], [30, 40, 50])
    train, test = split_by_row(y, 20, 10, seed=0)
    assert not set(train) & set(test)
    assert np.unique(y[train], return_counts=True)[1].tolist() == [20] * 3
    assert np.unique(y[test], return_counts=True)[1].tolist() == [10] * 3


def test_a_recording_is_on_one_side():
    skip_without_data("anuran")
    frogs = anuran._frogs()
    train, test = anuran._split_by_recording(frogs.target, 100, 50, 0)
    assert not set(frogs.record_id[train]) & set(frogs.record_id[test])
    assert np.unique(frogs.target[train], return_counts=True)[1].tolist() == [100] * 7
    assert np.unique(frogs.target[test], return_counts=True)[1].tolist() == [50] * 7


def test_noise_columns_change_nothing_else():
    skip_without_data("anuran")
    plain, noisy = anuran.make_trial(1), anuran.make_trial(1, noise=5)
    assert_array_equal(plain.X_test, noisy.X_test[:, :22])
    assert_array_equal(plain.y, noisy.y)
    assert_allclose(noisy.X[:, 22:].std(axis=0), 1, atol=0.15)


def test_true_densities_of_the_ten_groups():
    trial = ten_groups.make_trial(0, n_train=1, n_test=2)
    expected = np.zeros((20, 10))
    for i, x in enumerate(trial.X_test):
        for y in range(10):
            for j in range(30):
                if y <= j < y + 6:
                    expected[i, y] += norm.logpdf(x[j], 0.5, 0.02 * (j - y + 1))
                elif not 0 <= x[j] <= 1:
                    expected[i, y] = -math.inf
    assert_allclose(trial.log_joint, expected)


def test_true_densities_of_waveforms():
    X, _ = make_waveform(2, random_state=0)
    computed = waveform._log_densities(X)
    for i, x in enumerate(X):
        for k, (first, second) in enumerate(waveform.PAIRS):

            def density(u, x=x, first=first, second=second):
                wave = u * waveform.WAVES[first] + (1 - u) * waveform.WAVES[second]
                return math.exp(-((x[:21] - wave) ** 2).sum() / 2)

            assert_allclose(computed[i, k], math.log(quad(density, 0, 1, epsabs=0)[0]), rtol=1e-9)


@pytest.mark.parametrize(("make", "accuracy"), [(ten_groups.make_trial, 0.913), (waveform.make_trial, 0.86)])
def test_bayes_rule_is_as_accurate_as_known(make, accuracy):
    if make is waveform.make_trial:
        skip_without_data("waveform")
    trials = [make(seed) for seed in range(4)]
    hits = [np.unique(t.y)[t.log_joint.argmax(axis=1)] == t.y_test for t in trials]
    assert_allclose(np.mean(hits), accuracy, atol=3 * math.sqrt(0.9 * 0.1 / np.size(hits)) + 0.005)


def test_true_densities_of_the_rates():
    trial = rates.make_trial(0, r=2, d=5, n_train=3, n_test=4)
    assert trial.X.shape == (6, 5)
    for x, joint in zip(trial.X_test, trial.log_joint, strict=True):
        for y in range(2):
            expected = sum(norm.logpdf(x[j], 0.5, rates.DEVIATION) for j in (2 * y, 2 * y + 1))
            assert_allclose(joint[y], expected)


def test_an_error_of_the_rates_is_an_integral():
    # By z-scores no variable of two is selected, so that both take part in the second Rodeo.
    trial = rates.make_trial(0, r=1, d=2, n_train=40, n_test=4000)
    for model in (rates.PlainKernels(), rates.RodeoDensities("class", selected=True, passes=2)):
        model.fit(trial.X, trial.y)
        computed = rates.inspect(model, trial, r=1)
        axis = (np.arange(240) + 0.5) / 80 - 1.0
        points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        inside = ((points >= 0) & (points <= 1)).all(axis=1)
        estimate = np.exp(model.log_density(points))
        errors = []
        for y in range(2):
            true = norm.pdf(points[:, y], 0.5, rates.DEVIATION) * inside
            errors.append(np.abs(estimate[:, y] - true).mean() * 9)
        assert_allclose(computed["l1"], np.mean(errors), atol=0.03)
        assert 0 <= computed["excess"] < 0.1


@pytest.mark.parametrize(("bandwidth", "selected"), [("local", False), ("class", False), ("class", True)])
def test_densities_of_the_rates_are_those_of_the_classifier(bandwidth, selected):
    trial = rates.make_trial(0, r=1, d=6, n_train=60, n_test=10)
    model = rates.RodeoDensities(bandwidth, selected=selected).fit(trial.X, trial.y)
    features = "selected" if selected else "all"
    expected = RodeoClassifier(scale=None, bandwidth=bandwidth, features=features).fit(trial.X, trial.y)
    assert_array_equal(model.relevant_, expected.relevant_)
    log_density = expected.log_density(trial.X_test)
    if selected:  # its other variables are uniform on the range of the rows, which is no full cube
        log_density += ~model.relevant_ @ np.log(np.ptp(trial.X, axis=0))
    assert_allclose(model.log_density(trial.X_test), log_density, rtol=1e-6)
    assert rates.RodeoDensities("class").fit(trial.X, trial.y)._rodeos is model._rodeos
    if not selected:
        labels = model.predict_proba(trial.X_test).argmax(axis=1)
        assert_array_equal(labels, expected.predict(trial.X_test))


def test_known_variables_are_those_of_the_class():
    trial = rates.make_trial(0, r=2, d=10, n_train=50, n_test=10)
    model = rates.PlainKernels(known=True).fit(trial.X, trial.y)
    for label in (0, 1):
        own = [2 * label, 2 * label + 1]
        widths = trial.X[trial.y == label][:, own].std(axis=0, ddof=1) * 50 ** (-1 / 6)
        rows = KernelDensity().fit(trial.X[trial.y == label][:, own] / widths)
        expected = rows.score_samples(trial.X_test[:, own] / widths) - np.log(widths).sum()
        assert_allclose(model.log_density(trial.X_test)[:, label], expected)


@pytest.mark.parametrize(("x", "h"), [(0.5, 0.03), (0.7, 0.2), (0.02, 0.7)])
def test_integrals_of_the_expected_rodeo(x, h):
    def kernel(t):
        return norm.pdf(x - t, 0, h)

    def derivative(t):
        return kernel(t) * ((x - t) ** 2 - h**2) / h**3

    powers = (kernel, derivative, lambda t: kernel(t) ** 2, lambda t: derivative(t) ** 2)
    cases = [
        (
            normal_integrals(np.array(x), np.array(h), 0.5, 0.12),
            lambda t: norm.pdf(t, 0.5, 0.12),
            (-0.7, 1.7),
        ),
        (uniform_integrals(np.array(x), np.array(h)), lambda t: 1.0, (0, 1)),
    ]
    for computed, density, ends in cases:
        for value, power in zip(computed, powers, strict=True):
            expected, _ = quad(lambda t: power(t) * density(t), *ends, points=[x, 0.5], limit=200)  # noqa: B023
            assert_allclose(value, expected, rtol=1e-6, atol=1e-9)


def test_the_rodeo_of_many_rows_is_the_expected_one():
    n, d = 3000, 4
    rows, y = rates._draw(np.random.default_rng(0), 1, d, n)
    x = np.full((1, d), [0.5, 0.4, 0.5, 0.3])
    computed = RodeoClassifier(scale=None).fit(rows, y).local_bandwidths(x)[0, 0]
    expected = expected_rodeo(x, n, np.arange(d) < 1, rates.DEVIATION)[0]
    assert (np.abs(np.log(computed / expected)) < 0.25).all()  # two steps
    stays = expected_rodeo(x, n, np.arange(d) < 1, rates.DEVIATION, others_stay=True)[0]
    assert_allclose(stays[1:], 1 / math.log(math.log(n)))
    assert stays[0] <= expected[0]


def test_a_smoothed_density_is_as_far_as_an_integral_says():
    draws = np.random.default_rng(0).normal(0.5, 0.12, (100_000, 1))
    t = np.linspace(-1, 2, 3001)
    true, smooth = norm.pdf(t, 0.5, 0.12), norm.pdf(t, 0.5, math.hypot(0.12, 0.1))
    expected = np.abs(true - smooth).sum() * (t[1] - t[0])
    assert_allclose(smoothing_error(np.array([0.1]), 0.12, draws), expected, atol=0.005)


def power_law(quantity, factor, power, r=1):
    """Results in which a quantity of selected variables is a power of the number of rows."""
    rows = [
        {"cell": f"r = {r}, d = 10, n = {n}", "method": "selected", "trial": 0, quantity: factor * n**power}
        for n in rates.SIZES
    ]
    return pd.DataFrame(rows).reindex(columns=["cell", "method", "trial", *QUANTITIES])


def test_slopes_of_a_power_law():
    n = np.array([50.0, 400.0, 10_000.0])
    assert_allclose(slope(n, 3 * n**-0.3), (-0.3, 0), atol=1e-9)
    assert slope(n, n**-0.3 * [1.0, 1.2, 1.0])[1] > 0.1
    assert theory("relevant", "selected", 2, 30) == -1 / 6
    assert theory("l1", "selected", 2, 30) == theory("excess", "class", 2, 30) == -1 / 3
    assert theory("l1", "plain", 2, 30) == -2 / 34
    frame = power_law("relevant", 1.0, -0.2)
    lines = list(slope_tables(frame.assign(method="class")))
    line = "| class bandwidths | 1 | 10 | -0.20 ± 0.00 | -0.20 | 0.457 (n = 50) | 0.158 (n = 10000) |"
    assert line in lines
    expected = [line for line in lines if "relevant ones" in line]
    assert expected[0].startswith("| 1 | 10 | relevant ones | 0.137 | 0.0634 | -0.14 |")
    target = ["rates, selected variables: slopes of bandwidths off by", "0.00 to 0.00", "<= 0.1", True]
    assert slope_targets(frame) == [target]


def test_a_slope_that_is_missed_names_the_step_of_the_proof():
    def lines(quantity, power, r=1):
        tables = slope_tables(power_law(quantity, 0.5, power, r))
        return [line for line in tables if line.startswith("| selected variables |")]

    [near] = lines("relevant", -0.11)
    assert near == "| selected variables | bandwidths | 1 | 10 | -0.11 ± 0.00 | -0.20 | 0.09 | holds |"
    [far] = lines("relevant", -0.09)
    assert far.endswith("| 0.11 | step 1 fails: bandwidths of the other variables do not stay at h0 |")
    # An error may not fall faster than the theory says, an excess risk may: its bound is no more than that.
    [steep] = lines("l1", -0.8)
    assert "holds" not in steep
    [steep] = lines("excess", -0.8)
    assert steep.endswith("| -0.40 | steeper | holds |")
    [flat] = lines("excess", -0.39)
    assert flat.endswith("| missed, we do not know why |")
    assert lines("relevant", -0.1, r=4) == []  # which has no target


# Scores


def test_scores_against_scikit_learn_and_by_hand():
    rng = np.random.default_rng(0)
    classes = np.array(["a", "b", "c"])
    y, predicted = np.repeat(classes, 20), rng.choice(classes, 60)
    scores = running._scores(y, predicted, classes)
    specificity = np.mean([np.mean(predicted[y != label] != label) for label in classes])
    assert_allclose(scores["accuracy"], np.mean(y == predicted))
    assert_allclose(scores["precision"], precision_score(y, predicted, average="macro"))
    assert_allclose(scores["specificity"], specificity)
    # With as many test rows of each class it says no more than the accuracy, also in the paper's tables.
    assert_allclose(scores["specificity"], 1 - (1 - scores["accuracy"]) / 2)
    scores = running._scores(np.array([0, 1]), np.array([0, 0]), np.array([0, 1]))  # a class never predicted
    assert scores == {"accuracy": 0.5, "precision": 0.25, "specificity": 0.5}


def silverman(rows):
    """Silverman's bandwidth; by the standard deviation alone where the middle half of rows is constant."""
    quartiles = np.subtract(*np.percentile(rows, [75, 25])) / 1.34
    return 0.9 * (min(rows.std(ddof=1), quartiles) if quartiles else rows.std(ddof=1)) * len(rows) ** -0.2


def test_kernel_naive_bayes_is_a_product_of_densities():
    X, y = make_shifted_groups(30, groups=(1, 2, 3), random_state=0)
    X, y = X[:75], y[:75]  # the last class is half as frequent
    mostly_zero = np.where(np.arange(75) % 5, 0.0, X[:, 0])
    in_one_class = np.where(y == 1, 7.0, X[:, 1])
    X = np.column_stack([X, mostly_zero, in_one_class, np.full(75, 7.0)])  # the last says nothing
    model = KernelNaiveBayes().fit(X, y)
    joint = np.log(np.tile([0.4, 0.4, 0.2], (75, 1)))
    for k, label in enumerate(model.classes_):
        for j in range(12):
            rows = X[y == label, j]
            h = silverman(rows) if np.ptp(rows) else silverman(X[:, j])
            joint[:, k] += KernelDensity(bandwidth=h).fit(rows[:, np.newaxis]).score_samples(X[:, [j]])
    expected = np.exp(joint - joint.max(axis=1, keepdims=True))
    assert_allclose(model.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), rtol=1e-6)
    assert_array_equal(model.predict(X), model.classes_[joint.argmax(axis=1)])


# Results


def table(folder, name, seed=0):
    """All that a run has found but the times, in a fixed order."""
    frame = pd.DataFrame(read_results(folder, name, seed)).drop(columns=TIMES, errors="ignore")
    return frame.sort_values(["cell", "method", "trial"]).reset_index(drop=True)


@pytest.mark.parametrize("cut", ['{"n":', '{"n": 2}'])
def test_a_line_cut_short_does_not_count_and_is_overwritten(tmp_path, cut):
    path = tmp_path / "new" / "x.jsonl"
    assert read_lines(path) == []
    append_line(path, {"n": 1})
    with path.open("a") as file:
        file.write(cut)
    assert read_lines(path) == [{"n": 1}]
    append_line(path, {"n": 3})
    assert path.read_text() == '{"n": 1}\n{"n": 3}\n'


def test_every_line_is_on_the_disk_before_the_next(tmp_path, monkeypatch):
    path, synced = tmp_path / "x.jsonl", []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(path.read_bytes().count(b"\n")))
    for n in range(3):
        append_line(path, {"n": n})
    with pytest.raises(ValueError, match="not JSON compliant"):
        append_line(path, {"n": math.nan})
    assert synced == [1, 2, 3]
    assert read_lines(path) == [{"n": 0}, {"n": 1}, {"n": 2}]


# The command, which is killed with the processes that it has started when ten lines are on the disk.
KILLED = """
import os, runpy, signal

fsync, lines = os.fsync, 0

def counted(file):
    global lines
    fsync(file)
    lines += 1
    if lines == 10:
        os.killpg(0, signal.SIGKILL)

os.fsync = counted
runpy.run_module("experiments", run_name="__main__", alter_sys=True)
"""


def test_a_killed_run_resumes_to_the_same_table(tmp_path):
    halves, uninterrupted = tmp_path / "halves", tmp_path / "whole"
    arguments = ["run", "shifted_groups", "--trials", "1", "--methods", "gaussian_nb,bayes", "--jobs", "2"]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments, "--results", halves],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert len(read_results(halves, "shifted_groups", 0)) == 10
    with (halves / "shifted_groups.jsonl").open("a") as cut:
        cut.write('{"cell": "1 2", "tri')
    for folder in (halves, uninterrupted):
        run(EXPERIMENTS["shifted_groups"], folder, trials=1, methods=("gaussian_nb", "bayes"))
    resumed = table(halves, "shifted_groups")
    assert len(resumed) == 26 * 2  # nothing twice
    pd.testing.assert_frame_equal(resumed, table(uninterrupted, "shifted_groups"))


def test_more_trials_keep_those_there_are(tmp_path):
    experiment = replace(shifted_groups.EXPERIMENT, cells={"4 5": {"groups": (4, 5)}})
    run(experiment, tmp_path, trials=1, methods=("gaussian_nb",))
    first = (tmp_path / "shifted_groups.jsonl").read_text()
    run(experiment, tmp_path, trials=3, methods=("gaussian_nb",))
    lines = (tmp_path / "shifted_groups.jsonl").read_text()
    assert lines.startswith(first)
    assert sorted(json.loads(line)["trial"] for line in lines.splitlines()) == [0, 1, 2]
    run(experiment, tmp_path, trials=3, methods=("gaussian_nb",))
    assert (tmp_path / "shifted_groups.jsonl").read_text() == lines


def test_a_quick_run_has_trials_enough_for_the_targets():
    for name in ("ten_groups", "shifted_groups", "training_sizes"):
        tasks = list(EXPERIMENTS[name].tasks(None, ("local",)))
        assert len(tasks) == 100 * len(EXPERIMENTS[name].cells)
        assert Task(next(iter(EXPERIMENTS[name].cells)), 99, "local") in tasks


# Every experiment


def compressed(make_trial, every):
    def make(seed, **settings):
        trial = make_trial(seed, **settings)
        columns = slice(every // 2, None, every)
        return replace(trial, X=trial.X[:, columns], X_test=trial.X_test[:, columns])

    return make


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_trial_of_every_method(tmp_path, name, monkeypatch):
    skip_without_data(name)
    if name not in FEW_CLASSES:  # a panel for each class takes its time
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda _, path, **options: path.touch())
    experiment = EXPERIMENTS[name]
    cell, settings = next(iter(experiment.cells.items()))
    small = replace(
        experiment,
        make_trial=compressed(experiment.make_trial, COMPRESSED.get(name, 1)),
        cells={cell: {**settings, "n_train": 20, "n_test": 10}},
        detailed=(cell,),
    )
    # What is slow with many classes runs where there are few.
    chosen = [m for m, method in small.methods.items() if method.cost != "heavy" or name in FEW_CLASSES]
    run(small, tmp_path, trials=1, methods=tuple(chosen))
    rows = read_results(tmp_path, name, 0)
    assert sorted(row["method"] for row in rows) == sorted(chosen)
    for row in rows:
        assert 0 <= row["accuracy"] <= 1
        assert ("log_loss" in row) == (row["method"] not in WITHOUT_PROBABILITIES)
        assert ("bandwidths" in row) == (row["method"] in ("local", *small.variants) and name != "rates")
    first = write_report([small], tmp_path, tmp_path, 0).read_text()
    assert f"- [{small.title}](tables/{name}.md)" in first
    page = (tmp_path / "tables" / f"{name}.md").read_text()
    for method in chosen if name != "rates" else ():  # one size has no slope
        assert f"| {small.methods[method].label} |" in page
    for figure in (tmp_path / "figures").iterdir():
        assert f"](../figures/{figure.name})" in page
    n_figures = {"training_sizes": 0, "anuran": 3, "digits": 4}.get(name, 1)
    assert len(list((tmp_path / "figures").iterdir())) == n_figures


def test_the_report_gives_means_deviations_and_standard_errors(tmp_path):
    values = [0.66, 0.68, 0.70]
    for trial, value in enumerate(values):
        row = {"cell": "ten groups", "trial": trial, "method": "local", "seed": 0, "accuracy": value}
        append_line(tmp_path / "ten_groups.jsonl", row)
        append_line(tmp_path / "ten_groups.jsonl", {**row, "seed": 1, "accuracy": 0})
    frame = pd.DataFrame(read_results(tmp_path, "ten_groups", 0))
    for column in ("precision", "specificity", "log_loss", *TIMES, "seconds"):
        frame[column] = np.nan
    row = summary(frame).loc[("ten groups", "local", "accuracy")]
    assert_allclose(row.tolist(), [0.68, 0.02, 3])
    write_report([ten_groups.EXPERIMENT], tmp_path, tmp_path, 0)
    report = (tmp_path / "tables" / "ten_groups.md").read_text()
    # Three trials are too few for a deviation of their own.
    error = 0.0153 * math.hypot(1 / math.sqrt(3), 1 / math.sqrt(1000))
    difference = 0.68 - 0.6749
    scaled = f"{difference:+.4f} | {difference / 0.0153:+.1f} | {difference / error:+.1f}"
    assert f"| 0.6800 (0.0200) | 3 | {scaled} |" in report


def test_targets_of_experiments_without_results_stay(tmp_path):
    row = {"cell": "digits", "trial": 0, "method": "local", "seed": 0, "accuracy": 0.97}
    append_line(tmp_path / "digits.jsonl", row)
    kept = "| rates, second Rodeo: slopes of bandwidths off by | 0.03 to 0.07 | <= 0.1 | met |"
    old = "| digits: accuracy | 0.9, 20 trials | >= 0.955, 20 trials | MISSED |"
    (tmp_path / "RESULTS.md").write_text("\n".join(["# Results", "digits: text", old, kept]))
    lines = write_report(EXPERIMENTS.values(), tmp_path, tmp_path, 0).read_text().splitlines()
    assert [line for line in lines if line.startswith("| ")][1:] == [
        "| digits: accuracy | 0.9700, 1 trials | >= 0.955, 20 trials | met |",
        kept,
    ]


def test_the_report_tells_what_a_quick_run_takes(tmp_path):
    row = {"cell": "digits", "trial": 0, "seed": 0, "accuracy": 0.97}
    append_line(tmp_path / "digits.jsonl", {**row, "method": "local", "processor_seconds": 3.0})
    append_line(tmp_path / "digits.jsonl", {**row, "method": "local", "trial": 1, "processor_seconds": 9.0})
    append_line(tmp_path / "digits.jsonl", {**row, "method": "cv"})  # was not timed
    for minutes in (1.0, 2.0):  # two pieces of one run
        run = {"command": "python -m experiments run digits", "date": "2026-01-01", "machine": "abacus"}
        append_line(tmp_path / "runs.jsonl", {**run, "minutes": minutes})
    write_report([digits.EXPERIMENT], tmp_path, tmp_path, 0)
    report = (tmp_path / "tables" / "runs.md").read_text()
    # Twenty trials of six seconds each.
    assert "| Handwritten digit dataset | 3 | 2 | 0.2 | 2.0 |" in report
    assert report.count("| `python -m experiments run digits` | 2026-01-01 | abacus |") == 1


def test_only_public_modules_of_corral_are_imported():
    files = list((ROOT / "experiments").glob("*.py"))
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    modules = re.findall(r"^\s*(?:from|import) (corral[\w.]*)", text, re.MULTILINE)
    assert set(modules) == {"corral", "corral.datasets"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["run", "nothing"], "invalid choice: 'nothing'"),
        (["run", "digits", "--trials", "0"], "must be at least 1, got 0"),
        (["run", "digits", "--methods", "local,magic"], "there is no method 'magic'"),
        (["run", "digits", "--trials", "3", "--full"], "not allowed with"),
    ],
)
def test_the_command_line_refuses(arguments, complaint, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["experiments", *arguments])
    with pytest.raises(SystemExit, match="2"):
        command_line.main()
    assert complaint in capsys.readouterr().err


def test_the_command_line_lists_the_experiments(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["experiments", "list"])
    command_line.main()
    message = capsys.readouterr().out
    assert all(f"\n{name} " in f"\n{message}" for name in EXPERIMENTS)


def test_the_commands_of_the_guide_are_understood(monkeypatch):
    page = (Path(__file__).parents[2] / "docs/appendix/paper.md").read_text()
    commands = re.findall(r"^python -m experiments (.*?)(?:  #.*)?$", page, re.MULTILINE)
    calls = []
    monkeypatch.setattr(command_line, "_run", lambda arguments, methods: calls.append(arguments.name))
    monkeypatch.setattr(command_line, "write_report", lambda *given: calls.append("report"))
    for command in commands:
        monkeypatch.setattr(sys, "argv", ["experiments", *command.split()])
        command_line.main()
    assert len(commands) == 3
    assert calls == ["digits", "report"]


def test_a_report_of_nothing_says_so(tmp_path):
    with pytest.raises(SystemExit, match="there are no results for seed 7"):
        write_report(EXPERIMENTS.values(), tmp_path, tmp_path, 7)
