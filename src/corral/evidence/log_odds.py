"""Evidence of variables: how they divide the log odds of label and rival among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.evidence.explainers import Explainer, explainer_of
from corral.model import Examples, LocalModel
from corral.parallel import Computation
from corral.posterior import log_odds
from corral.shapley import Coalitions

# Log densities of sets of variables that are held at once.
_MOST_VALUES = 8_000_000

# Rows of small classes that are looked at together.
_ROWS_TOGETHER = 200


class RowEvidence(NamedTuple):
    """What adds up to the log odds of labels over their rivals, and to a likeness."""

    base: Floats  # (n_samples,) log odds before anything is known of a sample
    evidence: Floats  # (n_samples, n_features) contributions of the variables; 0 for gaps
    error: Floats  # (n_samples, n_features) their standard errors; 0 where they are exact
    # (n_samples, n_features) contributions to the likeness in a class; 0 where that is infinite
    unscaled_score: Floats


def row_evidence(
    explainer: Explainer,
    label: Integers,
    rival: Integers,
    coalitions: Coalitions,
    nearest: Integers | None = None,
) -> RowEvidence:
    """Divide the log odds of label and rival, as the posterior has them, among the variables.

    v(S) is the logarithm of P(label | x_S) / P(rival | x_S), with all variables outside S integrated out
    and the bandwidths of the whole sample; see `shapley`. Where a class is ruled out whatever the sample is,
    log odds are infinite, and no variable has a part in them.

    Odds of samples that are training rows are not those predicted. `label` and `rival` (n_samples,) are
    numbers of classes, and so is `nearest`, whose likenesses are divided as well.
    """
    model, present = explainer.model, ~np.isnan(explainer.X)
    result = RowEvidence(np.empty(len(present)), *np.zeros((3, *present.shape)))
    for block in blocks_of_samples(len(present), len(coalitions.members) * model.labels.size):
        near = np.full(block.size, -1) if nearest is None else nearest[block]
        pair = label[block], rival[block]
        log_density, unscaled_score = _estimates_of_sets(explainer, coalitions, block, *pair, near)
        v = log_odds(log_density, model.prior, model.prior_mixing, *pair)
        if explainer.examples is None:
            v = _with_predicted(v, explainer, coalitions, block, *pair)
        finite: Bools = np.logical_and.reduce(np.isfinite(v), axis=1)
        result.base[block] = np.where(finite, v[:, 0], v[:, -1])
        mean, error = coalitions.contributions(np.where(finite[:, np.newaxis], v, 0.0))
        result.evidence[block] = np.where(present[block], mean, 0.0)
        result.error[block] = np.where(present[block], error, 0.0)
        if nearest is not None:
            result.unscaled_score[block] = score_parts(unscaled_score, coalitions)
    return result


def score_parts(unscaled_score: Floats, coalitions: Coalitions) -> Floats:
    """Contributions (n_samples, n_features) to likenesses (n_samples, n_sets); 0 where one is infinite."""
    finite = np.logical_and.reduce(np.isfinite(unscaled_score), axis=1, keepdims=True)
    return coalitions.contributions(np.where(finite, unscaled_score, 0.0))[0]


def _estimates_of_sets(
    explainer: Explainer,
    coalitions: Coalitions,
    samples: Integers,
    label: Integers,
    rival: Integers,
    nearest: Integers,
) -> tuple[Floats, Floats]:
    """Log densities (n_classes, n_samples, n_sets), and likenesses (n_samples, n_sets) in nearest classes."""
    n_classes, n_sets = explainer.model.labels.size, len(coalitions.members)
    log_density = np.full((n_classes, samples.size, n_sets), -np.inf)
    unscaled_score = np.empty((samples.size, n_sets))
    for y in range(n_classes):
        is_near = nearest == y
        # Without a lapse, odds do not depend on other classes.
        has_part = (label == y) | (rival == y) | is_near | (explainer.model.prior_mixing > 0.0)
        if has_part.any():
            estimates = explainer.of_sets(y, samples[has_part], coalitions)
            log_density[y, has_part] = estimates.log_density
            unscaled_score[is_near] = estimates.unscaled_score[is_near[has_part]]
    return log_density, unscaled_score


def _with_predicted(
    v: Floats,
    explainer: Explainer,
    coalitions: Coalitions,
    samples: Integers,
    label: Integers,
    rival: Integers,
) -> Floats:
    """Log odds (n_samples, n_sets) with those predicted for a set of all variables that have values."""
    log_proba = explainer.model.posterior(explainer.estimates.log_density[samples])
    rows = np.arange(samples.size)
    with np.errstate(invalid="ignore"):
        predicted = log_proba[rows, label] - log_proba[rows, rival]
    present = (~np.isnan(explainer.X[samples]) & explainer.used).astype(np.float64)
    is_complete = coalitions.sums(present) == present.sum(axis=1, keepdims=True)
    return np.where(is_complete, predicted[:, np.newaxis], v)


def explanation_coalitions(explainer: Explainer) -> Coalitions:
    """Sets of variables, as many as seem worth their time; they depend on the model alone."""
    sizes = [sum(explainer.sizes(a)) for a in range(explainer.model.labels.size)]
    n_kernels = sum(sizes) if explainer.model.prior_mixing > 0.0 else 2 * max(sizes)
    return Coalitions.of(np.flatnonzero(explainer.used), explainer.X.shape[1], n_kernels)


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

    Each row is compared with the most probable other class. It leaves its kernel, those of its copies and of
    its group, and what these add to the frequencies of levels, out of all classes; means and covariances of a
    pool's members keep them. So this is what the labels rest on, which variables that act only jointly are
    part of. It is 0 for a class without rows. The orders are few, since many rows are averaged over.
    """
    evidence = np.zeros((model.labels.size, model.data.X.shape[1]))
    for classes in _classes_together(model):
        examples = Examples.concatenate([model.examples(a) for a in classes])
        explainer = explainer_of(model, examples.X, computation, examples=examples)
        rival = strongest_rivals(model.joint(explainer.estimates.log_density), examples.codes)
        coalitions = Coalitions.of(np.flatnonzero(explainer.used), examples.X.shape[1], np.inf)
        of_rows = row_evidence(explainer, examples.codes, rival, coalitions).evidence
        for a in classes:
            rows = examples.codes == a
            evidence[a] = np.average(of_rows[rows], axis=0, weights=examples.weights[rows])
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
