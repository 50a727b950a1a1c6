"""Learning curves: power laws against plain loops, division of rows, texts of results, and bad input."""

import math
from dataclasses import replace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import beta, norm

from corral import (
    CorralClassifier,
    LearningCurve,
    RodeoClassifier,
    SampleSizeDisplay,
    estimate_sample_sizes,
    load_model,
    save_model,
)
from corral.datasets import make_shifted_groups
from corral.parallel import Computation
from corral.planning import pool_losses as core
from corral.planning.pool_losses import Curve, learn_curve
from corral.planning.power_law import Chance, PowerLaw, fit_mean, fit_share, independence_probability
from planning import planning_oracle
from support.tables import labelled

matplotlib.use("agg")


@pytest.fixture(scope="module")
def table():
    return make_shifted_groups(40, groups=(1, 2, 4), random_state=0)


@pytest.fixture(scope="module")
def curve(table):
    return estimate_sample_sizes(*table, goal=0.8, random_state=0)  # the method by default


# Power laws


TIMES = np.array([1 / 2, 1 / 4, 1 / 8])
DEPENDENT = Chance(0.0, 0.0)  # the classes depend on the variables


def weights_by_definition(losses, rises, covariance, law, **limits):
    return planning_oracle.power_law_weights(
        losses.tolist(), TIMES.tolist(), rises.tolist(), covariance,
        shares=np.unique(law.share).tolist(), rates=np.unique(law.rate).tolist(), misfit=0.15,
        prior=lambda u, c: u**2 * math.exp(-((math.log(c / 0.8) / 0.3) ** 2) / 2), **limits,
    )  # fmt: skip


def test_the_posterior_is_that_of_the_oracle():
    losses, rises = np.array([0.1, 0.2]), np.array([0.02, 0.05, -0.01])
    root = np.random.default_rng(0).normal(0, 0.02, (3, 3))
    covariance = root @ root.T + 1e-4 * np.eye(3)
    law = PowerLaw.fit(losses, TIMES, rises, covariance, DEPENDENT)
    expected = weights_by_definition(losses, rises, covariance, law)
    points = zip(law.current.tolist(), law.share.tolist(), law.rate.tolist(), strict=True)
    assert_allclose(law.weights, [expected[point] for point in points], rtol=1e-9, atol=1e-15)


def test_the_loss_of_guessing_is_the_limit_with_the_probability_of_independence():
    losses, rises, covariance = np.array([0.5, 0.7]), np.array([0.02, 0.05, 0.08]), 1e-4 * np.eye(3)
    free, dependent, mixed, independent = (
        PowerLaw.fit(losses, TIMES, rises, covariance, chance)
        for chance in (DEPENDENT, Chance(0.0, 0.1), Chance(0.3, 0.1), Chance(1.0, 0.1))
    )
    assert_array_equal(dependent.weights, free.weights)
    expected = weights_by_definition(losses, rises, covariance, free, most=0.1)
    assert_allclose(independent.share * independent.current, 0.1 * np.array([u for _, u, _ in expected]))
    assert_allclose(independent.weights, list(expected.values()), rtol=1e-9, atol=1e-15)
    assert independent.loss(math.inf).low > 0.4
    assert_allclose(mixed.weights, [*(0.7 * free.weights), *(0.3 * independent.weights)])
    # Nothing to gain: the loss stays, and no number of rows brings it below.
    stays = PowerLaw.fit(losses, TIMES, rises, covariance, Chance(1.0, -0.1))
    assert stays.loss(1.0) == stays.loss(math.inf)
    assert stays.times_needed(0.4) == ((math.inf,) * 3, 0.0)
    assert stays.times_needed(0.9)[0].high < 1


