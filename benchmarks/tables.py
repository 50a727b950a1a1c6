"""Tables with missing values, text or groups: CorralClassifier and classifiers that accept such tables.

Missing values: values of the ten data sets are removed at random, with the same share in training and test
rows. "Median" is CorralClassifier after missing values are replaced by the median of the column. Mixed tables
are real tables (`_mixed_tables`), whose text columns are passed as categories. Every model has default
parameters and one thread, except that CatBoost has 300 rounds and EBM no interactions.

Groups: the groups of the anuran data are recordings. A fifth of the recordings of each species is held out.
In a second trial, every recording has a random label.

There are at most five seeds with ``--trials FILE``, else one seed.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from benchmarks._measure import Figure, Options, has_data_folder, is_installed, print_table
from benchmarks._mixed_tables import MIXED_TABLES, installed
from benchmarks._trials import Trials, spread
from benchmarks.accuracy import OWN, Data, catboost, judge, known_sets
from corral import CorralClassifier
from corral.datasets import load_anuran

_RATES = (0.1, 0.3, 0.5)
_MOST_SEEDS = 5

# Number of folds of recordings, and number of random labels.
_N_FOLDS = 5
_N_LABELS = 3

# Largest acceptable difference of accuracies on mixed tables, rival minus corral.
_BEHIND = 0.005

Results = dict[str, dict[str, list[dict[str, Any]]]]  # by table, by model, by seed
Models = Mapping[str, Callable[[int], Any]]


def run(options: Options) -> Iterator[Figure]:
    """Yield figures of each kind of table."""
    trials = Trials(options.trials)
    seeds = 1 if options.trials is None else min(options.seeds, _MOST_SEEDS)
    yield from _missing_values(trials, seeds)
    yield from _mixed(trials, seeds)
    if has_data_folder("anuran by recordings"):
        yield from _by_recordings(trials, seeds)


# ----------------------------------------------------------------------------------------------- models


def _own(seed: int) -> Any:
    return CorralClassifier(n_jobs=1, random_state=seed)


def _median(seed: int) -> Any:
    return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), _own(seed))


def _boosting(seed: int) -> Any:
    return HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=seed)


def _ebm(seed: int) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(interactions=0, n_jobs=1, random_state=seed)


class _CatBoost:
    """CatBoost with the names of the text columns; missing text is a separate category."""

    def __init__(self, seed: int) -> None:
        self._model = catboost(seed)

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


# ----------------------------------------------------------------------------------------------- trials


def _measured(
    trials: Trials, splits: Mapping[str, Callable[[int], Sequence[Any]]], models: Models, seeds: int
) -> Results:
    """Try all models on all tables, seed by seed."""
    results: Results = {name: {model: [] for model in models} for name in splits}
    for seed in range(seeds):
        for model, make in models.items():
            for name, split in splits.items():
                call = partial(_try, split, make, seed)
                results[name][model].append(trials.measure(name, 0, seed, model, call))
    return results


def _try(split: Callable[[int], Sequence[Any]], make: Callable[[int], Any], seed: int) -> dict[str, Any]:
    """Fit a model to one split, and return the metrics of `judge`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return judge(make(seed), split(seed), seed)


def _means(results: Results, names: Sequence[str], model: str, metric: str) -> np.ndarray:
    """Average a metric over seeds, for each table."""
    return np.array([np.mean([trial[metric] for trial in results[name][model]]) for name in names])


def _ahead(title: str, results: Results, names: Sequence[str], slack: float) -> Iterator[Figure]:
    """Yield the advantage of corral over each rival; the smoothed log loss has no target."""
    for metric, label, sign, least in (
        ("accuracy", "accuracy", 1.0, 0.0 - slack),
        ("log_loss", "log loss", -1.0, 0.0),
        ("smoothed", "smoothed log loss", -1.0, 0.0),
    ):
        own = _means(results, names, OWN, metric)
        for model in results[names[0]]:
            if model == OWN:
                continue
            other = _means(results, names, model, metric)
            ahead = sign * (own - other)
            detail = f"{own.mean():.4f} and {other.mean():.4f}, mean of {len(names)} tables; "
            detail += f"behind the target on {int((ahead < least).sum())}"
            what = f"{title}: mean {label}, advantage over {model}"
            low = -np.inf if metric == "smoothed" else least
            yield Figure(what, float(ahead.mean()), low, digits=4, detail=detail)


def _print_tables(results: Results) -> None:
    """Print accuracy and log loss by table, and times as means."""
    models = list(next(iter(results.values())))

    def cells(names: Sequence[str], digits: int, *metrics: str) -> list[str]:
        return [
            " / ".join(f"{_means(results, names, model, metric).mean():.{digits}f}" for metric in metrics)
            for model in models
        ]

    lines = {name: cells([name], 3, "accuracy", "log_loss") for name in results}
    lines["mean accuracy / log loss"] = cells(list(results), 3, "accuracy", "log_loss")
    lines["mean fit / predict, s"] = cells(list(results), 2, "fit", "predict")
    print_table("accuracy / log loss", models, lines)
    print()


