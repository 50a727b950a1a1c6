"""Algorithm 4: closed forms, the arrangement of sizes, whole runs against the oracle, and bad input."""

import math
from functools import partial

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import norm, spearmanr

import paper_oracle
from corral import RodeoClassifier, SampleSizeDisplay, SampleSizes, estimate_sample_sizes
from corral.datasets import make_shifted_groups
from corral.planning.bound import Step, arrange, extrapolate, l1_bound

matplotlib.use("agg")

SETTINGS = {
    "method": "bound",
    "tolerance": 0.6,
    "initial_size": 20,
    "test_size": 20,
    "step": 20,
    "random_state": 0,
}


def shifted(label, n, random):
    return make_shifted_groups(n, groups=(label,), random_state=random)


def source(seed, make=shifted):
    random = np.random.RandomState(seed)
    return lambda label, n: make(label, n, random)


@pytest.fixture(scope="module")
def table():
    return make_shifted_groups(120, groups=(1, 2), random_state=0)


@pytest.fixture(scope="module")
def unfinished(table):
    return estimate_sample_sizes(*table, **SETTINGS | {"tolerance": 0.3})


# Closed forms


def B_of(rows, x, h):
    n, r = rows.shape
    return l1_bound(rows, x, h) * n ** (2 / (4 + r))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_B_is_that_of_the_oracle(d):
    rng = np.random.default_rng(d)
    rows, x, h = rng.normal(size=(15, d)), rng.normal(size=(7, d)), rng.uniform(0.2, 1, (7, d))
    assert_allclose(B_of(rows, x, h), paper_oracle.equation_b2(rows, x, h), rtol=1e-10)


@pytest.mark.parametrize(("d", "coarse", "fine"), [(1, 2001, 20001), (2, 61, 301)])
def test_B_agrees_with_finite_differences_and_numerical_integration(d, coarse, fine):
    # The expected value shares nothing with the closed form: derivatives are differences, integrals are sums
    # over a grid, alpha and beta come from quadrature. The mean over samples of f becomes an integral.
    rng = np.random.default_rng(10 + d)
    n = 5
    rows, h = rng.normal(size=(n, d)), rng.uniform(0.6, 0.9, d)
    k = h * n ** (1 / (4 + d))

    def f(x):
        kernels = np.exp(-(((x[..., np.newaxis, :] - rows) / h) ** 2).sum(axis=-1) / 2)
        return kernels.mean(axis=-1) / np.prod(h * math.sqrt(2 * math.pi))

    def grid(m):
        axes = [
            np.linspace(a - 6.5, b + 6.5, m) for a, b in zip(rows.min(axis=0), rows.max(axis=0), strict=True)
        ]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
        return points, np.prod([axis[1] - axis[0] for axis in axes])

    alpha = quad(lambda u: u * u * norm.pdf(u), -12, 12)[0]
    beta = math.sqrt(quad(lambda u: norm.pdf(u) ** 2, -12, 12)[0] ** d)
    x, cell = grid(fine)
    e = 1e-3 * np.eye(d)
    curvature = sum(k[j] ** 2 * (f(x + e[j]) - 2 * f(x) + f(x - e[j])) / 1e-6 for j in range(d))
    expected = alpha / 2 * np.abs(curvature).sum() * cell
    expected += beta * np.prod(k) ** -0.5 * np.sqrt(f(x)).sum() * cell

    x, cell = grid(coarse)
    integral = sum(f(point) * B_of(rows, point[np.newaxis], h[np.newaxis]) for point in x) * cell
    assert_allclose(integral, expected, rtol=1e-4)


def test_B_does_not_depend_on_scales_and_stays_finite_however_far_a_sample_is():
    rng = np.random.default_rng(0)
    rows, x, h = rng.normal(size=(20, 3)), rng.normal(size=(9, 3)), rng.uniform(0.2, 1, (9, 3))
    scale = np.array([1e-6, 1.0, 1e9])
    assert_allclose(l1_bound(rows * scale, x * scale, h * scale), l1_bound(rows, x, h), rtol=1e-9)
    assert 1e100 < l1_bound(np.zeros((3, 2)), np.full((1, 2), 1e100), np.full((1, 2), 1e-9)) < np.inf


