"""Explanations side by side: evidence, SHAP values of boosting, terms of EBM, factors of GaussianNB, LDA.

Every method explains its own labels. For each row it says what each variable adds to the log odds of the most
probable class and the second one: corral its evidence; boosting (scikit-learn's) the SHAP values of
shap.TreeExplainer without background rows; EBM its terms, without pairs of variables; GaussianNB its factors;
LDA its weights times the distance from the mean of the training rows. All add up to the log odds: the largest
difference is shown.

*Turned*: labels that turn when the three variables that speak most for them take typical values of the rival
(medians of its training rows), and when three random ones do. The former should turn the label much more
often. With four variables (iris) there is little to choose from.

*Noise*: the share of noise among the three variables that speak most for a label, or two where only two are
not noise, and among all variables. In the ten groups noise is what is uniform in label and rival; elsewhere
the columns of noise are known.

*Marks*: of the variables that mark a class by design (six in each of the ten groups, two in each of the
shifted ones), the share among as many that a method names first, by the order of `describe`, or by the mean
absolute contribution to the score of the class over the test rows, as charts of SHAP values and terms show
it. The number is told to all. What makes *other* classes likely moves this score as well, so that the two
answer different questions.

*Time*: processor seconds for 1,000 rows, after a first call. `explain` also lists training rows and judges
novelty.

Before that, `explain` of 1,000 rows of the ten groups (30 variables, 10 classes of 100 rows) is timed on two
threads.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from benchmarks._measure import Figure, Options, Task, seconds, time_alternately
from benchmarks._trials import Trials
from benchmarks.accuracy import OWN, Data, known_sets, models_by_name
from corral import CopiedRowsWarning, CorralClassifier
from corral.datasets import make_ten_groups

_MOST_SEEDS = 3
_MOST_ROWS = 300
_CHANGED = 3  # variables
_DRAWS = 5
_FIRST_CALL = 5  # rows
_MODELS = {OWN: OWN, "SHAP": "boosting", "EBM": "EBM", "GaussianNB": "GaussianNB", "LDA": "LDA"}
Means = dict[tuple[str, str], dict[str, float]]  # by data and method, by what is measured
_NEEDS = {"SHAP": "shap", "EBM": "interpret"}


def run(options: Options) -> Iterator[Figure]:
    """Times of the ten groups first, then means over the sets by method, and tables."""
    yield from _ten_groups(options)
    methods = [name for name in _MODELS if name not in _NEEDS or find_spec(_NEEDS[name]) is not None]
    for name in _MODELS.keys() - methods:
        print(
            f"  {name}: not measured, because {_NEEDS[name]} is not installed; it comes with the extra bench"
        )
    trials, sets = Trials(options.trials), list(known_sets())
    results = {
        (data.name, name): [
            trials.measure(data.name, data.size, seed, f"{name}, explained", partial(_try, data, seed, name))
            for seed in range(min(options.seeds, _MOST_SEEDS))
        ]
        for data in sets
        for name in methods
    }
    means = {
        key: {what: float(np.mean([trial[what] for trial in found])) for what in found[0]}
        for key, found in results.items()
    }
    for name in methods:
        yield from _figures(name, {data.name: means[data.name, name] for data in sets})
    _table([data.name for data in sets], methods, means)


def _figures(name: str, by_set: dict[str, dict[str, float]]) -> Iterator[Figure]:
    """What is measured of one method, as means over the sets that have it."""
    turned, random = (np.mean([of[what] for of in by_set.values()]) for what in ("turned", "random"))
    detail = ", ".join(f"{data} {of['turned']:.2f} / {of['random']:.2f}" for data, of in by_set.items())
    yield Figure(f"{name}: labels turned by the strongest three", turned, detail=detail)
    yield Figure(f"{name}: over those turned by three random ones", turned / random, detail=f"{random:.3f}")
    for what, title in (("noise", "noise among the strongest three"), ("marks", "of what marks a class")):
        values = {data: of[what] for data, of in by_set.items() if what in of}
        detail = ", ".join(f"{data} {value:.3f}" for data, value in values.items())
        yield Figure(f"{name}: {title}", float(np.mean([*values.values()])), digits=3, detail=detail)
    times = {data: of["seconds"] for data, of in by_set.items()}
    detail = ", ".join(f"{data} {value:.2f}" for data, value in times.items())
    yield Figure(f"{name}: 1,000 rows", float(np.mean([*times.values()])), unit=" s", detail=detail)
    off = max(of["off"] for of in by_set.values())
    yield Figure(f"{name}: sums less log odds, 1e-6, largest", 1e6 * off, digits=3)


def _table(
    sets: Sequence[str], methods: Sequence[str], means: dict[tuple[str, str], dict[str, float]]
) -> None:
    """Labels turned, strongest three / three random ones."""
    print(f"\n| turned | {' | '.join(methods)} |\n|{'---|' * (len(methods) + 1)}")
    for data in sets:
        shares = [(means[data, name]["turned"], means[data, name]["random"]) for name in methods]
        print(f"| {data} | {' | '.join(f'{turned:.2f} / {random:.2f}' for turned, random in shares)} |")


def _ten_groups(options: Options) -> Iterator[Figure]:
    X, y = make_ten_groups(100, random_state=0)
    queries, _ = make_ten_groups(100, random_state=1)
    model = CorralClassifier(random_state=0, n_jobs=2).fit(X, y)
    timed = time_alternately(
        {"explain": Task(lambda: model.explain(queries)), "describe": Task(model.describe)}, options.repeats
    )
    used = timed["explain"]
    detail = f"processor time {seconds(used.best_cpu)}, {len(model.members_)} members"
    yield Figure("explain, 1,000 rows, two threads", used.best, high=2.0, unit=" s", detail=detail)
    detail = f"processor time {seconds(timed['describe'].best_cpu)}"
    yield Figure("describe, two threads", timed["describe"].best, unit=" s", detail=detail)


# ---------------------------------------------------------------------------------------------- trials


def _try(data: Data, seed: int, name: str) -> dict[str, float]:
    """Fit one method to one split, and judge what it says of test rows."""
    X, y, X_test, _ = data.split(data.size, seed)
    model = models_by_name(seed)[_MODELS[name]]
    random = np.random.default_rng(seed)
    queries = _some_queries(X_test, random)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", CopiedRowsWarning)
        model.fit(X, y)
        explainer = _Evidence(model) if name == OWN else _Sums(model, _PARTS[name](model, X))
        explainer.explain(queries[:_FIRST_CALL])
        start = time.process_time()
        said = explainer.explain(queries)
        found = {"seconds": 1000 * (time.process_time() - start) / len(queries)}
        typical = _typical_rows(X, y, said.rival)
        found["turned"], found["random"] = _turned_shares(
            model.predict, queries, said.label, typical, said.contributions, random
        )
        found["off"] = _off(model, queries, said)
        noise = _noise(data.name, said, queries.shape)
        if noise is not None:
            named = _strongest_three(said.contributions)[:, : (~noise).sum(axis=1).min()]
            found["noise"] = float(np.take_along_axis(noise, named, axis=1).mean())
            found["noise_of_all"] = float(noise.mean())
        marks = _marks(data.name)
        if marks is not None:
            order = explainer.order(X_test)
            k = marks.sum(axis=1)[0]
            found["marks"] = float(np.take_along_axis(marks, order[:, :k], axis=1).mean())
    return found


def _off(model: Any, queries: np.ndarray, said: _Said) -> float:
    """How far sums are from log odds, at most; rows in which either probability is 0 or 1 have none."""
    label, rival = (np.searchsorted(model.classes_, of) for of in (said.label, said.rival))
    at, P = np.arange(len(queries)), model.predict_proba(queries)
    seen = (P[at, rival] > 1e-9) & (P[at, label] < 1.0)
    log_odds = np.log(P[at, label][seen] / P[at, rival][seen])
    sums = said.base + said.contributions.sum(axis=1)
    return float(np.abs(sums[seen] - log_odds).max(initial=0.0))


def _some_queries(X: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Rows to explain: all of them, or 300 drawn."""
    return X[random.permutation(len(X))[:_MOST_ROWS]]


