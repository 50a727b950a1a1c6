"""Why samples get their labels, on arrays: evidence per variable and the training rows behind a density."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from corral._core.density import ClassDensity, DensityPlan
from corral._core.model import FittedModel, LocalModel
from corral._core.rodeo import rodeo
from corral._core.settings import Computation, Floats, Integers

# Evidence for a class is averaged over at most so many of its rows, evenly spread over all of them.
_MAX_POINTS = 50


class UntiledClass(NamedTuple):
    """A class as explanations read it, row by row.

    Attributes
    ----------
    X : (n_rows, n_used) scaled rows, on the variables used.
    log_weights : (n_rows,)
    log_total : logarithm of the sum of the weights.
    plan : variables and bandwidths of the density.
    """

    X: Floats
    log_weights: Floats
    log_total: float
    plan: DensityPlan

    @classmethod
    def of(cls, density: ClassDensity) -> UntiledClass:
        """Undo the tiles of a class."""
        rows = density.rows
        log_total = math.log(rows.measure.total) if rows.n_rows else -math.inf
        return cls(rows.all(), np.log(rows.weight(np.arange(rows.n_rows))), log_total, density.plan)

    def without(self, row: int) -> UntiledClass:
        """Leave a row out; -1 stands for none."""
        if row < 0:
            return self
        X, log_weights = np.delete(self.X, row, axis=0), np.delete(self.log_weights, row)
        log_total = float(logsumexp(log_weights)) if len(X) else -math.inf
        return UntiledClass(X, log_weights, log_total, self.plan)


def strongest_rivals(log_proba: Floats, label: Integers) -> Integers:
    """Number the most probable class other than the label of each sample."""
    others = log_proba.copy()
    others[np.arange(len(label)), label] = -np.inf
    rival: Integers = others.argmax(axis=1)
    # Where every other class has density zero, any of them will do.
    rival[rival == label] = (label[rival == label] == 0).astype(np.int64)
    return rival


class Explainer(ABC):
    """Looks at samples variable by variable, in the densities of a model.

    Attributes
    ----------
    log_density : (n_samples, n_classes) of the samples.
    bandwidths : (n_samples, n_classes, n_features) at the samples, or None where they have no meaning.
    """

    log_density: Floats
    bandwidths: Floats | None

    @abstractmethod
    def conditional(self, i: int, a: int, left_out: int = -1) -> tuple[Floats, Floats]:
        """Log density of each variable of sample i given all others in class a, and the rows' shares of it.

        One row of the class may be left out.
        """


class RodeoExplainer(Explainer):
    """Looks at samples in densities whose bandwidths the Rodeo chooses.

    Parameters
    ----------
    model : FittedModel
    X : (n_samples, n_features) samples.
    computation : threads and progress.
    own : (n_samples,) for training rows of class `of_class`, their positions in it: there bandwidths are
        those that the Rodeo chooses without the row.
    """

    def __init__(
        self,
        model: FittedModel,
        X: Floats,
        computation: Computation,
        own: Integers | None = None,
        of_class: int = -1,
    ) -> None:
        self.log_density, h = model.estimate(X, computation, bandwidths=True)
        self._scaled = model.scale.transform(X)
        self._units = model.bandwidths.widths, model.scale.mixing
        self._densities = model.densities
        self._untiled: dict[int, UntiledClass] = {}
        density = model.densities[of_class]
        if own is not None and density.plan.fixed is None:
            used = self._scaled[:, density.plan.variables]
            left, steps = rodeo(density.rows, density.grid, used, model.settings.rodeo.update, own)
            _, h[:, of_class] = density.completed(left, density.grid[steps], X.shape[1])
        self.bandwidths = h

    def conditional(self, i: int, a: int, left_out: int = -1) -> tuple[Floats, Floats]:
        """Log density of each variable given all others in class a, and the rows' shares of it."""
        assert self.bandwidths is not None
        if a not in self._untiled:
            self._untiled[a] = UntiledClass.of(self._densities[a])
        rows = self._untiled[a].without(left_out)
        return conditional_log_densities(self._scaled[i], self.bandwidths[i, a], rows, *self._units)


def explain_samples(
    explainer: Explainer, label: Integers, rival: Integers, d: int
) -> tuple[Floats, list[Floats]]:
    """Evidence (n_samples, d) for the label over its rival, and per sample the shares of the label's rows."""
    evidence, shares = np.empty((len(label), d)), []
    for i, (a, b) in enumerate(zip(label.tolist(), rival.tolist(), strict=True)):
        own, share = explainer.conditional(i, a)
        evidence[i] = own - explainer.conditional(i, b)[0]
        shares.append(share)
    return evidence, shares


def class_evidence(model: LocalModel, computation: Computation) -> Floats:
    """Mean evidence (n_classes, n_features) of each variable for a class at its own rows.

    Each row is compared with the most probable other class, and leaves itself and its copies out of both. So
    this is what the labels rest on, which variables that act only jointly are part of. It is 0 for a class
    without rows.
    """
    evidence = np.zeros(model.relevant.shape)
    members = model.data.members()
    for a, of_class in enumerate(members):
        if not of_class.size:
            continue
        spread = np.linspace(0, of_class.size - 1, min(of_class.size, _MAX_POINTS))
        own = np.unique(spread.round().astype(np.int64))
        at = of_class[own]
        explainer = explainer_of(model, model.data.X[at], computation, own, a)
        rivals = strongest_rivals(model.joint(explainer.log_density), np.full(own.size, a))
        found = np.empty((own.size, model.data.X.shape[1]))
        for i, b in enumerate(rivals.tolist()):
            copy = np.flatnonzero(model.data.units[members[b]] == model.data.units[at[i]])
            of_rival, _ = explainer.conditional(i, b, int(copy[0]) if copy.size else -1)
            found[i] = explainer.conditional(i, a, int(own[i]))[0] - of_rival
        weights = model.data.weights_of(at)
        evidence[a] = np.average(found, axis=0, weights=weights)
    return evidence


def explainer_of(
    model: LocalModel,
    X: Floats,
    computation: Computation,
    own: Integers | None = None,
    of_class: int = -1,
) -> Explainer:
    """Look at samples in the densities of a model; see `RodeoExplainer`."""
    assert isinstance(model, FittedModel)
    return RodeoExplainer(model, X, computation, own, of_class)


def conditional_log_densities(
    x: Floats, h: Floats, rows: UntiledClass, widths: Floats, mixing: Floats | None
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
    used, X, log_w = rows.plan.variables, rows.X, rows.log_weights
    if not len(X):  # nothing is known of the class
        return conditional, np.zeros(0)
    log_norm = np.log(h[used]) + 0.5 * math.log(2.0 * math.pi)
    if rows.plan.separate:
        exponents = log_w[:, np.newaxis] - 0.5 * ((x[used] - X) / h[used]) ** 2
        conditional[used] = logsumexp(exponents, axis=0) - rows.log_total - log_norm
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
