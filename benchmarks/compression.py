"""Two ways to compress a class with many rows: centroids of all rows, or a subsample of the rows.

Both ways have the same scales, means and covariances, and the same number of kernels. No other target uses
these tables. Seed s draws the rows and is the `random_state` of the fit. Figures are log losses on new rows.
The targets ask whether a subsample would be sufficient: a larger log loss by less than 0.01 on average, and
by less than 0.02 on each table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from benchmarks._measure import Figure, Options
from corral.data.dataset import LabelledRows, TrainingRows
from corral.parallel import Computation
from corral.pool.learning import PoolSettings, large_table, learn_large_pool

Rows = tuple[np.ndarray, np.ndarray]

MAX_ROWS = 3000  # the default of CorralClassifier
_SEEDS = 5


def run(options: Options) -> Iterator[Figure]:
    """Compare both ways on each table."""
    changes = []
    for name, make in MADE.items():
        seeds = range(min(options.seeds, _SEEDS))
        losses, hits = np.array([_measure(make, seed) for seed in seeds]).transpose(2, 1, 0)
        change = losses[1] - losses[0]
        changes.append(change.mean())
        detail = f"{losses[0].mean():.4f} and {losses[1].mean():.4f}, accuracy {hits[0].mean():.4f} and "
        detail += f"{hits[1].mean():.4f}; {len(seeds)} seeds, {change.min():.4f} to {change.max():.4f}"
        what = f"{name}: log loss with a subsample minus with centroids"
        yield Figure(what, change.mean(), high=0.02, digits=4, detail=detail)
    yield Figure(
        "mean of tables: log loss with a subsample minus with centroids",
        np.mean(changes),
        high=0.01,
        digits=4,
    )


def _measure(
    make: Callable[..., Rows], seed: int, n: int = 8192, n_new: int = 4000
) -> list[tuple[float, float]]:
    """Measure log loss and accuracy with centroids, then with a subsample, of about `n` rows per class."""
    random = np.random.RandomState(100 + seed)
    n_classes = np.unique(make(100, random)[1]).size
    rows, new = make(n * n_classes, random), make(n_new, random)
    return [_judge(rows, new, seed, subsample=subsample) for subsample in (False, True)]


def _judge(rows: Rows, new: Rows, seed: int, *, subsample: bool) -> tuple[float, float]:
    training = TrainingRows(*rows, None)
    data = LabelledRows.sort(training)
    random, computation = np.random.RandomState(seed), Computation(1)
    settings = PoolSettings(data.counts / data.counts.sum(), True, 0.1, MAX_ROWS)
    table = replace(large_table(training, data, MAX_ROWS, random, computation), general=subsample)
    model = learn_large_pool(table, settings, random, computation)
    log_proba = model.posterior(model.log_densities(new[0], computation))
    codes = np.searchsorted(data.labels, new[1])
    hits = log_proba.argmax(axis=1) == codes
    return -float(log_proba[np.arange(codes.size), codes].mean()), float(hits.mean())


# ------------------------------------------------------------------------------------------ data


def make_clusters(n: int, random: np.random.RandomState) -> Rows:
    """Draw n rows of four classes in 12 variables; a class has four clusters of different shapes."""
    shapes = np.random.RandomState(7)
    centers, roots = shapes.normal(size=(4, 4, 12)) * 1.3, shapes.normal(size=(4, 4, 12, 12)) * 0.35
    y, k = random.randint(4, size=n), random.randint(4, size=n)
    X = centers[y, k] + np.einsum("nij,nj->ni", roots[y, k], random.normal(size=(n, 12)))
    return X + 0.3 * random.normal(size=X.shape), y


def make_spirals(n: int, random: np.random.RandomState) -> Rows:
    """Draw n rows of three classes: arms of a spiral in two variables, and four variables of noise."""
    y, t = random.randint(3, size=n), random.uniform(0.5, 3.5, size=n)
    angle = 2.0 * np.pi * y / 3.0 + 1.8 * t
    X = np.column_stack([t * np.cos(angle), t * np.sin(angle)]) + 0.35 * random.normal(size=(n, 2))
    return np.column_stack([X, random.normal(size=(n, 4))]), y


def make_skewed(n: int, random: np.random.RandomState) -> Rows:
    """Draw n rows of three classes with four factors each in 15 variables, eight of which are skewed."""
    shapes = np.random.RandomState(3)
    loadings, means = shapes.normal(size=(3, 15, 4)), 0.3 * shapes.normal(size=(3, 15))
    y = random.randint(3, size=n)
    X = 0.5 * np.einsum("nij,nj->ni", loadings[y], random.normal(size=(n, 4)))
    X += means[y] + 0.5 * random.normal(size=X.shape)
    X[:, :8] = np.exp(0.7 * X[:, :8])
    return X, y


def make_surface(n: int, random: np.random.RandomState) -> Rows:
    """Draw n rows of four classes between curved surfaces in eight uniform variables, with noise."""
    X = random.uniform(size=(n, 8))
    height = np.sin(2.0 * np.pi * X[:, 0] * X[:, 1]) + 8.0 * (X[:, 2] - 0.5) ** 2 + X[:, 3] + 0.5 * X[:, 4]
    return X, np.digitize(height + 0.4 * random.normal(size=n), [0.8, 1.6, 2.4])


MADE = {"clusters": make_clusters, "spirals": make_spirals, "skewed": make_skewed, "surface": make_surface}
