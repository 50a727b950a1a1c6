"""Whether a change of the code leaves every number as it was.

``python -m benchmarks.same_numbers --write FILE`` in the checkout before the change, and ``--compare FILE``
in the one after it, on the same machine and with the same libraries. It takes about two minutes on one core.

All estimators are fitted to small tables with missing values, categories, groups, weights, duplicates and
more rows than a pool keeps. The file holds one array for each prediction, explanation and fitted attribute.
An array must have the same bits in both checkouts, or agree to 1e-10 of its largest number if it was computed
for rows one by one, in slices or with Dask. Any other difference, or an array that is missing, is printed and
makes the exit status 1, unless ``--intended PATTERN`` names it: ``--intended 'pool/iris*'``, as often as
needed. ``--tolerance 1e-10`` asks for no equal bits: a change that sums in another order is compared so.

The names of arrays must outlast renamings of classes, parameters and attributes. So they are spelled out
here, and the attributes that may be renamed are named in one place, at the top.
"""

import argparse
import fnmatch
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np

from benchmarks._reference_tables import (
    ReferenceTable,
    compressed_tables,
    long_tables,
    plain_tables,
    pool_tables,
)
from corral import CorralClassifier as Pool
from corral import (
    HeldOut,
    LearningCurve,
    LSPClassifier,
    MarkerSelector,
    RodeoClassifier,
    RodeoDensity,
    RodeoSelector,
    estimate_sample_sizes,
    load_model,
    save_model,
)
from corral.dask import DaskCorralClassifier as DaskPool

# ------------------------------------------------------------- names of arrays, and where they are read

OF_POOL = {
    "member weights": "member_weights_",
    "accuracy": "cv_accuracy_",
    "log loss": "cv_log_loss_",
    "balanced accuracy": "cv_balanced_accuracy_",
    "recall": "cv_recall_",
    "markers": "markers_",
    "importances": "feature_importances_",
    "class prior": "class_prior_",
    "class count": "class_count_",
    "number of duplicates": "n_copies_",
}
OF_MEMBER_SCORES = {
    "scale": "scale",
    "bandwidth": "bandwidth",
    "shrinkage": "pull",
    "accuracy": "accuracy",
    "log loss": "log_loss",
    "temperature": "temperature",
    "weight": "weight",
    "proportion": "share",
}
OF_RODEO_CLASSIFIER = {
    "mean bandwidths": "bandwidths_",
    "z-scores": "zscores_",
    "initial bandwidth": "initial_bandwidth_",
    "relevant": "relevant_",
    "importances": "feature_importances_",
    "class prior": "class_prior_",
    "class count": "class_count_",
}
OF_EXPLANATION = {
    "label": "label",
    "rival": "rival",
    "probability": "probability",
    "base": "base",
    "evidence": "evidence",
    "evidence error": "evidence_error",
    "conditional": "conditional",
    "supporting rows": "rows",
    "support": "shares",
    "effective rows": "effective_rows",
    "support of a group": "group_share",
    "nearest class": "nearest",
    "typicality": "typicality",
    "novel": "novel",
    "outlyingness": "novelty_parts",
    "rows behind": "stands_for",
    "range of the nearest class": "nearest_range",
}
OF_DESCRIPTION = {
    "markers": "markers",
    "direction": "direction",
    "effect": "effect",
    "p-value": "pvalue",
    "typical": "typical",
    "others": "others",
    "background": "background",
    "evidence": "evidence",
    "order": "order",
    "typical range": "typical_range",
    "range of others": "others_range",
    "background range": "background_range",
    "frequencies": "shares",
    "often missing": "often_missing",
    "frequency of missing values": "missing_shares",
}
OF_CURVE = {
    "rows": "rows",
    "accuracies": "accuracies",
    "log losses": "mean_log_losses",
    "recalls": "recalls",
    "probabilities": "proba",
}


def member_scores(pool: Any) -> Mapping[str, Any]:
    """Return how the candidates of a pool did."""
    return pool.member_scores_


def marker_selector(**parameters: Any) -> Any:
    """Return a selector of variables that differ between classes."""
    return MarkerSelector(**parameters)


def relevance_selector(**parameters: Any) -> Any:
    """Return the selector of algorithm 2."""
    return RodeoSelector(**parameters)


# ---------------------------------------------------------------------------------- arrays and tolerances

CLOSE = 1e-10


@dataclass(frozen=True)
class Numbers:
    """An array, and by how much of its largest number it may differ; 0 means by no bit."""

    values: np.ndarray
    tolerance: float = 0.0


