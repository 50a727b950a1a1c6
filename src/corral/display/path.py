"""RodeoPathDisplay: how the Rodeo chose the bandwidths at a sample, sweep by sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from corral.array_types import Integers
from corral.display.drawing import COLORS, GREY, UNITS, one_row, panels, require, short_name
from corral.estimators.pipelines import rows_of_last_step
from corral.estimators.rodeo_density import RodeoDensity
from corral.estimators.validation import check_integer, feature_names
from corral.rodeo.path import RodeoPath

# Markers of bandwidths that the test stops, and of bandwidths that the floor (the least bandwidth) stops.
_MARKERS = ("o", "v")


@dataclass(kw_only=True, eq=False, repr=False)
class RodeoPathDisplay:
    r"""How the Rodeo chose the bandwidths of one sample, sweep by sweep.

    In each sweep, the Rodeo tests each variable and shrinks its bandwidth if the test finds that the density
    varies. The upper axes show the bandwidth of each variable after each sweep. The lower axes show
    :math:`|Z_j| / \lambda_j`, which must exceed 1 for the bandwidth to shrink further. A marker is drawn
    where the bandwidth of a variable stops: a circle if the test stops it, a triangle if the bandwidth has
    reached its floor. `from_estimator` makes this display; all parameters are stored as attributes.

    Parameters
    ----------
    path : RodeoPath
        Bandwidths and ratios.
    feature_names : sequence of str
        Names of the variables.
    title : str, default=""
        Title of the figure.
    units : str, default="scaled units"
        Units of the bandwidths.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of shape (2,)
        The axes of the bandwidths and of the ratios.

    See Also
    --------
    RodeoClassifier.bandwidth_path : Computes the bandwidths and ratios.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from corral import RodeoClassifier, RodeoPathDisplay
    >>> from corral.datasets import make_ten_groups
    >>> X, y = make_ten_groups(100, random_state=0)
    >>> X_test, _ = make_ten_groups(1, random_state=1)
    >>> display = RodeoPathDisplay.from_estimator(RodeoClassifier().fit(X, y), X_test, label=1)
    >>> display.path.n_tests[:10]  # the first six variables describe class 1
    array([28, 25, 15, 10, 15, 10,  3,  5,  4,  6])
    >>> plt.close(display.figure_)
    """

    path: RodeoPath
    feature_names: Sequence[str]
    title: str = ""
    units: str = "scaled units"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        *,
        sample: int = 0,
        label: Any = None,
        max_variables: int = 6,
        axes: Any = None,
    ) -> Self:
        """Compute and draw the bandwidths of all sweeps at one sample.

        Parameters
        ----------
        estimator : RodeoClassifier or RodeoDensity, or Pipeline that ends in one
            A fitted estimator.
        X : array-like of shape (n_samples, n_features)
            Samples.
        sample : int, default=0
            Position of the sample in `X`. Other samples are not read.
        label : label, default=None
            Class whose density is estimated, by default the predicted class. Must be None for a
            `RodeoDensity`.
        max_variables : int, default=6
            Number of variables in color: the variables with the smallest bandwidths. Other variables are
            grey.
        axes : two matplotlib Axes, default=None
            Axes to draw in; by default a new figure.

        Returns
        -------
        display : RodeoPathDisplay
        """
        x = rows_of_last_step(estimator, one_row(X, sample))
        estimator = require(cls, estimator, "bandwidth_path")
        if isinstance(estimator, RodeoDensity):
            if label is not None:
                raise ValueError(f"label must be None for a RodeoDensity, got {label!r}.")
            path, title = estimator.bandwidth_path(x), f"sample {sample}"
        else:
            label = estimator.predict(x)[0] if label is None else label
            path, title = estimator.bandwidth_path(x, label), f"sample {sample} in class {short_name(label)}"
        names, units = feature_names(estimator), UNITS[estimator.scale]
        display = cls(path=path, feature_names=names, title=title, units=units)
        return display.plot(axes, max_variables=max_variables)

    def plot(self, axes: Any = None, *, max_variables: int = 6) -> Self:
        """Draw bandwidths and ratios.

        Parameters
        ----------
        axes : two matplotlib Axes, default=None
            Axes to draw in; by default a new figure.
        max_variables : int, default=6
            Number of variables in color: the variables with the smallest bandwidths. Other variables are
            grey.

        Returns
        -------
        display : RodeoPathDisplay
        """
        named = self._strongest()[: check_integer("max_variables", max_variables)]
        bandwidth_axes, ratio_axes = self.axes_ = panels(axes, 2, lines=2, figsize=(7.0, 5.5), sharex=True)
        self.figure_ = bandwidth_axes.figure
        others = np.setdiff1d(np.arange(len(self.feature_names)), named)
        grey = [self._plot_variable(j, GREY, linewidth=0.7) for j in others.tolist()]
        colored = [
            self._plot_variable(j, COLORS[i % len(COLORS)], linewidth=1.8)
            for i, j in enumerate(named.tolist())
        ]
        ratio_axes.axhline(1.0, color="black", linestyle=":", linewidth=1.2)
        self._set_scales()
        bandwidth_axes.set_title(self.title, fontsize="medium", parse_math=False)
        bandwidth_axes.set_ylabel(f"bandwidth ({self.units})")
        ratio_axes.set_ylabel(r"$|Z_j| \,/\, \lambda_j$")
        ratio_axes.set_xlabel("sweep")
        for axis in self.axes_:
            axis.spines[["top", "right"]].set_visible(False)
        names = [f"{short_name(self.feature_names[j])}: {self.path.bandwidths[-1, j]:.3g}" for j in named]
        if grey:
            names.append(f"{len(grey)} {'more' if colored else 'in all'}")
        self._add_legends([*colored, *grey[:1]], names)
        return self

    def _set_scales(self) -> None:
        from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

        bandwidth_axes, ratio_axes = self.axes_
        bandwidth_axes.set_yscale("log")
        bandwidth_axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
        bandwidth_axes.yaxis.set_major_formatter("{x:g}")
        bandwidth_axes.yaxis.set_minor_formatter(NullFormatter())
        finite = self.path.ratios[np.isfinite(self.path.ratios)]
        # Ratios are unbounded if rows coincide; the figure ends at 1000.
        top = min(max(1.5, 1.1 * float(finite.max(initial=0.0))), 1000.0)
        near, far = (0, 0.5, 1, 1.2, 1.5, 2, 3), (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
        ticks = np.array(near if top < 4.0 else far)
        # Linear below the threshold, logarithmic above.
        ratio_axes.set_yscale("symlog", linthresh=1.0, linscale=0.3)
        ratio_axes.set_ylim(0.0, top)
        ratio_axes.set_yticks(ticks[ticks <= top])
        ratio_axes.yaxis.set_major_formatter("{x:g}")
        for axis in self.axes_:
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))

    def _strongest(self) -> Integers:
        """Return variables whose bandwidth shrinks, the smallest first; variables at the floor come last."""
        h = self.path.bandwidths[-1]
        order = np.lexsort((h, self.path.at_floor))
        return order[self.path.n_tests[order] > 1]

    def _plot_variable(self, j: int, color: str, linewidth: float) -> Any:
        """Draw a line while the variable is tested, a marker at the last test, and dots after it."""
        bandwidth_axes, ratio_axes = self.axes_
        h, ratios = self.path.bandwidths[:, j], self.path.ratios[:, j]
        stop = int(self.path.n_tests[j])
        drawing = {
            "color": color,
            "marker": _MARKERS[bool(self.path.at_floor[j])],
            "markersize": 2.0 + 2.0 * linewidth,
            "linewidth": linewidth,
            "zorder": 2.0 + linewidth,
        }
        [line] = bandwidth_axes.plot(np.arange(stop + 1), h[: stop + 1], markevery=[stop], **drawing)
        bandwidth_axes.plot([stop, len(ratios)], h[[stop, -1]], color=color, linestyle=":", linewidth=1.0)
        if stop:
            ratio_axes.plot(np.arange(1, stop + 1), ratios[:stop], markevery=[stop - 1], **drawing)
        return line

    def _add_legends(self, lines: list[Any], names: list[str]) -> None:
        """Add a legend of variables to the upper axes, and one of lines and markers to the lower axes."""
        from matplotlib.lines import Line2D

        bandwidth_axes, ratio_axes = self.axes_
        outside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "fontsize": "small", "frameon": False}
        legend = bandwidth_axes.legend(lines, ["-"] * len(names), title="variable: bandwidth", **outside)
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set_parse_math(False)
            text.set_text(name)  # matplotlib would drop a label that starts with "_"
        meanings = {
            "stopped by the test": (_MARKERS[0], "none"),
            "stopped by the floor": (_MARKERS[1], "none"),
            "threshold": (None, ":"),
        }
        handles = [
            Line2D([], [], color="black", marker=marker, linestyle=style, label=name)
            for name, (marker, style) in meanings.items()
        ]
        ratio_axes.legend(handles=handles, **outside)
