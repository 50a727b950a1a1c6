"""MarkerSelector: the variables that differ between classes, as a step of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from sklearn.utils.validation import check_is_fitted

from corral.array_types import Bools, check_shape
from corral.data.dataset import TrainingRows
from corral.estimators.base import Categorical, TableSelector
from corral.estimators.description import Description, class_description
from corral.estimators.validation import check_number, sort_rows
from corral.estimators.warned import warn_of_duplicates, warn_of_undescribed
from corral.markers.comparison import Comparison, learn_comparison
from corral.markers.contrast import MIN_EFFECT, Contrast, learn_contrast, learn_missing_contrast


@dataclass(kw_only=True, eq=False, repr=False)
class MarkerSelector(TableSelector):
    """Select the variables that mark at least one class.

    A variable marks a class if its values in the class are higher, lower, closer together or further apart
    than in the *background*: the other classes in the largest set of classes of which no two differ
    significantly in this variable. If this set has at most half of the classes, there is usually no
    background, and the class must differ from at least half of the other classes, each tested alone. The
    tests use ranks, so increasing transformations of a column do not matter. If a class does not differ from
    the other classes, the probability that it gets any marker is at most 0.01. The selector keeps every
    variable that marks at least one class.

    Parameters
    ----------
    min_effect : float, default=0.15
        Least effect of a marker, as Cliff's delta. Conventionally, less than 0.147 is negligible;
        0.15 is a shift of about a quarter of a standard deviation.
    categorical_features : {"from_dtype"} or array-like or None, default="from_dtype"
        Which columns hold categories rather than measurements; see `RodeoClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    markers_ : ndarray of shape (n_classes, n_features), bool
        Which variables mark each class. `transform` keeps a variable that marks any class.
    contrast_ : Contrast
        How each class differs from its background.
    comparison_ : Comparison
        Numbers of each class, of all other rows and of the background, such as medians.
    missing_contrast_ : Contrast or None
        How the frequency of missing values in each class differs from its background; None if no value is
        missing.
    n_features_in_, feature_names_in_ : int, ndarray of shape (`n_features_in_`,)
        Number of variables seen in `fit`, and their names if `X` had any.

    See Also
    --------
    RodeoSelector : Selects variables by algorithm 2 of the paper.
    CorralClassifier : Finds the same markers and classifies rows.
    RelevanceDisplay : Draws the markers.

    References
    ----------
    .. [1] N. Cliff. Dominance statistics: ordinal analyses to answer ordinal questions. Psychological
       Bulletin 114 (1993). The effect.
    .. [2] H. O. Lancaster. The combination of probabilities: an application of orthonormal functions.
       Australian Journal of Statistics 3 (1961). One test of location and spread.
    .. [3] Y. Benjamini, R. Heller. Screening for partial conjunction hypotheses. Biometrics 64 (2008). The
       test whether a class differs from at least half of the other classes.

    Examples
    --------
    >>> from corral import MarkerSelector
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(200, groups=(3, 4, 5), random_state=0)
    >>> selector = MarkerSelector().fit(X, y)
    >>> selector.get_support(indices=True)
    array([0, 1])
    >>> print(selector.describe())
    3: x1 high (0.1397; others -0.2666)
    4: x1 low (-0.3754; others -0.02085)
    5: x0 high (0.3676; others -0.2245), x1 narrow (-0.2986 to -0.05527; others -0.3794 to 0.1397)
    """

    min_effect: float = MIN_EFFECT
    categorical_features: Categorical = "from_dtype"

    _selected = "markers_"
    markers_: Bools = field(init=False)
    contrast_: Contrast = field(init=False)
    comparison_: Comparison = field(init=False)
    missing_contrast_: Contrast | None = field(init=False)

    def _learn_at_once(self, training: TrainingRows) -> Self:
        min_effect = check_number("min_effect", self.min_effect, 0.0, 1.0, inclusive=True)
        data = sort_rows(training)
        self.contrast_ = learn_contrast(data, min_effect)
        self.comparison_ = learn_comparison(training, data.labels, self.contrast_)
        self.missing_contrast_ = learn_missing_contrast(data, min_effect)
        self.classes_, self.markers_ = data.labels, self.contrast_.markers
        warn_of_undescribed(data.labels[~self.markers_.any(axis=1)].tolist())
        warn_of_duplicates(self, training, data.n_duplicates)
        return self

    def describe(self) -> Description:
        """Describe each class by its markers.

        Returns
        -------
        description : Description
            Markers and numbers of all classes. `evidence` is None, since a selector does not predict.
        """
        check_is_fitted(self)
        return class_description(self, self.contrast_, self.comparison_, self.missing_contrast_)

    def __corral_validate__(self) -> None:
        """Raise ValueError if the arrays disagree; `load_model` calls this check."""
        shape = self._validate_selected()
        for contrast in (self.contrast_, self.missing_contrast_ or self.contrast_):
            check_shape("markers", contrast.markers, shape)
        check_shape("direction", self.comparison_.direction, shape)
