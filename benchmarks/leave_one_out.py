"""Whether a row votes for itself: pure noise, weights and copies must not score above chance.

Noise sets have 120 rows, 5 normal variables and two classes drawn at random. The tables of flags have 1,000
rows to learn from, 1,000 to judge by, and classes that differ in how often each flag is set.
"""

import warnings
from collections.abc import Iterator

import numpy as np

from benchmarks._measure import Figure, Options
from benchmarks._trials import spread
from corral import CorralClassifier, RodeoClassifier
from corral.datasets import make_ten_groups

_N_ROWS = 120
_ERROR = float(np.sqrt(0.25 / _N_ROWS))

# Accuracy and cv_accuracy_ of version 0.1.0 on the same tables of flags, 20 seeds.
_EARLIER = {3: (0.7138, 0.6453), 10: (0.8670, 0.8669)}


def run(options: Options) -> Iterator[Figure]:
    """Measure accuracy with weights and copies, scores of noise, and tables of flags."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield from _ten_groups(options)
        yield from _noise(options)
        yield from _flags(options)


def _ten_groups(options: Options) -> Iterator[Figure]:
    scores: dict[str, list[float]] = {}
    for seed in range(options.seeds):
        X, y = make_ten_groups(100, random_state=seed)
        X_test, y_test = make_ten_groups(100, random_state=1000 + seed)
        weights = {f"all weights {w:g}": np.full(len(y), w) for w in (1.0, 1.01, 2.0)}
        fits = {name: (X, y, w) for name, w in weights.items()}
        fits["every row twice"] = np.vstack([X, X]), np.tile(y, 2), None
        for name, rows in fits.items():
            model = RodeoClassifier(bandwidth="class", features="selected").fit(*rows)
            scores.setdefault(name, []).append(model.score(X_test, y_test))
    for name, found in scores.items():
        yield Figure(f"ten groups, {name}: accuracy", float(np.mean(found)), digits=4, detail=spread(found))
    means = [np.mean(found) for found in scores.values()]
    yield Figure("ten groups: largest difference of these", float(np.ptp(means)), high=0.02, digits=4)


def _noise(options: Options) -> Iterator[Figure]:
    scores: dict[str, list[float]] = {}
    above: dict[str, list[float]] = {}
    for seed in range(max(options.seeds, 50)):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(_N_ROWS, 5)), rng.integers(0, 2, _N_ROWS)
        tenth = _N_ROWS // 10
        tables = {
            "weights 1": (X, y, None),
            "weights 1.01": (X, y, np.full(_N_ROWS, 1.01)),
            "weights U(0.5, 1.5)": (X, y, rng.uniform(0.5, 1.5, _N_ROWS)),
            "every row twice": (np.vstack([X, X]), np.tile(y, 2), None),
            "a tenth twice": (np.vstack([X, X[:tenth]]), np.append(y, y[:tenth]), None),
        }
        for name, rows in tables.items():
            model = CorralClassifier(random_state=seed).fit(*rows)
            scores.setdefault(name, []).append(model.cv_accuracy_)
            # With priors from the rows, chance is the share of the more frequent class.
            above.setdefault(name, []).append((model.cv_accuracy_ - model.class_prior_.max()) / _ERROR)
    for name, found in scores.items():
        mean = float(np.mean(found))
        yield Figure(f"noise, {name}: mean cv_accuracy_", mean, 0.48, 0.52, digits=4, detail=spread(found))
        detail = f"above the larger class; {(max(found) - 0.5) / _ERROR:.2f} above one half"
        highest = max(above[name])
        yield Figure(f"noise, {name}: highest, in standard errors", highest, high=4.0, detail=detail)


def _flags(options: Options) -> Iterator[Figure]:
    for d, (accuracy, score) in _EARLIER.items():
        right, expected = [], []
        for seed in range(options.seeds):
            rng = np.random.default_rng(seed)
            share = rng.uniform(0.1, 0.9, (2, d))
            y = rng.integers(0, 2, 2000)
            X = (rng.random((2000, d)) < share[y]).astype(float)
            model = CorralClassifier(random_state=seed).fit(X[:1000], y[:1000])
            right.append(model.score(X[1000:], y[1000:]))
            expected.append(model.cv_accuracy_)
        for name, found, earlier in (("accuracy", right, accuracy), ("cv_accuracy_", expected, score)):
            detail = f"{spread(found)}; version 0.1.0 {earlier}"
            yield Figure(f"{d} flags: {name}", float(np.mean(found)), earlier, digits=4, detail=detail)
