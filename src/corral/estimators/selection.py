"""TableSelector: what selectors of variables share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from corral.array_types import Bools
from corral.estimators.tables import TableEstimator, read_table


class TableSelector(SelectorMixin, TableEstimator):
    """A step of a pipeline that keeps the selected columns of a table as they are."""

    classes_: NDArray[Any]

    @property
    @abstractmethod
    def _selected(self) -> Bools:
        """Which variables are selected for each class, (n_classes, n_features)."""

    def _get_support_mask(self) -> Bools:
        check_is_fitted(self)
        mask: Bools = np.logical_or.reduce(self._selected)
        return mask

    def transform(self, X: ArrayLike) -> Any:
        """Keep the columns of the selected variables.

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