Named = Iterator[tuple[str, Numbers]]


def exact(values: Any) -> Numbers:
    """Numbers that may not change."""
    return Numbers(as_array(values))


def close(values: Any) -> Numbers:
    """Numbers whose last bits may change."""
    return Numbers(as_array(values), CLOSE)


def as_array(values: Any) -> np.ndarray:
    """Return an array that a file holds without pickle: objects as text."""
    array = np.asarray(values)
    return array.astype(str) if array.dtype == object else array


def attributes(title: str, of: Any, names: Mapping[str, str], tag: Callable[[Any], Numbers] = exact) -> Named:
    """Yield attributes that are not None, by the names of arrays."""
    for name, attribute in names.items():
        values = getattr(of, attribute)
        if values is not None:
            yield f"{title}/{name}", tag(values)


# -------------------------------------------------------------------------------------------------- pools


def pools() -> Named:
    """Yield the numbers of pools of all tables."""
    for table in plain_tables():
        for priors in ("empirical", "uniform"):
            pool = Pool(random_state=0, priors=priors).fit(table.X, table.y)
            yield from of_pool(f"pool/{table.name}, {priors} priors", pool, table)
    for table in (*pool_tables(), *long_tables()):
        yield from of_pool(f"pool/{table.name}", fitted_pool(table), table)


def fitted_pool(table: ReferenceTable, **parameters: Any) -> Any:
    """Fit a pool to a table."""
    pool = Pool(**{"random_state": 0, **table.parameters, **parameters})
    return pool.fit(table.X, table.y, sample_weight=table.weights, groups=table.groups)


def of_pool(title: str, pool: Any, table: ReferenceTable) -> Named:
    """Yield what a pool has learnt and what it says of new rows."""
    yield from attributes(title, pool, OF_POOL)
    for name, column in OF_MEMBER_SCORES.items():
        yield f"{title}/member scores/{name}", exact(member_scores(pool)[column])
    for m, member in enumerate(pool.members_):
        yield f"{title}/member {m}/probabilities", exact(member.predict_proba(table.new_rows))
        yield f"{title}/member {m}/log densities", exact(member.log_density(table.new_rows))
    yield from of_predictions(title, pool, table.new_rows)
    yield from of_trust(title, pool, table.new_rows)
    yield from attributes(f"{title}/explain", pool.explain(some(table.new_rows)), OF_EXPLANATION)
    against = pool.explain(some(table.new_rows), against=pool.classes_[0], n_rows=2)
    yield from attributes(f"{title}/explain against", against, OF_EXPLANATION)
    yield from attributes(f"{title}/describe", pool.describe(), OF_DESCRIPTION)


def of_predictions(title: str, model: Any, rows: Any, tag: Callable[[Any], Numbers] = exact) -> Named:
    """Yield labels, probabilities and densities of rows."""
    yield f"{title}/labels", tag(model.predict(rows))
    yield f"{title}/probabilities", tag(model.predict_proba(rows))
    yield f"{title}/log probabilities", tag(model.predict_log_proba(rows))
    yield f"{title}/joint log probabilities", tag(model.predict_joint_log_proba(rows))
    yield f"{title}/log densities", tag(model.log_density(rows))
    n = len(model.classes_)
    costs = np.random.default_rng(0).uniform(0.5, 3.0, (n, n)) * (1.0 - np.eye(n))
    yield f"{title}/decisions", tag(model.decide(rows, costs))
    yield f"{title}/decisions or none", tag(model.decide(rows, costs, reject_cost=0.1))


def of_trust(title: str, model: Any, rows: Any, tag: Callable[[Any], Numbers] = exact) -> Named:
    """Yield typicality, novelty and prediction sets of rows."""
    yield f"{title}/typicality", tag(model.typicality(rows))
    for level in (0.01, 0.1):
        yield f"{title}/novel at {level}", tag(model.is_novel(rows, level))
    for coverage in (0.8, 0.95):
        yield f"{title}/set of {coverage}", tag(model.predict_set(rows, coverage))
    assessment = model.assess(rows)
    yield f"{title}/typicality scores", tag(assessment.scores)
    yield f"{title}/novelty", tag(assessment.novelty)


def some(rows: Any) -> Any:
    """Return the rows to explain: the first and the last ones."""
    chosen = np.r_[0:3, len(rows) - 2 : len(rows)]
    return take(rows, chosen)


