"""Why samples get their labels, on arrays: evidence per variable and the training rows behind a density."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.special import logsumexp, softmax

from corral._core import kernels
from corral._core.density import ClassDensity, DensityPlan, local_density
from corral._core.gaps import patterns
from corral._core.general import NO_UNIT, log_factors
from corral._core.levels import LevelCounts
from corral._core.marginals import KernelClass, member_marginals
from corral._core.members import Mixture
from corral._core.mixed import MixedMixture
from corral._core.model import FittedModel, LocalModel
from corral._core.pool import PoolModel
from corral._core.rows import TINY, GeneralRows
from corral._core.settings import Bools, Computation, Floats, Integers
from corral._core.shapley import Coalitions

# Samples that are explained at once.
_BLOCK = 256

# Terms of kernels that are held at once, and log densities of sets of variables.
_MOST_TERMS = 100_000
_MOST_VALUES = 8_000_000

# Positions of samples, and for each of them that of a training row whose unit is left out of all classes, or
# -1, to log densities (n_samples, n_sets).
Marginals = Callable[[Integers, Integers], Floats]


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

    @property
    @abstractmethod
    def used(self) -> Bools:
        """Which variables (n_features,) take part in the density of some class."""

    @abstractmethod
    def sizes(self) -> list[list[int]]:
        """How many factors of kernels an estimate takes, by class, of each of its densities."""

    @abstractmethod
    def marginals(self, a: int, coalitions: Coalitions) -> Marginals:
        """Prepare the densities of sets of variables in one class."""

    @abstractmethod
    def conditional(self, samples: Integers, a: int) -> tuple[Floats, Floats]:
        """Look at some samples in one class.

        Parameters
        ----------
        samples : (n_some,) their positions.
        a : number of the class.

        Returns
        -------
        conditional : (n_some, n_features) log density of each variable given all others.
        shares : (n_some, n_rows) the rows' shares of the density.
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
        self._data = model.data
        self._units = model.bandwidths.widths, model.scale.mixing
        self._densities = model.densities
        self._untiled: dict[int, UntiledClass] = {}
        self._used = np.zeros(X.shape[1], dtype=bool)
        for density in model.densities:
            self._used[density.plan.variables] = True
        density = model.densities[of_class]
        if own is not None and density.plan.fixed is None:
            used = self._scaled[:, density.plan.variables]
            left, steps = local_density(density.rows, density.grid, used, model.settings.rodeo.update, own)
            _, h[:, of_class] = density.completed(left, density.grid[steps], X.shape[1])
        self.bandwidths = h

    def conditional(self, samples: Integers, a: int) -> tuple[Floats, Floats]:
        """Look at some samples in one class."""
        assert self.bandwidths is not None
        rows = self._rows(a)
        conditional = np.empty((samples.size, self._scaled.shape[1]))
        shares = np.zeros((samples.size, len(rows.X)))
        of_class = self._densities[a].rows
        for k, i in enumerate(samples.tolist()):
            x, h = self._scaled[i], self.bandwidths[i, a]
            if isinstance(of_class, GeneralRows) or np.isnan(x).any():
                general = of_class if isinstance(of_class, GeneralRows) else GeneralRows.of(of_class)
                conditional[k], shares[k] = general_conditionals(x, h, general, rows, self._units[0])
            else:
                conditional[k], shares[k] = conditional_log_densities(x, h, rows, *self._units)
        return conditional, shares

    def _rows(self, a: int) -> UntiledClass:
        if a not in self._untiled:
            self._untiled[a] = UntiledClass.of(self._densities[a])
        return self._untiled[a]

    @property
    def used(self) -> Bools:
        """Which variables (n_features,) take part in the density of some class."""
        return self._used

    def sizes(self) -> list[list[int]]:
        """How many factors of kernels an estimate takes, by class."""
        return [[density.rows.size] for density in self._densities]

    def marginals(self, a: int, coalitions: Coalitions) -> Marginals:
        """Prepare the densities of sets of variables in one class."""
        untiled, of_class = self._rows(a), self._densities[a].rows
        general = of_class if isinstance(of_class, GeneralRows) else None
        kernel_class = KernelClass(
            untiled.X,
            untiled.log_weights,
            general,
            untiled.plan.variables,
            untiled.plan.separate,
            np.log(self._units[0]),
            self._units[1],
        )
        coalitions.walk(untiled.plan.variables)  # once, before several threads ask for it
        at = self._data.members()[a]

        def log_densities(samples: Integers, left_out: Integers) -> Floats:
            assert self.bandwidths is not None
            x, h = self._scaled[samples], self.bandwidths[samples, a]
            return kernel_class.marginals(x, h, coalitions, self._data.own_rows_in(at, left_out))

        return log_densities


