"""RodeoSelector: the variables that describe classes, as a step of a pipeline."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from corral._core.model import learn_contrast, learn_gap_contrast
from corral._core.rows import TrainingRows
from corral._core.settings import MIN_EFFECT, Bools, ModelSettings
from corral._estimators.classifier import RodeoClassifier
from corral._estimators.description import Description
from corral._estimators.encoding import Encoding
from corral._estimators.reference import InReference
from corral._estimators.tables import Table, TableEstimator, read_table
from corral._estimators.validation import (
    check_choice,
    check_groups,
    check_sample_weight,
    feature_names,
    sort_rows,
    unchanged_by_errors,
)
from corral._estimators.warned import warn_of_copies, warn_of_near_duplicates, warn_of_undescribed


class RodeoSelector(InReference, SelectorMixin, TableEstimator):
    """Select the variables that describe at least one class.

    By default a variable describes a class if its values differ there from those of the background, the
    other classes that are alike in it, or from at least half of the other classes if most of them are not
    alike: higher, lower, closer together or further apart. The other
    rule lets the Rodeo choose bandwidths at the class's own rows, each leaving itself out, and asks how
    much they shrink (algorithm 2). The variables of all classes together are kept. See `RodeoClassifier`
    for what relevance means by it.

    Parameters
    ----------
    rule : {"contrast", "zscore"}, default="contrast"
        Which variables are relevant for a class.
    min_effect : float, default=0.15
        Least difference that is worth mentioning, in units of Cliff's delta.
    cutpoint : float, default=-1.0
        Largest z-score of a relevant variable; read by ``rule="zscore"`` only.
    update : {"simultaneous", "sequential"}, default="simultaneous"
        As in `RodeoClassifier`, like all that follow; ``rule="contrast"`` reads none of them.
    scale : {"range", "standard", "rank"} or None, default="range"
        Units in which bandwidths are chosen.
    beta : float, default=0.9
        Factor by which a bandwidth shrinks.
    c0 : float, default=1.0
        Constant of the initial bandwidth.
    min_bandwidth : "auto" or float, default="auto"
        Floor under every bandwidth.
    categorical_features : {"from_dtype"} or array-like or None, default="from_dtype"
        Which columns hold levels rather than measurements; see `RodeoClassifier`.
    n_jobs : int, default=None
        Number of threads.
    verbose : int, default=0
        If positive, show a progress bar.
    random_state : int, RandomState or None, default=None
        In large classes, chooses the rows to average over.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    relevant_ : ndarray of shape (n_classes, n_features), bool
        Which variables describe each class.
    contrast_ : Contrast
        How each class differs from its background; `describe` puts it in order.
    gap_contrast_ : Contrast or None
        How it differs in what is missing; None if nothing is.
    bandwidths_ : ndarray of shape (n_classes, n_features)
        Mean bandwidth at the class's own rows; not with ``rule="contrast"``, which needs none.
    zscores_ : ndarray of shape (n_classes, n_features)
        Mean bandwidths standardised over the variables of a class, likewise.
    n_features_in_ : int
        Number of variables seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if `X` had any.

    See Also
    --------
    RodeoClassifier : Classifies with all variables or with those selected.
    RodeoClassifierCV : Describes classes in the same way, and labels rows.
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
    >>> from corral import RodeoSelector
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(200, groups=(3, 4, 5), random_state=0)
    >>> selector = RodeoSelector().fit(X, y)
    >>> selector.get_support(indices=True)
    array([0, 1])
    >>> print(selector.describe())
    3: x1 high (0.1397; others -0.2672)
    4: x1 low (-0.3754; others -0.02155)
    5: x0 high (0.3676; others -0.2245), x1 narrow (-0.2997 to -0.05521; others -0.3796 to 0.1397)
    """

    encoding_: Encoding

    def __init__(
        self,
        *,
        rule: Literal["contrast", "zscore"] = "contrast",
        min_effect: float = MIN_EFFECT,
        cutpoint: float = -1.0,
        update: Literal["simultaneous", "sequential"] = "simultaneous",
        scale: Literal["range", "standard", "rank"] | None = "range",
        beta: float = 0.9,
        c0: float = 1.0,
        min_bandwidth: float | Literal["auto"] = "auto",
        categorical_features: Literal["from_dtype"] | ArrayLike | None = "from_dtype",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.rule = rule
        self.min_effect = min_effect
        self.cutpoint = cutpoint
        self.update = update
        self.scale = scale
        self.beta = beta
        self.c0 = c0
        self.min_bandwidth = min_bandwidth
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Find the variables that describe each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Their classes; at least two.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row matters, up to a common factor.
        groups : array-like of shape (n_samples,), default=None
            Which rows belong together: bandwidths leave their groups out, and the tests of
            ``rule="contrast"`` count rows that are alike within groups as fewer, and are
            no surer than a permutation of whole groups could be.

        Returns
        -------
        self : RodeoSelector
        """
        with unchanged_by_errors(self):
            table = read_table(self, X, y, categorical=self.categorical_features, reset=True)
            check_choice("rule", self.rule, ("contrast", "zscore"))
            shared = {name: value for name, value in self.get_params(deep=False).items() if name != "rule"}
            # With selected features, so that it warns of classes without any.
            classifier = RodeoClassifier(**shared, features="selected")
            if self.rule == "contrast":
                self._contrast(classifier.model_settings(), table, sample_weight, groups)
                return self
            model = classifier.fit(X, y, sample_weight, groups).model_
        self.classes_, self.relevant_, self.contrast_ = model.labels, model.relevant, model.contrast
        self.gap_contrast_ = model.gap_contrast
        self.bandwidths_, self.zscores_ = model.bandwidths.means, model.bandwidths.zscores
        return self

    def _contrast(
        self,
        settings: ModelSettings,
        table: Table,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> None:
        """Compare classes without any bandwidth."""
        X, y, _ = table
        check_classification_targets(y)
        weights = check_sample_weight(sample_weight, len(X))
        training = TrainingRows(X, y, weights, self.encoding_.counts, check_groups(groups, len(X)))
        data = sort_rows(training)
        found = learn_contrast(data, settings.min_effect)
        self.classes_, self.relevant_, self.contrast_ = data.labels, found.relevant, found
        self.gap_contrast_ = learn_gap_contrast(data, settings.min_effect)
        for name in ("bandwidths_", "zscores_"):  # of an earlier fit by another rule
            if hasattr(self, name):
                delattr(self, name)
        without = data.labels[~found.relevant.any(axis=1)].tolist()
        if without:
            warn_of_undescribed(without)
        warn_of_copies(data.n_copies, len(X))
        warn_of_near_duplicates(training, feature_names(self))

    def describe(self) -> Description:
        """What marks each class: variables in which it differs from its background, strongest first.

        Returns
        -------
        description : Description
            Without evidence, since a selector predicts nothing.
        """
        check_is_fitted(self)
        if not hasattr(self, "contrast_"):
            raise AttributeError(
                "this selector was fitted by version 0.1.0, which compared no classes; fit it again."
            )
        return Description.of(
            self.classes_,
            feature_names(self),
            self.contrast_,
            None,
            self.encoding_.names_of_levels(),
            self.gap_contrast_,
        )

    def transform(self, X: ArrayLike) -> Any:
        """Keep the columns of variables that describe some class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`, of the same kinds.

        Returns
        -------
        X_selected : array or frame of shape (n_samples, n_selected)
            As they are: levels stay levels, and gaps stay gaps.
        """
        check_is_fitted(self)
        read_table(self, X, reset=False)  # so that a column of another kind is named
        return super().transform(X)

    def _get_support_mask(self) -> Bools:
        check_is_fitted(self)
        mask: Bools = np.logical_or.reduce(self.relevant_)
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
