"""How far to trust algorithm 4: its bound, its sharing out of rows, its extrapolation.

Densities are known, so the excess error over the Bayes rule is measured: by how much the posterior
probability of the chosen label falls short of the best one, in the mean over fresh samples. Trial s draws
its rows from the seed s.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.stats import norm, spearmanr

from benchmarks._measure import Figure, Options
from corral import RodeoClassifier, SampleSizes, estimate_sample_sizes
from corral._planning import extrapolate
from corral.datasets import make_shifted_groups

Samples = tuple[np.ndarray, np.ndarray]

# The two groups of the paper that overlap most, and their means and standard deviations.
_GROUPS = {1: (0.0, 0.0), 2: (0.1635, 0.2044)}
_SD = (0.1, 0.2)

# Modes, standard deviation and number of relevant variables of an easy and of a hard class.
_SMOOTH, _ROUGH = ([0.5], 0.15), ([0.3, 0.3, 0.7], 0.04)
_DESIGNS = {
    "rougher, 3 variables each": ((*_SMOOTH, 3), (*_ROUGH, 3)),
    "4 variables against 1": ((*_SMOOTH, 1), (*_SMOOTH, 4)),
    "rougher and 4 variables against 1": ((*_SMOOTH, 1), (*_ROUGH, 4)),
}


def run(options: Options) -> Iterator[Figure]:
    """The bound first, then who gets more rows, then the extrapolation."""
    yield from _bound(options)
    for allocation in ("proportional", "optimal"):
        for name, (easy, hard) in _DESIGNS.items():
            yield _harder(name, easy, hard, allocation, options)
    yield from _extrapolation(options)


class _Kept(RodeoClassifier):
    """Keeps the rows of every fit and the model, of which algorithm 4 tells only the figures."""

    fits: list[tuple[np.ndarray, np.ndarray, RodeoClassifier]]

    def fit(self, X: np.ndarray, y: np.ndarray) -> RodeoClassifier:
        self.fits.append((X, y, self))
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
        lambda label, n: make(label, n, random), classes, tolerance=1e-9, random_state=seed, **settings
    )


def _bound(options: Options) -> Iterator[Figure]:
    X_new, _ = make_shifted_groups(2000, groups=tuple(_GROUPS), random_state=10**6)
    posterior = np.stack([_density(X_new, label) for label in _GROUPS], axis=1)
    posterior /= posterior.sum(axis=1, keepdims=True)
    labels = np.array(list(_GROUPS))
    settings = {"initial_size": 30, "test_size": 100, "step": 60, "max_steps": 10}
    bounds, errors, distances = [], [], []
    for seed in range(options.seeds):
        _Kept.fits = []
        result = _estimate(_shifted, list(_GROUPS), seed, **settings, estimator=_Kept())
        bounds.append([step.epsilon for step in result.steps])
        chosen = [np.searchsorted(labels, model.predict(X_new)) for _, _, model in _Kept.fits]
        best, at = posterior.max(axis=1), np.arange(len(X_new))
        errors.append([(best - posterior[at, label]).mean() for label in chosen])
        distances.append([_l1(*_Kept.fits[k][:2]) for k in (0, -1)])
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
        for of, kind in enumerate(("local", "class")):
            l1 = np.array(distances)[:, k, of]
            yield Figure(f"{N}: L1 error, {kind} bandwidths", l1.mean(), digits=3, detail=_spread(l1))
        yield Figure(f"{N}: excess error", error.mean(), digits=4, detail=_spread(error))
        yield Figure(
            f"{N}: epsilon over excess error, median",
            float(np.median(bound / error)),
            digits=0,
            detail=_spread(bound / error),
        )


def _l1(X: np.ndarray, y: np.ndarray) -> list[float]:
    """Integral of |estimate - density| over the box of the training rows, on the two true variables.

    A mean over the classes, for local and for class bandwidths.
    """
    X, low, width = X[:, :2], X[:, :2].min(axis=0), np.ptp(X[:, :2], axis=0)
    points = low + width * (np.stack(np.meshgrid(*[np.arange(50)] * 2), axis=-1).reshape(-1, 2) + 0.5) / 50
    # Densities are in range units, in which the box has volume 1 and an integral is a mean.
    known = np.stack([_density(points, label) for label in _GROUPS], axis=1) * width.prod()
    models = [RodeoClassifier(bandwidth=kind).fit(X, y) for kind in ("local", "class")]
    return [float(np.abs(np.exp(model.log_density(points)) - known).mean()) for model in models]


def _harder(name: str, easy: Any, hard: Any, allocation: str, options: Options) -> Figure:
    def make(label: str, n: int, random: np.random.RandomState) -> Samples:
        modes, sd, r = {"easy": easy, "hard": hard}[label]
        X = random.uniform(size=(n, 12))
        columns = slice(0, r) if label == "hard" else slice(12 - r, 12)
        X[:, columns] = random.choice(modes, (n, 1)) + random.normal(0, sd, (n, r))
        return X, np.full(n, label)

    sizes = np.array(
        [
            [
                step.sizes
                for step in _estimate(
                    make, ["easy", "hard"], seed, initial_size=20, test_size=50, step=40, max_steps=12,
                    allocation=allocation,
                ).steps
            ]
            for seed in range(options.seeds)
        ]
    )  # fmt: skip
    mean = sizes.mean(axis=0)
    printed = allocation == "proportional" and easy[2] != hard[2]
    return Figure(
        f"{allocation}: hard class ahead, {name}",
        (sizes[:, -1, 1] > sizes[:, -1, 0]).mean(),
        low=-np.inf if printed else 0.9,
        detail="rows easy/hard at "
        + ", ".join(f"N={mean[k].sum():.0f}: {mean[k, 0]:.0f}/{mean[k, 1]:.0f}" for k in (1, 4, 11)),
    )


def _extrapolation(options: Options) -> Iterator[Figure]:
    """Cut histories short, extrapolate to an epsilon that the whole one did reach, compare."""
    found: dict[int, list[tuple[float, bool, float]]] = {2: [], 4: []}
    settings = {"initial_size": 30, "test_size": 100, "step": 60, "max_steps": 28}
    for seed in range(options.seeds):
        steps = _estimate(_shifted, list(_GROUPS), 5000 + seed, **settings).steps
        totals = np.array([step.sizes.sum() for step in steps])
        epsilon = np.array([step.epsilon for step in steps])
        for times, values in found.items():
            for n in (4, 6):
                tolerance = epsilon[np.searchsorted(totals, times * totals[n - 1])]
                reached = totals[np.flatnonzero(epsilon <= tolerance)[0]]
                guess = extrapolate(steps[:n], tolerance, 30, "proportional")
                if reached > totals[n - 1] and guess is not None:
                    # The size that was needed lies between the step that reached it and the one before.
                    inside = guess.low <= reached and reached - settings["step"] <= guess.high
                    values.append((guess.total / reached, inside, guess.high / guess.low))
    for times, values in found.items():
        ratio, inside, width = np.array(values, dtype=float).T
        yield Figure(
            f"extrapolation to {times} N: 90 % interval holds the size that was needed", inside.mean(),
            detail=f"{len(values)} cases; estimate / needed median {np.median(ratio):.2f}, "
            f"10 % to 90 % {np.quantile(ratio, 0.1):.2f} to {np.quantile(ratio, 0.9):.2f}; "
            f"high / low median {np.median(width):.1f}",
        )  # fmt: skip


def _spread(values: Any) -> str:
    return f"{np.min(values):.3g} to {np.max(values):.3g}"
