"""CorralClassifier beside other classifiers: accuracy, probabilities and costs on the same splits.

Trial s draws rows and random numbers from the seed s. Every model has its defaults and one thread; SVC and
5NN see standardised columns, "5NN raw" the columns as they are. No test row is seen before the test.

The log loss takes no probability for less than 2.2e-16, as scikit-learn does. Votes of neighbours or trees
that say 0 make it large, so it is also shown "smoothed": after every model has given 1 / (n + 2) of its
probability to all classes alike, n being the number of training rows. The Brier score is the sum over
classes; the expected calibration error has 15 bins of equal width, by the probability of the most probable
class. Small test sets raise it: beside it is what exactly right probabilities would have, by labels that are
drawn from them. Times are processor seconds.

The sizes of the targets have as many trials as `--seeds` says, other sizes at most three. EBM, CatBoost and
LightGBM come with the extra `bench`; EBM, without pairs of variables and with them, has fewer trials, since
it takes long, and has to end each of its stages in time. Rows of one anuran recording are alike and may fall
on both sides of a split. digits are the test rows of optdigits. `pool` measures noise and the cost of a fit.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from benchmarks._measure import Figure, Options
from benchmarks._trials import Split, Trials, draw, rivals, sample
from benchmarks.kernel_naive_bayes import KernelNaiveBayes
from corral import CorralClassifier
from corral.datasets import load_anuran, load_optdigits, load_waveform, make_shifted_groups, make_ten_groups

_SIZES = (30, 100, 300)
_TEST_ROWS = 1000
_SEEDS_OF_OTHER_SIZES = 3
_N_BINS = 15
_N_DRAWS = 50
OWN = "corral"

# Mean accuracies over the sets with so many rows per class, and on one set at the size of the targets.
_LEAST_ACCURACY = {30: 0.915, 300: 0.935}
_LEAST_ON_WAVEFORM = 0.82

# On no set may one of these be ahead by more than 0.01.
_JUDGES = ("GaussianNB", "LDA", "SVC", "forest", "boosting")

# Rounds of CatBoost; processor seconds that EBM may take for single variables, and again for pairs.
ROUNDS = 300
_SECONDS = 300.0

# Trials, at most, of those that take long.
_FEWER_SEEDS = {"EBM": 3, "EBM pairs": 3}

Results = dict[tuple[str, int], dict[str, list[dict[str, Any]]]]  # by data and size, by model, by seed


@dataclass(frozen=True)
class Data:
    """A data set.

    Attributes
    ----------
    name : in tables.
    split : draws training and test rows, given training rows per class and a seed.
    size : training rows per class for which targets hold.
    """

    name: str
    split: Callable[[int, int], Split]
    size: int = 100

    def sizes(self) -> list[int]:
        """Sizes that differ: where two thirds of the rows are fewer than asked for, they are taken once."""
        rows: dict[int, int] = {}
        for size in sorted({*_SIZES, self.size}):
            rows.setdefault(len(self.split(size, 0)[1]), size)
        return list(rows.values())


def run(options: Options) -> Iterator[Figure]:
    """Targets first, then what only tables show."""
    trials = Trials(options.trials)
    sets = list(known_sets())
    for package in ("interpret", "catboost", "lightgbm"):
        if find_spec(package) is None:
            print(f"  {package}: not measured, because it is not installed; it comes with the extra bench")
    results: Results = {}
    _fill(results, [(data, data.size) for data in sets], trials, options.seeds)
    yield from _targets(sets, results)
    others = [(data, size) for data in sets for size in data.sizes() if size != data.size]
    _fill(results, others, trials, min(options.seeds, _SEEDS_OF_OTHER_SIZES))
    yield from _other_sizes(sets, results)
    _tables("sizes of the targets", [(data.name, data.size) for data in sets], results)
    for size in _SIZES:
        _tables(f"{size} rows per class", [(data.name, size) for data in sets], results)


# ---------------------------------------------------------------------------------------------- trials


def _fill(results: Results, cases: Sequence[tuple[Data, int]], trials: Trials, seeds: int) -> None:
    """Try all models, seed by seed: a run that was stopped has the same trials of every data set."""
    for seed in range(seeds):
        for data, size in cases:
            by_model = results.setdefault((data.name, size), {})
            for model in models_by_name(seed):
                if seed >= _FEWER_SEEDS.get(model, seeds):
                    continue
                call = partial(_try, data, size, seed, model)
                by_model.setdefault(model, []).append(trials.measure(data.name, size, seed, model, call))


def known_sets(test_rows: int = _TEST_ROWS) -> Iterator[Data]:
    """Yield the ten sets, those in files only where CORRAL_DATA names their folder."""
    yield Data("ten groups", partial(_draw, make_ten_groups, test_rows // 10), 150)
    yield Data("shifted groups 5", partial(_draw, make_shifted_groups, test_rows // 5), 200)
    if os.environ.get("CORRAL_DATA"):
        frogs = load_anuran(return_X_y=True)
        yield Data("anuran", partial(_sample, *frogs, test_rows))
        yield Data("anuran + 5 noise", partial(_sample, *frogs, test_rows, noise=5))
        yield Data("waveform", partial(_sample, *load_waveform(return_X_y=True), test_rows))
        digits = load_optdigits(subset="all", return_X_y=True)
        yield Data("optdigits", partial(_sample, *digits, test_rows))
    else:
        print("  anuran, waveform, optdigits: not measured, because CORRAL_DATA does not name a data folder")
    for load in (load_iris, load_wine, load_breast_cancer, load_digits):
        name = load.__name__.removeprefix("load_").replace("_", " ")
        yield Data(name, partial(_sample, *load(return_X_y=True), test_rows))


def _draw(make: Callable[..., Any], test: int, size: int, seed: int) -> Split:
    return draw(make, size, test, seed)


def _sample(X: np.ndarray, y: np.ndarray, test_rows: int, size: int, seed: int, noise: int = 0) -> Split:
    return sample(X, y, size, test_rows // len(np.unique(y)), seed, noise)


class _ProbabilisticSVC(CalibratedClassifierCV):
    """Labels of the SVC itself, probabilities by a sigmoid of its cross-fitted decision function."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        (fitted,) = self.calibrated_classifiers_
        return fitted.estimator.predict(X)


