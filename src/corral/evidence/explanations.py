"""Entry points of explanations, on arrays; results that depend only on the model are computed once."""

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

# The sets of variables are kept for further explanations if their array (n_sets, n_features) is not larger.
# Each class of a member with a covariance keeps an array of this size, too.
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
    """Explain the labels of samples X (n_samples, n_features), whose `estimates` have been computed.

    `label` and `rival` (n_samples,) are codes of classes. `n_listed` is the number of supporting training
    rows to list for each sample.

    Returns
    -------
    bandwidths : (n_samples, 2, n_features) in label and rival; None if the estimates have no bandwidths.
    evidence : evidence of the variables for the label against the rival.
    conditional : (n_samples, n_features) log ratio of the densities of each variable, given all other
        variables, in label and rival.
    support : training rows that support the labels.
    on_few : (n_samples,) whether the label rests on one row or group, which is unusual among training rows.
    novelty_parts : (n_samples, n_features) novelty of each variable in the class in which the sample is most
        typical.
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
    """Return `class_evidence` (n_classes, n_features), computed once for each model."""
    kept = _kept_evidence(model)
    if kept.class_evidence is None:
        kept.class_evidence = class_evidence(model, computation)
    return kept.class_evidence


@dataclass(eq=False)
class _ModelEvidence:
    """Results that depend only on the model; each is computed when it is first needed."""

    class_evidence: Floats | None = None  # (n_classes, n_features) mean evidence
    coalitions: Coalitions | None = None  # sets of variables of explanations, unless they are too large
    largest_shares: Distribution | None = None  # largest shares of the density at training rows
    # for each class (n_features,) medians of the contributions to the unscaled scores of its rows
    medians: dict[int, Floats] = field(default_factory=dict)


# Not attributes of the model, so that saved and copied models do not contain them.
_KEPT: WeakKeyDictionary[LocalModel, _ModelEvidence] = WeakKeyDictionary()


def _kept_evidence(model: LocalModel) -> _ModelEvidence:
    return _KEPT.setdefault(model, _ModelEvidence())
