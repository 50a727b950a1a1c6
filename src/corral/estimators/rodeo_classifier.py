"""RodeoClassifier: algorithms 1 to 3 of the paper.

The Rodeo (algorithm 1) starts with wide bandwidths and shrinks them variable by variable, in sweeps over the
variables, as long as the density varies in the variable. Algorithm 2 finds the variables whose bandwidths
shrink most in a class, its relevant variables; algorithm 3 classifies.
"""

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
    3). A variable is *relevant* for a class if its bandwidth shrinks at the rows of the class (algorithm 2);
    `cutpoint` sets how much it must shrink.

    With the defaults this is the method of the paper, which leaves the scale and the order of updates open.
    The options ``bandwidth="class"`` and ``features="selected"`` are not in the paper.

    Parameters
    ----------
    bandwidth : {"local", "class"}, default="local"
        "local" runs the Rodeo at each sample, as the paper does. "class" uses the same bandwidths at all
        samples: the means of the bandwidths at the rows of the class (`bandwidths_`). Predictions are then
        much faster, and more accurate if most variables are noise for a class.
    features : {"all", "selected"}, default="all"
        "all" estimates the density of each class over all variables. "selected" estimates it over the
        relevant variables of the class; the density of any other variable is uniform over the range of the
        training rows, so that densities of classes with different relevant variables can be compared. For a
        class without relevant variables, all variables are used.
    update : {"simultaneous", "sequential"}, default="simultaneous"
        "simultaneous" changes all bandwidths after each sweep over the variables, so that the order of the
        columns does not matter. "sequential" changes each bandwidth within the sweep, as algorithm 1 is
        printed.
    scale : {"range", "standard", "rank"} or None, default="range"
        Scale on which bandwidths are chosen, learnt from the training rows of all classes together. "range"
        divides each column by its range, "standard" by its standard deviation. "rank" replaces a value by
        the share of training values below it, plus half the share of equal values. None changes nothing.
    beta : float, default=0.9
        Factor by which a bandwidth shrinks, between 0 and 1.
    c0 : float, default=1.0
        Constant of the initial bandwidth, :math:`h_0 = c_0 / \log\log \max(n_y, 16)`.
    cutpoint : float, default=-1.0
        Largest z-score of a relevant variable. The z-score is the mean bandwidth of the variable,
        standardized over the variables of the class. With two variables the z-scores are -0.707 and 0.707, or
        both 0, so that a cutpoint of -1 selects none.
    min_effect : float, default=0.15
        Least effect of a marker, as Cliff's delta; see `MarkerSelector`. Predictions do not depend on it.
    priors : {"uniform", "empirical"}, dict or array-like of shape (n_classes,), default="uniform"
        Class probabilities :math:`\pi_y`: "uniform" for equal priors (algorithm 3), "empirical" for the
        shares of training rows (theorem 1), or numbers, as ``{class: prior}`` or in the order of `classes_`.
    class_weight : "balanced", dict or None, default=None
        Factors of the priors, as ``{class: weight}``; a class that is not in the dict has weight 1.
        "balanced" makes the priors equal. Densities, bandwidths and markers do not depend on it.
    min_bandwidth : "auto" or float, default="auto"
        Least bandwidth of a scaled variable: a bandwidth does not shrink if it would fall below this value.
        Without it the bandwidths of constant and discrete variables would shrink without end. "auto" is
        :math:`h_0 / n_y`, well below the bandwidths of continuous variables.
    categorical_features : {"from_dtype"} or array-like or None, default="from_dtype"
        Which columns hold categories rather than measurements. "from_dtype": in frames, columns whose type is
        text, category or boolean. An array lists columns by name or by position, or is a mask of columns.
        None: no columns. Ordered categories are replaced by their positions, which count as measurements.
    n_jobs : int, default=None
        Number of threads. None means 1 unless in a `joblib.parallel_config` context, and -1 means all cores.
        The result does not depend on it.
    verbose : int, default=0
        If positive, show a progress bar on the standard error stream.
    random_state : int, RandomState or None, default=None
        Picks the rows over which bandwidths are averaged in a class of more than 1000 rows.

    Attributes
    ----------
    model_ : FittedModel
        Everything that `fit` learns; the other attributes read it.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    class_count_ : ndarray of shape (n_classes,)
        Sum of the weights of the training rows of each class.
    class_prior_ : ndarray of shape (n_classes,)
        Prior probability of each class, with class weights; the priors sum to 1.
    n_duplicates_ : int
        Number of training rows that are duplicates of other training rows; see Notes.
    initial_bandwidth_ : ndarray of shape (n_classes,)
        Bandwidth from which the Rodeo starts in each class.
    bandwidths_ : ndarray of shape (n_classes, n_features)
        Mean bandwidths at the rows of the class, each row left out of its own density.
    zscores_ : ndarray of shape (n_classes, n_features)
        Mean bandwidths, standardized over the variables of each class.
    relevant_ : ndarray of shape (n_classes, n_features), bool
        Which variables are relevant for each class. A variable that is constant in all training rows is never
        relevant. With ``features="selected"``, `fit` warns of classes without relevant variables
        (`EmptySelectionWarning`).
    feature_importances_ : ndarray of shape (n_features,)
        Share of each variable in the mean evidence of `describe`, averaged over the classes. Negative means
        count as 0. The shares sum to 1, or are all 0 if no mean is positive.
    n_features_in_, feature_names_in_ : int, ndarray of shape (`n_features_in_`,)
        Number of variables seen in `fit`, and their names if `X` had any.

    See Also
    --------
    CorralClassifier : Pools several class densities and calibrates them.
    RodeoDensity : Estimates the density of a table without classes.
    RodeoSelector : Keeps the relevant variables, as a step of a pipeline.

    Notes
    -----
    When `fit` evaluates the density at a training row, it leaves out the row with all its weight. Multiplying
    all weights by a factor changes nothing: :math:`n_y` in bandwidths and thresholds is Kish's effective
    number of rows, :math:`(\sum_i w_i)^2 / \sum_i w_i^2`, and empirical priors are shares of sums of weights.

    Duplicates are rows with equal values. They count as one row with the sum of their weights and are left
    out together, even if their labels differ. If columns have so few distinct values that equal rows occur by
    chance, equal rows are separate observations. Equal rows of different groups are duplicates only if the
    groups have most of their rows in common; see `fit`.

    With the scale "range" or "standard", the values of a class are *more concentrated* in a relevant variable
    than in its other variables. The same variable may be relevant for every class, and there is no control of
    errors. With the scale "rank", the distribution of a class in a relevant variable *differs from the
    distribution of all rows*, since the ranks of all rows are uniform. With the scale "standard" or None,
    bandwidths may not shrink at all. The estimate is then a kernel density estimate with fixed bandwidths,
    and no variable is relevant; compare `bandwidths_` with `initial_bandwidth_`.

    The methods that predict rows also accept dask arrays and dataframes. They return lazy dask collections
    with the same chunks and index, which are computed block by block.

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
        """Check all parameters but the priors; return the parameters that the model stores."""
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
        """Compute the bandwidths of each class density at each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which the densities are evaluated.

        Returns
        -------
        bandwidths : ndarray of shape (n_samples, n_classes, n_features)
            Bandwidths of the scaled variables. With ``bandwidth="local"`` the Rodeo chooses them at each row;
            with ``bandwidth="class"`` they equal `bandwidths_`. With ``features="selected"``, a variable that
            is not relevant for a class has the initial bandwidth of the class.
        """
        samples = self._check_samples(X)
        h = self.model_.estimates(samples, self._computation(), bandwidths=True).bandwidths
        assert h is not None
        return h

    def bandwidth_path(self, X: ArrayLike, label: Any) -> RodeoPath:
        """Run the Rodeo at one row in one class, and record each sweep over the variables.

        With ``bandwidth="local"`` the last bandwidths equal `local_bandwidths`. With ``bandwidth="class"``
        predictions do not use the Rodeo's bandwidths at the row. The row counts as a new row, even if it is a
        training row.

        Parameters
        ----------
        X : array-like of shape (1, n_features)
            The row.
        label : label
            Label of the class, one of `classes_`.

        Returns
        -------
        path : RodeoPath
            Bandwidths after each sweep, and the tests that shrink them. With ``features="selected"``,
            variables that are not relevant keep the initial bandwidth.
        """
        x = check_one_row(self.model_.scale.transform(self._check_samples(X)))
        labels = self.classes_.tolist()
        if np.ndim(label) or label not in labels:
            raise ValueError(f"label must be one of classes_, got {label!r}.")
        density = self.model_.densities[labels.index(label)]
        return density_path(density, x, self.model_.settings.rodeo.update)

    @property
    def initial_bandwidth_(self) -> Floats:
        """Bandwidth (n_classes,) from which the Rodeo starts in each class."""
        return self.model_.bandwidths.initial

    @property
    def bandwidths_(self) -> Floats:
        """Mean bandwidths (n_classes, n_features) at the rows of the class, each row left out."""
        return self.model_.bandwidths.means

    @property
    def zscores_(self) -> Floats:
        """Mean bandwidths (n_classes, n_features), standardized over the variables of each class."""
        return self.model_.bandwidths.zscores

    @property
    def relevant_(self) -> Bools:
        """Which variables are relevant for each class (n_classes, n_features), by algorithm 2."""
        return self.model_.relevant

    def _selected_in(self, data: LabelledRows, random: np.random.RandomState) -> Bools:
        """Find the relevant variables (n_classes, n_features) of the classes in a part of the rows."""
        model = self.model_
        settings = replace(model.settings, features="all")
        return learn_model(model.training, data, model.prior, settings, random, self._computation()).relevant
