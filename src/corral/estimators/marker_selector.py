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

    A variable marks a class if its values there are higher, lower, closer together or further apart than in
    the *background*, the rows of the other classes that do not differ significantly in this variable. If
    these are not more than half of the classes, the class must differ from at least half of the others, one
    by one. The tests use ranks, so increasing transformations of a column do not matter. A class that does
    not differ from the others gets a marker with probability 0.01 at most, over all its variables together.
    The selector keeps every variable that marks a class.

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
        Class labels.
    markers_ : ndarray of shape (n_classes, n_features), bool
        Which variables mark each class.
    contrast_ : Contrast
        How each class differs from its background.
    comparison_ : Comparison
        Each class beside all other rows.
    missing_contrast_ : Contrast or None
        How each class differs from its background in missing values; None if no value is missing.
    n_features_in_, feature_names_in_ : int, ndarray of shape (`n_features_in_`,)
        Number of variables seen in `fit`, and their names if `X` had any.

    See Also
    --------
    RodeoSelector : Selects variables by algorithm 2 of the paper.
    CorralClassifier : Describes classes in the same way, and labels rows.
    RelevanceDisplay : Draws which variables mark which class.

    References
    ----------
    .. [1] N. Cliff. Dominance statistics: ordinal analyses to answer ordinal questions. Psychological
       Bulletin 114 (1993), on the effect.
    .. [2] H. O. Lancaster. The combination of probabilities: an application of orthonormal functions.
       Australian Journal of Statistics 3 (1961), on one test for place and spread.
    .. [3] Y. Benjamini, R. Heller. Screening for partial conjunction hypotheses. Biometrics 64 (2008), on
       classes that differ from at least half of the others.

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
        """What marks each class, without evidence, since a selector predicts nothing."""
        check_is_fitted(self)
        return class_description(self, self.contrast_, self.comparison_, self.missing_contrast_)

    def __corral_validate__(self) -> None:
        """Refuse arrays that do not belong together; `load_model` calls it."""
        shape = self._validate_selected()
        for contrast in (self.contrast_, self.missing_contrast_ or self.contrast_):
            check_shape("markers", contrast.markers, shape)
        check_shape("direction", self.comparison_.direction, shape)
