"""Drawings, after scikit-learn's convention: `from_...` computes, `plot` draws (needs matplotlib)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from corral._density import RodeoDensity
from corral._explain import Explanation
from corral._rodeo import RodeoPath
from corral._sample_size import Extrapolation, SampleSizes
from corral._selector import RodeoSelector
from corral._validation import check_integer, check_position, feature_names

Floats = NDArray[np.float64]

# Colours of Okabe and Ito, which readers with any kind of colour vision tell apart.
_BLUE, _VERMILION = "#0072B2", "#D55E00"
_COLOURS = (_BLUE, _VERMILION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_RELEVANT = "#56B4E9"
_GREY = "0.6"
_STARTED: dict[str, Any] = {
    "color": "black",
    "linestyle": ":",
    "linewidth": 1.0,
    "label": "initial bandwidth",
}

# Where a bandwidth stops: by its test, or because it is as small as it may be.
_MARKERS = ("o", "v")

# What a scaled unit is.
_UNITS = {
    "range": "ranges",
    "standard": "standard deviations",
    "rank": "ranks, 0 to 1",
    "whiten": "standard deviations of mixed variables",
    None: "units of the data",
}

# Size of names on an axis in points, and how much of one is shown.
_SMALL = 7
_LONGEST_NAME = 20


class BandwidthDisplay:
    """Box plots of bandwidths: one panel for each class, one box for each variable.

    A low box marks a variable in which the class's density varies, one near the initial bandwidth a
    variable in which it is flat. Make it with `from_estimator`; all parameters are stored as attributes.

    Parameters
    ----------
    bandwidths : sequence of ndarrays of shape (n_rows, n_features)
        For each panel the bandwidths at some rows, which may be none.
    titles : sequence of str
        What the panels show.
    feature_names : sequence of str
        Names of the variables.
    initial_bandwidths : sequence of float, default=None
        For each panel what the bandwidths started from, drawn as a line.
    relevant : ndarray of shape (n_panels, n_features), bool, default=None
        Variables whose boxes are filled.
    units : str, default="scaled units"
        Units of the bandwidths.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of shape (n_panels,)
        The panels.

    See Also
    --------
    RodeoClassifier.local_bandwidths : Computes what is drawn here.

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

    def __init__(
        self,
        *,
        bandwidths: Sequence[Floats],
        titles: Sequence[str],
        feature_names: Sequence[str],
        initial_bandwidths: Sequence[float] | None = None,
        relevant: NDArray[np.bool_] | None = None,
        units: str = "scaled units",
    ) -> None:
        self.bandwidths = bandwidths
        self.titles = titles
        self.feature_names = feature_names
        self.initial_bandwidths = initial_bandwidths
        self.relevant = relevant
        self.units = units

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: ArrayLike, y: ArrayLike | None = None, *, axes: Any = None
    ) -> Self:
        """Draw the bandwidths at the rows of a table, each in the panel of its class.

        Parameters
        ----------
        estimator : RodeoClassifier, RodeoClassifierCV or RodeoDensity
            A fitted estimator. That of a density has one panel. Where bandwidths do not depend on the
            row (``bandwidth="class"``, and whatever RodeoClassifierCV chooses), boxes are lines.
        X : array-like of shape (n_samples, n_features)
            Rows that were not used in `fit`: a row that was sees itself, and bandwidths at it are smaller.
        y : array-like of shape (n_samples,), default=None
            Their classes; by default those that they are assigned to, as in the paper. Ignored for a density.
        axes : matplotlib Axes, default=None
            Where to draw, one for each panel; by default a new figure.

        Returns
        -------
        display : BandwidthDisplay
        """
        _require(cls, estimator, "local_bandwidths")
        h = estimator.local_bandwidths(X)
        if h.ndim == 2:  # of a density
            parts, titles = [h], [_count(h)]
            relevant = None
        else:
            labels = estimator.predict(X) if y is None else np.asarray(y)
            if labels.shape != (len(h),):
                raise ValueError(
                    f"y must hold a label for each of the {len(h)} rows, got shape {labels.shape}."
                )
            unknown = np.setdiff1d(labels, estimator.classes_)
            if unknown.size:
                raise ValueError(f"y holds the class {unknown.tolist()[0]!r}, which is not in classes_.")
            parts = [h[labels == label, a] for a, label in enumerate(estimator.classes_)]
            titles = [
                f"{_short(label)} ({_count(part)})"
                for label, part in zip(estimator.classes_, parts, strict=True)
            ]
            relevant = None if _scale(estimator) == "whiten" else estimator.relevant_
        display = cls(
            bandwidths=parts,
            titles=titles,
            feature_names=feature_names(estimator),
            initial_bandwidths=np.atleast_1d(estimator.initial_bandwidth_).tolist(),
            relevant=relevant,
            units=_UNITS[_scale(estimator)],
        )
        return display.plot(axes)

    def plot(self, axes: Any = None) -> Self:
        """Draw the panels.

        Parameters
        ----------
        axes : matplotlib Axes, default=None
            Where to draw, one for each panel; by default a new figure.

        Returns
        -------
        display : BandwidthDisplay
        """
        n, d = len(self.bandwidths), len(self.feature_names)
        y_label = f"bandwidth ({self.units})"
        if axes is None:
            columns = 2 if n > 1 and d <= 40 else 1
            lines = -(-n // columns)
            named = 1 + (lines * columns > n)  # lines below which variables are named
            figure, grid = _pyplot().subplots(
                lines,
                columns,
                figsize=(
                    min(max(6.0, 1.5 + 0.19 * d * columns), 16.0),
                    0.8 + 1.6 * lines + named * _name_room(self.feature_names),
                ),
                sharex=True,
                sharey=True,
                squeeze=False,
                layout="constrained",
            )
            figure.supxlabel("variable", fontsize="medium")
            figure.supylabel(y_label, fontsize="medium")
            self._add_legend(figure)
            axes = grid.ravel()[:n]
            if n < grid.size:
                grid[-1, -1].set_axis_off()
                grid[-2, -1].tick_params(labelbottom=True)  # nothing is below it
        else:
            for axis in _check_axes(axes, n):
                axis.set(xlabel="variable", ylabel=y_label)
        self.axes_ = _check_axes(axes, n)
        self.figure_ = self.axes_[0].figure
        for k, axis in enumerate(self.axes_):
            self._plot_panel(axis, k)
        started = [] if self.initial_bandwidths is None else [np.array(self.initial_bandwidths)]
        top = max(float(h.max(initial=0.0)) for h in [*self.bandwidths, *started])
        for axis in self.axes_:  # not before all are drawn: panels compare
            axis.set_ylim(0.0, 1.08 * top)
        return self

    def _plot_panel(self, axes: Any, k: int) -> None:
        h, d = self.bandwidths[k], len(self.feature_names)
        if self.initial_bandwidths is not None:
            axes.axhline(self.initial_bandwidths[k], **_STARTED)
        if len(h):
            boxes = axes.boxplot(
                h,
                positions=np.arange(d),
                widths=0.7,
                manage_ticks=False,  # or every box sets all ticks anew
                patch_artist=True,
                boxprops={"facecolor": "white", "edgecolor": "0.3", "linewidth": 0.8},
                whiskerprops={"color": "0.3", "linewidth": 0.8},
                showcaps=False,
                flierprops={"marker": ".", "markersize": 2, "markeredgecolor": "0.3"},
                medianprops={"color": "black", "linewidth": 1.5},
            )
            for j in [] if self.relevant is None else np.flatnonzero(self.relevant[k]):
                boxes["boxes"][j].set_facecolor(_RELEVANT)
                boxes["medians"][j].set_color(_BLUE)  # all that is seen of a box without height
            for artist in chain.from_iterable(boxes.values()):
                artist.set_in_layout(False)  # they are inside the panel, and measuring them all takes time
        else:
            axes.text(0.5, 0.5, "no rows", ha="center", va="center", transform=axes.transAxes)
        axes.set_title(self.titles[k], fontsize="medium", parse_math=False)
        axes.tick_params(labelsize=_SMALL)
        axes.set_xlim(-1, d)
        _name_variables(axes, self.feature_names)

    def _add_legend(self, figure: Any) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        handles: list[Any] = []
        if self.relevant is not None:
            handles.append(Patch(facecolor=_RELEVANT, edgecolor="0.3", label="relevant variable"))
        if self.initial_bandwidths is not None:
            handles.append(Line2D([], [], **_STARTED))
        if handles:
            figure.legend(
                handles=handles, loc="outside upper right", ncols=2, fontsize="small", frameon=False
            )


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
        _require(cls, estimator, "zscores_")
        selector = isinstance(estimator, RodeoSelector)
        display = cls(
            zscores=estimator.zscores_,
            relevant=estimator.masks_ if selector else estimator.relevant_,
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
            height = min(max(1.8, 0.8 + 0.22 * n_classes), 12.0) + _name_room(self.feature_names)
            _, ax = _pyplot().subplots(figsize=(width, height), layout="constrained")
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
        _name_variables(ax, self.feature_names)  # before the bar takes some of the room that is counted on
        bar = self.figure_.colorbar(self.im_, ax=ax, pad=0.02)
        bar.set_label("z-score of bandwidth\n(dot: relevant)", fontsize=_SMALL + 1)
        bar.ax.tick_params(labelsize=_SMALL)
        ax.set_yticks(np.arange(n_classes), [_short(label) for label in self.classes], parse_math=False)
        ax.set(xlabel="variable", ylabel="class", xlim=(-0.5, d - 0.5), ylim=(n_classes - 0.5, -0.5))
        ax.tick_params(labelsize=_SMALL)
        return self


class ExplanationDisplay:
    """Why a sample got its label: the evidence of its variables, and the training rows behind it.

    Make it with `from_explanation` or `from_estimator`; all parameters are stored as attributes.

    Parameters
    ----------
    label, rival : label
        The predicted class, and the one it is compared with.
    probability : ndarray of shape (2,)
        Of the two.
    feature_names : sequence of str
        Names of the variables.
    values : ndarray of shape (n_features,)
        The sample.
    evidence : ndarray of shape (n_features,)
        For the label over the rival, in natural logarithms; see `Explanation`.
    rows : ndarray of shape (n_listed,)
        Positions of the training rows with the largest shares.
    shares : ndarray of shape (n_listed,)
        Their shares of the label's density.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of shape (2,)
        The axes of the evidence and of the rows.

    See Also
    --------
    RodeoClassifier.explain : Computes what is drawn here.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from corral import ExplanationDisplay, RodeoClassifier
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(100, groups=(4, 5), random_state=0)
    >>> display = ExplanationDisplay.from_estimator(RodeoClassifier().fit(X, y), X, sample=3)
    >>> display.axes_[0].get_title()
    '4 (0.76) rather than 5 (0.24)'
    >>> plt.close(display.figure_)
    """

    def __init__(
        self,
        *,
        label: Any,
        rival: Any,
        probability: Floats,
        feature_names: Sequence[str],
        values: Floats,
        evidence: Floats,
        rows: NDArray[np.int64],
        shares: Floats,
    ) -> None:
        self.label = label
        self.rival = rival
        self.probability = probability
        self.feature_names = feature_names
        self.values = values
        self.evidence = evidence
        self.rows = rows
        self.shares = shares

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, *, sample: int = 0, max_variables: int = 12, axes: Any = None
    ) -> Self:
        """Draw one of the samples that have been explained.

        Parameters
        ----------
        explanation : Explanation
            From `RodeoClassifier.explain`.
        sample : int, default=0
            Position of the sample in it.
        max_variables : int, default=12
            How many variables are shown, those with the strongest evidence.
        axes : two matplotlib Axes, default=None
            Where to draw; by default a new figure.

        Returns
        -------
        display : ExplanationDisplay
        """
        i = check_position("sample", sample, len(explanation))
        listed = explanation.rows[i] >= 0
        display = cls(
            label=explanation.label[i],
            rival=explanation.rival[i],
            probability=explanation.probability[i],
            feature_names=explanation.feature_names,
            values=explanation.values[i],
            evidence=explanation.evidence[i],
            rows=explanation.rows[i][listed],
            shares=explanation.shares[i][listed],
        )
        return display.plot(axes, max_variables=max_variables)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        *,
        sample: int = 0,
        against: Any = None,
        n_rows: int = 5,
        max_variables: int = 12,
        axes: Any = None,
    ) -> Self:
        """Explain one sample and draw it.

        Parameters
        ----------
        estimator : RodeoClassifier or RodeoClassifierCV
            A fitted classifier.
        X : array-like of shape (n_samples, n_features)
            Samples.
        sample : int, default=0
            Position of the one to explain; the others are not looked at.
        against : label, default=None
            The class to compare with the predicted one; by default the second most probable.
        n_rows : int, default=5
            How many of the training rows that support the label are listed.
        max_variables : int, default=12
            How many variables are shown, those with the strongest evidence.
        axes : two matplotlib Axes, default=None
            Where to draw; by default a new figure.

        Returns
        -------
        display : ExplanationDisplay
        """
        _require(cls, estimator, "explain")
        explanation = estimator.explain(_one_row(X, sample), against=against, n_rows=n_rows)
        return cls.from_explanation(explanation, max_variables=max_variables, axes=axes)

    def plot(self, axes: Any = None, *, max_variables: int = 12) -> Self:
        """Draw the evidence and the rows.

        Parameters
        ----------
        axes : two matplotlib Axes, default=None
            Where to draw; by default a new figure.
        max_variables : int, default=12
            How many variables are shown, those with the strongest evidence.

        Returns
        -------
        display : ExplanationDisplay
        """
        d = len(self.evidence)
        strongest = np.argsort(-np.abs(self.evidence), kind="stable")
        strongest = strongest[self.evidence[strongest] != 0.0]  # others take no part in either density
        shown = strongest[: check_integer("max_variables", max_variables)]
        counted = f"\n({d - strongest.size} of {d} variables have none)" if strongest.size < d else ""
        if shown.size < strongest.size:
            counted = f"\n({shown.size} strongest of {d} variables)"
        if axes is None:
            height = 1.4 + 0.22 * max(shown.size, self.rows.size)
            _, axes = _pyplot().subplots(
                1, 2, figsize=(9.0, height), width_ratios=(2, 1), layout="constrained"
            )
        of_evidence, of_rows = self.axes_ = _check_axes(axes, 2)
        self.figure_ = of_evidence.figure

        evidence = self.evidence[shown]
        colours = np.where(evidence >= 0.0, _BLUE, _VERMILION)
        of_evidence.barh(np.arange(shown.size), evidence, color=colours, height=0.7)
        of_evidence.axvline(0.0, color="black", linewidth=0.8)
        names = [f"{_short(self.feature_names[j])} = {self.values[j]:.4g}" for j in shown]
        of_evidence.set_yticks(np.arange(shown.size), names, parse_math=False)
        of_evidence.set_xlabel(
            f"evidence for {_short(self.label)} over {_short(self.rival)}, natural logarithms{counted}",
            parse_math=False,
        )
        of_evidence.set_title(
            f"{_short(self.label)} ({self.probability[0]:.2f}) rather than "
            f"{_short(self.rival)} ({self.probability[1]:.2f})",
            fontsize="medium",
            parse_math=False,
        )

        of_rows.barh(np.arange(self.rows.size), 100.0 * self.shares, color=_GREY, height=0.7)
        of_rows.set_yticks(np.arange(self.rows.size), [f"row {row}" for row in self.rows])
        of_rows.set_xlabel("share of the density (%)")
        of_rows.set_title("closest training rows", fontsize="medium")
        for axis in self.axes_:
            axis.set_ylim(max(shown.size, self.rows.size, 1) - 0.5, -0.5)  # the strongest on top
            axis.tick_params(labelsize=_SMALL + 1)
            axis.spines[["top", "right"]].set_visible(False)
        return self