class _EndInTime:
    """Ends the rounds of all of EBM's bags when a stage, of variables or of pairs, has had its time."""

    def __init__(self) -> None:
        self._bag, self._start = 0, None

    def __call__(self, bag: int, step: int, progress: bool, metric: float) -> bool:
        """Tell whether to end."""
        now = time.process_time()
        if self._start is None or bag < self._bag:
            self._start = now
        self._bag = bag
        return now - self._start > _SECONDS


def models_by_name(seed: int) -> dict[str, Any]:
    models = {OWN: CorralClassifier(n_jobs=1, random_state=seed), **rivals(seed)}
    models["SVC"] = _ProbabilisticSVC(models["SVC"], ensemble=False)
    models["KDE NB"] = KernelNaiveBayes()
    models["boosting"] = HistGradientBoostingClassifier(random_state=seed)
    models["LDA"] = LinearDiscriminantAnalysis()
    if find_spec("interpret") is not None:
        from interpret.glassbox import ExplainableBoostingClassifier

        for name, pairs in (("EBM", {"interactions": 0}), ("EBM pairs", {})):
            models[name] = ExplainableBoostingClassifier(
                n_jobs=1, random_state=seed, callback=_EndInTime(), **pairs
            )
    if find_spec("catboost") is not None:
        from catboost import CatBoostClassifier

        models["CatBoost"] = CatBoostClassifier(
            iterations=ROUNDS, thread_count=1, random_seed=seed, verbose=False, allow_writing_files=False
        )
    if find_spec("lightgbm") is not None:
        from lightgbm import LGBMClassifier

        models["LightGBM"] = LGBMClassifier(n_jobs=1, random_state=seed, verbosity=-1)
    return models


def _try(data: Data, size: int, seed: int, name: str) -> dict[str, Any]:
    """Fit a model to one split and judge it."""
    model = models_by_name(seed)[name]
    numbers = judge(model, data.split(size, seed), seed)
    if name == OWN:
        numbers |= {"chosen": model.members_[0].name, "best_score": float(model.cv_accuracy_)}
    return numbers


