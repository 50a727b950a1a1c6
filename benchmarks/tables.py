"""Tables as they are: gaps, text columns and groups, beside classifiers that take them too.

Values of the ten known sets are removed at random, the same share in training and test rows. "Median" is
CorralClassifier after missing values have become the median of their column. Mixed tables come from packages
that are installed besides (see `_mixed_tables`); text columns are categories, which boosting and CatBoost
take as such. Every model has its defaults and one thread; CatBoost has 300 rounds, EBM no interactions.

Frogs are judged by recordings: a fifth of those of each species is never heard, and `groups` are recordings.
Random labels are drawn once for each recording.

Without ``--trials FILE`` there is one seed, else five at most, and what the file has is not repeated. Times
are processor time on one thread, in turn with what they are compared with. Where the variable CORRAL_BEFORE
names the source folder of an earlier version, times without gaps and levels are compared with its.
"""

import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import corral
from benchmarks._measure import Figure, Options, Task, fresh_python, ratio, seconds, time_alternately
from benchmarks._mixed_tables import CHOSEN_ON, JUDGED, MixedTable, installed
from benchmarks._trials import Trials, spread
from benchmarks.accuracy import OWN, ROUNDS, Data, compile_all, known_sets
from corral import CorralClassifier
from corral.datasets import load_anuran, make_shifted_groups, make_ten_groups

_RATES = (0.1, 0.3, 0.5)
_MOST_SEEDS = 5
_MEDIAN = "Median"

# Folds of recordings, and how many labels they get at random.
_N_FOLDS = 5
_N_LABELS = 3

# How far the accuracy on mixed tables may be behind the best rival's.
_BEHIND = 0.005

# Tables whose times are compared: rows per class.
_TIMED_ROWS = 150

Found = dict[str, dict[str, list[dict[str, Any]]]]  # by table, by model, by seed
AnyTable = np.ndarray | pd.DataFrame


def run(options: Options) -> Iterator[Figure]:
    """Targets of each kind of table in turn."""
    trials = Trials(options.trials)
    seeds = 1 if options.trials is None else min(options.seeds, _MOST_SEEDS)
    yield from _with_gaps(trials, seeds)
    yield from _mixed(trials, seeds)
    yield from _by_recordings(trials, seeds)
    yield from _times(options.repeats)


# ----------------------------------------------------------------------------------------------- trials


def _try(split: Callable[[], Sequence[Any]], make: Callable[[], Any]) -> dict[str, float]:
    """Fit a model to one split and judge it."""
    compile_all()
    X, y, X_test, y_test = split()
    model = make()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        start = time.process_time()
        model.fit(X, y)
        fitted = time.process_time()
        P = model.predict_proba(X_test)
        predicted = time.process_time()
    codes = np.searchsorted(model.classes_, y_test)
    right = P[np.arange(len(P)), codes]
    lapse = 1.0 / (len(y) + 2.0)
    return {
        "accuracy": float((P.argmax(axis=1) == codes).mean()),
        "log_loss": float(-np.log(np.maximum(right, np.finfo(float).eps)).mean()),
        "smoothed": float(-np.log((1.0 - lapse) * right + lapse / P.shape[1]).mean()),
        "fit": fitted - start,
        "predict": predicted - fitted,
    }


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
                call = partial(_try, partial(split, seed), partial(make, seed))
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
    for title, tables in (("mixed tables", JUDGED), ("mixed tables, methods chosen on them", CHOSEN_ON)):
        there: list[MixedTable] = list(installed(tables))
        if not there:
            continue
        found = _measured(trials, {table.name: table.split for table in there}, models, seeds)
        figures = _ahead(title, found, list(found), dict.fromkeys(models, _BEHIND))
        judged = [model for model in ("boosting", "CatBoost") if model in models]
        for figure in figures:
            is_target = tables is JUDGED and figure.what.endswith(tuple(judged))
            yield figure if is_target else replace(figure, low=-np.inf)
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


# ------------------------------------------------------------------------------------------------ times


def _times(repeats: int) -> Iterator[Figure]:
    for title, X, y in _timed_tables():
        gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
        codes = np.argsort(np.argsort(X, axis=0), axis=0) * 4 // len(X)
        half = np.arange(X.shape[1]) < X.shape[1] // 2
        levels = np.where(half, codes, X)
        yield from _slower(f"{title}, 30% gaps", (gaps, None), (X, None), y, repeats)
        half_levels = f"{title}, levels in half of the columns"
        yield from _slower(half_levels, (levels, half), (levels, None), y, repeats)
    before = os.environ.get("CORRAL_BEFORE")
    if before is None:
        print("  times of an earlier version: not measured, because CORRAL_BEFORE does not name one")
        return
    here = str(Path(corral.__file__).parents[1])
    for k, (title, _, _) in enumerate(_timed_tables()):
        rounds = [
            [
                fresh_python(f"from benchmarks.tables import child; child({k})", PYTHONPATH=folder)
                for folder in (here, before)
            ]
            for _ in range(repeats)
        ]
        for part in ("fit", "predict"):
            now, then = (min(found[v][part] for found in rounds) for v in (0, 1))
            detail = f"processor time {seconds(now)} / {seconds(then)}"
            what = f"{title}, {part}: time over that of the earlier version"
            yield Figure(what, now / then, high=1.05, digits=3, detail=detail)


def _timed_tables() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    yield "ten groups", *make_ten_groups(_TIMED_ROWS, random_state=0)
    yield "shifted groups 5", *make_shifted_groups(_TIMED_ROWS, random_state=0)
    yield "breast cancer", *load_breast_cancer(return_X_y=True)


def _slower(
    title: str,
    above: tuple[np.ndarray, np.ndarray | None],
    below: tuple[np.ndarray, np.ndarray | None],
    y: np.ndarray,
    repeats: int,
) -> Iterator[Figure]:
    """Compare the times of a table and of the same without gaps or levels."""

    def fit(X: np.ndarray, levels: np.ndarray | None) -> CorralClassifier:
        return CorralClassifier(n_jobs=1, random_state=0, categorical_features=levels).fit(X, y)

    timings = time_alternately(
        {"above": Task(partial(fit, *above)), "below": Task(partial(fit, *below))}, repeats
    )
    yield ratio(f"{title}: fit", timings["above"], timings["below"], high=2.0, cpu=True)
    tasks = {
        name: Task(partial(fit(*table).predict_proba, table[0]))
        for name, table in (("above", above), ("below", below))
    }
    timings = time_alternately(tasks, repeats)
    yield ratio(f"{title}: predict_proba", timings["above"], timings["below"], high=2.0, cpu=True)


def child(number: int) -> None:
    """Time one table in a fresh process, which may have an earlier version; print seconds as JSON."""
    _, X, y = list(_timed_tables())[number]
    model = CorralClassifier(n_jobs=1, random_state=0)
    found = {"fit": np.inf, "predict": np.inf}
    with threadpool_limits(1):
        model.fit(X, y).predict_proba(X)
        for _ in range(3):
            start = time.process_time()
            model.fit(X, y)
            fitted = time.process_time()
            model.predict_proba(X)
            found["fit"] = min(found["fit"], fitted - start)
            found["predict"] = min(found["predict"], time.process_time() - fitted)
    print(json.dumps(found))


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
