"""RodeoSelector: algorithm 2 as a step of a pipeline."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from corral._estimators.classifier import RodeoClassifier
from corral._estimators.validation import check_choice, unchanged_by_errors


class RodeoSelector(SelectorMixin, BaseEstimator):
    """Select the variables that describe at least one class.

    For each class the Rodeo chooses bandwidths at the class's own rows, each leaving itself out. A
    variable whose mean bandwidth is small enough, by `rule`, describes the class (algorithm 2); those
    of all classes together are kept. See `RodeoClassifier` for what relevance means in which units.

    Parameters
    ----------
    rule : {"zscore", "shadow"}, default="zscore"
        How small is enough, as in `RodeoClassifier`.
    cutpoint : float, default=-1.0
        Largest z-score of a relevant variable; read by ``rule="zscore"`` only.
    update : {"simultaneous", "sequential"}, default="simultaneous"
        As in `RodeoClassifier`, like all that follow.
    scale : {"range", "standard", "rank"} or None, default="range"
        Units in which bandwidths are chosen.
    beta : float, default=0.9
        Factor by which a bandwidth shrinks.
    c0 : float, default=1.0
        Constant of the initial bandwidth.
    min_bandwidth : "auto" or float, default="auto"
        Floor under every bandwidth.
    n_jobs : int, default=None
        Number of threads.
    verbose : int, default=0
        If positive, show a progress bar.
    random_state : int, RandomState or None, default=None
        Draws the shadows and, in large classes, the rows to average over.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    relevant_ : ndarray of shape (n_classes, n_features), bool
        Which variables describe each class.
    bandwidths_ : ndarray of shape (n_classes, n_features)
        Mean bandwidth at the class's own rows.
    zscores_ : ndarray of shape (n_classes, n_features)
        Mean bandwidths standardised over the variables of a class.
    n_features_in_ : int
        Number of variables seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if `X` had any.

    See Also
    --------
    RodeoClassifier : Classifies with all variables or with those selected.

    Examples
    --------
    >>> from corral import RodeoSelector
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(200, random_state=0)
    >>> selector = RodeoSelector(rule="shadow", random_state=0).fit(X, y)
    >>> selector.get_support(indices=True)
    array([0, 1])
    """

    def __init__(
        self,
        *,
        rule: Literal["zscore", "shadow"] = "zscore",
        cutpoint: float = -1.0,
        update: Literal["simultaneous", "sequential"] = "simultaneous",
        scale: Literal["range", "standard", "rank"] | None = "range",
        beta: float = 0.9,
        c0: float = 1.0,
        min_bandwidth: float | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.rule = rule
        self.cutpoint = cutpoint
        self.update = update
        self.scale = scale
        self.beta = beta
        self.c0 = c0
        self.min_bandwidth = min_bandwidth
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the variables that describe each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Their classes; at least two.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self : RodeoSelector
        """
        with unchanged_by_errors(self):
            rows, labels = validate_data(self, X, y, dtype=np.float64)
            check_choice("scale", self.scale, ("range", "standard", "rank", None))
            # With selected features, so that it warns of classes without any.
            classifier = RodeoClassifier(**self.get_params(deep=False), features="selected")
            fitted = classifier.fit(rows, labels, sample_weight)
        self.classes_ = fitted.classes_
        self.relevant_ = fitted.relevant_
        self.bandwidths_ = fitted.bandwidths_
        self.zscores_ = fitted.zscores_
        return self

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask: NDArray[np.bool_] = np.logical_or.reduce(self.relevant_)
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