# -------------------------------------------------------------------------------------- missing values


def _missing_values(trials: Trials, seeds: int) -> Iterator[Figure]:
    models: dict[str, Callable[[int], Any]] = {OWN: _own, "boosting": _boosting, "Median": _median}
    if is_installed("interpret", "EBM"):
        models["EBM"] = _ebm
    splits = {
        f"{data.name}, {rate:.0%} missing": partial(_remove, data, rate)
        for rate in _RATES
        for data in list(known_sets())
    }
    results = _measured(trials, splits, models, seeds)
    for rate in _RATES:
        names = [name for name in splits if name.endswith(f", {rate:.0%} missing")]
        yield from _ahead(f"{rate:.0%} missing", results, names, 0.0)
    _print_tables(results)


def _remove(data: Data, rate: float, seed: int) -> Sequence[np.ndarray]:
    """Draw training and test rows, and remove values at random."""
    X, y, X_test, y_test = data.split(data.size, seed)
    rng = np.random.default_rng([seed, round(100 * rate)])
    removed = [np.where(rng.random(rows.shape) < rate, np.nan, rows) for rows in (X, X_test)]
    return removed[0], y, removed[1], y_test


# ------------------------------------------------------------------------------------------ mixed tables


def _mixed(trials: Trials, seeds: int) -> Iterator[Figure]:
    models: dict[str, Callable[[int], Any]] = {OWN: _own, "boosting": _boosting}
    for name, package, make in (("CatBoost", "catboost", _CatBoost), ("EBM", "interpret", _ebm)):
        if is_installed(package, name):
            models[name] = make
    tables = list(installed(MIXED_TABLES))
    if not tables:
        return
    results = _measured(trials, {table.name: table.split for table in tables}, models, seeds)
    for figure in _ahead("mixed tables", results, list(results), _BEHIND):
        has_target = figure.what.endswith(("boosting", "CatBoost"))
        yield figure if has_target else replace(figure, low=-np.inf)
    _print_tables(results)


# ----------------------------------------------------------------------------------------------- groups


def _by_recordings(trials: Trials, seeds: int) -> Iterator[Figure]:
    def measured(name: str, n_labels: int | None) -> list[dict[str, Any]]:
        return [
            trials.measure(name, fold, seed, OWN, partial(_recordings, fold, seed, n_labels))
            for seed in range(seeds)
            for fold in range(_N_FOLDS)
        ]

    results = measured("anuran by recordings", None)
    scores = [result["best_score"] for result in results]
    n_test = [result["n_test"] for result in results]
    accuracy = np.average([result["accuracy"] for result in results], weights=n_test)
    yield Figure(
        "anuran: cv_accuracy_ minus accuracy on new recordings",
        float(np.mean(scores) - accuracy),
        -0.03,
        0.03,
        digits=3,
        detail=f"{np.mean(scores):.3f} ({spread(scores)}) and {accuracy:.3f}, five folds of each seed",
    )
    scores = [result["best_score"] for result in measured("anuran, random labels", _N_LABELS)]
    error = np.std(scores, ddof=1) / np.sqrt(len(scores))
    yield Figure(
        "anuran, random labels: difference of cv_accuracy_ from chance",
        float(abs(np.mean(scores) - 1.0 / _N_LABELS) / error),
        high=3.0,
        unit=" se",
        detail=f"{np.mean(scores):.3f}, chance {1.0 / _N_LABELS:.3f}; {spread(scores)}",
    )


def _recordings(fold: int, seed: int, n_labels: int | None) -> dict[str, float]:
    """Fit to four fifths of the recordings of each species, and measure the accuracy on the others.

    If `n_labels` is given, each recording has a random label instead of its species.
    """
    frogs = load_anuran()
    X, y, groups = frogs.data, frogs.target, frogs.record_id
    rng = np.random.default_rng(seed)
    in_order = [rng.permutation(np.unique(groups[y == species])) for species in np.unique(y)]
    folds = {recording: i % _N_FOLDS for i, recording in enumerate(np.concatenate(in_order).tolist())}
    if n_labels is not None:
        y = np.random.default_rng([seed, fold]).integers(0, n_labels, groups.max() + 1)[groups]
    test = np.array([folds[recording] for recording in groups.tolist()]) == fold
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = _own(seed).fit(X[~test], y[~test], groups=groups[~test])
    return {
        "best_score": float(model.cv_accuracy_),
        "accuracy": float((model.predict(X[test]) == y[test]).mean()),
        "n_test": int(test.sum()),
    }
