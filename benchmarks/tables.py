"""Tables as they are: gaps, text columns and groups, beside classifiers that take them too.

Values of the ten known sets are removed at random, the same share in training and test rows. "Median" is
CorralClassifier after missing values have become the median of their column. Mixed tables come from packages
that are installed besides (see `_mixed_tables`); text columns are categories, which boosting and CatBoost
take as such. Every model has its defaults and one thread; CatBoost has 300 rounds, EBM no interactions.

Frogs are judged by recordings: a fifth of those of each species is never heard, and `groups` are recordings.
Random labels are drawn once for each recording.

Without ``--trials FILE`` there is one seed, else five at most, and what the file has is not repeated.
"""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from benchmarks._measure import Figure, Options
from benchmarks._mixed_tables import MIXED_TABLES, installed
from benchmarks._trials import Trials, spread
from benchmarks.accuracy import OWN, ROUNDS, Data, judge, known_sets
from corral import CorralClassifier
from corral.datasets import load_anuran

_RATES = (0.1, 0.3, 0.5)
_MOST_SEEDS = 5
_MEDIAN = "Median"

# Folds of recordings, and how many labels they get at random.
_N_FOLDS = 5
_N_LABELS = 3

# How far the accuracy on mixed tables may be behind the best rival's.
_BEHIND = 0.005

Found = dict[str, dict[str, list[dict[str, Any]]]]  # by table, by model, by seed


def run(options: Options) -> Iterator[Figure]:
    """Targets of each kind of table in turn."""
    trials = Trials(options.trials)
    seeds = 1 if options.trials is None else min(options.seeds, _MOST_SEEDS)
    yield from _with_gaps(trials, seeds)
    yield from _mixed(trials, seeds)
    yield from _by_recordings(trials, seeds)


# ----------------------------------------------------------------------------------------------- trials


def _try(split: Callable[[int], Sequence[Any]], make: Callable[[int], Any], seed: int) -> dict[str, Any]:
    """Fit a model to one split and judge it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return judge(make(seed), split(seed), seed)


def _own(seed: int) -> Any:
    return CorralClassifier(n_jobs=1, random_state=seed)


def _boosting(seed: int) -> Any:
    return HistGradientBoostingClassifier(random_state=seed)


def _median(seed: int) -> Any:
    return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), _own(seed))


def _ebm(seed: int) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(interactions=0, n_jobs=1, random_state=seed)


class _CatBoost:
    """CatBoost, told which columns are categories; a missing one is a category of its own."""

    def __init__(self, seed: int) -> None:
        from catboost import CatBoostClassifier

        self._model = CatBoostClassifier(
            iterations=ROUNDS, thread_count=1, random_seed=seed, verbose=False, allow_writing_files=False
        )

    @staticmethod
    def _plain(X: pd.DataFrame) -> pd.DataFrame:
        texts = X.select_dtypes("category").columns
        return X.assign(**{name: X[name].astype(object).fillna("missing").astype(str) for name in texts})

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> None:
        self._model.fit(self._plain(X), y, cat_features=list(X.select_dtypes("category").columns))
        self.classes_ = self._model.classes_

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return self._model.predict_proba(self._plain(X))

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return self._model.predict(self._plain(X))


def _measured(
    trials: Trials,
    splits: Mapping[str, Callable[[int], Sequence[Any]]],
    models: Mapping[str, Callable[[int], Any]],
    seeds: int,
) -> Found:
    """Try all models on all tables, seed by seed and the slowest models last."""
    found: Found = {name: {model: [] for model in models} for name in splits}
    for seed in range(seeds):
        for model, make in models.items():
            for name, split in splits.items():
                call = partial(_try, split, make, seed)
                found[name][model].append(trials.measure(name, 0, seed, model, call))
    return found


def _means(found: Found, names: Sequence[str], model: str, metric: str) -> np.ndarray:
    return np.array([np.mean([trial[metric] for trial in found[name][model]]) for name in names])


# ------------------------------------------------------------------------------------------------- gaps


def _with_gaps(trials: Trials, seeds: int) -> Iterator[Figure]:
    models = {OWN: _own, "boosting": _boosting, _MEDIAN: _median}
    if find_spec("interpret") is None:
        print("  EBM: not measured, because interpret is not installed; it comes with the extra bench")
    else:
        models["EBM"] = _ebm
    sets = list(known_sets())
    splits = {_gap_name(data, rate): partial(_remove, data, rate) for rate in _RATES for data in sets}
    found = _measured(trials, splits, models, seeds)
    for rate in _RATES:
        names = [_gap_name(data, rate) for data in sets]
        yield from _ahead(f"{rate:.0%} gaps", found, names, dict.fromkeys(models, 0.0))
    _print_tables(found)


def _gap_name(data: Data, rate: float) -> str:
    return f"{data.name}, {rate:.0%} gaps"


def _remove(data: Data, rate: float, seed: int) -> Sequence[np.ndarray]:
    """Draw training and test rows, and remove values at random."""
    X, y, X_test, y_test = data.split(data.size, seed)
    rng = np.random.default_rng([seed, round(100 * rate)])
    removed = [np.where(rng.random(rows.shape) < rate, np.nan, rows) for rows in (X, X_test)]
    return removed[0], y, removed[1], y_test


def _ahead(title: str, found: Found, names: Sequence[str], slack: Mapping[str, float]) -> Iterator[Figure]:
    """How far our means are ahead of each rival's, in accuracy and log loss."""
    for metric, sign in (("accuracy", 1.0), ("log_loss", -1.0), ("smoothed", -1.0)):
        own = _means(found, names, OWN, metric)
        for model in slack:
            if model == OWN:
                continue
            other = _means(found, names, model, metric)
            label = {"smoothed": "smoothed log loss"}.get(metric, metric.replace("_", " "))
            low = -slack[model] if metric == "accuracy" else 0.0
            figure = Figure(
                f"{title}: mean {label}, ahead of {model}",
                float(sign * (own - other).mean()),
                low,
                digits=4,
                detail=f"{own.mean():.4f} and {other.mean():.4f}, mean of {len(names)} tables; behind on "
                f"{int((sign * (own - other) < low).sum())}",
            )
            # Votes that say 0 make a log loss large; the smoothed one is for information.
            yield figure if metric != "smoothed" else replace(figure, low=-np.inf)


