"""CorralClassifier: a pool of density models ("members"), weighted and calibrated by leave-one-out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from corral.array_types import Bools, Floats
from corral.data.dataset import LabelledRows, TrainingRows
from corral.estimators.base import Categorical
from corral.estimators.density_classifier import DensityClassifier
from corral.estimators.priors import ClassWeight, Priors, are_empirical, class_priors
from corral.estimators.validation import check_integer, check_n_jobs, check_number, take_names_from
from corral.estimators.warned import warn_of_duplicates, warn_of_single_rows
from corral.markers.contrast import MIN_EFFECT
from corral.pool.learning import PoolSettings, learn_pool
from corral.pool.members import kind_of
from corral.pool.model import PoolModel

# Default of `max_rows`: a class with more rows is compressed.
MAX_ROWS = 3000


@dataclass(kw_only=True, eq=False, repr=False)
class PoolMember(DensityClassifier):
    """One member of a pool as a classifier, calibrated on its own.

    `CorralClassifier.members_` lists such classifiers; they cannot be fitted.
    """

    name: str = ""  # kind and scale of the class densities
    n_jobs: int | None = None
    verbose: int = 0

    model_: PoolModel = field(init=False)
    categorical_features = "from_dtype"  # not a parameter, since the pool has already encoded the columns

    def _learn(self, training: TrainingRows, data: LabelledRows) -> Self:
        raise TypeError("a member of a pool cannot be fitted by itself: fit a CorralClassifier.")


@dataclass(kw_only=True, eq=False, repr=False)
class CorralClassifier(DensityClassifier):
    r"""Classify by a pool of class densities, weighted and calibrated by leave-one-out.

    No kind of density is best for all tables, so the pool combines several, its *members*. A member is one
    model of all class densities. The probabilities come from a weighted sum of the members' log densities,

    .. math::

        P(y \mid x) = (1 - \varepsilon)
            \frac{\pi_y \prod_m \hat p_m(x \mid y)^{w_m}}
                 {\sum_{y'} \pi_{y'} \prod_m \hat p_m(x \mid y')^{w_m}}
            + \varepsilon \pi_y, \qquad \varepsilon = \frac 1 {n + 2}.

    The members :math:`\hat p_m` are kernel densities on different scales and with different kernels. The
    weights :math:`w_m > 0` minimize the leave-one-out log loss, which calibrates the probabilities; a penalty
    shrinks them towards equal shares of members that are each calibrated on their own. :math:`\varepsilon`,
    the *prior mixing*, keeps probabilities away from 0 and 1 if there are few rows. By Laplace's rule of
    succession it is the probability of an error that did not occur in n rows.

    Parameters
    ----------
    priors : {"empirical", "uniform"}, dict or array-like of shape (n_classes,), default="empirical"
        Class probabilities :math:`\pi_y`: "empirical" for the shares of the training rows, "uniform" for
        equal priors, or numbers, as ``{class: prior}`` or in the order of `classes_`. In the log loss that is
        minimized each class has its prior as its total weight.
    class_weight : "balanced", dict or None, default=None
        Factors of the priors, as ``{class: weight}``; a class that is not in the dict has weight 1.
        "balanced" makes the priors equal, as ``priors="uniform"`` does.
    min_effect : float, default=0.15
        Least effect of a marker, as Cliff's delta; see `MarkerSelector`.
    categorical_features : {"from_dtype"} or array-like or None, default="from_dtype"
        Which columns hold categories rather than measurements; see `RodeoClassifier`.
    max_rows : int or None, default=3000
        A class with more than `max_rows` rows is compressed to `max_rows` centroids of its rows. In tables
        with missing values, categories or groups it is compressed to a random subsample of `max_rows` rows
        instead. So neither the time of predictions nor the size of model files grows with the number of
        rows. If it is None, no class is compressed.
    n_jobs, verbose
        As in `RodeoClassifier`.
    random_state : int, RandomState or None, default=None
        Divides the rows into folds and, in large tables, picks the rows that leave-one-out uses. A table of
        up to 400 rows is divided several times, so that probabilities depend little on the seed.

    Attributes
    ----------
    members_ : list of PoolMember
        The members of the pool as classifiers, the largest weight first.
    member_weights_ : ndarray of shape (n_members,)
        Weights :math:`w_m` of the members.
    cv_accuracy_ : float
        Estimate of the accuracy by leave-one-out. Each fifth of the rows is predicted with member weights
        that are fitted to the other four fifths, so that fitting the weights does not bias the estimate. Each
        class has its prior as its total weight: with uniform priors the accuracy is the mean of `cv_recall_`.
        With many classes of few rows the estimate is too high: with 30 classes of five rows of noise it is
        0.044 instead of 0.033.
    cv_log_loss_ : float
        Estimate of the log loss, computed like `cv_accuracy_`.
    cv_balanced_accuracy_ : float
        Mean of `cv_recall_` over the classes.
    cv_recall_ : ndarray of shape (n_classes,)
        Share of the rows of each class that are predicted as this class, computed like `cv_accuracy_`; NaN
        for a class without rows.
    member_scores_ : dict of arrays
        Columns of a table of the members that were tried, for example for `pandas.DataFrame`: "member" (the
        kind), "scale", "bandwidth", "pull" (the factor by which rows are shrunk towards the mean of their
        class); "accuracy", "log_loss" and "temperature" of the member alone, by leave-one-out; "weight" and
        "share" in the pool, 0 for members that were dropped.
    markers_ : ndarray of shape (n_classes, n_features), bool
        Which variables mark each class, by the tests of `MarkerSelector`; the members do not matter.
    model_ : PoolModel
        Everything that `fit` learns.
    classes_, class_count_, class_prior_, n_duplicates_, feature_importances_, n_features_in_,
    feature_names_in_
        As in `RodeoClassifier`.

    See Also
    --------
    RodeoClassifier : The paper's rule, which chooses bandwidths at each sample by the Rodeo.
    MarkerSelector : Finds the variables that mark each class, without a classifier.
    write_report : Writes an HTML page about a fitted classifier.
    save_model : Writes a fitted classifier to a file.

    Notes
    -----
    In leave-one-out, everything that is fitted to labels is fitted anew for each fold, and every row is left
    out of its own prediction together with its duplicates. From tables of more than 20,000 rows, a random
    subsample is used in which the classes keep their shares. At most 2000 / n_classes random rows of each
    class are predicted. The final members are fitted to all rows. A member uses at most 0.4 times as many
    variables (of measurements) as there are rows, but never fewer than 30 or more than 200. In wider tables
    it uses the variables in which the classes differ most, chosen within each fold.

    If a class has more than `max_rows` rows, scales, members and markers are learnt from about 100,000 of
    them. The kernels on the centroids keep the mean and the covariance of the class. The rows that
    leave-one-out predicts are in no centroid: they calibrate weights, typicality and prediction sets. The
    guide has the details.

    No member chooses bandwidths at each sample, as `RodeoClassifier` does: this takes longer and predicts
    worse.

    References
    ----------
    .. [1] W.-P. N. Chen, Y.-c. I. Chang. Fast multi-class probabilistic classifier by sparse
       non-parametric density estimation.
    .. [2] M. West. Approximating posterior distributions by mixtures. Journal of the Royal Statistical
       Society B 55 (1993). Kernels that are shrunk towards a mean.
    .. [3] C. Genest, J. V. Zidek. Combining probability distributions: a critique and an annotated
       bibliography. Statistical Science 1 (1986). Logarithmic pools.

    Examples
    --------
    >>> from corral import CorralClassifier
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(100, groups=(1, 2, 3), random_state=0)
    >>> X_test, y_test = make_shifted_groups(100, groups=(1, 2, 3), random_state=1)
    >>> classifier = CorralClassifier(random_state=0).fit(X, y)
    >>> classifier.score(X_test, y_test) > 0.75
    True
    >>> print(classifier.describe())
    1: x0 narrow (-0.05597 to 0.06337; others -0.2504 to 0.1591), x1 low (-0.01653; others 0.1698)
    2: x0 high (0.1591; others -0.137), x1 does not describe the class, but carries much evidence for it
    3: x0 low (-0.2506; others 0.07095)
    """

    priors: Priors = "empirical"
    class_weight: ClassWeight = None
    min_effect: float = MIN_EFFECT
    categorical_features: Categorical = "from_dtype"
    max_rows: int | None = MAX_ROWS
    n_jobs: int | None = None
    verbose: int = 0
    random_state: int | np.random.RandomState | None = None

    model_: PoolModel = field(init=False)

    def __corral_validate__(self) -> None:
        super().__corral_validate__()
        if self._check_parameters() != self.model_.min_effect:
            raise ValueError("min_effect differs from the min_effect of the model")

    def _check_parameters(self) -> float:
        """Check all parameters but the priors; return `min_effect`."""
        check_n_jobs(self.n_jobs)
        if self.max_rows is not None:
            check_integer("max_rows", self.max_rows)
        return check_number("min_effect", self.min_effect, 0.0, 1.0, inclusive=True)

    def _settings(self, classes: NDArray[Any], class_totals: Floats) -> PoolSettings:
        """Make the settings of the pool; `class_totals` (n_classes,) are sums of row weights."""
        return PoolSettings(
            prior=class_priors(self, classes, class_totals),
            empirical=are_empirical(self),
            min_effect=self._check_parameters(),
            max_rows=self.max_rows,
        )

    def _learn_at_once(self, training: TrainingRows) -> Self:
        # Only `fit` warns: `partial_fit` may begin with single rows.
        warn_of_single_rows(training.y)
        return super()._learn_at_once(training)

    def _learn(self, training: TrainingRows, data: LabelledRows) -> Self:
        settings, random = self._settings(data.labels, data.counts), check_random_state(self.random_state)
        self.model_ = learn_pool(training, data, settings, random, self._computation())
        warn_of_duplicates(self, training, data.n_duplicates)
        return self

    @property
    def members_(self) -> list[PoolMember]:
        """The members of the pool as classifiers, the largest weight first."""
        members = []
        for kept, model in zip(self.model_.pool.members, self.model_.single_members, strict=True):
            member = PoolMember(name=kept.title, n_jobs=self.n_jobs, verbose=self.verbose)
            member.model_ = model
            take_names_from(self, member)
            members.append(member)
        return members

    @property
    def member_weights_(self) -> Floats:
        """Weights (n_members,) of the members."""
        return self.model_.pool.weights

    @property
    def member_scores_(self) -> dict[str, Any]:
        """Columns of a table of the members that were tried."""
        table = self.model_.pool.table
        titles = [kind_of(identifier).title for identifier in table["member"]]
        return {**table, "member": np.array(titles, dtype=object)}

    @property
    def cv_accuracy_(self) -> float:
        """Estimate of the accuracy by leave-one-out."""
        return self.model_.pool.scores.accuracy

    @property
    def cv_log_loss_(self) -> float:
        """Estimate of the log loss by leave-one-out."""
        return self.model_.pool.scores.log_loss

    @property
    def cv_balanced_accuracy_(self) -> float:
        """Mean of `cv_recall_` over the classes."""
        return self.model_.pool.scores.balanced_accuracy

    @property
    def cv_recall_(self) -> Floats:
        """Share (n_classes,) of the rows of each class that are predicted as this class; NaN without rows."""
        return self.model_.pool.scores.recall

    @property
    def markers_(self) -> Bools:
        """Which variables mark each class (n_classes, n_features)."""
        return self.model_.contrast.markers
