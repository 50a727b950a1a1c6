"""BandwidthDisplay: box plots of bandwidths, class by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from corral.array_types import Bools, Floats
from corral.display.drawing import (
    BLUE,
    SMALL,
    UNITS,
    name_room,
    name_variables,
    panels,
    require,
    short_name,
)
from corral.estimators.pipelines import rows_of_last_step
from corral.estimators.validation import check_known_labels, feature_names
from corral.sentences.numbers import counted

_RELEVANT = "#56B4E9"
_INITIAL: dict[str, Any] = {
    "color": "black",
    "linestyle": ":",
    "linewidth": 1.0,
    "label": "initial bandwidth",
}


@dataclass(kw_only=True, eq=False, repr=False)
class BandwidthDisplay:
    """Box plots of bandwidths: one panel for each class, one box for each variable.

    In a variable with a low box the density of the class varies; in a variable with a box near the initial
    bandwidth the density is flat. `from_estimator` makes this display; all parameters are stored as
    attributes.

    Parameters
    ----------
    bandwidths : sequence of ndarrays of shape (n_rows, n_features)
        Bandwidths at the rows of each panel. A panel may have no rows.
    titles : sequence of str
        Titles of the panels.
    feature_names : sequence of str
        Names of the variables.
    initial_bandwidths : sequence of float, default=None
        Initial bandwidth of each panel, drawn as a line.
    relevant : ndarray of shape (n_panels, n_features), bool, default=None
        Variables whose boxes are filled. If None, no box is filled.
    units : str, default="scaled units"
        Units of the bandwidths.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of shape (n_panels,)
        The panels.

    See Also
    --------
    RodeoClassifier.local_bandwidths : Computes the bandwidths.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from corral import BandwidthDisplay, RodeoClassifier
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(100, groups=(4, 5), random_state=0)
    >>> X_test, _ = make_shifted_groups(50, groups=(4, 5), random_state=1)
    >>> display = BandwidthDisplay.from_estimator(RodeoClassifier().fit(X, y), X_test)
    >>> [axes.get_title() for axes in display.axes_]
    ['4 (50 rows)', '5 (50 rows)']
    >>> plt.close(display.figure_)
    """

    bandwidths: Sequence[Floats]
    titles: Sequence[str]
    feature_names: Sequence[str]
    initial_bandwidths: Sequence[float] | None = None
    relevant: Bools | None = None
    units: str = "scaled units"

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, y: ArrayLike | None = None, *, axes: Any = None
    ) -> Self:
        """Draw the bandwidths at the rows of a table, each in the panel of its class.

        Parameters
        ----------
        estimator : RodeoClassifier or RodeoDensity, or Pipeline that ends in one
            A fitted estimator. A density has one panel. If bandwidths are the same at all rows
            (``bandwidth="class"``), boxes are lines.
        X : array-like of shape (n_samples, n_features)
            Rows that were not used in `fit`: at a training row bandwidths are smaller, because the row itself
            is part of the density.
        y : array-like of shape (n_samples,), default=None
            Classes of the rows, by default the predicted classes, as in the paper. Ignored if the estimator
            is a density.
        axes : matplotlib Axes, default=None
            Axes to draw in, one for each panel; by default a new figure.

        Returns
        -------
        display : BandwidthDisplay
        """
        X = rows_of_last_step(estimator, X)
        estimator = require(cls, estimator, "local_bandwidths")
        h = estimator.local_bandwidths(X)
        parts, titles, relevant = [h], [counted(len(h), "row")], None
        if h.ndim == 3:  # (n_rows, n_classes, n_features) for a classifier
            labels = estimator.predict(X) if y is None else check_known_labels(y, len(h), estimator.classes_)
            parts = [h[labels == label, a] for a, label in enumerate(estimator.classes_)]
            titles = [
                f"{short_name(label)} ({counted(len(part), 'row')})"
                for label, part in zip(estimator.classes_, parts, strict=True)
            ]
            relevant = estimator.relevant_
        display = cls(
            bandwidths=parts,
            titles=titles,
            feature_names=feature_names(estimator),
            initial_bandwidths=np.atleast_1d(estimator.initial_bandwidth_).tolist(),
            relevant=relevant,
            units=UNITS[estimator.scale],
        )
        return display.plot(axes)

    def plot(self, axes: Any = None) -> Self:
        """Draw the panels.

        Parameters
        ----------
        axes : matplotlib Axes, default=None
            Axes to draw in, one for each panel; by default a new figure.

        Returns
        -------
        display : BandwidthDisplay
        """
        n, d = len(self.bandwidths), len(self.feature_names)
        columns = 2 if n > 1 and d <= 40 else 1
        lines = -(-n // columns)
        has_spare = lines * columns > n
        width = min(max(6.0, 1.5 + 0.19 * d * columns), 16.0)
        height = 0.8 + 1.6 * lines + (1 + has_spare) * name_room(self.feature_names)
        labels = {"xlabel": "variable", "ylabel": f"bandwidth ({self.units})"}
        new = {"figsize": (width, height), "sharex": True, "sharey": True}
        self.axes_ = panels(axes, n, lines=lines, columns=columns, **new)
        self.figure_ = self.axes_[0].figure
        if axes is None:
            self.figure_.supxlabel(labels["xlabel"], fontsize="medium")
            self.figure_.supylabel(labels["ylabel"], fontsize="medium")
            self._add_legend()
            if has_spare:
                self.axes_[-2].tick_params(labelbottom=True)  # no panel is below this panel
        else:
            for axis in self.axes_:
                axis.set(**labels)
        for k, axis in enumerate(self.axes_):
            self._plot_panel(axis, k)
        initial = [] if self.initial_bandwidths is None else [np.array(self.initial_bandwidths)]
        top = max(float(h.max(initial=0.0)) for h in [*self.bandwidths, *initial])
        for axis in self.axes_:  # all panels have the same limits, so that they can be compared
            axis.set_ylim(0.0, 1.08 * top)
        return self

    def _plot_panel(self, axes: Any, k: int) -> None:
        h, d = self.bandwidths[k], len(self.feature_names)
        if self.initial_bandwidths is not None:
            axes.axhline(self.initial_bandwidths[k], **_INITIAL)
        if len(h):
            boxes = axes.boxplot(
                h,
                positions=np.arange(d),
                widths=0.7,
                manage_ticks=False,  # otherwise each box would set all ticks again, which is slow
                patch_artist=True,
                boxprops={"facecolor": "white", "edgecolor": "0.3", "linewidth": 0.8},
                whiskerprops={"color": "0.3", "linewidth": 0.8},
                showcaps=False,
                flierprops={"marker": ".", "markersize": 2, "markeredgecolor": "0.3"},
                medianprops={"color": "black", "linewidth": 1.5},
            )
            for j in [] if self.relevant is None else np.flatnonzero(self.relevant[k]):
                boxes["boxes"][j].set_facecolor(_RELEVANT)
                boxes["medians"][j].set_color(BLUE)  # of a box without height only the median is visible
            for artist in chain.from_iterable(boxes.values()):
                artist.set_in_layout(False)  # boxes lie inside the panel, and measuring all of them is slow
        else:
            axes.text(0.5, 0.5, "no rows", ha="center", va="center", transform=axes.transAxes)
        axes.set_title(self.titles[k], fontsize="medium", parse_math=False)
        axes.tick_params(labelsize=SMALL)
        axes.set_xlim(-1, d)
        name_variables(axes, self.feature_names)

    def _add_legend(self) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        handles: list[Any] = []
        if self.relevant is not None:
            handles.append(Patch(facecolor=_RELEVANT, edgecolor="0.3", label="relevant variable"))
        if self.initial_bandwidths is not None:
            handles.append(Line2D([], [], **_INITIAL))
        options = {"loc": "outside upper right", "ncols": 2, "fontsize": "small", "frameon": False}
        if handles:
            self.figure_.legend(handles=handles, **options)
