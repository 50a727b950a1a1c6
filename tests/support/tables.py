"""Small tables of classes that are known to differ."""

import numpy as np


def three_classes(n=15, seed=0):
    """Class k is concentrated in column k of four; n, n + 1 and n + 2 rows, in no order of classes."""
    random = np.random.RandomState(seed)
    y = random.permutation(np.repeat([0, 1, 2], [n, n + 1, n + 2]))
    X = random.uniform(size=(y.size, 4))
    for k in range(3):
        X[y == k, k] = random.normal(0.5, 0.05, (y == k).sum())
    return X * [1.0, 2.0, 0.5, 1.0], y
