"""SampleSizeDisplay: curves of the result of `estimate_sample_sizes`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from corral.display.drawing import panels
from corral.planning import LearningCurve, SampleSizes
from corral.planning.curve import TIMES

# Points of each curve.
_N_POINTS = 40


class SampleSizeDisplay:
    """Curves of the result of `estimate_sample_sizes`, against the number N of rows of all classes.

    For a bound: epsilon, rows of each class and accuracy of each step. For a learning curve: accuracy, log
    loss and recall of each class, as measured and as expected for up to four times the rows, with 90%
    intervals. `from_result` makes this display.

    Parameters
    ----------
    result : SampleSizes or LearningCurve
        The result, stored as an attribute.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of shape (3,)
        The axes of epsilon, rows and accuracy; or of accuracy, log loss and recall.

    See Also
    --------
    estimate_sample_sizes : Computes the result.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from corral import SampleSizeDisplay, estimate_sample_sizes
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(100, groups=(4, 5), random_state=0)
    >>> result = estimate_sample_sizes(X, y, goal=0.95, random_state=0)
    >>> display = SampleSizeDisplay.from_result(result)
    >>> [axes.get_ylabel() for axes in display.axes_]
    ['accuracy', 'log loss', 'recall']
    >>> plt.close(display.figure_)
    """

    def __init__(self, result: SampleSizes | LearningCurve) -> None:
        self.result = result

    @classmethod
    def from_result(cls, result: SampleSizes | LearningCurve, *, axes: Sequence[Any] | None = None) -> Self:
        """Draw a result of `estimate_sample_sizes`.

        Parameters
        ----------
        result : SampleSizes or LearningCurve
            The result.
        axes : three matplotlib Axes, default=None
            Axes to draw in; by default a new figure.

        Returns
        -------
        display : SampleSizeDisplay
        """
        return cls(result).plot(axes)

    def plot(self, axes: Sequence[Any] | None = None) -> Self:
        """Draw the three curves.

        Parameters
        ----------
        axes : three matplotlib Axes, default=None
            Axes to draw in; by default a new figure.

        Returns
        -------
        display : SampleSizeDisplay
        """
        self.axes_ = panels(axes, 3, columns=3, figsize=(12, 3.5))
        self.figure_ = self.axes_[0].figure
        if isinstance(self.result, LearningCurve):
            _plot_curve(self.axes_, self.result)
        else:
            _plot_bound(self.axes_, self.result)
        return self


def _plot_bound(axes: NDArray[Any], result: SampleSizes) -> None:
    """Draw epsilon, rows of each class and accuracy against N."""
    epsilon_axes, size_axes, accuracy_axes = axes
    sizes = np.array([step.sizes for step in result.steps])
    totals = sizes.sum(axis=1)
    epsilon_axes.plot(totals, [step.epsilon for step in result.steps], marker=".", label="epsilon")
    epsilon_axes.axhline(result.tolerance, color="black", linestyle=":", label="tolerance")
    guess = result.extrapolation
    if guess is not None and np.isfinite(guess.total):
        # A dashed line to the N at which the tolerance may be reached, and a bar for the interval of this N.
        ends = [totals[-1], guess.total], [result.epsilon, result.tolerance]
        epsilon_axes.plot(*ends, linestyle="--", color="gray", label="extrapolation")
        high = guess.high if np.isfinite(guess.high) else guess.total
        epsilon_axes.plot([guess.low, high], [result.tolerance] * 2, color="gray", linewidth=4, alpha=0.5)
        epsilon_axes.set_xscale("log")
    epsilon_axes.legend()
    for label, n in zip(result.classes, sizes.T, strict=True):
        size_axes.plot(totals, n, marker=".", label=str(label))
    size_axes.legend(title="class")
    accuracy_axes.plot(totals, [step.accuracy for step in result.steps], marker=".")
    for each, name in zip(axes, ("epsilon", "rows", "accuracy"), strict=True):
        each.set(xlabel="N, rows of all classes", ylabel=name)


def _plot_curve(axes: NDArray[Any], curve: LearningCurve) -> None:
    """Draw measured and expected accuracy, log loss and recall against the number of rows."""
    accuracy_axes, log_loss_axes, recall_axes = axes
    measured = curve.measured
    _plot_expected(accuracy_axes, curve.accuracy, measured.accuracies, curve, "all classes")
    _plot_expected(log_loss_axes, curve.log_loss, measured.mean_log_losses, curve, "all classes")
    for label, size, recalls in zip(curve.classes.tolist(), curve.sizes, measured.recalls.T, strict=True):
        if size > 0:
            _plot_expected(recall_axes, partial(curve.recall, label), recalls, curve, str(label))
    recall_axes.legend(title="class")
    for each, name in zip(axes, ("accuracy", "log loss", "recall"), strict=True):
        each.set(xlabel="rows of all classes", ylabel=name, xscale="log")
        if curve.goal is not None and name != "log loss":
            each.axhline(curve.goal, color="black", linestyle=":")


def _plot_expected(
    axes: Any, expected: Callable[[float], Any], measured: NDArray[Any], curve: LearningCurve, label: str
) -> None:
    """Draw dots for measured values, and a line with a band for expected values."""
    grid = np.geomspace(curve.n_rows, max(TIMES) * curve.n_rows, _N_POINTS)
    value, low, high = np.array([expected(float(n)) for n in grid]).T
    [line] = axes.plot(curve.measured.rows, measured, marker="o", linestyle="", label=label)
    axes.plot(grid, value, color=line.get_color())
    axes.fill_between(grid, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
