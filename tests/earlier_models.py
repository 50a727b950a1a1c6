"""Model files of earlier versions, and what those versions said by them.

Run once with the source of a version, before it is out: ``python tests/earlier_models.py`` writes a folder of
its models, which every later version has to read. A folder that is there is never written again.
"""

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone

from corral import (
    LSPClassifier,
    RodeoClassifier,
    RodeoClassifierCV,
    RodeoDensity,
    RodeoSelector,
    save_model,
)

HERE = Path(__file__).parent
ANSWERS = "answers.npz"
NAMES = ["length", "width", "höhe <b>", "noise"]

ESTIMATORS = {
    "local": RodeoClassifier(),
    "local_standard": RodeoClassifier(scale="standard", update="sequential", beta=0.8, c0=0.5),
    "local_selected": RodeoClassifier(features="selected", cutpoint=-0.5),
    "local_whiten": RodeoClassifier(scale="whiten", temperature=2.0, lapse=0.01),
    "local_none": RodeoClassifier(scale=None, min_bandwidth=0.05, priors="empirical"),
    "class_rank": RodeoClassifier(bandwidth="class", scale="rank", features="selected", cutpoint=-0.5),
    "class_separate": RodeoClassifier(bandwidth="class", features="separate", priors=[0.2, 0.3, 0.5]),
    "class_whiten": RodeoClassifier(bandwidth="class", scale="whiten"),
    "class_shadow": RodeoClassifier(bandwidth="class", rule="shadow", random_state=0),
    "initial": RodeoClassifier(bandwidth="initial", scale="standard"),
    "search": RodeoClassifierCV(random_state=0),
    "search_uniform": RodeoClassifierCV(priors="uniform", random_state=0),
    "lspc": LSPClassifier(sigmas=[0.5, 1.0], alphas=(0.1, 1.0), cv=3, random_state=0),
    "lspc_rank": LSPClassifier(scale="rank", sigmas=(1.0,), alphas=(0.1,), random_state=0),
    "selector": RodeoSelector(cutpoint=-0.5),
    "density": RodeoDensity(),
    "density_none": RodeoDensity(scale=None, update="sequential", min_bandwidth=0.1),
}
WEIGHTED = ("local", "local_whiten", "class_rank", "class_separate", "search", "lspc", "selector", "density")
METHODS = ("predict", "predict_proba", "log_density", "score_samples", "local_bandwidths", "transform")
ATTRIBUTES = ("class_prior_", "bandwidths_", "zscores_", "relevant_")


def answers(model, queries):
    """All that a fitted model says about itself and some queries, by name."""
    said = {name: getattr(model, name)(queries) for name in METHODS if hasattr(model, name)}
    said |= {name: getattr(model, name) for name in ATTRIBUTES if hasattr(model, name)}
    return {name: np.asarray(value) for name, value in said.items()}


def training_data():
    """Rows of three classes, two variables of which depend on each other, some rows twice, and weights."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], [14, 10, 8])
    X = rng.uniform(0.0, 10.0, size=(codes.size, len(NAMES)))
    X[:, 0] = 3.0 * codes + rng.normal(size=codes.size)
    X[:, 1] += 0.8 * X[:, 0]
    X[codes == 1, 2] = rng.normal(5.0, 0.2, 10)
    X[3] = X[2]
    weights = rng.choice([0.0, 0.25, 0.7, 1.0, 2.0, 3.5], codes.size)
    return X, np.array(["ant", "bee", "cat"])[codes], weights


def queries_near_and_far():
    X, _, _ = training_data()
    rng = np.random.default_rng(1)
    return np.vstack([X[::9], rng.uniform(0.0, 10.0, size=(4, len(NAMES))), np.full((1, len(NAMES)), 40.0)])


def fitted_models():
    """Every estimator by its name, some with weights as well; those know the names of their columns."""
    X, y, weights = training_data()
    for name, estimator in ESTIMATORS.items():
        yield name, clone(estimator).fit(X, y)
    frame = pd.DataFrame(X, columns=NAMES)
    for name in WEIGHTED:
        yield f"{name}_weighted", clone(ESTIMATORS[name]).fit(frame, y, sample_weight=weights)


def write():
    folder = HERE / f"models_{version('corral').replace('.', '_')}"
    folder.mkdir()
    queries, kept = queries_near_and_far(), {}
    for name, model in fitted_models():
        save_model(model, folder / f"{name}.corral")
        rows = pd.DataFrame(queries, columns=NAMES) if hasattr(model, "feature_names_in_") else queries
        kept |= {f"{name}/{of}": value for of, value in answers(model, rows).items()}
    np.savez_compressed(folder / ANSWERS, queries=queries, **kept)


if __name__ == "__main__":
    write()
