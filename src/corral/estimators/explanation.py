"""Explanation: what `explain` returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Bools, Floats, Integers
from corral.estimators.encoding import are_missing
from corral.estimators.html import html_lines, html_table
from corral.estimators.validation import check_position, import_pandas
from corral.sentences.numbers import counted
from corral.sentences.rows import (
    label_of_row,
    nearest_rows,
    novelty,
    odds,
    place,
    reasons,
    rests_on_group,
    rests_on_row,
    support,
    training_row,
    unknown_values,
    value_beside_class,
)

if TYPE_CHECKING:
    import pandas as pd

    from corral import ExplanationDisplay
    from corral.estimators.description import Description

# A novel sample is explained by at most three variables, each with a tenth of the sum of the novelty parts.
_MOST_UNLIKE = 3
_LEAST_UNLIKE = 0.1

# A label rests on one row if this has a larger share of the density.
_LARGE_SHARE = 0.5

_MOST_IN_NOTEBOOKS = 20


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why samples got their labels, as returned by `RodeoClassifier.explain`.

    The evidence of the variables and `base` add up to the log odds of label and rival in `predict_log_proba`,
    in natural logarithms. The evidence of a variable is the change of the log odds when its value is added to
    the values of other variables, on average over the orders in which variables can be added (Shapley's
    values); variables that are not yet added are integrated out. With up to ten variables the average is over
    all orders, else over random ones, the same for all samples. A missing value has no evidence.

    Attributes
    ----------
    label, rival : ndarray of shape (n_samples,)
        Predicted class, and the one compared with it: the next by prior times density unless named.
    probability : ndarray of shape (n_samples, 2)
        Probabilities of label and rival.
    feature_names : list of str
        Names of the variables.
    values : ndarray of shape (n_samples, n_features)
        The samples, with the names of categories.
    unknown : ndarray of shape (n_samples, n_features)
        Whether the value is a category that no training row has. Such a value counts as missing.
    bandwidths : ndarray of shape (n_samples, 2, n_features) or None
        Bandwidths of the scaled variables in label and rival; None for a pool, whose members have their own.
    base : ndarray of shape (n_samples,)
        Log odds of the priors alone; infinite where a class has no prior or no rows. Then the log odds are
        infinite, too, and no variable has evidence.
    evidence : ndarray of shape (n_samples, n_features)
        Evidence for the label over the rival: an evidence of 1 multiplies the odds of label against rival by
        e; negative evidence favours the rival.
    evidence_error : ndarray of shape (n_samples, n_features)
        Standard error of the evidence, 0 where it is exact.
    conditional : ndarray of shape (n_samples, n_features)
        ``log p_a(x_j | others) - log p_b(x_j | others)`` for the label a and its rival b: how much the
        variable favours the label, given all other values. It does not add up.
    rows : ndarray of shape (n_samples, n_listed)
        Positions of the training rows with the largest shares, in the X given to fit (so ``X.iloc[rows]``,
        not ``X.loc``); -1 where a class has fewer. Where shares are equal, the nearest rows come first, by
        the mean squared difference relative to the variances of the class, weighted by the evidence. In a
        compressed class each is the row nearest to a centroid (see `CorralClassifier`).
    shares : ndarray of shape (n_samples, n_listed)
        Their shares of the label's density.
    effective_rows : ndarray of shape (n_samples,)
        Effective number of training rows behind the density: how many rows of equal shares it equals.
    group_share : ndarray of shape (n_samples,)
        Largest share of the rows of one group (see `fit`) together; without groups that of one row.
    stands_out : ndarray of shape (n_samples,)
        Whether `rows` are all rows of the class, or the first has a larger share than rows that are not
        listed, and than its weight alone gives it. If not, as for a normal density, `rows` are the nearest
        rows.
    n_tied : ndarray of shape (n_samples,)
        Number of training rows that have the share and the distance of the first one: 1 unless there are
        ties.
    rests_on_few : ndarray of shape (n_samples,)
        Whether one row, or the rows of one group, have more than half of the label's density, and more than
        at 95 in 100 training rows, each left out with its group. Rows that equal the sample and their groups
        do not count.
    row_names : ndarray of shape (n_samples, n_listed) or None
        Labels of `rows` in the index of the X given to fit (so ``X.loc[row_names[0]]``, where they are whole
        numbers or text); None if it was an array, or a frame whose index counts from 0.
    nearest : ndarray of shape (n_samples,)
        The class of which each sample is most typical, which may differ from the label.
    typicality : ndarray of shape (n_samples,)
        Typicality of this class; see `RodeoClassifier.typicality`.
    typical_share : ndarray of shape (n_samples,)
        Share of the training rows of this class that are at most as typical of it as the sample, which is
        counted as one of them. It is the typicality, unless the sample is a training row of the class: the
        typicality counts such a sample twice.
    novel : ndarray of shape (n_samples,)
        Whether it is unlike all training rows, as `RodeoClassifier.is_novel` says.
    in_training : ndarray of shape (n_samples,)
        Whether a training row has the values of the sample in all variables.
    novelty_parts : ndarray of shape (n_samples, n_features)
        How much each variable makes the sample unlike the nearest class; 0 for missing values, about 0 in a
        typical row. It is the variable's contribution to the log density of the class (Shapley's values
        again) at the median row of the class, less its contribution at the sample, divided by the spread at
        training rows; larger if the value lies far from all values of its column in the class.
    equal : ndarray of shape (n_samples, n_listed)
        Whether each of `rows` has the values of the sample in all variables: a training row supports itself.
    stands_for : ndarray of shape (n_samples, n_listed)
        How many training rows each of `rows` stands for: 1 unless its class is compressed.
    nearest_range : ndarray of shape (n_samples, 2, n_features)
        Lowest and highest value of each column of numbers in the training rows of the nearest class, from
        infinity to minus infinity where none of them has a value; NaN for categories, and if the model does
        not keep the ranges of all training rows.
    sample_names : ndarray of shape (n_samples,) or None
        Labels of the samples in the index of X, as `row_names` for training rows.

    See Also
    --------
    corral.CorralClassifier.explain : Makes it.
    corral.ExplanationDisplay : Draws it.

    References
    ----------
    .. [1] Shapley, L. S. A value for n-person games. Contributions to the Theory of Games 2 (1953).

    Examples
    --------
    >>> from corral import CorralClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> explanation = CorralClassifier(random_state=0).fit(X[1:], y[1:]).explain(X[:1])
    >>> explanation.label, explanation.rival
    (array([0]), array([1]))
    >>> explanation.to_frame().shape[0]  # a line for each variable
    4
    """

    label: NDArray[Any]
    rival: NDArray[Any]
    probability: Floats
    feature_names: list[str]
    values: NDArray[Any]
    unknown: Bools
    bandwidths: Floats | None
    base: Floats
    evidence: Floats
    evidence_error: Floats
    conditional: Floats
    rows: Integers
    shares: Floats
    effective_rows: Floats
    group_share: Floats
    stands_out: Bools
    n_tied: Integers
    rests_on_few: Bools
    row_names: NDArray[Any] | None
    nearest: NDArray[Any]
    typicality: Floats
    typical_share: Floats
    novel: Bools
    in_training: Bools
    novelty_parts: Floats
    equal: Bools
    stands_for: Integers
    nearest_range: Floats
    sample_names: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.label)

    @property
    def log_odds(self) -> Floats:
        """Logarithm (n_samples,) of the odds of label and rival: base and evidence together."""
        log_odds: Floats = self.base + self.evidence.sum(axis=1)
        return log_odds

    def renumbered(self, positions: Integers) -> Explanation:
        """Replace the positions of training rows by `positions` of these rows in a larger table."""
        return replace(self, rows=np.where(self.rows >= 0, positions[self.rows], -1))

    def aligned(self, names: list[str]) -> Explanation:
        """Arrange variables in the order of `names`: a fit to fewer rows may have fewer variables of a date.

        A variable that the fit does not have gets no value and no evidence. The evidence of variables that
        are not in `names` is added to the base.
        """
        if names == self.feature_names:
            return self
        position = {name: j for j, name in enumerate(self.feature_names)}
        order = np.array([position.get(name, -1) for name in names])
        numbers = ("evidence", "evidence_error", "conditional", "novelty_parts")
        fills: dict[str, Any] = dict.fromkeys(numbers, 0.0) | {"nearest_range": np.nan}
        fills |= {"values": None if self.values.dtype == object else np.nan, "unknown": False}
        fills |= {} if self.bandwidths is None else {"bandwidths": np.inf}
        arrays = {
            name: np.where(order < 0, fill, getattr(self, name)[..., order]) for name, fill in fills.items()
        }
        base = self.log_odds - arrays["evidence"].sum(axis=1)
        return replace(self, feature_names=names, base=base, **arrays)

    def caution(self, sample: int) -> str:
        """Say if the label of a sample rests on one row or group, unusually for the table; else empty."""
        check_position("sample", sample, len(self))
        if not self.rests_on_few[sample]:
            return ""
        share = self.shares[sample, 0]
        if share > _LARGE_SHARE:
            return rests_on_row(training_row(self._listed_rows(sample)[0]), share)
        return rests_on_group(self.group_share[sample])

    def unlike(self, sample: int) -> list[int]:
        """List at most three variables that make a sample unlike the nearest class, the strongest first.

        Each has at least a tenth of the sum of all positive `novelty_parts`.
        """
        check_position("sample", sample, len(self))
        parts = np.maximum(self.novelty_parts[sample], 0.0)
        order = np.argsort(-parts, kind="stable")[:_MOST_UNLIKE]
        return [int(j) for j in order if parts[j] > 0.0 and parts[j] >= _LEAST_UNLIKE * parts.sum()]

    def novelty(self, sample: int, description: Description | None = None) -> str:
        """Say if a sample is unlike all training rows, and in which variables; empty if it is not novel.

        With a `description` of the same classes, typical values of the nearest class are named as well.
        """
        check_position("sample", sample, len(self))
        if not self.novel[sample]:
            return ""
        values = [self._value_beside_class(sample, j, description) for j in self.unlike(sample)]
        return novelty(self.nearest[sample], values, in_training=bool(self.in_training[sample]))

    def _value_beside_class(self, i: int, j: int, description: Description | None) -> str:
        """Name a value, and the range and the typical value of the nearest class."""
        ends, typical = self.nearest_range[i, :, j].tolist(), None
        if description is not None:
            middle = description.typical[description.classes.tolist().index(self.nearest[i]), j]
            if np.isfinite(middle):
                typical = middle if description.categories[j] is None else description.value_text(j, middle)
        return value_beside_class(
            self.feature_names[j],
            self.values[i, j],
            self.nearest[i],
            ends if np.isfinite(ends).all() else [],
            typical,
            inside=self._is_inside(i, j),
        )

    def _is_inside(self, i: int, j: int) -> bool:
        """Whether a sample has other values, and this one lies in the range of the nearest class.

        For a training row it must lie inside: the row itself may be an end of the range.
        """
        (low, high), value = self.nearest_range[i, :, j], self.values[i, j]
        if not np.isfinite([low, high]).all() or self._has_value(i).sum() < 2:
            return False
        return bool(low < value < high if self.in_training[i] else low <= value <= high)

    def _lacking(self, i: int) -> list[str]:
        """Variables with a value in the sample and none in the nearest class, if that is not the label."""
        if self.nearest[i] == self.label[i]:
            return []
        lacks = np.isposinf(self.nearest_range[i, 0]) & self._has_value(i)
        return [self.feature_names[j] for j in np.flatnonzero(lacks)]

    def _has_value(self, i: int) -> Bools:
        """Which variables (n_features,) a sample has a value of, other than an unknown category."""
        has_value: Bools = ~are_missing(self.values[i]) & ~self.unknown[i]
        return has_value

    def _unknown(self, i: int) -> str:
        """Name the values of a sample that are unknown categories; empty if there are none."""
        return unknown_values(
            [(self.feature_names[j], self.values[i, j]) for j in np.flatnonzero(self.unknown[i])]
        )

    def sentences(
        self, sample: int, called: str | None = None, description: Description | None = None
    ) -> dict[str, str]:
        """Say why a sample gets its label, in one sentence on each question.

        Parameters
        ----------
        sample : int
            Position of the sample.
        called : str, default=None
            Name of the sample, by default its label in the index or its position.
        description : Description, default=None
            As in `novelty`.

        Returns
        -------
        sentences : dict of str
            "label", "place" (how typical it is, or that it is novel), "reasons" (which values favour the
            label, which the rival, and which count as missing because no training row has them), "odds",
            "support", "nearest" (the training rows most like it), and "caution", which may be empty.
        """
        i = check_position("sample", sample, len(self))
        label, rival = self.label[i], self.rival[i]
        evidence, caution = self.evidence[i].tolist(), self.caution(i)
        because = reasons(label, rival, self.feature_names, self.values[i], evidence)
        return {
            "label": label_of_row(
                called or f"Sample {self._samples[i]}",
                label,
                self.probability[i, 0],
                rival,
                self.probability[i, 1],
            ),
            "place": place(
                self.nearest[i], self.typical_share[i], self.novelty(i, description), self._lacking(i)
            ),
            "reasons": " ".join(filter(None, [because, self._unknown(i)])),
            "odds": odds(label, rival, self.base[i], self.base[i] + sum(evidence)),
            "support": support(label, self.effective_rows[i]),
            "nearest": self._nearest_rows(i),
            "caution": f"Caution: {caution}." if caution else "",
        }

    def _nearest_rows(self, i: int) -> str:
        names = self._listed_rows(i)
        if not names:
            return ""
        return nearest_rows(
            self.label[i],
            names,
            self.shares[i, : len(names)].tolist(),
            self.equal[i, : len(names)].tolist(),
            stands_out=bool(self.stands_out[i]),
            n_tied=int(self.n_tied[i]),
        )

    def to_frame(self) -> pd.DataFrame:
        """One line per sample and variable (needs pandas).

        A value that is `unknown` is shown as the table has it, and counts as missing.
        """
        pd = import_pandas()

        n, d = self.values.shape
        columns = {
            "sample": np.repeat(self._samples, d),
            "label": np.repeat(self.label, d),
            "rival": np.repeat(self.rival, d),
            "variable": self.feature_names * n,
            "value": self.values.ravel(),
            "unknown": self.unknown.ravel(),
        }
        if self.bandwidths is not None:
            columns["bandwidth"] = self.bandwidths[:, 0].ravel()
            columns["bandwidth_rival"] = self.bandwidths[:, 1].ravel()
        for name in ("evidence", "evidence_error", "conditional", "novelty_parts"):
            columns[name] = getattr(self, name).ravel()
        return pd.DataFrame(columns)

    def support_to_frame(self) -> pd.DataFrame:
        """One line per sample and supporting training row (needs pandas)."""
        pd = import_pandas()

        listed = np.nonzero(self.rows >= 0)
        names = {} if self.row_names is None else {"name": self.row_names[listed]}
        columns = {
            "sample": self._samples[listed[0]],
            "training_row": self.rows[listed],
            **names,
            "share": self.shares[listed],
        }
        return pd.DataFrame(columns)

    def plot(self, sample: int = 0, *, max_variables: int = 12, axes: Any = None) -> ExplanationDisplay:
        """Draw why one sample got its label (needs matplotlib).

        Parameters are as in `ExplanationDisplay.from_explanation`.
        """
        import corral  # which loads the display: its package lies above this one

        return corral.ExplanationDisplay.from_explanation(
            self, sample=sample, max_variables=max_variables, axes=axes
        )

    def to_shap(self, label: Any = None) -> Any:
        """Return the evidence as an Explanation of the package shap, for its plots (needs shap).

        By default positive values favour the label of each sample. With a `label`, as a beeswarm needs it,
        they favour this class in all samples, which must be explained by ``explain(X, against=label)``.
        ``shap.plots.waterfall(explanation.to_shap()[0])`` draws one sample, and
        ``shap.plots.beeswarm(classifier.explain(X, against="ant").to_shap("ant"))`` many.
        """
        try:
            import shap
        except ImportError as error:
            raise ImportError("to_shap needs the package shap: pip install shap") from error
        sign = np.ones(len(self)) if label is None else self._sign_of(label)
        return shap.Explanation(
            values=sign[:, np.newaxis] * self.evidence,
            base_values=sign * self.base,
            data=self.values,
            feature_names=list(self.feature_names),
        )

    def _sign_of(self, label: Any) -> Floats:
        """1 where evidence (n_samples,) is for the class, -1 where it is against it."""
        neither = np.flatnonzero((self.label != label) & (self.rival != label))
        if neither.size:
            i = int(neither[0])
            raise ValueError(
                f"sample {i} compares {self.label[i]} with {self.rival[i]}, not with {label}: explain them "
                f"by explain(X, against={label!r})."
            )
        return np.where(self.label == label, 1.0, -1.0)

    def __repr__(self) -> str:
        shown = min(len(self), 5)
        return "\n".join([*(self._describe(i) for i in range(shown)), *self._more(shown)])

    def _repr_html_(self) -> str:
        """Show a table of the first samples in notebooks."""
        shown = min(len(self), _MOST_IN_NOTEBOOKS)
        heads = ("sample", "label", "rather than", "evidence", "closest training rows", "caution")
        lines = [
            (
                str(self._samples[i]),
                *self._classes(i),
                self._strongest(i),
                self._closest(i),
                self.caution(i),
            )
            for i in range(shown)
        ]
        return html_table(heads, lines) + html_lines(self._more(shown))

    def _describe(self, i: int) -> str:
        notes = {
            "evidence": self._strongest(i),
            "closest": self._closest(i),
            "unknown": self._unknown(i).removesuffix("."),
            "novel": self.novelty(i),
            "caution": self.caution(i),
        }
        lines = [f"  {name + ':':9} {text}" for name, text in notes.items() if text]
        return "\n".join([f"sample {self._samples[i]}: {' rather than '.join(self._classes(i))}", *lines])

    def _more(self, shown: int) -> list[str]:
        """Say how many samples are not shown."""
        return [f"... and {counted(len(self) - shown, 'more sample')}"] if shown < len(self) else []

    def _classes(self, i: int) -> list[str]:
        """Label and rival of a sample, with their probabilities."""
        pairs = zip((self.label[i], self.rival[i]), self.probability[i], strict=True)
        return [f"{name} ({probability:.2f})" for name, probability in pairs]

    def _strongest(self, i: int) -> str:
        strongest = np.argsort(-np.abs(self.evidence[i]), kind="stable")[:4]
        return ", ".join(f"{self.feature_names[j]} {self.evidence[i, j]:+.2f}" for j in strongest)

    def _closest(self, i: int) -> str:
        pairs = zip(self._listed_rows(i)[:3], self.equal[i].tolist(), strict=False)
        names = [training_row(name, equal=equal) for name, equal in pairs]
        if self.n_tied[i] > self.rows.shape[1]:
            return f"{self.n_tied[i]} rows are equally near"
        if names and not self.stands_out[i]:
            return f"{', '.join(names)} (no row stands out)"
        return ", ".join(f"{name} ({self.shares[i, k]:.0%})" for k, name in enumerate(names))

    def _listed_rows(self, i: int) -> list[Any]:
        """Labels of the training rows that support a sample, or their positions."""
        names = self.rows if self.row_names is None else self.row_names
        listed: list[Any] = names[i][self.rows[i] >= 0].tolist()
        return listed

    @property
    def _samples(self) -> NDArray[Any]:
        """Labels of the samples, or their positions."""
        return np.arange(len(self)) if self.sample_names is None else self.sample_names


def unlike_values(explanation: Explanation, sample: int) -> dict[str, Any]:
    """Values that make a sample unlike the nearest class, by variable, the strongest first."""
    names, values = explanation.feature_names, explanation.values[sample]
    return {names[j]: values[j] for j in explanation.unlike(sample)}
