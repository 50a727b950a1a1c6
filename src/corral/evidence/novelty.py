r"""Novelty of variables: which variables make a sample unlike a class.

The unscaled score of a sample in a class (`conformal.typicality`; the log density, if there is no pool) is
divided among the variables by Shapley values :math:`\phi_j(x)`, as `log_odds` divides log odds. The Shapley
values of a sample are compared with the Shapley values of the training rows of the class, each left out. With
the spread b of unscaled scores, the novelty of variable j in class y is

.. math::

    n_j(x) = \frac{\mathrm{median}_{i \in y}(\phi_j(x_i)) - \phi_j(x)}{b} + 4 \max(0, e_{yj}(x) - 3)^2,

and 0 if the value is missing. The second term is the penalty of `conformal.outlyingness` for a value far from
the class. The variable farthest from its median also has the penalty for this distance. The sum of
:math:`n_j` over the variables is a constant minus the score; the constant depends only on the class and on
which values are missing. So variable j lowers the score by :math:`n_j` compared with a typical row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corral.array_types import Floats
from corral.conformal.typicality import Judgement
from corral.data.weights import lower_median
from corral.evidence.explainers import explainer_of
from corral.evidence.log_odds import blocks_of_samples, score_parts
from corral.model import LocalModel
from corral.parallel import Computation
from corral.shapley import Coalitions


def novelty_parts(
    model: LocalModel, X: Floats, parts: Floats, medians: Floats, judgement: Judgement
) -> Floats:
    """Novelty (n_samples, n_features) of each variable in the class in which a sample is most typical.

    `parts` (n_samples, n_features) are the contributions of variables to the unscaled score in this class.
    `medians` (n_samples, n_features) are the medians of these contributions at the rows of this class.
    """
    far = model.trust.columns.terms(X, judgement.nearest)
    spread = judgement.spread[:, np.newaxis]
    return np.where(np.isnan(X), 0.0, (medians - parts) / spread + far)


def median_parts(model: LocalModel, a: int, coalitions: Coalitions, computation: Computation) -> Floats:
    """Medians (n_features,) of contributions to the unscaled score in class a at its rows, each left out."""
    examples = model.examples(a)
    explainer = explainer_of(model, examples.X, computation, examples=examples)
    parts = np.empty(examples.X.shape)
    for block in blocks_of_samples(len(parts), len(coalitions.members)):
        parts[block] = score_parts(explainer.evaluate_sets(a, block, coalitions).unscaled_score, coalitions)
    present = ~np.isnan(examples.X)
    return np.array(
        [lower_median(x[has], examples.weights[has]) for x, has in zip(parts.T, present.T, strict=True)]
    )


def medians_where_unlike(
    unlike: Sequence[Mapping[str, Any]], training: Mapping[str, Floats]
) -> dict[str, tuple[float, float]]:
    """For each numeric variable, its median in the rows that it makes novel and in the training rows.

    `unlike` has, for each novel row, the values of the variables that make it novel. `training` has the
    column of each variable in the training rows.
    """
    values: dict[str, list[Any]] = {}
    for row in unlike:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    return {
        name: (float(np.median(given)), float(np.nanmedian(training[name])))
        for name, given in values.items()
        if all(isinstance(value, int | float) for value in given)
    }
