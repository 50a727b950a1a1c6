"""Baselines: naive Bayes and logistic regression for frames of numbers and categories.

Both baselines standardize numbers, so the scale of a column does not matter.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from corral.array_types import Floats, Integers
from corral.posterior import log_posterior

# Most categories of a column that get a coefficient: fitting thousands of coefficients needs minutes.
_MOST_CATEGORIES = 50

# Larger numbers are clipped, because the sum of their squares would not be finite.
_LARGEST = 1e150


def baselines(X: Any) -> dict[str, Any]:
    """Return the baselines, by name, for a frame with the columns of `X`."""
    has_categories = any(hasattr(dtype, "categories") for dtype in X.dtypes)
    return {
        "naive Bayes" if has_categories else "Gaussian naive Bayes": MixedNaiveBayes(),
        "logistic regression": MixedLogisticRegression(),
    }


class MixedNaiveBayes(ClassifierMixin, BaseEstimator):
    """Naive Bayes with normal densities of standardized numbers and frequencies of categories.

    Missing numbers are replaced by the median of the column; a missing category is a separate category.
    Columns of numbers with only one value are left out.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    """

    def fit(self, X: Any, y: NDArray[Any]) -> Self:
        """Fit the classifier to a frame with columns of numbers and of categories."""
        self.classes_, counts = np.unique(y, return_counts=True)
        self._log_prior = np.log(counts / counts.sum())
        numbers, categories = _columns(X)
        parts = ((numbers, _learn_numbers), (categories, _learn_categories))
        self._parts = [(columns, learn(X[columns], y)) for columns, learn in parts if columns]
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return probabilities (n_rows, n_classes); `X` must have the categories of the frame in `fit`."""
        log_joint = np.tile(self._log_prior, (len(X), 1))
        for columns, part in self._parts:
            log_joint += part.predict_log_proba(X[columns]) - self._log_prior  # each part includes the prior
        proba: Floats = np.exp(log_posterior(log_joint))
        return proba


class MixedLogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression on standardized numbers and on one indicator per category.

    Missing values are treated as in `MixedNaiveBayes`. The penalty is the default of scikit-learn.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    """

    def fit(self, X: Any, y: NDArray[Any]) -> Self:
        """Fit the classifier to a frame with columns of numbers and of categories."""
        numbers, categories = _columns(X)
        one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=_MOST_CATEGORIES)
        columns = make_column_transformer(
            (_standardized(), numbers), (make_pipeline(FunctionTransformer(_codes), one_hot), categories)
        )
        # If no column varies, only the class frequencies can be learnt.
        last = LogisticRegression() if numbers or categories else DummyClassifier(strategy="prior")
        self._pipeline = make_pipeline(columns, last)
        with warnings.catch_warnings():  # a baseline need not converge fully
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._pipeline.fit(X, y)
        self.classes_ = self._pipeline.classes_
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return probabilities (n_rows, n_classes); `X` must have the categories of the frame in `fit`."""
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "Found unknown categories", UserWarning
            )  # new rows may have them
            proba: Floats = self._pipeline.predict_proba(X)
        return proba


def _columns(X: Any) -> tuple[list[Any], list[Any]]:
    """Return the names of the columns of numbers that vary, and of the columns of categories."""
    categories = [name for name in X.columns if hasattr(X[name].dtype, "categories")]
    numbers = [name for name in X.columns if name not in categories and X[name].nunique() > 1]
    return numbers, categories


def _standardized() -> Any:
    imputer = SimpleImputer(strategy="median", keep_empty_features=True)
    return make_pipeline(FunctionTransformer(_bounded), imputer, StandardScaler())


def _bounded(X: Any) -> Floats:
    """Clip numbers, so that their squares do not overflow."""
    return np.clip(np.asarray(X, dtype=np.float64), -_LARGEST, _LARGEST)


def _learn_numbers(X: Any, y: NDArray[Any]) -> Any:
    """Fit normal densities whose variances include one more row, at one standard deviation of all rows.

    Without this row, a class in which a column is constant by chance would have density 0 elsewhere.
    """
    fitted = make_pipeline(_standardized(), GaussianNB()).fit(X, y)
    bayes = fitted[-1]
    bayes.var_ += (1.0 - bayes.var_) / (bayes.class_count_[:, np.newaxis] + 1.0)
    return fitted


def _learn_categories(X: Any, y: NDArray[Any]) -> Any:
    n_codes = [len(dtype.categories) + 1 for dtype in X.dtypes]
    return make_pipeline(FunctionTransformer(_codes), CategoricalNB(min_categories=n_codes)).fit(X, y)


def _codes(X: Any) -> Integers:
    """Return codes of categories from 1 on, and 0 for missing values."""
    return np.column_stack([X[name].cat.codes + 1 for name in X.columns]).astype(np.int64)
