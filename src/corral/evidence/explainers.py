"""Explainers: densities of a model at samples, for single variables and for sets of variables.

The sets of variables are `corral.shapley.Coalitions`. A row of a class has a share of the density at a
sample: its kernel divided by the sum of the kernels. A kernel is a product of one factor for each variable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property, partial

import numpy as np
from scipy.special import logsumexp, softmax

from corral import kernels
from corral.array_types import Bools, Floats, Integers
from corral.conformal.typicality import Estimates
from corral.data.tiles import TINY, ClassRows
from corral.model import Examples, LocalModel
from corral.parallel import Computation, on_threads
from corral.pool.categories import CategoryCounts
from corral.pool.marginals import beginnings, product_log_densities
from corral.pool.model import PoolModel
from corral.rodeo.factors import NO_GROUP, log_factors
from corral.rodeo.model import FittedModel
from corral.shapley import Coalitions

# Limits that bound memory: samples in a block, and kernel factors of a block.
BLOCK = 256
_MOST_TERMS = 1_000_000

# A function from positions of samples (n_samples,) to estimates (n_samples, n_sets).
SetEstimates = Callable[[Integers], Estimates]


class Explainer(ABC):
    """Evaluates the densities of a model at samples, for single variables and for sets of variables.

    X (n_samples, n_features) are the samples, and `estimates` their densities, if these have been computed.
    If the samples are training rows, they are passed as `examples` as well, and the kernels of each sample's
    group are left out.
    """

    model: LocalModel

    def __init__(
        self,
        model: LocalModel,
        X: Floats,
        computation: Computation,
        estimates: Estimates | None = None,
        examples: Examples | None = None,
    ) -> None:
        self.model = model
        self.X = X
        self.computation = computation
        self.examples = examples
        self.left_out: Integers = np.full(len(X), -1) if examples is None else examples.left_out
        self._given = estimates

    @cached_property
    def estimates(self) -> Estimates:
        """Log densities and unscaled scores (n_samples, n_classes) of the samples, with their bandwidths."""
        return self._evaluate() if self._given is None else self._given

    @property
    def used(self) -> Bools:
        """Whether each variable (n_features,) is part of the density of any class."""
        return self.model.used

    @abstractmethod
    def sizes(self, a: int) -> list[int]:
        """Number of kernel factors to evaluate for one sample in class a, for each density of the class."""

    @abstractmethod
    def conditional(self, samples: Integers, a: int, left_out: Bools | None = None) -> tuple[Floats, Floats]:
        """Compute log densities of each variable given all other variables, and shares of training rows.

        Parameters
        ----------
        samples : (n_samples,) positions of samples.
        a : code of a class.
        left_out : (n_samples, n_rows) which rows of the class get the share 0; None for no row.

        Returns
        -------
        conditional : (n_samples, n_features) log density in class a of each variable given all others.
        shares : (n_samples, n_rows) shares of the rows of the class in the density. They sum to 1, or are all
            0 if no row that is not left out has a share.
        """

    def evaluate_sets(self, a: int, samples: Integers, coalitions: Coalitions) -> Estimates:
        """Evaluate class a for sets of variables at the samples with these positions.

        Returns log densities and unscaled scores (n_samples, n_sets).
        """
        estimates = Estimates(*np.empty((2, samples.size, len(coalitions.members))))
        marginals = self._marginals(a, coalitions)

        def estimate(block: Integers) -> None:
            estimates.log_density[block], estimates.unscaled_score[block], _ = marginals(samples[block])

        step = int(np.clip(_MOST_TERMS // max(self.sizes(a)), 1, BLOCK))
        # Samples with the same missing variables are neighbors: densities reuse what they share.
        order = np.lexsort(np.isnan(self.X[samples]).T)
        blocks = (order[first : first + step] for first in range(0, samples.size, step))
        list(on_threads((partial(estimate, block) for block in blocks), self.computation.n_jobs))
        return estimates

    @abstractmethod
    def _evaluate(self) -> Estimates:
        """Evaluate the densities at the samples."""

    @abstractmethod
    def _marginals(self, a: int, coalitions: Coalitions) -> SetEstimates:
        """Return a function that evaluates the sets of variables in class a, on any number of threads."""


class RodeoExplainer(Explainer):
    """Evaluates densities with bandwidths of the Rodeo; a training row is left out of its own densities."""

    model: FittedModel

    def _evaluate(self) -> Estimates:
        own = None
        if self.examples is not None:
            codes = self.examples.codes
            own = [np.where(codes == a, self.examples.own, -1) for a in range(self.model.labels.size)]
        return self.model.estimates(self.X, self.computation, bandwidths=True, own=own)

    @property
    def _bandwidths(self) -> Floats:
        assert self.estimates.bandwidths is not None
        return self.estimates.bandwidths

    @cached_property
    def _scaled(self) -> Floats:
        return self.model.scale.transform(self.X)

    def _uniform(self, samples: Integers) -> Floats:
        """Log densities (n_samples, n_features) of variables if each is uniform; 0 for missing values."""
        return np.where(np.isnan(self._scaled[samples]), 0.0, -np.log(self.model.bandwidths.widths))

    def conditional(self, samples: Integers, a: int, left_out: Bools | None = None) -> tuple[Floats, Floats]:
        """Compute log densities of variables given all others, and shares of rows; see `Explainer`."""
        density = self.model.densities[a]
        rows, used, conditional = density.rows, density.variables, self._uniform(samples)
        shares = np.zeros((samples.size, rows.n_rows))
        if rows.n_rows:
            for k, i in enumerate(samples.tolist()):
                x, h = self._scaled[i, used], self._bandwidths[i, a, used]
                conditional[k, used], shares[k] = _product_conditionals(rows, x, h)
        return conditional, _shares_of_others(shares, left_out)

    @property
    def used(self) -> Bools:
        """Whether each variable (n_features,) is part of the density of any class, not just uniform."""
        used = np.zeros(self.X.shape[1], dtype=bool)
        for density in self.model.densities:
            used[density.variables] = True
        return used

    def sizes(self, a: int) -> list[int]:
        """Number of kernel factors to evaluate for one sample in class a."""
        return [self.model.densities[a].rows.size]

    def _marginals(self, a: int, coalitions: Coalitions) -> SetEstimates:
        data, density = self.model.data, self.model.densities[a]
        rows, used = density.rows, density.variables
        if not rows.n_rows:
            return lambda samples: Estimates(*np.full((2, samples.size, len(coalitions.members)), -np.inf))
        # Computed here and not in `estimate`: threads would compute what is cached several times.
        walk, scaled, bandwidths = coalitions.walk(used), self._scaled[:, used], self._bandwidths[:, a, used]
        positions = np.arange(rows.n_rows)
        log_weights, groups = np.log(rows.weight(positions)), rows.group(positions)
        own = data.own_rows(data.members()[a], self.left_out)

        def estimate(samples: Integers) -> Estimates:
            start = beginnings(log_weights, groups, rows.group(own[samples]))
            uniform = self._uniform(samples)
            uniform[:, used] = 0.0
            x = scaled[samples]
            T = -log_factors(rows, x, bandwidths[samples], own[samples])
            log_density = product_log_densities(walk, start, T, np.isnan(x)) + coalitions.sums(uniform)
            return Estimates(log_density, log_density)

        return estimate


def _shares_of_others(shares: Floats, left_out: Bools | None) -> Floats:
    """Set the shares (n_samples, n_rows) of left-out rows to 0 and scale the other shares to sum to 1."""
    if left_out is None:
        return shares
    remaining = np.where(left_out, 0.0, shares)
    shares = remaining / np.maximum(remaining.sum(axis=1, keepdims=True), TINY)
    return shares


def _product_conditionals(rows: ClassRows, x: Floats, h: Floats) -> tuple[Floats, Floats]:
    """Compute the log density (n_used,) of each variable given all other variables, and shares (n_rows,).

    With fixed bandwidths h (n_used,), the density of x_j given the other variables is the kernel estimate
    with the factors of all variables, divided by the kernel estimate without the factor of variable j. The
    log density is 0 if x_j is missing.
    """
    terms, at_nearest = _relative_terms(rows, x, h)
    log_weights = np.log(rows.weight(np.arange(rows.n_rows)))
    # The sum over all other variables is computed from both sides: the total minus the term of one variable
    # would lose the digits of small terms.
    others = _sums_before(terms) + _sums_before(terms[:, ::-1])[:, ::-1]
    exponents = log_weights - terms.sum(axis=1)
    ratio = logsumexp(exponents) - logsumexp(log_weights[:, np.newaxis] - others, axis=0)
    return np.where(np.isnan(x), 0.0, ratio - at_nearest), softmax(exponents)


def _relative_terms(rows: ClassRows, x: Floats, h: Floats) -> tuple[Floats, Floats]:
    """Compute kernel exponents (n_rows, n_used) minus the exponents of the nearest row, and the latter.

    The second result, the exponents (n_used,) of the nearest row, includes the logarithms of the norms of the
    kernels.
    """
    if not rows.is_plain or np.isnan(x).any():
        T = -log_factors(rows, x[np.newaxis], h[np.newaxis], np.array([-1]))[0].T
        nearest = T[T.sum(axis=1).argmin()]
        return T - nearest, nearest
    # Computed as products: far from all rows, exponents are so large that their differences would be rounding
    # errors.
    values = rows.all()
    row = values[(((x - values) / h) ** 2).sum(axis=1).argmin()]
    terms = 0.5 * ((row - values) / h) * (((x - row) + (x - values)) / h)
    return terms, 0.5 * ((x - row) / h) ** 2 + np.log(h) + kernels.LOG_ROOT


def _sums_before(terms: Floats) -> Floats:
    """For each of the terms (n_rows, n_used), the sum of the terms to its left in the row."""
    sums = np.zeros_like(terms)
    np.cumsum(terms[:, :-1], axis=1, out=sums[:, 1:])
    return sums


class PoolExplainer(Explainer):
    """Evaluates the densities of a pool, a weighted combination of several density models, its members.

    Log densities and shares are weighted sums over the members.
    """

    model: PoolModel

    def _evaluate(self) -> Estimates:
        if self.examples is None:
            return self.model.estimates(self.X, self.computation)
        if self._category_counts is None:
            return self.model.estimates_without(self._group_left_out, self.X)
        # Leaving a group out also changes the frequencies of categories. `evaluate_sets` accounts for this.
        d, n_classes = self.X.shape[1], self.model.labels.size
        order = Coalitions.sampled(np.flatnonzero(self.used), d, 1)
        by_class = [self.evaluate_sets(a, np.arange(len(self.X)), order) for a in range(n_classes)]
        complete = order.chains[0, -1]
        return Estimates(
            np.column_stack([estimates.log_density[:, complete] for estimates in by_class]),
            np.column_stack([estimates.unscaled_score[:, complete] for estimates in by_class]),
        )

    @cached_property
    def _group_left_out(self) -> Integers:
        """(n_samples,) id of the group that is left out for each sample, or NO_GROUP."""
        return np.where(self.left_out >= 0, self.model.data.group_ids[self.left_out], NO_GROUP)

    @cached_property
    def _scaled(self) -> list[Floats]:
        """For each member, the samples (n_samples, n_features) on its scale; members can share a scale."""
        scales = [member.scale for member in self.model.pool.members]
        by_scale = {scale: scale.transform(self.X) for scale in set(scales)}
        return [by_scale[scale] for scale in scales]

    def conditional(self, samples: Integers, a: int, left_out: Bools | None = None) -> tuple[Floats, Floats]:
        """Compute log densities of variables given all others, and shares of rows; see `Explainer`."""
        pool, n_rows = self.model.pool, int((self.model.data.codes == a).sum())
        conditional = np.zeros((samples.size, self.X.shape[1]))
        shares = np.zeros((samples.size, n_rows))
        for member, weight, scaled in zip(pool.members, pool.weights, self._scaled, strict=True):
            log_ratio, share = member.classes[a].conditionals(scaled[samples])
            conditional += weight * log_ratio
            shares += weight * _shares_of_others(share, left_out)
        return conditional, shares / pool.weights.sum()

    def sizes(self, a: int) -> list[int]:
        """Number of kernel factors to evaluate for one sample in class a, for each member."""
        return [member.classes[a].size for member in self.model.pool.members]

    def _marginals(self, a: int, coalitions: Coalitions) -> SetEstimates:
        model, data, pool = self.model, self.model.data, self.model.pool
        group_ids, scaled, out = data.group_ids[data.members()[a]], self._scaled, self._group_left_out
        densities = [member.classes[a].marginals(coalitions, group_ids) for member in pool.members]
        category_counts = self._category_counts

        def estimate(samples: Integers) -> Estimates:
            sums = np.zeros((2, samples.size, len(coalitions.members)))
            log_shares = None
            if category_counts is not None and (self.left_out[samples] >= 0).any():
                log_shares = category_counts.log_shares_without(out[samples], self.X[samples])[a]
            weights = zip(pool.weights, model.score_weights, strict=True)
            for member_weights, x, density in zip(weights, scaled, densities, strict=True):
                log_density = density(x[samples], out[samples], log_shares)
                for k, weight in enumerate(member_weights):
                    if weight > 0.0:  # 0 * -inf would be NaN: a member may have no rows of a class
                        sums[k] += weight * log_density
            return Estimates(*sums)

        return estimate

    @cached_property
    def _category_counts(self) -> CategoryCounts | None:
        """Counts of the categories, or None if no column has categories."""
        return CategoryCounts(self.model.data) if self.model.data.category_counts.any() else None


def explainer_of(
    model: LocalModel,
    X: Floats,
    computation: Computation,
    estimates: Estimates | None = None,
    examples: Examples | None = None,
) -> Explainer:
    """Prepare the densities of a model at samples; see `Explainer`."""
    if isinstance(model, PoolModel):
        return PoolExplainer(model, X, computation, estimates, examples)
    has_bandwidths = estimates is not None and estimates.bandwidths is not None
    return RodeoExplainer(model, X, computation, estimates if has_bandwidths else None, examples)


def factors_per_row(model: LocalModel) -> int:
    """Number of kernel factors to evaluate for one sample, summed over all densities of all classes."""
    explainer = explainer_of(model, np.empty((0, model.n_features)), Computation())
    return sum(sum(explainer.sizes(a)) for a in range(model.labels.size))
