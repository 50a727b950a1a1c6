"""Trials of classifiers: splits of rows, rival classifiers of scikit-learn, and a file of results."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks._measure import Figure
from experiments._lines import append_line, read_lines

Samples = tuple[np.ndarray, np.ndarray]
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def draw(make: Callable[..., Samples], train: int, test: int, seed: int) -> Split:
    """Draw rows from a generator: `train` training rows and `test` test rows of each class."""
    random = np.random.RandomState(seed)
    return *make(train, random_state=random), *make(test, random_state=random)


def sample(X: np.ndarray, y: np.ndarray, train: int, test: int, seed: int, noise: int = 0) -> Split:
    """Draw disjoint training and test rows from a table, and append `noise` standard normal columns.

    A class has `train` training rows, but at most two thirds of its rows. Test rows have the class
    proportions of the training rows, and at most `test` rows of each class.
    """
    rng = np.random.default_rng(seed)
    X = np.hstack([X, rng.standard_normal((len(X), noise))])
    classes = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
    sizes = [min(train, 2 * len(rows) // 3) for rows in classes]
    left = [(len(rows) - size, size) for rows, size in zip(classes, sizes, strict=True)]
    most, per = min([*left, (test, max(sizes))], key=lambda share: share[0] / share[1])
    parts = list(zip(classes, sizes, strict=True))
    first = np.concatenate([rows[:size] for rows, size in parts])
    second = np.concatenate([rows[size : size + size * most // per] for rows, size in parts])
    return X[first], y[first], X[second], y[second]


def rivals(seed: int) -> dict[str, Any]:
    """Return classifiers of scikit-learn with default parameters; 5NN with and without scaled columns."""
    return {
        "GaussianNB": GaussianNB(),
        "5NN": make_pipeline(StandardScaler(), KNeighborsClassifier()),
        "5NN raw": KNeighborsClassifier(),
        "SVC": make_pipeline(StandardScaler(), SVC()),
        "forest": RandomForestClassifier(300, random_state=seed),
    }


def spread(values: Any) -> str:
    """Format the standard error of the mean, the range, and the number of trials."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"se {error:.4f}, {np.min(values):.3f} to {np.max(values):.3f}, {len(values)} seeds"


def percentage(
    what: str, hits: int, n: int, detail: str = "", *, low: float = -np.inf, high: float = np.inf
) -> Figure:
    """Return the percentage of hits in n trials, with the exact 95% interval."""
    lower = 100.0 * beta.ppf(0.025, hits, n - hits + 1) if hits else 0.0
    upper = 100.0 * beta.ppf(0.975, hits + 1, n - hits) if hits < n else 100.0
    interval = f"{hits} of {n}, 95% interval {lower:.2f} to {upper:.2f} %"
    return Figure(
        what, 100.0 * hits / n, low, high, " %", detail=f"{interval}; {detail}" if detail else interval
    )


class Trials:
    """Results of trials by data set, size, seed and model, optionally stored in a file of JSON lines.

    Results in the file are not measured again, so a long run can be stopped and resumed. The file does not
    record the version of the code: use a new file after a change of the code.
    """

    _KEYS = ("data", "size", "seed", "model")

    def __init__(self, file: Path | None) -> None:
        self._file = file
        lines = [] if file is None else read_lines(file)
        self._results = {tuple(line[key] for key in self._KEYS): line["result"] for line in lines}

    def measure(
        self, data: str, size: int, seed: int, model: str, call: Callable[[], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the result of a trial from the file, or call `call` and store its result."""
        key = data, size, seed, model
        if key not in self._results:
            result = self._results[key] = dict(call())
            if self._file is not None:
                # The result is a separate field, because a name in the result may equal a key.
                append_line(self._file, dict(zip(self._KEYS, key, strict=True)) | {"result": result})
        return self._results[key]
