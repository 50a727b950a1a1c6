r"""Rates of theorem 1, measured: bandwidths, L1 errors and excess risks with increasing numbers of rows.

All values are between 0 and 1. Each of two classes has r relevant variables, which are normal around 0.5 in
this class; all other variables are uniform. So the assumption of sparsity holds with b = 1 inside the cube.
The proof has three steps, which are measured separately:

1. Bandwidths of relevant variables fall like :math:`h_0 (n \log n)^{-1/(4+r)}`; other bandwidths stay at
   :math:`h_0 = c_0 / \log \log n`.
2. So the L1 error of a class density falls like :math:`n^{-2/(4+r)}`, instead of :math:`n^{-2/(4+d)}`.
3. The excess risk over the Bayes rule is at most the sum of the L1 errors.

The L1 error of a density is :math:`2 E_f (1 - \hat f / f)_+`, a mean over test rows of the class. The
estimate with local bandwidths is not a density, because it does not integrate to 1. Its L1 error is the mean
of :math:`|1 - \hat f / f|`, which is restricted to the cube.
"""

from hashlib import sha256
from typing import Any, Self

import numpy as np
from scipy.special import softmax
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
# Separates relevant variables (standard deviation 0.12) from uniform variables (0.29).
SPREAD = 0.2


class Densities:
    """Base class of classifiers by class densities."""

    classes_: np.ndarray

    def log_density(self, X: np.ndarray) -> np.ndarray:
        """Log densities (n_samples, n_classes)."""
        raise NotImplementedError

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Predict probabilities (n_samples, n_classes) with equal priors."""
        return softmax(self.log_density(X), axis=1)


class PlainKernels(Densities):
    """Classify by kernel densities with Scott's bandwidths for each class.

    The densities have all variables, or only the relevant variables of the class if `relevant_only`. In the
    second case bandwidths are k n^(-1/(4+r)), as the proof of theorem 1 assumes. In this design, variables
    are relevant if their standard deviation in the class is less than `SPREAD`.
    """

    def __init__(self, *, relevant_only: bool = False) -> None:
        self.relevant_only = relevant_only

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Compute the bandwidths of each class, and store its rows."""
        self.classes_ = np.unique(y)
        self._kernels = []
        for label in self.classes_:
            rows = X[y == label]
            spread = rows.std(axis=0, ddof=1)
            columns = np.flatnonzero((spread < SPREAD) | (not self.relevant_only))
            widths = spread[columns] * len(rows) ** (-1.0 / (4 + columns.size))
            self._kernels.append((rows[:, columns], columns, widths))
        return self

    def log_density(self, X: np.ndarray) -> np.ndarray:
        """Log densities (n_samples, n_classes)."""
        columns = [kernel_estimate(rows, widths, X[:, columns]) for rows, columns, widths in self._kernels]
        return np.column_stack(columns)


class Rodeos:
    """The Rodeo on all variables, and for each class a second Rodeo on its selected variables."""

    def __init__(self, X: np.ndarray, y: np.ndarray) -> None:
        self.first = RodeoClassifier(scale=None, random_state=0).fit(X, y)
        self.columns = [
            np.flatnonzero(relevant) if relevant.any() else np.arange(X.shape[1])
            for relevant in self.first.relevant_
        ]
        self.seconds = [clone(self.first).fit(X[:, columns], y) for columns in self.columns]


