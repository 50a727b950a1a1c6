"""Naive Bayes for tables with gaps and levels, a baseline: scikit-learn's for numbers and for levels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.impute import SimpleImputer
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from corral.array_types import Floats, Integers
from corral.posterior import log_posterior


class MixedNaiveBayes(ClassifierMixin, BaseEstimator):
    """Naive Bayes with normal densities of numbers and frequencies of levels.

    Gaps in numbers are filled by medians; what is missing in a column of levels is a level of its own.
    Columns of one number tell nothing, and are left out.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    """

    def fit(self, X: Any, y: NDArray[Any]) -> Self:
        """Learn a frame of columns of numbers and of categories."""
        self.classes_, counts = np.unique(y, return_counts=True)
        self._log_prior = np.log(counts / counts.sum())
        levels = [name for name in X.columns if hasattr(X[name].dtype, "categories")]
        numbers = [name for name in X.columns if name not in levels and X[name].nunique() > 1]
        parts = ((numbers, _learn_numbers), (levels, _learn_levels))
        self._parts = [(columns, learn(X[columns], y)) for columns, learn in parts if columns]
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class for each row of `X`, whose categories are those of the frame in `fit`."""
        log_joint = np.tile(self._log_prior, (len(X), 1))
        for columns, part in self._parts:
            log_joint += part.predict_log_proba(X[columns]) - self._log_prior  # which the part has counted
        proba: Floats = np.exp(log_posterior(log_joint))
        return proba


def _learn_numbers(X: Any, y: NDArray[Any]) -> Any:
    return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), GaussianNB()).fit(X, y)


def _learn_levels(X: Any, y: NDArray[Any]) -> Any:
    n_codes = [len(dtype.categories) + 1 for dtype in X.dtypes]
    return make_pipeline(FunctionTransformer(_codes), CategoricalNB(min_categories=n_codes)).fit(X, y)


def _codes(X: Any) -> Integers:
    """Numbers of levels from 1 on, and 0 for gaps."""
    return np.column_stack([X[name].cat.codes + 1 for name in X.columns]).astype(np.int64)
