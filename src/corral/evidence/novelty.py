r"""Which variables make a sample unlike a class.

The log density of a sample in a class is divided among the variables as log odds are in `log_odds`: by
Shapley's values :math:`\phi_j(x)` of the logarithm of the density of known variables. They add up to it, and
are compared with the values at rows of the class, each left out. In a pool, the unscaled score takes the
place of the log density (see `conformal.typicality`). With the spread b of unscaled scores and the term of
columns that scores have, the novelty of variable j in class y is

.. math::

    l_j(x) = \frac{\mathrm{median}_{i \in y}(\phi_j(x_i)) - \phi_j(x)}{b} + 4 \max(0, e_{yj}(x) - 3)^2,

and 0 for a missing value; the variable furthest from its median has the term for extreme values as well. The
sum over the variables is less the score but for a constant of the class (and of the variables that are
present): a variable with l_j makes the score lower by l_j than a typical row has it.
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
    """How much each variable (n_samples, n_features) makes samples unlike the class nearest to them.

    `parts` (n_samples, n_features) are contributions to the unscaled score in this class, and `medians` the
    medians of the same at its rows.
    """
    far = model.trust.columns.terms(X, judgement.nearest)
    spread = judgement.spread[:, np.newaxis]
    return np.where(np.isnan(X), 0.0, (medians - parts) / spread + far)


def median_parts(model: LocalModel, a: int, coalitions: Coalitions, computation: Computation) -> Floats:
    """Medians (n_features,) of contributions to unscaled scores at rows of a class, each left out."""
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
    """Medians of numeric variables in the rows that they make unlike the training rows, and in these.

    `unlike` has for each row the values that make it unlike, by variable.
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
