"""RodeoClassifier in a model file."""

from __future__ import annotations

from typing import Any

import numpy as np

from corral._core.density import ClassDensity, DensityPlan
from corral._core.model import ClassBandwidths, FittedModel
from corral._core.rows import AnyRows, LabelledRows
from corral._core.scale import Scale
from corral._estimators.classifier import RodeoClassifier
from corral._persist.rows import (
    BANDWIDTHS,
    SMALLEST,
    pack_rows,
    pack_scale,
    restore_grid,
    restore_scale,
    restore_training,
)
from corral._persist.values import State


def pack_classifier(estimator: RodeoClassifier) -> dict[str, Any]:
    """Rows, units, and the bandwidths of each class."""
    model = estimator.model_
    densities = [
        {
            "h": density.grid,
            "variables": density.plan.variables,
            "fixed": density.plan.fixed,
            "outside": density.plan.outside,
        }
        for density in model.densities
    ]
    return {
        **pack_rows(model),
        "relevant_": model.relevant,
        "scale": pack_scale(model.scale),
        "widths": model.bandwidths.widths,
        "densities": densities,
        "initial_bandwidth_": model.bandwidths.initial,
        "bandwidths_": model.bandwidths.means,
        "zscores_": model.bandwidths.zscores,
    }


def restore_classifier(estimator: RodeoClassifier, state: State, d: int) -> None:
    """Restore the fitted model from checked values."""
    settings = estimator.model_settings()
    rows = restore_training(state, d, settings.min_effect, estimator.encoding_.counts)
    data: LabelledRows = rows["data"]
    scale = restore_scale(state.part("scale"), d)
    estimator.model_ = FittedModel(
        **rows,
        settings=settings,
        scale=scale,
        densities=_restore_densities(state, data, scale),
        bandwidths=_restore_bandwidths(state, data.labels.size, d),
        relevant=state.bools("relevant_", (data.labels.size, d)),
    )


def _restore_bandwidths(state: State, k: int, d: int) -> ClassBandwidths:
    widths = state.floats("widths", (d,), SMALLEST)
    return ClassBandwidths(
        initial=state.floats("initial_bandwidth_", (k,), *BANDWIDTHS),
        means=state.floats("bandwidths_", (k, d), *BANDWIDTHS),
        zscores=state.floats("zscores_", (k, d)),
        widths=widths,
        varies=np.ones(d, dtype=np.bool_),
    )


def _restore_densities(state: State, data: LabelledRows, scale: Scale) -> list[ClassDensity]:
    return [
        _restore_density(part, rows)
        for part, rows in zip(
            state.parts("densities", data.labels.size), data.arrange(scale.transform(data.X)), strict=True
        )
    ]


def _restore_density(state: State, rows: AnyRows) -> ClassDensity:
    d = rows.n_features
    variables = state.integers("variables", (None,), 0, d - 1)
    if variables.size < 1 or (np.diff(variables) <= 0).any():
        raise ValueError("variables do not rise")
    fixed = state.floats("fixed", (variables.size,), *BANDWIDTHS) if "fixed" in state else None
    plan = DensityPlan(variables, fixed, state.number("outside"))
    return ClassDensity.build(rows, restore_grid(state), plan)
