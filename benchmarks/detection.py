"""Which variables describe each class: precision, recall, F1 and exact sets against simple rivals.

The truth of a class is the set of variables in which it is more concentrated than, or shifted against, the
training rows as a whole. A class that is spread out where another one is concentrated differs from the rest
as well, but is not described by it; methods that compare a class with the rest and find such variables are
charged for them, as the paper does. Designs marked "common" have no such variables: there the same columns
describe all classes, which differ in location.

Scores are means over class-trials, one class in one trial. Where nothing is selected, precision is 1; where
nothing is to be found, recall is 1; F1 is 2 TP / (2 TP + FP + FN), and 1 where all three are 0.

Rivals marked with * are told how many variables to select in each class, which no user knows: it flatters
them. They make as many wrong choices as they miss variables, so precision, recall and F1 are equal.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import ks_2samp
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import f_classif, mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import l1_min_c

from benchmarks._measure import Figure, Options
from corral import RodeoClassifier
from corral._core.contrast import contrast
from corral.datasets import make_shifted_groups, make_ten_groups

# Rows, labels and, per class, which variables are relevant.
Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]

_METRICS = ("precision", "recall", "F1", "P(exact set)")

# Forests and mutual information make a trial dear, and it has several classes to count: a quarter of the
# seeds that are asked for will do.
_SEEDS_PER_TRIAL = 4

# Level of the rivals that need no number of variables, divided by the number of variables (Bonferroni).
_LEVEL = 0.01


@dataclass(frozen=True)
class Design:
    """A distribution with known relevant variables.

    Attributes
    ----------
    name : shown in the tables.
    about : the distribution in words.
    draw : rows, labels and truth from a generator.
    bystanders : columns whose selection is worth a line of its own, though the truth says no already.
    strong : whether the rows suffice to find everything, so that exact sets can be asked for.
    """

    name: str
    about: str
    draw: Callable[[np.random.Generator], Drawn]
    bystanders: slice | None = None
    strong: bool = True


@dataclass(frozen=True)
class Method:
    """A way to select variables for each class.

    Attributes
    ----------
    name : heads a column of the tables.
    about : what it does.
    select : masks (n_classes, n_features) from rows, labels, the true numbers of variables and a seed.
    own : whether it is ours.
    """

    name: str
    about: str
    select: Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]
    own: bool = False


def run(options: Options) -> Iterator[Figure]:
    """Score every method on the same draws; a line per design and rule of ours, then all as tables."""
    trials = -(-options.seeds // _SEEDS_PER_TRIAL)
    print(f"  {trials} trials per design, seeds 0 to {trials - 1}; designs (n: rows per class):")
    for design in DESIGNS:
        print(f"    {design.name:15} {design.about}")
    print("  methods (* is told the true number of variables per class, which flatters it):")
    for method in METHODS:
        print(f"    {method.name:15} {method.about}", flush=True)

    # Processes rather than threads, since forests and searches hold the interpreter's lock for long.
    tasks = [(design, seed) for design in reversed(DESIGNS) for seed in range(trials)]
    masks = Parallel(n_jobs=-1)(delayed(_trial)(design, seed) for design, seed in tasks)
    results: dict[str, np.ndarray] = {}
    for design in DESIGNS:
        found = [result for (of, _), result in zip(tasks, masks, strict=True) if of is design]
        truth = np.concatenate([true for true, _ in found])
        selected = np.concatenate([chosen for _, chosen in found], axis=1)
        results[design.name] = _scores(selected, truth)
        yield from _figures(design, results[design.name], selected, truth)
    yield from _summary(results)
    _print_tables(results)
    _print_losses(results)


def _trial(design: Design, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Truth (n_classes, n_features) and what each method selects (n_methods, n_classes, n_features)."""
    X, y, truth = design.draw(np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no variable was found", UserWarning)
        return truth, np.array([method.select(X, y, truth.sum(axis=1), seed) for method in METHODS])


def _scores(selected: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Metrics (n_methods, n_metrics, n_class_trials)."""
    right = (selected & truth).sum(axis=2)
    wrong, missed = (selected & ~truth).sum(axis=2), (~selected & truth).sum(axis=2)

    def share(part: np.ndarray, rest: np.ndarray) -> np.ndarray:
        return np.where(part + rest == 0, 1.0, part / np.maximum(part + rest, 1))

    exact = ((wrong == 0) & (missed == 0)).astype(float)
    return np.stack(
        [share(right, wrong), share(right, missed), share(2 * right, wrong + missed), exact], axis=1
    )


# -------------------------------------------------------------------------------------------- report


def _figures(design: Design, scores: np.ndarray, selected: np.ndarray, truth: np.ndarray) -> Iterator[Figure]:
    """F1 of our rules, with what else helps to judge it."""
    means = scores.mean(axis=2)
    rivals = [i for i, method in enumerate(METHODS) if not method.own]
    best = max(rivals, key=lambda i: means[i, 2])
    for i, method in enumerate(METHODS):
        if not method.own:
            continue
        error = scores[i, 2].std(ddof=1) / np.sqrt(scores.shape[2])
        ahead = means[best, 2] - means[i, 2]
        detail = (
            f"se {error:.3f}; precision {means[i, 0]:.2f}, recall {means[i, 1]:.2f}, exact {means[i, 3]:.2f};"
            f" best rival {METHODS[best].name} {means[best, 2]:.3f} {'AHEAD' if ahead > 0 else 'not ahead'}"
        )
        if not truth.any():
            detail += f"; {100.0 * selected[i].mean():.2f} % of all columns selected"
        if design.bystanders is not None:
            detail += (
                f"; {100.0 * selected[i][:, design.bystanders].mean():.1f} % of the shared columns selected"
            )
        yield Figure(f"{design.name}: F1, {method.name}", means[i, 2], digits=3, detail=detail)


def _summary(results: Mapping[str, np.ndarray]) -> Iterator[Figure]:
    """How the first method, contrast, does over all designs."""
    overall = np.mean([scores[:, 2].mean(axis=1) for scores in results.values()], axis=0)
    best = 1 + int(overall[1:].argmax())
    detail = f"{len(results)} designs; next {METHODS[best].name} {overall[best]:.3f}"
    yield Figure("mean F1 of contrast over all designs", overall[0], low=0.97, digits=3, detail=detail)
    yield Figure("  ahead of the next method by", overall[0] - overall[best], low=0.0, digits=3)
    exact = {design.name: results[design.name][0, 3].mean() for design in DESIGNS if design.strong}
    least = min(exact, key=lambda name: exact[name])
    detail = f"mean of {len(exact)} designs with a strong signal; least {least} {exact[least]:.3f}"
    yield Figure(
        "exact sets of contrast", float(np.mean(list(exact.values()))), low=0.9, digits=3, detail=detail
    )


def _print_tables(results: Mapping[str, np.ndarray]) -> None:
    for m, metric in enumerate(_METRICS):
        print(f"\n  {metric}\n  {'':15}" + "".join(f"{method.name:>14}" for method in METHODS))
        for name, scores in results.items():
            print(f"  {name:15}" + "".join(f"{value:14.3f}" for value in scores[:, m].mean(axis=1)))
        overall = np.mean([scores[:, m].mean(axis=1) for scores in results.values()], axis=0)
        print(f"  {'mean of designs':15}" + "".join(f"{value:14.3f}" for value in overall))


def _print_losses(results: Mapping[str, np.ndarray]) -> None:
    """For each rule of ours, the designs where a rival is ahead by more than chance explains."""
    for title, which in (
        ("a rival that is not told the number of variables", [m for m in METHODS if not _told(m)]),
        ("any rival, told the number of variables or not", list(METHODS)),
    ):
        print(f"\n  Where we lose in F1 to {title}, by more than two standard errors of the difference:")
        for i, method in enumerate(METHODS):
            if not method.own:
                continue
            lost = []
            for name, scores in results.items():
                rivals = [METHODS.index(m) for m in which if not m.own]
                best = max(rivals, key=lambda r, of=scores: of[r, 2].mean())
                difference = scores[best, 2] - scores[i, 2]
                if difference.mean() > 2.0 * difference.std(ddof=1) / np.sqrt(difference.size) + 1e-9:
                    lost.append(f"{name} (-{difference.mean():.2f}, {METHODS[best].name})")
            print(f"    {method.name:13} {'; '.join(lost) or 'nowhere'}")


def _told(method: Method) -> bool:
    return method.name.endswith("*")


# ------------------------------------------------------------------------------------------- methods


def _rodeo(scale: str) -> Method:
    def select(X: np.ndarray, y: np.ndarray, _: np.ndarray, seed: int) -> np.ndarray:
        return RodeoClassifier(scale=scale, random_state=seed).fit(X, y).relevant_

    about = f"RodeoClassifier, z-score at most -1 (the paper), {scale} units"
    return Method(f"zscore {scale}", about, select, own=True)


def _contrast(X: np.ndarray, y: np.ndarray, _: np.ndarray, __: int) -> np.ndarray:
    labels, codes = np.unique(y, return_inverse=True)
    return contrast(X, codes, labels.size).markers


def _one_vs_rest(name: str, about: str, score: Callable[..., np.ndarray]) -> Method:
    """The true number of variables with the largest scores, class by class against the rest."""

    def select(X: np.ndarray, y: np.ndarray, count: np.ndarray, seed: int) -> np.ndarray:
        mask = np.zeros((count.size, X.shape[1]), dtype=bool)
        for row, label, k in zip(mask, np.unique(y), count, strict=True):
            if k:
                row[np.argsort(-score(X, y == label, k, seed), kind="stable")[:k]] = True
        return mask

    return Method(name, about, select)


def _tested(name: str, about: str, p_values: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Method:
    """All variables whose p-value, class against the rest, is below the level over their number."""

    def select(X: np.ndarray, y: np.ndarray, _: np.ndarray, __: int) -> np.ndarray:
        return np.array([p_values(X, y == label) < _LEVEL / X.shape[1] for label in np.unique(y)])

    return Method(name, about, select)


def _narrowness(X: np.ndarray, own: np.ndarray, _: int, __: int) -> np.ndarray:
    return -X[own].std(axis=0) / X.std(axis=0)


def _anova(X: np.ndarray, own: np.ndarray, _: int, __: int) -> np.ndarray:
    return f_classif(X, own)[0]


def _information(X: np.ndarray, own: np.ndarray, _: int, seed: int) -> np.ndarray:
    return mutual_info_classif(X, own, random_state=seed)


def _first_on_path(X: np.ndarray, own: np.ndarray, k: int, _: int) -> np.ndarray:
    """Sizes of coefficients at the strongest L1 penalty that leaves at least k of them."""
    scaled = StandardScaler().fit_transform(X)
    size = np.zeros(X.shape[1])
    for C in l1_min_c(scaled, own, loss="log") * np.geomspace(1.1, 1e3, 25):
        model = LogisticRegression(
            C=C, l1_ratio=1.0, solver="liblinear", class_weight="balanced", random_state=0
        )
        size = np.abs(model.fit(scaled, own).coef_[0])
        if np.count_nonzero(size) >= k:
            break
    return size


def _forest(X: np.ndarray, own: np.ndarray, _: int, seed: int) -> np.ndarray:
    model = RandomForestClassifier(50, class_weight="balanced", random_state=seed)
    return model.fit(X, own).feature_importances_


def _kolmogorov(X: np.ndarray, own: np.ndarray) -> np.ndarray:
    return np.array([ks_2samp(x[own], x[~own], method="asymp").pvalue for x in X.T])


METHODS = (
    Method("contrast", "ranks against the background of each variable, level 1 %", _contrast, own=True),
    _rodeo("range"),
    _rodeo("rank"),
    _one_vs_rest("spread*", "smallest standard deviation in the class over that of all rows", _narrowness),
    _one_vs_rest("ANOVA F*", "largest F of class against rest", _anova),
    _one_vs_rest("mutual inf.*", "largest mutual information with class against rest", _information),
    _one_vs_rest("L1 logistic*", "first on the path of class against rest, standardised", _first_on_path),
    _one_vs_rest("forest*", "largest impurity importance in 50 trees of class against rest", _forest),
    _tested("ANOVA 1%", "F test of class against rest, level 1 % by Bonferroni", lambda *a: f_classif(*a)[1]),
    _tested("KS 1%", "Kolmogorov-Smirnov test of class against rest, level 1 % by Bonferroni", _kolmogorov),
)


# ------------------------------------------------------------------------------------------- designs


def _own_columns(
    rng: np.random.Generator,
    background: Callable[[tuple[int, int]], np.ndarray],
    centers: tuple[float, ...],
    width: float,
    *,
    rows: tuple[int, ...] = (100, 100, 100),
    d: int = 20,
) -> Drawn:
    """Class a is normal around `centers` in columns of its own, and everything else is background."""
    y = np.repeat(np.arange(len(rows)), rows)
    X = background((y.size, d))
    k = len(centers)
    truth = np.zeros((len(rows), d), dtype=bool)
    for a, n in enumerate(rows):
        truth[a, k * a : k * (a + 1)] = True
        X[y == a, k * a : k * (a + 1)] = rng.normal(centers, width, (n, k))
    return X, y, truth


def _common_columns(rng: np.random.Generator, step: float, width: float, n: int, d: int = 20) -> Drawn:
    """Three columns in which class a sits at -step, 0 or step; standard normal columns besides."""
    y = np.repeat(np.arange(3), n)
    X = rng.standard_normal((y.size, d))
    k = min(d, 3)
    X[:, :k] = rng.normal(step * ((y[:, np.newaxis] + np.arange(k)) % 3 - 1), width)
    return X, y, np.tile(np.arange(d) < 3, (3, 1))


def _two_classes(rng: np.random.Generator, step: float, n: int, k: int, d: int) -> Drawn:
    """Two classes a step apart in the first k columns, which therefore describe both."""
    y = np.repeat(np.arange(2), n)
    X = rng.standard_normal((y.size, d))
    X[y == 1, :k] += step
    return X, y, np.tile(np.arange(d) < k, (2, 1))


_UNIT = (0.3, 0.5, 0.7)
_NORMAL = (-0.7, 0.0, 0.7)


def _uniform(rng: np.random.Generator) -> Drawn:
    return _own_columns(rng, rng.random, _UNIT, 0.08)


def _normal(rng: np.random.Generator) -> Drawn:
    return _own_columns(rng, rng.standard_normal, _NORMAL, 0.35)


def _heavy(rng: np.random.Generator) -> Drawn:
    return _own_columns(rng, lambda size: rng.standard_t(2, size), _NORMAL, 0.35)


def _wide(rng: np.random.Generator) -> Drawn:
    return _own_columns(rng, rng.random, _UNIT, 0.05, rows=(30, 30, 30), d=200)


def _unequal(rng: np.random.Generator) -> Drawn:
    return _own_columns(rng, rng.standard_normal, _NORMAL, 0.35, rows=(300, 100, 30))


def _correlated(rng: np.random.Generator) -> Drawn:
    X, y, truth = _own_columns(rng, rng.standard_normal, _NORMAL, 0.35)
    factor = rng.standard_normal((len(X), 1))
    X[:, 10:18] = np.sqrt(0.8) * factor + np.sqrt(0.2) * X[:, 10:18]
    return X, y, truth


def _shared(rng: np.random.Generator) -> Drawn:
    X, y, truth = _own_columns(rng, rng.random, _UNIT, 0.08)
    # A few rows all over the range, without which the range itself would be narrow.
    X[:, 12:15] = np.where(rng.random((len(X), 3)) < 0.95, rng.normal(0.5, 0.03, (len(X), 3)), X[:, 12:15])
    return X, y, truth


def _weak(rng: np.random.Generator) -> Drawn:
    return _common_columns(rng, 0.5, 0.9, 200)


def _shift(rng: np.random.Generator) -> Drawn:
    return _common_columns(rng, 1.5, 1.0, 100)


def _modes(rng: np.random.Generator) -> Drawn:
    X, y, truth = _own_columns(rng, rng.random, (0.5, 0.5, 0.5), 0.03)
    # Both modes of each column occur with the same chance, whatever the modes of the other columns.
    return X + np.where(truth[y], rng.choice([-0.25, 0.25], X.shape), 0.0), y, truth


def _integers(rng: np.random.Generator) -> Drawn:
    X, y, truth = _normal(rng)
    return np.rint(2.0 * X), y, truth


def _heavy_mixture(rng: np.random.Generator) -> Drawn:
    """Every other column is of whole numbers, the others have tails heavier than any moment."""
    X, y, truth = _normal(rng)
    return np.where(np.arange(X.shape[1]) % 2, np.rint(2.0 * X), np.sinh(2.0 * X) ** 3), y, truth


def _rare_flags(rng: np.random.Generator) -> Drawn:
    X, y, truth = _normal(rng)
    X[:, 12:15] = rng.random((len(X), 3)) < 1.0 / 40.0
    return X, y, truth


def _pair(rng: np.random.Generator) -> Drawn:
    return _two_classes(rng, 1.0, 100, 3, 20)


def _one_column(rng: np.random.Generator) -> Drawn:
    return _common_columns(rng, 1.0, 1.0, 100, d=1)


def _two_columns(rng: np.random.Generator) -> Drawn:
    """Class 0 has a column of its own, and nothing else is to be found."""
    y = np.repeat(np.arange(3), 100)
    X = rng.standard_normal((y.size, 2))
    X[y == 0, 0] += 1.0
    truth = np.zeros((3, 2), dtype=bool)
    truth[0, 0] = True
    return X, y, truth


def _twenty(rng: np.random.Generator) -> Drawn:
    return _own_columns(rng, rng.standard_normal, (-0.7, 0.7), 0.35, rows=(50,) * 20, d=50)


def _genes(rng: np.random.Generator) -> Drawn:
    return _two_classes(rng, 2.5, 30, 10, 5000)


def _nothing(rng: np.random.Generator) -> Drawn:
    return rng.standard_normal((300, 20)), np.repeat(np.arange(3), 100), np.zeros((3, 20), dtype=bool)


def _ten_groups(rng: np.random.Generator) -> Drawn:
    X, y = make_ten_groups(150, random_state=int(rng.integers(2**31)))
    columns = np.arange(30)
    return X, y, np.array([(columns >= group) & (columns < group + 6) for group in range(10)])


def _shifted_groups(rng: np.random.Generator) -> Drawn:
    X, y = make_shifted_groups(200, random_state=int(rng.integers(2**31)))
    return X, y, np.tile(np.arange(10) < 2, (5, 1))


DESIGNS = (
    Design(
        "uniform",
        "3 classes, n=100, d=20; each normal (sd 0.08) in 3 columns of its own, rest uniform(0, 1)",
        _uniform,
    ),
    Design("normal", "the same with sd 0.35 at -0.7, 0, 0.7, rest standard normal", _normal),
    Design("heavy tails", "the same with the rest Student t with 2 degrees of freedom", _heavy),
    Design("d > rows", "d=200, n=30, 90 rows; 3 own columns (sd 0.05), rest uniform", _wide, strong=False),
    Design("unequal", "as 'normal' with n=300, 100 and 30", _unequal),
    Design(
        "correlated",
        "as 'normal', with 8 irrelevant columns correlated by 0.8, alike in all classes",
        _correlated,
    ),
    Design(
        "shared",
        "as 'uniform', with 3 columns sharp (sd 0.03, 95 % of rows) alike in all classes: they describe no "
        "class against the others, so the truth leaves them out",
        _shared,
        slice(12, 15),
    ),
    Design(
        "weak",
        "common: n=200, d=20, 3 columns at -0.5, 0, 0.5 with sd 0.9, rest standard normal",
        _weak,
        strong=False,
    ),
    Design("shift only", "common: n=100, d=20, 3 columns at -1.5, 0, 1.5 with sd 1, rest sd 1", _shift),
    Design("modes", "as 'uniform' with two modes 0.25 and 0.75 (sd 0.03) in each own column", _modes),
    Design("nothing", "3 classes, n=100, d=20, all standard normal: whatever is selected is wrong", _nothing),
    Design("ten groups", "the paper's: 10 classes, n=150, d=30, 6 own columns each", _ten_groups),
    Design("shifted groups", "common: the paper's: 5 classes, n=200, d=10, 2 columns", _shifted_groups),
    Design("two classes", "common: n=100, d=20, 3 columns one sd apart, rest standard normal", _pair),
    Design("one column", "common: 3 classes, n=100, d=1, at -1, 0 and 1 with sd 1", _one_column),
    Design("two columns", "3 classes, n=100, d=2; one class a sd off in one column", _two_columns),
    Design("20 classes", "n=50, d=50; each at -0.7 and 0.7 (sd 0.35) in 2 columns of its own", _twenty),
    Design("60 x 5000", "common: 2 classes, n=30, d=5000, 10 columns 2.5 sd apart", _genes),
    Design("integers", "as 'normal', twice the values rounded to whole numbers", _integers),
    Design("heavy mixture", "as 'integers', every other column sinh(2 x)^3 instead", _heavy_mixture),
    Design(
        "rare flags",
        "as 'normal', with 3 columns that are 1 in a random fortieth of the rows and 0 elsewhere",
        _rare_flags,
        slice(12, 15),
    ),
)
