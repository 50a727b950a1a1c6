"""A class whose kernels have the bandwidths that the Rodeo chooses: sets of variables and single ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp, softmax

from corral import kernels
from corral.array_types import Floats, Integers
from corral.evidence.shapley import Coalitions
from corral.pool.marginals import beginnings, product_log_densities
from corral.rodeo.density import ClassDensity
from corral.rodeo.factors import log_factors


@dataclass(frozen=True, eq=False)
class KernelClass:
    """A class whose kernels are products, with bandwidths of their own at each sample.

    Attributes
    ----------
    density : of the class.
    log_widths : (n_features,) of all variables: those that are not used are uniform.
    """

    density: ClassDensity
    log_widths: Floats

    @property
    def used(self) -> Integers:
        """The variables (n_used,) that are not uniform."""
        return self.density.variables

    @cached_property
    def rows(self) -> Floats:
        """Scaled rows (n_rows, n_used) on the variables used."""
        return self.density.rows.all()

    @cached_property
    def _log_weights(self) -> Floats:
        rows = self.density.rows
        return np.log(rows.weight(np.arange(rows.n_rows)))

    def marginals(self, x: Floats, h: Floats, coalitions: Coalitions, left_out: Integers) -> Floats:
        """Log densities (n_samples, n_sets) of scaled samples, with bandwidths (n_samples, n_features).

        `left_out` are rows whose groups are left out, or -1.
        """
        if not len(self.rows):
            return np.full((len(x), len(coalitions.members)), -np.inf)
        group = self.density.rows.group
        start = beginnings(self._log_weights, group(np.arange(len(self.rows))), group(left_out))
        uniform = np.where(np.isnan(x), 0.0, -self.log_widths)
        uniform[:, self.used] = 0.0
        x, h = x[:, self.used], h[:, self.used]
        T = -log_factors(self.density.rows, x, h, left_out)
        log_density = product_log_densities(coalitions.walk(self.used), start, T, np.isnan(x))
        return log_density + coalitions.sums(uniform)

    def conditionals(self, x: Floats, h: Floats) -> tuple[Floats, Floats]:
        """Log density (n_features,) of each variable given all others, and each row's share of the density.

        With the bandwidths held, p(x_j | others) is the kernel estimate with all factors divided by the one
        that leaves the factor of variable j out. A variable taken as uniform has the density 1 / width, given
        anything; 0 stands for missing values.
        """
        conditional = np.where(np.isnan(x), 0.0, -self.log_widths)
        if not len(self.rows):
            return conditional, np.zeros(0)
        terms, at_nearest = self._relative_terms(x[self.used], h[self.used])
        log_weights = self._log_weights
        # Sums over all other variables from both sides: a difference of large sums would lose the digits of
        # the small terms in it.
        others = _sums_before(terms) + _sums_before(terms[:, ::-1])[:, ::-1]
        exponents = log_weights - terms.sum(axis=1)
        ratio = logsumexp(exponents) - logsumexp(log_weights[:, np.newaxis] - others, axis=0)
        conditional[self.used] = np.where(np.isnan(x[self.used]), 0.0, ratio - at_nearest)
        return conditional, softmax(exponents)

    def _relative_terms(self, x: Floats, h: Floats) -> tuple[Floats, Floats]:
        """Exponents (n_rows, n_used) less those of the nearest row, and these (n_used,) with their norms."""
        if not self.density.rows.is_plain or np.isnan(x).any():
            T = -log_factors(self.density.rows, x[np.newaxis], h[np.newaxis], np.array([-1]))[0].T
            nearest = T[T.sum(axis=1).argmin()]
            return T - nearest, nearest
        # As products: far away, exponents are so large that their differences would be rounding errors.
        row = self.rows[(((x - self.rows) / h) ** 2).sum(axis=1).argmin()]
        terms = 0.5 * ((row - self.rows) / h) * (((x - row) + (x - self.rows)) / h)
        return terms, 0.5 * ((x - row) / h) ** 2 + np.log(h) + kernels.LOG_ROOT


def _sums_before(terms: Floats) -> Floats:
    """Sum of the terms to the left of each."""
    sums = np.zeros_like(terms)
    np.cumsum(terms[:, :-1], axis=1, out=sums[:, 1:])
    return sums