class RodeoPathDisplay:
    r"""How the Rodeo chose the bandwidths of one sample, sweep by sweep.

    Above, the bandwidth of each variable after each sweep; below, :math:`|Z_j| / \lambda_j`, which must
    exceed 1 for it to shrink further. A marker shows where a variable stops: a circle where the test said
    so, a triangle where the bandwidth could become no smaller. Make it with `from_estimator`; all
    parameters are stored as attributes.

    Parameters
    ----------
    path : RodeoPath
        Bandwidths and ratios.
    feature_names : sequence of str
        Names of the variables.
    title : str, default=""
        What is drawn.
    units : str, default="scaled units"
        Units of the bandwidths.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of shape (2,)
        The axes of the bandwidths and of the ratios.

    See Also
    --------
    RodeoClassifier.bandwidth_path : Computes what is drawn here.

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

    def __init__(
        self,
        *,
        path: RodeoPath,
        feature_names: Sequence[str],
        title: str = "",
        units: str = "scaled units",
    ) -> None:
        self.path = path
        self.feature_names = feature_names
        self.title = title
        self.units = units

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
        """Follow the Rodeo at one sample and draw it.

        Parameters
        ----------
        estimator : RodeoClassifier, RodeoClassifierCV or RodeoDensity
            A fitted estimator.
        X : array-like of shape (n_samples, n_features)
            Samples.
        sample : int, default=0
            Position of the one to follow; the others are not looked at.
        label : label, default=None
            The class whose density is estimated; by default the predicted one. Not for `RodeoDensity`.
        max_variables : int, default=6
            How many variables are told apart by colour, those that shrink most; the others are grey.
        axes : two matplotlib Axes, default=None
            Where to draw; by default a new figure.

        Returns
        -------
        display : RodeoPathDisplay
        """
        _require(cls, estimator, "bandwidth_path")
        x = _one_row(X, sample)
        if isinstance(estimator, RodeoDensity):
            if label is not None:
                raise ValueError(f"label must be None for a RodeoDensity, got {label!r}.")
            path, title = estimator.bandwidth_path(x), f"sample {sample}"
        else:
            label = estimator.predict(x)[0] if label is None else label
            path, title = estimator.bandwidth_path(x, label), f"sample {sample} in class {_short(label)}"
        display = cls(
            path=path,
            feature_names=feature_names(estimator),
            title=title,
            units=_UNITS[_scale(estimator)],
        )
        return display.plot(axes, max_variables=max_variables)

    def plot(self, axes: Any = None, *, max_variables: int = 6) -> Self:
        """Draw bandwidths and ratios.

        Parameters
        ----------
        axes : two matplotlib Axes, default=None
            Where to draw; by default a new figure.
        max_variables : int, default=6
            How many variables are told apart by colour, those that shrink most; the others are grey.

        Returns
        -------
        display : RodeoPathDisplay
        """
        named = self._strongest()[: check_integer("max_variables", max_variables)]
        if axes is None:
            _, axes = _pyplot().subplots(2, 1, figsize=(7.0, 5.5), sharex=True, layout="constrained")
        of_h, of_ratios = self.axes_ = _check_axes(axes, 2)
        self.figure_ = of_h.figure
        others = np.setdiff1d(np.arange(len(self.feature_names)), named)
        for j in others:
            self._plot_variable(j, _GREY, linewidth=0.7)
        for i, j in enumerate(named):
            self._plot_variable(j, _COLOURS[i % len(_COLOURS)], linewidth=1.8)
        of_ratios.axhline(1.0, color="black", linestyle=":", linewidth=1.2)
        self._set_scales()
        of_h.set_title(self.title, fontsize="medium", parse_math=False)
        of_h.set_ylabel(f"bandwidth ({self.units})")
        of_ratios.set_ylabel(r"$|Z_j| \,/\, \lambda_j$")
        of_ratios.set_xlabel("sweep")
        for axis in self.axes_:
            axis.spines[["top", "right"]].set_visible(False)
        self._add_legends(named, others.size)
        return self

    def _set_scales(self) -> None:
        from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

        of_h, of_ratios = self.axes_
        of_h.set_yscale("log")
        of_h.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
        of_h.yaxis.set_major_formatter("{x:g}")
        of_h.yaxis.set_minor_formatter(NullFormatter())
        finite = self.path.ratios[np.isfinite(self.path.ratios)]
        # Where rows coincide a ratio may be as large as it likes; beyond 1000 nothing is to be seen.
        top = min(max(1.5, 1.1 * float(finite.max(initial=0.0))), 1000.0)
        near, far = (0, 0.5, 1, 1.2, 1.5, 2, 3), (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
        ticks = np.array(near if top < 4.0 else far)
        # Linear below the threshold, logarithmic above.
        of_ratios.set_yscale("symlog", linthresh=1.0, linscale=0.3)
        of_ratios.set_ylim(0.0, top)
        of_ratios.set_yticks(ticks[ticks <= top])
        of_ratios.yaxis.set_major_formatter("{x:g}")
        for axis in self.axes_:
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))

    def _strongest(self) -> NDArray[np.int64]:
        """Variables that shrink, smallest bandwidth first; those that only the floor stopped come last."""
        h = self.path.bandwidths[-1]
        order = np.lexsort((h, self.path.at_floor))
        return order[self.path.n_tests[order] > 1]

    def _plot_variable(self, j: int, color: str, linewidth: float) -> None:
        """A line as far as the variable is tested, a marker where it stops, and dots from there on."""
        of_h, of_ratios = self.axes_
        h, ratios = self.path.bandwidths[:, j], self.path.ratios[:, j]
        n_sweeps, stop = len(ratios), int(self.path.n_tests[j])
        marker = _MARKERS[bool(self.path.at_floor[j])]
        drawing = {
            "color": color,
            "marker": marker,
            "markersize": 2.0 + 2.0 * linewidth,
            "linewidth": linewidth,
            "zorder": 2.0 + linewidth,
        }
        of_h.plot(np.arange(stop + 1), h[: stop + 1], markevery=[stop], **drawing)
        of_h.plot([stop, n_sweeps], h[[stop, -1]], color=color, linestyle=":", linewidth=1.0)
        if stop:
            of_ratios.plot(np.arange(1, stop + 1), ratios[:stop], markevery=[stop - 1], **drawing)

    def _add_legends(self, named: NDArray[np.int64], n_others: int) -> None:
        """Names beside the bandwidths, what lines and markers mean beside the ratios."""
        from matplotlib.lines import Line2D

        of_h, of_ratios = self.axes_
        outside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "fontsize": "small", "frameon": False}
        names = [f"{_short(self.feature_names[j])}: {self.path.bandwidths[-1, j]:.3g}" for j in named]
        handles = [
            Line2D([], [], color=_COLOURS[i % len(_COLOURS)], marker=_MARKERS[bool(self.path.at_floor[j])])
            for i, j in enumerate(named)
        ]
        if n_others:
            names.append(f"{n_others} {'more' if names else 'in all'}")
            handles.append(Line2D([], [], color=_GREY))
        legend = of_h.legend(handles, ["-"] * len(names), title="variable: bandwidth", **outside)
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set_parse_math(False)
            text.set_text(name)  # as it is: matplotlib would drop a label that starts with "_"
        meanings: dict[str, dict[str, Any]] = {
            "stopped by the test": {"color": "black", "marker": _MARKERS[0], "linestyle": "none"},
            "stopped by the floor": {"color": "black", "marker": _MARKERS[1], "linestyle": "none"},
            "threshold": {"color": "black", "linestyle": ":"},
        }
        of_ratios.legend(
            handles=[Line2D([], [], label=name, **style) for name, style in meanings.items()], **outside
        )


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
            _, axes = _pyplot().subplots(1, 3, figsize=(12, 3.5), layout="constrained")
        of_epsilon, of_sizes, of_accuracy = self.axes_ = _check_axes(axes, 3)
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


def _pyplot() -> Any:
    """matplotlib.pyplot, or a hint how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('drawing needs matplotlib: pip install "corral[plot]"') from error
    return plt