@pytest.mark.parametrize(("surplus", "error"), [(0.0, 0.1), (0.02, 0.02), (-0.05, 0.02), (-0.3, 0.1)])
def test_the_probability_of_independence(surplus, error):
    entropy = math.log(2)
    independent = 0.05 * norm.pdf(surplus, 0, error)
    dependent, _ = quad(lambda true: norm.pdf(surplus, -true, error) / entropy, 0, entropy)
    probability = independence_probability(surplus, error, entropy)
    assert_allclose(probability, independent / (independent + 0.95 * dependent), rtol=1e-6)
    assert independence_probability(5.0, 0.01, 0.7) > 0.9
    assert independence_probability(-0.6, 0.0, 0.7) == 0
    assert independence_probability(0.0, 0.0, 0.7) > 0.9
    assert independence_probability(0.0, 0.0, 0.0) == 1


def test_estimates_are_quantiles_of_the_posterior_and_fall_with_more_rows():
    losses, rises = np.linspace(0.01, 0.2, 9), np.array([0.05, 0.1, 0.2])
    law = PowerLaw.fit(losses, TIMES, rises, 1e-4 * np.eye(3), DEPENDENT)
    values = law.current * (1 - law.share + law.share * 2.0**-law.rate)
    for end, probability in zip(law.loss(2.0), (0.5, 0.05, 0.95), strict=True):
        assert_allclose(law.weights[values <= end].sum(), probability, atol=0.02)
    falling = [law.loss(t) for t in (1.0, 2.0, 4.0, 100.0, math.inf)]
    for ends in zip(*falling, strict=True):
        assert list(ends) == sorted(ends, reverse=True)
    assert min(falling[-1]) >= 0


def test_rows_needed_are_where_the_loss_is_the_goal():
    law = PowerLaw(np.array([0.2]), np.array([0.5]), np.array([0.7]), np.array([1.0]))
    times, probability = law.times_needed(0.15)
    assert_allclose(law.loss(times.value).value, 0.15)
    assert probability == 1
    assert law.times_needed(0.25)[0].value < 1
    assert law.times_needed(0.1) == ((math.inf,) * 3, 0.0)  # the limit is not reached
    assert law.times_needed(0.05) == ((math.inf,) * 3, 0.0)


@pytest.mark.parametrize("rate", [0.5, 1.0])
@pytest.mark.parametrize("floor", [0.03, 0.1])
def test_losses_that_follow_a_power_law_are_predicted(rate, floor):
    rng = np.random.default_rng(0)
    times = np.array([1, *TIMES])
    means = floor + 0.1 * times**-rate
    losses = rng.uniform(size=20_000) < means[:, np.newaxis]
    weights = np.full(20_000, 1 / 20_000)
    for fit in (fit_share, fit_mean):
        law = fit(losses.astype(float), times, weights, np.arange(20_000), DEPENDENT)
        for more in (2, 4):
            loss = law.loss(more)
            assert loss.low < floor + 0.1 * more**-rate < loss.high
            assert loss.high - loss.low < 0.07


@pytest.mark.parametrize("fit", [fit_share, fit_mean])
@pytest.mark.parametrize("loss", [0.0, 1.0])
def test_losses_that_are_all_alike(fit, loss):
    # No error in 20 rows promises little.
    law = fit(
        np.full((3, 20), loss), np.array([1, 1 / 2, 1 / 4]), np.full(20, 0.05), np.arange(20), DEPENDENT
    )
    assert np.isfinite(law.weights).all()
    assert_allclose(law.weights.sum(), 1)
    if fit is fit_share:
        assert law.loss(1.0).high - law.loss(1.0).low > 0.02