# Arrangement of the sizes


@st.composite
def arrangements(draw):
    c = draw(st.integers(2, 6))
    low = draw(st.integers(1, 30))
    high = [low + draw(st.integers(0, 400)) for _ in range(c)]
    return {
        "B": np.array(draw(st.lists(st.floats(1e-3, 1e3), min_size=c, max_size=c))),
        "r": np.array(draw(st.lists(st.integers(1, 12), min_size=c, max_size=c))),
        "total": draw(st.integers(low * c, sum(high))),
        "high": high,
        "low": low,
    }


@given(arrangements(), st.sampled_from(["proportional", "optimal"]))
def test_sizes_add_up_and_keep_to_their_limits(problem, allocation):
    sizes = arrange(**problem, allocation=allocation)
    assert sizes.sum() == problem["total"]
    assert np.all(sizes >= problem["low"])
    assert np.all(sizes <= problem["high"])


@given(arrangements())
def test_A_is_proportional_to_B_within_rounding_where_no_limit_binds(problem):
    sizes = arrange(**problem, allocation="proportional")
    free = (sizes > problem["low"]) & (sizes < problem["high"])
    # One t fits all free classes if each of their sizes may be one row off.
    exponent = (2 + problem["r"]) / (4 + problem["r"])
    least = ((sizes - 1) ** exponent / problem["B"])[free]
    most = ((sizes + 1) ** exponent / problem["B"])[free]
    assert least.max(initial=0) <= most.min(initial=np.inf) * (1 + 1e-9)
    # By the same t, a class at its lower limit wants no more and one at its upper limit no less.
    low, high = problem["low"], np.array(problem["high"])
    for y in np.flatnonzero(~free & (low < high)):
        if sizes[y] == low:
            assert (low + 1) ** exponent[y] / problem["B"][y] >= least.max(initial=0) * (1 - 1e-9)
        else:
            assert (high[y] - 1) ** exponent[y] / problem["B"][y] <= most.min(initial=np.inf) * (1 + 1e-9)


@given(arrangements())
def test_sizes_agree_with_the_oracle_but_for_rounding(problem):
    sizes = arrange(**problem, allocation="proportional")
    expected = paper_oracle.rearrange(
        problem["B"].tolist(), problem["r"].tolist(), problem["total"], problem["low"], problem["high"]
    )
    # Rounding moves a class by at most the number of other classes.
    assert np.abs(sizes - expected).max() < len(expected)


@given(arrangements())
def test_optimal_sizes_cannot_be_improved_by_moving_a_row(problem):
    sizes = arrange(**problem, allocation="optimal")
    low, high = problem["low"], np.array(problem["high"])

    def bound(n):
        return (problem["B"] * n ** (-2.0 / (4 + problem["r"]))).sum()

    for a in np.flatnonzero(sizes > low + 1):
        for b in np.flatnonzero(sizes < high - 1):
            # Two rows, because the rounded sizes may be one off the best.
            moved = sizes.copy()
            moved[a] -= min(2, sizes[a] - low)
            moved[b] += min(2, sizes[a] - low)
            if a != b and moved[b] <= high[b]:
                assert bound(moved) >= bound(sizes) * (1 - 1e-3)


# Whole runs


# With two variables z-scores are 0.71 and -0.71: -1 finds none, and -0.5 one for each class.
@pytest.mark.parametrize(("cutpoint", "empty"), [(-1.0, "all"), (-1.0, "none"), (-0.5, "none")])
def test_a_run_is_that_of_the_oracle(cutpoint, empty):
    rng = np.random.default_rng(4)
    X = np.vstack([rng.normal(0.3, 0.15, (12, 2)), rng.normal([0.6, 0.4], [0.05, 0.3], (16, 2))])
    y = np.repeat(["a", "b"], [12, 16])
    random = np.random.RandomState(0)
    pools = {label: X[random.permutation(np.flatnonzero(y == label))] for label in ("a", "b")}
    sizes = {"initial_size": 5, "test_size": 3, "step": 3}
    expected = paper_oracle.sample_sizes(
        pools, tolerance=1e-3, **sizes, cutpoint=cutpoint, empty=empty, floor=lambda n, h0: h0 / n
    )
    assert len(expected) > 3
    # The first run ends without rows, the second one at its tolerance in the second pass, unless the bound
    # is not informative.
    reached = expected if (cutpoint, empty) == (-1.0, "none") else expected[:2]
    for tolerance, passes in ((1e-3, expected), (expected[1]["epsilon"] * (1 + 1e-6), reached)):
        result = estimate_sample_sizes(
            X, y, method="bound", tolerance=tolerance, **sizes, empty=empty, random_state=0,
            estimator=RodeoClassifier(scale=None, cutpoint=cutpoint),
        )  # fmt: skip
        assert len(result.steps) == len(passes)
        for step, naive_step in zip(result.steps, passes, strict=True):
            for name, value in naive_step.items():
                assert_allclose(getattr(step, name), value, rtol=1e-8)


