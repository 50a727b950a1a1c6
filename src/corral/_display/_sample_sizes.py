"""SampleSizeDisplay: how many rows classes need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from corral._display._drawing import Floats, check_axes, pyplot
from corral._planning import Extrapolation, SampleSizes


class SampleSizeDisplay:
    """What `estimate_sample_sizes` found, step by step: epsilon, rows per class and accuracy against N.

    Make it with `from_result`; all parameters are stored as attributes.

    Parameters
    ----------
    totals : ndarray of shape (n_steps,)
        N, the number of training rows.
    epsilon, accuracy : ndarray of shape (n_steps,)
        Bound on the excess error, and accuracy on the test samples.
    sizes : ndarray of shape (n_steps, n_classes)
        Training rows of each class.
    classes : ndarray of shape (n_classes,)
        Class labels.
    tolerance : float
        What epsilon had to reach.
    extrapolation : Extrapolation, default=None
        Where it might reach it.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of shape (3,)
        The axes of epsilon, rows and accuracy.

    See Also
    --------
    estimate_sample_sizes : Computes what is drawn here.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from corral import SampleSizeDisplay, estimate_sample_sizes
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(100, groups=(4, 5), random_state=0)
    >>> result = estimate_sample_sizes(
    ...     X, y, tolerance=0.5, initial_size=20, test_size=20, step=20, random_state=0
    ... )
    >>> display = SampleSizeDisplay.from_result(result)
    >>> [axes.get_ylabel() for axes in display.axes_]
    ['epsilon', 'rows', 'accuracy']
    >>> plt.close(display.figure_)
    """

    def __init__(
        self,
        *,
        totals: NDArray[np.int64],
        epsilon: Floats,
        accuracy: Floats,
        sizes: NDArray[np.int64],
        classes: NDArray[Any],
        tolerance: float,
        extrapolation: Extrapolation | None = None,
    ) -> None:
        self.totals = totals
        self.epsilon = epsilon
        self.accuracy = accuracy
        self.sizes = sizes
        self.classes = classes
        self.tolerance = tolerance
        self.extrapolation = extrapolation

    @classmethod
    def from_result(cls, result: SampleSizes, *, axes: Sequence[Any] | None = None) -> Self:
        """Draw a result of `estimate_sample_sizes`.

        Parameters
        ----------
        result : SampleSizes
        axes : three matplotlib Axes, default=None
            Where to draw; by default a new figure.

        Returns
        -------
        display : SampleSizeDisplay
        """
        sizes = np.array([step.sizes for step in result.steps])
        display = cls(
            totals=sizes.sum(axis=1),
            epsilon=np.array([step.epsilon for step in result.steps]),
            accuracy=np.array([step.accuracy for step in result.steps]),
            sizes=sizes,
            classes=result.classes,
            tolerance=result.tolerance,
            extrapolation=result.extrapolation,
        )
        return display.plot(axes)

    def plot(self, axes: Sequence[Any] | None = None) -> Self:
        """Draw the three curves.

        Parameters
        ----------
        axes : three matplotlib Axes, default=None
            Where to draw; by default a new figure.

        Returns
        -------
        display : SampleSizeDisplay
        """
        if axes is None:
            _, axes = pyplot().subplots(1, 3, figsize=(12, 3.5), layout="constrained")
        of_epsilon, of_sizes, of_accuracy = self.axes_ = check_axes(axes, 3)
        self.figure_ = of_epsilon.figure
        of_epsilon.plot(self.totals, self.epsilon, marker=".", label="epsilon")
        of_epsilon.axhline(self.tolerance, color="black", linestyle=":", label="tolerance")
        guess = self.extrapolation
        if guess is not None and np.isfinite(guess.total):
            self._plot_extrapolation(of_epsilon, guess)
        of_epsilon.legend()
        for label, n in zip(self.classes, self.sizes.T, strict=True):
            of_sizes.plot(self.totals, n, marker=".", label=str(label))
        of_sizes.legend(title="class")
        of_accuracy.plot(self.totals, self.accuracy, marker=".")
        for each, name in zip(self.axes_, ("epsilon", "rows", "accuracy"), strict=True):
            each.set(xlabel="N, rows of all classes", ylabel=name)
        return self

    def _plot_extrapolation(self, axes: Any, guess: Extrapolation) -> None:
        """A dashed line to where the tolerance might be reached, and a bar over the interval of N."""
        axes.plot(
            [self.totals[-1], guess.total],
            [self.epsilon[-1], self.tolerance],
            linestyle="--",
            color="gray",
            label="extrapolation",
        )
        end = guess.high if np.isfinite(guess.high) else guess.total
        axes.plot([guess.low, end], [self.tolerance] * 2, color="gray", linewidth=4, alpha=0.5)
        axes.set_xscale("log")
