"""Evidence of variables: how they divide the log odds of label and rival among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.evidence.explainers import Explainer, explainer_of
from corral.model import Examples, LocalModel
from corral.parallel import Computation
from corral.posterior import log_of_prior, mixing_factors
from corral.shapley import Coalitions

# Log densities of sets of variables that are held at once.
_MOST_VALUES = 8_000_000


class RowEvidence(NamedTuple):
    """What adds up to the log odds of labels over their rivals, and to an unscaled score."""

    base: Floats  # (n_samples,) log odds before anything is known of a sample
    evidence: Floats  # (n_samples, n_features) contributions of the variables; 0 for missing values
    error: Floats  # (n_samples, n_features) their standard errors; 0 where they are exact
    # (n_samples, n_features) contributions to the unscaled score in a class; 0 where that is infinite
    unscaled_score: Floats


def row_evidence(
    explainer: Explainer,
    label: Integers,
    rival: Integers,
    coalitions: Coalitions,
    nearest: Integers | None = None,
) -> RowEvidence:
    """Divide the log odds of label and rival, as the posterior has them, among the variables.

    v(S) is the logarithm of P(label | x_S) / P(rival | x_S) without prior mixing, with all variables outside
    S integrated out and the bandwidths of the whole sample; see `shapley`. So it depends on two classes
    alone. Prior mixing shrinks the contributions of all variables to a sample by the same factor. Where a
    class is ruled out whatever the sample is, log odds are infinite, and no variable has a part in them.

    `label` and `rival` (n_samples,) are numbers of classes, and so is `nearest`, whose scores are divided as
    well.
    """
    model, present = explainer.model, ~np.isnan(explainer.X)
    rows, log_density = np.arange(len(present)), explainer.estimates.log_density
    log_proba, joint = model.posterior(log_density), model.joint(log_density)
    with np.errstate(invalid="ignore"):
        predicted = log_proba[rows, label] - log_proba[rows, rival]
        unmixed = joint[rows, label] - joint[rows, rival]
    factor = mixing_factors(log_density, model.prior, model.prior_mixing, label, rival)
    result = RowEvidence(np.empty(len(present)), *np.zeros((3, *present.shape)))
    for block in blocks_of_samples(len(present), len(coalitions.members)):
        near = np.full(block.size, -1) if nearest is None else nearest[block]
        v, unscaled_score = _values_of_sets(explainer, coalitions, block, label[block], rival[block], near)
        if explainer.examples is None:
            # So that the sum is as predicted to the last digits.
            counted = (present[block] & explainer.used).astype(np.float64)
            is_complete = coalitions.sums(counted) == counted.sum(axis=1, keepdims=True)
            v = np.where(is_complete, unmixed[block, np.newaxis], v)
        finite: Bools = np.logical_and.reduce(np.isfinite(v), axis=1)
        result.base[block] = np.where(finite, v[:, 0], predicted[block])
        shrink = np.where(finite, factor[block], 0.0)[:, np.newaxis] * present[block]
        mean, error = coalitions.contributions(np.where(finite[:, np.newaxis], v, 0.0))
        result.evidence[block], result.error[block] = shrink * mean, shrink * error
        if nearest is not None:
            result.unscaled_score[block] = score_parts(unscaled_score, coalitions)
    return result


def score_parts(unscaled_score: Floats, coalitions: Coalitions) -> Floats:
    """Contributions (n_samples, n_features) to scores (n_samples, n_sets); 0 where one is infinite."""
    finite = np.logical_and.reduce(np.isfinite(unscaled_score), axis=1, keepdims=True)
    return coalitions.contributions(np.where(finite, unscaled_score, 0.0))[0]


def _values_of_sets(
    explainer: Explainer,
    coalitions: Coalitions,
    samples: Integers,
    label: Integers,
    rival: Integers,
    nearest: Integers,
) -> tuple[Floats, Floats]:
    """Log odds (n_samples, n_sets) of label and rival, and scores (n_samples, n_sets) in nearest classes."""
    log_prior, shape = log_of_prior(explainer.model.prior), (samples.size, len(coalitions.members))
    unscaled_score = np.empty(shape)
    with np.errstate(invalid="ignore"):
        log_odds = np.tile((log_prior[label] - log_prior[rival])[:, np.newaxis], shape[1])
        for y in np.union1d(np.union1d(label, rival), nearest[nearest >= 0]).tolist():
            is_label, is_rival, is_near = label == y, rival == y, nearest == y
            has_part = is_label | is_rival | is_near
            estimates = explainer.evaluate_sets(y, samples[has_part], coalitions)
            log_odds[is_label] += estimates.log_density[is_label[has_part]]
            log_odds[is_rival] -= estimates.log_density[is_rival[has_part]]
            unscaled_score[is_near] = estimates.unscaled_score[is_near[has_part]]
    return log_odds, unscaled_score


def explanation_coalitions(explainer: Explainer) -> Coalitions:
    """Sets of variables, as many as seem worth their time; they depend on the model alone."""
    n_kernels = 2 * max(sum(explainer.sizes(a)) for a in range(explainer.model.labels.size))
    return Coalitions.choose(np.flatnonzero(explainer.used), explainer.X.shape[1], n_kernels)


def blocks_of_samples(n_samples: int, n_values: int) -> Iterator[Integers]:
    """Positions of samples, some at a time, if each of them has so many values."""
    step = max(1, _MOST_VALUES // n_values)
    for first in range(0, n_samples, step):
        yield np.arange(first, min(first + step, n_samples))


def strongest_rivals(joint: Floats, label: Integers) -> Integers:
    """Number the most probable class other than the label of each sample."""
    others = joint.copy()
    others[np.arange(len(label)), label] = -np.inf
    rival: Integers = others.argmax(axis=1)
    # Where every other class has density zero, any of them will do.
    rival[rival == label] = (label[rival == label] == 0).astype(np.int64)
    return rival


def class_evidence(model: LocalModel, computation: Computation) -> Floats:
    """Mean evidence (n_classes, n_features) of each variable for a class at its own rows.

    Each row is compared with the most probable other class. It leaves its kernel, the kernels of its
    duplicates and of its group, and what these add to the frequencies of categories, out of all classes;
    means and covariances of a pool's members keep them. So this is what the labels rest on, which variables
    that act only jointly are part of. It is 0 for a class without rows. The orders are few, since many rows
    are averaged over.
    """
    evidence = np.zeros((model.labels.size, model.data.X.shape[1]))
    present = [a for a, rows in enumerate(model.data.members()) if rows.size]
    examples = Examples.concatenate([model.examples(a) for a in present])
    explainer = explainer_of(model, examples.X, computation, examples=examples)
    rival = strongest_rivals(model.joint(explainer.estimates.log_density), examples.codes)
    coalitions = Coalitions.choose(np.flatnonzero(explainer.used), examples.X.shape[1], np.inf)
    row_values = row_evidence(explainer, examples.codes, rival, coalitions).evidence
    for a in present:
        rows = examples.codes == a
        evidence[a] = np.average(row_values[rows], axis=0, weights=examples.weights[rows])
    return evidence
