"""CorralClassifier beside other classifiers: accuracy, probabilities and costs on the same splits.

Trial s draws rows and random numbers from the seed s. Every model has its defaults and one thread; SVC and
5NN see standardised columns, "5NN raw" the columns as they are.

The log loss takes no probability as less than 2.2e-16, as scikit-learn does. Neighbours and trees give
probabilities of 0, which make it large, so it is also shown "smoothed": after every model has given 1 / (n
+ 2) of its probability to all classes alike, n being the number of training rows. The Brier score is the sum
over classes; the expected calibration error has 15 bins of equal width, by the probability of the most
probable class. Small test sets raise it: beside it is the error that exactly right probabilities would have.
Times are processor seconds.

The sizes of the targets have as many trials as `--seeds` says, other sizes at most three. EBM, CatBoost and
LightGBM come with the extra `bench`; EBM, without pairs of variables and with them, has at most three trials
and ends each of its stages in time. Rows of one anuran recording are alike and may fall on both sides of a
split. digits are the test rows of optdigits. `pool` measures noise and the cost of a fit.
"""

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

from benchmarks._measure import Figure, Options, has_data_folder, is_installed, listed, print_table
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

# Least mean accuracy over the sets with so many rows per class.
_LEAST_ACCURACY = {30: 0.915, 300: 0.935}

# On no set may one of these be ahead by more than 0.01.
_JUDGES = ("GaussianNB", "LDA", "SVC", "forest", "boosting")

# Rounds of CatBoost; processor seconds that EBM may take for single variables, and again for pairs.
ROUNDS = 300
_SECONDS = 300.0

# Most trials of models that take long.
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
        """Sizes with different numbers of rows: a class gives at most two thirds of its rows."""
        rows: dict[int, int] = {}
        for size in sorted({*_SIZES, self.size}):
            rows.setdefault(len(self.split(size, 0)[1]), size)
        return list(rows.values())


def run(options: Options) -> Iterator[Figure]:
    """Targets first, then tables for information."""
    trials = Trials(options.trials)
    sets = list(known_sets())
    for package in ("interpret", "catboost", "lightgbm"):
        is_installed(package, package)
    results: Results = {}
    _fill(results, [(data, data.size) for data in sets], trials, options.seeds)
    yield from _targets(sets, results)
    others = [(data, size) for data in sets for size in data.sizes() if size != data.size]
    _fill(results, others, trials, min(options.seeds, _SEEDS_OF_OTHER_SIZES))
    for size, low in _LEAST_ACCURACY.items():
        means = {
            name: float(np.mean([trial["accuracy"] for trial in by_model[OWN]]))
            for (name, n), by_model in results.items()
            if n == size
        }
        what = f"accuracy, {size} rows per class, mean over {len(means)} sets"
        yield Figure(what, float(np.mean([*means.values()])), low, digits=4, detail=listed(means))
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
                if seed < _FEWER_SEEDS.get(model, seeds):
                    call = partial(_try, data, size, seed, model)
                    by_model.setdefault(model, []).append(trials.measure(data.name, size, seed, model, call))


