"""Selected variables of each class: agreement with the design, selected noise, and accuracy.

Trial s draws its data with the seed s. A class-trial is one class in one trial. Noise columns are independent
of the class, so every selected noise column is an error. The number of other selected columns is printed too,
because a rule that selects nothing makes no errors.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks._measure import Figure, Options, has_data_folder
from benchmarks._trials import Samples, draw, percentage, rivals, spread
from corral import EmptySelectionWarning, MarkerSelector, RodeoClassifier, RodeoSelector
from corral.datasets import load_anuran, load_waveform, make_shifted_groups, make_ten_groups

# Fewer trials have too few class-trials to measure a share of 1%.
_LEAST_TRIALS = 20

_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "class, selected": {"bandwidth": "class", "features": "selected"},
    "class, all": {"bandwidth": "class"},
    "local, all": {},
}


def run(options: Options) -> Iterator[Figure]:
    """Yield figures of simulated data, then of noise columns in real data."""
    with warnings.catch_warnings():
        # Empty selections are counted here.
        warnings.simplefilter("ignore", EmptySelectionWarning)
        yield from _simulated(options.seeds)
        yield from _noise(max(options.seeds, _LEAST_TRIALS))


# ---------------------------------------------------------------------------- selections and accuracy


def _simulated(seeds: int) -> Iterator[Figure]:
    columns = np.arange(30)
    six = np.array([(columns >= group) & (columns < group + 6) for group in range(10)])
    two = np.tile(np.arange(10) < 2, (5, 1))
    targets = {"RodeoSelector": 0.95, "MarkerSelector": 0.95, "class, selected": 0.895, "class, all": 0.82}
    yield from _study("ten groups 150/100", make_ten_groups, (150, 100), six, targets, seeds)
    targets = {"MarkerSelector": 0.90}
    yield from _study("shifted groups 200/150", make_shifted_groups, (200, 150), two, targets, seeds)


def _study(
    name: str,
    make: Callable[..., Samples],
    sizes: tuple[int, int],
    truth: np.ndarray,
    targets: Mapping[str, float],
    seeds: int,
) -> Iterator[Figure]:
    """Compare selections with the design, and accuracies of settings and rivals on the same splits."""
    selected: dict[str, list[np.ndarray]] = {"RodeoSelector": [], "MarkerSelector": []}
    scores: dict[str, list[float]] = {}
    for seed in range(seeds):
        X, y, X_test, y_test = draw(make, *sizes, seed)
        selected["RodeoSelector"].append(RodeoSelector(n_jobs=-1, random_state=seed).fit(X, y).relevant_)
        selected["MarkerSelector"].append(MarkerSelector().fit(X, y).markers_)
        models = {
            label: RodeoClassifier(**settings, n_jobs=-1, random_state=seed)
            for label, settings in _SETTINGS.items()
        }
        for model_name, model in (models | rivals(seed)).items():
            scores.setdefault(model_name, []).append(model.fit(X, y).score(X_test, y_test))
    for selector, masks in selected.items():
        chosen, n = np.array(masks), len(masks)
        detail = (
            f"{n * len(truth)} class-trials; missed {(truth & ~chosen).sum()} of {truth.sum() * n}, "
            f"wrong {(chosen & ~truth).sum()} of {(~truth).sum() * n}"
        )
        share = float((chosen == truth).all(axis=2).mean())
        low = targets.get(selector, -np.inf)
        yield Figure(f"{name}: share of exact selections, {selector}", share, low, digits=3, detail=detail)
    best = float(np.mean(scores["class, selected"]))
    for model_name, values in scores.items():
        mean, detail = float(np.mean(values)), spread(values)
        if model_name not in _SETTINGS:
            side = "AHEAD of" if mean > best else "behind"
            detail += f"; {side} 'class, selected' by {abs(mean - best):.3f}"
        low = targets.get(model_name, -np.inf)
        yield Figure(f"{name}: accuracy, {model_name}", mean, low, digits=4, detail=detail)


# ------------------------------------------------------------------------------------- noise columns


def _noise(trials: int) -> Iterator[Figure]:
    if not has_data_folder("noise columns"):
        return
    frogs, waves = load_anuran(return_X_y=True), load_waveform(return_X_y=True)
    yield from _noise_selected("anuran + 5 normal", partial(_sample, *frogs, "standard_normal"), 5, trials)
    yield from _noise_selected("anuran + 5 uniform", partial(_sample, *frogs, "random"), 5, trials)
    yield from _noise_selected("waveform, its 19", partial(_sample, *waves, None), 19, trials)


def _sample(X: np.ndarray, y: np.ndarray, noise: str | None, seed: int) -> Samples:
    """Draw 100 rows of each class, and append five columns of noise if a distribution is given."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == label))[:100] for label in np.unique(y)])
    X, y = X[rows], y[rows]
    return (X if noise is None else np.hstack([X, getattr(rng, noise)((len(X), 5))])), y


def _noise_selected(
    name: str, sample: Callable[[int], Samples], columns: int, trials: int
) -> Iterator[Figure]:
    """Yield the share of selected noise columns (the last), and of class-trials with any of them."""
    selectors: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
        "RodeoSelector, range": lambda X, y: RodeoSelector(n_jobs=-1).fit(X, y).relevant_,
        "RodeoSelector, rank": lambda X, y: RodeoSelector(scale="rank", n_jobs=-1).fit(X, y).relevant_,
        "MarkerSelector": lambda X, y: MarkerSelector().fit(X, y).markers_,
    }
    for selector, select in selectors.items():
        chosen = np.concatenate([select(*sample(seed)) for seed in range(trials)])
        wrong, right = chosen[:, -columns:], chosen[:, :-columns]
        detail = f"selected of the other {right.shape[1]} columns: {right.sum(axis=1).mean():.1f} on average"
        what = f"{name}, {selector}"
        for title, hits in (
            ("noise columns selected", wrong.ravel()),
            ("class-trials with a selected noise column", wrong.any(axis=1)),
        ):
            yield percentage(f"{what}: {title}", int(hits.sum()), hits.size, detail, high=1.0)
