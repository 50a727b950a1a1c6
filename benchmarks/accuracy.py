"""Accuracy, probabilities and times of CorralClassifier and other classifiers on the same splits.

Trial s draws rows and random numbers with the seed s. Every model has default parameters and one thread. SVC
and 5NN are fitted to standardized columns, "5NN raw" to unscaled columns.

Metrics: in the log loss, probabilities are at least 2.2e-16, as in scikit-learn. Some models predict
probabilities of 0, which make the log loss large. The "smoothed" log loss therefore uses (1 - e) p + e / K
for each probability p, with e = 1 / (n + 2), n training rows and K classes. The Brier score is the sum over
classes. The expected calibration error has 15 bins of equal width of the largest probability. It is larger in
small test sets, so the error that exact probabilities would have is printed below it. Times are processor
seconds.

Each data set has one size for which targets hold, with `--seeds` trials; other sizes have at most three
trials. EBM, CatBoost and LightGBM are in the dependency group `bench`. EBM, with and without pairs of
variables, has at most three trials, and each of its stages has a time limit. Rows of one anuran recording are
similar, and may be in both the training rows and the test rows. The data set digits has the test rows of
optdigits. The benchmark `pool` measures noise and the cost of a fit.
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

# Least mean accuracy over the data sets, by training rows per class.
_LEAST_ACCURACY = {30: 0.915, 300: 0.935}

# No data set may have one of these models ahead of corral by more than 0.01.
_JUDGES = ("GaussianNB", "LDA", "SVC", "forest", "boosting")

# Rounds of CatBoost; processor seconds of EBM for single variables, and again for pairs.
ROUNDS = 300
_SECONDS = 300.0

# Largest number of trials of slow models.
_FEWER_SEEDS = {"EBM": 3, "EBM pairs": 3}

Results = dict[tuple[str, int], dict[str, list[dict[str, Any]]]]  # by data and size, by model, by seed


@dataclass(frozen=True)
class Data:
    """A data set.

    Attributes
    ----------
    name : name in tables.
    split : function of the training rows per class and a seed, which draws training and test rows.
    size : training rows per class for which targets hold.
    """

    name: str
    split: Callable[[int, int], Split]
    size: int = 100

    def sizes(self) -> list[int]:
        """Return sizes with different numbers of training rows, which are at most two thirds of a class."""
        rows: dict[int, int] = {}
        for size in sorted({*_SIZES, self.size}):
            rows.setdefault(len(self.split(size, 0)[1]), size)
        return list(rows.values())


def run(options: Options) -> Iterator[Figure]:
    """Yield figures with targets, then print tables."""
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
    """Try all models, seed by seed, so that an interrupted run has equally many trials of every data set."""
    for seed in range(seeds):
        for data, size in cases:
            by_model = results.setdefault((data.name, size), {})
            for model in models_by_name(seed):
                if seed < _FEWER_SEEDS.get(model, seeds):
                    call = partial(_try, data, size, seed, model)
                    by_model.setdefault(model, []).append(trials.measure(data.name, size, seed, model, call))


def known_sets(test_rows: int = _TEST_ROWS) -> Iterator[Data]:
    """Yield the ten data sets; four of them need files in the folder CORRAL_DATA."""
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
    """SVC whose probabilities are a sigmoid of the cross-fitted decision function; labels as SVC."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        (fitted,) = self.calibrated_classifiers_
        return fitted.estimator.predict(X)


class _EndInTime:
    """Callback of EBM that ends all bags when the time of a stage (variables, or pairs) is over."""

    def __init__(self) -> None:
        self._bag, self._start = 0, None

    def __call__(self, bag: int, step: int, progress: bool, metric: float) -> bool:
        """Return whether to end."""
        now = time.process_time()
        if self._start is None or bag < self._bag:
            self._start = now
        self._bag = bag
        return now - self._start > _SECONDS


def models_by_name(seed: int) -> dict[str, Any]:
    """Return all installed classifiers with default parameters and one thread."""
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
    """Return CatBoost with fewer rounds than its default."""
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        iterations=ROUNDS, thread_count=1, random_seed=seed, verbose=False, allow_writing_files=False
    )


def _try(data: Data, size: int, seed: int, name: str) -> dict[str, Any]:
    """Fit a model to one split, and return the metrics of `judge`."""
    model = models_by_name(seed)[name]
    numbers = judge(model, data.split(size, seed), seed)
    if name == OWN:
        numbers |= {"chosen": model.members_[0].name, "best_score": float(model.cv_accuracy_)}
    return numbers


def judge(model: Any, split: Sequence[Any], seed: int) -> dict[str, Any]:
    """Fit a model to training rows, and compute metrics of its predictions of test rows, and times."""
    compile_all()
    X, y, X_test, y_test = split
    with threadpool_limits(1):
        start = time.process_time()
        model.fit(X, y)
        fitted = time.process_time()
        P = model.predict_proba(X_test)
        predicted = time.process_time()
        labels = np.ravel(model.predict(X_test))  # CatBoost returns a column
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
    """Average over rows the absolute difference of mean confidence and accuracy in the bin of the row."""
    bins = np.minimum((confidence * _N_BINS).astype(int), _N_BINS - 1)
    return float(np.abs(np.bincount(bins, confidence - right)).sum() / len(bins))


def _calibration_error_if_exact(confidence: np.ndarray, seed: int) -> float:
    """Average the calibration error over simulated labels that are right with probability `confidence`."""
    rng = np.random.default_rng(seed)
    draws = rng.random((_N_DRAWS, confidence.size))
    return float(np.mean([_calibration_error(confidence, numbers < confidence) for numbers in draws]))


@cache
def compile_all() -> None:
    """Fit once, so that compilation is not part of the times."""
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
        """Average a metric over seeds, for each data set."""
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
    yield Figure("  calibration error of exact probabilities", exact.mean(), digits=4, detail=by_set(exact))
    for metric, sign in (("accuracy", -1.0), ("smoothed", 1.0)):
        table = np.column_stack([means(metric, model) for model in models])
        ranks = dict(zip(models, rankdata(sign * table, axis=1).mean(axis=0), strict=True))
        best = min((model for model in models if model != OWN), key=ranks.__getitem__)
        detail = listed(dict(sorted(ranks.items(), key=lambda item: item[1])), ".2f")
        yield Figure(
            f"mean rank in {metric}: rank of {best} minus rank of corral",
            ranks[best] - ranks[OWN],
            0.0,
            detail=detail,
        )
    behind = np.max([means("accuracy", model) for model in _JUDGES], axis=0) - means("accuracy")
    what = "accuracy: best rival minus corral, largest over sets"
    yield Figure(what, behind.max(), high=0.01, digits=4, detail=by_set(behind, "+.3f"))
    if "waveform" in names:
        value = means("accuracy")[names.index("waveform")]
        yield Figure("accuracy on waveform", value, low=0.82, digits=4)
    times = means("fit") / means("fit", "forest")
    what = "fit time divided by that of a forest, largest over sets"
    yield Figure(what, times.max(), high=1.5, detail=by_set(times, ".2f"))
    bias = means("best_score") - means("accuracy")
    what = "cv_accuracy_ minus test accuracy, mean over sets"
    yield Figure(what, bias.mean(), -0.01, 0.01, digits=4, detail=by_set(bias, "+.3f"))


# ---------------------------------------------------------------------------------------------- tables

# Title, metric and digits of each line of means over the data sets.
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
    """Print two metrics of each data set, the best in bold, then means of all metrics over the data sets."""
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
