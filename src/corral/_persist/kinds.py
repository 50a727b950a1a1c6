"""What is kept of each estimator in a model file, and how it is put together again from checked values."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from copy import copy
from dataclasses import fields, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from corral._core.contrast import Contrast
from corral._core.density import ClassDensity, DensityPlan
from corral._core.kinds import UNITS_OF_MEMBERS
from corral._core.large import without_rows
from corral._core.levels import LevelKernels
from corral._core.members import Member, Mixture
from corral._core.mixed import MixedMixture
from corral._core.mixed_frames import MixedFrame
from corral._core.model import ClassBandwidths, FittedModel, LocalModel
from corral._core.pool import CrossFitted, Pool, PoolModel, PoolScores, Thinning
from corral._core.rows import AnyRows, ClassRows, GeneralRows, LabelledRows, TrainingRows
from corral._core.scale import Scale, learn_scale
from corral._core.settings import Floats, Integers
from corral._core.thinning import Representatives
from corral._core.trust import Calibration
from corral._estimators.classifier import RodeoClassifier
from corral._estimators.density import RodeoDensity
from corral._estimators.lspc import LSPClassifier
from corral._estimators.search import RodeoClassifierCV
from corral._estimators.selector import RodeoSelector
from corral._estimators.tables import Encoding
from corral._estimators.validation import check_choice, check_rodeo, feature_names
from corral._persist.values import State, positive

# Parameters that earlier versions had; they mattered to fitting alone.
_FORMER = {
    "LSPClassifier": ("centers",),
    "RodeoClassifierCV": (
        "scales",
        "c0s",
        "features",
        "rules",
        "update",
        "beta",
        "cutpoint",
        "min_bandwidth",
    ),
}

# How a model is computed belongs to the machine it runs on, not to the model.
_NOT_KEPT = ("n_jobs", "verbose")

# Bounds that every fitted model keeps; within them no square of a distance over a bandwidth overflows.
_SMALLEST = float(np.finfo(np.float64).tiny)
_BANDWIDTHS = (1e-21, 1e11)
_LARGEST_MIXING = 1e24
_LARGEST_COEFFICIENT = 1e150


def kept_params(estimator: BaseEstimator) -> dict[str, Any]:
    return {k: v for k, v in estimator.get_params(deep=False).items() if k not in _NOT_KEPT}


def construct(kind: type[BaseEstimator], params: Any) -> Any:
    """Make an unfitted estimator; a parameter that the file does not name has its default."""
    params = {name: value for name, value in params.items() if name not in _FORMER.get(kind.__name__, ())}
    unknown = params.keys() - kept_params(kind()).keys()
    if unknown:
        raise ValueError(f"{kind.__name__} has no parameter {min(unknown)!r}")
    return kind(**params)


def check_names(names: Any, d: int) -> None:
    """Refuse what is not a name for each of d variables."""
    if not isinstance(names, list) or len(names) != d or not all(isinstance(name, str) for name in names):
        raise ValueError(f"feature_names_in_ is not a list of {d} names")


def set_features(estimator: BaseEstimator, d: int, names: Any) -> None:
    estimator.n_features_in_ = d
    if names is not None:
        check_names(names, d)
        estimator.feature_names_in_ = np.array(names, dtype=object)


def pack_encoding(encoding: Encoding, names: list[str]) -> list[dict[str, Any] | None] | None:
    """Levels of all columns, None if all of them hold numbers."""
    if all(levels is None for levels in encoding.levels):
        return None
    for name, levels in zip(names, encoding.levels, strict=True):
        for level in levels or ():
            if not isinstance(level, str | int | float):
                raise ValueError(
                    f"a model file cannot hold levels of type {type(level).__name__}, which the column "
                    f"{name!r} has: make them text before the fit."
                )
    pairs = zip(encoding.levels, encoding.ordered.tolist(), strict=True)
    return [None if levels is None else {"levels": levels, "ordered": ordered} for levels, ordered in pairs]


def set_encoding(estimator: Any, d: int, columns: Any) -> None:
    """Restore levels; files without any are of numbers."""
    if columns is None:
        estimator.encoding_ = Encoding.of_numbers(d)
        return
    if not isinstance(columns, list) or len(columns) != d:
        raise ValueError(f"encoding is not a list of {d} columns")
    levels: list[list[Any] | None] = []
    ordered = np.zeros(d, dtype=np.bool_)
    for j, column in enumerate(columns):
        if column is None:
            levels.append(None)
            continue
        state = State(column, 2)
        listed = column["levels"]
        plain = isinstance(listed, list) and all(isinstance(level, str | int | float) for level in listed)
        if not plain or len(set(listed)) != len(listed):
            raise ValueError("levels are not different texts or numbers")
        levels.append(listed)
        ordered[j] = state.boolean("ordered")
    estimator.encoding_ = Encoding(levels, ordered)


def set_row_names(estimator: Any, column: Any, names: Any) -> None:
    model = estimator.model_
    n = len(model.training.X)
    if not isinstance(names, list) or len(names) != n or not all(isinstance(name, str) for name in names):
        raise ValueError(f"row_names is not a list of {n} names")
    if not isinstance(column, str | None):
        raise ValueError("row_names has a column that is no text")
    of_rows = np.array(names, dtype=object)
    if not model.has_all_rows:
        kept, of_rows = of_rows, np.full(model.n_rows, "", dtype=object)
        of_rows[model.compared_rows.numbers] = kept
    for each in (estimator, *getattr(estimator, "members_", ())):
        each.row_names_in_ = of_rows
        each.row_names_column_ = column


def _pack_scale(scale: Scale) -> dict[str, Any]:
    knots = None
    if scale.knots is not None:
        values, ranks = zip(*(of_column or (None, None) for of_column in scale.knots), strict=True)
        knots = {"values": list(values), "ranks": list(ranks)}
    return {"center": scale.center, "half_width": scale.half_width, "mixing": scale.mixing, "knots": knots}


def _restore_scale(state: State, d: int, largest_rank: float = 1.0) -> Scale:
    mixing = state.floats("mixing", (d, d), -_LARGEST_MIXING, _LARGEST_MIXING) if "mixing" in state else None
    knots = None
    if "knots" in state:
        part = state.part("knots")
        knots = tuple(
            _restore_knots(x, ranks, largest_rank) if "values" in x else None
            for x, ranks in zip(part.arrays("values", d), part.arrays("ranks", d), strict=True)
        )
    return Scale(state.floats("center", (d,)), state.floats("half_width", (d,), _SMALLEST), knots, mixing)


def _restore_knots(values: State, ranks: State, largest_rank: float) -> tuple[Floats, Floats]:
    """Distinct values of a column, and what each of them becomes."""
    x = values.floats("values", (None,))
    r = ranks.floats("ranks", (x.size,), min(0.0, 1.0 - largest_rank), largest_rank)
    if x.size < 1 or any((np.diff(rising) <= 0.0).any() for rising in (x, r)):
        raise ValueError("knots do not rise")
    return x, r


def _restore_rows(rows: AnyRows, count: float, state: State) -> tuple[AnyRows, Floats]:
    """Rows as their class knows them; `count` is the sum of the weights as they were given.

    The grid of bandwidths is the one in the file: parameters may have been set since.
    """
    if state.format == 1:  # weights were numbers of copies
        rows = replace(rows, measure=replace(rows.measure, n=count))
    grid = state.floats("h", (None,), *_BANDWIDTHS)
    if grid.size < 1 or (np.diff(grid) >= 0.0).any():
        raise ValueError("h does not fall")
    return rows, grid


def _restore_copies(state: State, X: Floats) -> Integers | None:
    """Numbers that copies of rows share; they must be copies. Files of format 1 have none."""
    if "copies" not in state:
        return None
    copies = state.integers("copies", (len(X),), 0, len(X) - 1)
    _, first, which = np.unique(copies, return_index=True, return_inverse=True)
    if not np.array_equal(X[first][which], X, equal_nan=True):
        raise ValueError("copies are not copies")
    return copies


def _pack_rows(model: LocalModel) -> dict[str, Any]:
    """Training rows, their classes, and what marks each class."""
    X, y, weights, levels, groups = model.training
    return {
        "X": X,
        "codes": np.searchsorted(model.labels, y),
        "weights": weights,
        "levels": levels,
        "groups": groups,
        "copies": model.data.copies,
        "classes_": model.labels,
        "class_prior_": model.prior,
        "relevant_": model.relevant,
        "contrast": _pack_contrast(model.learnt_contrast),
    }


def _restore_training(state: State, d: int, min_effect: float) -> dict[str, Any]:
    """Restore the same, as arguments of a model."""
    classes = state.labels("classes_")
    X = state.floats_or_nan("X", (None, d))
    weights = state.floats("weights", (len(X),), 0.0) if "weights" in state else None
    y = classes[state.integers("codes", (len(X),), 0, classes.size - 1)]
    levels = state.integers("levels", (d,), 0, sys.maxsize) if "levels" in state else None
    groups = state.integers("groups", (len(X),), 0, sys.maxsize) if "groups" in state else None
    if levels is not None:
        _check_levels(X, levels)
    training = TrainingRows(X, y, weights, levels, groups)
    data = LabelledRows.sort(training, classes, find_copies=partial(_restore_copies, state))
    return {
        "labels": data.labels,
        "counts": data.counts,
        "prior": _restore_prior(state, classes.size),
        "n_copies": data.n_copies,
        "training": training,
        "data": data,
        "relevant": state.bools("relevant_", (classes.size, d)),
        "min_effect": min_effect,
        "learnt_contrast": _restore_contrast(state, classes.size, d),
    }


def _pack_kept_rows(model: PoolModel) -> dict[str, Any]:
    """Rows that are kept of a model whose classes are thinned: those behind kernels, and those held out."""
    rows = model.compared_rows
    return {
        "X": rows.X,
        "codes": rows.codes,
        "weights": rows.weights,
        "numbers": rows.numbers,
        "units": rows.units,
        "class_count_": model.counts,
        "n_copies_": model.n_copies,
        "classes_": model.labels,
        "class_prior_": model.prior,
        "relevant_": model.relevant,
        "contrast": _pack_contrast(model.learnt_contrast),
    }


def _restore_kept_rows(state: State, d: int, min_effect: float) -> tuple[dict[str, Any], LabelledRows]:
    """Restore the same, as arguments of a model but for its data, and all rows together."""
    classes = state.labels("classes_")
    X = state.floats("X", (None, d))
    n = len(X)
    rows = LabelledRows(
        X,
        state.integers("codes", (n,), 0, classes.size - 1),
        state.floats("weights", (n,), _SMALLEST, 1.0),
        classes,
        state.floats("class_count_", (classes.size,), 0.0),
        state.integers("numbers", (n,), -1, sys.maxsize),
        state.integers("units", (n,), 0, sys.maxsize),
        None,
    )
    numbers = rows.numbers[rows.numbers >= 0]  # averages have none
    if np.unique(numbers).size != numbers.size:
        raise ValueError("numbers are not different")
    arguments = {
        "labels": classes,
        "counts": rows.counts,
        "prior": _restore_prior(state, classes.size),
        "n_copies": state.integer("n_copies_", 0, sys.maxsize),
        "training": TrainingRows(X, classes[rows.codes], rows.weights),
        "relevant": state.bools("relevant_", (classes.size, d)),
        "min_effect": min_effect,
        "learnt_contrast": _restore_contrast(state, classes.size, d),
    }
    return arguments, rows


def _restore_prior(state: State, n_classes: int) -> Floats:
    prior = state.floats("class_prior_", (n_classes,), 0.0, 1.0)
    if abs(prior.sum() - 1.0) > 1e-8:
        raise ValueError("class_prior_ does not sum to 1")
    return prior


def _check_levels(X: Floats, levels: Integers) -> None:
    """Refuse columns of levels that hold something else than their numbers."""
    known = np.where(np.isnan(X), 0.0, X)[:, levels > 0]
    if (known < 0.0).any() or (known >= levels[levels > 0]).any() or (known % 1.0 != 0.0).any():
        raise ValueError("X holds something else than numbers of levels")


def _pack_classifier(estimator: RodeoClassifier) -> dict[str, Any]:
    model = estimator.model_
    densities = [
        {
            "h": density.grid,
            "variables": density.plan.variables,
            "fixed": density.plan.fixed,
            "outside": density.plan.outside,
            "separate": density.plan.separate,
        }
        for density in model.densities
    ]
    return {
        **_pack_rows(model),
        "scale": _pack_scale(model.scale),
        "widths": model.bandwidths.widths,
        "densities": densities,
        "initial_bandwidth_": model.bandwidths.initial,
        "bandwidths_": model.bandwidths.means,
        "zscores_": model.bandwidths.zscores,
        "shadow_scores_": model.bandwidths.shadow_scores,
    }


def _restore_classifier(estimator: RodeoClassifier, state: State, d: int) -> None:
    settings = estimator.model_settings()
    rows = _restore_training(state, d, settings.min_effect)
    data: LabelledRows = rows["data"]
    scale = _restore_scale(state.part("scale"), d)
    estimator.model_ = FittedModel(
        **rows,
        settings=settings,
        scale=scale,
        variable_scale=scale if scale.mixing is None else learn_scale(data.X, data.weights, "range"),
        densities=_restore_densities(state, data, scale),
        bandwidths=_restore_bandwidths(state, data.labels.size, d),
    )


_DIRECTIONS = np.array(["", "high", "low", "narrow", "shape", "wide"])


def _pack_contrast(contrast: Contrast | None) -> dict[str, Any] | None:
    if contrast is None:
        return None
    kept = {of.name: getattr(contrast, of.name) for of in fields(Contrast)}
    return kept | {"direction": np.searchsorted(_DIRECTIONS, contrast.direction)}


def _restore_contrast(state: State, k: int, d: int, name: str = "contrast") -> Contrast | None:
    """Restore what sets classes apart; most of its arrays have one number for each class and variable."""
    if name not in state:
        return None
    part = state.part(name)
    arrays: dict[str, Any] = {
        "relevant": part.bools("relevant", (k, d)),
        "background": part.bools("background", (k, d)),
        "direction": _DIRECTIONS[part.integers("direction", (k, d), 0, _DIRECTIONS.size - 1)],
        "quartiles": part.floats_or_nan("quartiles", (2, k, d)),
        "background_quartiles": part.floats_or_nan("background_quartiles", (2, k, d)),
        "n_values": part.integers("n_values", (d,), 0, sys.maxsize),
    }
    names = [of.name for of in fields(Contrast) if of.name not in arrays]
    # A class without rows has no typical value.
    arrays.update({name: part.floats_or_nan(name, (k, d)) for name in names})
    return Contrast(**arrays)


def _restore_bandwidths(state: State, k: int, d: int) -> ClassBandwidths:
    shadow = None
    if "shadow_scores_" in state:
        shadow = state.floats("shadow_scores_", (k, d), -math.inf, math.inf)
    widths = state.floats("widths", (d,), _SMALLEST)
    return ClassBandwidths(
        initial=state.floats("initial_bandwidth_", (k,), *_BANDWIDTHS),
        means=state.floats("bandwidths_", (k, d), *_BANDWIDTHS),
        zscores=state.floats("zscores_", (k, d)),
        shadow_scores=shadow,
        widths=widths,
        varies=np.ones(d, dtype=np.bool_),
    )


def _restore_densities(state: State, data: LabelledRows, scale: Scale) -> list[ClassDensity]:
    return [
        _restore_density(part, rows, float(n), mixed=scale.mixing is not None)
        for part, rows, n in zip(
            state.parts("densities", data.labels.size),
            data.arrange(scale.transform(data.X)),
            data.counts,
            strict=True,
        )
    ]


def _restore_density(state: State, rows: AnyRows, count: float, *, mixed: bool) -> ClassDensity:
    d = rows.n_features
    variables = state.integers("variables", (None,), 0, d - 1)
    if variables.size < 1 or (np.diff(variables) <= 0).any():
        raise ValueError("variables do not rise")
    fixed = state.floats("fixed", (variables.size,), *_BANDWIDTHS) if "fixed" in state else None
    separate = state.boolean("separate")
    if (separate and (fixed is None or mixed)) or (mixed and variables.size < d):
        raise ValueError("densities contradict each other")
    rows, grid = _restore_rows(rows, count, state)
    return ClassDensity.build(rows, grid, DensityPlan(variables, fixed, state.number("outside"), separate))


def _pack_search(estimator: RodeoClassifierCV) -> dict[str, Any]:
    model = estimator.model_
    if isinstance(model, PoolModel) and model.thinning is not None:
        return {
            "kept_rows": _pack_kept_rows(model),
            "pool": _pack_pool(model.pool),
            "thinning": _pack_thinning(model.thinning),
        }
    if isinstance(model, PoolModel):
        return {"rows": _pack_rows(model), "pool": _pack_pool(model.pool)}
    return {  # as version 0.1.0 has fitted and written it
        "best_estimator": {
            "params": kept_params(estimator.best_estimator_),
            "state": _pack_classifier(estimator.best_estimator_),
        },
        **{name: getattr(estimator, name) for name in ("best_params_", "cv_results_", *_SCORES)},
    }


_SCORES = ("best_score_", "best_log_loss_", "temperature_")


def _restore_search(estimator: RodeoClassifierCV, state: State, d: int) -> None:
    min_effect = estimator.check_parameters()
    if "thinning" in state:
        estimator.set_pool(_restore_thinned(state, d, min_effect))
        return
    if "pool" in state:
        rows = _restore_training(state.part("rows"), d, min_effect)
        pool = _restore_pool(state.part("pool"), rows["data"], rows["prior"])
        estimator.set_pool(PoolModel(**rows, pool=pool))
        return
    part = state.part("best_estimator")
    winner = construct(RodeoClassifier, part.table("params"))
    names = getattr(estimator, "feature_names_in_", None)
    set_features(winner, d, None if names is None else names.tolist())
    _restore_classifier(winner, part.part("state"), d)
    estimator.best_params_ = state.table("best_params_")
    estimator.cv_results_ = state.columns("cv_results_")
    for name in _SCORES:
        setattr(estimator, name, state.number(name, 0.0))
    estimator.set_winner(winner)


def _pack_thinning(thinning: Thinning) -> dict[str, Any]:
    classes = [
        {"thinned": False}
        if of_class is None
        else {
            "thinned": True,
            "centres": list(of_class.centres),
            "weights": of_class.weights,
            "counts": of_class.counts,
            "scatter": list(of_class.scatter),
        }
        for of_class in thinning.classes
    ]
    return {
        "n_held_out": len(thinning.held_out.X),
        "classes": classes,
        "kinds": list(thinning.kinds),
        "importance": list(thinning.importance),
        "standard": _pack_scale(thinning.standard),
        "n_rows": thinning.n_rows,
        "calibration": None if thinning.calibration is None else thinning.calibration._asdict(),
    }


def _restore_thinned(state: State, d: int, min_effect: float) -> PoolModel:
    """Restore a pool whose classes are thinned."""
    arguments, rows = _restore_kept_rows(state.part("kept_rows"), d, min_effect)
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
            _restore_representatives(of_class, size, len(kinds), d)
            for of_class, size in zip(part.parts("classes", len(sizes)), sizes, strict=True)
        ],
        kinds,
        [x.floats("importance", (d,), 0.0, 1e30) for x in part.arrays("importance", len(sizes))],
        _restore_scale(part.part("standard"), d),
        part.integer("n_rows", int(rows.numbers.max(initial=0)) + 1, sys.maxsize),
        _restore_calibration(part, data.labels.size),
    )
    pool = _restore_pool(state.part("pool"), data, arguments["prior"], thinning)
    return PoolModel(**arguments, data=data, pool=pool, thinning=thinning)


def _restore_calibration(state: State, n_classes: int) -> Calibration | None:
    """Restore what is known of rows that were held out, which models without rows have."""
    if "calibration" not in state:
        return None
    part = state.part("calibration")
    codes = part.integers("codes", (None,), 0, n_classes - 1)
    return Calibration(
        codes,
        part.floats("weights", (codes.size,), 0.0),
        part.floats("remoteness", (codes.size, n_classes), 0.0),
    )


def _restore_representatives(state: State, size: int, n_kinds: int, d: int) -> Representatives | None:
    if not state.boolean("thinned"):
        return None
    return Representatives(
        [x.floats("centres", (size, d), -1e100, 1e100) for x in state.arrays("centres", n_kinds)],
        state.floats("weights", (size,), _SMALLEST),
        state.integers("counts", (size,), 1, sys.maxsize),
        [x.floats("scatter", (d, d)) for x in state.arrays("scatter", n_kinds)],
    )


def _pack_pool(pool: Pool) -> dict[str, Any]:
    members = [
        {
            "name": member.name,
            "scale": _pack_scale(member.scale),
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
        "cross_fitted": None if pool.cross_fitted is None else pool.cross_fitted._asdict(),
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


def _restore_pool(state: State, data: LabelledRows, prior: Floats, thinning: Thinning | None = None) -> Pool:
    weights = state.floats("weights", (None,), _SMALLEST, 1e10)
    if weights.size < 1:
        raise ValueError("members are missing")
    n_points = len(data.X)
    if thinning is not None:
        n_points += len(thinning.held_out.X)
        n_points = n_points if thinning.calibration is None else thinning.calibration.codes.size
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
        cross_fitted=_restore_cross_fitted(state, weights.size, prior.size, n_points),
    )


def _restore_cross_fitted(state: State, n_members: int, n_classes: int, n_rows: int) -> CrossFitted | None:
    """Restore log densities of training rows, which earlier files do not have."""
    if "cross_fitted" not in state:
        return None
    part = state.part("cross_fitted")
    points = part.integers("points", (None,), 0, n_rows - 1)
    if points.size < 1 or (np.diff(points) <= 0).any():
        raise ValueError("points do not rise")
    shape = n_members, points.size, n_classes
    return CrossFitted(points, part.floats("log_density", shape), part.bools("refined", (n_members,)))


# Normal quantiles of ranks lie far below.
_LARGEST_SCORE = 1e3


def _restore_member(state: State, data: LabelledRows, thinning: Thinning | None) -> Member:
    d, name = data.X.shape[1], state.text("name")
    scale = _restore_scale(state.part("scale"), d, _LARGEST_SCORE)
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
        factor=state.floats("factor", (n,), 1e-100, _LARGEST_MIXING)
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
    factor = state.floats("factor", (n, None if any_axes else n), -_LARGEST_MIXING, _LARGEST_MIXING)
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


def _pack_density(estimator: RodeoDensity) -> dict[str, Any]:
    rows = estimator.density_.rows
    return {
        "rows": rows.all(),
        "weights": rows.weights,
        "levels": rows.levels if isinstance(rows, GeneralRows) else None,
        "h": estimator.density_.grid,
        "n_copies_": estimator.n_copies_,
        "scale": _pack_scale(estimator.scale_),
    }


def _restore_rodeo_density(estimator: RodeoDensity, state: State, d: int) -> None:
    check_choice("scale", estimator.scale, ("range", "standard", None))
    check_rodeo(estimator.update, estimator.beta, estimator.c0, estimator.min_bandwidth)
    rows = state.floats_or_nan("rows", (None, d))
    if len(rows) < 1:
        raise ValueError("rows are missing")
    state.within("rows", -1e100, 1e100)
    weights = state.floats("weights", (len(rows),), _SMALLEST) if "weights" in state else None
    arranged: AnyRows
    if "levels" in state:
        levels = state.integers("levels", (d,), 0, sys.maxsize)
        _check_levels(rows, levels)
        arranged = GeneralRows.arrange(rows, weights, levels, np.arange(len(rows)))
    elif np.isnan(rows).any():
        raise ValueError("rows have gaps")
    else:
        arranged = ClassRows.arrange(rows, weights)
    scale = _restore_scale(state.part("scale"), d)
    if scale.knots is not None or scale.mixing is not None:
        raise ValueError("the scale is not one of a density")
    estimator.scale_ = scale
    estimator.n_copies_ = state.integer("n_copies_", 0, sys.maxsize) if state.format > 1 else 0
    count = float(len(rows) if weights is None else weights.sum())
    estimator.density_ = ClassDensity(*_restore_rows(arranged, count, state), DensityPlan(np.arange(d)))


def _pack_selector(model: RodeoSelector) -> dict[str, Any]:
    learnt = ("classes_", "relevant_", "bandwidths_", "zscores_")
    found = {name: getattr(model, name) for name in learnt if hasattr(model, name)}
    # Unknown if the selector comes from a file of format 1.
    return found | {
        "contrast": _pack_contrast(getattr(model, "contrast_", None)),
        "gap_contrast": _pack_contrast(getattr(model, "gap_contrast_", None)),
    }


def _restore_selector(model: RodeoSelector, state: State, d: int) -> None:
    model.classes_ = state.labels("classes_")
    k = model.classes_.size
    model.relevant_ = state.bools("masks_" if state.format == 1 else "relevant_", (k, d))
    if "bandwidths_" in state:
        model.bandwidths_ = state.floats("bandwidths_", (k, d), *_BANDWIDTHS)
        model.zscores_ = state.floats("zscores_", (k, d))
    contrast = _restore_contrast(state, k, d)
    if contrast is not None:
        model.contrast_ = contrast
        model.gap_contrast_ = _restore_contrast(state, k, d, "gap_contrast")


def _pack_lspc(model: LSPClassifier) -> dict[str, Any]:
    learnt = ("classes_", "class_count_", "centers_", "dual_coef_", "best_params_", *_CHOSEN)
    return {
        "scale": _pack_scale(model.scale_),
        **{name: getattr(model, name) for name in learnt if hasattr(model, name)},
    }


# Only where there was something to choose.
_CHOSEN = ("cv_results_", "best_index_", "best_score_")


def _restore_lspc(model: LSPClassifier, state: State, d: int) -> None:
    model.check_parameters()
    model.classes_ = state.labels("classes_")
    k = model.classes_.size
    model.class_count_ = state.floats("class_count_", (k,), 0.0)
    model.centers_ = state.floats("centers_", (None, d), -1e100, 1e100)
    if len(model.centers_) < 1:
        raise ValueError("centers_ are missing")
    model.dual_coef_ = state.floats(
        "dual_coef_", (len(model.centers_), k), -_LARGEST_COEFFICIENT, _LARGEST_COEFFICIENT
    )
    chosen = state.part("best_params_")
    model.best_params_ = {name: chosen.number(name, 1e-10, 1e10) for name in ("sigma", "alpha")}
    model.scale_ = _restore_scale(state.part("scale"), d)
    if model.scale_.mixing is not None:
        raise ValueError("the scale is not one of LSPClassifier")
    if "cv_results_" in state:
        model.cv_results_ = state.columns("cv_results_")
        n_tried = len(next(iter(model.cv_results_.values())))
        model.best_index_ = state.integer("best_index_", 0, n_tried - 1)
        model.best_score_ = state.number("best_score_", 0.0, 1.0)


class Kind(NamedTuple):
    """An estimator that files can hold.

    Attributes
    ----------
    type : its class.
    pack : gives what has been learnt, as values that `_encode` takes.
    restore : checks such values, and the parameters, and sets them; is told the number of variables.
    """

    type: type[BaseEstimator]
    pack: Callable[[Any], dict[str, Any]]
    restore: Callable[[Any, State, int], None]


KINDS = {
    kind.type.__name__: kind
    for kind in (
        Kind(RodeoClassifier, _pack_classifier, _restore_classifier),
        Kind(RodeoClassifierCV, _pack_search, _restore_search),
        Kind(RodeoDensity, _pack_density, _restore_rodeo_density),
        Kind(RodeoSelector, _pack_selector, _restore_selector),
        Kind(LSPClassifier, _pack_lspc, _restore_lspc),
    )
}


def without_training_rows(estimator: Any) -> Any:
    """A copy of a fitted RodeoClassifierCV without any training row; another estimator is refused."""
    check_is_fitted(estimator, msg="%(name)s is not fitted: call fit before saving it.")
    model = getattr(estimator, "model_", None)
    if not isinstance(estimator, RodeoClassifierCV) or not isinstance(model, PoolModel):
        raise TypeError(
            f"keep_rows=False needs a RodeoClassifierCV whose classes are thinned, not "
            f"{type(estimator).__name__}, which is made of rows."
        )
    saved = copy(estimator)
    for name in ("row_names_in_", "row_names_column_"):
        saved.__dict__.pop(name, None)
    saved.set_pool(without_rows(model))
    return saved


def pack_estimator(estimator: Any) -> dict[str, Any]:
    """All that is kept of one of our estimators, which must be fitted; another one is refused."""
    kind = KINDS.get(type(estimator).__name__)
    if kind is None or type(estimator) is not kind.type:
        local = "; call its to_local() first" if hasattr(estimator, "to_local") else ""
        raise TypeError(f"a model file holds {' or '.join(KINDS)}, not {type(estimator).__name__}{local}.")
    check_is_fitted(estimator, msg="%(name)s is not fitted: call fit before saving it.")
    packed = {
        "estimator": type(estimator).__name__,
        "params": kept_params(estimator),
        "n_features_in_": estimator.n_features_in_,
        "feature_names_in_": getattr(estimator, "feature_names_in_", np.empty(0)).tolist() or None,
        "state": kind.pack(estimator),
    }
    if hasattr(estimator, "encoding_"):
        encoding = pack_encoding(estimator.encoding_, feature_names(estimator))
        if encoding is not None:
            packed["encoding"] = encoding
    if hasattr(estimator, "row_names_in_"):
        names = estimator.row_names_in_
        thinned = getattr(estimator.model_, "thinning", None) is not None
        packed["row_names"] = {
            "column": estimator.row_names_column_,
            "names": (names[estimator.model_.compared_rows.numbers] if thinned else names).tolist(),
        }
    return packed


def restore_estimator(packed: dict[str, Any], format_: int) -> Any:
    """Restore what `pack_estimator` has packed, in a file of some format, from values that it checks."""
    kind = KINDS[packed["estimator"]]
    estimator = construct(kind.type, packed["params"])
    d = positive(packed["n_features_in_"])
    set_features(estimator, d, packed["feature_names_in_"])
    if kind.type is not LSPClassifier:
        set_encoding(estimator, d, packed.get("encoding"))
    kind.restore(estimator, State(packed["state"], format_), d)
    if "row_names" in packed:
        set_row_names(estimator, packed["row_names"]["column"], packed["row_names"]["names"])
    return estimator
