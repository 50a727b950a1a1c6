"""Methods of the experiments: classifiers of corral and baselines, with the cost of one fit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.kernel_naive_bayes import KernelNaiveBayes
from corral import CorralClassifier, LSPClassifier, RodeoClassifier


@dataclass(frozen=True)
class Method:
    """A classifier, which is a column of the tables.

    Attributes
    ----------
    label : label in the report.
    make : function of a seed that returns an estimator; None for the Bayes rule, which is not fitted.
    cost : "new" for the paper's rule, "light", or "heavy" for methods with few trials in a quick run.
    """

    label: str
    make: Callable[[int], Any] | None
    cost: str


# The paper does not mention scaling, so its rule is fitted to unscaled data. The default of corral is the
# range.
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
    "cv": Method("CorralClassifier", lambda seed: CorralClassifier(random_state=seed), "heavy"),
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
    """Make a variant of the paper's rule; data are unscaled unless the settings have a scale."""
    settings = {"scale": None} | settings
    return Method(f"local, {label}", lambda seed: RodeoClassifier(**settings, random_state=seed), "light")


RANGE = rodeo_variant("scaled by range", scale="range")
STANDARD = rodeo_variant("standardised", scale="standard")
SEQUENTIAL = rodeo_variant("sequential update, as printed", update="sequential")
# Ten shrink steps from h0 = 0.655, near h0 (n log n)^(-1/6). Of all floors that were tried, this one comes
# nearest to the paper on anuran.
FLOOR = rodeo_variant("scaled by range, floor after ten steps", scale="range", min_bandwidth=0.655 * 0.9**10)
