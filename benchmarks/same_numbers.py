"""Whether a change of the code leaves every number as it was.

``python -m benchmarks.same_numbers --write FILE`` before it, and ``--compare FILE`` after it.

Predictions, bandwidths, scores and explanations of all estimators, in many settings, on three data sets.
"""

import argparse
import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris, load_wine

from corral import (
    LSPClassifier,
    MarkerSelector,
    RodeoClassifier,
    RodeoClassifierCV,
    RodeoDensity,
    RodeoSelector,
    estimate_sample_sizes,
)
from corral.datasets import make_ten_groups

ATTRIBUTES = ("bandwidths_", "zscores_", "initial_bandwidth_", "class_prior_", "class_count_", "relevant_")


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return rows and labels of three sets, small enough for all settings."""
    return {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "ten groups": make_ten_groups(12, random_state=0),
    }


def numbers() -> Iterator[tuple[str, np.ndarray]]:
    """Compute all numbers, each with its name."""
    for name, (X, y) in data_sets().items():
        weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
        queries = np.vstack([X[::7] + 0.01, X.mean(axis=0), X.max(axis=0) * 2.0])
        for parameters, weighted in settings():
            model = RodeoClassifier(random_state=0, **parameters)
            model.fit(X, y, sample_weight=weights if weighted else None)
            title = f"{name} {parameters} weighted={weighted}"
            yield from of_classifier(title, model, queries)
        for priors in ("empirical", "uniform"):
            model = RodeoClassifierCV(random_state=0, priors=priors).fit(X, y)
            yield f"{name} CV {priors}", model.predict_proba(queries)
            yield f"{name} CV {priors} evidence", model.explain(queries[:20]).evidence
            yield f"{name} CV {priors} scores", np.array([model.best_score_, model.best_log_loss_])
            yield f"{name} CV {priors} weights", model.weights_
        frequency = RodeoClassifier().fit(X, y).selection_frequency(3, random_state=0)
        yield f"{name} selection frequency", frequency
        for scale in ("range", None):
            density = RodeoDensity(scale=scale).fit(X, sample_weight=weights)
            yield f"{name} density {scale}", density.score_samples(queries)
            yield f"{name} density {scale} bandwidths", density.local_bandwidths(queries)
            yield f"{name} density {scale} sample", density.sample(5, random_state=0)
        selector = RodeoSelector(random_state=0).fit(X, y)
        yield f"{name} selector", selector.get_support()
        yield f"{name} selector bandwidths", selector.bandwidths_
        yield f"{name} markers", MarkerSelector().fit(X, y).markers_
        yield f"{name} LSPC", LSPClassifier(random_state=0).fit(X, y).predict_proba(queries)
    X, y = data_sets()["iris"]
    found = estimate_sample_sizes(X, y, tolerance=2.0, initial_size=10, test_size=10, step=9, random_state=0)
    yield "sample sizes", np.concatenate([[step.epsilon, *step.sizes] for step in found.steps])


def settings() -> Iterator[tuple[dict[str, object], bool]]:
    """List parameters of RodeoClassifier, with and without weights."""
    scales = ("range", "standard", "rank", None)
    yield from (({"scale": scale}, w) for scale, w in itertools.product(scales, (False, True)))
    kinds = itertools.product(("all", "selected"), ("range", "rank"))
    yield from (({"bandwidth": "class", "features": f, "scale": s}, False) for f, s in kinds)
    yield {"update": "sequential"}, True
    yield {"priors": "empirical", "beta": 0.7, "c0": 0.5}, True
    yield {"min_bandwidth": 0.2, "cutpoint": -0.5, "features": "selected"}, False


def of_classifier(title: str, model: object, queries: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Compute the numbers of one classifier."""
    yield f"{title}: probabilities", model.predict_proba(queries)
    yield f"{title}: log densities", model.log_density(queries)
    yield f"{title}: local bandwidths", model.local_bandwidths(queries)
    explanation = model.explain(queries[:5])
    yield f"{title}: evidence", explanation.evidence
    yield f"{title}: support", explanation.rows
    yield f"{title}: shares", explanation.shares
    for attribute in ATTRIBUTES:
        yield f"{title}: {attribute}", getattr(model, attribute)


def main() -> None:
    """Write the numbers, or compare them with those written."""
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", type=Path)
    action.add_argument("--compare", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    found = dict(numbers())
    if arguments.write:
        np.savez_compressed(arguments.write, **found)
        print(f"{len(found)} arrays in {arguments.write}")
        return
    with np.load(arguments.compare) as before:
        known = dict(before)
    different = {name: _distance(known[name], found[name]) for name in known if name in found}
    different = {name: distance for name, distance in different.items() if distance != 0.0}
    for name, distance in sorted(different.items(), key=lambda item: -item[1]):
        print(f"{distance:.3g}  {name}")
    print(
        f"{len(found)} arrays, {len(different)} differ, {len(known.keys() ^ found.keys())} on one side only"
    )


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest relative difference, 0 where all bits are the same."""
    if one.shape != other.shape:
        return np.inf
    if np.array_equal(one, other):
        return 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.abs(one.astype(float) - other) / np.maximum(np.abs(one), 1e-300)
    return float(np.nanmax(relative))


if __name__ == "__main__":
    main()
