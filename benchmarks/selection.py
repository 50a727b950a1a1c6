"""Variables that describe a class: what is found, what it is worth and what it costs, each beside its target.

Trial s draws its data from the seed s. Selections are judged per class-trial, one class in one trial. The
noise columns are independent of the class by construction, so every one that is selected is a mistake; how
many other columns were selected stands beside it, because a rule that selects nothing makes no mistakes.
"""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from sklearn.neighbors import KernelDensity

from benchmarks._measure import (
    Figure,
    Options,
    Task,
    ratio,
    time_alternately,
)
from benchmarks._trials import Samples, Split, draw, percentage, rivals, spread
from corral import EmptySelectionWarning, MarkerSelector, RodeoClassifier, RodeoSelector
from corral.datasets import load_anuran, load_waveform, make_shifted_groups, make_ten_groups

# A share of at most one in a hundred cannot be told from fewer class-trials than these give.
_LEAST_TRIALS = 20

_BY_CLASS: Mapping[str, Any] = {"bandwidth": "class"}
_SELECTED: Mapping[str, Any] = {"bandwidth": "class", "features": "selected"}


def run(options: Options) -> Iterator[Figure]:
    """Simulated data first, then noise columns in real data, then times."""
    # An empty selection is counted here; the warning would only tear the table.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EmptySelectionWarning)
        yield from _simulated(options)
        yield from _noise(max(options.seeds, _LEAST_TRIALS))
    yield from _speed(options)


# ---------------------------------------------------------------------------- selections and accuracy


def _simulated(options: Options) -> Iterator[Figure]:
    columns = np.arange(30)
    six = np.array([(columns >= group) & (columns < group + 6) for group in range(10)])
    two = np.tile(np.arange(10) < 2, (5, 1))
    yield from _study(
        "ten groups 150/100",
        partial(draw, make_ten_groups, 150, 100),
        six,
        exact={"RodeoSelector": 0.95, "MarkerSelector": 0.95},
        accuracy=[
            ("class, selected", _SELECTED, 0.895),
            ("class, all", _BY_CLASS, 0.82),
            ("local, all", {}, -np.inf),
        ],
        seeds=options.seeds,
    )
    yield from _study(
        "shifted groups 200/150",
        partial(draw, make_shifted_groups, 200, 150),
        two,
        exact={"RodeoSelector": -np.inf, "MarkerSelector": 0.90},
        accuracy=[
            ("class, selected", _SELECTED, -np.inf),
            ("class, all", _BY_CLASS, -np.inf),
            ("local, all", {}, -np.inf),
        ],
        seeds=options.seeds,
    )


def _study(
    name: str,
    split: Callable[[int], Split],
    truth: np.ndarray,
    *,
    exact: Mapping[str, float],
    accuracy: list[tuple[str, Mapping[str, Any], float]],
    seeds: int,
) -> Iterator[Figure]:
    """Selections against the truth, then accuracies of settings and rivals, on the same splits."""
    selected: dict[str, list[np.ndarray]] = {selector: [] for selector in exact}
    scores: dict[str, list[float]] = {}
    for seed in range(seeds):
        X, y, X_test, y_test = split(seed)
        selected["RodeoSelector"].append(RodeoSelector(n_jobs=-1, random_state=seed).fit(X, y).relevant_)
        selected["MarkerSelector"].append(MarkerSelector().fit(X, y).markers_)
        models = {
            label: RodeoClassifier(**settings, n_jobs=-1, random_state=seed)
            for label, settings, _ in accuracy
        }
        for model_name, model in (models | rivals(seed)).items():
            scores.setdefault(model_name, []).append(model.fit(X, y).score(X_test, y_test))
    for selector, masks in selected.items():
        found = np.array(masks)
        detail = (
            f"{len(found) * len(truth)} class-trials; missed {(truth & ~found).sum()} of "
            f"{truth.sum() * len(found)}, wrong {(found & ~truth).sum()} of "
            f"{(~truth).sum() * len(found)}"
        )
        share = float((found == truth).all(axis=2).mean())
        yield Figure(f"{name}: exact set, {selector}", share, exact[selector], digits=3, detail=detail)
    lows = {label: low for label, _, low in accuracy}
    first = accuracy[0][0]
    for model_name, values in scores.items():
        mean, low = float(np.mean(values)), lows.get(model_name, -np.inf)
        detail = spread(values)
        if model_name not in lows:
            ahead = mean - float(np.mean(scores[first]))
            detail += f"; {'AHEAD of' if ahead > 0 else 'behind'} '{first}' by {abs(ahead):.3f}"
        yield Figure(f"{name}: accuracy, {model_name}", mean, low, digits=4, detail=detail)


