"""Base classes: estimators with a page in the reference, estimators of tables, and selectors of variables."""

from __future__ import annotations

from abc import abstractmethod
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from corral.array_types import Bools, Floats, Integers, equal_or_none
from corral.data.dataset import TrainingRows
from corral.estimators.encoding import Encoding, unknown_sentence
from corral.estimators.tables import UnknownLevelsWarning, read_table, validate_columns
from corral.estimators.validation import check_groups, check_sample_weight, warn_user
from corral.parallel import Computation


class InReference:
    """A public estimator: its representation in HTML links to its page in the reference.

    scikit-learn reads both attributes. It makes no link of an empty address, nor for a class that a user
    derives, since that has another module.
    """

    _doc_link_module = "corral"

    @property
    def _doc_link_template(self) -> str:
        """Address of the page, as scikit-learn fills it in; empty where the site has no address."""
        try:
            entries: list[str] = metadata.metadata("corral").get_all("Project-URL", [])
        except metadata.PackageNotFoundError:  # imported from a folder, and never installed
            return ""
        addresses = dict(entry.split(", ", 1) for entry in entries)
        if "Documentation" not in addresses:
            return ""
        # An estimator is documented where it is imported from, not where it is written.
        module = "corral.dask" if type(self).__module__.startswith("corral.dask") else "corral"
        return addresses["Documentation"].rstrip("/") + f"/generated/{module}.{{estimator_name}}.html"


class TableEstimator(InReference, BaseEstimator):
    """An estimator that takes tables as they are: with missing values and categories."""

    n_features_in_: int
    encoding_: Encoding
    na_values_: list[str]
    categorical_features: Any
    n_jobs: int | None
    verbose: int

    def _validate_columns(self, d: int, levels: Integers | None) -> None:
        """Refuse a fitted estimator of another number of columns, or with other numbers of levels."""
        validate_columns(self, d)
        if len(self.encoding_.levels) != d or not equal_or_none(self.encoding_.counts, levels):
            raise ValueError("levels are not as many as the encoding has")

    def _check_rows(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        *,
        reset: bool,
    ) -> TrainingRows:
        """Validate training rows, and learn their categories: all of them, or those of further rows."""
        table = read_table(self, X, y, categorical=self.categorical_features, reset=reset, extend=not reset)
        check_classification_targets(table.y)
        n = len(table.X)
        weights = check_sample_weight(sample_weight, n)
        return TrainingRows(table.X, table.y, weights, self.encoding_.counts, check_groups(groups, n))

    def _check_samples(self, X: ArrayLike) -> Floats:
        """Validate samples of a fitted estimator, and warn of categories that no training row has."""
        check_is_fitted(self)
        table = read_table(self, X, reset=False)
        if table.unknown:
            warn_user(unknown_sentence(table.unknown), UnknownLevelsWarning)
        return table.X

    def _computation(self) -> Computation:
        return Computation(self.n_jobs, self.verbose)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        return tags


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
