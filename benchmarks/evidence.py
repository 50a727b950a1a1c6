"""Evidence: its time, whether it adds up, how well few orders do, and whether labels turn with it.

Time: `explain` of 1,000 rows of the ten groups (30 variables, 10 classes of 100 rows) by CorralClassifier.

Few orders are compared with many others of them: the root mean square of the difference over the
standard error is 1 if the error says what it should.

Faithful: the three variables of a test row with the largest evidence for its label are set to the medians of
the rival's training rows; so are, instead, three random ones. Those should turn the label much more often, on
average over the known sets. With four variables (iris) there is little to choose from.
"""

import warnings
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks._measure import Figure, Options, Task, seconds, time_alternately
from benchmarks.accuracy import Data, known_sets
from corral import CopiedRowsWarning, CorralClassifier
from corral.datasets import make_ten_groups
from corral.evidence.explainers import explainer_of
from corral.evidence.log_odds import odds_evidence
from corral.evidence.shapley import Coalitions
from corral.parallel import Computation

_CHANGED = 3
_MOST_ROWS = 300
_DRAWS = 5
_MOST_SEEDS = 3
_PAIRS = 200


def run(options: Options) -> Iterator[Figure]:
    """Time, sums and errors of the ten groups first, then all sets."""
    yield from _ten_groups(options)
    turned: dict[str, np.ndarray] = {}
    largest = 0.0
    for data in known_sets():
        rates = []
        for seed in range(min(options.seeds, _MOST_SEEDS)):
            rate, off = _faithful(data, seed)
            rates.append(rate)
            largest = max(largest, off)
        turned[data.name] = np.mean(rates, axis=0)
    yield Figure(
        "|base + evidence - log odds|, 1e-9, largest over all sets", 1e9 * largest, high=1.0, digits=6
    )
    strongest, random = np.mean(list(turned.values()), axis=0)
    detail = ", ".join(f"{name} {a:.2f} / {b:.2f}" for name, (a, b) in turned.items())
    yield Figure("labels turned by the strongest three", strongest, detail=detail)
    yield Figure("labels turned by three random variables", random)
    yield Figure("ratio of the two", strongest / random, low=3.0)


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

    some, state, computation = queries[::10], model.model_, Computation(2, 0)
    explained = model.explain(some)
    label, rival = (np.searchsorted(model.classes_, of) for of in (explained.label, explained.rival))
    d = X.shape[1]
    many = odds_evidence(
        state,
        explainer_of(state, some, computation),
        some,
        label,
        rival,
        computation,
        coalitions=Coalitions.sampled(np.arange(d), d, _PAIRS, seed=1),
    )
    error = np.hypot(explained.evidence_error, many.error)
    z = (explained.evidence - many.evidence) / error
    off = np.sqrt(np.mean((explained.evidence - many.evidence) ** 2))
    size = np.sqrt(np.mean(many.evidence**2))
    detail = f"error {off:.3f}, evidence {size:.2f} (root mean squares); largest ratio {np.abs(z).max():.1f}"
    what = f"few orders less {2 * _PAIRS}, over the standard error"
    yield Figure(what, float(np.sqrt(np.mean(z**2))), 0.7, 1.3, detail=detail)


def _faithful(data: Data, seed: int) -> tuple[list[float], float]:
    """Shares of labels turned by the strongest and by random variables, and how far sums are off."""
    X, y, X_test, _ = data.split(data.size, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CopiedRowsWarning)
        model = CorralClassifier(random_state=seed, n_jobs=2).fit(X, y)
    random = np.random.default_rng(seed)
    queries = some_queries(X_test, random)
    found = model.explain(queries)
    rates = turned_shares(
        model.predict, queries, found.label, typical_rows(X, y, found.rival), found.evidence, random
    )
    log_proba, at = model.predict_log_proba(queries), np.arange(len(queries))
    label, rival = (np.searchsorted(model.classes_, of) for of in (found.label, found.rival))
    off = np.abs(found.log_odds - (log_proba[at, label] - log_proba[at, rival])).max()
    return rates, float(off)


def some_queries(X: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Rows to explain: all of them, or 300 drawn."""
    return X[random.permutation(len(X))[:_MOST_ROWS]]


def typical_rows(X: np.ndarray, y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """For each label the medians of its training rows."""
    medians = {label: np.median(X[y == label], axis=0) for label in np.unique(y).tolist()}
    return np.array([medians[label] for label in labels.tolist()])


def strongest_three(contributions: np.ndarray) -> np.ndarray:
    """Numbers of the three variables that speak most for the label of each row."""
    return np.argsort(-contributions, axis=1, kind="stable")[:, :_CHANGED]


def turned_shares(
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
    return [turned(strongest_three(contributions)), float(np.mean(at_random))]
