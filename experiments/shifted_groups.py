"""Shifted groups: all combinations of two to five groups (tables 3 to 5, figure of the means)."""

from itertools import combinations

import numpy as np
from scipy.stats import norm

from corral.datasets import make_shifted_groups
from experiments._methods import RANGE, SEQUENTIAL
from experiments._paper import paper_table
from experiments._trial import Experiment, Trial

STANDARD_DEVIATIONS = (0.1, 0.2)


def make_trial(seed: int, groups: tuple[int, ...], n_train: int = 200, n_test: int = 150) -> Trial:
    """Draw independent training and test rows of some groups."""
    random = np.random.RandomState(seed)
    X, y = make_shifted_groups(n_train, groups=groups, random_state=random)
    X_test, y_test = make_shifted_groups(n_test, groups=groups, random_state=random)
    means = paper_table("table_3").set_index("group").loc[list(groups)].to_numpy()
    # The other eight variables are uniform in all groups, so their densities cancel.
    log_joint = norm.logpdf(X_test[:, np.newaxis, :2], means, STANDARD_DEVIATIONS).sum(axis=2)
    return Trial(X, y, X_test, y_test, log_joint)


CELLS = {
    " ".join(map(str, groups)): {"groups": groups}
    for n_groups in (2, 3, 4, 5)
    for groups in combinations(range(1, 6), n_groups)
}

EXPERIMENT = Experiment(
    name="shifted_groups",
    title="Groups with special located means",
    make_trial=make_trial,
    cells=CELLS,
    paper_trials=1000,
    quick={"new": 100, "light": 10, "heavy": 2},
    variants={"local_range": RANGE, "local_sequential": SEQUENTIAL},
    simulated=True,
    tables=("table_4",),
    zscore_table="table_5",
    relevant=lambda _: range(1, 3),
    detailed=("1 2", "1 2 3", "1 2 3 4", "1 2 3 4 5"),
)
