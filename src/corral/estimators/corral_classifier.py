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
from corral.estimators.validation import (
    check_integer,
    check_n_jobs,
    check_number,
    take_names_from,
)
from corral.estimators.warned import warn_of_duplicates, warn_of_single_rows
from corral.markers.contrast import MIN_EFFECT
from corral.pool.learning import PoolSettings, learn_pool
from corral.pool.members import kind_of
from corral.pool.model import PoolModel

# A class with more rows is thinned, by default.
MAX_ROWS = 3000


@dataclass(kw_only=True, eq=False, repr=False)
class PoolMember(DensityClassifier):
    """One member of a pool, as a classifier that stands on its own.

    It predicts and explains as every classifier here does, at the temperature at which it is calibrated.
    `CorralClassifier` makes it; it cannot be fitted by itself.
    """

    name: str = ""  # what kind of densities it has, and on which scale
    n_jobs: int | None = None
    verbose: int = 0

    model_: PoolModel = field(init=False)
    categorical_features = "from_dtype"  # no parameter: the pool has read the columns

    def _learn(self, training: TrainingRows, data: LabelledRows) -> Self:
        raise TypeError("a member of a pool cannot be fitted by itself: fit a CorralClassifier.")


@dataclass(kw_only=True, eq=False, repr=False)
class CorralClassifier(DensityClassifier):
    r"""Classify by a pool of class densities, weighed and calibrated by leave-one-out.

    No density is best for all tables, so several are pooled. The posterior is that of a weighted sum of log
    densities,

    .. math::

        P(y \mid x) = (1 - \varepsilon)
            \frac{\pi_y \prod_m \hat p_m(x \mid y)^{w_m}}
                 {\sum_{y'} \pi_{y'} \prod_m \hat p_m(x \mid y')^{w_m}}
            + \varepsilon \pi_y, \qquad \varepsilon = \frac 1 {n + 2}.

    The members :math:`\hat p_m` are kernel densities on different scales and with different kernels. The
    weights :math:`w_m > 0` minimise the leave-one-out log loss, shrunk towards equal shares of members that
    are each calibrated on their own, so that probabilities are calibrated. :math:`\varepsilon`, Laplace's
    rule of succession for an error that n rows have not shown, keeps a few rows from making it certain.

    Parameters
    ----------
    priors : {"empirical", "uniform"}, dict or array-like of shape (n_classes,), default="empirical"
        Class probabilities :math:`\pi_y`: the shares of training rows, all alike, or given ones, as
        ``{class: prior}`` or in the order of `classes_`. Classes weigh accordingly in the search.
    class_weight : "balanced", dict or None, default=None
        Factors of the priors, as ``{class: weight}``; a class that is not named has weight 1. "balanced"
        makes all classes equal, as ``priors="uniform"`` does.
    min_effect : float, default=0.15
        Least difference, in units of Cliff's delta, that makes a variable describe a class.
    categorical_features : {"from_dtype"} or array-like or None, default="from_dtype"
        Which columns hold categories rather than measurements; see `RodeoClassifier`.
    max_rows : int or None, default=3000
        A class with more rows is represented by so many centroids of all rows or, in tables with missing
        values, categories or groups, by a random subsample of so many, so that neither predictions nor model
        files grow with the rows; None keeps all.
    n_jobs, verbose
        As in `RodeoClassifier`.
    random_state : int, RandomState or None, default=None
        Divides the rows into folds and, of many rows, picks those that the search reads. Up to 400 rows are
        divided several times, so that probabilities change little with the seed.

    Attributes
    ----------
    members_ : list of classifiers
        The members that are kept, each a classifier of its own, the heaviest first.
    member_weights_ : ndarray of shape (n_members,)
        Their weights :math:`w_m`.
    cv_accuracy_ : float
        Leave-one-out accuracy to expect: each fifth of the rows is judged by weights that are fitted to the
        other four, so it does not profit from having chosen. Classes weigh as the priors say: with uniform
        ones and unequal classes it is the mean of their accuracies. With few rows of many classes it is too
        high: of 30 classes with five rows of noise each it is 0.044, where 0.033 is right.
    cv_log_loss_ : float
        Log loss, likewise.
    cv_balanced_accuracy_ : float
        Mean of `cv_recall_` over the classes; a rare class that is never found lowers it as much as any.
    cv_recall_ : ndarray of shape (n_classes,)
        Share of the rows of each class that get its label, likewise; NaN for a class without rows.
    member_scores_ : dict of arrays
        One entry per kind of member that was tried: "member", "scale", "bandwidth" and "pull" (the factor by
        which rows are pulled towards the mean of their class), and by leave-one-out "accuracy", "log_loss"
        and "temperature"; "weight" and "share" of the pool. Made for `pandas.DataFrame`.
    markers_ : ndarray of shape (n_classes, n_features), bool
        Which variables mark each class, whatever predicts best; see `describe` and `MarkerSelector`.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each variable in the mean evidence for the classes at their own rows, 0 where it is negative;
        they sum to 1, or are all 0.
    model_ : PoolModel
        All that `fit` has learnt.
    classes_, class_count_, class_prior_, n_copies_, n_features_in_, feature_names_in_
        As in `RodeoClassifier`.

    See Also
    --------
    RodeoClassifier : The paper's rule, which chooses bandwidths at each sample by the Rodeo.
    MarkerSelector : The variables that mark each class, without a classifier.
    write_report : A page with what it has learnt.
    save_model : A file to load it from.

    Notes
    -----
    Everything that is fitted to labels is fitted anew for each fold of the rows that it is judged by, and
    every row is predicted without itself and its copies. Above 20,000 rows the search uses a random choice of
    them, in proportion to the classes. Of a class with more than 2000 / n_classes rows it leaves out only so
    many, drawn at random. The members are fitted to all rows. A member has at most 0.4 times as many
    measurements as there are rows, but no fewer than 30 and no more than 200: of wider tables those in which
    the classes differ most are chosen first, within each fold.

    If a class has more than `max_rows` rows, scales, members and markers are learnt from about 100,000 of
    them, and each class is represented by `max_rows` centroids of all its rows, with kernels that keep its
    mean and covariance. Rows that the search has left out are in no centroid: weights, typicality and
    prediction sets are calibrated by them. Tables with missing values, categories or groups keep a random
    subsample instead. The guide has the details.

    No member chooses bandwidths at each sample, as the paper does: it costs more and predicts worse. Use
    `RodeoClassifier` for that.

    References
    ----------
    .. [1] W.-P. N. Chen, Y.-c. I. Chang. Fast multi-class probabilistic classifier by sparse
       non-parametric density estimation.
    .. [2] M. West. Approximating posterior distributions by mixtures. Journal of the Royal Statistical
       Society B 55 (1993), on kernels that are pulled towards a mean.
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
    2: x0 high (0.1591; others -0.137), labels also rest on x1
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
            raise ValueError("min_effect is not that of the model")

    def _check_parameters(self) -> float:
        """Refuse a bad parameter but for the priors before any work; return the least effect."""
        check_n_jobs(self.n_jobs)
        if self.max_rows is not None:
            check_integer("max_rows", self.max_rows)
        return check_number("min_effect", self.min_effect, 0.0, 1.0, inclusive=True)

    def _settings(self, classes: NDArray[Any], class_totals: Floats) -> PoolSettings:
        """What a pool of classes with these sums of weights (n_classes,) is learnt by."""
        return PoolSettings(
            prior=class_priors(self, classes, class_totals),
            empirical=are_empirical(self),
            min_effect=self._check_parameters(),
            max_rows=self.max_rows,
        )

    def _learn_at_once(self, training: TrainingRows) -> Self:
        """Fit validated rows that no others follow; those of `partial_fit` may be single at first."""
        warn_of_single_rows(training.y)
        return super()._learn_at_once(training)

    def _learn(self, training: TrainingRows, data: LabelledRows) -> Self:
        settings, random = self._settings(data.labels, data.counts), check_random_state(self.random_state)
        self.model_ = learn_pool(training, data, settings, random, self._computation())
        warn_of_duplicates(self, training, data.n_duplicates)
        return self

    @property
    def members_(self) -> list[PoolMember]:
        """The members that are kept, each a classifier of its own, the heaviest first."""
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