def take(rows: Any, at: Any) -> Any:
    """Return rows of an array or of a frame."""
    return rows.iloc[at] if hasattr(rows, "iloc") else rows[at]


# ------------------------------------------------------- the same pools, files and rows by other routes


def routes() -> Named:
    """Yield the numbers of pools that were saved, that use threads, and that see rows one by one."""
    for table in pool_tables():
        if table.name in ("groups and weights", "everything", "centroids", "drawn rows, categories"):
            pool = fitted_pool(table)
            yield from of_routes(f"route/{table.name}", pool, table)
            yield from of_loaded(f"loaded/{table.name}", pool, table.new_rows)


def of_routes(title: str, pool: Any, table: ReferenceTable) -> Named:
    """Yield predictions with two threads, of single rows and of slices of rows."""
    threads = fitted_pool(table, n_jobs=2)
    yield f"{title}/two threads/probabilities", exact(threads.predict_proba(table.new_rows))
    yield f"{title}/two threads/evidence", exact(threads.explain(some(table.new_rows)).evidence)
    rows = table.new_rows
    for name, size in {"one by one": 1, "in slices": 4}.items():
        slices = [take(rows, slice(i, i + size)) for i in range(0, len(rows), size)]
        for array, method in {
            "probabilities": pool.predict_proba,
            "log densities": pool.log_density,
            "typicality": pool.typicality,
        }.items():
            yield f"{title}/{name}/{array}", close(np.concatenate([method(part) for part in slices]))
        explanations = [pool.explain(part) for part in slices]
        for array in ("evidence", "outlyingness"):
            parts = [getattr(explanation, OF_EXPLANATION[array]) for explanation in explanations]
            yield f"{title}/{name}/{array}", close(np.concatenate(parts))


def of_loaded(title: str, model: Any, rows: Any) -> Named:
    """Yield the numbers of a classifier after it was saved and loaded."""
    loaded = saved_and_loaded(model)
    yield from of_predictions(title, loaded, rows)
    yield from of_trust(title, loaded, rows)
    yield from attributes(f"{title}/explain", loaded.explain(some(rows)), OF_EXPLANATION)
    yield from attributes(f"{title}/describe", loaded.describe(), OF_DESCRIPTION)


