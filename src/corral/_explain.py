"""Why a sample got its label, on arrays: evidence per variable and the training rows behind a density."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from corral._rodeo import ClassDensity, Floats, Integers

if TYPE_CHECKING:
    import pandas as pd


def conditional_log_densities(
    x: Floats, h: Floats, density: ClassDensity, widths: Floats, mixing: Floats | None
) -> tuple[Floats, Floats]:
    """Log density of each variable given all others, and each row's share of the density.

    With the bandwidths h held, p(x_j | others) is the kernel estimate with all factors divided by the
    one that leaves the factor of variable j out. A variable taken as uniform has the density
    1 / width, given anything. Where variables are taken as independent, each has its own
    one-dimensional density, and a row's share is the mean of its shares in them. Where x is a mixture
    of the variables, kernels are normal densities with the precision matrix P = M diag(h)^-2 M of the
    unmixed ones, and leaving variable j out takes (P d)_j^2 / P_jj from the quadratic form of d.
    """
    conditional = -np.log(widths)
    if density.rows.n_rows == 0:  # nothing is known of the class
        return conditional, np.zeros(0)
    used = density.variables
    X = density.rows.take(np.arange(density.rows.n_rows))
    log_w = np.log(density.rows.weight(np.arange(len(X))))
    log_norm = np.log(h[used]) + 0.5 * math.log(2.0 * math.pi)
    if density.separate:
        exponents = log_w[:, np.newaxis] - 0.5 * ((x[used] - X) / h[used]) ** 2
        conditional[used] = logsumexp(exponents, axis=0) - math.log(density.rows.measure.total) - log_norm
        return conditional, softmax(exponents, axis=0).mean(axis=1)
    # Exponents relative to the nearest row, as products, and sums over all other variables from both
    # sides: a difference of large sums would lose the digits of the small terms in it.
    nearest = X[(((x[used] - X) / h[used]) ** 2).sum(axis=1).argmin()]
    terms = 0.5 * ((nearest - X) / h[used]) * (((x[used] - nearest) + (x[used] - X)) / h[used])
    if mixing is None:
        others = _sums_before(terms) + _sums_before(terms[:, ::-1])[:, ::-1]
        left_out = 0.5 * ((x[used] - nearest) / h[used]) ** 2
    else:
        factor = mixing / h
        precision = (factor**2).sum(axis=1)
        of_nearest = ((x - nearest) / h) @ factor.T
        more = ((nearest - X) / h) @ factor.T
        others = terms.sum(axis=1, keepdims=True) - 0.5 * more * (more + 2.0 * of_nearest) / precision
        left_out = 0.5 * of_nearest**2 / precision
        log_norm = 0.5 * np.log(2.0 * math.pi / precision)
    whole = log_w - terms.sum(axis=1)
    ratio = logsumexp(whole) - logsumexp(log_w[:, np.newaxis] - others, axis=0)
    conditional[used] = ratio - left_out - log_norm
    return conditional, softmax(whole)


def _sums_before(terms: Floats) -> Floats:
    """Sum of the terms to the left of each."""
    sums = np.zeros_like(terms)
    np.cumsum(terms[:, :-1], axis=1, out=sums[:, 1:])
    return sums


def explain_sample(
    x: Floats,
    h: Floats,
    density: ClassDensity,
    h_rival: Floats,
    rival: ClassDensity,
    widths: Floats,
    mixing: Floats | None,
) -> tuple[Floats, Floats]:
    """Evidence of each variable for a class over its rival, and the shares of the class's rows."""
    conditional, share = conditional_log_densities(x, h, density, widths, mixing)
    conditional_rival, _ = conditional_log_densities(x, h_rival, rival, widths, mixing)
    return conditional - conditional_rival, share


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
    values : (n_samples, n_features) the samples.
    bandwidths : (n_samples, 2, n_features) in label and rival, scaled units.
    evidence : (n_samples, n_features) for the label over the rival.
    rows : (n_samples, n_listed) positions of the training rows with the largest shares, in the X given to
        fit (so ``X.iloc[rows]``, not ``X.loc``); -1 where a class has fewer.
    shares : (n_samples, n_listed) their shares of the label's density.
    """

    label: NDArray[Any]
    rival: NDArray[Any]
    probability: Floats
    feature_names: list[str]
    values: Floats
    bandwidths: Floats
    evidence: Floats
    rows: Integers
    shares: Floats

    @classmethod
    def collect(
        cls,
        samples: Sequence[tuple[Floats, Floats]],
        *,
        classes: NDArray[Any],
        pair: tuple[Integers, Integers],
        proba: Floats,
        values: Floats,
        bandwidths: Floats,
        feature_names: list[str],
        training_rows: Sequence[Integers],
        n_listed: int,
    ) -> Explanation:
        """Put the results of `explain_sample` together; `pair` numbers labels and rivals."""
        n = len(values)
        n_listed = min(n_listed, max(of_class.size for of_class in training_rows))
        rows, shares = np.full((n, n_listed), -1), np.zeros((n, n_listed))
        for i, (_, share) in enumerate(samples):
            most = np.argsort(-share, kind="stable")[:n_listed]
            rows[i, : most.size] = training_rows[pair[0][i]][most]
            shares[i, : most.size] = share[most]
        both = np.stack(pair, axis=1)
        return cls(
            label=classes[pair[0]],
            rival=classes[pair[1]],
            probability=np.take_along_axis(proba, both, axis=1),
            feature_names=feature_names,
            values=values,
            bandwidths=np.take_along_axis(bandwidths, both[:, :, np.newaxis], axis=1),
            evidence=np.array([evidence for evidence, _ in samples]).reshape(values.shape),
            rows=rows,
            shares=shares,
        )

    def __len__(self) -> int:
        return len(self.label)

    def to_frame(self) -> pd.DataFrame:
        """One line per sample and variable (needs pandas)."""
        import pandas as pd

        n, d = self.values.shape
        return pd.DataFrame(
            {
                "sample": np.repeat(np.arange(n), d),
                "label": np.repeat(self.label, d),
                "rival": np.repeat(self.rival, d),
                "variable": self.feature_names * n,
                "value": self.values.ravel(),
                "bandwidth": self.bandwidths[:, 0].ravel(),
                "bandwidth_rival": self.bandwidths[:, 1].ravel(),
                "evidence": self.evidence.ravel(),
            }
        )

    def support_to_frame(self) -> pd.DataFrame:
        """One line per sample and supporting training row (needs pandas)."""
        import pandas as pd

        listed = self.rows >= 0
        sample = np.broadcast_to(np.arange(len(self))[:, np.newaxis], listed.shape)
        return pd.DataFrame(
            {"sample": sample[listed], "training_row": self.rows[listed], "share": self.shares[listed]}
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
        support = ", ".join(
            f"row {row} ({share:.0%})"
            for row, share in zip(self.rows[i][:3], self.shares[i][:3], strict=True)
            if row >= 0
        )
        return (
            f"sample {i}: {self.label[i]} ({self.probability[i, 0]:.2f}) "
            f"rather than {self.rival[i]} ({self.probability[i, 1]:.2f})\n"
            f"  evidence: {evidence}\n"
            f"  closest:  {support}"
        )
