"""`estimate_sample_sizes`: number of training rows that are needed, by two methods."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state

from corral.estimators.corral_classifier import CorralClassifier
from corral.estimators.rodeo_classifier import RodeoClassifier
from corral.estimators.validation import check_choice
from corral.planning.bound import Allocation, Empty, SampleSizes, run_algorithm
from corral.planning.curve import LearningCurve
from corral.planning.supply import Draw


@overload
def estimate_sample_sizes(
    X: ArrayLike | Draw,
    y: ArrayLike,
    *,
    method: Literal["bound"],
    tolerance: float,
    initial_size: int,
    test_size: int,
    step: int,
    estimator: RodeoClassifier | None = ...,
    allocation: Allocation = ...,
    empty: Empty = ...,
    max_steps: int = ...,
    random_state: int | np.random.RandomState | None = ...,
) -> SampleSizes: ...


@overload
def estimate_sample_sizes(
    X: ArrayLike,
    y: ArrayLike,
    *,
    method: Literal["curve"] = ...,
    goal: float | None = ...,
    groups: ArrayLike | None = ...,
    estimator: CorralClassifier | None = ...,
    random_state: int | np.random.RandomState | None = ...,
) -> LearningCurve: ...


def estimate_sample_sizes(
    X: ArrayLike | Draw,
    y: ArrayLike,
    *,
    method: Literal["curve", "bound"] = "curve",
    goal: float | None = None,
    groups: ArrayLike | None = None,
    tolerance: float | None = None,
    initial_size: int | None = None,
    test_size: int | None = None,
    step: int | None = None,
    estimator: RodeoClassifier | CorralClassifier | None = None,
    allocation: Allocation | None = None,
    empty: Empty | None = None,
    max_steps: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> SampleSizes | LearningCurve:
    """Estimate how many training rows are needed.

    ``method="curve"`` estimates the accuracy, the log loss and the recall of each class with more rows of all
    classes, and the number of rows that reaches a goal. The rows are divided into halves, quarters and
    eighths. Every row is predicted from the other rows of its part. Power laws are fitted to the losses and
    extrapolated.

    ``method="bound"`` is algorithm 4 of [1]_, which adds rows of each class until a bound epsilon is at most
    the tolerance. Epsilon bounds the excess error: the error rate of the paper's classifier minus that of the
    Bayes rule. The bound is loose. The guide on sample sizes explains both methods and their accuracy.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features) or callable
        Table of rows. For the bound, also a function ``draw(label, n)`` that returns n new rows of a class
        and their labels, as the generators of `corral.datasets` do. If the function returns fewer than n
        rows, the class has no more rows.
    y : array-like of shape (n_samples,)
        Classes of the rows; if X is a function, the labels of the classes.
    method : {"curve", "bound"}, default="curve"
        Learning curve of `CorralClassifier`, or bound of `RodeoClassifier`.
    goal : float, default=None
        For the curve: wanted accuracy, and wanted recall of each class, between 0 and 1.
    groups : array-like of shape (n_samples,), default=None
        For the curve: the group of each row, such as a patient. When a row is predicted, its whole group is
        left out, so all estimates are for rows of new groups.
    tolerance : float
        For the bound (required): largest acceptable epsilon, above 0; several tenths are realistic.
    initial_size : int
        For the bound (required): training rows of each class in the first step, and fewest rows in all steps.
    test_size : int
        For the bound (required): test samples of each class. They stay the same and are never used for
        training.
    step : int
        For the bound (required): rows of all classes that are added in each step, at least the number of
        classes. The last step may add fewer.
    estimator : RodeoClassifier or CorralClassifier, default=None
        Classifier that is cloned and fitted. None for ``CorralClassifier()`` by the curve, and for
        ``RodeoClassifier()`` by the bound.
    allocation : {"proportional", "optimal"}, default=None
        For the bound: how rows are divided among the classes. "proportional" (default) is the rule of the
        paper; "optimal" minimizes the mean of the bounds of the classes.
    empty : {"none", "all"}, default=None
        For the bound: the variables that are used for a class without relevant variables. With "none"
        (default) the run does not converge, and the result has a caveat. With "all" the bound is huge if
        there are many variables.
    max_steps : int, default=None
        For the bound: largest number of steps; None for 100.
    random_state : int, RandomState or None, default=None
        Seed of the random order of the rows and of the classifier.

    Returns
    -------
    result : LearningCurve or SampleSizes
        For the curve: estimated scores for any number of rows, and the total number of rows that the goal
        needs, in the current proportions of the classes. For the bound: training rows of each class, epsilon,
        caveats, and the history of the steps. If the run is interrupted (Ctrl-C), the result has the finished
        steps.

    See Also
    --------
    SampleSizeDisplay : Plot of the result.
    LearningCurve : Result of the curve.
    SampleSizes : Result of the bound.

    References
    ----------
    .. [1] W.-P. N. Chen, Y.-c. I. Chang. Fast multi-class probabilistic classifier by sparse
       non-parametric density estimation.

    Examples
    --------
    >>> from corral import estimate_sample_sizes
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(200, groups=(1, 2), random_state=0)
    >>> estimate_sample_sizes(X, y, goal=0.8, random_state=0)
    LearningCurve: accuracy 0.83... with the current 400 rows, ...
    >>> bound = {"method": "bound", "initial_size": 30, "test_size": 50, "step": 60, "random_state": 0}
    >>> estimate_sample_sizes(X, y, tolerance=0.6, **bound)
    SampleSizes: converged, the tolerance is reached
      epsilon 0.5861 <= 0.6 with 180 rows after 3 steps; accuracy 0.820
      class 1: 92 rows, 2 relevant variables
      class 2: 88 rows, 2 relevant variables

    New rows from a simulation instead of a fixed table:

    >>> import numpy as np
    >>> random = np.random.RandomState(0)
    >>> def draw(label, n):
    ...     return make_shifted_groups(n, groups=(label,), random_state=random)
    >>> result = estimate_sample_sizes(draw, [1, 2], tolerance=0.6, **bound)
    >>> result.converged
    True
    """
    check_choice("method", method, ("curve", "bound"))
    needed = {"tolerance": tolerance, "initial_size": initial_size, "test_size": test_size, "step": step}
    optional = {"allocation": allocation, "empty": empty, "max_steps": max_steps}
    given: dict[str, Any] = {name: value for name, value in (needed | optional).items() if value is not None}
    if method == "bound":
        if goal is not None:
            raise ValueError(f"goal belongs to method='curve', got method='bound' and goal={goal!r}.")
        if groups is not None:
            raise ValueError("groups belong to method='curve', got method='bound'.")
        missing = [name for name in needed if name not in given]
        if missing:
            raise ValueError(f"method='bound' needs {', '.join(missing)}.")
        return run_algorithm(X, y, **given, estimator=estimator, random_state=random_state)
    if given:
        raise ValueError(f"{next(iter(given))} belongs to method='bound', got method='curve'.")
    if callable(X):
        raise ValueError(
            "method='curve' needs a table of rows, got a callable; only method='bound' accepts one."
        )
    if estimator is None:
        estimator = CorralClassifier()
    if not isinstance(estimator, CorralClassifier):
        raise ValueError(f"estimator must be a CorralClassifier for method='curve', got {estimator!r}.")
    random = check_random_state(random_state)
    fitted = clone(estimator).set_params(random_state=random.randint(2**31 - 1)).fit(X, y, groups=groups)
    return LearningCurve.from_estimator(fitted, goal=goal, random_state=random)