def known_sets(test_rows: int = _TEST_ROWS) -> Iterator[Data]:
    """Yield the ten sets, four of them only where CORRAL_DATA names the folder of their files."""
    yield Data("ten groups", partial(_draw, make_ten_groups, test_rows // 10), 150)
    yield Data("shifted groups 5", partial(_draw, make_shifted_groups, test_rows // 5), 200)
    if has_data_folder("anuran, waveform, optdigits"):
        frogs = load_anuran(return_X_y=True)
        yield Data("anuran", partial(_sample, *frogs, test_rows))
        yield Data("anuran + 5 noise", partial(_sample, *frogs, test_rows, noise=5))
        yield Data("waveform", partial(_sample, *load_waveform(return_X_y=True), test_rows))
        digits = load_optdigits(subset="all", return_X_y=True)
        yield Data("optdigits", partial(_sample, *digits, test_rows))
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
    """Ends the rounds of all of EBM's bags when the time of a stage, of variables or of pairs, is over."""

    def __init__(self) -> None:
        self._bag, self._start = 0, None

    def __call__(self, bag: int, step: int, progress: bool, metric: float) -> bool:
        """Whether to end."""
        now = time.process_time()
        if self._start is None or bag < self._bag:
            self._start = now
        self._bag = bag
        return now - self._start > _SECONDS


def models_by_name(seed: int) -> dict[str, Any]:
    """All classifiers that are installed, with their defaults and one thread."""
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
        models["CatBoost"] = catboost(seed)
    if find_spec("lightgbm") is not None:
        from lightgbm import LGBMClassifier

        models["LightGBM"] = LGBMClassifier(n_jobs=1, random_state=seed, verbosity=-1)
    return models


def catboost(seed: int) -> Any:
    """CatBoost with fewer rounds than its default."""
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        iterations=ROUNDS, thread_count=1, random_seed=seed, verbose=False, allow_writing_files=False
    )


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
    draws = rng.random((_N_DRAWS, confidence.size))
    return float(np.mean([_calibration_error(confidence, numbers < confidence) for numbers in draws]))


@cache
def compile_all() -> None:
    """Fit once, so that no trial takes the time of compiling."""
    X, y = make_shifted_groups(20, groups=(1, 2), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        CorralClassifier(n_jobs=1, random_state=0).fit(X, y).predict_proba(X)


# --------------------------------------------------------------------------------------------- targets


def _targets(sets: Sequence[Data], results: Results) -> Iterator[Figure]:
    names = [data.name for data in sets]
    cases = [results[data.name, data.size] for data in sets]
    models = list(cases[0])

    def means(metric: str, model: str = OWN) -> np.ndarray:
        """Mean of a metric over seeds, by data set."""
        return np.array([np.mean([trial[metric] for trial in case[model]]) for case in cases])

    def by_set(values: np.ndarray, form: str = ".3f") -> str:
        return listed(dict(zip(names, values, strict=True)), form)

    for metric, low, high in (
        ("accuracy", 0.935, np.inf),
        ("smoothed", -np.inf, 0.175),
        ("calibration", -np.inf, 0.02),
    ):
        own = means(metric)
        yield Figure(f"{metric}, mean over sets", own.mean(), low, high, digits=4, detail=by_set(own))
    exact = means("calibration_if_exact")
    yield Figure("  of exactly right probabilities", exact.mean(), digits=4, detail=by_set(exact))
    for metric, sign in (("accuracy", -1.0), ("smoothed", 1.0)):
        table = np.column_stack([means(metric, model) for model in models])
        ranks = dict(zip(models, rankdata(sign * table, axis=1).mean(axis=0), strict=True))
        best = min((model for model in models if model != OWN), key=ranks.__getitem__)
        detail = listed(dict(sorted(ranks.items(), key=lambda item: item[1])), ".2f")
        yield Figure(f"mean rank in {metric}, ahead of {best}", ranks[best] - ranks[OWN], 0.0, detail=detail)
    behind = np.max([means("accuracy", model) for model in _JUDGES], axis=0) - means("accuracy")
    what = "accuracy behind the best rival, worst set"
    yield Figure(what, behind.max(), high=0.01, digits=4, detail=by_set(behind, "+.3f"))
    if "waveform" in names:
        value = means("accuracy")[names.index("waveform")]
        yield Figure("accuracy on waveform", value, low=0.82, digits=4)
    times = means("fit") / means("fit", "forest")
    what = "time of a fit over a forest's, worst set"
    yield Figure(what, times.max(), high=1.5, detail=by_set(times, ".2f"))
    bias = means("best_score") - means("accuracy")
    what = "cv_accuracy_ less test accuracy, mean over sets"
    yield Figure(what, bias.mean(), -0.01, 0.01, digits=4, detail=by_set(bias, "+.3f"))


# ---------------------------------------------------------------------------------------------- tables

# Title, metric and digits of the lines of means over the sets.
_LINES = (
    ("accuracy", "accuracy", 3),
    ("log loss", "log_loss", 3),
    ("smoothed log loss", "smoothed", 3),
    ("Brier score", "brier", 3),
    ("calibration error", "calibration", 3),
    ("fit, s", "fit", 2),
    ("predict, s", "predict", 2),
)
_RANKED = ("accuracy", "smoothed", "brier", "calibration")


def _tables(title: str, keys: Sequence[tuple[str, int]], results: Results) -> None:
    """Print two metrics by data set, with the best in bold, then all metrics as means over the sets."""
    keys = [key for key in keys if key in results]
    models = list(results[keys[0]])
    trials = [len(results[key][OWN]) for key in keys]
    print(f"\n{title}, {min(trials)} to {max(trials)} seeds")
    names = [f"{name}, {round(results[name, size][OWN][0]['rows'])} rows" for name, size in keys]
    lines: dict[str, list[str]] = {}
    for label, metric, digits in _LINES:
        means = np.array([[np.mean([t[metric] for t in results[key][m]]) for m in models] for key in keys])
        better = -means if metric == "accuracy" else means
        if metric in ("accuracy", "smoothed"):
            bold = np.round(better, 3) == np.round(better, 3).min(axis=1, keepdims=True)
            cells = [
                [f"**{value:.3f}**" if best else f"{value:.3f}" for value, best in zip(*pair, strict=True)]
                for pair in zip(means, bold, strict=True)
            ]
            print_table(label, models, dict(zip(names, cells, strict=True)))
        lines[label] = [f"{value:.{digits}f}" for value in means.mean(axis=0)]
        if metric in _RANKED:
            lines[f"{label}, mean rank"] = [f"{rank:.1f}" for rank in rankdata(better, axis=1).mean(axis=0)]
    print_table("mean over sets", models, lines)