@pytest.mark.parametrize("allocation", ["proportional", "optimal"])
@pytest.mark.parametrize("pool", [(80, 80), (25, 200), (200, 45)])
def test_sizes_of_a_run(pool, allocation):
    X = np.vstack(
        [make_shifted_groups(n, groups=(g,), random_state=g)[0] for n, g in zip(pool, (1, 2), strict=True)]
    )
    y = np.repeat(["one", "two"], pool)
    result = estimate_sample_sizes(
        X,
        y,
        method="bound",
        tolerance=1e-9,
        initial_size=10,
        test_size=15,
        step=30,
        allocation=allocation,
        random_state=1,
    )
    history = result.history
    assert_array_equal(history["size"].sum(axis=1), history["N"])
    assert set(history["N"].diff().dropna().iloc[:-1]) <= {30}
    assert (history["size"] >= 10).all(axis=None)
    assert (history["size"] <= np.array(pool) - 15).all(axis=None)
    assert not result.converged
    assert "used up" in result.reason
    named = [label for label in ("one", "two") if f"'{label}'" in result.reason]
    assert named
    for label in named:
        assert history["size"][label].iloc[-1] == dict(zip(("one", "two"), pool, strict=True))[label] - 15


SEEN = []


class Recorder(RodeoClassifier):
    """A classifier that records the rows of its fits and predictions."""

    def fit(self, X, y):
        SEEN.append(("fit", X, super().fit(X, y)))
        return self

    def predict(self, X):
        SEEN.append(("predict", X, self))
        return super().predict(X)


@pytest.fixture
def seen():
    SEEN.clear()
    return SEEN


def test_test_samples_are_never_trained_on(table, seen):
    estimate_sample_sizes(*table, **SETTINGS, estimator=Recorder())
    trained = {tuple(row) for kind, rows, _ in seen if kind == "fit" for row in rows}
    tested = [rows for kind, rows, _ in seen if kind == "predict"]
    assert len(tested) > 1
    assert all(rows.shape == (40, 10) for rows in tested)
    assert_array_equal(tested[0], tested[-1])
    assert trained.isdisjoint(tuple(row) for row in tested[0])


def test_a_seed_determines_the_run_whatever_the_names(table):
    X, y = table
    first, other = (estimate_sample_sizes(X, y, **SETTINGS | {"random_state": seed}) for seed in (0, 1))
    assert first.epsilon != other.epsilon
    names = pd.Series(np.where(y == 1, "one", "two"))
    again = estimate_sample_sizes(pd.DataFrame(X).add_prefix("x"), names, **SETTINGS)
    assert_array_equal(again.classes, ["one", "two"])
    assert_array_equal(again.history, first.history)


def test_a_callable_that_runs_out_of_rows(table):
    X, y = table
    left = {label: X[y == label] for label in (1, 2)}

    def draw(label, n):
        rows, left[label] = left[label][:n], left[label][n:]
        return rows, np.full(len(rows), label)

    result = estimate_sample_sizes(draw, [2, 1, 1], **SETTINGS | {"tolerance": 1e-9})
    assert_array_equal(result.classes, [1, 2])
    assert not result.converged
    assert_array_equal(result.sizes, [100, 100])  # all rows but the test samples
    assert "used up" in result.reason


