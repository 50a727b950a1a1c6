"""Novelty and prediction sets: detection of unseen classes, time of typicality, error rates of 192 designs.

*Unseen classes.* Each class of a data set is left out of the training rows. Four scores should separate the
test rows of this class from the other test rows: the largest score of any class, by which `is_novel` decides;
the largest typicality, which has many ties; the mean distance to five neighbors among standardized rows; and
an isolation forest. Breast cancer is not used, because it has only two classes. If classes overlap, as in the
ten groups, the shifted groups and waveform, no method can separate them well.

*Error rates.* Designs have few rows, many columns, long tails or missing values. Training tables and new rows
have the same distribution. So the share of novel rows should be the significance level, and the share of
prediction sets with the right label should be the coverage. Columns are independent, and two classes differ
in three columns. Targets are for the mean over the training tables of a design. With n training rows, a row
can be novel at 0.01 only if it is less typical than all training rows. The probability of that is 1 / (n +
1), for example 0.0196 with 25 rows per class.

192 designs with 30 tables each need hours. `--trials FILE` stores the result of each table, so that a run can
be stopped and resumed. `CORRAL_DESIGNS` selects designs by a part of their names, such as "25 rows".
"""

import os
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks._measure import Figure, Options, listed, ratio, time_alternately
from benchmarks._trials import Split, Trials
from benchmarks.accuracy import known_sets
from corral import CorralClassifier, RodeoClassifier
from corral.datasets import make_shifted_groups, make_ten_groups

_ROWS = (25, 40, 100, 300)
_COLUMNS = (10, 20, 100, 500)
_MISSING = (0.0, 0.1)
_NEW_ROWS = 150
_SIGNIFICANCE_LEVELS = (0.05, 0.01)
_COVERAGES = (0.9, 0.95)
_UNSEEN_SEEDS = 2
_MOST_LEFT_OUT = 5  # with more classes, a seed leaves out every second class
_OVERLAP = ("ten", "shifted", "wave")
_SCORES = ("best score", "typicality", "5NN", "forest")
_TIMED_ROWS = 100_000

# Name and target of each rate.
_TARGETS = (
    ("novel at 0.05", 0.03, 0.07),
    ("novel at 0.01", -np.inf, 0.02),
    ("coverage of sets at 0.9", 0.88, np.inf),
    ("coverage of sets at 0.95", 0.93, np.inf),
)


class Columns(NamedTuple):
    """Distribution of columns, and change of some columns in the second class."""

    draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
    change: Callable[[np.random.Generator, np.ndarray], np.ndarray]


