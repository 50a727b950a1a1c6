"""CorralClassifier in a model file: a pool of members, perhaps of classes that are thinned."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from corral._core.kinds import UNITS_OF_MEMBERS
from corral._core.levels import LevelKernels
from corral._core.members import Member, Mixture
from corral._core.mixed import MixedMixture
from corral._core.mixed_frames import MixedFrame
from corral._core.pool import CellMeans, CrossFitted, Pool, PoolModel, PoolScores, Thinning
from corral._core.rows import LabelledRows
from corral._core.settings import Floats, Integers
from corral._estimators.search import CorralClassifier
from corral._persist.rows import (
    SMALLEST,
    pack_kept_rows,
    pack_rows,
    pack_scale,
    restore_kept_rows,
    restore_scale,
    restore_training,
)
from corral._persist.values import State

# Within it no square of a distance over a bandwidth overflows.
_LARGEST_FACTOR = 1e24

# Normal quantiles of ranks lie far below.
_LARGEST_SCORE = 1e3


def pack_search(estimator: CorralClassifier) -> dict[str, Any]:
    """A pool with its rows, or with what is kept of them."""
    model = estimator.model_
    if model.thinning is None:
        return {"rows": pack_rows(model), "pool": _pack_pool(model.pool)}
    return {
        "kept_rows": pack_kept_rows(model),
        "pool": _pack_pool(model.pool),
        "thinning": _pack_thinning(model.thinning),
    }


def restore_search(estimator: CorralClassifier, state: State, d: int) -> None:
    """Restore either."""
    min_effect, levels = estimator.check_parameters(), estimator.encoding_.counts
    if "thinning" in state:
        estimator.set_pool(_restore_thinned(state, d, min_effect, levels))
        return
    rows = restore_training(state.part("rows"), d, min_effect, levels)
    pool = _restore_pool(state.part("pool"), rows["data"], rows["prior"], None)
    estimator.set_pool(PoolModel(**rows, pool=pool))


def _pack_thinning(thinning: Thinning) -> dict[str, Any]:
    classes = [
        {"thinned": False}
        if of_class is None
        else {"thinned": True, "centres": list(of_class.centres), "counts": of_class.counts}
        for of_class in thinning.classes
    ]
    return {
        "n_held_out": len(thinning.held_out.X),
        "classes": classes,
        "kinds": list(thinning.kinds),
        "n_rows": thinning.n_rows,
    }


def _restore_thinned(state: State, d: int, min_effect: float, levels: Integers | None) -> PoolModel:
    """Restore a pool whose classes are thinned."""
    arguments, rows = restore_kept_rows(state.part("kept_rows"), d, min_effect, levels)
    part = state.part("thinning")
    n_kernels = len(rows.X) - part.integer("n_held_out", 0, len(rows.X) - 1)
    everything = np.arange(len(rows.X))
    data, held_out = (
        replace(rows.take(at), counts=rows.counts) for at in (everything[:n_kernels], everything[n_kernels:])
    )
    kinds = part.anything("kinds")
    if not isinstance(kinds, list) or any(
        kind not in ("score", "standard", "rank", "range") for kind in kinds
    ):
        raise ValueError("kinds are no units")
    sizes = np.bincount(data.codes, minlength=data.labels.size).tolist()
    thinning = Thinning(
        held_out,
        [
            _restore_cells(of_class, size, len(kinds), d)
            for of_class, size in zip(part.parts("classes", len(sizes)), sizes, strict=True)
        ],
        kinds,
        part.integer("n_rows", int(rows.numbers.max(initial=0)) + 1, sys.maxsize),
    )
    if rows.general and any(of_class is not None for of_class in thinning.classes):
        raise ValueError("rows with gaps or levels, or of groups, have averages")
    pool = _restore_pool(state.part("pool"), data, arguments["prior"], thinning)
    return PoolModel(**arguments, data=data, pool=pool, thinning=thinning)


def _restore_cells(state: State, size: int, n_kinds: int, d: int) -> CellMeans | None:
    if not state.boolean("thinned"):
        return None
    return CellMeans(
        [x.floats("centres", (size, d), -1e100, 1e100) for x in state.arrays("centres", n_kinds)],
        state.integers("counts", (size,), 1, sys.maxsize),
    )


def _pack_pool(pool: Pool) -> dict[str, Any]:
    members = [
        {
            "name": member.name,
            "scale": pack_scale(member.scale),
            "classes": [_pack_mixture(mixture) for mixture in member.classes],
        }
        for member in pool.members
    ]
    return {
        "members": members,
        "weights": pool.weights,
        "temperatures": pool.temperatures,
        "lapse": pool.lapse,
        "scores": pool.scores._asdict(),
        "table": pool.table,
        "cross_fitted": pool.cross_fitted._asdict(),
    }


def _pack_mixture(mixture: Mixture | MixedMixture) -> dict[str, Any]:
    if isinstance(mixture, Mixture):
        return {
            "variables": mixture.variables,
            "factor": mixture.factor,
            "log_volume": mixture.log_volume,
            "mean": mixture.mean,
            "pull": mixture.pull,
        }
    frame = mixture.frame
    return {
        "variables": frame.variables,
        "mean": frame.mean,
        "factor": frame.factor,
        "gap_mean": frame.gap_mean,
        "gap_deviation": frame.gap_deviation,
        "columns": frame.levels.columns,
        "log_shares": list(frame.levels.log_shares),
        "precision": frame.levels.precision,
        "bandwidth": mixture.bandwidth,
        "pull": mixture.pull,
    }


def _restore_pool(state: State, data: LabelledRows, prior: Floats, thinning: Thinning | None) -> Pool:
    weights = state.floats("weights", (None,), SMALLEST, 1e10)
    if weights.size < 1:
        raise ValueError("members are missing")
    n_points = len(data.X) + (0 if thinning is None else len(thinning.held_out.X))
    scores = state.part("scores")
    return Pool(
        members=[_restore_member(part, data, thinning) for part in state.parts("members", weights.size)],
        weights=weights,
        temperatures=state.floats("temperatures", (weights.size,), 1e-10, 1e10),
        prior=prior,
        lapse=state.number("lapse", 0.0, 1.0),
        scores=PoolScores(
            scores.number("accuracy", 0.0, 1.0),
            scores.number("log_loss", 0.0),
            scores.number("balanced_accuracy", 0.0, 1.0),
            scores.floats_or_nan("recall", (prior.size,)),
        ),
        table=state.columns("table"),
        cross_fitted=_restore_cross_fitted(state.part("cross_fitted"), weights.size, prior.size, n_points),
    )


def _restore_cross_fitted(part: State, n_members: int, n_classes: int, n_rows: int) -> CrossFitted:
    """Restore log densities of training rows."""
    points = part.integers("points", (None,), 0, n_rows - 1)
    if points.size < 1 or (np.diff(points) <= 0).any():
        raise ValueError("points do not rise")
    shape = n_members, points.size, n_classes
    return CrossFitted(
        points,
        part.floats("log_density", shape),
        part.bools("refined", (n_members,)),
        part.floats("log_density_of_pool", shape[1:]),
    )


def _restore_member(state: State, data: LabelledRows, thinning: Thinning | None) -> Member:
    d, name = data.X.shape[1], state.text("name")
    scale = restore_scale(state.part("scale"), d, _LARGEST_SCORE)
    scaled = scale.transform(data.X)
    parts = state.parts("classes", data.labels.size)
    if any(("bandwidth" in part) != data.mixed for part in parts):
        raise ValueError("members contradict the rows")
    classes: list[Mixture | MixedMixture] = []
    for y, (part, at) in enumerate(zip(parts, data.members(), strict=True)):
        centres, weights = scaled[at], data.weights_of(at)
        thinned = None if thinning is None else thinning.classes[y]
        if thinning is not None and thinned is not None:
            centres = thinned.centres[thinning.kinds.index(UNITS_OF_MEMBERS[name])]
        if "bandwidth" in part:
            classes.append(_restore_mixed(part, centres, weights, data.level_counts))
        else:
            classes.append(_restore_mixture(part, centres, weights, averaged=thinned is not None))
    return Member(name, scale, classes)


def _restore_mixed(state: State, scaled: Floats, weights: Floats | None, levels: Integers) -> MixedMixture:
    variables = state.integers("variables", (None,), 0, scaled.shape[1] - 1)
    columns = state.integers("columns", (None,), 0, scaled.shape[1] - 1)
    n = variables.size
    if (np.diff(variables) <= 0).any() or levels[variables].any() or (np.diff(columns) <= 0).any():
        raise ValueError("variables do not rise")
    if not levels[columns].all():
        raise ValueError("columns have no levels")
    log_shares = [
        x.floats("log_shares", (size,), -1e3, 0.0)
        for x, size in zip(state.arrays("log_shares", columns.size), levels[columns].tolist(), strict=True)
    ]
    precision = state.floats("precision", (columns.size,), 0.0, 1e30) if "precision" in state else None
    along_variances = state.n_axes("factor") == 1
    frame = MixedFrame(
        variables=variables,
        mean=state.floats("mean", (n,), -1e100, 1e100),
        factor=state.floats("factor", (n,), 1e-100, _LARGEST_FACTOR)
        if along_variances
        else _restore_factor(state, n),
        gap_mean=state.floats("gap_mean", (n,), -1e100, 1e100),
        gap_deviation=state.floats("gap_deviation", (n,), 1e-100, 1e100),
        levels=LevelKernels(columns, log_shares, precision),
    )
    bandwidth, pull = state.number("bandwidth", 1e-10, 1e10), state.number("pull", 0.0, 1.0)
    return MixedMixture.of_rows(scaled, weights, frame, bandwidth, pull)


def _restore_factor(state: State, n: int, *, any_axes: bool = False) -> Floats:
    """A matrix of n variables by as many axes, or fewer; explanations invert those that are square."""
    factor = state.floats("factor", (n, None if any_axes else n), -_LARGEST_FACTOR, _LARGEST_FACTOR)
    if factor.shape[1] == n and np.linalg.slogdet(factor)[0] == 0.0:
        raise ValueError("factor is singular")
    return factor


def _restore_mixture(state: State, scaled: Floats, weights: Floats | None, *, averaged: bool) -> Mixture:
    variables = state.integers("variables", (None,), 0, scaled.shape[1] - 1)
    if (np.diff(variables) <= 0).any():
        raise ValueError("variables do not rise")
    return Mixture.of_centres(
        scaled,
        weights,
        variables,
        _restore_factor(state, variables.size, any_axes=True),
        state.number("log_volume"),
        state.floats("mean", (variables.size,), -1e100, 1e100),
        state.number("pull", 0.0, 1.0),
        averaged=averaged,
    )