def test_a_class_that_is_never_predicted_is_measured_at_its_own_samples():
    # Both classes have the same distribution, and class 1 has the prior 0.
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = np.repeat([0, 1], 100)
    result = estimate_sample_sizes(
        X, y, **SETTINGS | {"tolerance": 9.0}, estimator=RodeoClassifier(priors=[1.0, 0.0])
    )
    assert result.accuracy == 0.5
    assert np.all(np.isfinite(result.steps[-1].B))


def test_a_bound_that_is_not_informative_has_caveats():
    # Two classes that differ a little in every one of many variables, as tables of measurements do.
    y = np.repeat(["a", "b"], 60)
    X = np.random.default_rng(0).normal(0.7 * (y == "b")[:, np.newaxis], 1.0, (120, 34))
    run = partial(estimate_sample_sizes, X, y, **SETTINGS | {"tolerance": 0.5})
    result = run(estimator=RodeoClassifier(cutpoint=-100.0))
    assert_array_equal(result.steps[-1].r, [0, 0])
    # A flat estimate has no bias and the noise of a share of n rows.
    assert_allclose(result.steps[-1].B, 1.0)
    assert_allclose(result.epsilon, np.sqrt(result.sizes).sum() / result.sizes.sum())
    assert not result.converged
    assert result.extrapolation is None
    assert " <= 0.5 with 80 rows" in repr(result)
    assert "class 'a': 40 rows, no relevant variables" in repr(result)
    assert "not informative: no variable is relevant for 'a', 'b', so epsilon does not bound" in repr(result)
    assert "and the run does not converge, although epsilon is at most the tolerance" in repr(result)
    assert "extrapolation" not in repr(result)

    result = run(estimator=RodeoClassifier(cutpoint=-100.0), empty="all")
    assert_array_equal(result.steps[-1].r, [34, 34])
    assert result.epsilon > 5
    assert result.caveats == ["the bound is at least 1, which no excess error exceeds"]
    assert "extrapolation (not measured): more than 10000 times the rows" in repr(result)


# Texts of results


def test_result_of_a_run_that_converged(table):
    result = estimate_sample_sizes(*table, **SETTINGS)
    assert isinstance(result, SampleSizes)
    assert result.converged
    assert result.epsilon <= 0.6 < result.steps[-2].epsilon
    assert result.extrapolation is None
    assert result.caveats == []
    assert "converged, the tolerance is reached" in repr(result)
    assert "extrapolation" not in repr(result)
    figure, axes = plt.subplots(3)
    display = SampleSizeDisplay.from_result(result, axes=axes)
    assert display.figure_ is figure
    assert len(axes[0].lines) == 2  # nothing to extrapolate
    plt.close(figure)
    with pytest.raises(ValueError, match="axes must have 3 matplotlib Axes, got 2"):
        display.plot([None, None])


def test_result_of_a_run_that_did_not_converge(unfinished):
    history = unfinished.history
    assert " ".join(history.columns.get_level_values(0).unique()) == "N epsilon accuracy size r A B"
    assert_array_equal(history["size"].columns, [1, 2])
    assert history["N"].iloc[0] == 40
    last = history.iloc[-1]
    assert (last["epsilon"].item(), last["accuracy"].item()) == (unfinished.epsilon, unfinished.accuracy)
    assert_array_equal(last["size"], unfinished.sizes)
    lines = repr(unfinished).splitlines()
    assert lines[0] == "SampleSizes: not converged, the pools of classes 1 and 2 are used up"
    assert lines[1].startswith(
        f"  epsilon {unfinished.epsilon:.4g} > 0.3 with 200 rows after 9 steps; accuracy"
    )
    assert lines[2] == "  class 1: 100 rows, 2 relevant variables"
    assert lines[4].startswith("  extrapolation (not measured): epsilon 0.3 would need about")
    assert lines[5].startswith("    class 1: ")
    assert lines[5].endswith(" more than now")