def test_one_size_leaves_the_prior_and_fewer_rows_have_wider_intervals():
    widths = []
    for n in (4, 20, 80, 320):
        errors = np.tile([1.0, 0.0, 0.0, 0.0], n // 4)
        law = fit_share(errors[np.newaxis], np.ones(1), np.full(n, 1 / n), np.arange(n), DEPENDENT)
        assert law.loss(4.0).low < law.loss(4.0).value < law.loss(1.0).value
        widths.append(law.loss(1.0).high - law.loss(1.0).low)
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize("fit", [fit_share, fit_mean])
@pytest.mark.parametrize("wrong", [0.0, 0.3])
def test_rows_of_a_group_that_are_all_alike_count_as_one(fit, wrong):
    losses = (np.random.default_rng(0).uniform(size=(3, 60)) < wrong).astype(float)
    times = np.array([1, 1 / 2, 1 / 4])
    once = fit(losses, times, np.full(60, 1 / 60), np.arange(60), DEPENDENT)
    groups = np.random.default_rng(1).permutation(np.repeat(np.arange(60), 8))
    eight_times = fit(losses[:, groups], times, np.full(480, 1 / 480), groups, DEPENDENT)
    assert_allclose(eight_times.current, once.current, rtol=1e-9)
    assert_allclose(eight_times.weights, once.weights, rtol=1e-6, atol=1e-12)


def test_groups_count_by_what_their_rows_have_in_common():
    errors = np.repeat([[1.0, 0.0, 1.0, 0.0, 1.0, 0.0]], 20, axis=1)  # of few groups: the prior counts less
    groups = np.repeat(np.arange(6), 20)
    few = fit_share(errors, np.ones(1), np.full(120, 1 / 120), groups, DEPENDENT, (0.6, 3.4))
    assert 0.4 < few.loss(1.0).value < 0.5
    errors = np.tile([1.0, 0.0, 0.0, 0.0], (1, 100))  # each group of four has one error: rows count
    alone, grouped = (
        fit_share(errors, np.ones(1), np.full(400, 1 / 400), group_ids, DEPENDENT)
        for group_ids in (np.arange(400), np.repeat(np.arange(100), 4))
    )
    assert_allclose(grouped.current, alone.current, rtol=1e-12)


# Division of the rows


def measured(X, y, n_jobs=1, groups=None):
    data = labelled(X, y, groups=groups)
    prior = data.counts / data.counts.sum()
    return learn_curve(data, prior, np.random.RandomState(0), Computation(n_jobs), empirical=True)


def test_threads_change_no_bit(table):
    one, two = (measured(table[0][::3], table[1][::3], n_jobs=n) for n in (1, 2))
    assert_array_equal(one.proba, two.proba)
    assert_allclose(one.times, [1, 1 / 2])
    assert_allclose(one.proba.sum(axis=2), 1)
    assert_allclose(one.weights.sum(), 1)


@pytest.mark.parametrize("n_groups", [1, 3, 5])
def test_few_groups_are_divided_into_parts_of_two_at_least(n_groups):
    rng = np.random.default_rng(0)
    y, groups = np.arange(160) % 2, np.arange(160) * n_groups // 160
    curve = measured(rng.normal(size=(160, 2)), y, groups=groups)
    assert_allclose(curve.times, [1, 1 / 2][: 1 + (n_groups >= 4)])
    assert_allclose(curve.proba.sum(axis=2), 1)


def test_rows_are_predicted_by_their_part_alone(table, monkeypatch):
    seen = []
    predict = core._predict

    def recorded(data, is_point, *rest):
        assert is_point.all()
        seen.append(set(data.numbers.tolist()))
        return predict(data, is_point, *rest)

    monkeypatch.setattr(core, "_predict", recorded)
    measured(*table)
    everyone = set(range(120))
    for n_parts in (1, 2, 4):
        parts = [seen.pop(0) for _ in range(n_parts)]
        assert set.union(*parts) == everyone
        assert sum(map(len, parts)) == 120  # no row twice
    assert not seen


def test_a_subsample_of_many_rows_is_used(table, monkeypatch):
    monkeypatch.setattr(core, "CURVE_ROWS", 60)
    curve = LearningCurve.from_estimator(CorralClassifier(random_state=0).fit(*table), random_state=0)
    assert curve.measured.n_rows == 60
    assert curve.n_rows == 120
    # All rows are twice as many as the measured ones.
    loss = curve.measured.accuracy_law().loss(2.0)
    assert curve.accuracy(120) == (1 - loss.value, 1 - loss.high, 1 - loss.low)
    measured, ahead = repr(curve).splitlines()[:2]
    assert "by leave-one-out of a subsample of 60; scores with more rows are extrapolated" in measured
    assert ahead.startswith(f"  accuracy: {curve.accuracy(120)} with 120 rows, ")


def test_recalls_use_only_sizes_at_which_their_class_has_rows():
    codes = np.repeat([0, 1], [60, 6])
    right = np.eye(2)[codes] * 0.8 + 0.1
    wrong = right[:, ::-1]
    times, weights = np.array([1, 1 / 2, 1 / 4, 1 / 8]), np.full(66, 1 / 66)

    def limits(*proba):
        curve = Curve(times, 66, codes, weights, np.arange(66), np.array(proba))
        return [curve.recall_law(y).loss(math.inf) for y in range(2)]

    before, changed = limits(right, right, right, right), limits(right, right, right, wrong)
    assert before[0] != changed[0]
    assert before[1] == changed[1] == limits(right, right, wrong, wrong)[1]  # fewer than two rows of six
    assert before[1] != limits(right, wrong, right, right)[1]
    assert Curve(times, 66, codes, weights, np.arange(66), np.full((4, 66, 3), 1 / 3)).recall_law(2) is None


def test_errors_are_mostly_expected_and_shrunk_towards_the_prior_unless_classes_are_independent():
    def current_loss(n, proba, n_wrong):
        """Loss of the law at n rows, all of which have the same probabilities."""
        codes = (np.arange(n) < n_wrong).astype(int)
        all_proba = np.tile([proba, 1.0 - proba], (1, n, 1))
        curve = Curve(np.ones(1), n, codes, np.full(n, 1 / n), np.arange(n), all_proba)
        return curve.accuracy_law().loss(1.0).value

    def expected(n, proba, n_wrong, wrong, right):
        counted = n / (n + 1000)
        share = counted * n_wrong / n + (1 - counted) * (1 - proba)
        # The curve counts n rows as half as many.
        return beta.ppf(0.5, 0.5 * n * share + wrong, 0.5 * n * (1 - share) + right)

    for n in (20, 2000):
        assert_allclose(current_loss(n, 0.95, n // 10), expected(n, 0.95, n // 10, 0.6, 3.4), atol=2e-3)
    # Half of the labels are wrong, as the probabilities predict: the prior does not apply to noise.
    assert_allclose(current_loss(400, 0.5, 200), expected(400, 0.5, 200, 0.25, 0.25), atol=2e-3)


# Results


def test_history_has_the_measurements_and_estimates_extend_them(curve):
    history = curve.history
    assert history["rows"].tolist() == [120, 60, 30]
    errors = curve.measured.errors
    assert_allclose(history["accuracy"], 1 - errors.mean(axis=1))
    for y, label in enumerate((1, 2, 4)):
        assert_allclose(history["recall"][label], 1 - errors[:, curve.measured.codes == y].mean(axis=1))
    assert history["accuracy"].iloc[0] > 0.7
    assert (history["log_loss"] > 0).all()
    assert_array_equal(curve.sizes, [40, 40, 40])
    for n in (240, 480, math.inf):
        for score in (curve.accuracy(n), curve.recall(4, n)):
            assert 0 <= score.low <= score.value <= score.high <= 1
        assert curve.log_loss(n).low >= 0
    assert curve.accuracy(480).value >= curve.accuracy(240).value
    assert [need.label for need in curve.needed] == [None, 1, 2, 4]
    for need in curve.needed:
        assert need.rows.low <= need.rows.value <= need.rows.high
        assert_allclose(need.class_rows.sum(), need.rows.value)


def test_a_result_in_words_and_as_a_table(curve):
    heads, lines = curve.table()
    assert heads == ["", "120 rows", "240 rows", "480 rows", "unlimited rows"]
    assert [line[0] for line in lines] == [
        "accuracy",
        "log loss",
        "recall of 1",
        "recall of 2",
        "recall of 4",
    ]
    twice = curve.recall(1, 240)  # of as many rows of all classes
    assert lines[2][2] == f"{twice.value:.3f} ({twice.low:.3f} to {twice.high:.3f})"
    text = repr(curve).splitlines()
    first = f"LearningCurve: accuracy {lines[0][1]} with the current 120 rows, estimated by leave-one-out"
    assert text[0] == f"{first}; scores with more rows are extrapolated; 90% intervals"
    assert text[1].startswith(f"  accuracy: {lines[0][1]} with 120 rows, ")  # one accuracy of the same rows
    assert f"{curve.history['accuracy'].iloc[0]:.3f}" != lines[0][1][:5]
    assert f"{curve.history['accuracy'].iloc[0]:.3f}" not in text[0]
    assert text[3].startswith(f"  recall of 1: {lines[2][1]} with 120 rows, {lines[2][2]} with 240 rows, ")
    assert text[6:] == [f"  {sentence}" for sentence in curve.needs_in_words()]
    assert [sentence.split(": ")[0] for sentence in curve.needs_in_words()] == [
        "accuracy 0.8", "recall 0.8 of class 1", "recall 0.8 of class 2", "recall 0.8 of class 4",
    ]  # fmt: skip
    shown = curve._repr_html_()
    assert all(f"<th>{head}</th>" in shown for head in heads)
    assert all(f"<td>{cell}</td>" in shown for line in lines for cell in line)
    assert f"<p>{curve.needs_in_words()[0]}</p>".replace("'", "&#x27;") in shown
    without = replace(curve, goal=None)
    assert without.needed == []
    assert repr(without).splitlines() == text[:6]


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        (0.5, "the current rows are probably enough"),
        (0.85, "about 200 rows in total ('a': 100, 'b': 100), 100 more than now, 90% interval 200 to 200"),
        (0.899, "more than 10000 rows, if any number is enough"),
        (0.95, "probably no number of rows is enough; the probability that some number is enough is 0%"),
    ],
)
def test_needs_in_words(goal, words, monkeypatch):
    law = PowerLaw(np.array([0.2]), np.array([0.5]), np.array([1.0]), np.array([1.0]))
    codes, proba = np.repeat([0, 1], 50), np.full((1, 100, 2), 0.5)
    measured = Curve(np.ones(1), 100, codes, np.full(100, 0.01), np.arange(100), proba)
    for name in ("accuracy_law", "recall_law"):
        monkeypatch.setattr(Curve, name, lambda *_: law)
    result = LearningCurve(np.array(["a", "b"]), np.array([50, 50]), goal, measured)
    assert result.needs_in_words()[0] == f"accuracy {goal:g}: {words}"


def test_a_seed_determines_the_curve(table):
    rows = table[0][::4], table[1][::4]
    one, again, other = (
        estimate_sample_sizes(*rows, method="curve", goal=0.8, random_state=seed) for seed in (0, 0, 1)
    )
    pd.testing.assert_frame_equal(one.history, again.history)
    assert repr(one) == repr(again) != repr(other)


def test_the_curve_of_a_compressed_pool_uses_all_its_rows(tmp_path):
    X, y = make_shifted_groups(20, groups=(1, 2), random_state=0)
    few, full = (CorralClassifier(max_rows=n, random_state=0).fit(X, y) for n in (8, None))
    assert np.bincount(few.model_.data.codes).tolist() == [8, 8]
    curve, expected = (LearningCurve.from_estimator(pool, random_state=0) for pool in (few, full))
    assert curve.sizes.tolist() == [20, 20]
    assert_array_equal(curve.measured.proba, expected.measured.proba)
    save_model(few, tmp_path / "compressed.corral")
    kept = 2 * (8 + 4)  # centroids and held-out rows
    with pytest.raises(
        ValueError, match=f"needs all 40 training rows, and the model has kept only {kept} of them"
    ):
        LearningCurve.from_estimator(load_model(tmp_path / "compressed.corral"))


def test_tables_as_they_are_and_a_class_of_one_row():
    rng = np.random.default_rng(0)
    y = np.array([*["a", "b"] * 15, "c"])
    frame = pd.DataFrame({"x": rng.normal(2.0 * (y == "b")), "colour": rng.choice(["red", "blue"], 31)})
    frame.loc[::9, "x"] = np.nan
    curve = estimate_sample_sizes(frame, y, method="curve", goal=0.9, random_state=0)
    assert np.isfinite(curve.history.to_numpy()).all()
    assert curve.recall("c", 62).low < 0.3
    assert curve.recall("c", 62).high > 0.7


# Bad input


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"goal": 1.5}, "goal must be a number between 0 and 1 .* got 1.5"),
        ({"goal": "all"}, "goal must be .* got 'all'"),
        ({"estimator": RodeoClassifier()}, "a CorralClassifier for method='curve', got Rodeo"),
        (
            {"X": lambda label, n: None},
            "method='curve' needs a table of rows, got a callable; only method='bound'",
        ),
        ({"step": 3}, "step belongs to method='bound'"),
        ({"allocation": "proportional"}, "allocation belongs to method='bound'"),
        ({"empty": "all"}, "empty belongs to method='bound'"),
        ({"max_steps": 100}, "max_steps belongs to method='bound'"),
    ],
)
def test_bad_parameters_are_refused(table, changed, message):
    X, y = table
    with pytest.raises(ValueError, match=message):
        estimate_sample_sizes(**{"X": X, "y": y, "method": "curve"} | changed)