def _typical_rows(X: np.ndarray, y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """For each label the medians of its training rows."""
    medians = {label: np.median(X[y == label], axis=0) for label in np.unique(y).tolist()}
    return np.array([medians[label] for label in labels.tolist()])


def _strongest_three(contributions: np.ndarray) -> np.ndarray:
    """Numbers of the three variables that speak most for the label of each row."""
    return np.argsort(-contributions, axis=1, kind="stable")[:, :_CHANGED]


def _turned_shares(
    predict: Callable[[np.ndarray], np.ndarray],
    queries: np.ndarray,
    labels: np.ndarray,
    typical_of_rival: np.ndarray,
    contributions: np.ndarray,
    random: np.random.Generator,
) -> list[float]:
    """Shares of labels that turn when the strongest three variables, or three at random, are the rival's."""

    def turned(variables: np.ndarray) -> float:
        changed = queries.copy()
        np.put_along_axis(changed, variables, np.take_along_axis(typical_of_rival, variables, axis=1), axis=1)
        return float(np.mean(predict(changed) != labels))

    at_random = [
        turned(np.argsort(random.uniform(size=queries.shape), axis=1)[:, :_CHANGED]) for _ in range(_DRAWS)
    ]
    return [turned(_strongest_three(contributions)), float(np.mean(at_random))]


# ----------------------------------------------------------------------------------------------- truth


def _marks(data: str) -> np.ndarray | None:
    """Which variables mark each class, where that is known."""
    if data == "ten groups":
        first = np.arange(10)[:, np.newaxis]
        return (np.arange(30) >= first) & (np.arange(30) < first + 6)
    if data == "shifted groups 5":
        return np.tile(np.arange(10) < 2, (5, 1))
    return None


def _noise(data: str, said: _Said, shape: tuple[int, int]) -> np.ndarray | None:
    """Which variables are noise for label and rival of each row, where that is known."""
    marks = _marks(data)
    if marks is not None:
        return ~(marks[said.label - 1] | marks[said.rival - 1])
    n_noise = {"anuran + 5 noise": 5, "waveform": 19}.get(data)
    return None if n_noise is None else np.broadcast_to(np.arange(shape[1]) >= shape[1] - n_noise, shape)


# --------------------------------------------------------------------------------------------- methods


@dataclass(frozen=True)
class _Said:
    """Labels, their rivals, and what each variable adds to the log odds of the two, beginning at a base."""

    label: np.ndarray
    rival: np.ndarray
    base: np.ndarray
    contributions: np.ndarray


@dataclass(frozen=True)
class _Evidence:
    """corral's own."""

    model: Any

    def explain(self, X: np.ndarray) -> _Said:
        found = self.model.explain(X)
        return _Said(found.label, found.rival, found.base, found.evidence)

    def order(self, X: np.ndarray) -> np.ndarray:
        """Variables of each class, those that mark it first."""
        return self.model.describe().order


@dataclass(frozen=True)
class _Sums:
    """A model whose scores of classes are sums over variables.

    Attributes
    ----------
    model : fitted classifier.
    parts : gives a constant for each class, and parts of the shape (n_samples, n_classes, n_features).
    """

    model: Any
    parts: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

    def explain(self, X: np.ndarray) -> _Said:
        rival, label = np.argsort(self.model.predict_proba(X), axis=1, kind="stable")[:, -2:].T
        constants, parts = self.parts(X)
        at, classes = np.arange(len(X)), self.model.classes_
        base = constants[label] - constants[rival]
        return _Said(classes[label], classes[rival], base, parts[at, label] - parts[at, rival])

    def order(self, X: np.ndarray) -> np.ndarray:
        """Variables of each class by the mean size of their contributions to its score."""
        _, parts = self.parts(X)
        return np.argsort(-np.abs(parts).mean(axis=0), axis=1, kind="stable")


def _by_class(constants: Any, parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores of two classes as halves of the one score that models have of them."""
    constants = np.ravel(constants)
    if parts.shape[1] > 1:
        return constants, parts
    sign = np.array([-0.5, 0.5])
    return sign * constants, sign[:, np.newaxis] * parts


def _shap_parts(model: Any, X_train: np.ndarray) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    import shap

    explainer = shap.TreeExplainer(model)

    def parts(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = explainer.shap_values(X)  # samples, features and, of more than two, classes
        return _by_class(explainer.expected_value, np.moveaxis(np.atleast_3d(values), 2, 1))

    return parts


def _ebm_parts(model: Any, X_train: np.ndarray) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    def parts(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _by_class(model.intercept_, np.moveaxis(np.atleast_3d(model.eval_terms(X)), 2, 1))

    return parts


def _gaussian_parts(model: Any, X_train: np.ndarray) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    def parts(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        densities = norm.logpdf(X[:, np.newaxis], model.theta_, np.sqrt(model.var_))
        return np.log(model.class_prior_), densities

    return parts


def _lda_parts(model: Any, X_train: np.ndarray) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    mean = X_train.mean(axis=0)
    constants = model.intercept_ + model.coef_ @ mean

    def parts(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _by_class(constants, model.coef_ * (X - mean)[:, np.newaxis])

    return parts


_PARTS = {"SHAP": _shap_parts, "EBM": _ebm_parts, "GaussianNB": _gaussian_parts, "LDA": _lda_parts}
