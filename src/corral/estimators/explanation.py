"""Explanation: the result of `explain`, which stores and prints why samples get their labels.

A sample is a row that is explained. Its rival is the class with which the predicted label is compared.
"""

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

# A novel sample is explained by at most three variables, each with at least a tenth of the sum of the
# positive novelty parts.
_MOST_UNLIKE = 3
_LEAST_UNLIKE = 0.1

# A label rests on one training row if the row has a larger share of the density.
_LARGE_SHARE = 0.5

_MOST_IN_NOTEBOOKS = 20


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why samples get their labels, as returned by `RodeoClassifier.explain`.

    The sum of `base` and the evidence of all variables is the log odds of the label against the rival, as in
    `predict_log_proba`, in natural logarithms. The evidence of a variable is the change of the log odds when
    its value is added to the values of other variables, on average over the orders in which variables can be
    added (the Shapley value [1]_). Variables that are not added yet are integrated out. With up to ten
    variables the average is over all orders, otherwise over random orders, the same orders for all samples.
    The evidence of a missing value is 0.

    Attributes
    ----------
    label, rival : ndarray of shape (n_samples,)
        Predicted label, and the label with which it is compared. By default the rival is the class with the
        highest prior times density after the predicted class.
    probability : ndarray of shape (n_samples, 2)
        Probabilities of label and rival.
    feature_names : list of str
        Names of the variables.
    values : ndarray of shape (n_samples, n_features)
        Values of the samples: numbers, or names of categories.
    unknown : ndarray of shape (n_samples, n_features)
        Whether the value is a category that no training row has. Such a value is treated as missing.
    bandwidths : ndarray of shape (n_samples, 2, n_features) or None
        Bandwidths of the scaled variables in the densities of label and rival. None for a `CorralClassifier`,
        since its members have different bandwidths.
    base : ndarray of shape (n_samples,)
        Log odds of the priors of label and rival. If a prior is 0 or a class has no rows, `base` is infinite,
        and the evidence of all variables is 0.
    evidence : ndarray of shape (n_samples, n_features)
        Evidence for the label against the rival. An evidence of 1 multiplies the odds of the label against
        the rival by e; negative evidence favors the rival.
    evidence_error : ndarray of shape (n_samples, n_features)
        Standard error of the evidence; 0 if the evidence is exact.
    conditional : ndarray of shape (n_samples, n_features)
        ``log p_a(x_j | other values) - log p_b(x_j | other values)`` for label a and rival b: how much the
        value of the variable favors the label if all other values are given. Their sum has no meaning.
    rows : ndarray of shape (n_samples, n_listed)
        Supporting rows: positions, in the X passed to fit, of the training rows of the label with the largest
        shares of its density (use ``X.iloc[rows]``); -1 if the class has fewer rows. Rows with equal shares
        are ordered by their distance, the mean squared difference relative to the variances of the class,
        weighted by the evidence. In a compressed class, each is the training row nearest to a centroid (see
        `CorralClassifier`).
    shares : ndarray of shape (n_samples, n_listed)
        Share of each of `rows` in the density of the label at the sample.
    effective_rows : ndarray of shape (n_samples,)
        Effective number of training rows in the density of the label: 1 / (sum of squared shares), which is k
        if k rows have equal shares.
    group_share : ndarray of shape (n_samples,)
        Largest sum of the shares of the rows of a group (see `fit`); without groups, the largest share.
    stands_out : ndarray of shape (n_samples,)
        Whether the first of `rows` has a larger share than rows that are not listed, and a larger share than
        its weight; also True if all rows of the class are listed. If it is False, for example because the
        density is normal, `rows` are the nearest rows.
    n_tied : ndarray of shape (n_samples,)
        Number of training rows with the share and the distance of the first of `rows`, itself included.
    rests_on_few : ndarray of shape (n_samples,)
        Whether a single row or group has more than half of the density of the label, and a larger share than
        at 95% of the training rows, each left out with its group. Training rows that equal the sample and
        their groups are ignored.
    row_names : ndarray of shape (n_samples, n_listed) or None
        Labels of `rows` in the index of the X passed to fit (use ``X.loc[row_names[0]]`` if they are integers
        or text). None if X was an array, or a frame whose index was 0, 1, 2, ... or had missing or repeated
        labels.
    nearest : ndarray of shape (n_samples,)
        Label of the nearest class: the class with the highest typicality score. It may differ from `label`.
    typicality : ndarray of shape (n_samples,)
        Typicality of the sample in its nearest class; see `RodeoClassifier.typicality`.
    typical_share : ndarray of shape (n_samples,)
        Share of the training rows of the nearest class, counting the sample as one of them, that are at most
        as typical of the class as the sample. It differs from `typicality` only if the sample is one of
        these training rows:
        `typicality` counts such a sample twice.
    novel : ndarray of shape (n_samples,)
        Whether the sample is less typical than 99 in 100 training rows; see `RodeoClassifier.is_novel`.
    in_training : ndarray of shape (n_samples,)
        Whether a training row equals the sample in all variables.
    novelty_parts : ndarray of shape (n_samples, n_features)
        How much each variable makes the sample unlike its nearest class; about 0 in typical rows, and 0 for
        missing values. It is the median over the rows of the class of the variable's contribution to the
        score, a log density (a Shapley value again), less the contribution at the sample, divided by the
        spread of the score. It is larger if the value is far from all values of its column in the class.
    equal : ndarray of shape (n_samples, n_listed)
        Whether the row in `rows` equals the sample in all variables, as if a training row is explained.
    stands_for : ndarray of shape (n_samples, n_listed)
        Number of training rows that the row in `rows` represents: 1 unless its class is compressed.
    nearest_range : ndarray of shape (n_samples, 2, n_features)
        Lowest and highest value of each numeric variable in the training rows of the nearest class. If no row
        has a value, they are infinity and minus infinity. NaN for categories, and for all variables if the
        model does not store the ranges of all training rows.
    sample_names : ndarray of shape (n_samples,) or None
        Labels of the samples in the index of the X passed to `explain`; None in the same cases as
        `row_names`.

    See Also
    --------
    corral.CorralClassifier.explain : Returns an Explanation.
    corral.ExplanationDisplay : Draws the explanation of one sample.

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
        """Log odds (n_samples,) of the label against the rival: the sum of base and evidence."""
        log_odds: Floats = self.base + self.evidence.sum(axis=1)
        return log_odds

    def renumbered(self, positions: Integers) -> Explanation:
        """Translate `rows` into positions in a larger table, for a model that was fitted to a part of it.

        Parameters
        ----------
        positions : ndarray of shape (n_training_rows,)
            Position of each training row in the larger table.

        Returns
        -------
        explanation : Explanation
            Copy with other `rows`.
        """
        return replace(self, rows=np.where(self.rows >= 0, positions[self.rows], -1))

    def aligned(self, names: list[str]) -> Explanation:
        """Arrange the variables in the order of `names`.

        This makes explanations by several models comparable: models that are fitted to different rows may
        have different variables of a date.

        Parameters
        ----------
        names : list of str
            Names of variables. A variable that the model does not have gets missing values and evidence 0.
            The evidence of variables that are not in `names` is added to `base`.

        Returns
        -------
        explanation : Explanation
            Copy with these variables.
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
        """Write a warning if the label of a sample rests on a single training row or group.

        Parameters
        ----------
        sample : int
            Position of the sample.

        Returns
        -------
        sentence : str
            Empty unless `rests_on_few` is True for the sample.
        """
        check_position("sample", sample, len(self))
        if not self.rests_on_few[sample]:
            return ""
        share = self.shares[sample, 0]
        if share > _LARGE_SHARE:
            return rests_on_row(training_row(self._listed_rows(sample)[0]), share)
        return rests_on_group(self.group_share[sample])

    def unlike(self, sample: int) -> list[int]:
        """List the variables that make a sample unlike its nearest class.

        Parameters
        ----------
        sample : int
            Position of the sample.

        Returns
        -------
        variables : list of int
            Positions of at most three variables, the largest part first. Each has at least a tenth of the sum
            of the positive `novelty_parts`.
        """
        check_position("sample", sample, len(self))
        parts = np.maximum(self.novelty_parts[sample], 0.0)
        order = np.argsort(-parts, kind="stable")[:_MOST_UNLIKE]
        return [int(j) for j in order if parts[j] > 0.0 and parts[j] >= _LEAST_UNLIKE * parts.sum()]

    def novelty(self, sample: int, description: Description | None = None) -> str:
        """Write why a sample is novel: which values make it unlike its nearest class.

        Parameters
        ----------
        sample : int
            Position of the sample.
        description : Description, default=None
            Description of the same classes. If given, the text has typical values of the nearest class.

        Returns
        -------
        sentence : str
            Empty if the sample is not novel.
        """
        check_position("sample", sample, len(self))
        if not self.novel[sample]:
            return ""
        values = [self._value_beside_class(sample, j, description) for j in self.unlike(sample)]
        return novelty(self.nearest[sample], values)

    def _value_beside_class(self, i: int, j: int, description: Description | None) -> str:
        """Write a value of a sample beside the range and the typical value of the nearest class."""
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
        """Test whether a value lies in the range of the nearest class, and the sample has other values.

        For a training row the ends of the range do not count, since they may be its own value.
        """
        (low, high), value = self.nearest_range[i, :, j], self.values[i, j]
        if not np.isfinite([low, high]).all() or self._has_value(i).sum() < 2:
            return False
        return bool(low < value < high if self.in_training[i] else low <= value <= high)

    def _lacking(self, i: int) -> list[str]:
        """List the variables that have a value in the sample, but no value in any row of the nearest class.

        The list is empty if the nearest class is the label.
        """
        if self.nearest[i] == self.label[i]:
            return []
        lacks = np.isposinf(self.nearest_range[i, 0]) & self._has_value(i)
        return [self.feature_names[j] for j in np.flatnonzero(lacks)]

    def _has_value(self, i: int) -> Bools:
        """Test which values (n_features,) of a sample are neither missing nor unknown categories."""
        has_value: Bools = ~are_missing(self.values[i]) & ~self.unknown[i]
        return has_value

    def _unknown(self, i: int) -> str:
        """Write which values of a sample are unknown categories; empty if there are none."""
        return unknown_values(
            [(self.feature_names[j], self.values[i, j]) for j in np.flatnonzero(self.unknown[i])]
        )

    def sentences(
        self, sample: int, called: str | None = None, description: Description | None = None
    ) -> dict[str, str]:
        """Write why a sample gets its label.

        Parameters
        ----------
        sample : int
            Position of the sample.
        called : str, default=None
            Name of the sample in the sentences. By default "Sample" and its label in the index, or its
            position.
        description : Description, default=None
            Description of the same classes; see `novelty`.

        Returns
        -------
        sentences : dict of str
            "label": the label, the rival and their probabilities. "place": how typical the sample is, or that
            it is novel. "reasons": which values favor the label, which favor the rival, and which are unknown
            categories. "odds": the log odds of priors and evidence. "support": the effective number of
            training rows. "nearest": the training rows in `rows`. "caution": see `caution`. A sentence may be
            empty.
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
        """Make a pandas frame with one row per sample and variable.

        Returns
        -------
        frame : DataFrame
            The columns are "sample" (its label in the index, or its position), "label", "rival", "variable",
            "value", "unknown", "bandwidth" and "bandwidth_rival" (unless `bandwidths` is None), "evidence",
            "evidence_error", "conditional" and "novelty_parts". Unknown categories are shown as values,
            though they are treated as missing.
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
        """Make a pandas frame with one row per sample and supporting training row.

        Returns
        -------
        frame : DataFrame
            The columns are "sample", "training_row" (its position), "name" (its label in the index, unless
            `row_names` is None) and "share".
        """
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
        """Draw why one sample gets its label (needs matplotlib).

        Parameters
        ----------
        sample : int, default=0
            Position of the sample.
        max_variables : int, default=12
            Number of bars of single variables, the strongest evidence first. The other variables share a bar.
        axes : two matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : ExplanationDisplay
            The display, with its axes and figure.
        """
        import corral  # loads the display when needed: `display` must not be imported by this package

        return corral.ExplanationDisplay.from_explanation(
            self, sample=sample, max_variables=max_variables, axes=axes
        )

    def to_shap(self, label: Any = None) -> Any:
        """Convert the evidence to an Explanation of the package shap, for its plots (needs shap).

        Parameters
        ----------
        label : label, default=None
            The class that positive values favor in all samples. The samples must be explained with
            ``explain(X, against=label)``. By default positive values favor the label of each sample.

        Returns
        -------
        explanation : shap.Explanation
            With `values` (the evidence), `base_values`, `data` and `feature_names`. Values and base value of
            a sample add up to the log odds.

        Notes
        -----
        ``shap.plots.waterfall(explanation.to_shap()[0])`` draws one sample. A beeswarm draws many samples,
        and needs a label: ``shap.plots.beeswarm(classifier.explain(X, against="ant").to_shap("ant"))``.
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
        """Compute signs (n_samples,): 1 if `label` is the label of the sample, -1 if it is the rival."""
        neither = np.flatnonzero((self.label != label) & (self.rival != label))
        if neither.size:
            i = int(neither[0])
            raise ValueError(
                f"sample {i} compares {self.label[i]} with {self.rival[i]}, not with {label}: use "
                f"explain(X, against={label!r})."
            )
        return np.where(self.label == label, 1.0, -1.0)

    def __repr__(self) -> str:
        shown = min(len(self), 5)
        return "\n".join([*(self._describe(i) for i in range(shown)), *self._more(shown)])

    def _repr_html_(self) -> str:
        """Make the HTML table of the first samples that notebooks show."""
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
        """Write how many samples are not shown; an empty list if all are shown."""
        return [f"... and {counted(len(self) - shown, 'more sample')}"] if shown < len(self) else []

    def _classes(self, i: int) -> list[str]:
        """Write label and rival of a sample, with their probabilities."""
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
        """List the names of the supporting training rows, or their positions if rows have no names."""
        names = self.rows if self.row_names is None else self.row_names
        listed: list[Any] = names[i][self.rows[i] >= 0].tolist()
        return listed

    @property
    def _samples(self) -> NDArray[Any]:
        """Names (n_samples,) of the samples, or their positions if samples have no names."""
        return np.arange(len(self)) if self.sample_names is None else self.sample_names


def unlike_values(explanation: Explanation, sample: int) -> dict[str, Any]:
    """Map the variables that make a sample unlike its nearest class to their values, the strongest first."""
    names, values = explanation.feature_names, explanation.values[sample]
    return {names[j]: values[j] for j in explanation.unlike(sample)}