def test_bad_arguments_are_refused(curve):
    with pytest.raises(ValueError, match=r"label must be one of \[1, 2, 4\], got 3"):
        curve.recall(3, 100)
    with pytest.raises(ValueError, match=r"n_rows must be a number between 1 and inf .* got 0"):
        curve.accuracy(0)
    with pytest.raises(ValueError, match=r"n_rows must be .* got nan"):
        curve.log_loss(math.nan)
    with pytest.raises(ValueError, match="estimator must be a CorralClassifier, got RodeoClassifier"):
        LearningCurve.from_estimator(RodeoClassifier())


# Display


def test_display_of_a_curve(curve):
    display = SampleSizeDisplay.from_result(curve)
    accuracy_axes, _, recall_axes = display.axes_
    assert [axes.get_ylabel() for axes in display.axes_] == ["accuracy", "log loss", "recall"]
    assert_allclose(accuracy_axes.lines[0].get_ydata(), curve.history["accuracy"])
    assert_allclose(accuracy_axes.lines[1].get_ydata()[-1], curve.accuracy(480).value)
    assert_array_equal(accuracy_axes.lines[2].get_ydata(), [0.8, 0.8])
    assert [text.get_text() for text in recall_axes.get_legend().texts] == ["1", "2", "4"]
    display.figure_.canvas.draw()
    plt.close(display.figure_)


