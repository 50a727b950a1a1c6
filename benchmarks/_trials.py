"""What trials of classifiers share: how rows are split, who else takes part, what is kept of each."""

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
    """New rows from a generator, so many per class for training and for the test."""
    random = np.random.RandomState(seed)
    return *make(train, random_state=random), *make(test, random_state=random)


def sample(X: np.ndarray, y: np.ndarray, train: int, test: int, seed: int, noise: int = 0) -> Split:
    """Disjoint rows of a table, and standard normal noise columns.

    A class gives `train` rows for training, but at most two thirds of what it has. Classes have the same
    shares of the test rows as of the training rows, and at most `test` rows there.
    """
    rng = np.random.default_rng(seed)
    X = np.hstack([X, rng.standard_normal((len(X), noise))])
    rows = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
    sizes = [min(train, 2 * len(of_class) // 3) for of_class in rows]
    left = [(len(of_class) - size, size) for of_class, size in zip(rows, sizes, strict=True)]
    most, per = min([*left, (test, max(sizes))], key=lambda share: share[0] / share[1])
    first = np.concatenate([of_class[:size] for of_class, size in zip(rows, sizes, strict=True)])
    second = np.concatenate(
        [of_class[size : size + size * most // per] for of_class, size in zip(rows, sizes, strict=True)]
    )
    return X[first], y[first], X[second], y[second]


def rivals(seed: int) -> dict[str, Any]:
    """What everybody has at hand, with scikit-learn's defaults; neighbours in two units, either may win."""
    return {
        "GaussianNB": GaussianNB(),
        "5NN": make_pipeline(StandardScaler(), KNeighborsClassifier()),
        "5NN raw": KNeighborsClassifier(),
        "SVC": make_pipeline(StandardScaler(), SVC()),
        "forest": RandomForestClassifier(300, random_state=seed),
    }


def spread(values: Any) -> str:
    """Standard error of the mean, the range over trials, and how many they are."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"se {error:.4f}, {np.min(values):.3f} to {np.max(values):.3f}, {len(values)} seeds"


def percentage(
    what: str, hits: int, n: int, detail: str = "", *, low: float = -np.inf, high: float = np.inf
) -> Figure:
    """Hits in a hundred trials, with the exact 95 % interval."""
    bounds = [
        100.0 * (beta.ppf(0.025, hits, n - hits + 1) if hits else 0.0),
        100.0 * (beta.ppf(0.975, hits + 1, n - hits) if hits < n else 1.0),
    ]
    interval = f"{hits} of {n}, 95 % interval {bounds[0]:.2f} to {bounds[1]:.2f} %"
    shown = f"{interval}; {detail}" if detail else interval
    return Figure(what, 100.0 * hits / n, low, high, unit=" %", detail=shown)


class Trials:
    """Results by data, size, seed and model; where a file is given, one JSON line each.

    What the file already has is not measured again, so a long run can be stopped and resumed. It knows
    nothing of the code that it was made with: begin a new file after a change.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._found: dict[tuple[str, int, int, str], dict[str, Any]] = {}
        for trial in [] if file is None else read_lines(file):
            self._found[trial["data"], trial["size"], trial["seed"], trial["model"]] = trial["found"]

    def measure(
        self, data: str, size: int, seed: int, model: str, call: Callable[[], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """The result of a trial, from the file or by a call."""
        key = data, size, seed, model
        if key not in self._found:
            found = self._found[key] = dict(call())
            if self._file is not None:
                # Results by themselves: one of them may have the name of a key.
                trial = {"data": data, "size": size, "seed": seed, "model": model, "found": found}
                append_line(self._file, trial)
        return self._found[key]
