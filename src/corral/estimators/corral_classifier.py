"""CorralClassifier: a pool of class densities, chosen and calibrated by leave-one-out."""

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

# A class with more rows is compressed, by default.
MAX_ROWS = 3000


@dataclass(kw_only=True, eq=False, repr=False)
class PoolMember(DensityClassifier):
    """One member of a pool as a classifier, at the temperature at which it is calibrated.

    `CorralClassifier` makes it; it cannot be fitted by itself.
    """

    name: str = ""  # the kind of its densities, and their scale
    n_jobs: int | None = None
    verbose: int = 0

    model_: PoolModel = field(init=False)
    categorical_features = "from_dtype"  # no parameter: the pool has read the columns

    def _learn(self, training: TrainingRows, data: LabelledRows) -> Self:
        raise TypeError("a member of a pool cannot be fitted by itself: fit a CorralClassifier.")


@dataclass(kw_only=True, eq=False, repr=False)
class CorralClassifier(DensityClassifier):
    r"""Classify by a pool of class densities, weighed and calibrated by leave-one-out.

    No density is best for all tables, so several are pooled. The posterior comes from a weighted sum of log
    densities,

    .. math::

        P(y \mid x) = (1 - \varepsilon)
            \frac{\pi_y \prod_m \hat p_m(x \mid y)^{w_m}}
                 {\sum_{y'} \pi_{y'} \prod_m \hat p_m(x \mid y')^{w_m}}
            + \varepsilon \pi_y, \qquad \varepsilon = \frac 1 {n + 2}.

    The members :math:`\hat p_m` are kernel densities on different scales and with different kernels. The
    weights :math:`w_m > 0` minimise the leave-one-out log loss, which calibrates the probabilities. They are
    shrunk towards equal weights of members that are each calibrated on their own. The prior mixing
    :math:`\varepsilon`, Laplace's rule of succession for an error that n rows have not shown, keeps
    probabilities below 1 where there are few rows.

    Parameters
    ----------
    priors : {"empirical", "uniform"}, dict or array-like of shape (n_classes,), default="empirical"
        Class probabilities :math:`\pi_y`: the shares of training rows, equal ones, or given ones, as
        ``{class: prior}`` or in the order of `classes_`. Classes have the same weights in the search.
    class_weight : "balanced", dict or None, default=None
        Factors of the priors, as ``{class: weight}``; a class that is not named has weight 1. "balanced"
        makes all classes equal, as ``priors="uniform"`` does.
    min_effect : float, default=0.15
        Least effect of a marker, as Cliff's delta; see `MarkerSelector`.
    categorical_features : {"from_dtype"} or array-like or None, default="from_dtype"
        Which columns hold categories rather than measurements; see `RodeoClassifier`.
    max_rows : int or None, default=3000
        A class with more rows is compressed to so many centroids of its rows or, in tables with missing
        values, categories or groups, to a random subsample of so many rows, so that neither predictions nor
        model files grow with the rows. None keeps all rows.
    n_jobs, verbose
        As in `RodeoClassifier`.
    random_state : int, RandomState or None, default=None
        Divides the rows into folds and, in large tables, picks the rows that the search reads. Up to 400 rows
        are divided several times, so that probabilities change little with the seed.

    Attributes
    ----------
    members_ : list of classifiers
        The members that are kept, each a classifier of its own, the heaviest first.
    member_weights_ : ndarray of shape (n_members,)
        Their weights :math:`w_m`.
    cv_accuracy_ : float
        Leave-one-out accuracy to expect. Each fifth of the rows is predicted with member weights fitted to
        the other four, so that the choice of weights does not bias it. Classes have the weights of the
        priors: with uniform priors it is the mean of the recalls. With few rows of many classes it is too
        high: with 30 classes of five rows of noise each it is 0.044 instead of 0.033.
    cv_log_loss_ : float
        Log loss to expect, computed in the same way.
    cv_balanced_accuracy_ : float
        Mean of `cv_recall_` over the classes, rare or frequent.
    cv_recall_ : ndarray of shape (n_classes,)
        Share of the rows of each class that get its label, computed in the same way; NaN for a class
        without rows.
    member_scores_ : dict of arrays
        One entry per kind of member that was tried: "member", "scale", "bandwidth" and "pull" (the factor by
        which rows are shrunk towards the mean of their class), and by leave-one-out "accuracy", "log_loss"
        and "temperature"; "weight" and "share" of the pool. `pandas.DataFrame` takes it.
    markers_ : ndarray of shape (n_classes, n_features), bool
        Which variables mark each class, whatever predicts best; see `describe` and `MarkerSelector`.
    model_ : PoolModel
        All that `fit` has learnt.
    classes_, class_count_, class_prior_, n_duplicates_, feature_importances_, n_features_in_,
    feature_names_in_
        As in `RodeoClassifier`.

    See Also
    --------
    RodeoClassifier : The paper's rule, which chooses bandwidths at each sample by the Rodeo.
    MarkerSelector : The variables that mark each class, without a classifier.
    write_report : A page with what it has learnt.
    save_model : A file to load it from.

    Notes
    -----
    Everything that is fitted to labels is fitted anew for each fold, and every row is predicted without
    itself and its duplicates. Above 20,000 rows the search uses a random subsample, in proportion to the
    classes. In each class it predicts at most 2000 / n_classes rows, picked at random. The members are fitted
    to all rows. A member uses at most 0.4 times as many measurements as there are rows, but no fewer than 30
    and no more than 200. In wider tables the variables in which the classes differ most are chosen within
    each fold.

    If a class has more than `max_rows` rows, scales, members and markers are learnt from about 100,000 of
    them. The kernels on the centroids keep the mean and the covariance of the class. Rows that the search
    predicts are in no centroid: they calibrate weights, typicality and prediction sets. The guide has the
    details.

    No member chooses bandwidths at each sample, as the paper does: it costs more and predicts worse. Use
    `RodeoClassifier` for that.

    References
    ----------
    .. [1] W.-P. N. Chen, Y.-c. I. Chang. Fast multi-class probabilistic classifier by sparse
       non-parametric density estimation.
    .. [2] M. West. Approximating posterior distributions by mixtures. Journal of the Royal Statistical
       Society B 55 (1993), on kernels that are shrunk towards a mean.
    .. [3] C. Genest, J. V. Zidek. Combining probability distributions: a critique and an annotated
       bibliography. Statistical Science 1 (1986), on logarithmic pools.

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
        """Refuse a bad parameter, other than the priors; return the least effect of a marker."""
        check_n_jobs(self.n_jobs)
        if self.max_rows is not None:
            check_integer("max_rows", self.max_rows)
        return check_number("min_effect", self.min_effect, 0.0, 1.0, inclusive=True)

    def _settings(self, classes: NDArray[Any], class_totals: Floats) -> PoolSettings:
        """Settings of a pool whose classes have these sums of weights (n_classes,)."""
        return PoolSettings(
            prior=class_priors(self, classes, class_totals),
            empirical=are_empirical(self),
            min_effect=self._check_parameters(),
            max_rows=self.max_rows,
        )

    def _learn_at_once(self, training: TrainingRows) -> Self:
        """Warn if all classes have a single row, which `partial_fit` may begin with; then fit."""
        warn_of_single_rows(training.y)
        return super()._learn_at_once(training)

    def _learn(self, training: TrainingRows, data: LabelledRows) -> Self:
        settings, random = self._settings(data.labels, data.counts), check_random_state(self.random_state)
        self.model_ = learn_pool(training, data, settings, random, self._computation())
        warn_of_duplicates(self, training, data.n_duplicates)
        return self

    @property
    def members_(self) -> list[PoolMember]:
        """The members that are kept, the heaviest first."""
        members = []
        for kept, model in zip(self.model_.pool.members, self.model_.single_members, strict=True):
            member = PoolMember(name=kept.title, n_jobs=self.n_jobs, verbose=self.verbose)
            member.model_ = model
            take_names_from(self, member)
            members.append(member)
        return members

    @property
    def member_weights_(self) -> Floats:
        """Weights of the members."""
        return self.model_.pool.weights

    @property
    def member_scores_(self) -> dict[str, Any]:
        """One entry per kind of member that was tried."""
        table = self.model_.pool.table
        titles = [kind_of(identifier).title for identifier in table["member"]]
        return {**table, "member": np.array(titles, dtype=object)}

    @property
    def cv_accuracy_(self) -> float:
        """Leave-one-out accuracy to expect."""
        return self.model_.pool.scores.accuracy

    @property
    def cv_log_loss_(self) -> float:
        """Leave-one-out log loss to expect."""
        return self.model_.pool.scores.log_loss

    @property
    def cv_balanced_accuracy_(self) -> float:
        """Mean of `cv_recall_` over the classes."""
        return self.model_.pool.scores.balanced_accuracy

    @property
    def cv_recall_(self) -> Floats:
        """Share of the rows of each class that get its label; NaN for a class without rows."""
        return self.model_.pool.scores.recall

    @property
    def markers_(self) -> Bools:
        """Which variables mark each class, whatever predicts best."""
        return self.model_.contrast.markers