def saved_and_loaded(model: Any) -> Any:
    """Return a model as a file gives it back."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.corral"
        save_model(model, path)
        return load_model(path)


def parts_and_folds() -> Named:
    """Yield the numbers of pools that learn rows in parts, and of rows that were held out."""
    tables = {table.name: table for table in pool_tables()}
    for name in ("groups", "categories"):
        table = tables[name]
        held_out = HeldOut.of_folds(Pool(random_state=0), table.X, table.y, cv=3, groups=table.groups)
        yield f"held out/{name}/probabilities", exact(held_out.proba)
        yield f"held out/{name}/rows", exact(held_out.positions)
        scores = held_out.scores()
        yield f"held out/{name}/scores", exact([scores.accuracy, scores.log_loss, scores.calibration_error])
    table = tables["missing values"]
    pool = Pool(random_state=0).partial_fit(table.X[:70], table.y[:70])
    pool.partial_fit(table.X[70:], table.y[70:])
    yield "parts/probabilities", exact(pool.predict_proba(table.new_rows))
    yield "parts/selection frequency", exact(pool.selection_frequency(3, random_state=0))


# --------------------------------------------------------------------------------------------------- Dask


def on_dask() -> Named:
    """Yield the numbers of pools that learn Dask collections, and predictions of collections."""
    with dask.config.set(scheduler="synchronous"):
        for table in compressed_tables():
            pool = DaskPool(random_state=0, **table.parameters, block_rows=100).fit(*collections(table))
            yield from of_dask_pool(f"dask/{table.name}", pool, table)
        for table in pool_tables():
            if table.name in ("groups and weights", "everything"):
                pool = DaskPool(random_state=0, block_rows=50).fit(*collections(table))
                yield from of_dask_pool(f"dask/{table.name}", pool, table)


def of_dask_pool(title: str, pool: Any, table: ReferenceTable) -> Named:
    """Yield the numbers of a pool that has learnt a collection."""
    local = pool.to_local()
    names = {name: attribute for name, attribute in OF_POOL.items() if name != "number of duplicates"}
    yield from attributes(title, pool, names, close)
    yield from of_predictions(title, local, table.new_rows, close)
    yield from of_trust(title, local, table.new_rows, close)
    yield from attributes(f"{title}/explain", local.explain(some(table.new_rows)), OF_EXPLANATION, close)
    yield from attributes(f"{title}/describe", local.describe(), OF_DESCRIPTION, close)
    rows = collection(table.new_rows, 3)
    yield from of_blocks(f"{title}/blocks", pool, rows)


def of_blocks(title: str, model: Any, rows: Any) -> Named:
    """Yield predictions of a collection, block by block."""
    for name in ("predict", "predict_proba", "typicality", "is_novel", "predict_set"):
        method = getattr(model, name, None)
        if method is not None:
            yield f"{title}/{name}", close(method(rows).compute())


def collections(table: ReferenceTable) -> list[Any]:
    """Return rows, classes, weights and groups as collections with the same partitions."""
    parts = [table.X, table.y, table.weights, table.groups]
    return [None if part is None else collection(part, 70) for part in parts]


def collection(rows: Any, size: int) -> Any:
    """Return rows as a Dask collection with blocks of a size."""
    if hasattr(rows, "iloc"):
        return dd.from_pandas(rows, chunksize=size, sort=False)
    return da.from_array(rows, chunks=(size, *rows.shape[1:]))


# ------------------------------------------------------------------------------------------------- Rodeo


def rodeo_classifiers() -> Named:
    """Yield the numbers of RodeoClassifier with all its parameters."""
    for table in plain_tables():
        for name, weighted, parameters in rodeo_settings():
            model = RodeoClassifier(random_state=0, **parameters)
            model.fit(table.X, table.y, sample_weight=table.weights if weighted else None)
            yield from of_rodeo_classifier(f"rodeo classifier/{table.name}, {name}", model, table.new_rows)
    for table in pool_tables():
        if table.name in ("missing values", "everything", "duplicates", "odd columns"):
            for bandwidth in ("local", "class"):
                model = RodeoClassifier(random_state=0, bandwidth=bandwidth)
                model.fit(table.X, table.y, sample_weight=table.weights, groups=table.groups)
                title = f"rodeo classifier/{table.name}, {bandwidth} bandwidths"
                yield from of_rodeo_classifier(title, model, table.new_rows)
                yield from of_trust(title, model, table.new_rows)
            yield from of_loaded(f"loaded/rodeo classifier, {table.name}", model, table.new_rows)


def rodeo_settings() -> Iterator[tuple[str, bool, dict[str, Any]]]:
    """List a name, whether to weigh rows, and parameters of RodeoClassifier."""
    for scale in ("range", "standard", "rank", None):
        yield f"scale {scale}", False, {"scale": scale}
        yield f"scale {scale}, weights", True, {"scale": scale}
    for scale in ("range", "rank"):
        for bandwidth in ("local", "class"):
            for features in ("all", "selected"):
                name = f"{bandwidth} bandwidths, {features} variables, scale {scale}"
                yield name, False, {"bandwidth": bandwidth, "features": features, "scale": scale}
    yield "sequential", True, {"update": "sequential"}
    yield "empirical priors, beta, c0", True, {"priors": "empirical", "beta": 0.7, "c0": 0.5}
    yield "floor, cutpoint", False, {"min_bandwidth": 0.2, "cutpoint": -0.5, "features": "selected"}


def of_rodeo_classifier(title: str, model: Any, rows: Any) -> Named:
    """Yield what a RodeoClassifier has learnt and what it says of new rows."""
    yield from attributes(title, model, OF_RODEO_CLASSIFIER)
    yield from of_predictions(title, model, rows)
    yield f"{title}/local bandwidths", exact(model.local_bandwidths(rows))
    explanation = model.explain(some(rows))
    yield from attributes(f"{title}/explain", explanation, OF_EXPLANATION)
    yield f"{title}/explain/bandwidths", exact(explanation.bandwidths)
    yield from of_path(title, model.bandwidth_path(take(rows, slice(0, 1)), model.classes_[0]))


def of_path(title: str, path: Any) -> Named:
    """Yield how the Rodeo has chosen bandwidths."""
    yield f"{title}/path/bandwidths", exact(path.bandwidths)
    yield f"{title}/path/ratios", exact(path.ratios)


def other_rodeo_estimators() -> Named:
    """Yield the numbers of selectors, densities, LSPClassifier, and of RodeoClassifier with Dask."""
    for table in plain_tables():
        yield from of_selectors(table.name, table, None)
        for scale in ("range", "standard", None):
            density = RodeoDensity(scale=scale).fit(table.X, sample_weight=table.weights)
            yield from of_density(f"density/{table.name}, scale {scale}", density, table.new_rows)
        yield from of_lspc(f"lspc/{table.name}", table)
    for table in pool_tables():
        if table.name in ("groups", "missing values", "everything", "duplicates"):
            yield from of_selectors(table.name, table, table.groups)
            density = RodeoDensity().fit(table.X, sample_weight=table.weights)
            yield from of_density(f"density/{table.name}", density, table.new_rows)
        if table.name in ("everything", "duplicates"):
            yield from of_density(f"loaded/density, {table.name}", saved_and_loaded(density), table.new_rows)
    with dask.config.set(scheduler="synchronous"):
        table = next(plain_tables())
        model = RodeoClassifier(random_state=0).fit(table.X, table.y)
        yield from of_blocks("rodeo classifier/blocks", model, collection(table.new_rows, 4))
    yield "rodeo classifier/selection frequency", exact(model.selection_frequency(3, random_state=0))


def of_selectors(name: str, table: ReferenceTable, groups: Any) -> Named:
    """Yield the variables that two selectors choose."""
    given = {"sample_weight": table.weights, "groups": groups}
    markers = marker_selector().fit(table.X, table.y, **given)
    yield f"marker selector/{name}/selected", exact(markers.get_support())
    yield from attributes(f"marker selector/{name}/describe", markers.describe(), OF_DESCRIPTION)
    relevance = relevance_selector(random_state=0).fit(table.X, table.y, **given)
    yield f"relevance selector/{name}/selected", exact(relevance.get_support())
    for array in ("relevant", "mean bandwidths", "z-scores"):
        values = getattr(relevance, OF_RODEO_CLASSIFIER[array])
        yield f"relevance selector/{name}/{array}", exact(values)
    loaded = saved_and_loaded(markers)
    yield f"loaded/marker selector, {name}/selected", exact(loaded.get_support())


def of_density(title: str, density: Any, rows: Any) -> Named:
    """Yield what a RodeoDensity says of rows, and rows that it draws."""
    yield f"{title}/log densities", exact(density.score_samples(rows))
    yield f"{title}/bandwidths", exact(density.local_bandwidths(rows))
    yield f"{title}/sample", exact(density.sample(5, random_state=0))
    yield from of_path(title, density.bandwidth_path(take(rows, slice(0, 1))))


def of_lspc(title: str, table: ReferenceTable) -> Named:
    """Yield probabilities of LSPClassifier, also after it was saved."""
    model = LSPClassifier(random_state=0).fit(table.X, table.y)
    yield f"{title}/probabilities", exact(model.predict_proba(table.new_rows))
    yield f"{title}/loaded", exact(saved_and_loaded(model).predict_proba(table.new_rows))


# ----------------------------------------------------------------------------------------- sample sizes


def sample_sizes() -> Named:
    """Yield learning curves, and the steps of algorithm 4."""
    for table in (next(plain_tables()), *pool_tables()):
        if table.name in ("iris", "groups and weights", "everything"):
            curve = LearningCurve.from_estimator(fitted_pool(table), goal=0.9, random_state=0)
            yield from of_curve(f"curve/{table.name}", curve)
    table = next(plain_tables())
    curve = estimate_sample_sizes(table.X, table.y, goal=0.98, random_state=0)
    yield from of_curve("curve/estimate", curve)
    bound = {
        "method": "bound",
        "tolerance": 2.0,
        "initial_size": 10,
        "test_size": 10,
        "step": 9,
        "random_state": 0,
    }
    for allocation in ("proportional", "optimal"):
        for empty in ("none", "all"):
            sizes = estimate_sample_sizes(table.X, table.y, **bound, allocation=allocation, empty=empty)
            yield from of_bound(f"bound/{allocation}, {empty}", sizes)


def of_curve(title: str, curve: Any) -> Named:
    """Yield a learning curve as measured, extrapolated and inverted."""
    yield from attributes(f"{title}/measured", curve.measured, OF_CURVE)
    ahead = [curve.n_rows, 2 * curve.n_rows, 8 * curve.n_rows, math.inf]
    yield f"{title}/accuracy", exact([curve.accuracy(n) for n in ahead])
    yield f"{title}/log loss", exact([curve.log_loss(n) for n in ahead])
    labels = curve.classes.tolist()
    yield f"{title}/recall", exact([curve.recall(label, n) for label in labels for n in ahead])
    needed = [[*goal.rows, *goal.class_rows, goal.probability] for goal in curve.needed]
    yield f"{title}/needed", exact(needed)


def of_bound(title: str, found: Any) -> Named:
    """Yield the steps of algorithm 4."""
    steps = [[step.epsilon, step.accuracy, *step.sizes, *step.r, *step.A, *step.B] for step in found.steps]
    yield f"{title}/steps", exact(steps)
    if found.extrapolation is not None:
        further = found.extrapolation
        yield f"{title}/extrapolation", exact([further.total, further.low, further.high, *further.sizes])


# ------------------------------------------------------------------------------------ writing, comparing

SECTIONS = (
    pools,
    routes,
    parts_and_folds,
    on_dask,
    rodeo_classifiers,
    other_rodeo_estimators,
    sample_sizes,
)


def compute_all() -> dict[str, Numbers]:
    """Compute all arrays, by name, and print how long each section keeps a core busy."""
    arrays: dict[str, Numbers] = {}
    for section in SECTIONS:
        start = time.process_time()
        for name, numbers in section():
            if name in arrays:
                raise ValueError(f"two arrays have the name {name!r}")
            arrays[name] = numbers
        print(f"{section.__name__}: {time.process_time() - start:.0f} s", flush=True)
    return arrays


def write(path: Path, arrays: Mapping[str, Numbers]) -> None:
    """Write all arrays to a file."""
    np.savez_compressed(path, **{name: numbers.values for name, numbers in arrays.items()})
    print(f"{len(arrays)} arrays in {path}")


def compare(path: Path, arrays: Mapping[str, Numbers], intended: Sequence[str], tolerance: float) -> bool:
    """Print how arrays differ from those of a file; return whether all differences are intended."""
    with np.load(path) as file:
        reference = dict(file)
    differing = {
        name: distance(reference[name], numbers.values)
        for name, numbers in arrays.items()
        if name in reference and not agree(reference[name], numbers, tolerance)
    }
    lost = sorted(reference.keys() - arrays.keys())
    for name, difference in sorted(differing.items(), key=lambda item: -item[1]):
        print(f"{difference:.3g}  {name}{mark(name, intended)}")
    for name in lost:
        print(f"only in {path}: {name}{mark(name, intended)}")
    for name in sorted(arrays.keys() - reference.keys()):
        print(f"only computed: {name}")
    unintended = [name for name in [*differing, *lost] if not is_intended(name, intended)]
    print(f"{len(arrays)} arrays, {len(differing)} differ, {len(lost)} are missing", end="")
    print(f", {len(unintended)} of these not intended")
    return not unintended


def is_intended(name: str, patterns: Sequence[str]) -> bool:
    """Tell whether a pattern names an array."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def mark(name: str, patterns: Sequence[str]) -> str:
    """Return what follows the name of an array that may differ."""
    return "  (intended)" if is_intended(name, patterns) else ""


