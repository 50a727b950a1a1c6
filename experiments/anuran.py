"""Anuran species: seven species of frogs, classified by calls, without and with five columns of noise.

The paper splits by row, so syllables of one recording are both training rows and test rows. In the cells "by
recording", all rows of a recording are either training or test rows, which measures the accuracy for other
animals.
"""

from functools import lru_cache

import numpy as np
from sklearn.utils import Bunch

from corral.datasets import load_anuran
from experiments._methods import FLOOR, RANGE, SEQUENTIAL, STANDARD
from experiments._trial import Experiment, Trial, sample_rows, split_by_row


def make_trial(
    seed: int, noise: int = 0, by_recording: bool = False, n_train: int = 100, n_test: int = 50
) -> Trial:
    """Draw rows of each species, and append columns of standard normal noise."""
    frogs = _frogs()
    split = _split_by_recording if by_recording else split_by_row
    train, test = split(frogs.target, n_train, n_test, seed)
    extra = np.random.default_rng(seed).spawn(1)[0].standard_normal((len(frogs.data), noise))
    X = np.hstack([frogs.data, extra])
    return Trial(X[train], frogs.target[train], X[test], frogs.target[test])


def _split_by_recording(y: np.ndarray, n_train: int, n_test: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Take test rows from the first recordings of a random order, and training rows from the others.

    An order with too few training rows is drawn again: one recording has most of the rows of Leptodactylus
    fuscus.
    """
    rng = np.random.default_rng(seed)
    pools = {}
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        recordings, counts = np.unique(_frogs().record_id[rows], return_counts=True)
        while True:
            order = rng.permutation(recordings.size)
            enough = np.searchsorted(np.cumsum(counts[order]), n_test) + 1
            if counts[order[enough:]].sum() >= n_train:
                break
        judges = np.isin(_frogs().record_id[rows], recordings[order[:enough]])
        pools[label] = rows[~judges], rows[judges]
    return sample_rows(pools, n_train, n_test, rng)


@lru_cache(maxsize=1)
def _frogs() -> Bunch:
    return load_anuran()


EXPERIMENT = Experiment(
    name="anuran",
    title="Anuran species classification",
    make_trial=make_trial,
    cells={
        "original": {},
        "with noise": {"noise": 5},
        "original, by recording": {"by_recording": True},
        "with noise, by recording": {"noise": 5, "by_recording": True},
    },
    paper_trials=100,
    quick={"new": 20, "light": 20, "heavy": 5},
    variants={
        "local_range": RANGE,
        "local_floor": FLOOR,
        "local_sequential": SEQUENTIAL,
        "local_standard": STANDARD,
    },
    tables=("anuran",),
    detailed=("with noise",),
    drawn=("local", "local_range", "local_floor"),
)
