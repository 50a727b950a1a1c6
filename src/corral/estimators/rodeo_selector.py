"""RodeoSelector: algorithm 2 of the paper as a step of a pipeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np

from corral.array_types import Bools, Floats, check_array
from corral.data.dataset import TrainingRows
from corral.estimators.base import Categorical, TableSelector
from corral.estimators.rodeo_classifier import RodeoClassifier
from corral.estimators.validation import take_names_from
from corral.rodeo.model import BANDWIDTH_BOUNDS


@dataclass(kw_only=True, eq=False, repr=False)
class RodeoSelector(TableSelector):
    """Select the variables that are relevant for at least one class, by algorithm 2 of the paper.

    The Rodeo chooses bandwidths at the rows of each class, with each row left out of its own density. A
    variable is relevant for a class if its mean bandwidth, standardized over the variables of the class, is
    at most `cutpoint`. The selector keeps every variable that is relevant for at least one class. The notes
    of `RodeoClassifier` explain relevance on each scale. Unlike `MarkerSelector`, this selector does not
    control errors.

    Parameters
    ----------
    cutpoint : float, default=-1.0
        Largest z-score of a relevant variable.
    update, scale, beta, c0, min_bandwidth, categorical_features, n_jobs, verbose, random_state
        As in `RodeoClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    relevant_ : ndarray of shape (n_classes, n_features), bool
        Which variables are relevant for each class.
    bandwidths_, zscores_, n_features_in_, feature_names_in_
        As in `RodeoClassifier`.

    See Also
    --------
    MarkerSelector : Selects the variables that differ between classes.
    RodeoClassifier : Classifies with all variables or with the relevant ones.
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

    cutpoint: float = -1.0
    update: Literal["simultaneous", "sequential"] = "simultaneous"
    scale: Literal["range", "standard", "rank"] | None = "range"
    beta: float = 0.9
    c0: float = 1.0
    min_bandwidth: float | Literal["auto"] = "auto"
    categorical_features: Categorical = "from_dtype"
    n_jobs: int | None = None
    verbose: int = 0
    random_state: int | np.random.RandomState | None = None

    _selected = "relevant_"
    relevant_: Bools = field(init=False)
    bandwidths_: Floats = field(init=False)
    zscores_: Floats = field(init=False)

    def _learn_at_once(self, training: TrainingRows) -> Self:
        # With features="selected" the classifier warns of classes without relevant variables.
        classifier = RodeoClassifier(**self.get_params(deep=False), features="selected")
        take_names_from(self, classifier)
        model = classifier._learn_at_once(training).model_  # noqa: SLF001 (both are estimators)
        self.classes_, self.relevant_ = model.labels, model.relevant
        self.bandwidths_, self.zscores_ = model.bandwidths.means, model.bandwidths.zscores
        return self

    def __corral_validate__(self) -> None:
        """Raise ValueError if the arrays disagree; `load_model` calls this check."""
        shape = self._validate_selected()
        check_array("bandwidths_", self.bandwidths_, shape, *BANDWIDTH_BOUNDS)
        check_array("zscores_", self.zscores_, shape)
