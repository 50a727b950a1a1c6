"""RelevanceDisplay: a map of the variables that describe each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from corral.array_types import Bools, Floats
from corral.display.drawing import SMALL, name_room, name_variables, pyplot, require, short_name
from corral.estimators.description import kind_of_direction
from corral.estimators.validation import check_choice, feature_names


class _Kind(NamedTuple):
    """A way in which a class may differ: color map as in the report, marker, and names of the ends."""

    colors: str
    marker: Any
    low: str
    high: str


_BAR = [(-1.0, -0.4), (1.0, -0.4), (1.0, 0.4), (-1.0, 0.4), (-1.0, -0.4)]
_KINDS = {
    "high or low": _Kind("RdBu_r", "o", "low", "high"),
    "narrow or wide": _Kind("PRGn_r", _BAR, "narrow", "wide"),
    "otherwise": _Kind("BrBG_r", "D", "less often", "more often"),
}

# Without directions all cells are of one kind. Small bandwidths, which mean relevance, are red.
_PLAIN = {
    "effect": _Kind("RdBu_r", "o", "low", "high"),
    "zscore": _Kind("RdBu", "o", "small bandwidth", "large bandwidth"),
}


def _kind_of(direction: str) -> str:
    """Return the kind of a direction; the first kind if there is no direction, because the effect is 0."""
    word = kind_of_direction(direction)
    return next(name for name, kind in _KINDS.items() if word in ("", kind.low, kind.high))


@dataclass(kw_only=True, eq=False, repr=False)
class RelevanceDisplay:
    """A map of classes by variables: how each class differs from all other rows.

    Values of the class are higher in red cells and lower in blue cells, further apart in purple cells and
    closer together in green cells. A value, range or category is more frequent in brown cells and less
    frequent in teal cells. A variable with a symbol describes the class: the symbol is a dot for high and
    low, a bar for narrow and wide, a diamond for more often and less often. `from_estimator` makes this
    display; all parameters are stored as attributes.

    Parameters
    ----------
    values : ndarray of shape (n_classes, n_features)
        Effects, or z-scores of mean bandwidths.
    relevant : ndarray of shape (n_classes, n_features), bool
        Which variables describe each class.
    classes : ndarray of shape (n_classes,)
        Class labels.
    feature_names : sequence of str
        Names of the variables.
    direction : ndarray of shape (n_classes, n_features), str, default=None
        Direction of each difference, as in `Description`. If None, all symbols are dots, and all cells are
        red or blue.
    quantity : {"effect", "zscore"}, default="effect"
        Meaning of `values`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    im_ : matplotlib AxesImage
        The map.

    See Also
    --------
    RodeoClassifier.describe : Computes the effects.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from corral import MarkerSelector, RelevanceDisplay
    >>> from corral.datasets import make_ten_groups
    >>> X, y = make_ten_groups(100, random_state=0)
    >>> display = RelevanceDisplay.from_estimator(MarkerSelector().fit(X, y))
    >>> display.relevant[0].nonzero()[0]
    array([0, 1, 2, 3, 4, 5])
    >>> str(display.direction[0, 0])
    'narrow'
    >>> plt.close(display.figure_)
    """

    values: Floats
    relevant: Bools
    classes: NDArray[Any]
    feature_names: Sequence[str]
    direction: NDArray[Any] | None = None
    quantity: Literal["effect", "zscore"] = "effect"

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, quantity: Literal["effect", "zscore"] = "effect", ax: Any = None
    ) -> Self:
        """Draw the map of a fitted estimator.

        Parameters
        ----------
        estimator : classifier or selector, or Pipeline that ends in one
            A fitted estimator.
        quantity : {"effect", "zscore"}, default="effect"
            Meaning of the colors: the effects of `describe`, or the paper's z-scores of mean bandwidths
            (the attribute `zscores_` of RodeoClassifier and RodeoSelector).
        ax : matplotlib Axes, default=None
            Axes to draw in; by default a new figure.

        Returns
        -------
        display : RelevanceDisplay
        """
        check_choice("quantity", quantity, tuple(_PLAIN))
        check_is_fitted(estimator)
        estimator = require(cls, estimator, "zscores_" if quantity == "zscore" else "describe")
        shared = {"classes": estimator.classes_, "feature_names": feature_names(estimator)}
        if quantity == "zscore":
            display = cls(
                values=estimator.zscores_, relevant=estimator.relevant_, quantity=quantity, **shared
            )
        else:
            described = estimator.describe()
            display = cls(
                values=described.effect, relevant=described.markers, direction=described.direction, **shared
            )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the map.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in; by default a new figure.

        Returns
        -------
        display : RelevanceDisplay
        """
        n_classes, d = self.values.shape
        if ax is None:
            width = min(max(4.5, 2.5 + 0.16 * d), 16.0)
            height = min(max(2.2, 1.1 + 0.22 * n_classes), 12.0) + name_room(self.feature_names)
            _, ax = pyplot().subplots(figsize=(width, height), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        kinds, table = np.full(self.values.shape, "relevant"), {"relevant": _PLAIN[self.quantity]}
        if self.direction is not None:
            kinds, table = np.vectorize(_kind_of, otypes=[object])(self.direction), _KINDS
        self._draw_cells(ax, kinds, table)
        self._add_markers(ax, kinds, table)
        name_variables(ax, self.feature_names)
        ax.set_yticks(np.arange(n_classes), [short_name(label) for label in self.classes], parse_math=False)
        ax.set(xlabel="variable", ylabel="class", xlim=(-0.5, d - 0.5), ylim=(n_classes - 0.5, -0.5))
        ax.tick_params(labelsize=SMALL)
        return self

    def _draw_cells(self, ax: Any, kinds: NDArray[Any], table: dict[str, _Kind]) -> None:
        """Draw the cells in the colors of their kinds, and a color bar for each kind."""
        # Effects have fixed limits, so that maps of different tables can be compared.
        limit = 1.0 if self.quantity == "effect" else max(1.0, float(np.abs(self.values).max()))
        scale = {"vmin": -limit, "vmax": limit, "aspect": "auto", "interpolation": "nearest"}
        first, *_ = table.values()
        self.im_ = ax.imshow(self.values, cmap=first.colors, **scale)
        present = [name for name in table if (kinds == name).any()]
        zero = "effect 0" if self.quantity == "effect" else "z-score 0"
        for i, name in enumerate(present, start=1):  # color bars are drawn one above the other
            kind, image = table[name], self.im_
            if kind is not first:
                image = ax.imshow(np.ma.masked_where(kinds != name, self.values), cmap=kind.colors, **scale)
            height = 1.0 / len(present)
            place = ax.inset_axes([1.02, 1.0 - (i - 0.2) * height, 0.03, 0.7 * height])
            ends = [f"{-limit:.2g}: {kind.low}", zero, f"{limit:.2g}: {kind.high}"]
            self.figure_.colorbar(image, cax=place).set_ticks([-limit, 0.0, limit], labels=ends)
            place.tick_params(labelsize=SMALL)

    def _add_markers(self, ax: Any, kinds: NDArray[Any], table: dict[str, _Kind]) -> None:
        """Draw a symbol on each relevant cell, and a legend of the symbols above the map."""
        if not self.relevant.any():
            return
        for name, kind in table.items():
            rows, columns = np.nonzero(self.relevant & (kinds == name))
            if rows.size:
                ax.plot(
                    columns,
                    rows,
                    linestyle="none",
                    marker=kind.marker,
                    markersize=7 if kind.marker is _BAR else 4,
                    markerfacecolor="white",
                    markeredgecolor="black",
                    markeredgewidth=0.8,
                    label=name,
                )
        ax.legend(
            title="describes the class:" if self.direction is not None else None,
            alignment="left",
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=len(table),
            fontsize=SMALL,
            title_fontsize=SMALL,
            frameon=False,
            borderpad=0.0,
        )
