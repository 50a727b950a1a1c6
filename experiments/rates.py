r"""Theorem 1, measured: how fast bandwidths, densities and labels get better with more rows.

Class y lies in the unit cube. It is normal around 0.5 in r variables of its own, and uniform in all others,
so that the assumption of sparsity holds with b = 1 inside the cube. The proof goes in three steps, each of
which has a column of its own:

1. Bandwidths of relevant variables fall like :math:`h_0 (n \log n)^{-1/(4+r)}`, those of others stay at
   :math:`h_0 = c_0 / \log \log n`.
2. So the L1 error of a class density falls like :math:`n^{-2/(4+r)}`, instead of :math:`n^{-2/(4+d)}`.
3. The excess risk over the Bayes rule is at most the sum of the L1 errors.

An L1 error of two densities is :math:`2 E_f (1 - \hat f / f)_+`, a mean over test rows of the class. The
estimate with local bandwidths is no density, and integrates to another number than 1: its L1 error is the
mean of :math:`|1 - \hat f / f|`, which counts what lies inside the cube.
"""

from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.base import clone
from sklearn.neighbors import KernelDensity

from corral import RodeoClassifier
from experiments._methods import METHODS, Method
from experiments._trial import Experiment, Trial

RELEVANT = (1, 2, 4)
VARIABLES = (10, 30)
SIZES = (50, 150, 400, 1200, 3500, 10_000)
DEVIATION = 0.12


class PlainKernels:
    """Classify by kernel densities of all variables, with Scott's bandwidths for each class."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "PlainKernels":
        """Learn the widths of each class, and keep its rows."""
        self.classes_ = np.unique(y)
        self._widths, self._densities = [], []
        for label in self.classes_:
            rows = X[y == label]
            widths = rows.std(axis=0, ddof=1) * len(rows) ** (-1.0 / (4 + X.shape[1]))
            self._widths.append(widths)
            self._densities.append(KernelDensity(bandwidth=1.0).fit(rows / widths))
        return self

    def log_density(self, X: np.ndarray) -> np.ndarray:
        """Log densities (n_samples, n_classes)."""
        columns = [
            density.score_samples(X / widths) - np.log(widths).sum()
            for widths, density in zip(self._widths, self._densities, strict=True)
        ]
        return np.column_stack(columns)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Most probable class of each row."""
        return self.classes_[self.log_density(X).argmax(axis=1)]


