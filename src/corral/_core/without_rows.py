"""A pool without any training row, for those who may not pass rows on: averages take their places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from corral._core.calibration import known
from corral._core.kinds import UNITS_OF_MEMBERS
from corral._core.members import Member, Mixture
from corral._core.pool import CrossFitted, PoolModel, Thinning
from corral._core.remoteness import Columns
from corral._core.rows import LabelledRows, TrainingRows
from corral._core.sampling import MIN_COUNT
from corral._core.settings import Computation
from corral._core.thinning import Representatives, thin
from corral._core.trust import Calibration, weigh_points


def without_rows(model: PoolModel) -> PoolModel:
    """The same model without any training row: averages of at least `MIN_COUNT` rows take their places.

    Cells of fewer rows join others, and all that is measured by rows that were held out is measured anew.
    """
    thinning, kept = model.thinning, model.pool.cross_fitted
    for y, size in enumerate(np.bincount(model.data.codes, minlength=model.labels.size).tolist()):
        if size and (thinning is None or thinning.classes[y] is None):
            raise ValueError(
                f"keep_rows=False needs classes that are thinned, but each of the {size} rows of the class "
                f"{model.labels.tolist()[y]!r} has a kernel of its own: fit with a smaller max_rows, or keep "
                "the rows."
            )
    if not model.has_rows:
        return model
    assert thinning is not None
    merged = [
        None if of is None else thin(of, len(of), weight, seed=0, min_count=MIN_COUNT)[0]
        for of, weight in zip(thinning.classes, thinning.importance, strict=True)
    ]
    members = [_with_merged(member, thinning, merged) for member in model.pool.members]
    data = _averages(model, thinning, merged)
    rows = model.compared_rows.take(kept.points)
    calibration = Calibration(
        rows.codes, weigh_points(model.compared_rows, kept.points), Columns.learn(data).remoteness(rows.X)
    )
    with threadpool_limits(1, user_api="blas"):
        log_density = np.array([known(member.log_densities(rows.X, Computation())) for member in members])
    return replace(
        model,
        training=TrainingRows(data.X, data.labels[data.codes], data.weights),
        data=data,
        learnt_contrast=model.contrast.rounded(),
        pool=replace(
            model.pool,
            members=members,
            cross_fitted=CrossFitted(
                np.arange(kept.points.size),
                log_density,
                kept.refined,
                np.tensordot(model.pool.weights, log_density, 1),
            ),
        ),
        thinning=replace(
            thinning,
            held_out=data.take(np.empty(0, dtype=np.int64)),
            classes=merged,
            calibration=calibration,
        ),
    )


def _with_merged(member: Member, thinning: Thinning, merged: Sequence[Representatives | None]) -> Member:
    """A member whose cells have been merged."""
    of_units = thinning.kinds.index(UNITS_OF_MEMBERS[member.name])
    classes = []
    for mixture, before, after in zip(member.classes, thinning.classes, merged, strict=True):
        assert isinstance(mixture, Mixture)
        if before is None or after is None:
            classes.append(mixture)
            continue
        more = after.spreads[of_units] - before.spreads[of_units]
        classes.append(mixture.with_centres(after.centres[of_units], after.weights, more))
    return replace(member, classes=classes)


def _averages(model: PoolModel, thinning: Thinning, merged: Sequence[Representatives | None]) -> LabelledRows:
    """Averages of rows in the place of rows, without numbers."""
    standard = thinning.kinds.index("standard")
    found = [(y, of) for y, of in enumerate(merged) if of is not None]
    weights = np.concatenate([of.weights for _, of in found])
    codes = np.repeat([y for y, _ in found], [len(of) for _, of in found])
    return replace(
        model.data,
        X=thinning.standard.restore(np.concatenate([of.centres[standard] for _, of in found])),
        codes=codes.astype(np.int64),
        weights=weights / weights.max(),
        numbers=np.full(codes.size, -1),
        units=np.arange(codes.size),
    )
