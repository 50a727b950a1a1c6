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
    """An estimator that takes tables as they are: with missing values and categories.

    Subclasses are dataclasses whose fields are the parameters: scikit-learn reads them from `__init__`.
    """

    n_features_in_: int
    encoding_: Encoding
    na_values_: list[str]
    variable_names_: list[str]
    categorical_features: Categorical
    n_jobs: int | None
    verbose: int

    def _validate_columns(self, d: int, categories: Integers | None) -> None:
        """Refuse a fitted estimator whose columns or categories do not fit its encoding."""
        validate_columns(self, self.encoding_.n_columns)
        if len(self.encoding_.categories) != d or not equal_or_none(self.encoding_.counts, categories):
            raise ValueError("the encoding has other numbers of categories")

    def _check_rows(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        *,
        reset: bool,
    ) -> TrainingRows:
        """Validate training rows and learn their categories; without `reset` the rows follow earlier ones."""
        table = read_table(self, X, y, categorical=self.categorical_features, reset=reset, extend=not reset)
        check_classification_targets(table.y)
        n = len(table.X)
        weights = check_sample_weight(sample_weight, n)
        return TrainingRows(table.X, table.y, weights, self.encoding_.counts, check_groups(groups, n))

    def _check_samples(self, X: ArrayLike) -> Floats:
        """Validate samples of a fitted estimator; return them (n_samples, n_features) as numbers."""
        return self._check_table(X).X

    def _check_table(self, X: ArrayLike) -> CheckedTable:
        """Validate samples of a fitted estimator, and warn of unknown categories and of what is no date."""
        check_is_fitted(self)
        table = read_table(self, X, reset=False)
        if table.unknown:
            warn_user(unknown_categories(table.unknown_counts), UnknownCategoriesWarning)
        for name, strange in table.undated.items():
            remedy = "write dates as in training, or like 2020-12-31"
            warn_user(f"{no_dates(name, strange)}: {remedy}.", UnknownCategoriesWarning)
        return table

    def _computation(self) -> Computation:
        return Computation(self.n_jobs, self.verbose)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        return tags


class ClassEstimator(TableEstimator):
    """An estimator that learns classes from labelled rows."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn the classes from their rows, and find the variables that describe them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows: numbers, and in frames also text, categories and booleans, all with missing values
            (NaN, None, pandas' NA, polars' null). Columns of dates, of type or text, become variables: days
            since 2000, month, weekday and hour, those that vary (`ColumnKindWarning` names them), unless
            `categorical_features` names the column. `explain` and reports name rows by the index of a pandas
            frame, unless it counts from 0 and has no name.
        y : array-like of shape (n_samples,)
            Their classes; at least two. They must be given.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row matters, up to a common factor; weight 0 equals removal.
        groups : array-like of shape (n_samples,), default=None
            Which rows belong together, such as the rows of one patient: a row is always left out with its
            group. Two groups count as one if more than half of the distinct rows of the smaller one are
            duplicates of rows of the other, as where a patient was entered twice. Some class must have rows
            of two groups. The tests of `describe` take into account that rows of a group are alike.

        Returns
        -------
        self : estimator
        """
        with unchanged_by_errors(self):
            rows = self._check_rows(X, y, sample_weight, groups, reset=True)
            self._name_rows(X)
            return self._learn_at_once(rows)

    @abstractmethod
    def _learn_at_once(self, training: TrainingRows) -> Self:
        """Fit validated rows; no further rows will follow."""

    def _name_rows(self, X: Any) -> None:
        """Keep the names of the training rows, where the estimator has a use for them."""


class TableSelector(SelectorMixin, ClassEstimator):
    """A step of a pipeline that keeps the selected columns of a table as they are."""

    classes_: NDArray[Any]
    _selected: ClassVar[str]  # name of the attribute that says which variables a class has

    def _get_support_mask(self) -> Bools:
        check_is_fitted(self)
        variables = np.logical_or.reduce(getattr(self, self._selected))
        mask = np.zeros(self.encoding_.n_columns, dtype=np.bool_)
        mask[self.encoding_.column_positions()[variables]] = True  # of a date, if one of its variables is
        return mask

    def _validate_selected(self) -> tuple[int, int]:
        """Refuse classes and selected variables that no fit could have left; return their numbers."""
        selected = getattr(self, self._selected)
        shape = self.classes_.size, selected.shape[-1]
        self._validate_columns(shape[1], self.encoding_.counts)
        check_labels("classes_", self.classes_)
        check_shape(self._selected, selected, shape)
        return shape

    def transform(self, X: ArrayLike) -> Any:
        """Keep the columns of the selected variables, with their categories and missing values.

        `X` has the columns of `fit`, of the same kinds; the result is an array or a frame like `X`.
        """
        check_is_fitted(self)
        read_table(self, X, reset=False)  # an error names a column of another kind
        return super().transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
