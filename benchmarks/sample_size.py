"""Errors of sample size estimates: learning curve, and bound of algorithm 4.

Learning curve: ten data sets have at most 400 training rows of each class, and at most two thirds of the rows
of the class. The curve is fitted to a quarter of the training rows. It predicts the accuracy with twice and
with four times as many rows, which is measured on test rows. The method was not tuned on these data sets.

Bound: the true densities are known, so the excess error over the Bayes rule can be measured. It is the mean
over new samples of the posterior probability of the most probable class minus that of the predicted class.
Trial s draws its rows with the seed s.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import norm, spearmanr
from threadpoolctl import threadpool_limits

from benchmarks._measure import Figure, Options, listed
from benchmarks._trials import Split, Trials
from benchmarks.accuracy import known_sets
from corral import CorralClassifier, LearningCurve, RodeoClassifier, estimate_sample_sizes
from corral.datasets import make_shifted_groups

# Curve: training rows of a class, test rows, multiples of the rows, and names of the numbers of a case.
_MOST_ROWS, _TEST_ROWS = 400, 3000
_TIMES = (2, 4)
_FEW_ROWS = 50
_COLUMNS = ("predicted", "low", "high", "measured")

# The two groups of the paper that overlap most, and their means and standard deviations.
_GROUPS = {1: (0.0, 0.0), 2: (0.1635, 0.2044)}
_SD = (0.1, 0.2)


def run(options: Options) -> Iterator[Figure]:
    """Yield figures of the curve, then of the bound."""
    yield from _curve(options)
    yield _noise(options.seeds)
    yield from _bound(options.seeds)


def _curve(options: Options) -> Iterator[Figure]:
    """Yield errors and intervals of predicted accuracies with twice and four times the rows."""
    trials = Trials(options.trials)
    results: dict[str, list[dict[str, Any]]] = {}
    for seed in range(options.seeds):
        for data in known_sets(_TEST_ROWS):
            call = partial(_extrapolate, data.split, seed)
            result = trials.measure(data.name, _MOST_ROWS, seed, "curve", call)
            results.setdefault(data.name, []).append(result)
    by_table = {
        name: np.array([[row[f"{what}_{m}"] for row in rows for m in _TIMES] for what in _COLUMNS])
        for name, rows in results.items()
    }
    errors = {name: each[0] - each[3] for name, each in by_table.items()}
    mean_errors = {name: float(np.abs(each).mean()) for name, each in errors.items()}
    every = np.concatenate(list(errors.values()))
    detail = f"{options.seeds} seeds, {every.size} cases; {listed(mean_errors)}"
    what = "curve: error of the predicted accuracy (mean)"
    yield Figure(what, float(np.abs(every).mean()), high=0.015, digits=4, detail=detail)
    # The tolerance is for rounding errors.
    inside = {
        name: (low - 1e-9 <= measured) & (measured <= high + 1e-9)
        for name, (_, low, high, measured) in by_table.items()
    }
    width = np.mean([high - low for _, low, high, _ in by_table.values()])
    detail = f"mean width {width:.3f}; {listed({name: mask.mean() for name, mask in inside.items()}, '.2f')}"
    share = float(np.mean([*inside.values()]))
    yield Figure(
        "curve: share of 90% intervals with the measured accuracy", share, low=0.8, high=0.97, detail=detail
    )
    by_chance = {
        name: _error_of_test(by_table[name][3].mean(), rows[0]["test_rows"]) for name, rows in results.items()
    }
    what = "curve: error by the finite number of test rows alone (mean)"
    yield Figure(what, float(np.mean([*by_chance.values()])), digits=4, detail=listed(by_chance))
    large = [mean_errors[name] for name, rows in results.items() if rows[0]["rows"] >= _FEW_ROWS]
    if large:
        what = f"curve: error, data sets with {_FEW_ROWS} or more rows in a quarter"
        yield Figure(what, float(np.mean(large)), digits=4)
    bias = float(np.mean([abs(each.mean()) for each in errors.values()]))
    yield Figure("curve: bias, mean absolute value over data sets", bias, digits=4)
    times = [row["seconds"] / row["fit_seconds"] for rows in results.values() for row in rows]
    yield Figure("curve: processor time / that of a fit to the same rows, median", float(np.median(times)))


def _error_of_test(accuracy: float, n: int) -> float:
    """Compute the mean absolute error of an accuracy that is measured on n test rows."""
    return float(np.sqrt(2.0 / np.pi * accuracy * (1.0 - accuracy) / n))


def _noise(seeds: int) -> Figure:
    """Predict the log loss with four times the rows if labels are independent of the variables."""
    predicted = []
    for seed in range(seeds):
        X, y = np.random.default_rng(1000 + seed).normal(size=(100, 4)), np.arange(100) % 2
        fitted = CorralClassifier(random_state=seed).fit(X, y)
        predicted.append(LearningCurve.from_estimator(fitted, random_state=seed).log_loss(400).value)
    above = np.array(predicted) - np.log(2)
    what = "curve: log loss of noise minus log 2 (mean)"
    return Figure(what, float(above.mean()), -0.01, digits=4, detail=f"{seeds} seeds; {_spread(above)}")


def _extrapolate(split: Callable[[int, int], Split], seed: int) -> dict[str, float]:
    """Predict accuracies from a quarter of the rows, and measure them."""
    X, y, X_test, y_test = split(_MOST_ROWS, seed)
    rng = np.random.default_rng(seed)
    order = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]

    def fitted(times: int) -> CorralClassifier:
        rows = np.concatenate([each[: times * max(len(each) // 4, 2)] for each in order])
        return CorralClassifier(random_state=seed).fit(X[rows], y[rows])

    with threadpool_limits(1):
        start = time.process_time()
        quarter = fitted(1)
        between = time.process_time()
        curve = LearningCurve.from_estimator(quarter, random_state=seed)
        end = time.process_time()
        n_rows = sum(max(len(each) // 4, 2) for each in order)
        numbers = {"rows": n_rows, "test_rows": len(y_test)}
        numbers |= {"fit_seconds": between - start, "seconds": end - between}
        for m in _TIMES:
            case = (*curve.accuracy(m * n_rows), float(fitted(m).score(X_test, y_test)))
            numbers |= {f"{what}_{m}": number for what, number in zip(_COLUMNS, case, strict=True)}
    return numbers


class _Recorder(RodeoClassifier):
    """Stores all fitted models, because algorithm 4 does not return the models."""

    fits: list[RodeoClassifier]

    def fit(self, X: np.ndarray, y: np.ndarray) -> RodeoClassifier:
        self.fits.append(self)
        return super().fit(X, y)


def _bound(seeds: int) -> Iterator[Figure]:
    X_new, _ = make_shifted_groups(2000, groups=tuple(_GROUPS), random_state=10**6)
    densities = [norm.pdf(X_new[:, :2], mean, _SD).prod(axis=1) for mean in _GROUPS.values()]
    posterior = np.stack(densities, axis=1)
    posterior /= posterior.sum(axis=1, keepdims=True)
    labels, rows = np.array(list(_GROUPS)), np.arange(len(X_new))
    settings = {"tolerance": 1e-9, "initial_size": 30, "test_size": 100, "step": 60, "max_steps": 10}
    bounds, errors = [], []
    for seed in range(seeds):
        random = np.random.RandomState(seed)
        draw = partial(_draw_group, random)
        _Recorder.fits = []
        result = estimate_sample_sizes(
            draw, labels.tolist(), method="bound", estimator=_Recorder(), random_state=seed, **settings
        )
        bounds.append([step.epsilon for step in result.steps])
        chosen = [np.searchsorted(labels, model.predict(X_new)) for model in _Recorder.fits]
        errors.append([(posterior.max(axis=1) - posterior[rows, label]).mean() for label in chosen])
    epsilon, excess = np.array(bounds), np.array(errors)
    totals = [int(step.sizes.sum()) for step in result.steps]
    holds = epsilon >= excess
    detail = f"{seeds} seeds; shifted groups 1 and 2, N = {totals[0]} to {totals[-1]}"
    yield Figure(
        "share of runs whose last epsilon bounds the excess error", holds[:, -1].mean(), 0.9, detail=detail
    )
    yield Figure(
        "share of runs in which every epsilon bounds the excess error", holds.all(axis=1).mean(), 0.9
    )
    lower = (epsilon[:, -1] < epsilon[:, 0]).mean()
    yield Figure("share of runs whose last epsilon is less than the first", lower, 0.9)
    rank = [spearmanr(row, totals).statistic for row in epsilon]
    yield Figure("rank correlation of epsilon and N, mean", float(np.mean(rank)), detail=_spread(rank))
    yield Figure("share of steps in which epsilon falls", (np.diff(epsilon) < 0).mean())
    for k in (0, -1):
        bound, error, what = epsilon[:, k], excess[:, k], f"N = {totals[k]}"
        factor = bound / error
        yield Figure(f"{what}: epsilon", bound.mean(), digits=3, detail=_spread(bound))
        yield Figure(f"{what}: excess error", error.mean(), digits=4, detail=_spread(error))
        what += ": epsilon over excess error, median"
        yield Figure(what, float(np.median(factor)), digits=0, detail=_spread(factor))


def _draw_group(random: np.random.RandomState, label: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    return make_shifted_groups(n, groups=(label,), random_state=random)


def _spread(values: Any) -> str:
    return f"{np.min(values):.3g} to {np.max(values):.3g}"
