"""How far to trust sample sizes: the learning curve, and the bound of algorithm 4.

The curve is fitted to a quarter of the rows of each of ten data sets, and says which accuracy twice and four
times as many will bring; that is measured on test rows. A class has at most 400 rows to learn from, and two
thirds of those there are. Nothing of the method was chosen by these rows.

For the bound, densities are known, so the excess error over the Bayes rule is measured: by how much the
posterior probability of the chosen label falls short of the best one, in the mean over fresh samples. Trial s
draws its rows from the seed s.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import norm, spearmanr
from threadpoolctl import threadpool_limits

from benchmarks._measure import Figure, Options
from benchmarks._trials import Split, Trials
from benchmarks.accuracy import known_sets
from corral import CorralClassifier, LearningCurve, RodeoClassifier, SampleSizes, estimate_sample_sizes
from corral.datasets import make_shifted_groups

Samples = tuple[np.ndarray, np.ndarray]

# Of the curve: rows of a class to learn from, test rows, and what is told and measured.
_MOST_ROWS, _TEST_ROWS = 400, 3000
_TIMES = (2, 4)
_FEW_ROWS = 50
_COLUMNS = ("predicted", "low", "high", "measured")

# The two groups of the paper that overlap most, and their means and standard deviations.
_GROUPS = {1: (0.0, 0.0), 2: (0.1635, 0.2044)}
_SD = (0.1, 0.2)


def run(options: Options) -> Iterator[Figure]:
    """The curve first, then the bound."""
    yield from _curve(options)
    yield _noise(options)
    yield from _bound(options)


def _curve(options: Options) -> Iterator[Figure]:
    """Accuracy with twice and four times the rows, told from a quarter of them."""
    trials = Trials(options.trials)
    found: dict[str, list[dict[str, Any]]] = {}
    for seed in range(options.seeds):
        for data in known_sets(_TEST_ROWS):
            call = partial(_extrapolate, data.split, seed)
            found.setdefault(data.name, []).append(trials.measure(data.name, _MOST_ROWS, seed, "curve", call))
    by_table = {
        name: np.array([[row[f"{what}_{m}"] for row in rows for m in _TIMES] for what in _COLUMNS])
        for name, rows in found.items()
    }
    predicted, low, high, measured = np.concatenate(list(by_table.values()), axis=1)
    per_table = ", ".join(f"{name} {np.abs(each[0] - each[3]).mean():.3f}" for name, each in by_table.items())
    cases = f"{options.seeds} seeds, {measured.size} cases"
    yield Figure(
        "curve: accuracy told, off by (mean)", float(np.abs(predicted - measured).mean()), high=0.015,
        digits=4, detail=f"{cases}; {per_table}",
    )  # fmt: skip
    # An accuracy is counted on test rows: half a row is no difference.
    inside = (low - 1e-9 <= measured) & (measured <= high + 1e-9)
    yield Figure(
        "curve: 90 % intervals that hold it", float(inside.mean()), low=0.8, high=0.97,
        detail=f"mean width {np.mean(high - low):.3f}; "
        + ", ".join(f"{name} {np.mean((e[1] <= e[3]) & (e[3] <= e[2])):.2f}" for name, e in by_table.items()),
    )  # fmt: skip
    yield _chance(found)
    large = [each for name, each in by_table.items() if found[name][0]["rows"] >= _FEW_ROWS]
    if large:
        off = np.concatenate([np.abs(each[0] - each[3]) for each in large])
        what = f"curve: off by, tables with {_FEW_ROWS} rows or more in a quarter"
        yield Figure(what, float(off.mean()), digits=4)
    bias = [float((each[0] - each[3]).mean()) for each in by_table.values()]
    yield Figure("curve: off by, mean over seeds of each table", float(np.abs(bias).mean()), digits=4)
    seconds = [row["seconds"] / row["fit_seconds"] for rows in found.values() for row in rows]
    yield Figure("curve: processor time over that of a fit to the same rows, median", np.median(seconds))


def _chance(found: dict[str, list[dict[str, Any]]]) -> Figure:
    """How far accuracies counted on test rows are from exact ones: the mean of a binomial number."""
    by_table = {}
    for name, rows in found.items():
        accuracy = np.mean([row[f"measured_{m}"] for row in rows for m in _TIMES])
        by_table[name] = np.sqrt(2.0 / np.pi * accuracy * (1.0 - accuracy) / rows[0]["test_rows"])
    return Figure(
        "curve: of which chance in the test rows (mean)", float(np.mean(list(by_table.values()))),
        digits=4, detail=", ".join(f"{name} {each:.3f}" for name, each in by_table.items()),
    )  # fmt: skip


def _noise(options: Options) -> Figure:
    """Log loss with four times the rows, told of labels that have nothing to do with 100 rows."""
    told = []
    for seed in range(options.seeds):
        X, y = np.random.default_rng(1000 + seed).normal(size=(100, 4)), np.arange(100) % 2
        fitted = CorralClassifier(random_state=seed).fit(X, y)
        told.append(LearningCurve.from_estimator(fitted, random_state=seed).log_loss(400).value)
    return Figure(
        "curve: log loss told of noise, above chance by (mean)", float(np.mean(told)) - np.log(2), low=-0.01,
        digits=4, detail=f"{options.seeds} seeds; {_spread(np.array(told) - np.log(2))}",
    )  # fmt: skip


def _extrapolate(split: Callable[[int, int], Split], seed: int) -> dict[str, float]:
    """Predict accuracies from a quarter of the rows, and measure them."""
    X, y, X_test, y_test = split(_MOST_ROWS, seed)
    rng = np.random.default_rng(seed)
    order = {label: rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)}
    quarter = np.concatenate([rows[: max(len(rows) // 4, 2)] for rows in order.values()])
    with threadpool_limits(1):
        start = time.process_time()
        fitted = CorralClassifier(random_state=seed).fit(X[quarter], y[quarter])
        between = time.process_time()
        curve = LearningCurve.from_estimator(fitted, random_state=seed)
        end = time.process_time()
        found = {"rows": len(quarter), "test_rows": len(y_test)}
        found |= {"fit_seconds": between - start, "seconds": end - between}
        for m in _TIMES:
            rows = np.concatenate([each[: m * max(len(each) // 4, 2)] for each in order.values()])
            told = curve.accuracy(m * len(quarter))
            model = CorralClassifier(random_state=seed).fit(X[rows], y[rows])
            numbers = (told.value, told.low, told.high, float(model.score(X_test, y_test)))
            found |= {f"{what}_{m}": number for what, number in zip(_COLUMNS, numbers, strict=True)}
    return found


class _Kept(RodeoClassifier):
    """Keeps the model of every fit, of which algorithm 4 tells only the figures."""

    fits: list[RodeoClassifier]

    def fit(self, X: np.ndarray, y: np.ndarray) -> RodeoClassifier:
        self.fits.append(self)
        return super().fit(X, y)


def _shifted(label: int, n: int, random: np.random.RandomState) -> Samples:
    return make_shifted_groups(n, groups=(label,), random_state=random)


def _density(X: np.ndarray, label: int) -> np.ndarray:
    return norm.pdf(X[:, :2], _GROUPS[label], _SD).prod(axis=1)


def _estimate(
    make: Callable[[Any, int, np.random.RandomState], Samples], classes: list[Any], seed: int, **settings: Any
) -> SampleSizes:
    random = np.random.RandomState(seed)
    return estimate_sample_sizes(
        lambda label, n: make(label, n, random),
        classes,
        method="bound",
        tolerance=1e-9,
        random_state=seed,
        **settings,
    )


def _bound(options: Options) -> Iterator[Figure]:
    X_new, _ = make_shifted_groups(2000, groups=tuple(_GROUPS), random_state=10**6)
    posterior = np.stack([_density(X_new, label) for label in _GROUPS], axis=1)
    posterior /= posterior.sum(axis=1, keepdims=True)
    labels = np.array(list(_GROUPS))
    settings = {"initial_size": 30, "test_size": 100, "step": 60, "max_steps": 10}
    bounds, errors = [], []
    for seed in range(options.seeds):
        _Kept.fits = []
        result = _estimate(_shifted, list(_GROUPS), seed, **settings, estimator=_Kept())
        bounds.append([step.epsilon for step in result.steps])
        chosen = [np.searchsorted(labels, model.predict(X_new)) for model in _Kept.fits]
        best, at = posterior.max(axis=1), np.arange(len(X_new))
        errors.append([(best - posterior[at, label]).mean() for label in chosen])
    epsilon, excess = np.array(bounds), np.array(errors)
    totals = [int(step.sizes.sum()) for step in result.steps]
    held = epsilon >= excess
    yield Figure(
        "runs whose last epsilon bounds the excess error",
        held[:, -1].mean(),
        low=0.9,
        detail=f"{options.seeds} seeds; shifted groups 1 and 2, N = {totals[0]} to {totals[-1]}",
    )
    yield Figure("runs whose every epsilon does", held.all(axis=1).mean(), low=0.9)
    ends_lower = epsilon[:, -1] < epsilon[:, 0]
    yield Figure("runs whose epsilon ends lower than it began", ends_lower.mean(), low=0.9)
    rank = [spearmanr(row, totals).statistic for row in epsilon]
    yield Figure("rank correlation of epsilon and N, mean", float(np.mean(rank)), detail=_spread(rank))
    yield Figure("steps on which epsilon falls", (np.diff(epsilon) < 0).mean())
    for k, (bound, error) in {0: (epsilon[:, 0], excess[:, 0]), -1: (epsilon[:, -1], excess[:, -1])}.items():
        N = f"N = {totals[k]}"
        yield Figure(f"{N}: epsilon", bound.mean(), digits=3, detail=_spread(bound))
        yield Figure(f"{N}: excess error", error.mean(), digits=4, detail=_spread(error))
        yield Figure(
            f"{N}: epsilon over excess error, median",
            float(np.median(bound / error)),
            digits=0,
            detail=_spread(bound / error),
        )


def _spread(values: Any) -> str:
    return f"{np.min(values):.3g} to {np.max(values):.3g}"