def judge(model: Any, split: Sequence[Any], seed: int) -> dict[str, Any]:
    """Fit a model to training rows and judge its probabilities of test rows."""
    compile_all()
    X, y, X_test, y_test = split
    with threadpool_limits(1):
        start = time.process_time()
        model.fit(X, y)
        fitted = time.process_time()
        P = model.predict_proba(X_test)
        predicted = time.process_time()
        labels = np.ravel(model.predict(X_test))  # CatBoost's is a column
    codes = np.searchsorted(model.classes_, y_test)
    right = P[np.arange(len(P)), codes]
    prior_mixing = 1.0 / (len(y) + 2.0)
    return {
        "rows": len(y),
        "test_rows": len(y_test),
        "accuracy": float((labels == y_test).mean()),
        "log_loss": float(-np.log(np.maximum(right, np.finfo(float).eps)).mean()),
        "smoothed": float(-np.log((1.0 - prior_mixing) * right + prior_mixing / P.shape[1]).mean()),
        "brier": float(((P - np.eye(P.shape[1])[codes]) ** 2).sum(axis=1).mean()),
        "calibration": _calibration_error(P.max(axis=1), P.argmax(axis=1) == codes),
        "calibration_if_exact": _calibration_error_if_exact(P.max(axis=1), seed),
        "fit": fitted - start,
        "predict": predicted - fitted,
    }


def _calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    """Mean over rows of the distance between confidence and accuracy in a row's bin."""
    bins = np.minimum((confidence * _N_BINS).astype(int), _N_BINS - 1)
    return float(np.abs(np.bincount(bins, confidence - right)).sum() / len(bins))


def _calibration_error_if_exact(confidence: np.ndarray, seed: int) -> float:
    """Mean calibration error of labels that are right as often as the confidence says."""
    rng = np.random.default_rng(seed)
    draws = [
        _calibration_error(confidence, rng.random(confidence.size) < confidence) for _ in range(_N_DRAWS)
    ]
    return float(np.mean(draws))