class PoolExplainer(Explainer):
    """Looks at samples in the densities of a pool: evidence and shares are weighted sums over its members.

    Parameters
    ----------
    model : PoolModel
    X : (n_samples, n_features) samples.
    computation : threads and progress.
    """

    def __init__(self, model: PoolModel, X: Floats, computation: Computation) -> None:
        self.log_density = model.log_densities(X, computation)
        self.bandwidths = None
        self._scaled = [member.scale.transform(X) for member in model.pool.members]
        self._X = X
        self._pool = model.pool
        self._data = model.data

    def conditional(self, samples: Integers, a: int) -> tuple[Floats, Floats]:
        """Look at some samples in one class."""
        at = self._data.members()[a]
        given = self._data.weights_of(at)
        weights = np.ones(at.size) if given is None else given
        conditional = np.zeros((samples.size, self._scaled[0].shape[1]))
        shares = np.zeros((samples.size, at.size))
        for member, weight, scaled in zip(self._pool.members, self._pool.weights, self._scaled, strict=True):
            found, share = _conditionals(member.classes[a], scaled[samples], weights)
            conditional += weight * found
            shares += weight * share
        return conditional, shares / self._pool.weights.sum()

    @property
    def used(self) -> Bools:
        """Which variables (n_features,) take part in the density of some class."""
        used = np.zeros(self._scaled[0].shape[1], dtype=bool)
        for member in self._pool.members:
            for mixture in member.classes:
                used[mixture.used] = True
        return used

    def sizes(self) -> list[list[int]]:
        """How many factors of kernels an estimate takes, by class, of each of its densities."""
        of_members = [[mixture.size for mixture in member.classes] for member in self._pool.members]
        return [list(sizes) for sizes in zip(*of_members, strict=True)]

    def marginals(self, a: int, coalitions: Coalitions) -> Marginals:
        """Prepare the densities of sets of variables in one class."""
        at = self._data.members()[a]
        given = self._data.weights_of(at)
        weights = np.ones(at.size) if given is None else given
        units = self._data.units
        of_members = [
            member_marginals(member.classes[a], weights, units[at], coalitions)
            for member in self._pool.members
        ]
        level_counts = self._level_counts

        def log_densities(samples: Integers, left_out: Integers) -> Floats:
            found = np.zeros((samples.size, len(coalitions.members)))
            out, log_shares = np.where(left_out >= 0, units[left_out], NO_UNIT), None
            if level_counts is not None and (left_out >= 0).any():
                log_shares = level_counts.log_shares_without(out, self._X[samples])[a]
            for weight, scaled, density in zip(self._pool.weights, self._scaled, of_members, strict=True):
                found += weight * density(scaled[samples], out, log_shares)
            return found

        return log_densities

    @cached_property
    def _level_counts(self) -> LevelCounts | None:
        """How often levels occur, or None if there are none."""
        return LevelCounts(self._data) if self._data.level_counts.any() else None


