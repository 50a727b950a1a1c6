"""Compare all results of this checkout with the results of another checkout.

Run ``python -m benchmarks.same_numbers --write FILE`` in the checkout before a change, and ``--compare FILE``
in the checkout after the change, on the same machine and with the same libraries. A run needs about two
minutes of one core.

All estimators are fitted to small tables with missing values, categories, groups, weights, duplicates and
compressed classes. The file has one array for each prediction, explanation and fitted attribute. The arrays
of both checkouts must be equal in every bit. Arrays that were computed for rows one by one, in slices or with
Dask may differ by 1e-10 of their largest number. Any other difference and any missing array is printed, and
the exit status is 1, unless the name of the array matches a pattern: ``--intended 'pool/iris*'``, which may
be repeated. ``--tolerance 1e-10`` allows such a difference in all arrays; use it for a change in the order of
a sum.

Names of arrays must stay the same if classes, parameters or attributes are renamed. So the tables at the top
of the file have the name of each array, and the attribute or the function that returns the array.
"""

import argparse
import fnmatch
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
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
from corral import (
    CorralClassifier,
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
from corral.dask import DaskCorralClassifier

Arrays = Iterator[tuple[str, Any]]
Readers = Mapping[str, str | Callable[..., Any]]

# Arrays whose last bits may differ.
CLOSE = ("*/one by one/*", "*/in slices/*", "dask/*", "*/blocks/*")
TOLERANCE = 1e-10

# ---------------------------------------------------- names of arrays, and how they are read from an object


def same(*names: str) -> Readers:
    """Return readers of attributes that have the same names as the arrays."""
    return {name: name for name in names}


def member_score(name: str) -> Callable[[Any], Any]:
    """Return a reader of one column of the scores of all members."""
    return lambda pool: pool.member_scores_[name]


POOL: Readers = {
    "member weights": "member_weights_",
    "accuracy": "cv_accuracy_",
    "log loss": "cv_log_loss_",
    "balanced accuracy": "cv_balanced_accuracy_",
    "recall": "cv_recall_",
    "markers": "markers_",
    "importances": "feature_importances_",
    "class prior": "class_prior_",
    "class count": "class_count_",
}
LOCAL_POOL: Readers = {
    **POOL,
    "number of duplicates": "n_duplicates_",
    "member scores/scale": member_score("scale"),
    "member scores/bandwidth": member_score("bandwidth"),
    "member scores/shrinkage": member_score("pull"),
    "member scores/accuracy": member_score("accuracy"),
    "member scores/log loss": member_score("log_loss"),
    "member scores/temperature": member_score("temperature"),
    "member scores/weight": member_score("weight"),
    "member scores/proportion": member_score("share"),
}
RODEO_CLASSIFIER: Readers = {
    "mean bandwidths": "bandwidths_",
    "z-scores": "zscores_",
    "initial bandwidth": "initial_bandwidth_",
    "relevant": "relevant_",
    "importances": "feature_importances_",
    "class prior": "class_prior_",
    "class count": "class_count_",
}
EXPLANATION: Readers = {
    **same("label", "rival", "probability", "base", "evidence", "conditional", "typicality", "novel"),
    "evidence error": "evidence_error",
    "supporting rows": "rows",
    "support": "shares",
    "effective rows": "effective_rows",
    "support of a group": "group_share",
    "nearest class": "nearest",
    "outlyingness": "novelty_parts",
    "rows behind": "stands_for",
    "range of the nearest class": "nearest_range",
}
DESCRIPTION: Readers = {
    **same("markers", "direction", "effect", "typical", "others", "background", "evidence", "order"),
    "p-value": "pvalue",
    "typical range": "typical_range",
    "range of others": "others_range",
    "background range": "background_range",
    "frequencies": "shares",
    "often missing": "often_missing",
    "frequency of missing values": "missing_shares",
}
PREDICTIONS: Readers = {
    "labels": lambda model, rows: model.predict(rows),
    "probabilities": lambda model, rows: model.predict_proba(rows),
    "log probabilities": lambda model, rows: model.predict_log_proba(rows),
    "joint log probabilities": lambda model, rows: model.predict_joint_log_proba(rows),
    "log densities": lambda model, rows: model.log_density(rows),
    "decisions": lambda model, rows: model.decide(rows, random_costs(model)),
    "decisions or none": lambda model, rows: model.decide(rows, random_costs(model), reject_cost=0.1),
}
TYPICALITY: Readers = {
    "typicality": lambda model, rows: model.typicality(rows),
    "novel at 0.01": lambda model, rows: model.is_novel(rows, 0.01),
    "novel at 0.1": lambda model, rows: model.is_novel(rows, 0.1),
    "set of 0.8": lambda model, rows: model.predict_set(rows, 0.8),
    "set of 0.95": lambda model, rows: model.predict_set(rows, 0.95),
    "typicality scores": lambda model, rows: model.assess(rows).scores,
    "novelty": lambda model, rows: model.assess(rows).novelty,
}
PART_OF_ROWS: Readers = {
    "probabilities": lambda model, rows: model.predict_proba(rows),
    "log densities": lambda model, rows: model.log_density(rows),
    "typicality": lambda model, rows: model.typicality(rows),
    "evidence": lambda model, rows: model.explain(rows).evidence,
    "outlyingness": lambda model, rows: model.explain(rows).novelty_parts,
}
BLOCKS = ("predict", "predict_proba", "typicality", "is_novel", "predict_set")
HELD_OUT: Readers = {
    "probabilities": "proba",
    "rows": "positions",
    "scores": lambda held_out: attrgetter("accuracy", "log_loss", "calibration_error")(held_out.scores()),
}
PATH: Readers = {"path/bandwidths": "bandwidths", "path/ratios": "ratios"}
DENSITY: Readers = {
    "log densities": lambda density, rows: density.score_samples(rows),
    "bandwidths": lambda density, rows: density.local_bandwidths(rows),
    "sample": lambda density, rows: density.sample(5, random_state=0),
}
RELEVANCE: Readers = {
    "selected": lambda selector: selector.get_support(),
    **{name: RODEO_CLASSIFIER[name] for name in ("relevant", "mean bandwidths", "z-scores")},
}
CURVE: Readers = {
    "measured/rows": "measured.rows",
    "measured/accuracies": "measured.accuracies",
    "measured/log losses": "measured.mean_log_losses",
    "measured/recalls": "measured.recalls",
    "measured/probabilities": "measured.proba",
    "accuracy": lambda curve: [curve.accuracy(n) for n in sizes_ahead(curve)],
    "log loss": lambda curve: [curve.log_loss(n) for n in sizes_ahead(curve)],
    "recall": lambda curve: [
        curve.recall(label, n) for label in curve.classes.tolist() for n in sizes_ahead(curve)
    ],
    "needed": lambda curve: [[*goal.rows, *goal.class_rows, goal.probability] for goal in curve.needed],
}
BOUND: Readers = {
    "steps": lambda sizes: [
        [step.epsilon, step.accuracy, *step.sizes, *step.r, *step.A, *step.B] for step in sizes.steps
    ],
    "extrapolation": lambda sizes: (
        None
        if sizes.extrapolation is None
        else np.hstack(attrgetter("total", "low", "high", "sizes")(sizes.extrapolation))
    ),
}


def random_costs(model: Any) -> np.ndarray:
    """Draw costs (n_classes, n_classes) of wrong labels."""
    n = len(model.classes_)
    return np.random.default_rng(0).uniform(0.5, 3.0, (n, n)) * (1.0 - np.eye(n))


def sizes_ahead(curve: LearningCurve) -> list[float]:
    """Return the numbers of rows to which a curve is extrapolated."""
    return [curve.n_rows, 2 * curve.n_rows, 8 * curve.n_rows, math.inf]


def read(title: str, readers: Readers, *arguments: Any) -> Arrays:
    """Yield names and arrays: attributes of the first argument, or results of functions, except None."""
    for name, reader in readers.items():
        values = reader(*arguments) if callable(reader) else attrgetter(reader)(arguments[0])
        if values is not None:
            yield f"{title}/{name}", values


# -------------------------------------------------------------------------------------------------- pools


def pools() -> Arrays:
    """Yield arrays of pools that are fitted to all tables."""
    for table in plain_tables():
        for priors in ("empirical", "uniform"):
            pool = CorralClassifier(random_state=0, priors=priors).fit(table.X, table.y)
            yield from read_pool(f"pool/{table.name}, {priors} priors", pool, table.new_rows)
    for table in (*pool_tables(), *long_tables()):
        yield from read_pool(f"pool/{table.name}", fitted_pool(table), table.new_rows)


def fitted_pool(table: ReferenceTable, **parameters: Any) -> CorralClassifier:
    """Fit a pool to a table."""
    pool = CorralClassifier(**{"random_state": 0, **table.parameters, **parameters})
    return pool.fit(table.X, table.y, sample_weight=table.weights, groups=table.groups)


def read_pool(title: str, pool: CorralClassifier, rows: Any) -> Arrays:
    """Yield the state of a pool, and its predictions and explanations of new rows."""
    yield from read(title, LOCAL_POOL, pool)
    for m, member in enumerate(pool.members_):
        yield f"{title}/member {m}/probabilities", member.predict_proba(rows)
        yield f"{title}/member {m}/log densities", member.log_density(rows)
    yield from read_classifier(title, pool, rows)
    against = pool.explain(ends(rows), against=pool.classes_[0], n_rows=2)
    yield from read(f"{title}/explain against", EXPLANATION, against)


def read_classifier(title: str, model: Any, rows: Any) -> Arrays:
    """Yield predictions and explanations of new rows, and the description of the classes."""
    yield from read(title, PREDICTIONS, model, rows)
    yield from read(title, TYPICALITY, model, rows)
    yield from read(f"{title}/explain", EXPLANATION, model.explain(ends(rows)))
    yield from read(f"{title}/describe", DESCRIPTION, model.describe())


def ends(rows: Any) -> Any:
    """Return the rows to explain: the first three and the last two."""
    return take(rows, np.r_[0:3, len(rows) - 2 : len(rows)])


def take(rows: Any, positions: Any) -> Any:
    """Return rows of an array or of a frame."""
    return rows.iloc[positions] if hasattr(rows, "iloc") else rows[positions]


# ------------------------------------------------------- the same pools, files and rows by other routes


def routes() -> Arrays:
    """Yield arrays of pools from files, with threads, and with predictions of single rows."""
    for table in pool_tables():
        if table.name not in ("groups and weights", "everything", "centroids", "drawn rows, categories"):
            continue
        title, rows, pool = f"route/{table.name}", table.new_rows, fitted_pool(table)
        threads = fitted_pool(table, n_jobs=2)
        yield f"{title}/two threads/probabilities", threads.predict_proba(rows)
        yield f"{title}/two threads/evidence", threads.explain(ends(rows)).evidence
        for name, size in {"one by one": 1, "in slices": 4}.items():
            slices = [take(rows, slice(i, i + size)) for i in range(0, len(rows), size)]
            for array, reader in PART_OF_ROWS.items():
                yield f"{title}/{name}/{array}", np.concatenate([reader(pool, part) for part in slices])
        yield from read_classifier(f"loaded/{table.name}", saved_and_loaded(pool), rows)


def saved_and_loaded(model: Any) -> Any:
    """Write a model to a file, and read it again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.corral"
        save_model(model, path)
        return load_model(path)


def parts_and_folds() -> Arrays:
    """Yield arrays of pools that are fitted in parts, and of held-out rows."""
    tables = {table.name: table for table in pool_tables()}
    for name in ("groups", "categories"):
        table, pool = tables[name], CorralClassifier(random_state=0)
        held_out = HeldOut.of_folds(pool, table.X, table.y, cv=3, groups=table.groups)
        yield from read(f"held out/{name}", HELD_OUT, held_out)
    table = tables["missing values"]
    pool = CorralClassifier(random_state=0).partial_fit(table.X[:70], table.y[:70])
    pool.partial_fit(table.X[70:], table.y[70:])
    yield "parts/probabilities", pool.predict_proba(table.new_rows)
    yield "parts/selection frequency", pool.selection_frequency(3, random_state=0)


# --------------------------------------------------------------------------------------------------- Dask


def on_dask() -> Arrays:
    """Yield arrays of pools that are fitted to Dask collections, and predictions of collections."""
    grouped = [table for table in pool_tables() if table.name in ("groups and weights", "everything")]
    cases = [*((table, 100) for table in compressed_tables()), *((table, 50) for table in grouped)]
    with dask.config.set(scheduler="synchronous"):
        for table, block_rows in cases:
            parts = [table.X, table.y, table.weights, table.groups]
            collections = [None if part is None else collection(part, 70) for part in parts]
            pool = DaskCorralClassifier(random_state=0, **table.parameters, block_rows=block_rows)
            pool.fit(*collections)
            yield from read(f"dask/{table.name}", POOL, pool)
            yield from read_classifier(f"dask/{table.name}", pool.to_local(), table.new_rows)
            yield from read_blocks(f"dask/{table.name}/blocks", pool, collection(table.new_rows, 3))


def read_blocks(title: str, model: Any, rows: Any) -> Arrays:
    """Yield predictions of a collection, block by block."""
    for name in BLOCKS:
        if hasattr(model, name):
            yield f"{title}/{name}", getattr(model, name)(rows).compute()


def collection(rows: Any, size: int) -> Any:
    """Return rows as a Dask collection with blocks of a size."""
    if hasattr(rows, "iloc"):
        return dd.from_pandas(rows, chunksize=size, sort=False)
    return da.from_array(rows, chunks=(size, *rows.shape[1:]))


# ------------------------------------------------------------------------------------------------- Rodeo


def rodeo_classifiers() -> Arrays:
    """Yield arrays of RodeoClassifier with all its parameters."""
    for table in plain_tables():
        for name, weighted, parameters in rodeo_settings():
            model = RodeoClassifier(random_state=0, **parameters)
            model.fit(table.X, table.y, sample_weight=table.weights if weighted else None)
            yield from read_rodeo(f"rodeo classifier/{table.name}, {name}", model, table.new_rows)
    for table in pool_tables():
        if table.name in ("missing values", "everything", "duplicates", "odd columns"):
            for bandwidth in ("local", "class"):
                model = RodeoClassifier(random_state=0, bandwidth=bandwidth)
                model.fit(table.X, table.y, sample_weight=table.weights, groups=table.groups)
                title = f"rodeo classifier/{table.name}, {bandwidth} bandwidths"
                yield from read_rodeo(title, model, table.new_rows)
                yield from read(title, TYPICALITY, model, table.new_rows)
            loaded = saved_and_loaded(model)
            yield from read_classifier(f"loaded/rodeo classifier, {table.name}", loaded, table.new_rows)


def rodeo_settings() -> Iterator[tuple[str, bool, dict[str, Any]]]:
    """Yield a name, whether rows have weights, and parameters of RodeoClassifier."""
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


def read_rodeo(title: str, model: RodeoClassifier, rows: Any) -> Arrays:
    """Yield the state of a RodeoClassifier, and its predictions and explanations of new rows."""
    yield from read(title, RODEO_CLASSIFIER, model)
    yield from read(title, PREDICTIONS, model, rows)
    yield f"{title}/local bandwidths", model.local_bandwidths(rows)
    explanation = model.explain(ends(rows))
    yield from read(f"{title}/explain", {**EXPLANATION, "bandwidths": "bandwidths"}, explanation)
    yield from read(title, PATH, model.bandwidth_path(take(rows, slice(0, 1)), model.classes_[0]))


def other_rodeo_estimators() -> Arrays:
    """Yield arrays of selectors, densities, LSPClassifier, and of RodeoClassifier with Dask."""
    for table in plain_tables():
        yield from read_selectors(table)
        for scale in ("range", "standard", None):
            density = RodeoDensity(scale=scale).fit(table.X, sample_weight=table.weights)
            yield from read_density(f"density/{table.name}, scale {scale}", density, table.new_rows)
        model = LSPClassifier(random_state=0).fit(table.X, table.y)
        yield f"lspc/{table.name}/probabilities", model.predict_proba(table.new_rows)
        yield f"lspc/{table.name}/loaded", saved_and_loaded(model).predict_proba(table.new_rows)
    for table in pool_tables():
        if table.name in ("groups", "missing values", "everything", "duplicates"):
            yield from read_selectors(table)
            density = RodeoDensity().fit(table.X, sample_weight=table.weights)
            yield from read_density(f"density/{table.name}", density, table.new_rows)
        if table.name in ("everything", "duplicates"):
            loaded = saved_and_loaded(density)
            yield from read_density(f"loaded/density, {table.name}", loaded, table.new_rows)
    with dask.config.set(scheduler="synchronous"):
        table = next(plain_tables())
        model = RodeoClassifier(random_state=0).fit(table.X, table.y)
        yield from read_blocks("rodeo classifier/blocks", model, collection(table.new_rows, 4))
    yield "rodeo classifier/selection frequency", model.selection_frequency(3, random_state=0)


def read_selectors(table: ReferenceTable) -> Arrays:
    """Yield the variables that each selector selects."""
    options = {"sample_weight": table.weights, "groups": table.groups}
    markers = MarkerSelector().fit(table.X, table.y, **options)
    yield f"marker selector/{table.name}/selected", markers.get_support()
    yield from read(f"marker selector/{table.name}/describe", DESCRIPTION, markers.describe())
    yield f"loaded/marker selector, {table.name}/selected", saved_and_loaded(markers).get_support()
    relevance = RodeoSelector(random_state=0).fit(table.X, table.y, **options)
    yield from read(f"relevance selector/{table.name}", RELEVANCE, relevance)


def read_density(title: str, density: RodeoDensity, rows: Any) -> Arrays:
    """Yield densities of rows, samples from the density, and the path of bandwidths."""
    yield from read(title, DENSITY, density, rows)
    yield from read(title, PATH, density.bandwidth_path(take(rows, slice(0, 1))))


# ----------------------------------------------------------------------------------------- sample sizes


def sample_sizes() -> Arrays:
    """Yield learning curves, and the steps of algorithm 4."""
    iris = next(plain_tables())
    for table in (iris, *pool_tables()):
        if table.name in ("iris", "groups and weights", "everything"):
            curve = LearningCurve.from_estimator(fitted_pool(table), goal=0.9, random_state=0)
            yield from read(f"curve/{table.name}", CURVE, curve)
    curve = estimate_sample_sizes(iris.X, iris.y, goal=0.98, random_state=0)
    yield from read("curve/estimate", CURVE, curve)
    bound = {"method": "bound", "tolerance": 2.0, "initial_size": 10, "test_size": 10, "step": 9}
    for allocation in ("proportional", "optimal"):
        for empty in ("none", "all"):
            options = {"allocation": allocation, "empty": empty, "random_state": 0}
            sizes = estimate_sample_sizes(iris.X, iris.y, **bound, **options)
            yield from read(f"bound/{allocation}, {empty}", BOUND, sizes)


# ------------------------------------------------------------------------------------ writing, comparing

SECTIONS = (
    *(pools, routes, parts_and_folds, on_dask, rodeo_classifiers, other_rodeo_estimators),
    sample_sizes,
)


def compute_all() -> dict[str, np.ndarray]:
    """Compute all arrays, by name, and print the processor time of each section."""
    arrays: dict[str, np.ndarray] = {}
    for section in SECTIONS:
        start = time.process_time()
        for name, values in section():
            if name in arrays:
                raise ValueError(f"two arrays have the name {name!r}")
            array = np.asarray(values)
            # A file without pickle holds objects as text.
            arrays[name] = array.astype(str) if array.dtype == object else array
        print(f"{section.__name__}: {time.process_time() - start:.0f} s", flush=True)
    return arrays


def compare(path: Path, arrays: Mapping[str, np.ndarray], intended: Sequence[str], tolerance: float) -> bool:
    """Print how arrays differ from the arrays in a file; return whether all differences are intended."""
    with np.load(path) as file:
        reference = dict(file)
    differences = {
        name: math.inf if name not in arrays else distance(reference[name], arrays[name])
        for name in reference
        if name not in arrays or not agree(name, reference[name], arrays[name], tolerance)
    }
    n_unintended = 0
    for name, difference in sorted(differences.items(), key=lambda item: -item[1]):
        is_intended = matches(name, intended)
        n_unintended += not is_intended
        text = f"{difference:.3g}" if name in arrays else f"only in {path}:"
        print(f"{text}  {name}{'  (intended)' if is_intended else ''}")
    for name in sorted(arrays.keys() - reference.keys()):
        print(f"only computed: {name}")
    n_missing = len(reference.keys() - arrays.keys())
    print(f"{len(arrays)} arrays, {len(differences) - n_missing} differ, {n_missing} are missing", end="")
    print(f", {n_unintended} of these not intended")
    return n_unintended == 0


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Return whether the name of an array matches a pattern."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def agree(name: str, one: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    """Return whether two arrays agree to the larger of two tolerances, or in every bit if both are 0."""
    tolerance = max(tolerance, TOLERANCE if matches(name, CLOSE) else 0.0)
    if tolerance > 0.0 or one.dtype.kind == other.dtype.kind == "U":
        return distance(one, other) <= tolerance
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest difference of two arrays, relative to the largest finite number of the first.

    The result is infinite if shapes, texts, or positions of NaN and infinity differ.
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
    """Write the arrays, or compare the arrays with those in a file; return the exit status."""
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
    if arguments.compare:
        return not compare(arguments.compare, arrays, arguments.intended, arguments.tolerance)
    np.savez_compressed(arguments.write, **arrays)
    print(f"{len(arrays)} arrays in {arguments.write}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