# ------------------------------------------------------------------------------------------ mixed tables


def _mixed(trials: Trials, seeds: int) -> Iterator[Figure]:
    models: dict[str, Callable[[int], Any]] = {OWN: _own, "boosting": _mixed_boosting}
    for name, package, make in (("CatBoost", "catboost", _CatBoost), ("EBM", "interpret", _ebm)):
        if find_spec(package) is None:
            print(f"  {name}: not measured, because {package} is not installed; it is in the extra bench")
        else:
            models[name] = make
    there = list(installed(MIXED_TABLES))
    if not there:
        return
    found = _measured(trials, {table.name: table.split for table in there}, models, seeds)
    judged = tuple(model for model in ("boosting", "CatBoost") if model in models)
    for figure in _ahead("mixed tables", found, list(found), dict.fromkeys(models, _BEHIND)):
        yield figure if figure.what.endswith(judged) else replace(figure, low=-np.inf)
    _print_tables(found)


def _mixed_boosting(seed: int) -> Any:
    return HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=seed)


# ----------------------------------------------------------------------------------------------- groups


def _by_recordings(trials: Trials, seeds: int) -> Iterator[Figure]:
    if not os.environ.get("CORRAL_DATA"):
        print("  anuran by recordings: not measured, because CORRAL_DATA does not name a data folder")
        return
    of_species = [
        trials.measure("anuran by recordings", fold, seed, OWN, partial(_recordings, fold, seed))
        for seed in range(seeds)
        for fold in range(_N_FOLDS)
    ]
    scores = [found["best_score"] for found in of_species]
    heard = np.average(
        [found["accuracy"] for found in of_species], weights=[found["n_test"] for found in of_species]
    )
    yield Figure(
        "anuran: cv_accuracy_ less accuracy on recordings never heard",
        float(np.mean(scores) - heard),
        -0.03,
        0.03,
        digits=3,
        detail=f"{np.mean(scores):.3f} ({spread(scores)}) and {heard:.3f}, five folds of each seed",
    )
    at_random = [
        trials.measure(
            "anuran, random labels", fold, seed, OWN, partial(_recordings, fold, seed, n_labels=_N_LABELS)
        )
        for seed in range(seeds)
        for fold in range(_N_FOLDS)
    ]
    scores = [found["best_score"] for found in at_random]
    error = np.std(scores, ddof=1) / np.sqrt(len(scores))
    yield Figure(
        "anuran, labels random by recording: cv_accuracy_ off chance",
        float(abs(np.mean(scores) - 1.0 / _N_LABELS) / error),
        high=3.0,
        unit=" se",
        detail=f"{np.mean(scores):.3f}, chance {1.0 / _N_LABELS:.3f}; {spread(scores)}",
    )


def _recordings(fold: int, seed: int, n_labels: int | None = None) -> dict[str, float]:
    """Fit to four fifths of the recordings of each species, and judge by the others.

    Where a number of labels is given, each recording has one of them at random in place of its species.
    """
    frogs = load_anuran()
    X, y, groups = frogs.data, frogs.target, frogs.record_id
    rng = np.random.default_rng(seed)
    in_order = [rng.permutation(np.unique(groups[y == species])) for species in np.unique(y)]
    fold_of = {recording: i % _N_FOLDS for i, recording in enumerate(np.concatenate(in_order).tolist())}
    if n_labels is not None:
        labels = np.random.default_rng([seed, fold]).integers(0, n_labels, groups.max() + 1)
        y = labels[groups]
    test = np.array([fold_of[recording] for recording in groups.tolist()]) == fold
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = _own(seed).fit(X[~test], y[~test], groups=groups[~test])
    return {
        "best_score": float(model.cv_accuracy_),
        "accuracy": float((model.predict(X[test]) == y[test]).mean()),
        "n_test": int(test.sum()),
    }


# ----------------------------------------------------------------------------------------------- tables


def _print_tables(found: Found) -> None:
    """Print accuracy and log loss by table, and times as means."""
    models = list(next(iter(found.values())))
    print(f"\n| accuracy / log loss | {' | '.join(models)} |\n|{'---|' * (len(models) + 1)}")
    for name in found:
        cells = [
            f"{_means(found, [name], model, 'accuracy')[0]:.3f} / "
            f"{_means(found, [name], model, 'log_loss')[0]:.3f}"
            for model in models
        ]
        print(f"| {name} | {' | '.join(cells)} |")
    for label, digits, metrics in (
        ("accuracy / log loss", 3, ("accuracy", "log_loss")),
        ("fit / predict, s", 2, ("fit", "predict")),
    ):
        cells = [
            " / ".join(f"{_means(found, list(found), model, metric).mean():.{digits}f}" for metric in metrics)
            for model in models
        ]
        print(f"| mean {label} | {' | '.join(cells)} |")
    print()
