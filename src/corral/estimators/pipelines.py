"""Pipelines of scikit-learn whose last step is an estimator of corral.

The last step gets what the steps before it return. Reports, displays and explanations are about that step and
its rows, with the names of the columns of the table as far as the steps keep them.
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
    """The last step of a pipeline, with the names that the steps before it give its variables.

    Any other estimator is returned as it is.
    """
    last = estimator
    while isinstance(last, Pipeline):
        last = last.steps[-1][1]
    names = _names_at_the_end(estimator, last) if isinstance(estimator, Pipeline) else None
    if names is None or not isinstance(last, BaseEstimator):
        return last
    named = copy(last)  # the step of the pipeline stays as it is
    named.variable_names_ = names
    return named


def rows_of_last_step(estimator: Any, X: Any) -> Any:
    """Rows as the last step of a pipeline gets them; the same rows for any other estimator."""
    while isinstance(estimator, Pipeline):
        X = estimator[:-1].transform(X) if len(estimator) > 1 else X
        estimator = estimator.steps[-1][1]
    return X


def steps_in_words(estimator: Any) -> list[str]:
    """Names of the steps before the last one, such as "StandardScaler"; empty without a pipeline."""
    if not isinstance(estimator, Pipeline):
        return []
    kinds = [type(step).__name__ for _, step in estimator.steps[:-1] if step not in (None, "passthrough")]
    return kinds + steps_in_words(estimator.steps[-1][1])


def _names_at_the_end(pipeline: Pipeline, last: Any) -> list[str] | None:
    """Names of the columns that the last step gets, or None if a step does not name them."""
    try:
        given = getattr(last, "feature_names_in_", None)
        names = [str(name) for name in (_names_out(pipeline) if given is None else given)]
        columns = list(
            getattr(pipeline, "feature_names_in_", [f"x{j}" for j in range(pipeline.n_features_in_)])
        )
    except (AttributeError, ValueError):  # as of a FunctionTransformer, or a pipeline that is not fitted
        return None
    short = [_without_transformer(name, columns) for name in names]
    return short if len(set(short)) == len(short) else names


def _without_transformer(name: str, columns: Sequence[str]) -> str:
    """Remove the name of a transformer, which a ColumnTransformer puts before the name of a column.

    A OneHotEncoder puts a category after the name of the column.
    """
    rest = name.partition("__")[2]
    return rest if rest in columns or rest.startswith(tuple(f"{column}_" for column in columns)) else name


def _names_out(pipeline: Any) -> Any:
    """Names of the columns that the last step of a pipeline gets, from the steps before it."""
    names = None
    while isinstance(pipeline, Pipeline):
        names = pipeline[:-1].get_feature_names_out(names) if len(pipeline) > 1 else names
        pipeline = pipeline.steps[-1][1]
    return [f"x{j}" for j in range(pipeline.n_features_in_)] if names is None else names


def explain(
    estimator: Any, X: ArrayLike, *, against: ArrayLike | None = None, n_rows: int = 5
) -> Explanation:
    """Why each row of `X` gets its label and not another one, also where a pipeline gives it.

    Parameters
    ----------
    estimator : RodeoClassifier, CorralClassifier, or Pipeline that ends in one
        A fitted one.
    X : array-like of shape (n_samples, n_features)
        Samples to explain, as the pipeline takes them.
    against, n_rows
        As in `RodeoClassifier.explain`.

    Returns
    -------
    explanation : Explanation
        Its values are the inputs of the last step, such as scaled ones. Variables have the names of the
        columns of `X`, as far as the steps keep them.

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
    names = row_names(X)  # which steps may forget
    return explanation if names is None else replace(explanation, sample_names=names)


def describe(estimator: Any) -> Description:
    """What marks each class, also where it is a pipeline that has learnt the classes.

    Parameters
    ----------
    estimator : RodeoClassifier, CorralClassifier, MarkerSelector, or Pipeline that ends in one
        A fitted one.

    Returns
    -------
    description : Description
        Its values and names are as in `explain`.

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
    """Return the last step, which must have a method."""
    last = last_step(estimator)
    if not hasattr(last, name):
        raise TypeError(f"{name} needs one of our classifiers, or a pipeline that ends in one, not {last!r}.")
    return last
