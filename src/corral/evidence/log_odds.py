"""Evidence of variables: Shapley values that divide the log odds of the label against its rival.

The rival is the class with which the label is compared, usually the most probable other class. Sets of
variables whose densities are evaluated are called coalitions, as in `corral.shapley`.
"""

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
    """Contributions of variables to the log odds of labels against rivals, and to unscaled scores.

    `base` plus the sum of `evidence` over the variables is the log odds.
    """

    base: Floats  # (n_samples,) log odds without any variable: the log odds of the priors
    evidence: Floats  # (n_samples, n_features) contributions of the variables; 0 for missing values
    error: Floats  # (n_samples, n_features) standard errors of the evidence; 0 if it is exact
    # (n_samples, n_features) contributions to the unscaled score in a class; 0 if this score is infinite
    unscaled_score: Floats


def row_evidence(
    explainer: Explainer,
    label: Integers,
    rival: Integers,
    coalitions: Coalitions,
    nearest: Integers | None = None,
) -> RowEvidence:
    """Divide the log odds of label and rival in the posterior among the variables.

    The value v(S) of a set S of variables is log(P(label | x_S) / P(rival | x_S)) without prior mixing. The
    variables outside S are integrated out; the bandwidths are the bandwidths of the sample with all its
    variables (see `corral.shapley`). So v(S) depends on two classes only. Prior mixing multiplies the
    contributions of all variables to a sample by one factor. If the log odds are infinite for some S, because
    a class is ruled out, the evidence of all variables is 0 and the base is the predicted log odds.

    `label` and `rival` (n_samples,) are codes of classes. If `nearest` (n_samples,) is given, the unscaled
    score in this class is divided among the variables, too.
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
            # The predicted log odds replace the value of all variables, so that contributions sum to them.
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
    """Divide scores among the variables: contributions (n_samples, n_features).

    `unscaled_score` (n_samples, n_sets) has the score of each set of variables. If one is infinite, all
    contributions to the sample are 0.
    """
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
    """Evaluate the log odds of label and rival and the unscaled scores in the classes `nearest`.

    Both results are (n_samples, n_sets). `samples` (n_samples,) are positions in the explainer's samples;
    `nearest` is -1 for samples without such a class.
    """
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
    """Choose the sets of variables of explanations; a larger model gets fewer sets, to limit the time."""
    n_kernels = 2 * max(sum(explainer.sizes(a)) for a in range(explainer.model.labels.size))
    return Coalitions.choose(np.flatnonzero(explainer.used), explainer.X.shape[1], n_kernels)


def blocks_of_samples(n_samples: int, n_values: int) -> Iterator[Integers]:
    """Yield positions of samples in blocks that fit in memory if each sample has `n_values` values."""
    step = max(1, _MOST_VALUES // n_values)
    for first in range(0, n_samples, step):
        yield np.arange(first, min(first + step, n_samples))


def strongest_rivals(joint: Floats, label: Integers) -> Integers:
    """Code (n_samples,) of the most probable class other than the label of each sample.

    `joint` (n_samples, n_classes) are logarithms of prior times density.
    """
    others = joint.copy()
    others[np.arange(len(label)), label] = -np.inf
    rival: Integers = others.argmax(axis=1)
    # If every other class has the density 0, the first other class is the rival.
    rival[rival == label] = (label[rival == label] == 0).astype(np.int64)
    return rival


def class_evidence(model: LocalModel, computation: Computation) -> Floats:
    """Mean evidence (n_classes, n_features) of each variable for a class, over rows of the class.

    The rows are a subsample if the class has many. The rival of each row is the most probable other class.
    The kernels of the row, of its duplicates and of its group are left out of all classes, and so are these
    rows in the frequencies of categories; means and covariances in the members of a pool are not computed
    again. A variable that distinguishes classes only jointly with other variables has evidence as well. The
    evidence is 0 for a class without rows. Few orders of the variables are sampled, since the average is over
    many rows.
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
