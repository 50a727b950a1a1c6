"""ExplanationDisplay: the evidence for the label of a sample, and the closest training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corral.array_types import Floats, Integers
from corral.display.drawing import BLUE, GREY, SMALL, VERMILION, one_row, panels, require, short_name
from corral.estimators.explanation import Explanation
from corral.estimators.pipelines import explain
from corral.estimators.validation import check_integer, check_position
from corral.sentences.numbers import counted, value_text
from corral.sentences.rows import training_row

# Evidence below this limit would be written as 0.00 and gets no bar.
_LEAST = 0.005


@dataclass(kw_only=True, eq=False, repr=False)
class ExplanationDisplay:
    """Why a sample has its label: priors and evidence that add up to the log odds, and closest training rows.

    The rival is the class with which the label is compared. Each bar begins where the bar above it ends,
    because priors and evidence add up. `from_explanation` and `from_estimator` make this display; all
    parameters are stored as attributes.

    Parameters
    ----------
    label, rival : label
        The predicted class, and the class with which it is compared.
    probability : ndarray of shape (2,)
        Probabilities of the label and of the rival.
    feature_names : sequence of str
        Names of the variables.
    values : ndarray of shape (n_features,)
        Values of the sample: numbers, or objects if some variables have categories.
    evidence : ndarray of shape (n_features,)
        Evidence for the label over the rival, in natural logarithms; see `Explanation`.
    rows : ndarray of shape (n_listed,)
        Positions of the training rows with the largest shares.
    shares : ndarray of shape (n_listed,)
        Part of the label's density at the sample that comes from each of these rows.
    base : float, default=0.0
        Log odds of label and rival from the priors alone; drawn as 0 if infinite.
    row_names : ndarray of shape (n_listed,), default=None
        Names of the training rows; by default their positions.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of shape (2,)
        The axes of the evidence and of the rows.

    See Also
    --------
    RodeoClassifier.explain : Computes the explanation.

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

    label: Any
    rival: Any
    probability: Floats
    feature_names: Sequence[str]
    values: NDArray[Any]
    evidence: Floats
    rows: Integers
    shares: Floats
    base: float = 0.0
    row_names: NDArray[Any] | None = None

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, *, sample: int = 0, max_variables: int = 12, axes: Any = None
    ) -> Self:
        """Draw one sample of an explanation.

        Parameters
        ----------
        explanation : Explanation
            From `RodeoClassifier.explain`.
        sample : int, default=0
            Position of the sample in the explanation.
        max_variables : int, default=12
            Number of bars of single variables, the strongest evidence first. All other variables have one
            bar together.
        axes : two matplotlib Axes, default=None
            Axes to draw in; by default a new figure.

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
            base=float(explanation.base[i]),
            row_names=None if explanation.row_names is None else explanation.row_names[i][listed],
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
        estimator : RodeoClassifier, CorralClassifier, or Pipeline that ends in one
            A fitted classifier.
        X : array-like of shape (n_samples, n_features)
            Samples.
        sample : int, default=0
            Position of the sample in `X`. Other samples are not read.
        against : label, default=None
            The rival. If None, or if `against` is the predicted class, the rival is the other class with the
            largest product of prior and density.
        n_rows : int, default=5
            Number of training rows that are listed.
        max_variables : int, default=12
            Number of bars of single variables, the strongest evidence first.
        axes : two matplotlib Axes, default=None
            Axes to draw in; by default a new figure.

        Returns
        -------
        display : ExplanationDisplay
        """
        require(cls, estimator, "explain")
        explanation = explain(estimator, one_row(X, sample), against=against, n_rows=n_rows)
        return cls.from_explanation(explanation, max_variables=max_variables, axes=axes)

    def plot(self, axes: Any = None, *, max_variables: int = 12) -> Self:
        """Draw the evidence and the rows.

        Parameters
        ----------
        axes : two matplotlib Axes, default=None
            Axes to draw in; by default a new figure.
        max_variables : int, default=12
            Number of bars of single variables, the strongest evidence first.

        Returns
        -------
        display : ExplanationDisplay
        """
        shown, lines = self._lines(check_integer("max_variables", max_variables))
        n_lines = max(len(lines), self.rows.size)
        self.axes_ = panels(axes, 2, columns=2, figsize=(9.0, 1.4 + 0.22 * n_lines), width_ratios=(2, 1))
        evidence_axes, rows_axes = self.axes_
        self.figure_ = evidence_axes.figure
        self._draw_waterfall(evidence_axes, shown, lines)
        rows_axes.barh(np.arange(self.rows.size), 100.0 * self.shares, color=GREY, height=0.7)
        names = self.rows if self.row_names is None else self.row_names
        labels = [short_name(training_row(name)) for name in names]
        rows_axes.set_yticks(np.arange(self.rows.size), labels, parse_math=False)
        rows_axes.set_xlabel("share of the density (%)")
        rows_axes.set_title("closest training rows", fontsize="medium")
        for axis in self.axes_:
            axis.set_ylim(n_lines - 0.5, -0.5)  # the strongest on top
            axis.tick_params(labelsize=SMALL + 1)
            axis.spines[["top", "right"]].set_visible(False)
        return self

    def _lines(self, max_variables: int) -> tuple[Floats, list[str]]:
        """Return the terms of the log odds, one for each line except the last, and the names of all lines."""
        order = np.argsort(-np.abs(self.evidence), kind="stable")
        named = order[np.abs(self.evidence[order]) >= _LEAST][:max_variables].tolist()
        others = np.delete(self.evidence, named)
        values = [short_name(value_text(self.values[j])) for j in named]
        variables = [short_name(self.feature_names[j]) for j in named]
        names = [f"{name} = {text}" for name, text in zip(variables, values, strict=True)]
        terms = [self.base if np.isfinite(self.base) else 0.0, *self.evidence[named]]
        if others.size:
            terms.append(float(others.sum()))
            names.append(counted(others.size, "other variable"))
        return np.array(terms), ["priors", *names, "log odds"]

    def _draw_waterfall(self, axis: Any, terms: Floats, names: list[str]) -> None:
        """Draw a bar for each term, which begins where the bar above it ends, and a bar for their sum."""
        ends = np.cumsum(terms)
        starts = ends - terms
        lines = np.arange(terms.size)
        axis.barh(lines, terms, left=starts, color=np.where(terms >= 0.0, BLUE, VERMILION), height=0.7)
        axis.barh(terms.size, ends[-1], color=GREY, height=0.7)
        for line, end in zip(lines, ends, strict=True):
            axis.plot([end, end], [line - 0.35, line + 1.35], color=GREY, linewidth=0.6)
        axis.axvline(0.0, color="black", linewidth=0.8)
        axis.use_sticky_edges = False  # bars keep a distance from the frame
        axis.margins(x=0.04)
        axis.set_yticks(np.arange(len(names)), names, parse_math=False)
        pair = f"{short_name(self.label)} over {short_name(self.rival)}"
        axis.set_xlabel(f"evidence for {pair}, natural logarithms", parse_math=False)
        axis.set_title(
            f"{short_name(self.label)} ({self.probability[0]:.2f}) rather than "
            f"{short_name(self.rival)} ({self.probability[1]:.2f})",
            fontsize="medium",
            parse_math=False,
        )