class TwoPasses:
    """Bandwidths that are chosen once more, among the selected variables of each class alone."""

    def __init__(self, bandwidth: str, random_state: int) -> None:
        self.bandwidth = bandwidth
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "TwoPasses":
        """Select variables by a first Rodeo, and run a second one on them."""
        settings = {"scale": None, "bandwidth": self.bandwidth, "random_state": self.random_state}
        first = RodeoClassifier(**settings).fit(X, y)
        self.classes_, self.relevant_ = first.classes_, first.relevant_
        self.initial_bandwidth_, self.bandwidths_ = first.initial_bandwidth_, first.bandwidths_.copy()
        self._models = []
        for label, relevant in enumerate(first.relevant_):
            columns = np.flatnonzero(relevant) if relevant.any() else np.arange(X.shape[1])
            second = clone(first).fit(X[:, columns], y)
            self.bandwidths_[label, columns] = second.bandwidths_[label]
            self._models.append((columns, second))
        return self

    def log_density(self, X: np.ndarray) -> np.ndarray:
        """Log densities (n_samples, n_classes); variables that are not selected are uniform on the cube."""
        densities = [
            model.log_density(X[:, columns])[:, label] for label, (columns, model) in enumerate(self._models)
        ]
        return np.column_stack(densities)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Most probable class of each row."""
        return self.classes_[self.log_density(X).argmax(axis=1)]

    def local_bandwidths(self, X: np.ndarray) -> np.ndarray:
        """Bandwidths (n_samples, n_classes, n_features), those of the first Rodeo where none is selected."""
        h = np.tile(self.bandwidths_, (len(X), 1, 1))
        for label, (columns, model) in enumerate(self._models):
            h[:, label, columns] = model.local_bandwidths(X[:, columns])[:, label]
        return h


def make_trial(seed: int, r: int, d: int, n_train: int, n_test: int = 500) -> Trial:
    """Independent training and test rows of two classes, and their densities."""
    rng = np.random.default_rng(seed)
    X, y = _draw(rng, r, d, n_train)
    X_test, y_test = _draw(rng, r, d, n_test)
    joint = [
        norm.logpdf(X_test[:, _own(label, r)], 0.5, DEVIATION).sum(axis=1) for label in np.unique(y_test)
    ]
    return Trial(X, y, X_test, y_test, np.column_stack(joint))


def _own(label: int, r: int) -> slice:
    """Columns of the relevant variables of a class."""
    return slice(label * r, (label + 1) * r)


def _draw(rng: np.random.Generator, r: int, d: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = rng.uniform(size=(2 * n, d)), np.repeat([0, 1], n)
    for label in (0, 1):
        # Four deviations reach the sides of the cube: beyond them are 3 rows in 100,000.
        X[y == label, _own(label, r)] = rng.normal(0.5, DEVIATION, (n, r)).clip(0.0, 1.0)
    return X, y


def inspect(model: Any, trial: Trial, *, r: int, **_: Any) -> dict[str, float]:
    """Measure the three steps of the proof."""
    code = np.searchsorted(np.unique(trial.y), trial.y_test)
    at = np.arange(code.size)
    posterior = np.exp(trial.log_joint - np.logaddexp.reduce(trial.log_joint, axis=1, keepdims=True))
    chosen = np.searchsorted(np.unique(trial.y), model.predict(trial.X_test))
    numbers = {"excess": float((posterior.max(axis=1) - posterior[at, chosen]).mean())}
    if isinstance(model, RodeoClassifier | TwoPasses | PlainKernels):
        log_density = model.log_density(trial.X_test)
        if getattr(model, "features", None) == "selected":
            # The other variables are uniform over the range of the training rows, which is no full cube.
            log_density = log_density + ~model.relevant_ @ np.log(np.ptp(trial.X, axis=0))
        ratio = np.exp(log_density[at, code] - trial.log_joint[at, code])
        is_density = getattr(model, "bandwidth", None) != "local"
        numbers["l1"] = float(2 * np.maximum(1 - ratio, 0).mean() if is_density else np.abs(1 - ratio).mean())
    if isinstance(model, RodeoClassifier | TwoPasses):
        own = np.zeros(model.bandwidths_.shape, dtype=bool)
        for label in (0, 1):
            own[label, _own(label, r)] = True
        numbers["relevant"] = float(model.bandwidths_[own].mean())
        numbers["others"] = float(model.bandwidths_[~own].mean())
        if model.bandwidth == "local":
            numbers["center"] = float(model.local_bandwidths(np.full((1, own.shape[1]), 0.5))[0][own].mean())
        numbers["initial"] = float(model.initial_bandwidth_.mean())
        numbers["exact"] = float((model.relevant_ == own).all(axis=1).mean())
    return numbers


def _in_the_cube(label: str, **settings: Any) -> Method:
    settings = {"scale": None} | settings
    return Method(label, lambda seed: RodeoClassifier(**settings, random_state=seed), "light")


EXPERIMENT = Experiment(
    name="rates",
    title="Theorem 1: rates",
    make_trial=make_trial,
    cells={
        f"r = {r}, d = {d}, n = {n}": {"r": r, "d": d, "n_train": n}
        for r in RELEVANT
        for d in VARIABLES
        for n in SIZES
    },
    paper_trials=5,
    quick={"new": 1, "light": 1, "heavy": 1},
    columns={
        "local": METHODS["local"],
        "class": _in_the_cube("class bandwidths", bandwidth="class"),
        "selected": _in_the_cube(
            "class bandwidths, selected variables", bandwidth="class", features="selected"
        ),
        "passes": Method(
            "class bandwidths of a second Rodeo, selected variables",
            lambda seed: TwoPasses("class", seed),
            "light",
        ),
        "local_passes": Method(
            "local bandwidths of a second Rodeo, selected variables",
            lambda seed: TwoPasses("local", seed),
            "light",
        ),
        "cv": METHODS["cv"],
        "plain": Method("plain kernels, all variables", lambda _: PlainKernels(), "light"),
        "bayes": METHODS["bayes"],
    },
    simulated=True,
    inspect=inspect,
)