# ------------------------------------------------------------------------------------- noise columns


def _noise(trials: int) -> Iterator[Figure]:
    if not os.environ.get("CORRAL_DATA"):
        print("  noise columns: not measured, because CORRAL_DATA does not name a data folder")
        return
    frogs, waves = load_anuran(return_X_y=True), load_waveform(return_X_y=True)
    yield from _mistakes("anuran + 5 normal", partial(_sample, *frogs, "normal"), 5, trials)
    yield from _mistakes("anuran + 5 uniform", partial(_sample, *frogs, "uniform"), 5, trials)
    yield from _mistakes("waveform, its 19", partial(_sample, *waves, None), 19, trials)


def _sample(X: np.ndarray, y: np.ndarray, noise: str | None, seed: int) -> Samples:
    """100 rows of each class, with five columns of noise behind them where a kind is named."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == label))[:100] for label in np.unique(y)])
    X, y = X[rows], y[rows]
    if noise == "normal":
        X = np.hstack([X, rng.standard_normal((len(X), 5))])
    elif noise == "uniform":
        X = np.hstack([X, rng.random((len(X), 5))])
    return X, y


def _mistakes(name: str, sample: Callable[[int], Samples], columns: int, trials: int) -> Iterator[Figure]:
    """How often the last columns are selected, one by one and in any class-trial at all."""
    selectors: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
        "RodeoSelector, range": lambda X, y: RodeoSelector(n_jobs=-1).fit(X, y).relevant_,
        "RodeoSelector, rank": lambda X, y: RodeoSelector(scale="rank", n_jobs=-1).fit(X, y).relevant_,
        "MarkerSelector": lambda X, y: MarkerSelector().fit(X, y).markers_,
    }
    for selector, select in selectors.items():
        found = np.concatenate([select(*sample(seed)) for seed in range(trials)])
        wrong = found[:, -columns:]
        others = f"selected of the other {found.shape[1] - columns} columns: "
        others += f"{found[:, :-columns].sum(axis=1).mean():.1f} on average"
        what = f"{name}, {selector}"
        for title, hits in (
            ("noise columns selected", wrong.ravel()),
            ("class-trials with any", wrong.any(axis=1)),
        ):
            yield percentage(f"{what}: {title}", int(hits.sum()), hits.size, others, high=1.0)


# --------------------------------------------------------------------------------------------- costs


def _speed(options: Options) -> Iterator[Figure]:
    """1000 predictions for the ten groups on one thread."""
    X, y = make_ten_groups(150, random_state=0)
    X_test, _ = make_ten_groups(100, random_state=1)
    local = RodeoClassifier(n_jobs=1).fit(X, y)
    selected = RodeoClassifier(**_SELECTED, n_jobs=1).fit(X, y)
    masks = selected.relevant_

    def densities(algorithm: str) -> Task:
        # Class by class on the columns of that class. Copies, because a slice would be copied in every
        # call; labels and probabilities would still have to be computed, which is left out in its favour.
        parts = [
            (
                KernelDensity(bandwidth=0.1, algorithm=algorithm).fit(X[y == label][:, mask]),
                np.ascontiguousarray(X_test[:, mask]),
            )
            for label, mask in zip(selected.classes_, masks, strict=True)
        ]
        return Task(lambda: [model.score_samples(queries) for model, queries in parts])

    timings = time_alternately(
        {
            "local": Task(partial(local.predict_proba, X_test)),
            "selected": Task(partial(selected.predict_proba, X_test)),
            "kd_tree": densities("kd_tree"),
            "ball_tree": densities("ball_tree"),
        },
        options.repeats,
    )
    own = timings["selected"]
    yield ratio("local prediction / class bandwidths, selected", timings["local"], own, low=10.0)
    for algorithm in ("kd_tree", "ball_tree"):
        yield ratio(
            f"ten KernelDensity({algorithm}), same columns / the same", timings[algorithm], own, low=1.0
        )
