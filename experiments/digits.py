"""Handwritten digits: ten classes of 8 x 8 pixels, with 100 training and 100 test images of each digit.

The training table and the test table of UCI are pooled, because the test table has fewer than 200 images of a
digit.
"""

from functools import lru_cache

import numpy as np

from corral.datasets import load_optdigits
from experiments._methods import FLOOR, RANGE, STANDARD
from experiments._trial import Experiment, Trial, split_by_row


def make_trial(seed: int, n_train: int = 100, n_test: int = 100) -> Trial:
    """Draw disjoint training and test images of each digit."""
    X, y = _images()
    train, test = split_by_row(y, n_train, n_test, seed)
    return Trial(X[train], y[train], X[test], y[test])


@lru_cache(maxsize=1)
def _images() -> tuple[np.ndarray, np.ndarray]:
    return load_optdigits(return_X_y=True)


EXPERIMENT = Experiment(
    name="digits",
    title="Handwritten digit dataset",
    make_trial=make_trial,
    cells={"digits": {}},
    paper_trials=100,
    quick={"new": 20, "light": 20, "heavy": 5},
    variants={
        "local_range": RANGE,
        "local_standard": STANDARD,
        "local_floor": FLOOR,
    },
    tables=("digits",),
    detailed=("digits",),
    drawn=("local", "local_range"),
)
