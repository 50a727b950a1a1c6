"""Explanation: what `explain` returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corral._core.evidence import explain_samples, explainer_of
from corral._core.model import LocalModel
from corral._core.settings import Computation, Floats, Integers
from corral._estimators.tables import is_gap

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why samples got their labels, as returned by `RodeoClassifier.explain`.

    The evidence of a variable is log p_a(x_j | others) - log p_b(x_j | others) for the label a and its
    rival b, in natural logarithms: how much the variable speaks for the label when all others are
    known. It does not add up to the log ratio of the densities, except where variables are independent
    within the classes.

    Attributes
    ----------
    label, rival : (n_samples,) predicted class and the one compared with it.
    probability : (n_samples, 2) of label and rival.
    feature_names : list of str
    values : (n_samples, n_features) the samples, with the names of levels.
    bandwidths : (n_samples, 2, n_features) in label and rival, scaled units; None where several models are
        pooled, each with its own.
    evidence : (n_samples, n_features) for the label over the rival.
    rows : (n_samples, n_listed) positions of the training rows with the largest shares, in the X given to
        fit (so ``X.iloc[rows]``, not ``X.loc``); -1 where a class has fewer.
    shares : (n_samples, n_listed) their shares of the label's density.
    row_names : (n_samples, n_listed) their names, or None if the X given to fit had no index that names rows.
    """

    label: NDArray[Any]
    rival: NDArray[Any]
    probability: Floats
    feature_names: list[str]
    values: NDArray[Any]
    bandwidths: Floats | None
    evidence: Floats
    rows: Integers
    shares: Floats
    row_names: NDArray[Any] | None = None

    @classmethod
    def of(
        cls,
        model: LocalModel,
        X: Floats,
        rivals: Callable[[Floats, Integers], Integers],
        *,
        values: NDArray[Any],
        feature_names: list[str],
        row_names: NDArray[Any] | None,
        n_listed: int,
        computation: Computation,
    ) -> Explanation:
        """Explain samples; `rivals` numbers the classes to compare with, given log scores and labels.

        `values` are the samples as they were given; `row_names` are those of all training rows, if they have
        names.
        """
        explainer = explainer_of(model, X, computation)
        log_proba = model.posterior(explainer.log_density)
        # Rivals by scores: far from others, their probabilities are little but the share given to the priors.
        label = log_proba.argmax(axis=1)
        rival = rivals(model.joint(explainer.log_density), label)
        training_rows = [model.data.numbers[at] for at in model.data.members()]
        n_listed = min(n_listed, max(of_class.size for of_class in training_rows))
        evidence, rows, shares = explain_samples(explainer, label, rival, X.shape[1], n_listed)
        for a, numbers in enumerate(training_rows):
            at = (label == a)[:, np.newaxis] & (rows >= 0)
            rows[at] = numbers[rows[at]]
        pair, h = np.stack([label, rival], axis=1), explainer.bandwidths
        return cls(
            label=model.labels[label],
            rival=model.labels[rival],
            probability=np.take_along_axis(np.exp(log_proba), pair, axis=1),
            feature_names=feature_names,
            values=values,
            bandwidths=None if h is None else np.take_along_axis(h, pair[:, :, np.newaxis], axis=1),
            evidence=evidence,
            rows=rows,
            shares=shares,
            row_names=None if row_names is None else np.where(rows >= 0, row_names[rows], ""),
        )

    def __len__(self) -> int:
        return len(self.label)

    def to_frame(self) -> pd.DataFrame:
        """One line per sample and variable (needs pandas)."""
        import pandas as pd

        n, d = self.values.shape
        columns = {
            "sample": np.repeat(np.arange(n), d),
            "label": np.repeat(self.label, d),
            "rival": np.repeat(self.rival, d),
            "variable": self.feature_names * n,
            "value": self.values.ravel(),
        }
        if self.bandwidths is not None:
            columns["bandwidth"] = self.bandwidths[:, 0].ravel()
            columns["bandwidth_rival"] = self.bandwidths[:, 1].ravel()
        return pd.DataFrame({**columns, "evidence": self.evidence.ravel()})

    def support_to_frame(self) -> pd.DataFrame:
        """One line per sample and supporting training row (needs pandas)."""
        import pandas as pd

        listed = self.rows >= 0
        sample = np.broadcast_to(np.arange(len(self))[:, np.newaxis], listed.shape)
        names = {} if self.row_names is None else {"name": self.row_names[listed]}
        return pd.DataFrame(
            {
                "sample": sample[listed],
                "training_row": self.rows[listed],
                **names,
                "share": self.shares[listed],
            }
        )

    def __repr__(self) -> str:
        shown = min(len(self), 5)
        lines = [self._describe(i) for i in range(shown)]
        if shown < len(self):
            lines.append(f"... and {len(self) - shown} more samples")
        return "\n".join(lines)

    def _describe(self, i: int) -> str:
        strongest = np.argsort(-np.abs(self.evidence[i]), kind="stable")[:4]
        evidence = ", ".join(f"{self.feature_names[j]} {self.evidence[i, j]:+.2f}" for j in strongest)
        names = [f"row {row}" for row in self.rows[i]] if self.row_names is None else self.row_names[i]
        support = ", ".join(
            f"{name} ({share:.0%})"
            for name, row, share in zip(names[:3], self.rows[i][:3], self.shares[i][:3], strict=True)
            if row >= 0
        )
        return (
            f"sample {i}: {self.label[i]} ({self.probability[i, 0]:.2f}) "
            f"rather than {self.rival[i]} ({self.probability[i, 1]:.2f})\n"
            f"  evidence: {evidence}\n"
            f"  closest:  {support}"
        )


def value_text(value: Any) -> str:
    """Write a value of a sample: a number with four digits, the name of a level, or "missing"."""
    if is_gap(value):
        return "missing"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
