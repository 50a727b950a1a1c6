"""Priors of classes: the product of the parameters `priors` and `class_weight` of classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corral.array_types import Floats
from corral.estimators.decisions import check_class_names
from corral.estimators.validation import check_choice

# The types of the parameters `priors` and `class_weight`.
Priors = Literal["empirical", "uniform"] | Mapping[Any, float] | ArrayLike
ClassWeight = Literal["balanced"] | Mapping[Any, float] | None


def class_priors(estimator: Any, classes: NDArray[Any], counts: Floats) -> Floats:
    """Compute priors (n_classes,) times class weights, divided by their sum.

    `counts` (n_classes,) are the numbers of training rows, or the sums of their weights.
    """
    prior = _check_priors(estimator.priors, classes, counts)
    if estimator.class_weight is None:
        return prior
    weighted = prior * _check_class_weight(estimator.class_weight, classes, prior)
    if not weighted.sum() > 0.0:
        raise ValueError("class_weight must not be zero for every class that has a prior above 0.")
    shares: Floats = weighted / weighted.sum()
    return shares


def are_empirical(estimator: Any) -> bool:
    """Test whether the priors are the class frequencies of the training rows."""
    return (
        isinstance(estimator.priors, str)
        and estimator.priors == "empirical"
        and estimator.class_weight is None
    )


def _check_priors(priors: Any, classes: NDArray[Any], counts: Floats) -> Floats:
    """Check the parameter `priors`; return the priors (n_classes,)."""
    if isinstance(priors, str):
        check_choice("priors", priors, ("uniform", "empirical"))
        return np.full(counts.size, 1.0 / counts.size) if priors == "uniform" else counts / counts.sum()
    given = priors
    if isinstance(priors, Mapping):
        check_class_names("priors", list(priors), classes.tolist())
        given = [priors[label] for label in classes.tolist()]
    try:
        shares: Floats = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"priors must be 'uniform', 'empirical', numbers or a dict of numbers, got {priors!r}."
        ) from None
    if shares.shape != counts.shape:
        raise ValueError(f"priors must hold a number for each of the {counts.size} classes, got {priors!r}.")
    if not np.all(shares >= 0.0) or abs(shares.sum() - 1.0) > 1e-8:
        raise ValueError(f"priors must not be negative and must sum to 1, got {priors!r}.")
    prior: Floats = shares / shares.sum()
    return prior


def _check_class_weight(class_weight: Any, classes: NDArray[Any], prior: Floats) -> Floats:
    """Check the parameter `class_weight`; return the weights (n_classes,) of the classes.

    "balanced" makes the products of weight and prior equal for all classes with a prior above 0. As in
    scikit-learn, a class that is not in a dict has weight 1. If a dict lists all of `classes`, it may have
    more labels, since a part of a table may lack a class; otherwise other labels are errors.
    """
    if isinstance(class_weight, str):
        check_choice("class_weight", class_weight, ("balanced", None))
        return np.divide(1.0, prior, out=np.zeros(prior.size), where=prior > 0.0)
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight must be None, 'balanced' or a dict, got {class_weight!r}.")
    labels = classes.tolist()
    if not all(label in class_weight for label in labels):
        for name in class_weight:
            if name not in labels:
                raise ValueError(f"class_weight must list classes, but {name!r} is not one of {labels}.")
    try:
        weights = np.array([class_weight.get(label, 1.0) for label in labels], dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"class_weight must be a dict of numbers, got {class_weight!r}.") from None
    if not (np.isfinite(weights).all() and np.all(weights >= 0.0)):
        raise ValueError(f"class_weight must be finite and not negative, got {class_weight!r}.")
    return weights
