r"""Which variables make a sample unlike a class.

The log density of a sample in a class is divided among the variables as log odds are in `log_odds`: by
Shapley's values :math:`\phi_j(x)` of the logarithm of the density of known variables. They add up to it, and
are compared with those at rows of the class, each left out. Of a pool it is the likeness (see
`conformal.typicality`). With the spread b of likenesses and the term of columns that scores have, the
unlikeness of variable j in class y is

.. math::

    l_j(x) = \frac{\mathrm{median}_{i \in y}(\phi_j(x_i)) - \phi_j(x)}{b} + 4 \max(0, e_{yj}(x) - 3)^2,

and 0 for a gap; the variable furthest from its median has the term for extreme values as well. Its sum over
the variables is less the score but for a constant of the class (and of the variables that are known), so that
a variable with l_j makes the score lower by l_j than a usual row has it.
"""

from __future__ import annotations

import numpy as np

from corral.array_types import Floats, Integers
from corral.conformal.typicality import Judgement
from corral.data.weights import lower_median
from corral.evidence.explainers import Explainer, explainer_of
from corral.evidence.log_odds import densities_of_sets, in_steps
from corral.evidence.shapley import Coalitions
from corral.model import LocalModel
from corral.parallel import Computation


def unlikeness(
    model: LocalModel,
    explainer: Explainer,
    X: Floats,
    judgement: Judgement,
    coalitions: Coalitions,
    computation: Computation,
) -> Floats:
    """How much each variable (n_samples, n_features) makes samples unlike the class nearest to them.

    Parameters
    ----------
    model, explainer : the model whose log densities are likenesses, and its look at the samples.
    X : (n_samples, n_features) samples.
    judgement : what is said of the samples.
    coalitions : sets of variables.
    computation : threads and progress.
    """
    nearest, given = judgement.nearest, ~np.isnan(X)
    parts = np.zeros(X.shape)
    for a in np.unique(nearest).tolist():
        at = np.flatnonzero(nearest == a)
        usual = _usual_parts(model, a, coalitions, computation)
        parts[at] = usual - _parts(explainer, a, at, np.full(at.size, -1), coalitions, computation)
    far = model.trust.columns.terms(X, nearest)
    return np.where(given, parts / judgement.spread[:, np.newaxis] + far, 0.0)


def _usual_parts(model: LocalModel, a: int, coalitions: Coalitions, computation: Computation) -> Floats:
    """Medians (n_features,) of the parts of log densities at rows of a class, each left out."""
    X, weights, own, left_out = model.examples(a)
    explainer = explainer_of(model, X, computation, own, np.full(own.size, a))
    parts = _parts(explainer, a, np.arange(own.size), left_out, coalitions, computation)
    known = ~np.isnan(X)
    return np.array([lower_median(x[has], weights[has]) for x, has in zip(parts.T, known.T, strict=True)])


def _parts(
    explainer: Explainer,
    a: int,
    samples: Integers,
    left_out: Integers,
    coalitions: Coalitions,
    computation: Computation,
) -> Floats:
    """Contributions (n_samples, n_features) to the log density in a class; 0 where that is infinite."""
    parts = np.empty((samples.size, coalitions.members.shape[1]))
    for some in in_steps(samples.size, len(coalitions.members)):
        v = densities_of_sets(explainer, a, samples[some], left_out[some], coalitions, computation)
        usual = np.logical_and.reduce(np.isfinite(v), axis=1, keepdims=True)
        parts[some] = coalitions.contributions(np.where(usual, v, 0.0))[0]
    return parts
