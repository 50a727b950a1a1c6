"""RelevanceDisplay: the map of relevant variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from corral._display._drawing import SMALL, Floats, name_room, name_variables, pyplot, require, short_name
from corral._estimators.validation import feature_names


class RelevanceDisplay:
    """A map of classes by variables: z-scores of the mean bandwidths, relevant variables marked.

    Red cells have bandwidths below the mean of the class, blue ones above it; a dot marks the variables
    that describe the class. Make it with `from_estimator`; all parameters are stored as attributes.

    Parameters
    ----------
    zscores : ndarray of shape (n_classes, n_features)
        Mean bandwidths standardised over the variables of a class.
    relevant : ndarray of shape (n_classes, n_features), bool
        Which variables describe each class.
    classes : ndarray of shape (n_classes,)
        Class labels.
    feature_names : sequence of str
        Names of the variables.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    im_ : matplotlib AxesImage
        The map.

    See Also
    --------
    RodeoClassifier : Finds the relevant variables.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from corral import RelevanceDisplay, RodeoClassifier
    >>> from corral.datasets import make_ten_groups
    >>> X, y = make_ten_groups(100, random_state=0)
    >>> display = RelevanceDisplay.from_estimator(RodeoClassifier().fit(X, y))
    >>> display.relevant[0].nonzero()[0]
    array([0, 1, 2, 3, 4, 5])
    >>> plt.close(display.figure_)
    """

    def __init__(
        self,
        *,
        zscores: Floats,
        relevant: NDArray[np.bool_],
        classes: NDArray[Any],
        feature_names: Sequence[str],
    ) -> None:
        self.zscores = zscores
        self.relevant = relevant
        self.classes = classes
        self.feature_names = feature_names

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the relevant variables of a fitted estimator.

        Parameters
        ----------
        estimator : RodeoClassifier, RodeoClassifierCV or RodeoSelector
            A fitted estimator.
        ax : matplotlib Axes, default=None
            Where to draw; by default a new figure.

        Returns
        -------
        display : RelevanceDisplay
        """
        check_is_fitted(estimator)
        require(cls, estimator, "zscores_")
        display = cls(
            zscores=estimator.zscores_,
            relevant=estimator.relevant_,
            classes=estimator.classes_,
            feature_names=feature_names(estimator),
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the map.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; by default a new figure.

        Returns
        -------
        display : RelevanceDisplay
        """
        n_classes, d = self.zscores.shape
        if ax is None:
            width = min(max(4.5, 2.5 + 0.16 * d), 16.0)
            height = min(max(1.8, 0.8 + 0.22 * n_classes), 12.0) + name_room(self.feature_names)
            _, ax = pyplot().subplots(figsize=(width, height), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        limit = max(1.0, float(np.abs(self.zscores).max()))
        self.im_ = ax.imshow(
            self.zscores, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest"
        )
        rows, columns = np.nonzero(self.relevant)
        ax.plot(
            columns,
            rows,
            linestyle="none",
            marker="o",
            markersize=4,
            markerfacecolor="white",
            markeredgecolor="black",
            label="relevant",
        )
        name_variables(ax, self.feature_names)  # before the bar takes some of the room that is counted on
        bar = self.figure_.colorbar(self.im_, ax=ax, pad=0.02)
        bar.set_label("z-score of bandwidth\n(dot: relevant)", fontsize=SMALL + 1)
        bar.ax.tick_params(labelsize=SMALL)
        ax.set_yticks(np.arange(n_classes), [short_name(label) for label in self.classes], parse_math=False)
        ax.set(xlabel="variable", ylabel="class", xlim=(-0.5, d - 0.5), ylim=(n_classes - 0.5, -0.5))
        ax.tick_params(labelsize=SMALL)
        return self