def _conditionals(mixture: Mixture | MixedMixture, x: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Log density of each variable given all others, 0 for gaps, and each row's share of the density."""
    if isinstance(mixture, MixedMixture):
        return _mixed_conditionals(mixture, x)
    conditional, shares = np.zeros(x.shape), np.empty((len(x), weights.size))
    for at, missing in patterns(np.isnan(x)):
        kept = np.delete(np.arange(x.shape[1]), missing)
        known = np.nan_to_num(x[at])  # the marginal does not look at what is missing
        conditional[at], shares[at] = mixture_conditionals(mixture.marginal(kept), known, weights)
    return conditional, shares


def _mixed_conditionals(mixture: MixedMixture, x: Floats) -> tuple[Floats, Floats]:
    """The same by leaving each variable out in turn, which is exact whatever is missing."""
    whole = mixture.log_density(x)
    conditional = np.zeros(x.shape)
    has_rows = whole > -np.inf  # a class may have none
    for j in np.flatnonzero(~np.isnan(x).all(axis=0)).tolist():
        without = x.copy()
        without[:, j] = np.nan
        known = ~np.isnan(x[:, j]) & has_rows
        conditional[known, j] = whole[known] - mixture.log_density(without[known])
    return conditional, mixture.shares(x)


def general_conditionals(
    x: Floats, h: Floats, general: GeneralRows, rows: UntiledClass, widths: Floats
) -> tuple[Floats, Floats]:
    """As `conditional_log_densities`, where values are missing or levels; 0 for the gaps of the sample."""
    conditional = np.where(np.isnan(x), 0.0, -np.log(widths))
    used, log_w = rows.plan.variables, rows.log_weights
    if not general.n_rows:  # nothing is known of the class
        return conditional, np.zeros(0)
    factors = log_factors(general, x[np.newaxis, used], h[np.newaxis, used], np.array([-1]))[0].T
    if rows.plan.separate:
        exponents = log_w[:, np.newaxis] + factors
        conditional[used] = logsumexp(exponents, axis=0) - logsumexp(log_w)
        shares = softmax(exponents, axis=0).mean(axis=1)
    else:
        whole = log_w + factors.sum(axis=1)
        conditional[used] = logsumexp(whole) - logsumexp(whole[:, np.newaxis] - factors, axis=0)
        shares = softmax(whole)
    conditional[np.isnan(x)] = 0.0
    return conditional, shares


def mixture_conditionals(mixture: Mixture, x: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Log density of each variable given all others, and each row's share of the density.

    Leaving variable j out takes (P d)_j^2 / P_jj from the quadratic form of d, with P = B B^T. A density
    with a single centre rests on all rows alike. A variable that takes no part has the density 1.

    Parameters
    ----------
    mixture : the density of a class.
    x : (n_samples, n_features) scaled samples.
    weights : (n_rows,) of the rows of the class.

    Returns
    -------
    conditional : (n_samples, n_features)
    shares : (n_samples, n_rows)
    """
    conditional = np.zeros(x.shape)
    shares = np.tile(weights, (len(x), 1))
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), TINY)
    n = len(mixture.centres)
    single = n < weights.size
    precision = np.vecdot(mixture.factor, mixture.factor)
    used = precision > 0.0
    if not n or not used.any():
        return conditional, shares
    origin = mixture.centres.mean(axis=0)
    # By rows, so that a sample's bits do not depend on the others.
    c, z = (
        kernels.product_by_rows(of - origin, mixture.factor)
        for of in (mixture.centres, x[:, mixture.variables])
    )
    pull_c, pull_z = (kernels.product_by_rows(of, mixture.factor[used].T) for of in (c, z))
    relative, ratio = np.empty((len(x), n)), np.empty(pull_z.shape)
    nearest = np.empty(len(x), dtype=np.int64)
    kernels.conditional_sums(
        z,
        np.ascontiguousarray(c.T),
        np.zeros(n) if single else np.log(weights),
        pull_z,
        np.ascontiguousarray(pull_c.T),
        0.5 / precision[used],
        relative,
        np.empty((2, n)),
        nearest,
        ratio,
    )
    apart = 0.5 * (pull_z - pull_c[nearest]) ** 2 / precision[used]
    log_norm = 0.5 * np.log(precision[used] / (2.0 * math.pi))
    conditional[:, mixture.variables[used]] = ratio - apart + log_norm
    return conditional, shares if single else softmax(-relative, axis=1)


class Support(NamedTuple):
    """The training rows that the densities of labels rest on.

    Attributes
    ----------
    rows : (n_samples, n_listed) the label's rows with the largest shares, -1 where it has fewer.
    shares : (n_samples, n_listed) their shares.
    effective : (n_samples,) how many rows of equal shares would carry the density: 1 over the sum of squares.
    largest_group : (n_samples,) the largest share that the rows of one group have together.
    """

    rows: Integers
    shares: Floats
    effective: Floats
    largest_group: Floats


def explain_samples(
    explainer: Explainer,
    label: Integers,
    rival: Integers,
    groups: Sequence[Integers],
    n_listed: int,
    computation: Computation,
) -> tuple[Floats, Support]:
    """Compare samples in the densities of their labels and rivals, all other variables being known.

    Parameters
    ----------
    explainer : the look at the samples.
    label, rival : (n_samples,) numbers of classes.
    groups : for each class (n_rows,) numbers of groups.
    n_listed : how many of the rows that support the label are wanted.
    computation : threads and progress.

    Returns
    -------
    conditional : (n_samples, n_features) log p(x_j | others) in the label less that in the rival.
    support : training rows behind the labels.
    """
    n = label.size
    conditional = np.empty((n, explainer.used.size))
    support = Support(np.full((n, n_listed), -1), np.zeros((n, n_listed)), np.zeros(n), np.zeros(n))

    def look_at_label(samples: Integers) -> None:
        a = int(label[samples[0]])
        conditional[samples], shares = explainer.conditional(samples, a)
        strongest = np.argsort(-shares, axis=1, kind="stable")[:, :n_listed]
        support.rows[samples, : strongest.shape[1]] = strongest
        support.shares[samples, : strongest.shape[1]] = np.take_along_axis(shares, strongest, axis=1)
        squares = np.vecdot(shares, shares)
        support.effective[samples] = np.where(squares > 0.0, 1.0 / np.maximum(squares, TINY), 0.0)
        support.largest_group[samples] = _largest_sums(shares, groups[a])

    def look_at_rival(samples: Integers) -> None:
        conditional[samples] -= explainer.conditional(samples, int(rival[samples[0]]))[0]

    parallel = Parallel(n_jobs=computation.n_jobs, require="sharedmem")
    parallel(delayed(look_at_label)(samples) for samples in _blocks_of_equals(label))
    parallel(delayed(look_at_rival)(samples) for samples in _blocks_of_equals(rival))
    return conditional, support


def _largest_sums(shares: Floats, groups: Integers) -> Floats:
    """The largest sum (n_samples,) of shares (n_samples, n_rows) over the rows of a group."""
    if not groups.size:
        return np.zeros(len(shares))
    order = np.argsort(groups, kind="stable")
    first = np.flatnonzero(np.diff(groups[order], prepend=groups[order[0]] - 1))
    largest: Floats = np.add.reduceat(shares[:, order], first, axis=1).max(axis=1)
    return largest


class OddsEvidence(NamedTuple):
    """What adds up to the log odds of labels over their rivals.

    Attributes
    ----------
    base : (n_samples,) log odds before anything is known of a sample.
    evidence : (n_samples, n_features) contributions of the variables; 0 for gaps.
    error : (n_samples, n_features) their standard errors; 0 where they are exact.
    """

    base: Floats
    evidence: Floats
    error: Floats


def odds_evidence(
    model: LocalModel,
    explainer: Explainer,
    X: Floats,
    label: Integers,
    rival: Integers,
    coalitions: Coalitions,
    computation: Computation,
    left_out: Integers | None = None,
) -> OddsEvidence:
    """Divide the log odds of label and rival, as the posterior has them, among the variables.

    v(S) is the logarithm of P(label | x_S) / P(rival | x_S), with all variables outside S integrated out
    and the bandwidths of the whole sample; see `shapley`. Where a class is ruled out whatever the sample is,
    log odds are infinite, and no variable has a part in them.

    Parameters
    ----------
    model, explainer : what has been learnt, and its look at the samples.
    X : (n_samples, n_features) samples.
    label, rival : (n_samples,) numbers of classes.
    coalitions : sets of variables.
    computation : threads and progress.
    left_out : (n_samples,) training rows whose units are left out; then odds are not those predicted.
    """
    given = ~np.isnan(X)
    found = OddsEvidence(np.empty(len(X)), np.zeros(X.shape), np.zeros(X.shape))
    for some in in_steps(len(X), len(coalitions.members) * model.labels.size):
        v = _log_odds_of_sets(
            model, explainer, coalitions, given[some], some, label[some], rival[some], left_out, computation
        )
        usual: Bools = np.logical_and.reduce(np.isfinite(v), axis=1)
        found.base[some] = np.where(usual, v[:, 0], v[:, -1])
        mean, error = coalitions.contributions(np.where(usual[:, np.newaxis], v, 0.0))
        found.evidence[some] = np.where(given[some], mean, 0.0)
        found.error[some] = np.where(given[some], error, 0.0)
    return found


def usual_coalitions(model: LocalModel, explainer: Explainer, n_features: int) -> Coalitions:
    """Sets of variables, as many as seem worth their time."""
    sizes = [sum(of_class) for of_class in explainer.sizes()]
    n_kernels = sum(sizes) if model.lapse > 0.0 else 2 * max(sizes)
    return Coalitions.of(np.flatnonzero(explainer.used), n_features, n_kernels)


def in_steps(n_samples: int, n_values: int) -> Iterator[Integers]:
    """Positions of samples, some at a time, if each of them has so many values."""
    step = max(1, _MOST_VALUES // n_values)
    for first in range(0, n_samples, step):
        yield np.arange(first, min(first + step, n_samples))


def densities_of_sets(
    explainer: Explainer,
    y: int,
    samples: Integers,
    left_out: Integers,
    coalitions: Coalitions,
    computation: Computation,
) -> Floats:
    """Log densities (n_some, n_sets) of some samples in a class, for each of the sets of variables.

    `left_out` (n_some,) are training rows whose units are left out, or -1.
    """
    log_density = np.empty((samples.size, len(coalitions.members)))
    marginals = explainer.marginals(y, coalitions)

    def estimate(block: slice) -> None:
        log_density[block] = marginals(samples[block], left_out[block])

    step = int(np.clip(_MOST_TERMS // max(explainer.sizes()[y]), 1, _BLOCK))
    parallel = Parallel(n_jobs=computation.n_jobs, require="sharedmem")
    parallel(delayed(estimate)(slice(first, first + step)) for first in range(0, samples.size, step))
    return log_density


def _log_odds_of_sets(
    model: LocalModel,
    explainer: Explainer,
    coalitions: Coalitions,
    given: Bools,
    samples: Integers,
    label: Integers,
    rival: Integers,
    left_out: Integers | None,
    computation: Computation,
) -> Floats:
    """Log odds (n_samples, n_sets) of label and rival; predicted ones for a set with all that is given."""
    log_density = np.full((model.labels.size, samples.size, len(coalitions.members)), -np.inf)
    out = np.full(samples.size, -1) if left_out is None else left_out[samples]
    for y in range(model.labels.size):
        # Without a lapse, odds do not depend on other classes.
        asked = np.arange(samples.size)
        if model.lapse == 0.0:
            asked = np.flatnonzero((label == y) | (rival == y))
        if asked.size:
            log_density[y, asked] = densities_of_sets(
                explainer, y, samples[asked], out[asked], coalitions, computation
            )
    v = np.empty(log_density.shape[1:])
    with np.errstate(divide="ignore"):
        log_prior = np.log(model.prior)
    kernels.log_odds(log_density, log_prior, 1.0 / model.temperature, model.lapse, label, rival, v)
    if left_out is not None:
        return v
    whole = model.posterior(explainer.log_density[samples])
    at = np.arange(samples.size)
    with np.errstate(invalid="ignore"):
        predicted = whole[at, label] - whole[at, rival]
    known = (given & explainer.used).astype(np.float64)
    return np.where(coalitions.sums(known) == known.sum(axis=1, keepdims=True), predicted[:, np.newaxis], v)


def _blocks_of_equals(codes: Integers) -> Iterator[Integers]:
    """Positions of equal numbers, some at a time: shares of all rows for all samples would be large."""
    for code in np.unique(codes):
        at = np.flatnonzero(codes == code)
        for first in range(0, at.size, _BLOCK):
            yield at[first : first + _BLOCK]


def class_evidence(model: LocalModel, computation: Computation) -> Floats:
    """Mean evidence (n_classes, n_features) of each variable for a class at its own rows.

    Each row is compared with the most probable other class. It leaves its kernel, those of its copies and of
    its group, and what these add to the frequencies of levels, out of all classes; means and covariances of a
    pool's members keep them. So this is what the labels rest on, which variables that act only jointly are
    part of. It is 0 for a class without rows. The orders are few, since many rows are averaged over.
    """
    evidence = np.zeros(model.relevant.shape)
    for a, of_class in enumerate(model.data.members()):
        if not of_class.size:
            continue
        X, weights, own, left_out = model.examples(a)
        explainer = explainer_of(model, X, computation, own, a)
        label = np.full(own.size, a)
        rival = strongest_rivals(model.joint(explainer.log_density), label)
        coalitions = Coalitions.few(np.flatnonzero(explainer.used), X.shape[1])
        found = odds_evidence(model, explainer, X, label, rival, coalitions, computation, left_out)
        evidence[a] = np.average(found.evidence, axis=0, weights=weights)
    return evidence


def explainer_of(
    model: LocalModel,
    X: Floats,
    computation: Computation,
    own: Integers | None = None,
    of_class: int = -1,
) -> Explainer:
    """Look at samples in the densities of a model; see `RodeoExplainer`."""
    if isinstance(model, PoolModel):
        return PoolExplainer(model, X, computation)
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