@pytest.mark.parametrize("completed", [0, 1, 3])
def test_an_interrupted_run_returns_its_finished_steps(table, completed):
    fits = []

    class Interrupted(RodeoClassifier):
        def fit(self, X, y):
            if len(fits) == completed:
                raise KeyboardInterrupt
            fits.append(len(X))
            return super().fit(X, y)

    settings = SETTINGS | {"tolerance": 0.1}
    if completed == 0:
        with pytest.raises(KeyboardInterrupt):
            estimate_sample_sizes(*table, **settings, estimator=Interrupted())
        return
    result = estimate_sample_sizes(*table, **settings, estimator=Interrupted())
    assert [step.sizes.sum() for step in result.steps] == fits
    assert result.reason == "the run was interrupted"
    assert not result.converged
    limited = estimate_sample_sizes(*table, **settings, max_steps=completed)
    assert limited.reason == f"the limit of {completed} steps is reached"
    assert (limited.epsilon, limited.converged) == (result.epsilon, False)
    # A line through two points has no residuals.
    assert (limited.extrapolation is None) == (result.extrapolation is None) == (completed < 3)


# Extrapolation


def power_law(slope, noise, n=8, seed=0):
    """Steps whose epsilon is N^-slope times noise, of two classes alike."""
    random = np.random.RandomState(seed)
    totals = 100 * np.arange(1, n + 1)
    return [
        Step(np.array([N // 2, N // 2]), np.array([2, 2]), np.ones(2), np.ones(2), float(e), 0.9)
        for N, e in zip(totals, totals**-slope * np.exp(noise * random.standard_normal(n)), strict=True)
    ]


def test_the_interval_of_an_extrapolation_covers_noise():
    exact = extrapolate(power_law(0.3, 0.0), 5000**-0.3, 10, "proportional")
    assert_allclose([exact.total, exact.low, exact.high], 5000, rtol=1e-6)
    assert_allclose(exact.sizes, [2500, 2500], rtol=1e-6)
    results = [
        extrapolate(power_law(0.3, 0.01, seed=seed), 3000**-0.3, 10, "proportional") for seed in range(200)
    ]
    for result in results:
        assert 800 <= result.low <= result.total <= result.high
        assert np.all(result.sizes_low <= result.sizes)
        assert_allclose(result.sizes.sum(), result.total, rtol=1e-9)
    assert np.mean([result.low <= 3000 <= result.high for result in results]) > 0.85
    assert np.median([result.high / result.low for result in results]) < 5


def test_what_does_not_fall_is_not_extrapolated():
    result = extrapolate(power_law(-0.1, 0.0), 0.1, 10, "proportional")
    assert result.total == result.high == np.inf
    assert np.all(np.isinf(result.sizes))
    noisy = extrapolate(power_law(0.02, 0.2, seed=1), 0.1, 10, "proportional")
    assert noisy.high == np.inf
    assert not np.isnan(noisy.low)
    run = SampleSizes(np.array([0, 1]), 0.1, False, "", power_law(-0.1, 0.0), result)
    assert "extrapolation: none, because epsilon does not fall" in repr(run)
    display = SampleSizeDisplay.from_result(run)
    assert len(display.axes_[0].lines) == 2
    plt.close(display.figure_)


def test_steps_with_other_numbers_of_variables_lie_on_another_line():
    steps = power_law(0.3, 0.0)
    other = [step._replace(r=np.array([2, 3]), epsilon=9.0) for step in steps]
    mixed = [other[0], steps[1], other[2], *steps[3:]]
    assert_allclose(extrapolate(mixed, 5000**-0.3, 10, "proportional").total, 5000, rtol=1e-6)
    assert extrapolate([*steps, *other[:2]], 5000**-0.3, 10, "proportional") is None
    run = SampleSizes(np.array([0, 1]), 0.1, False, "", other[:2], None)
    assert "extrapolation: none, because fewer than three steps" in repr(run)


@given(
    st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=12),
    st.floats(1e-6, 10),
    st.sampled_from(["proportional", "optimal"]),
)
def test_an_extrapolation_is_never_nan(epsilons, tolerance, allocation):
    steps = [
        Step(np.array([10 * k, 10 * k]), np.array([1, 3]), np.ones(2), np.array([1.0, 2.0]), e, 0.5)
        for k, e in enumerate(epsilons, start=1)
    ]
    result = extrapolate(steps, tolerance, 5, allocation)
    assert 20 * len(epsilons) <= result.low * (1 + 1e-9)
    assert result.low <= result.high
    for sizes in (result.sizes, result.sizes_low, result.sizes_high):
        assert not np.isnan(sizes).any()


# What the bound is worth (python -m benchmarks sample_size has more seeds)


def test_epsilon_falls_and_bounds_the_excess_error(seen):
    X, _ = make_shifted_groups(1000, groups=(1, 2), random_state=99)
    density = np.stack(
        [
            norm.pdf(X[:, 0], mean[0], 0.1) * norm.pdf(X[:, 1], mean[1], 0.2)
            for mean in ((0.0, 0.0), (0.1635, 0.2044))
        ],
        axis=1,
    )
    posterior = density / density.sum(axis=1, keepdims=True)
    for seed in range(8):
        seen.clear()
        result = estimate_sample_sizes(
            source(seed), [1, 2], method="bound", tolerance=1e-9, initial_size=30, test_size=50, step=60,
            max_steps=6, estimator=Recorder(), random_state=seed,
        )  # fmt: skip
        epsilon = [step.epsilon for step in result.steps]
        assert spearmanr(epsilon, np.arange(6)).statistic < -0.8
        fitted = [model for kind, _, model in seen if kind == "fit"]
        for bound, model in zip(epsilon, fitted, strict=True):
            predicted = (model.predict(X) == 2).astype(int)
            excess = np.mean(posterior.max(axis=1) - posterior[np.arange(len(X)), predicted])
            assert 0 <= excess < bound


def two_classes(hard, easy):
    """Draws of classes that have (modes, sd, n_relevant) in columns of their own, among 12."""

    def make(label, n, random):
        modes, sd, r = {"easy": easy, "hard": hard}[label]
        X = random.uniform(size=(n, 12))
        columns = slice(0, r) if label == "hard" else slice(12 - r, 12)
        X[:, columns] = random.choice(modes, (n, 1)) + random.normal(0, sd, (n, r))
        return X, np.full(n, label)

    return make


SMOOTH, ROUGH = ([0.5], 0.15), ([0.3, 0.3, 0.7], 0.04)


# Said in the guide: A proportional to B favours few relevant variables as soon as classes are not small.
@pytest.mark.parametrize(
    ("hard", "easy", "allocation", "gets_more"),
    [
        ((*ROUGH, 3), (*SMOOTH, 3), "proportional", True),
        ((*ROUGH, 3), (*SMOOTH, 3), "optimal", True),
        ((*SMOOTH, 4), (*SMOOTH, 1), "optimal", True),
        ((*ROUGH, 4), (*SMOOTH, 1), "optimal", True),
        ((*SMOOTH, 4), (*SMOOTH, 1), "proportional", False),
    ],
)
def test_a_harder_class_gets_more_rows_unless_it_has_more_variables(hard, easy, allocation, gets_more):
    ahead = []
    for seed in range(4):
        result = estimate_sample_sizes(
            source(seed, two_classes(hard, easy)), ["easy", "hard"], method="bound", tolerance=1e-9,
            initial_size=30, test_size=50, step=60, max_steps=5, allocation=allocation, random_state=seed,
        )  # fmt: skip
        ahead.append(result.sizes[1] - result.sizes[0])
    assert (np.mean(ahead) > 0) == gets_more
    assert np.sum((np.array(ahead) > 0) == gets_more) >= 3


# Bad input


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tolerance": 0}, "tolerance must be a number between 0 and inf"),
        ({"tolerance": -0.1}, "tolerance must be .* got -0.1"),
        ({"tolerance": np.nan}, "tolerance must be .* got nan"),
        ({"tolerance": "0.1"}, "tolerance must be .* got '0.1'"),
        ({"initial_size": 0}, "initial_size must be a positive integer, got 0"),
        ({"test_size": 2.5}, "test_size must be a positive integer, got 2.5"),
        ({"step": 1}, "step must be at least the number of classes, 2, got 1"),
        ({"step": -3}, "step must be a positive integer, got -3"),
        ({"max_steps": 0}, "max_steps must be a positive integer, got 0"),
        ({"allocation": "best"}, "allocation must be one of 'proportional', 'optimal', got 'best'"),
        ({"initial_size": 101}, r"class 1 has 120 rows, fewer than initial_size \+ test_size = 121"),
        ({"estimator": "rodeo"}, "estimator must be a RodeoClassifier, got 'rodeo'"),
        ({"empty": "some"}, "empty must be one of 'none', 'all', got 'some'"),
        ({"method": "guess"}, "method must be one of 'curve', 'bound', got 'guess'"),
        ({"goal": 0.9}, "goal belongs to method='curve', got method='bound' and goal=0.9"),
        ({"method": "curve"}, "tolerance belongs to method='bound', got method='curve'"),
        ({"tolerance": None, "step": None}, "method='bound' needs tolerance, step"),
    ],
)
def test_bad_parameters_are_refused_before_any_work(table, changed, message, monkeypatch):
    monkeypatch.setattr(RodeoClassifier, "fit", lambda *_: pytest.fail("work has started"))
    with pytest.raises(ValueError, match=message):
        estimate_sample_sizes(*table, **SETTINGS | changed)


