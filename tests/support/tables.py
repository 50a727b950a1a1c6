"""Tables that tests of several packages make, and integrals of densities."""

import math

import numpy as np
from numpy.testing import assert_allclose

from corral.data.dataset import LabelledRows, TrainingRows
from corral.pool.categories import CategoryKernels

NO_CATEGORIES = CategoryKernels(np.empty(0, dtype=np.int64), [], None)


def table(n=60, d=4, n_classes=3, seed=0):
    """Correlated columns of different widths, and classes that differ in place and spread."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    mixing = rng.normal(size=(d, d)) + np.eye(d)
    X = (
        rng.normal(size=(n, d)) * (1.0 + 0.3 * y[:, np.newaxis]) + 1.5 * rng.normal(size=(n_classes, d))[y]
    ) @ mixing
    return X * np.logspace(-2.0, 2.0, d), y


def labelled(X, y, weights=None, *, groups=None, n_categories=None, expected=None):
    """Training rows, sorted by class."""
    return LabelledRows.sort(TrainingRows(X, y, weights, n_categories, groups), expected)


def assert_integrates(log_density, values, numeric, categories=()):
    """Check that the density of a row with missing values is an integral over them.

    It is taken over one and two numeric variables, or summed over the categories of the second variable.
    """

    def density(variables, value=math.nan):
        row = [value if j in variables else given for j, given in enumerate(values)]
        return math.exp(log_density(np.array([row]))[0])

    for free in (numeric[:1], numeric):
        assert_allclose(density(free), integral(log_density, values, free), rtol=1e-8)
    if len(categories):
        assert_allclose(density([1]), sum(density([1], k) for k in categories), rtol=1e-12)
    assert_allclose(density(range(len(values))), 1.0)


def integral(log_density, values, free):
    """The integral of a density over one or two numeric variables, by the trapezoidal rule.

    For sums of normal kernels that are wider than two steps the rule is exact to rounding.
    """
    t, step = np.linspace(-12.0, 12.0, 241, retstep=True)
    grid = np.meshgrid(*[t] * len(free))
    samples = np.tile(np.array(values), (grid[0].size, 1))
    for j, axis_values in zip(free, grid, strict=True):
        samples[:, j] = axis_values.ravel()
    return np.exp(log_density(samples)).sum() * step ** len(free)


def three_classes(n=15, seed=0):
    """Class k is concentrated in column k of four; n, n + 1 and n + 2 rows, in no order of classes."""
    random = np.random.RandomState(seed)
    y = random.permutation(np.repeat([0, 1, 2], [n, n + 1, n + 2]))
    X = random.uniform(size=(y.size, 4))
    for k in range(3):
        X[y == k, k] = random.normal(0.5, 0.05, (y == k).sum())
    return X * [1.0, 2.0, 0.5, 1.0], y
