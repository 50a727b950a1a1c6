"""Why samples get their labels, on arrays: evidence per variable and the training rows behind a density."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from corral import kernels
from corral.array_types import Bools, Floats, Integers
from corral.data.tiles import TINY
from corral.data.weights import sums_by_unit
from corral.evidence.explainers import Explainer, explainer_of
from corral.evidence.shapley import Coalitions
from corral.model import LocalModel
from corral.parallel import Computation, on_threads
from corral.posterior import log_of_prior

# Samples that are explained at once.
_BLOCK = 256

# Terms of kernels that are held at once, and log densities of sets of variables.
_MOST_TERMS = 100_000
_MOST_VALUES = 8_000_000

# Rows of small classes that are looked at together.
_ROWS_TOGETHER = 200


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

    for look, codes in ((look_at_label, label), (look_at_rival, rival)):
        list(on_threads((partial(look, samples) for samples in _blocks_of_equals(codes)), computation.n_jobs))
    return conditional, support


def _largest_sums(shares: Floats, groups: Integers) -> Floats:
    """The largest sum (n_samples,) of shares (n_samples, n_rows) over the rows of a group."""
    if not groups.size:
        return np.zeros(len(shares))
    largest: Floats = sums_by_unit(shares, groups).max(axis=1)
    return largest


def _blocks_of_equals(codes: Integers) -> Iterator[Integers]:
    """Positions of equal numbers, some at a time: shares of all rows for all samples would be large."""
    for code in np.unique(codes):
        at = np.flatnonzero(codes == code)
        for first in range(0, at.size, _BLOCK):
            yield at[first : first + _BLOCK]


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
    v = log_odds(log_density, log_of_prior(model.prior), model.lapse, label, rival)
    if left_out is not None:
        return v
    whole = model.posterior(explainer.log_density[samples])
    at = np.arange(samples.size)
    with np.errstate(invalid="ignore"):
        predicted = whole[at, label] - whole[at, rival]
    known = (given & explainer.used).astype(np.float64)
    return np.where(coalitions.sums(known) == known.sum(axis=1, keepdims=True), predicted[:, np.newaxis], v)


def log_odds(
    log_density: Floats, log_prior: Floats, lapse: float, label: Integers, rival: Integers
) -> Floats:
    """Log odds (n_samples, n_sets) of label and rival from log densities (n_classes, n_samples, n_sets)."""
    if lapse > 0.0:
        odds = np.empty(log_density.shape[1:])
        kernels.log_odds(log_density, log_prior, lapse, label, rival, odds)
        return odds
    at = np.arange(label.size)
    with np.errstate(invalid="ignore"):  # NaN if both are 0
        of_prior = (log_prior[label] - log_prior[rival])[:, np.newaxis]
        without_lapse: Floats = of_prior + (log_density[label, at] - log_density[rival, at])
    return without_lapse


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
    blocks = (slice(first, first + step) for first in range(0, samples.size, step))
    list(on_threads((partial(estimate, block) for block in blocks), computation.n_jobs))
    return log_density


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


def strongest_rivals(log_proba: Floats, label: Integers) -> Integers:
    """Number the most probable class other than the label of each sample."""
    others = log_proba.copy()
    others[np.arange(len(label)), label] = -np.inf
    rival: Integers = others.argmax(axis=1)
    # Where every other class has density zero, any of them will do.
    rival[rival == label] = (label[rival == label] == 0).astype(np.int64)
    return rival


def class_evidence(model: LocalModel, computation: Computation) -> Floats:
    """Mean evidence (n_classes, n_features) of each variable for a class at its own rows.

    Each row is compared with the most probable other class. It leaves its kernel, those of its copies and of
    its group, and what these add to the frequencies of levels, out of all classes; means and covariances of a
    pool's members keep them. So this is what the labels rest on, which variables that act only jointly are
    part of. It is 0 for a class without rows. The orders are few, since many rows are averaged over.
    """
    evidence = np.zeros((model.labels.size, model.data.X.shape[1]))
    for some in _classes_together(model):
        examples = [model.examples(a) for a in some]
        X, weights, own, left_out = (np.concatenate(parts) for parts in zip(*examples, strict=True))
        label = np.repeat(some, [len(of_class.X) for of_class in examples])
        explainer = explainer_of(model, X, computation, own, label)
        rival = strongest_rivals(model.joint(explainer.log_density), label)
        coalitions = Coalitions.few(np.flatnonzero(explainer.used), X.shape[1])
        found = odds_evidence(model, explainer, X, label, rival, coalitions, computation, left_out)
        for a in some:
            at = label == a
            evidence[a] = np.average(found.evidence[at], axis=0, weights=weights[at])
    return evidence


def _classes_together(model: LocalModel) -> Iterator[list[int]]:
    """Classes whose examples are looked at together: many of few rows, since each look asks all classes."""
    together: list[int] = []
    n_rows = 0
    for a, of_class in enumerate(model.data.members()):
        if n_rows + of_class.size > _ROWS_TOGETHER and together:
            yield together
            together, n_rows = [], 0
        if of_class.size:
            together.append(a)
            n_rows += of_class.size
    if together:
        yield together
