"""RodeoClassifier: algorithms 1 to 3."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from corral.array_types import Bools, Floats
from corral.data.dataset import LabelledRows, TrainingRows
from corral.estimators.base import Categorical
from corral.estimators.collections import by_rows
from corral.estimators.density_classifier import DensityClassifier
from corral.estimators.priors import ClassWeight, Priors, class_priors
from corral.estimators.validation import check_choice, check_number, check_one_row, check_rodeo
from corral.estimators.warned import warn_of_duplicates, warn_of_empty_selections
from corral.markers.contrast import MIN_EFFECT
from corral.rodeo.model import FittedModel, learn_model
from corral.rodeo.path import RodeoPath, density_path
from corral.rodeo.settings import ModelSettings


@dataclass(kw_only=True, eq=False, repr=False)
class RodeoClassifier(DensityClassifier):
    r"""Classify by kernel densities, one per class, whose bandwidths are chosen at each sample.

    For a sample :math:`x` and each class :math:`y`, the Rodeo chooses bandwidths
    :math:`h^y_1, \dots, h^y_d` (algorithm 1 of [1]_; see `RodeoDensity`), and the class densities

    .. math::

        \hat p_y(x) = \frac 1 {n_y} \sum_{i=1}^{n_y} \prod_{j=1}^d \frac 1 {h^y_j}
            \varphi\Big(\frac{x_j - x^y_{ij}}{h^y_j}\Big)

    are compared: :math:`P(y \mid x) = \pi_y \hat p_y(x) / \sum_{y'} \pi_{y'} \hat p_{y'}(x)` (algorithm
    3). A bandwidth that shrinks at the class's own rows marks a variable that describes the class
    (algorithm 2); `cutpoint` sets how much it must shrink.

    The defaults are the paper's rule; the paper leaves the scale and the order of updates open. Class
    bandwidths and densities of selected variables go beyond it.

    Parameters
    ----------
    bandwidth : {"local", "class"}, default="local"
        "local" runs the Rodeo at each sample, as the paper does. "class" uses one vector per class, the
        mean of the bandwidths at the class's own rows (`bandwidths_`). Prediction is then a plain kernel sum:
        much faster, and more accurate where most variables are noise for a class.
    features : {"all", "selected"}, default="all"
        "selected" estimates the density of each class over its relevant variables alone and takes the
        others as uniform over their range in the training rows, so that classes with different
        variables compare fairly. A class without relevant variables keeps them all.
    update : {"simultaneous", "sequential"}, default="simultaneous"
        Whether bandwidths change after each sweep over the variables, so that the order of columns
        does not matter, or inside it, as algorithm 1 is printed.
    scale : {"range", "standard", "rank"} or None, default="range"
        Scale on which bandwidths are chosen, learnt on the training rows of all classes together: each
        column is divided by its range or by its standard deviation, replaced by its rank (the share of
        training rows below, counting ties half), or taken as it is.
    beta : float, default=0.9
        Factor by which a bandwidth shrinks, between 0 and 1.
    c0 : float, default=1.0
        Constant of the initial bandwidth, :math:`h_0 = c_0 / \log\log \max(n_y, 16)`.
    cutpoint : float, default=-1.0
        Largest z-score of a relevant variable: its mean bandwidth, standardised over the variables of the
        class. With two variables the scores are -0.707 and 0.707 (or 0 both), so that -1 selects neither.
    min_effect : float, default=0.15
        Least effect of a marker, as Cliff's delta; see `MarkerSelector`. Only `describe` uses it.
    priors : {"uniform", "empirical"}, dict or array-like of shape (n_classes,), default="uniform"
        Class probabilities :math:`\pi_y`: equal (algorithm 3), the shares of training rows
        (theorem 1), or given ones, as ``{class: prior}`` or in the order of `classes_`.
    class_weight : "balanced", dict or None, default=None
        Factors of the priors, as ``{class: weight}``; a class that is not named has weight 1. "balanced"
        makes all classes equal. Densities, bandwidths and markers do not depend on it.
    min_bandwidth : "auto" or float, default="auto"
        Least bandwidth of a scaled variable: a bandwidth that would fall below it stays. At a point mass (a
        constant, discrete or tied variable) the derivative never fades, and without a floor the loop would
        not end. "auto" is :math:`h_0 / n_y`, well below the bandwidths of continuous variables.
    categorical_features : {"from_dtype"} or array-like or None, default="from_dtype"
        Which columns hold categories rather than measurements: columns of frames that are text, categories or
        booleans; columns by name, by position or by a mask; or none. The positions of ordered categories
        count as measurements.
    n_jobs : int, default=None
        Number of threads; None means 1 unless in a `joblib.parallel_config` context, -1 all cores.
        The result does not depend on it.
    verbose : int, default=0
        If positive, show a progress bar on the standard error stream.
    random_state : int, RandomState or None, default=None
        Chooses the rows over which bandwidths are averaged in a class of more than 1000.

    Attributes
    ----------
    model_ : FittedModel
        All that `fit` has learnt; the attributes below come from it.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_count_ : ndarray of shape (n_classes,)
        Number of training rows of each class, weights counted.
    class_prior_ : ndarray of shape (n_classes,)
        Probability of each class before a sample is seen: its prior, times its class weight.
    n_duplicates_ : int
        Number of training rows that are duplicates of others; see Notes.
    initial_bandwidth_ : ndarray of shape (n_classes,)
        Bandwidth that every variable starts from.
    bandwidths_ : ndarray of shape (n_classes, n_features)
        Mean bandwidth at the class's own rows, each row leaving itself out.
    zscores_ : ndarray of shape (n_classes, n_features)
        Mean bandwidths standardised over the variables of a class.
    relevant_ : ndarray of shape (n_classes, n_features), bool
        Which variables describe each class; never one that is constant in all training rows. With
        ``features="selected"``, `fit` gives an `EmptySelectionWarning` if a class has none.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each variable in the mean evidence for the classes at their own rows, 0 where it is negative;
        they sum to 1, or are all 0.
    n_features_in_, feature_names_in_ : int, ndarray of shape (`n_features_in_`,)
        Number of variables seen in `fit`, and their names if `X` had any.

    See Also
    --------
    CorralClassifier : Pools several class densities and calibrates them.
    RodeoDensity : The density of one sample of rows.
    RodeoSelector : The relevant variables as a step of a pipeline.

    Notes
    -----
    In a fit a row is left out of its own estimates with all its weight. A common factor of all weights
    changes nothing: :math:`n_y` in bandwidths and thresholds is Kish's effective number of rows,
    :math:`(\sum_i w_i)^2 / \sum_i w_i^2`, and empirical priors are shares of the sums. Rows that a table
    repeats count as one row with the sum of their weights, and are left out together, whatever their labels.
    Rows that agree because all columns take few values are separate observations. Equal rows of different
    groups are duplicates only if the groups share most of their rows, see `fit`.

    With the scale "range" or "standard", a relevant variable is one in which the class is *concentrated*,
    more than in its other variables. That may hold in every class, and there is no control of errors. With
    the scale "rank", a relevant variable is one that *differs from the background*, since a column that is
    distributed in the class as in all classes together is uniform. With the scale "standard" or None
    bandwidths may not shrink, which leaves a plain kernel density estimate and no relevant variables: compare
    `bandwidths_` with `initial_bandwidth_`.

    The methods that predict rows also take dask arrays and dataframes: lazily, block by block, with the same
    chunks and index.

    References
    ----------
    .. [1] W.-P. N. Chen, Y.-c. I. Chang. Fast multi-class probabilistic classifier by sparse
       non-parametric density estimation.

    Examples
    --------
    >>> from corral import RodeoClassifier
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(200, groups=(4, 5), random_state=0)
    >>> X_test, y_test = make_shifted_groups(150, groups=(4, 5), random_state=1)
    >>> classifier = RodeoClassifier().fit(X, y)
    >>> classifier.score(X_test, y_test) > 0.98
    True
    >>> print(classifier.explain(X_test[:1]))
    sample 0: 4 (0.84) rather than 5 (0.16)
      evidence: x0 +1.73, x2 +0.10, x6 +0.08, x9 -0.08
      closest:  row 41 (10%), row 157 (6%), row 172 (4%)
    """

    bandwidth: Literal["local", "class"] = "local"
    features: Literal["all", "selected"] = "all"
    update: Literal["simultaneous", "sequential"] = "simultaneous"
    scale: Literal["range", "standard", "rank"] | None = "range"
    beta: float = 0.9
    c0: float = 1.0
    cutpoint: float = -1.0
    min_effect: float = MIN_EFFECT
    priors: Priors = "uniform"
    class_weight: ClassWeight = None
    min_bandwidth: float | Literal["auto"] = "auto"
    categorical_features: Categorical = "from_dtype"
    n_jobs: int | None = None
    verbose: int = 0
    random_state: int | np.random.RandomState | None = None

    model_: FittedModel = field(init=False)

    def __corral_validate__(self) -> None:
        super().__corral_validate__()
        if self._model_settings() != self.model_.settings:
            raise ValueError("the settings of the model differ from the parameters")

    def _model_settings(self) -> ModelSettings:
        """Check all parameters but the priors, and return those that a model depends on."""
        check_choice("bandwidth", self.bandwidth, ("local", "class"))
        check_choice("features", self.features, ("all", "selected"))
        return ModelSettings(
            rodeo=check_rodeo(self, ("range", "standard", "rank", None)),
            scale=self.scale,
            bandwidth=self.bandwidth,
            features=self.features,
            cutpoint=check_number("cutpoint", self.cutpoint, -np.inf, np.inf, inclusive=True),
            min_effect=check_number("min_effect", self.min_effect, 0.0, 1.0, inclusive=True),
        )

    def _learn(self, training: TrainingRows, data: LabelledRows) -> Self:
        settings = self._model_settings()
        prior = class_priors(self, data.labels, data.counts)
        random = check_random_state(self.random_state)
        self.model_ = learn_model(training, data, prior, settings, random, self._computation())
        warn_of_empty_selections(self.model_)
        warn_of_duplicates(self, training, data.n_duplicates)
        return self

    @by_rows("classes", "features")
    def local_bandwidths(self, X: ArrayLike) -> Floats:
        """Bandwidths (n_samples, n_classes, n_features) of the scaled variables at each row of `X`.

        The Rodeo chooses them at the row; with ``bandwidth="class"`` they are those in `bandwidths_`. With
        ``features="selected"`` a variable that is not relevant keeps the initial bandwidth.
        """
        samples = self._check_samples(X)
        h = self.model_.estimates(samples, self._computation(), bandwidths=True).bandwidths
        assert h is not None
        return h

    def bandwidth_path(self, X: ArrayLike, label: Any) -> RodeoPath:
        """How the Rodeo chooses the bandwidths of one sample in one class, sweep by sweep.

        With ``bandwidth="local"`` it ends at the values of `local_bandwidths`. With "class" the model does
        not use it. As in `predict` the sample counts as a new row, even if it is a training row.

        `X` is the sample (1, n_features) and `label` one of `classes_`. With ``features="selected"`` the
        sweeps leave out variables that are not relevant.
        """
        x = check_one_row(self.model_.scale.transform(self._check_samples(X)))
        labels = self.classes_.tolist()
        if np.ndim(label) or label not in labels:
            raise ValueError(f"label must be one of classes_, got {label!r}.")
        density = self.model_.densities[labels.index(label)]
        return density_path(density, x, self.model_.settings.rodeo.update)

    @property
    def initial_bandwidth_(self) -> Floats:
        """Bandwidth that every variable of a class starts from."""
        return self.model_.bandwidths.initial

    @property
    def bandwidths_(self) -> Floats:
        """Mean bandwidth at the class's own rows, each row leaving itself out."""
        return self.model_.bandwidths.means

    @property
    def zscores_(self) -> Floats:
        """Mean bandwidths standardised over the variables of a class."""
        return self.model_.bandwidths.zscores

    @property
    def relevant_(self) -> Bools:
        """Which variables are relevant for each class, by algorithm 2."""
        return self.model_.relevant

    def _selected_in(self, data: LabelledRows, random: np.random.RandomState) -> Bools:
        """Find the relevant variables (n_classes, n_features) of each class in a part of the rows."""
        model = self.model_
        settings = replace(model.settings, features="all")
        return learn_model(model.training, data, model.prior, settings, random, self._computation()).relevant