class RodeoDensities(Densities):
    """Classify by densities of the first or the second Rodeo, with class bandwidths or local bandwidths.

    Parameters
    ----------
    bandwidth : "local" or "class".
    selected : whether densities have only selected variables; all others are taken as uniform on the cube.
    passes : 1 for bandwidths of the first Rodeo, 2 for bandwidths of the second Rodeo.
    """

    def __init__(self, bandwidth: str, *, selected: bool = False, passes: int = 1) -> None:
        self.bandwidth = bandwidth
        self.selected = selected
        self.passes = passes

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Store the rows of each class, and run the Rodeos unless another method of the trial has."""
        self._rodeos = rodeos_of(X, y)
        first = self._rodeos.first
        self.classes_, self.relevant_ = first.classes_, first.relevant_
        self.initial_bandwidth_, self.bandwidths_ = first.initial_bandwidth_, first.bandwidths_.copy()
        every = [np.arange(X.shape[1])] * len(self.classes_)
        self._columns = self._rodeos.columns if self.selected else every
        self._models = self._rodeos.seconds if self.passes > 1 else [first] * len(self.classes_)
        if self.passes > 1:
            for label, (columns, model) in enumerate(zip(self._columns, self._models, strict=True)):
                self.bandwidths_[label, columns] = model.bandwidths_[label]
        self._rows = [X[y == label] for label in self.classes_]
        return self

    def log_density(self, X: np.ndarray) -> np.ndarray:
        """Log densities (n_samples, n_classes)."""
        densities = []
        for label, (columns, model) in enumerate(zip(self._columns, self._models, strict=True)):
            if self.bandwidth == "local":
                densities.append(model.log_density(X[:, columns])[:, label])
            else:
                rows, widths = self._rows[label][:, columns], self.bandwidths_[label, columns]
                densities.append(kernel_estimate(rows, widths, X[:, columns]))
        return np.column_stack(densities)

    def local_bandwidths(self, X: np.ndarray) -> np.ndarray:
        """Return bandwidths (n_samples, n_classes, n_features); other variables have class bandwidths."""
        h = np.tile(self.bandwidths_, (len(X), 1, 1))
        for label, (columns, model) in enumerate(zip(self._columns, self._models, strict=True)):
            h[:, label, columns] = model.local_bandwidths(X[:, columns])[:, label]
        return h


_last: dict[bytes, Rodeos] = {}  # Rodeos of the last trial of this process, by a hash of its rows


def rodeos_of(X: np.ndarray, y: np.ndarray) -> Rodeos:
    """Return the Rodeos of some rows, which are cached."""
    key = sha256(X.tobytes()).digest()
    if key not in _last:
        _last.clear()
        _last[key] = Rodeos(X, y)
    return _last[key]


def kernel_estimate(rows: np.ndarray, widths: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Compute log densities (n_samples,) of a product kernel estimate with a bandwidth for each variable."""
    return KernelDensity(bandwidth=1.0).fit(rows / widths).score_samples(X / widths) - np.log(widths).sum()


def make_trial(seed: int, r: int, d: int, n_train: int, n_test: int = 500) -> Trial:
    """Draw training and test rows of two classes, and compute true log densities of the test rows."""
    rng = np.random.default_rng(seed)
    X, y = _draw(rng, r, d, n_train)
    X_test, y_test = _draw(rng, r, d, n_test)
    joint = [
        norm.logpdf(X_test[:, _own(label, r)], 0.5, DEVIATION).sum(axis=1) for label in np.unique(y_test)
    ]
    return Trial(X, y, X_test, y_test, np.column_stack(joint))


def _own(label: int, r: int) -> slice:
    """Return the columns of the relevant variables of a class."""
    return slice(label * r, (label + 1) * r)


def _draw(rng: np.random.Generator, r: int, d: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = rng.uniform(size=(2 * n, d)), np.repeat([0, 1], n)
    for label in (0, 1):
        # The sides of the cube are more than four standard deviations away; 3 values in 100,000 are beyond.
        X[y == label, _own(label, r)] = rng.normal(0.5, DEVIATION, (n, r)).clip(0.0, 1.0)
    return X, y


def inspect(model: Any, trial: Trial, *, r: int, **_: Any) -> dict[str, float]:
    """Measure excess risk, L1 error and bandwidths, for the three steps of the proof."""
    code = np.searchsorted(np.unique(trial.y), trial.y_test)
    rows = np.arange(code.size)
    posterior = np.exp(trial.log_joint - np.logaddexp.reduce(trial.log_joint, axis=1, keepdims=True))
    is_density = isinstance(model, Densities)
    scores = model.log_density(trial.X_test) if is_density else model.predict_proba(trial.X_test)
    excess = posterior.max(axis=1) - posterior[rows, scores.argmax(axis=1)]
    numbers = {"excess": float(excess.mean())}
    if is_density:
        ratio = np.exp(scores[rows, code] - trial.log_joint[rows, code])
        local = getattr(model, "bandwidth", None) == "local"
        numbers["l1"] = float(np.abs(1 - ratio).mean() if local else 2 * np.maximum(1 - ratio, 0).mean())
    if isinstance(model, RodeoDensities):
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
        "local": Method(METHODS["local"].label, lambda _: RodeoDensities("local"), "light"),
        "class": Method("class bandwidths", lambda _: RodeoDensities("class"), "light"),
        "selected": Method(
            "class bandwidths, selected variables",
            lambda _: RodeoDensities("class", selected=True),
            "light",
        ),
        "passes": Method(
            "class bandwidths of a second Rodeo, selected variables",
            lambda _: RodeoDensities("class", selected=True, passes=2),
            "light",
        ),
        "local_passes": Method(
            "local bandwidths of a second Rodeo, selected variables",
            lambda _: RodeoDensities("local", selected=True, passes=2),
            "light",
        ),
        "cv": METHODS["cv"],
        "plain": Method("plain kernels, all variables", lambda _: PlainKernels(), "light"),
        "known": Method(
            "plain kernels, relevant variables known", lambda _: PlainKernels(relevant_only=True), "light"
        ),
        "bayes": METHODS["bayes"],
    },
    simulated=True,
    inspect=inspect,
)