def _check_axes(axes: Any, n: int) -> NDArray[Any]:
    """Refuse what is not so many axes; return them as a flat array."""
    given = np.ravel(np.asarray(axes, dtype=object))
    if given.size != n:
        raise ValueError(f"axes must be {n}, got {given.size}.")
    return given


def _require(display: type, estimator: Any, name: str) -> None:
    """Refuse an estimator that lacks what a display draws."""
    if not hasattr(estimator, name):
        raise TypeError(f"{display.__name__} cannot draw a {type(estimator).__name__}: it has no {name}.")


def _scale(estimator: Any) -> Any:
    """Units of a fitted estimator."""
    return getattr(estimator, "best_estimator_", estimator).scale


def _one_row(X: Any, sample: Any) -> Any:
    """One row of a table, as a table, so that an estimator can check its columns."""
    i = check_position("sample", sample, len(X))
    return (X.iloc if hasattr(X, "iloc") else X)[i : i + 1]


def _count(rows: Floats) -> str:
    return f"{len(rows)} row{'s' * (len(rows) != 1)}"


def _short(name: Any) -> str:
    """A name as an axis shows it."""
    text = str(name)
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _name_room(names: Sequence[str]) -> float:
    """Inches below an axis that upright names take."""
    return _SMALL / 120.0 * max(len(_short(name)) for name in names)


def _name_variables(axes: Any, names: Sequence[str]) -> None:
    """Names below the x axis, as many as have room; upright where they would run into each other."""
    inches = axes.figure.get_size_inches()[0] * axes.get_position().width
    points = 72.0 * inches / len(names)
    every = max(1, int(np.ceil(1.2 * _SMALL / points)))
    shown = range(0, len(names), every)
    labels = [_short(names[j]) for j in shown]
    upright = 0.7 * _SMALL * max(len(label) for label in labels) > points * every
    axes.set_xticks(shown, labels, rotation=90 if upright else 0, parse_math=False)
