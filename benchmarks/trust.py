"""Trust: rows of classes never seen, rows far away, sets of labels, and what it costs to ask.

*A class never seen.* Classes of the known sets are left out in turn; test rows of a class are to be told from
those of the others by the best score, which is_novel ranks, by the largest typicality, which has many ties,
by the mean distance to five neighbours in standard units, or by an isolation forest. Breast cancer has two
classes only, and one of them cannot be fitted alone. Where classes overlap, as they do in the ten groups,
the shifted groups and waveform, no method can tell them apart well: what the true densities of the other
classes achieve is shown beside it.

*Far away.* Test rows are moved by ten standard deviations in one column, up or down, and a million. Where
training rows lie as far out, a moved row is not new: a training row outdoes it that lies as far from the
median of some column, in deviations, with as many other rows beyond it or fewer. If more than 0.01 of the
training rows do so, no score by which a value is the stranger the further it lies out and the fewer lie
beyond it can call the moved row novel at 0.01, but by its other columns. Rows of which that is not so are
counted by themselves, and so are rows that are moved outside the range.

*Sets.* The target is two-sided, in binomial standard errors of the test rows; what is too low, and does harm,
is shown by itself. Two things stand against the target. The coverage of a class depends on its training rows
as well: given n of them it has a beta distribution with the variance c (1 - c) / (n + 2). And a set that
would be empty holds the predicted label, so that classes which are nearly always right are covered more often
than asked for. So the deviation is shown a second time, in standard errors of test and training rows; there a
coverage between the one asked for and the share of right labels, or the next multiple of 1 / (n + 1), is not
off.

The constants of the score were chosen on other tables and designs (KEEL, MASS, penguins, simulated ones), but
for one that docs/measurements.md names; the hard designs are drawn from seeds that had no part in any choice.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm, rankdata
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks._measure import Figure, Options, Task, ratio, time_alternately
from benchmarks._trials import Split, draw
from benchmarks.accuracy import Data, known_sets
from corral import CorralClassifier, RodeoClassifier
from corral.datasets import make_shifted_groups, make_ten_groups

_COVERAGES = (0.9, 0.95)
_LEVEL = 0.01  # of is_novel
_SCALES = ("range", "standard", "rank", None)
_SPEED_ROWS = 100_000
_SMALL = 20
_SKEWED = {1: 400, 2: 100, 3: 25}
_NOVEL_SEEDS = 2
_TEST_PER_CLASS = 500
_FRESH = 1000  # the first seed of the hard designs
_HARD_SEEDS = 30
_MOST_LEFT_OUT = 5  # of more classes every second one is left out, the others by the next seed
_OVERLAP = ("ten", "shifted", "wave")


def run(options: Options) -> Iterator[Figure]:
    """Novelty first, then sets, then times."""
    sets = list(known_sets())
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no variable was found", UserWarning)
        warnings.filterwarnings("ignore", ".* cop(y|ies) of ", UserWarning)
        yield from _unseen_classes(sets, min(options.seeds, _NOVEL_SEEDS))
        yield from _known_rows_and_sets(sets, options.seeds)
        yield from _far_rows(sets)
        yield from _hard_designs(max(options.seeds, _HARD_SEEDS))
    yield from _speed(options)


def _fit(X: np.ndarray, y: np.ndarray, seed: int) -> CorralClassifier:
    return CorralClassifier(n_jobs=1, random_state=seed).fit(X, y)


# ---------------------------------------------------------------------------------------- unseen classes


_SCORES = ("best score", "typicality", "5NN", "forest", "true densities")


def _unseen_classes(sets: Sequence[Data], seeds: int) -> Iterator[Figure]:
    found: dict[str, list[np.ndarray]] = {}
    for data in sets:
        for seed in range(seeds):
            split = data.split(data.size, seed)
            if np.unique(split[1]).size < 3:
                continue
            labels = np.unique(split[1])
            left_out = labels if labels.size <= _MOST_LEFT_OUT else labels[seed % 2 :: 2]
            by_class = [_aurocs(data.name, split, label, seed) for label in left_out]
            found.setdefault(data.name, []).append(np.mean(by_class, axis=0))
    by_set = {name: np.mean(aurocs, axis=0) for name, aurocs in found.items()}
    mean = dict(zip(_SCORES, np.mean(list(by_set.values()), axis=0), strict=True))
    own = mean["best score"]
    detail = ", ".join(f"{name} {' '.join(f'{v:.3f}' for v in values)}" for name, values in by_set.items())
    yield Figure(
        "AUROC of a class never seen, mean over sets",
        own,
        0.95,
        digits=3,
        detail=f"{', '.join(_SCORES)}: {detail}",
    )
    for rival in ("5NN", "forest"):
        detail = f"{rival} {mean[rival]:.3f}"
        yield Figure(f"  above {rival}", own - mean[rival], 0.0, digits=3, detail=detail)
    yield Figure("  of the largest typicality", mean["typicality"], digits=3)
    for what, chosen in (
        ("sets whose classes hardly overlap", [n for n in by_set if not n.startswith(_OVERLAP)]),
        ("the others", [n for n in by_set if n.startswith(_OVERLAP)]),
    ):
        values = dict(zip(_SCORES, np.mean([by_set[name] for name in chosen], axis=0), strict=True))
        detail = ", ".join(f"{name} {value:.3f}" for name, value in values.items() if np.isfinite(value))
        yield Figure(f"  of {what}", values["best score"], digits=3, detail=detail)


def _aurocs(name: str, split: Split, label: object, seed: int) -> list[float]:
    X, y, X_test, y_test = split
    X = X[y != label]
    found = _fit(X, y[y != label], seed).assess(X_test)
    units = StandardScaler().fit(X)
    neighbours = NearestNeighbors(n_neighbors=5).fit(units.transform(X))
    scores = (
        -found.scores.max(axis=1),
        -found.typicality.max(axis=1),
        neighbours.kneighbors(units.transform(X_test))[0].mean(axis=1),
        -IsolationForest(random_state=seed).fit(X).score_samples(X_test),
    )
    aurocs = [roc_auc_score(y_test == label, score) for score in scores]
    if not name.startswith(_OVERLAP):
        return [*aurocs, np.nan]
    known = np.unique(y) != label
    return [*aurocs, roc_auc_score(y_test == label, -_true_log_densities(name, X_test)[:, known].max(axis=1))]


def _true_log_densities(name: str, X: np.ndarray) -> np.ndarray:
    """Log densities of the classes of a design as it was drawn, but for a constant."""
    if name.startswith("ten"):
        deviations = 0.02 * np.arange(1, 7)
        return np.stack([norm.logpdf(X[:, k : k + 6], 0.5, deviations).sum(axis=1) for k in range(10)], 1)
    if name.startswith("shifted"):
        many, groups = make_shifted_groups(20_000, random_state=0)
        means = [many[groups == group, :2].mean(axis=0) for group in np.unique(groups)]
        return np.stack([norm.logpdf(X[:, :2], mean, (0.1, 0.2)).sum(axis=1) for mean in means], 1)
    peaks = {0: (15, 7), 1: (11, 7), 2: (11, 15)}  # of triangular waves, mixed at random
    first, second = (
        np.array([np.maximum(6 - abs(np.arange(1, 22) - pair[k]), 0) for pair in peaks.values()])
        for k in (0, 1)
    )
    shares = (np.arange(100)[:, np.newaxis, np.newaxis] + 0.5) / 100
    means = shares * first + (1.0 - shares) * second
    return np.stack(
        [
            logsumexp([norm.logpdf(X[:, :21], mean).sum(axis=1) for mean in means[:, k]], axis=0)
            for k in range(3)
        ],
        1,
    )


# ------------------------------------------------------------------------------------------- known rows


def _known_rows_and_sets(sets: Sequence[Data], seeds: int) -> Iterator[Figure]:
    novel: dict[str, float] = {}
    off: dict[float, dict[object, tuple[float, float]]] = {c: {} for c in _COVERAGES}
    sizes: dict[float, dict[str, float]] = {c: {} for c in _COVERAGES}
    accuracy: dict[str, float] = {}
    for data in sets:
        trials = [_Trial(data.split(data.size, seed), seed) for seed in range(seeds)]
        novel[data.name] = float(np.mean([trial.novel for trial in trials]))
        accuracy[data.name] = float(np.mean([trial.accuracy for trial in trials]))
        for c in _COVERAGES:
            sizes[c][data.name] = float(np.mean([trial.sizes[c] for trial in trials]))
            off[c] |= {f"{data.name} {label}": z for label, z in _deviations(trials, c).items()}
    detail = ", ".join(f"{name} {share:.3f}" for name, share in novel.items())
    share = np.mean(list(novel.values()))
    yield Figure("novel among known rows at 0.05, mean over sets", share, 0.03, 0.07, digits=3, detail=detail)
    for c in _COVERAGES:
        yield from _coverage_figures(f"coverage off {c}, worst class", off[c], f"{seeds} seeds")
        easy = {name: size for name, size in sizes[c].items() if accuracy[name] > 0.95}
        detail = ", ".join(f"{name} {size:.2f}" for name, size in easy.items())
        what = f"  labels in a set where accuracy is above 0.95, worst set, {c}"
        yield Figure(what, max(easy.values()), high=1.2, detail=detail)


class _Trial:
    """What one split says of known rows: novelty, accuracy, coverage by class, sizes of sets."""

    def __init__(self, split: Split, seed: int) -> None:
        X, y, X_test, y_test = split
        model = _fit(X, y, seed)
        codes = np.searchsorted(model.classes_, y_test)
        self.classes = model.classes_
        self.n_train = np.array([(y == label).sum() for label in self.classes])
        self.n_test = np.bincount(codes, minlength=self.classes.size)
        self.novel = model.is_novel(X_test, 0.05).mean()
        is_right = model.predict(X_test) == y_test
        self.accuracy = is_right.mean()
        self.n_right = np.bincount(codes, is_right, minlength=self.classes.size)
        found = {c: model.predict_set(X_test, c) for c in _COVERAGES}
        self.sizes = {c: of_c.sum(axis=1).mean() for c, of_c in found.items()}
        self.held = {
            c: np.bincount(codes, of_c[np.arange(codes.size), codes], minlength=self.classes.size)
            for c, of_c in found.items()
        }


def _deviations(trials: Sequence[_Trial], coverage: float) -> dict[object, tuple[float, float]]:
    """How far the coverage of each class is off, in standard errors of test rows, and of all rows.

    Splits count as independent. The second one is 0 between the coverage that was asked for and the share of
    right labels, or what a rank among the training rows rounds it up to, if that is more.
    """
    held, n_test, n_right = (
        np.sum([values(trial) for trial in trials], axis=0)
        for values in (lambda t: t.held[coverage], lambda t: t.n_test, lambda t: t.n_right)
    )
    n_train = np.array([trial.n_train for trial in trials])
    covered, variance = held / n_test, coverage * (1.0 - coverage)
    of_test = (covered - coverage) / np.sqrt(variance / n_test)
    rounded = 1.0 - np.floor((1.0 - coverage) * (n_train + 1) + 1e-9) / (n_train + 1)
    highest = np.maximum(n_right / n_test, rounded.mean(axis=0))
    off = covered - np.clip(covered, coverage, np.maximum(highest, coverage))
    of_training = (1.0 / (n_train + 2)).sum(axis=0) / len(trials) ** 2
    of_all = off / np.sqrt(variance * (1.0 / n_test + of_training))
    pairs = zip(of_test.tolist(), of_all.tolist(), strict=True)
    return dict(zip(trials[0].classes.tolist(), pairs, strict=True))


def _coverage_figures(what: str, off: dict[object, tuple[float, float]], detail: str) -> Iterator[Figure]:
    """The target, two-sided; what is too low; and both if training rows and sure classes are allowed for."""
    for k, kind in enumerate((what, "  training rows and sure classes allowed for")):
        worst = sorted(((name, z[k]) for name, z in off.items()), key=lambda item: -abs(item[1]))
        found = np.array([z for _, z in worst])
        named = ", ".join(f"{name} {z:+.1f}" for name, z in worst[:4])
        counts = f"of {len(off)} classes {np.sum(found > 3.0)} too high, {np.sum(found < -3.0)} too low"
        shown = f"{detail}; {counts}; {named}"
        yield Figure(kind, abs(found[0]), high=3.0, unit=" se", digits=1, detail=shown)
        if k == 0:
            yield Figure("  too low, worst class", max(0.0, -found.min()), high=3.0, unit=" se", digits=1)


def _hard_designs(seeds: int) -> Iterator[Figure]:
    designs: dict[str, Callable[[int], Split]] = {
        f"{_SMALL} rows per class, ten groups": partial(draw, make_ten_groups, _SMALL, _TEST_PER_CLASS),
        f"{_SMALL} rows per class, shifted groups": partial(
            draw, make_shifted_groups, _SMALL, _TEST_PER_CLASS
        ),
        "skewed classes, shifted groups": _skewed,
    }
    for name, split in designs.items():
        trials = [_Trial(split(seed=_FRESH + seed), seed) for seed in range(seeds)]
        for c in _COVERAGES:
            size = np.mean([trial.sizes[c] for trial in trials])
            mean = np.mean([trial.held[c] / trial.n_test for trial in trials])
            yield Figure(f"coverage, mean over classes and trials, {c}, {name}", mean, digits=3)
            what = f"coverage off {c}, worst class, {name}"
            yield from _coverage_figures(what, _deviations(trials, c), f"{seeds} seeds, {size:.2f} labels")


def _skewed(seed: int) -> Split:
    X, y, X_test, y_test = draw(
        partial(make_shifted_groups, groups=tuple(_SKEWED)), max(_SKEWED.values()), _TEST_PER_CLASS, seed
    )
    kept = np.concatenate([np.flatnonzero(y == label)[:n] for label, n in _SKEWED.items()])
    return X[kept], y[kept], X_test, y_test


# ------------------------------------------------------------------------------------------- far rows


class _Moved(NamedTuple):
    """Training rows, rows moved in one column each, and how these columns look out there.

    Attributes
    ----------
    X, y : training rows.
    rows : (n_moved, n_features)
    outside : (n_moved,) whether that is outside the range of the column.
    outdone : (n_moved,) share of training rows that lie as far out or further in some column, with as many
        others beyond them or fewer.
    """

    X: np.ndarray
    y: np.ndarray
    rows: np.ndarray
    outside: np.ndarray
    outdone: np.ndarray


def _far_rows(sets: Sequence[Data]) -> Iterator[Figure]:
    moved = {data.name: _moved(data) for data in sets}
    for name, make in _classifiers().items():
        shares, outside, possible = {}, {}, {}
        for of_set, far in moved.items():
            novel = make().fit(far.X, far.y).is_novel(far.rows)
            shares[of_set], outside[of_set] = novel.mean(), novel[far.outside].mean()
            possible[of_set] = novel[far.outdone <= _LEVEL].mean()
        below = [
            f"{n} {v:.3f} ({np.mean(moved[n].outdone > _LEVEL):.3f} outdone)"
            for n, v in shares.items()
            if v < 1
        ]
        detail = "less in " + (", ".join(below) or "none")
        least = min(shares.values())
        what = f"novel of rows moved by >= 10 deviations, worst set, {name}"
        yield Figure(what, least, 1.0, digits=3, detail=detail)
        what = f"  of those that at most {_LEVEL} of the training rows outdo"
        yield Figure(what, min(possible.values()), 1.0, digits=3)
        yield Figure("  of those moved outside the range", min(outside.values()), 1.0, digits=3)


def _classifiers() -> dict[str, Callable[[], RodeoClassifier | CorralClassifier]]:
    made = {f"{scale} units": partial(RodeoClassifier, bandwidth="class", scale=scale) for scale in _SCALES}
    return {"pool": partial(CorralClassifier, random_state=0), "local": RodeoClassifier, **made}


def _moved(data: Data) -> _Moved:
    X, y, X_test, _ = data.split(data.size, 0)
    rng = np.random.default_rng(0)
    deviation = X.std(axis=0)
    steps = np.array([10.0, -10.0, 1e6, -1e6])
    columns = np.repeat(np.flatnonzero(deviation > 0.0), steps.size)
    rows = X_test[rng.integers(len(X_test), size=columns.size)].copy()
    at = np.arange(columns.size)
    rows[at, columns] += np.resize(steps, columns.size) * deviation[columns]
    value = rows[at, columns]
    outside = (value < X.min(axis=0)[columns]) | (value > X.max(axis=0)[columns])
    return _Moved(X, y, rows, outside, _outdone(X, columns, value))


def _outdone(X: np.ndarray, columns: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Share of training rows that are stranger in some column than each value is in its own.

    A row is stranger if it lies as far from the median, in deviations, and no more others are beyond it.
    """
    deviation, median = X.std(axis=0), np.median(X, axis=0)
    varies = deviation > 0.0
    apart = (X - median)[:, varies] / deviation[varies]
    n_beyond = np.where(apart > 0.0, rankdata(-apart, "max", axis=0), rankdata(apart, "max", axis=0)) - 1
    far = (values - median[columns]) / deviation[columns]
    shares = []
    for z, column in zip(far, ((X - median) / np.where(varies, deviation, 1.0)).T[columns], strict=True):
        n = np.sum(np.sign(z) * column >= abs(z))
        shares.append(((np.abs(apart) >= abs(z)) & (n_beyond <= n)).any(axis=1).mean())
    return np.array(shares)


# ---------------------------------------------------------------------------------------------- speed


def _speed(options: Options) -> Iterator[Figure]:
    for name, make in (("ten groups", make_ten_groups), ("shifted groups", make_shifted_groups)):
        X, y = make(150, random_state=0)
        samples, _ = make(_SPEED_ROWS // np.unique(y).size, random_state=1)
        for kind, model in (
            ("pool", CorralClassifier(n_jobs=1, random_state=0)),
            ("class bandwidths", RodeoClassifier(bandwidth="class")),
        ):
            model.fit(X, y)
            tasks = {
                "typicality": Task(partial(model.typicality, samples)),
                "predict_proba": Task(partial(model.predict_proba, samples)),
            }
            found = time_alternately(tasks, min(options.repeats, 3))
            what = f"typicality over predict_proba, 100,000 rows, {name}, {kind}"
            yield ratio(what, found["typicality"], found["predict_proba"], high=1.3, cpu=True)