@cache
def compile_all() -> None:
    """Fit once, so that no trial pays for compiled code."""
    X, y = make_shifted_groups(20, groups=(1, 2), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        CorralClassifier(n_jobs=1, random_state=0).fit(X, y).predict_proba(X)


# --------------------------------------------------------------------------------------------- targets


def _values(results: Results, data: Data, model: str, metric: str) -> np.ndarray:
    """A metric by seed, at the size of the target."""
    return np.array([found[metric] for found in results[data.name, data.size][model]])


def _targets(sets: Sequence[Data], results: Results) -> Iterator[Figure]:
    models = list(results[sets[0].name, sets[0].size])
    rivals = [model for model in models if model != OWN]
    mean = {
        metric: np.array([[_values(results, data, m, metric).mean() for m in models] for data in sets])
        for metric in ("accuracy", "smoothed", "calibration", "fit")
    }
    own = {metric: values[:, models.index(OWN)] for metric, values in mean.items()}
    for metric, low, high in (
        ("accuracy", 0.935, np.inf),
        ("smoothed", -np.inf, 0.175),
        ("calibration", -np.inf, 0.02),
    ):
        detail = ", ".join(f"{d.name} {value:.3f}" for d, value in zip(sets, own[metric], strict=True))
        yield Figure(f"{metric}, mean over sets", own[metric].mean(), low, high, digits=4, detail=detail)
    exact = np.array([_values(results, data, OWN, "calibration_if_exact").mean() for data in sets])
    detail = ", ".join(f"{data.name} {value:.3f}" for data, value in zip(sets, exact, strict=True))
    yield Figure("  of exactly right probabilities", exact.mean(), digits=4, detail=detail)
    for metric, sign in (("accuracy", -1.0), ("smoothed", 1.0)):
        ranks = dict(zip(models, rankdata(sign * mean[metric], axis=1).mean(axis=0), strict=True))
        best = min(rivals, key=ranks.__getitem__)
        detail = ", ".join(f"{model} {rank:.2f}" for model, rank in sorted(ranks.items(), key=lambda r: r[1]))
        ahead = ranks[best] - ranks[OWN]
        yield Figure(f"mean rank in {metric}, ahead of {best}", ahead, 0.0, digits=2, detail=detail)
    judges = [models.index(name) for name in _JUDGES]
    behind = mean["accuracy"][:, judges].max(axis=1) - own["accuracy"]
    detail = ", ".join(f"{data.name} {value:+.3f}" for data, value in zip(sets, behind, strict=True))
    yield Figure(
        "accuracy behind the best rival, worst set", behind.max(), high=0.01, digits=4, detail=detail
    )
    for data, value in zip(sets, own["accuracy"], strict=True):
        if data.name == "waveform":
            yield Figure("accuracy on waveform", value, low=_LEAST_ON_WAVEFORM, digits=4)
    ratio = own["fit"] / mean["fit"][:, models.index("forest")]
    detail = ", ".join(f"{data.name} {value:.2f}" for data, value in zip(sets, ratio, strict=True))
    yield Figure("time of a fit over a forest's, worst set", ratio.max(), high=1.5, digits=2, detail=detail)
    off = np.array(
        [[f["best_score"] - f["accuracy"] for f in results[d.name, d.size][OWN]] for d in sets]
    ).mean(axis=1)
    detail = ", ".join(f"{data.name} {value:+.3f}" for data, value in zip(sets, off, strict=True))
    yield Figure(
        "cv_accuracy_ less test accuracy, mean over sets", off.mean(), -0.01, 0.01, digits=4, detail=detail
    )


def _other_sizes(sets: Sequence[Data], results: Results) -> Iterator[Figure]:
    """Mean accuracies where classes have fewer or more rows, over the sets that have so many."""
    for size, low in _LEAST_ACCURACY.items():
        found = {
            data.name: np.mean([trial["accuracy"] for trial in results[data.name, size][OWN]])
            for data in sets
            if (data.name, size) in results
        }
        detail = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
        what = f"accuracy, {size} rows per class, mean over {len(found)} sets"
        yield Figure(what, float(np.mean(list(found.values()))), low=low, digits=4, detail=detail)


# ---------------------------------------------------------------------------------------------- tables


def _tables(title: str, keys: Sequence[tuple[str, int]], results: Results) -> None:
    """Print tables for the README: two metrics by data set, then all metrics as means over the sets."""
    keys = [key for key in keys if key in results]
    models = list(results[keys[0]])
    means = {
        metric: np.array([[np.mean([t[metric] for t in results[key][m]]) for m in models] for key in keys])
        for metric in ("accuracy", "log_loss", "smoothed", "brier", "calibration", "fit", "predict")
    }
    ranks = {
        metric: np.array([rankdata(row if metric != "accuracy" else -row) for row in means[metric]]).mean(0)
        for metric in ("accuracy", "smoothed", "brier", "calibration")
    }
    trials = [len(results[key][OWN]) for key in keys]
    print(f"\n{title}, {min(trials)} to {max(trials)} seeds")
    names = [f"{name}, {round(results[name, size][OWN][0]['rows'])} rows" for name, size in keys]
    for metric, label, best in (("accuracy", "accuracy", np.max), ("smoothed", "smoothed log loss", np.min)):
        _table(label, models, names, means[metric], best)
    rows = [
        ("accuracy", means["accuracy"].mean(0), 3),
        ("  mean rank", ranks["accuracy"], 1),
        ("log loss", means["log_loss"].mean(0), 3),
        ("smoothed log loss", means["smoothed"].mean(0), 3),
        ("  mean rank", ranks["smoothed"], 1),
        ("Brier score", means["brier"].mean(0), 3),
        ("  mean rank", ranks["brier"], 1),
        ("calibration error", means["calibration"].mean(0), 3),
        ("  mean rank", ranks["calibration"], 1),
        ("fit, s", means["fit"].mean(0), 2),
        ("predict, s", means["predict"].mean(0), 2),
    ]
    print(f"\n| mean over sets | {' | '.join(models)} |\n|{'---|' * (len(models) + 1)}")
    for name, values, digits in rows:
        print(f"| {name.strip()} | {' | '.join(f'{value:.{digits}f}' for value in values)} |")


def _table(
    label: str, models: Sequence[str], names: Sequence[str], values: np.ndarray, best: Callable[..., Any]
) -> None:
    """One row per data set, with the best of each in bold."""
    print(f"\n| {label} | {' | '.join(models)} |\n|{'---|' * (len(models) + 1)}")
    for name, row in zip(names, np.round(values, 3), strict=True):
        cells = [f"**{value:.3f}**" if value == best(row) else f"{value:.3f}" for value in row]
        print(f"| {name} | {' | '.join(cells)} |")
