"""Ten groups, each of which has six relevant variables among 30 (tables 1 and 2, first figure)."""

import numpy as np
from scipy.stats import norm

from corral.datasets import make_ten_groups
from experiments._methods import RANGE, SEQUENTIAL, STANDARD
from experiments._trial import Experiment, Trial


def make_trial(seed: int, n_train: int = 150, n_test: int = 100) -> Trial:
    """Draw independent training and test rows; the paper samples both from 1000 rows of each group."""
    random = np.random.RandomState(seed)
    X, y = make_ten_groups(n_train, random_state=random)
    X_test, y_test = make_ten_groups(n_test, random_state=random)
    return Trial(X, y, X_test, y_test, _log_densities(X_test))


def _log_densities(X: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        uniform = np.log(((X >= 0) & (X <= 1)).astype(float))
    joint = []
    for group in range(1, 11):
        each = uniform.copy()
        own = slice(group - 1, group + 5)
        each[:, own] = norm.logpdf(X[:, own], 0.5, 0.02 * np.arange(1, 7))
        joint.append(each.sum(axis=1))
    return np.column_stack(joint)


EXPERIMENT = Experiment(
    name="ten_groups",
    title="Ten-group example",
    make_trial=make_trial,
    cells={"ten groups": {}},
    paper_trials=1000,
    quick={"new": 100, "light": 20, "heavy": 5},
    variants={
        "local_range": RANGE,
        "local_sequential": SEQUENTIAL,
        "local_standard": STANDARD,
    },
    simulated=True,
    tables=("table_1",),
    zscore_table="table_2",
    relevant=lambda group: range(group, group + 6),
    detailed=("ten groups",),
)