def agree(reference: np.ndarray, numbers: Numbers, tolerance: float) -> bool:
    """Tell whether an array is that of the file, to the larger one of two tolerances."""
    tolerance = max(tolerance, numbers.tolerance)
    if tolerance == 0.0:
        return same_bits(reference, numbers.values)
    return distance(reference, numbers.values) <= tolerance


def same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    """Tell whether two arrays have the same type, shape and bits, or the same text."""
    if one.dtype.kind == other.dtype.kind == "U":
        return np.array_equal(one, other)
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest difference of two arrays, relative to the largest finite number of the first.

    It is infinite if they have another shape, another text, or NaN and infinity in other places.
    """
    if one.shape != other.shape or one.dtype.kind != other.dtype.kind:
        return math.inf
    if one.dtype.kind not in "fiub":
        return 0.0 if np.array_equal(one, other) else math.inf
    one, other = one.astype(float), other.astype(float)
    finite = np.isfinite(one) & np.isfinite(other)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
        return math.inf
    one, other = one[finite], other[finite]
    size = np.abs(one).max(initial=0.0)
    return float(np.abs(one - other).max(initial=0.0)) / (size or 1.0)


def main() -> int:
    """Write the numbers, or compare them with those written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", type=Path, metavar="FILE")
    action.add_argument("--compare", type=Path, metavar="FILE")
    parser.add_argument("--intended", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--tolerance", type=float, default=0.0, metavar="NUMBER")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    arrays = compute_all()
    if arguments.write:
        write(arguments.write, arrays)
        return 0
    same = compare(arguments.compare, arrays, arguments.intended, arguments.tolerance)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