def test_bad_rows_are_refused(table):
    X, y = table
    frame = pd.DataFrame(X).add_prefix("x")
    for rows, labels, message in (
        (X, np.ones(len(X), dtype=int), r"at least two classes, got \[1\]"),
        (X, X[:, 0], "Unknown label type"),
        (X, y[:-1], "inconsistent"),
        (
            frame.assign(x3=frame["x3"].where(y == 1)),
            y,
            r"Column 'x3' has missing values \(NaN\): method='bound' accepts none",
        ),
        (frame.assign(x3=frame["x3"].where(y == 1, np.inf)), y, "Column 'x3' holds an inf"),
    ):
        with pytest.raises(ValueError, match=message):
            estimate_sample_sizes(rows, labels, **SETTINGS)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda label, n: (np.zeros((n, 2)), ["c"] * n), "a row of class 'c', but class 'a' was requested"),
        (lambda label, n: (np.zeros((n, 2)), ["a"] * n), "a row of class 'a', but class 'b' was requested"),
        (lambda label, n: np.zeros((n, 2)), "must return rows and their labels, got ndarray"),
        (lambda label, n: None, "must return rows and their labels, got NoneType"),
        (
            lambda label, n: (np.zeros((n + 1, 2)), [label] * (n + 1)),
            "returned 41 rows and 41 labels, but 40",
        ),
        (lambda label, n: (np.zeros((n, 2)), [label]), "returned 40 rows and 1 labels"),
        (
            lambda label, n: (np.zeros((n, 1 + (label == "b"))), [label] * n),
            "returned 2 variables, but 1 before",
        ),
        (lambda label, n: (np.zeros((n - 1, 2)), [label] * (n - 1)), "class 'a' has 39 rows, fewer than"),
        (lambda label, n: (np.full((n, 2), np.nan), [label] * n), "NaN"),
    ],
)
def test_a_bad_callable_is_refused_before_any_work(draw, message, monkeypatch):
    monkeypatch.setattr(RodeoClassifier, "fit", lambda *_: pytest.fail("work has started"))
    with pytest.raises(ValueError, match=message):
        estimate_sample_sizes(draw, ["a", "b"], **SETTINGS)


# Display


def test_display_draws_the_history(unfinished):
    display = SampleSizeDisplay.from_result(unfinished)
    history = unfinished.history
    epsilon_axes, size_axes, accuracy_axes = display.axes_
    assert display.figure_ is epsilon_axes.figure
    assert_array_equal(epsilon_axes.lines[0].get_xydata(), history[["N", "epsilon"]])
    assert_array_equal(epsilon_axes.lines[1].get_ydata(), [0.3, 0.3])
    assert epsilon_axes.lines[2].get_xdata()[-1] == unfinished.extrapolation.total
    assert [text.get_text() for text in epsilon_axes.get_legend().texts] == [
        "epsilon", "tolerance", "extrapolation",
    ]  # fmt: skip
    for line, label in zip(size_axes.lines, (1, 2), strict=True):
        assert_array_equal(line.get_ydata(), history["size"][label])
        assert line.get_label() == str(label)
    assert_array_equal(accuracy_axes.lines[0].get_ydata(), history["accuracy"])
    display.figure_.canvas.draw()
    plt.close(display.figure_)
