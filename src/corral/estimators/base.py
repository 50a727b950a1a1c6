"""Base classes: estimators of tables, and selectors of variables."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from corral.array_types import Bools, Floats, Integers, check_labels, check_shape, equal_or_none
from corral.data.dataset import TrainingRows
from corral.estimators.encoding import Encoding
from corral.estimators.tables import CheckedTable, UnknownCategoriesWarning, read_table, validate_columns
from corral.estimators.validation import check_groups, check_sample_weight, unchanged_by_errors, warn_user
from corral.parallel import Computation
from corral.sentences.tables import no_dates, unknown_categories

# The type of the parameter `categorical_features`.
Categorical = Literal["from_dtype"] | ArrayLike | None


class TableEstimator(BaseEstimator):
    """Base class of estimators that accept tables with missing values and categories.

    Subclasses are dataclasses whose fields are the parameters. scikit-learn reads the parameters from the
    generated `__init__`.
    """

    n_features_in_: int
    encoding_: Encoding
    na_values_: list[str]
    variable_names_: list[str]
    categorical_features: Categorical
    n_jobs: int | None
    verbose: int

    def _validate_columns(self, d: int, categories: Integers | None) -> None:
        """Raise ValueError unless a fitted estimator has d variables with these numbers of categories."""
        validate_columns(self, self.encoding_.n_columns)
        if len(self.encoding_.categories) != d or not equal_or_none(self.encoding_.counts, categories):
            raise ValueError("the numbers of categories are not those that the encoding has")

    def _check_rows(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        *,
        reset: bool,
    ) -> TrainingRows:
        """Validate training rows and learn their categories; `reset` is False if rows are added to a fit."""
        table = read_table(self, X, y, categorical=self.categorical_features, reset=reset, extend=not reset)
        check_classification_targets(table.y)
        n = len(table.X)
        weights = check_sample_weight(sample_weight, n)
        return TrainingRows(table.X, table.y, weights, self.encoding_.counts, check_groups(groups, n))

    def _check_samples(self, X: ArrayLike) -> Floats:
        """Validate new rows for a fitted estimator; return numbers (n_samples, n_features)."""
        return self._check_table(X).X

    def _check_table(self, X: ArrayLike) -> CheckedTable:
        """Validate new rows of a fitted estimator; warn of unknown categories and texts that are no dates."""
        check_is_fitted(self)
        table = read_table(self, X, reset=False)
        if table.unknown:
            warn_user(unknown_categories(table.unknown_counts), UnknownCategoriesWarning)
        for name, strange in table.undated.items():
            remedy = "write dates as in the training rows, or like 2020-12-31"
            warn_user(f"{no_dates(name, strange)}: {remedy}.", UnknownCategoriesWarning)
        return table

    def _computation(self) -> Computation:
        return Computation(self.n_jobs, self.verbose)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        return tags


class ClassEstimator(TableEstimator):
    """Base class of estimators that learn classes from labeled rows."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the estimator to labeled rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows: numbers, and in frames and arrays of objects also text, categories, booleans and
            dates. Values may be missing (NaN, None, pandas' NA, polars' null). A column of dates, by its type
            or by its texts, becomes up to four variables: days since 2000, month, weekday and hour, if they
            vary. A `ColumnKindWarning` lists the variables. Columns in `categorical_features` are not read as
            dates. If `X` is a pandas frame, `explain` and reports identify rows by its index, unless this is
            0, 1, 2, ... without a name.
        y : array-like of shape (n_samples,)
            Labels of the rows, of at least two classes. Required: the default None is an error.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. A common factor changes nothing, and a row of weight 0 is ignored.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, such as the patient. In cross-validation, all rows of a group are left out
            together. Two groups are joined if more than half of the distinct rows of the smaller group are
            duplicates of rows of the other group, for example if a patient was entered twice. At least one
            class must have rows of two groups. The tests of `describe` take into account that rows of a
            group are alike.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        with unchanged_by_errors(self):
            rows = self._check_rows(X, y, sample_weight, groups, reset=True)
            self._name_rows(X)
            return self._learn_at_once(rows)

    @abstractmethod
    def _learn_at_once(self, training: TrainingRows) -> Self:
        """Fit the estimator to validated rows; no rows can be added afterwards."""

    def _name_rows(self, X: Any) -> None:
        """Store the names of the training rows, if the estimator uses them; by default it does not."""


class TableSelector(SelectorMixin, ClassEstimator):
    """Base class of selectors: steps of a pipeline that keep the selected columns of a table unchanged."""

    classes_: NDArray[Any]
    _selected: ClassVar[str]  # attribute with the selected variables of each class, (n_classes, n_features)

    def _get_support_mask(self) -> Bools:
        check_is_fitted(self)
        variables = np.logical_or.reduce(getattr(self, self._selected))
        mask = np.zeros(self.encoding_.n_columns, dtype=np.bool_)
        mask[self.encoding_.column_positions()[variables]] = True  # of dates, if any of their variables is
        return mask

    def _validate_selected(self) -> tuple[int, int]:
        """Raise ValueError if attributes of a fitted selector disagree; return (n_classes, n_features)."""
        selected = getattr(self, self._selected)
        shape = self.classes_.size, selected.shape[-1]
        self._validate_columns(shape[1], self.encoding_.counts)
        check_labels("classes_", self.classes_)
        check_shape(self._selected, selected, shape)
        return shape

    def transform(self, X: ArrayLike) -> Any:
        """Keep the columns of the selected variables.

        A column of dates is kept if any of its variables is selected.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the same columns as in `fit`.

        Returns
        -------
        X_selected : ndarray or frame of shape (n_samples, n_selected)
            Selected columns of `X`, with their categories and missing values. It is an array, unless `X` is a
            pandas frame and `set_output` was called, as in scikit-learn.
        """
        check_is_fitted(self)
        read_table(self, X, reset=False)  # raises an error with the name of a column of another kind
        return super().transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
