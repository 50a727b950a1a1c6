"""Waveform data: three classes, 21 variables with waves and 19 variables of noise.

The paper has no result, and does not state numbers of rows. A trial has 100 training and 100 test rows of
each class, out of the 5000 rows of UCI.
"""

from functools import lru_cache

import numpy as np
from scipy.special import logsumexp

from corral.datasets import load_waveform
from experiments._methods import RANGE, SEQUENTIAL, STANDARD
from experiments._trial import Experiment, Trial, split_by_row

# Three base waves over 21 points, and the two base waves that are mixed in each class.
WAVES = np.maximum(6.0 - np.abs(np.arange(21) - np.array([[6], [14], [10]])), 0.0)
PAIRS = ((0, 1), (0, 2), (1, 2))


def make_trial(seed: int, n_train: int = 100, n_test: int = 100) -> Trial:
    """Draw disjoint training and test rows of each class."""
    X, y = _waves()
    train, test = split_by_row(y, n_train, n_test, seed)
    return Trial(X[train], y[train], X[test], y[test], _log_densities(X[test]))


def _log_densities(X: np.ndarray) -> np.ndarray:
    """Integrate densities over the share u of the first wave by Gauss-Legendre; the noise columns cancel."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    u = (nodes[:, np.newaxis] + 1.0) / 2.0
    joint = []
    for first, second in PAIRS:
        means = u * WAVES[first] + (1.0 - u) * WAVES[second]
        square = ((X[:, np.newaxis, :21] - means) ** 2).sum(axis=2)
        joint.append(logsumexp(-square / 2.0, b=weights / 2.0, axis=1))
    return np.column_stack(joint)


@lru_cache(maxsize=1)
def _waves() -> tuple[np.ndarray, np.ndarray]:
    return load_waveform(return_X_y=True)


EXPERIMENT = Experiment(
    name="waveform",
    title="Waveform dataset",
    make_trial=make_trial,
    cells={"waveform": {}},
    paper_trials=100,
    quick={"new": 20, "light": 20, "heavy": 5},
    variants={
        "local_range": RANGE,
        "local_sequential": SEQUENTIAL,
        "local_standard": STANDARD,
    },
    simulated=True,
    detailed=("waveform",),
)
