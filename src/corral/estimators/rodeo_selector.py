"""RodeoSelector: algorithm 2 of the paper as a step of a pipeline."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from corral.array_types import Bools, Floats, check_array, check_labels, check_shape
from corral.estimators.base import TableSelector
from corral.estimators.rodeo_classifier import RodeoClassifier
from corral.estimators.tables import read_table
from corral.estimators.validation import unchanged_by_errors
from corral.rodeo.model import BANDWIDTH_BOUNDS


class RodeoSelector(TableSelector):
    """Select the variables that are relevant for at least one class, by algorithm 2 of the paper.

    The Rodeo chooses bandwidths at the rows of a class, each row left out of its own estimate. A variable is
    relevant for the class if its mean bandwidth, standardised over the variables of the class, is at most
    `cutpoint`. The variables of all classes together are kept. `RodeoClassifier` says what relevance means
    in which units. There is no control of errors; `MarkerSelector` has one.

    Parameters
    ----------
    cutpoint : float, default=-1.0
        Largest z-score of a relevant variable.
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
    categorical_features : {"from_dtype"} or array-like or None, default="from_dtype"
        Which columns hold levels rather than measurements.
    n_jobs : int, default=None
        Number of threads.
    verbose : int, default=0
        If positive, show a progress bar.
    random_state : int, RandomState or None, default=None
        Chooses the rows over which bandwidths are averaged in a class of more than 1000.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    relevant_ : ndarray of shape (n_classes, n_features), bool
        Which variables are relevant for each class.
    bandwidths_ : ndarray of shape (n_classes, n_features)
        Mean bandwidth at the class's own rows.
    zscores_ : ndarray of shape (n_classes, n_features)
        Mean bandwidths standardised over the variables of a class.
    n_features_in_ : int
        Number of variables seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if `X` had any.

    See Also
    --------
    MarkerSelector : Selects the variables that differ between classes.
    RodeoClassifier : Classifies with all variables or with those selected.
    RelevanceDisplay : Draws the z-scores.

    Examples
    --------
    >>> from corral import RodeoSelector
    >>> from corral.datasets import make_ten_groups
    >>> X, y = make_ten_groups(100, random_state=0)
    >>> selector = RodeoSelector().fit(X, y)
    >>> selector.relevant_[0].nonzero()[0]
    array([0, 1, 2, 3, 4, 5])
    >>> selector.transform(X).shape
    (1000, 15)
    """

    relevant_: Bools
    bandwidths_: Floats
    zscores_: Floats

    def __init__(
        self,
        *,
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
        """Find the variables that are relevant for each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Their classes; at least two.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row matters, up to a common factor.
        groups : array-like of shape (n_samples,), default=None
            Which rows belong together: a row leaves its group out.

        Returns
        -------
        self : RodeoSelector
        """
        with unchanged_by_errors(self):
            read_table(self, X, y, categorical=self.categorical_features, reset=True)
            # With selected features, so that it warns of classes without any.
            classifier = RodeoClassifier(**self.get_params(deep=False), features="selected")
            model = classifier.fit(X, y, sample_weight, groups).model_
        self.classes_, self.relevant_ = model.labels, model.relevant
        self.bandwidths_, self.zscores_ = model.bandwidths.means, model.bandwidths.zscores
        return self

    def __corral_validate__(self) -> None:
        """Refuse arrays that do not belong together; `load_model` calls it."""
        shape = self.classes_.size, self.relevant_.shape[-1]
        self._validate_columns(shape[1], self.encoding_.counts)
        check_labels("classes_", self.classes_)
        check_shape("relevant_", self.relevant_, shape)
        check_array("bandwidths_", self.bandwidths_, shape, *BANDWIDTH_BOUNDS)
        check_array("zscores_", self.zscores_, shape)

    @property
    def _selected(self) -> Bools:
        return self.relevant_
