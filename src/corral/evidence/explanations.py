"""Why samples get their labels, on arrays, and what depends on the model alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.conformal.typicality import Distribution, Estimates, Judgement
from corral.evidence.explainers import explainer_of
from corral.evidence.log_odds import RowEvidence, class_evidence, explanation_coalitions, row_evidence
from corral.evidence.novelty import median_parts, novelty_parts
from corral.evidence.support import Support, conditionals_and_support, largest_shares, rests_on_few
from corral.model import LocalModel
from corral.parallel import Computation
from corral.shapley import Coalitions

# Sets of variables, times the variables, that are kept for further explanations. Each class of a member that
# has a covariance keeps as many numbers.
_MOST_KEPT = 200_000


def explain_rows(
    model: LocalModel,
    X: Floats,
    estimates: Estimates,
    judgement: Judgement,
    *,
    label: Integers,
    rival: Integers,
    n_listed: int,
    computation: Computation,
) -> tuple[Floats | None, RowEvidence, Floats, Support, Bools, Floats]:
    """Explain samples (n_samples, n_features) whose densities have been evaluated.

    `label` and `rival` (n_samples,) are numbers of classes; `n_listed` of the supporting rows are listed.

    Returns
    -------
    bandwidths : (n_samples, 2, n_features) in label and rival, or None where they have no meaning.
    evidence : of the variables, for the label and against the rival.
    conditional : (n_samples, n_features) the same for each variable when all others are known.
    support : training rows behind the labels.
    on_few : (n_samples,) whether labels rest on one row or group, which is unusual for the table.
    novelty_parts : (n_samples, n_features) what makes samples unlike the class nearest to them.
    """
    explainer, kept = explainer_of(model, X, computation, estimates), _kept_evidence(model)
    coalitions = kept.coalitions or explanation_coalitions(explainer)
    if coalitions.members.size <= _MOST_KEPT:
        kept.coalitions = coalitions
    nearest = judgement.nearest
    evidence = row_evidence(explainer, label, rival, coalitions, nearest)
    medians = np.zeros(X.shape)
    for a in np.unique(nearest).tolist():
        if a not in kept.medians:
            kept.medians[a] = median_parts(model, a, coalitions, computation)
        medians[nearest == a] = kept.medians[a]
    importance = np.abs(evidence.evidence)
    conditional, support, largest_of_others = conditionals_and_support(
        explainer, label, rival, importance, n_listed
    )
    if kept.largest_shares is None:
        kept.largest_shares = largest_shares(model, computation)
    h, pair = explainer.estimates.bandwidths, np.stack([label, rival], axis=1)[:, :, np.newaxis]
    bandwidths = None if h is None else np.take_along_axis(h, pair, axis=1)
    unlike = novelty_parts(model, X, evidence.unscaled_score, medians, judgement)
    on_few = rests_on_few(support, largest_of_others, kept.largest_shares)
    return bandwidths, evidence, conditional, support, on_few, unlike


def evidence_of_classes(model: LocalModel, computation: Computation) -> Floats:
    """Mean evidence (n_classes, n_features) as `class_evidence` has it, computed once for a model."""
    kept = _kept_evidence(model)
    if kept.class_evidence is None:
        kept.class_evidence = class_evidence(model, computation)
    return kept.class_evidence


@dataclass(eq=False)
class _ModelEvidence:
    """What depends on a model alone, computed when it is first needed."""

    class_evidence: Floats | None = None  # (n_classes, n_features)
    coalitions: Coalitions | None = None  # sets of variables of explanations, if they are not too large
    largest_shares: Distribution | None = None  # of single rows or groups at training rows
    # by class (n_features,) medians of contributions to the unscaled scores of its rows
    medians: dict[int, Floats] = field(default_factory=dict)


# Forgotten together with the model, and no part of its files and duplicates.
_KEPT: WeakKeyDictionary[LocalModel, _ModelEvidence] = WeakKeyDictionary()


def _kept_evidence(model: LocalModel) -> _ModelEvidence:
    return _KEPT.setdefault(model, _ModelEvidence())
