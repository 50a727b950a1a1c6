"""The columns of every table: corral's classifiers and the baselines, each with the cost of one fit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from corral import LSPClassifier, RodeoClassifier, RodeoClassifierCV


@dataclass(frozen=True)
class Method:
    """A column.

    Attributes
    ----------
    label : in the report.
    make : an estimator from a seed; None for the Bayes rule, which has nothing to fit.
    cost : "new" for the paper's rule, else "light" or "heavy": a quick run has fewer trials of the latter.
    """

    label: str
    make: Callable[[int], Any] | None
    cost: str


class KernelNaiveBayes(ClassifierMixin, BaseEstimator):
    """Naive Bayes whose densities are one-dimensional kernel estimates with Silverman's bandwidth.

    Silverman's bandwidth is 0.9 min(s, IQR / 1.34) n^(-1/5), for each class and variable; where it is less
    than a thousandth of the variable's standard deviation, as at point masses, it is that.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Keep the rows of each class and their bandwidths."""
        self.classes_ = np.unique(y)
        varies = np.ptp(X, axis=0) > 0
        least = 1e-3 * X.std(axis=0)[varies]
        self.varies_ = varies
        self.rows_ = [X[y == label][:, varies] for label in self.classes_]
        self.bandwidths_ = []
        for rows in self.rows_:
            quartiles = np.subtract(*np.percentile(rows, [75, 25], axis=0))
            spread = np.minimum(rows.std(axis=0, ddof=1), quartiles / 1.34)
            self.bandwidths_.append(np.maximum(0.9 * spread * len(rows) ** -0.2, least))
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probabilities with equal priors."""
        joint = np.zeros((len(X), len(self.classes_)))
        for y, (rows, h) in enumerate(zip(self.rows_, self.bandwidths_, strict=True)):
            for x, x_i, h_j in zip(X[:, self.varies_].T, rows.T, h, strict=True):
                exponent = -0.5 * ((x[:, np.newaxis] - x_i) / h_j) ** 2
                top = exponent.max(axis=1)
                # What scipy's logsumexp does, in a fifth of its time.
                total = np.exp(exponent - top[:, np.newaxis]).sum(axis=1)
                joint[:, y] += top + np.log(total) - np.log(h_j * len(x_i))
        return np.exp(log_softmax(joint, axis=1))


# The paper says nothing of units, so its rule gets the data as they are; corral's own default is the range.
METHODS = {
    "local": Method(
        "local: the paper's rule", lambda seed: RodeoClassifier(scale=None, random_state=seed), "new"
    ),
    "class": Method(
        "class bandwidths", lambda seed: RodeoClassifier(bandwidth="class", random_state=seed), "light"
    ),
    "selected": Method(
        "class bandwidths, selected variables",
        lambda seed: RodeoClassifier(bandwidth="class", features="selected", random_state=seed),
        "light",
    ),
    "cv": Method("RodeoClassifierCV", lambda seed: RodeoClassifierCV(random_state=seed), "heavy"),
    "lspc": Method("LSPC", lambda seed: LSPClassifier(random_state=seed), "heavy"),
    "gaussian_nb": Method("GaussianNB", lambda _: GaussianNB(), "light"),
    "kde_nb": Method("KDE naive Bayes (Silverman)", lambda _: KernelNaiveBayes(), "light"),
    "knn": Method(
        "5 nearest neighbours, standardised",
        lambda _: make_pipeline(StandardScaler(), KNeighborsClassifier(5)),
        "light",
    ),
    "svc": Method("SVC (RBF), standardised", lambda _: make_pipeline(StandardScaler(), SVC()), "light"),
    "forest": Method(
        "random forest (100)", lambda seed: RandomForestClassifier(100, random_state=seed), "heavy"
    ),
    "boosting": Method(
        "gradient boosting", lambda seed: HistGradientBoostingClassifier(random_state=seed), "heavy"
    ),
    "bayes": Method("Bayes rule", None, "light"),
}


def rodeo_variant(label: str, **settings: Any) -> Method:
    """The paper's rule, in the data's own units unless the settings name others."""
    settings = {"scale": None} | settings
    return Method(f"local, {label}", lambda seed: RodeoClassifier(**settings, random_state=seed), "light")


RANGE = rodeo_variant("units of the range", scale="range")
STANDARD = rodeo_variant("standardised", scale="standard")
SEQUENTIAL = rodeo_variant("sequential update, as printed", update="sequential")
# Ten shrink steps from h0 = 0.655, near h0 (n log n)^(-1/6): of those tried, nearest to the paper on anuran.
FLOOR = rodeo_variant(
    "units of the range, floor after ten steps", scale="range", min_bandwidth=0.655 * 0.9**10
)