def _shifted(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return x + 1.0


def _doubled(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return 2.0 * x


_KINDS = {
    "normal": Columns(lambda rng, shape: rng.normal(size=shape), _shifted),
    "lognormal 1": Columns(lambda rng, shape: np.exp(rng.normal(size=shape)), _doubled),
    "lognormal 1.5": Columns(lambda rng, shape: np.exp(1.5 * rng.normal(size=shape)), _doubled),
    "t(2)": Columns(lambda rng, shape: rng.standard_t(2, size=shape), _shifted),
    "Cauchy": Columns(lambda rng, shape: rng.standard_cauchy(size=shape), _shifted),
    "Poisson 0.5": Columns(
        lambda rng, shape: rng.poisson(0.5, size=shape).astype(float),
        lambda rng, x: x + rng.poisson(0.7, size=x.shape),
    ),
}


class Design(NamedTuple):
    """Kind of columns, rows of each of two classes, number of columns, and share of missing values."""

    kind: str
    rows: int
    columns: int
    missing: float

    @property
    def name(self) -> str:
        """Printed name."""
        missing = f", {self.missing:.0%} missing" if self.missing else ""
        return f"{self.kind}, {self.rows} rows x {self.columns} columns{missing}"

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw n rows of each class."""
        kind = _KINDS[self.kind]
        X = kind.draw(rng, (2 * n, self.columns))
        X[n:, :3] = kind.change(rng, X[n:, :3])
        if self.missing:
            X[rng.random(X.shape) < self.missing] = np.nan
        return X, np.repeat([0, 1], n)


def designs() -> Iterator[Design]:
    """Yield the selected designs, small tables first."""
    chosen = os.environ.get("CORRAL_DESIGNS", "")
    every = (Design(*each) for each in product(_KINDS, _ROWS, _COLUMNS, _MISSING))
    for design in sorted(every, key=lambda design: design.rows * design.columns):
        if chosen in design.name:
            yield design


def run(options: Options) -> Iterator[Figure]:
    """Yield unseen classes and times, unless designs are selected, then error rates."""
    trials = Trials(options.trials)
    if "CORRAL_DESIGNS" not in os.environ:
        yield from _unseen_classes(trials, min(options.seeds, _UNSEEN_SEEDS))
        yield from _times(min(options.repeats, 3))
    yield from _error_rates(trials, max(options.seeds, 2))


def _error_rates(trials: Trials, seeds: int) -> Iterator[Figure]:
    """Yield a figure for each design, then means and extremes over all designs."""
    rates: dict[str, np.ndarray] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for design in designs():
            calls = [partial(_trial, design, seed) for seed in range(seeds)]
            results = [
                trials.measure(design.name, design.rows, seed, "own", call) for seed, call in enumerate(calls)
            ]
            tables = np.array([result["rates"] for result in results])
            rates[design.name] = tables.mean(axis=0)
            errors = tables.std(axis=0, ddof=1) / np.sqrt(seeds)
            pairs = zip(rates[design.name], errors, strict=True)
            detail = "novel at 0.05 and 0.01, coverage of 0.9 and 0.95 (standard errors): "
            detail += ", ".join(f"{rate:.3f} ({error:.3f})" for rate, error in pairs)
            yield Figure(design.name, rates[design.name][0], digits=3, detail=detail)
    names = list(rates)
    for (what, low, high), values in zip(_TARGETS, np.transpose(list(rates.values())), strict=True):
        n_met = int(((values >= low) & (values <= high)).sum())
        detail = f"{n_met} of {len(names)} designs within the target"
        yield Figure(f"{what}, mean over designs", values.mean(), low, high, digits=3, detail=detail)
        lowest, highest = names[values.argmin()], names[values.argmax()]
        yield Figure("  lowest of all designs", values.min(), low, digits=3, detail=lowest)
        yield Figure("  highest of all designs", values.max(), high=high, digits=3, detail=highest)


def _trial(design: Design, seed: int) -> dict[str, list[float]]:
    """Measure one training table: novel rows at both significance levels, and both coverages."""
    numbers = [design.rows, design.columns, int(100 * design.missing), *map(ord, design.kind)]
    rng = np.random.default_rng([seed, *numbers])
    X, y = design.draw(design.rows, rng)
    X_new, y_new = design.draw(_NEW_ROWS, rng)
    model = CorralClassifier(n_jobs=1, random_state=seed).fit(X, y)
    rows = np.arange(y_new.size)
    novel = [float(model.is_novel(X_new, alpha).mean()) for alpha in _SIGNIFICANCE_LEVELS]
    covered = [float(model.predict_set(X_new, c)[rows, y_new].mean()) for c in _COVERAGES]
    return {"rates": [*novel, *covered]}


# ---------------------------------------------------------------------------------- classes never seen


def _unseen_classes(trials: Trials, seeds: int) -> Iterator[Figure]:
    by_set: dict[str, np.ndarray] = {}
    for data in known_sets():
        aurocs = []
        for seed in range(seeds):
            split = data.split(data.size, seed)
            call = partial(_aurocs, split, seed)
            if np.unique(split[1]).size > 2:
                aurocs.append(trials.measure(data.name, data.size, seed, "unseen classes", call)["aurocs"])
        if aurocs:
            by_set[data.name] = np.mean(aurocs, axis=0)
    mean = dict(zip(_SCORES, np.mean(list(by_set.values()), axis=0), strict=True))
    own = mean["best score"]
    detail = ", ".join(f"{name} {' '.join(f'{v:.3f}' for v in values)}" for name, values in by_set.items())
    what = "AUROC of unseen classes, mean over sets"
    yield Figure(what, own, 0.95, digits=3, detail=f"{', '.join(_SCORES)}: {detail}")
    for rival in ("5NN", "forest"):
        yield Figure(
            f"  minus that of {rival}", own - mean[rival], 0.0, digits=3, detail=f"{mean[rival]:.3f}"
        )
    yield Figure("  AUROC by the largest typicality", mean["typicality"], digits=3)
    apart = {name: values[0] for name, values in by_set.items() if not name.startswith(_OVERLAP)}
    what = "  AUROC in sets with little overlap of classes"
    yield Figure(what, float(np.mean([*apart.values()])), digits=3, detail=listed(apart))


def _aurocs(split: Split, seed: int) -> dict[str, list[float]]:
    """Average the AUROC of each score over the classes that are left out."""
    labels = np.unique(split[1])
    left_out = labels if labels.size <= _MOST_LEFT_OUT else labels[seed % 2 :: 2]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        by_class = [_auroc_without(label, split, seed) for label in left_out]
    return {"aurocs": np.mean(by_class, axis=0).tolist()}


def _auroc_without(label: object, split: Split, seed: int) -> list[float]:
    X, y, X_test, y_test = split
    X = X[y != label]
    assessment = CorralClassifier(n_jobs=1, random_state=seed).fit(X, y[y != label]).assess(X_test)
    scale = StandardScaler().fit(X)
    neighbours = NearestNeighbors(n_neighbors=5).fit(scale.transform(X))
    scores = (
        -assessment.scores.max(axis=1),
        -assessment.typicality.max(axis=1),
        neighbours.kneighbors(scale.transform(X_test))[0].mean(axis=1),
        -IsolationForest(random_state=seed).fit(X).score_samples(X_test),
    )
    return [roc_auc_score(y_test == label, score) for score in scores]


def _times(repeats: int) -> Iterator[Figure]:
    for name, make in (("ten groups", make_ten_groups), ("shifted groups", make_shifted_groups)):
        X, y = make(150, random_state=0)
        rows, _ = make(_TIMED_ROWS // np.unique(y).size, random_state=1)
        for kind, model in (
            ("pool", CorralClassifier(n_jobs=1, random_state=0)),
            ("class bandwidths", RodeoClassifier(bandwidth="class")),
        ):
            model.fit(X, y)
            calls = [partial(model.typicality, rows), partial(model.predict_proba, rows)]
            times = time_alternately(dict(zip("ab", calls, strict=True)), repeats)
            what = f"time of typicality / predict_proba, 100,000 rows, {name}, {kind}"
            yield ratio(what, times["a"], times["b"], high=1.3, cpu=True)
