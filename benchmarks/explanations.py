"""Explanations by corral, SHAP, EBM, GaussianNB and LDA: faithfulness, noise, markers and time.

Every method explains the labels of its own model. For each row, the log odds of the most probable class
(label) against the second most probable class (rival) are a constant plus one contribution of each variable:
the evidence of corral; SHAP values of boosting (scikit-learn) by shap.TreeExplainer without background rows;
terms of EBM without pairs of variables; factors of GaussianNB; weights of LDA times the distance from the
mean of the training rows. The largest difference between the sum and the log odds is printed.

*Turned*: share of labels that change if the three variables with the largest contributions are set to typical
values of the rival (medians of its training rows), and the same for three random variables. The first share
should be much larger. Iris has only four variables, so there the shares differ little.

*Noise*: share of noise variables among the three variables with the largest contributions (two if only two
variables are not noise), and among all variables. In the ten groups and the shifted groups, noise variables
are uniform in both label and rival; waveform and anuran have columns of noise.

*Markers*: each class of the ten groups has six markers by design, each shifted group has two. A method ranks
the variables of a class: corral by the order of `describe`, the other methods by the mean absolute
contribution to the score of the class over the test rows, as in charts of SHAP values. The figure is the
share of the markers among equally many highest-ranked variables. Contributions to the score also come from
variables that make other classes likely, so the rankings answer different questions.

*Time*: processor seconds of 1,000 rows after a first call. `explain` of corral also lists training rows and
tests novelty. The first figures are wall times of `explain` and `describe` on two threads, for 1,000 rows of
the ten groups (30 variables, 10 classes of 100 rows).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from benchmarks._measure import (
    Figure,
    Options,
    is_installed,
    listed,
    print_table,
    seconds,
    time_alternately,
)
from benchmarks._trials import Trials
from benchmarks.accuracy import OWN, Data, known_sets, models_by_name
from corral import CorralClassifier, DuplicatesWarning
from corral.datasets import make_ten_groups

_MOST_SEEDS = 3
_MOST_ROWS = 300
_CHANGED = 3  # variables
_DRAWS = 5
_FIRST_CALL = 5  # rows
_MODELS = {OWN: OWN, "SHAP": "boosting", "EBM": "EBM", "GaussianNB": "GaussianNB", "LDA": "LDA"}
_NEEDS = {"SHAP": "shap", "EBM": "interpret"}
_NOISE_COLUMNS = {"anuran + 5 noise": 5, "waveform": 19}


def run(options: Options) -> Iterator[Figure]:
    """Yield times of the ten groups and means over the data sets by method, and print a table."""
    yield from _ten_groups(options)
    methods = [name for name in _MODELS if name not in _NEEDS or is_installed(_NEEDS[name], name)]
    trials, sets = Trials(options.trials), list(known_sets())
    seeds = range(min(options.seeds, _MOST_SEEDS))
    means: dict[str, dict[str, dict[str, float]]] = {name: {} for name in methods}
    for data in sets:
        for name in methods:
            results = [
                trials.measure(
                    data.name, data.size, seed, f"{name}, explained", partial(_try, data, seed, name)
                )
                for seed in seeds
            ]
            means[name][data.name] = {
                what: float(np.mean([result[what] for result in results])) for what in results[0]
            }
    for name in methods:
        yield from _figures(name, means[name])
    turned = "{turned:.2f} / {random:.2f}"
    lines = {data.name: [turned.format(**means[name][data.name]) for name in methods] for data in sets}
    print_table("turned, strongest three / three random variables", methods, lines)


def _figures(name: str, by_set: dict[str, dict[str, float]]) -> Iterator[Figure]:
    """Yield the figures of one method, as means over the data sets for which they are defined."""

    def column(what: str) -> dict[str, float]:
        return {data: numbers[what] for data, numbers in by_set.items() if what in numbers}

    turned, random = (float(np.mean([*column(what).values()])) for what in ("turned", "random"))
    yield Figure(
        f"{name}: share of labels turned by the strongest three",
        turned,
        detail=listed(column("turned"), ".2f"),
    )
    detail = f"{random:.3f}; {listed(column('random'), '.2f')}"
    yield Figure(
        f"{name}: the same, divided by that of three random variables", turned / random, detail=detail
    )
    for what, title in (
        ("noise", "share of noise among the strongest three"),
        ("marks", "share of markers that are ranked first"),
    ):
        values = column(what)
        yield Figure(f"{name}: {title}", float(np.mean([*values.values()])), digits=3, detail=listed(values))
    times = column("seconds")
    detail = listed(times, ".2f")
    yield Figure(
        f"{name}: processor time of 1,000 rows", float(np.mean([*times.values()])), unit=" s", detail=detail
    )
    largest = max(column("off").values())
    yield Figure(f"{name}: sum minus log odds, 1e-6, largest", 1e6 * largest, digits=3)


def _ten_groups(options: Options) -> Iterator[Figure]:
    X, y = make_ten_groups(100, random_state=0)
    new_rows, _ = make_ten_groups(100, random_state=1)
    model = CorralClassifier(random_state=0, n_jobs=2).fit(X, y)
    calls = {"explain": lambda: model.explain(new_rows), "describe": model.describe}
    timings = time_alternately(calls, options.repeats)
    for name, title, high in (("explain", "explain, 1,000 rows", 2.0), ("describe", "describe", np.inf)):
        detail = f"processor time {seconds(timings[name].best_cpu)}, {len(model.members_)} members"
        yield Figure(f"{title}, two threads", timings[name].best, high=high, unit=" s", detail=detail)


# ---------------------------------------------------------------------------------------------- trials


def _try(data: Data, seed: int, name: str) -> dict[str, float]:
    """Fit one model to one split, and measure its explanations of test rows."""
    X, y, X_test, _ = data.split(data.size, seed)
    model = models_by_name(seed)[_MODELS[name]]
    random = np.random.default_rng(seed)
    rows = X_test[random.permutation(len(X_test))[:_MOST_ROWS]]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", DuplicatesWarning)
        model.fit(X, y)
        explainer = _Evidence(model) if name == OWN else _Sums(model, _PARTS[name](model, X))
        explainer.explain(rows[:_FIRST_CALL])
        start = time.process_time()
        explained = explainer.explain(rows)
        numbers = {"seconds": 1000 * (time.process_time() - start) / len(rows)}
        numbers["turned"], numbers["random"] = _turned_shares(model, (X, y), rows, explained, random)
        numbers["off"] = _largest_error(model, rows, explained)
        noise = _noise(data.name, explained, rows.shape)
        if noise is not None:
            named = _strongest_three(explained.contributions)[:, : (~noise).sum(axis=1).min()]
            numbers["noise"] = float(np.take_along_axis(noise, named, axis=1).mean())
            numbers["noise_of_all"] = float(noise.mean())
        markers = _markers(data.name)
        if markers is not None:
            order = explainer.order(X_test)[:, : markers.sum(axis=1)[0]]
            numbers["marks"] = float(np.take_along_axis(markers, order, axis=1).mean())
    return numbers


def _largest_error(model: Any, rows: np.ndarray, explained: _Explained) -> float:
    """Return the largest difference between sums and log odds, except rows with a probability of 0 or 1."""
    P, labels = model.predict_proba(rows), (explained.label, explained.rival)
    label, rival = (P[np.arange(len(P)), np.searchsorted(model.classes_, each)] for each in labels)
    finite = (rival > 1e-9) & (label < 1.0)
    sums = explained.base + explained.contributions.sum(axis=1)
    return float(np.abs(sums[finite] - np.log(label[finite] / rival[finite])).max(initial=0.0))


def _strongest_three(contributions: np.ndarray) -> np.ndarray:
    """Return the indices of the three variables with the largest contributions in each row."""
    return np.argsort(-contributions, axis=1, kind="stable")[:, :_CHANGED]


def _turned_shares(
    model: Any,
    training: tuple[np.ndarray, np.ndarray],
    rows: np.ndarray,
    explained: _Explained,
    random: np.random.Generator,
) -> list[float]:
    """Measure the shares of labels that turn by the strongest three, and by three random variables."""
    X, y = training
    medians = {label: np.median(X[y == label], axis=0) for label in np.unique(y).tolist()}
    typical = np.array([medians[label] for label in explained.rival.tolist()])

    def turned(variables: np.ndarray) -> float:
        changed = rows.copy()
        np.put_along_axis(changed, variables, np.take_along_axis(typical, variables, axis=1), axis=1)
        return float(np.mean(model.predict(changed) != explained.label))

    by_chance = [
        turned(np.argsort(random.uniform(size=rows.shape), axis=1)[:, :_CHANGED]) for _ in range(_DRAWS)
    ]
    return [turned(_strongest_three(explained.contributions)), float(np.mean(by_chance))]


def _markers(data: str) -> np.ndarray | None:
    """Return the markers of each class by design, as a mask; None for real data."""
    if data == "ten groups":
        first = np.arange(10)[:, np.newaxis]
        return (np.arange(30) >= first) & (np.arange(30) < first + 6)
    return np.tile(np.arange(10) < 2, (5, 1)) if data == "shifted groups 5" else None


def _noise(data: str, explained: _Explained, shape: tuple[int, int]) -> np.ndarray | None:
    """Return the noise variables of each row, given its label and rival, as a mask; None if unknown."""
    markers = _markers(data)
    if markers is not None:
        return ~(markers[explained.label - 1] | markers[explained.rival - 1])
    if data not in _NOISE_COLUMNS:
        return None
    return np.broadcast_to(np.arange(shape[1]) >= shape[1] - _NOISE_COLUMNS[data], shape)


# --------------------------------------------------------------------------------------------- methods


@dataclass(frozen=True)
class _Explained:
    """Label and rival of each row, and the parts of their log odds: base, and contributions of variables."""

    label: np.ndarray
    rival: np.ndarray
    base: np.ndarray
    contributions: np.ndarray


@dataclass(frozen=True)
class _Evidence:
    """Explanations by corral."""

    model: Any

    def explain(self, X: np.ndarray) -> _Explained:
        explanation = self.model.explain(X)
        return _Explained(explanation.label, explanation.rival, explanation.base, explanation.evidence)

    def order(self, X: np.ndarray) -> np.ndarray:
        """Return the variables of each class, the strongest markers first."""
        return self.model.describe().order


@dataclass(frozen=True)
class _Sums:
    """Explanations of a model whose class scores are sums over variables.

    Attributes
    ----------
    model : fitted classifier.
    parts : function of rows, which returns constants (n_classes,) and parts (n_samples, n_classes,
        n_features).
    """

    model: Any
    parts: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

    def explain(self, X: np.ndarray) -> _Explained:
        rival, label = np.argsort(self.model.predict_proba(X), axis=1, kind="stable")[:, -2:].T
        constants, parts = self.parts(X)
        rows, classes = np.arange(len(X)), self.model.classes_
        base = constants[label] - constants[rival]
        return _Explained(classes[label], classes[rival], base, parts[rows, label] - parts[rows, rival])

    def order(self, X: np.ndarray) -> np.ndarray:
        """Return the variables of each class by their mean absolute contribution to the class score."""
        _, parts = self.parts(X)
        return np.argsort(-np.abs(parts).mean(axis=0), axis=1, kind="stable")


def _by_class(constants: Any, parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores by class; a model of two classes has one score, of which each class gets half."""
    constants = np.ravel(constants)
    if parts.shape[1] > 1:
        return constants, parts
    sign = np.array([-0.5, 0.5])
    return sign * constants, sign[:, np.newaxis] * parts


def _shap_parts(model: Any, X_train: np.ndarray) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    import shap

    explainer = shap.TreeExplainer(model)
    # Values have the shape (samples, features), or (samples, features, classes) with more than two classes.
    return lambda X: _by_class(explainer.expected_value, _classes_second(explainer.shap_values(X)))


def _ebm_parts(model: Any, X_train: np.ndarray) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    return lambda X: _by_class(model.intercept_, _classes_second(model.eval_terms(X)))


def _classes_second(values: np.ndarray) -> np.ndarray:
    return np.moveaxis(np.atleast_3d(values), 2, 1)


def _gaussian_parts(model: Any, X_train: np.ndarray) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    def parts(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        densities = norm.logpdf(X[:, np.newaxis], model.theta_, np.sqrt(model.var_))
        return np.log(model.class_prior_), densities

    return parts


def _lda_parts(model: Any, X_train: np.ndarray) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    mean = X_train.mean(axis=0)
    constants = model.intercept_ + model.coef_ @ mean
    return lambda X: _by_class(constants, model.coef_ * (X - mean)[:, np.newaxis])


_PARTS = {"SHAP": _shap_parts, "EBM": _ebm_parts, "GaussianNB": _gaussian_parts, "LDA": _lda_parts}
