"""How many rows each class needs: one function, two methods."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state

from corral.estimators.corral_classifier import CorralClassifier
from corral.estimators.rodeo_classifier import RodeoClassifier
from corral.estimators.validation import check_choice
from corral.planning.bound import Allocation, Draw, Empty, SampleSizes, run_algorithm
from corral.planning.curve import LearningCurve


@overload
def estimate_sample_sizes(
    X: ArrayLike | Draw,
    y: ArrayLike,
    *,
    method: Literal["bound"] = ...,
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
    method: Literal["curve"],
    goal: float | None = ...,
    groups: ArrayLike | None = ...,
    estimator: CorralClassifier | None = ...,
    random_state: int | np.random.RandomState | None = ...,
) -> LearningCurve: ...


def estimate_sample_sizes(
    X: ArrayLike | Draw,
    y: ArrayLike,
    *,
    method: Literal["bound", "curve"] = "bound",
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
    r"""Estimate how many training rows each class needs.

    There are two methods. ``method="curve"`` answers the practical question: what accuracy, log loss and
    recall of each class more rows would bring, and how many reach a goal, if any number does.
    ``method="bound"`` is algorithm 4 of [1]_, which bounds the error of the paper's rule beyond that of the
    Bayes rule.

    **The curve.** The training rows are divided into halves, quarters and eighths, and every row is predicted
    by leave-one-out within its part, by a pool as `CorralClassifier` would fit it there. Power laws through
    the losses of the same rows at these sizes, with their uncertainty, are drawn on to more rows.

    **The bound.** Starting with few rows of each class, two steps alternate. The E-step fits the classifier
    and classifies the test samples. The R-step computes

    .. math::

        A_y = n_y^{(2 + r_y) / (4 + r_y)}, \qquad
        B_y = \frac \alpha 2 \int \Big|\sum_j k_j^2 f_y^{(jj)}\Big|
            + \beta \Big(\prod_j k_j\Big)^{-1/2} \int \sqrt{f_y}, \qquad
        \epsilon = \frac{A \cdot B} N

    over the :math:`r_y` relevant variables of each class, with :math:`h_j = k_j n_y^{-1/(4 + r_y)}`, adds
    `step` rows to their number N and shares N out among the classes so that A is proportional to B. It
    ends when :math:`\epsilon`, a bound on the error beyond that of the Bayes rule, is at most the
    tolerance.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features) or callable
        Rows to take the samples from, without replacement; or ``draw(label, n)``, which returns n new
        rows of a class and their labels, as the generators of `corral.datasets` do. Fewer than n rows
        say that the class has no more.
    y : array-like of shape (n_samples,)
        Classes of the rows; with a callable, the classes to draw.
    method : {"bound", "curve"}, default="bound"
        Which question is answered. Take "curve" unless it is the paper's rule that you want to bound.
    goal : float, default=None
        For the curve: wanted accuracy, and recall of each class, between 0 and 1.
    groups : array-like of shape (n_samples,), default=None
        For the curve: what rows belong to, such as patients. Rows are then predicted without their whole
        group, and all estimates are for rows of new groups.
    tolerance : float
        For the bound, which needs it and the next three: largest acceptable bound, above 0. See Notes:
        the bound is loose.
    initial_size : int
        Training rows of each class in the first step; no class ever gets fewer.
    test_size : int
        Test samples of each class, the same in every step and never used for training.
    step : int
        Rows added in each step, at least as many as there are classes; the last step may add fewer.
    estimator : RodeoClassifier or CorralClassifier, default=None
        The classifier to fit: for the bound ``RodeoClassifier()`` unless another one is given, for the
        curve ``CorralClassifier()``. It is cloned.
    allocation : {"proportional", "optimal"}, default=None
        For the bound: how N is shared out. "proportional", which None stands for, makes A proportional to B,
        as in the paper; "optimal" makes the mean over the classes of their bounds
        :math:`B_y n_y^{-2/(4+r_y)}` as small as it can be. See Notes.
    empty : {"none", "all"}, default=None
        For the bound: which variables count in a class for which none is relevant. "none", which None stands
        for, takes r = 0, as `relevant_` says; then nothing is known of its density, the run does not converge
        and the result says so. "all" counts all of them, as version 0.1.0 did: with many variables the bound
        is then huge.
    max_steps : int, default=None
        For the bound: largest number of steps, by default 100.
    random_state : int, RandomState or None, default=None
        Chooses the rows and seeds the classifier.

    Returns
    -------
    result : SampleSizes or LearningCurve
        By the bound: sizes per class, epsilon, whether it converged and why not, whether it means anything,
        the history of all steps and, where it did not converge, an extrapolation. An interrupted run
        (Ctrl-C) returns the steps it has done. By the curve: estimates for any number of rows, and the
        rows that the goal takes (`needed`): rows of all classes together, in today's proportions.

    See Also
    --------
    SampleSizeDisplay : Draws the result.

    Notes
    -----
    What the paper leaves open, and what is done here:

    - The sums of equation B2 are read as means over the samples predicted as the class, since they stand
      for integrals. Where none is predicted as the class, its own test samples are taken.
    - :math:`\alpha` is printed as a matrix; for the Gaussian kernel it is the identity, so 1. The kernel is
      that of the relevant variables, so :math:`\beta = (4\pi)^{-r/4}`.
    - The Rodeo's bandwidths differ from sample to sample, so :math:`k_j = h_j n^{1/(4+r)}` does too and is
      averaged with the rest. With ``bandwidth="class"`` it is a constant, as printed; but then one sample
      in a tail, many bandwidths away from all rows, can dominate the mean.
    - Relevant variables are those of `relevant_`. In real tables z-scores may find none for some class. See
      `empty`.
    - The printed loop enlarges N before it looks at epsilon. Here the sizes returned are those that gave
      the epsilon returned.
    - A class whose rows do not suffice gets all it has, and the others the rest. The run ends if the
      next step would ask it for more again: from there on epsilon would fall mainly because the class
      weighs less in it.

    **How to read epsilon.** It bounds an L1 error of densities, which bounds the excess error, and much is
    lost in between: on two overlapping groups of the paper (50 seeds, ``python -m benchmarks sample_size
    --seeds 50``) epsilon falls from 0.67 at N = 60 to 0.475 at N = 600, the excess error from 0.078 to
    0.033. Epsilon is 9 and 14 times as large in the median, and was never smaller. So compare sizes and
    classes by it, do not read it as an error rate, and expect to need a tolerance of several tenths: it
    falls like :math:`N^{-0.15}` there, more slowly than the asymptotic :math:`N^{-2/(4+r)}`.

    It is no strict bound on the L1 error, since the second derivatives are those of the estimate and the
    integrals see only where samples are. With ``bandwidth="class"`` the L1 error of these groups is 0.50
    and 0.40; with local bandwidths it is 0.51 and 0.69, because the tails of the local estimate are so
    heavy that it integrates to more than 1.

    Epsilon grows with the number of relevant variables. With few rows some are overlooked, and epsilon is
    too small until they are found and it jumps. Look at `r` in the history before believing that a run
    has converged; an `estimator` with another `cutpoint` may find them sooner.

    The bound means nothing, and the result says so, if a class has no relevant variable, or if it is 1 or
    more, since no error exceeds another by so much: many relevant variables make it that large.

    **Which class gets more rows.** A is proportional to B if :math:`n_y^{r_y / (4 + r_y)}` is proportional
    to the bound :math:`E_y = B_y n_y^{-2/(4+r_y)}` of the class. So of two classes with as many relevant
    variables the rougher one gets more rows. But a class with more relevant variables gets *fewer*, except
    in small samples: with 4 variables against 1, 38 of 80 rows but 129 of 480. Nor does this rule make
    epsilon small, since :math:`\sum_y n_y^{a_y} B_y` is concave in the sizes. The sizes with the least mean
    of the :math:`E_y`, ``allocation="optimal"``, have :math:`n_y^{(6+r_y)/(4+r_y)}` proportional to
    :math:`B_y / (4 + r_y)` and give the harder class more rows in both cases (298 of 480).

    **Extrapolation.** A line through log epsilon over log N is drawn on. In the groups above the 90 %
    interval held the N that was needed in 93 % of 96 cases when that was twice the last N, and in 78 % of
    98 cases when it was four times; the estimate was 4 % and 11 % too low in the median. Neither knows of
    variables that are not found yet.

    **How far to trust the curve.** On ten known data sets (4 seeds, ``python -m benchmarks
    sample_size --seeds 4``), fitted to a quarter of the rows, the accuracy with twice and four times as many
    was told to 0.016 on average; to 0.011 where the quarter had 50 rows or more, and to 0.023 and 0.049
    where it had 30 and 24, whose errors nobody can count well. The 90 % intervals held it in 89 %. Nothing is
    known of kinds of rows that are still missing, and a curve that has not begun to fall yet looks flat.

    References
    ----------
    .. [1] W.-P. N. Chen, Y.-c. I. Chang. Fast multi-class probabilistic classifier by sparse
       non-parametric density estimation.

    Examples
    --------
    >>> from corral import estimate_sample_sizes
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(200, groups=(1, 2), random_state=0)
    >>> estimate_sample_sizes(X, y, tolerance=0.6, initial_size=30, test_size=50, step=60, random_state=0)
    SampleSizes: converged, the tolerance is reached
      epsilon 0.5861 <= 0.6 with 180 rows after 3 steps; accuracy 0.820
      class 1: 92 rows, 2 relevant variables
      class 2: 88 rows, 2 relevant variables

    What would more rows bring?

    >>> curve = estimate_sample_sizes(X[::8], y[::8], method="curve", goal=0.9, random_state=0)
    >>> round(curve.accuracy(400).value, 1)
    0.8

    New rows from a simulation instead of a fixed table:

    >>> import numpy as np
    >>> random = np.random.RandomState(0)
    >>> def draw(label, n):
    ...     return make_shifted_groups(n, groups=(label,), random_state=random)
    >>> result = estimate_sample_sizes(
    ...     draw, [1, 2], tolerance=0.5, initial_size=50, test_size=50, step=100, random_state=0
    ... )
    >>> result.converged
    True
    """
    check_choice("method", method, ("bound", "curve"))
    needed: dict[str, Any] = {
        "tolerance": tolerance,
        "initial_size": initial_size,
        "test_size": test_size,
        "step": step,
    }
    optional: dict[str, Any] = {"allocation": allocation, "empty": empty, "max_steps": max_steps}
    given = {name: value for name, value in (needed | optional).items() if value is not None}
    if method == "curve":
        if given:
            raise ValueError(f"{next(iter(given))} belongs to method='bound', got method='curve'.")
        return _draw_curve(X, y, goal, groups, estimator, random_state)
    if goal is not None:
        raise ValueError(f"goal belongs to method='curve', got method='bound' and goal={goal!r}.")
    if groups is not None:
        raise ValueError("groups belong to method='curve', got method='bound'.")
    missing = [name for name in needed if name not in given]
    if missing:
        raise ValueError(f"method='bound' needs {', '.join(missing)}.")
    return run_algorithm(
        X,
        y,
        **given,
        estimator=estimator,  # checked there
        random_state=random_state,
    )


def _draw_curve(
    X: Any,
    y: ArrayLike,
    goal: float | None,
    groups: ArrayLike | None,
    estimator: Any,
    random_state: int | np.random.RandomState | None,
) -> LearningCurve:
    """Fit a pool, which checks the rows, and measure its curve."""
    if callable(X):
        raise ValueError("method='curve' needs a table of rows, got a callable.")
    if estimator is None:
        estimator = CorralClassifier()
    if not isinstance(estimator, CorralClassifier):
        raise ValueError(f"estimator must be a CorralClassifier for method='curve', got {estimator!r}.")
    random = check_random_state(random_state)
    seeded = clone(estimator).set_params(random_state=random.randint(2**31 - 1))
    fitted = seeded.fit(X, y, groups=groups)
    return LearningCurve.from_estimator(fitted, goal=goal, random_state=random)