def test_scores_of_noise_stay_at_chance():
    rng = np.random.default_rng(100)
    curve = estimate_sample_sizes(
        rng.normal(size=(150, 3)), np.arange(150) % 3, method="curve", goal=0.8, random_state=0
    )
    assert np.all(np.abs(curve.measured.errors.mean(axis=1) - 2 / 3) < 0.12)
    for n_rows in (600, math.inf):
        assert curve.log_loss(n_rows).value > math.log(3) - 0.01
        assert abs(curve.accuracy(n_rows).value - curve.accuracy(150).value) < 0.02
    recalls = [curve.recall(label, math.inf).value for label in range(3)]
    assert abs(np.mean(recalls) - curve.accuracy(math.inf).value) < 0.1
    assert max(recalls) < 0.5
    assert all(math.isinf(need.rows.value) for need in curve.needed)


def test_rows_of_a_group_do_not_predict_each_other():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), 4)
    X = rng.normal(size=(30, 2))[groups] + 0.01 * rng.normal(size=(120, 2))
    y = rng.permutation(np.arange(30) % 2)[groups]
    options = {"method": "curve", "random_state": 0}
    assert estimate_sample_sizes(X, y, **options).accuracy(120).value > 0.9
    assert estimate_sample_sizes(X, y, groups=groups, **options).accuracy(120).value < 0.65
    with pytest.raises(ValueError, match="groups belong to method='curve'"):
        estimate_sample_sizes(X, y, method="bound", groups=groups)
