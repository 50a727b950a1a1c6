"""Pipelines of scikit-learn whose last step is a corral estimator.

The last step reads the output of the earlier steps. Reports, displays and explanations show the values that
the last step reads. If the earlier steps keep the names of columns, variables have these names.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from corral.estimators.description import Description
from corral.estimators.explanation import Explanation
from corral.estimators.validation import row_names


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, with names of its variables; return any other estimator unchanged.

    The names of the variables are the column names that the earlier steps return.
    """
    last = estimator
    while isinstance(last, Pipeline):
        last = last.steps[-1][1]
    names = _names_at_the_end(estimator, last) if isinstance(estimator, Pipeline) else None
    if names is None or not isinstance(last, BaseEstimator):
        return last
    named = copy(last)  # so that the step of the pipeline does not change
    named.variable_names_ = names
    return named


def rows_of_last_step(estimator: Any, X: Any) -> Any:
    """Transform rows by all steps of a pipeline but the last; for any other estimator return `X`."""
    while isinstance(estimator, Pipeline):
        X = estimator[:-1].transform(X) if len(estimator) > 1 else X
        estimator = estimator.steps[-1][1]
    return X


def steps_in_words(estimator: Any) -> list[str]:
    """List the class names of the steps before the last, such as "StandardScaler"; empty if no pipeline."""
    if not isinstance(estimator, Pipeline):
        return []
    kinds = [type(step).__name__ for _, step in estimator.steps[:-1] if step not in (None, "passthrough")]
    return kinds + steps_in_words(estimator.steps[-1][1])


def _names_at_the_end(pipeline: Pipeline, last: Any) -> list[str] | None:
    """List the names of the columns that the last step reads; None if a step has no names for them."""
    try:
        given = getattr(last, "feature_names_in_", None)
        names = [str(name) for name in (_names_out(pipeline) if given is None else given)]
        columns = list(
            getattr(pipeline, "feature_names_in_", [f"x{j}" for j in range(pipeline.n_features_in_)])
        )
    except (AttributeError, ValueError):  # such as a FunctionTransformer, or a pipeline that is not fitted
        return None
    short = [_without_transformer(name, columns) for name in names]
    return short if len(set(short)) == len(short) else names


def _without_transformer(name: str, columns: Sequence[str]) -> str:
    """Remove the prefix "TRANSFORMER__" that a ColumnTransformer adds to the name of a column.

    The rest may be the name of a column with a suffix, since a OneHotEncoder appends "_CATEGORY". Any other
    name is returned unchanged.
    """
    rest = name.partition("__")[2]
    return rest if rest in columns or rest.startswith(tuple(f"{column}_" for column in columns)) else name


def _names_out(pipeline: Any) -> Any:
    """List the names of the columns that the last step reads, from `get_feature_names_out` of the steps."""
    names = None
    while isinstance(pipeline, Pipeline):
        names = pipeline[:-1].get_feature_names_out(names) if len(pipeline) > 1 else names
        pipeline = pipeline.steps[-1][1]
    return [f"x{j}" for j in range(pipeline.n_features_in_)] if names is None else names


def explain(
    estimator: Any, X: ArrayLike, *, against: ArrayLike | None = None, n_rows: int = 5
) -> Explanation:
    """Explain why each row gets its label rather than another label, for classifiers and pipelines.

    Parameters
    ----------
    estimator : RodeoClassifier, CorralClassifier or Pipeline
        Fitted classifier, or fitted pipeline whose last step is such a classifier.
    X : array-like of shape (n_samples, n_features)
        Rows to explain, with the columns of the input of the pipeline.
    against, n_rows
        As in `RodeoClassifier.explain`.

    Returns
    -------
    explanation : Explanation
        Values and variables are inputs of the last step, for example scaled values. If the earlier steps keep
        the names of columns, variables have these names.

    Examples
    --------
    >>> from corral import RodeoClassifier, explain
    >>> from corral.datasets import make_shifted_groups
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = make_shifted_groups(200, groups=(4, 5), random_state=0)
    >>> pipeline = make_pipeline(StandardScaler(), RodeoClassifier()).fit(X, y)
    >>> print(explain(pipeline, X[:1] + 0.01))
    sample 0: 4 (...
      evidence: x0 ...
      closest:  row ...
    """
    last = _require(estimator, "explain")
    explanation: Explanation = last.explain(rows_of_last_step(estimator, X), against=against, n_rows=n_rows)
    names = row_names(X)  # the output of earlier steps may have no index
    return explanation if names is None else replace(explanation, sample_names=names)


def describe(estimator: Any) -> Description:
    """Describe each class by its markers, for estimators and pipelines.

    Parameters
    ----------
    estimator : RodeoClassifier, CorralClassifier, MarkerSelector or Pipeline
        Fitted estimator, or fitted pipeline whose last step is such an estimator.

    Returns
    -------
    description : Description
        Values and variables are inputs of the last step, as in `explain`.

    Examples
    --------
    >>> from corral import CorralClassifier, describe
    >>> from corral.datasets import make_shifted_groups
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import MinMaxScaler
    >>> X, y = make_shifted_groups(100, groups=(4, 5), random_state=0)
    >>> pipeline = make_pipeline(MinMaxScaler(), CorralClassifier(random_state=0)).fit(X, y)
    >>> print(describe(pipeline))
    4: the same variables as for 5, in the opposite direction
    5: x0 high ...
    """
    description: Description = _require(estimator, "describe").describe()
    return description


def _require(estimator: Any, name: str) -> Any:
    """Return the last step; raise TypeError if it has no method of this name."""
    last = last_step(estimator)
    if not hasattr(last, name):
        raise TypeError(
            f"{name} needs a corral estimator with this method, or a pipeline that ends in one, not {last!r}."
        )
    return last
