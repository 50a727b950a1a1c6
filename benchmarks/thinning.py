"""Ways to represent a class of many rows by few, and bandwidths that are carried over to more rows.

Ways are compared at equal numbers, on data that no target is about, by the pool that is
fitted to all rows, with the same kernels: only the rows differ, and where they are averages the kernels have
the spread back that these have lost. All ways see rows in the coordinates by which cells are made, but for
the lines that say otherwise. Figures are what is lost on new rows: log loss, with accuracy and log density
beside it. Halving by kernels is kernel thinning (Dwivedi and Mackey, 2021) with the sign that is best at each
pair; herding is that of Chen, Welling and Smola (2010) with random features.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks._measure import Figure, Options
from corral._core.candidates import frames_of_kind
from corral._core.kinds import KINDS, Kind, RowsInUnits
from corral._core.large import ThinningPlan, carried_over
from corral._core.members import Member, Mixture
from corral._core.rows import LabelledRows, TrainingRows
from corral._core.search import search
from corral._core.settings import Computation
from corral._core.thinning import Cells, Representatives

_ONE = Computation(1)
Rows = tuple[np.ndarray, np.ndarray]


def run(options: Options) -> Iterator[Figure]:
    """Compare ways to represent a class, then bandwidths."""
    yield from _compare()
    yield from _carry_over()


# ------------------------------------------------------------------------------------------ data


def make_clusters(n: int, random: np.random.RandomState) -> Rows:
    """Four classes of four clusters each, of different shapes, in 12 variables."""
    shapes = np.random.RandomState(7)
    centres, roots = shapes.normal(size=(4, 4, 12)) * 1.3, shapes.normal(size=(4, 4, 12, 12)) * 0.35
    y, k = random.randint(4, size=n), random.randint(4, size=n)
    X = centres[y, k] + np.einsum("nij,nj->ni", roots[y, k], random.normal(size=(n, 12)))
    return X + 0.3 * random.normal(size=X.shape), y


def make_spirals(n: int, random: np.random.RandomState) -> Rows:
    """Three arms of a spiral in two variables, and four variables of noise."""
    y, t = random.randint(3, size=n), random.uniform(0.5, 3.5, size=n)
    angle = 2.0 * np.pi * y / 3.0 + 1.8 * t
    X = np.column_stack([t * np.cos(angle), t * np.sin(angle)]) + 0.35 * random.normal(size=(n, 2))
    return np.column_stack([X, random.normal(size=(n, 4))]), y


def make_skewed(n: int, random: np.random.RandomState) -> Rows:
    """Three classes with four factors each in 15 variables, eight of which are exponentials."""
    shapes = np.random.RandomState(3)
    loadings, means = shapes.normal(size=(3, 15, 4)), 0.3 * shapes.normal(size=(3, 15))
    y = random.randint(3, size=n)
    X = 0.5 * np.einsum("nij,nj->ni", loadings[y], random.normal(size=(n, 4)))
    X += means[y] + 0.5 * random.normal(size=X.shape)
    X[:, :8] = np.exp(0.7 * X[:, :8])
    return X, y


def make_surface(n: int, random: np.random.RandomState) -> Rows:
    """Four classes between curved surfaces in eight uniform variables, with noise."""
    X = random.uniform(size=(n, 8))
    level = np.sin(2.0 * np.pi * X[:, 0] * X[:, 1]) + 8.0 * (X[:, 2] - 0.5) ** 2 + X[:, 3] + 0.5 * X[:, 4]
    return X, np.digitize(level + 0.4 * random.normal(size=n), [0.8, 1.6, 2.4])


_MADE = {"clusters": make_clusters, "spirals": make_spirals, "skewed": make_skewed, "surface": make_surface}


# ------------------------------------------------------------------------------ ways to represent a class


@dataclass(frozen=True, eq=False)
class Choice:
    """A class, represented.

    Attributes
    ----------
    cells : (n_rows,) whose averages stand for their rows, or None.
    rows : (n_kept,) rows that stand for all others, or None.
    """

    cells: np.ndarray | None = None
    rows: np.ndarray | None = None


def random_rows(x: np.ndarray, m: int) -> Choice:
    """A random subset."""
    return Choice(rows=np.random.RandomState(0).permutation(len(x))[:m])


def halves_by_kernels(x: np.ndarray, m: int) -> Choice:
    """Halve again and again: of each pair of rows the one that balances the kernels of those kept so far."""
    random = np.random.RandomState(0)
    kept = random.permutation(len(x))
    while len(kept) >= 2 * m:
        parts = [_halved(x, part) for part in np.array_split(kept, max(len(kept) // 2048, 1))]
        kept = random.permutation(np.concatenate(parts))
    return Choice(rows=kept)


def _halved(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    a, b = rows[: len(rows) // 2 * 2 : 2], rows[1::2]
    K = _kernel(x[a], x[a]) - _kernel(x[a], x[b]) - _kernel(x[b], x[a]) + _kernel(x[b], x[b])
    signs = np.zeros(len(a))
    for i in range(len(a)):
        signs[i] = -1.0 if K[i, :i] @ signs[:i] > 0.0 else 1.0
    return np.where(signs > 0.0, a, b)


def _kernel(x: np.ndarray, c: np.ndarray) -> np.ndarray:
    squares = (x**2).sum(axis=1)[:, np.newaxis] + (c**2).sum(axis=1) - 2.0 * x @ c.T
    return np.exp(-0.5 * np.maximum(squares, 0.0))


def herded_rows(x: np.ndarray, m: int) -> Choice:
    """Add the row that brings the mean of random features nearest to that of all rows, again and again."""
    random = np.random.RandomState(0)
    features = np.cos(x @ random.normal(size=(x.shape[1], 500)) + random.uniform(0.0, 2.0 * np.pi, 500))
    mean, total, left = features.mean(axis=0), np.zeros(500), np.ones(len(x), dtype=bool)
    order, chosen = random.permutation(len(x)), []
    for k in range(m):
        some = order[(np.arange(1000) + 1000 * k) % len(x)]
        some = some[left[some]] if left[some].any() else np.flatnonzero(left)
        best = some[(features[some] @ ((k + 1) * mean - total)).argmax()]
        chosen.append(best)
        left[best] = False
        total += features[best]
    return Choice(rows=np.array(chosen))


def kd_cells(x: np.ndarray, m: int) -> Choice:
    """Cells of a k-d tree: halves at the median of the variable of largest variance."""
    parts = [np.arange(len(x))]
    while 2 * len(parts) <= m:
        halves = []
        for part in parts:
            column = x[part, x[part].var(axis=0).argmax()]
            order = part[np.argpartition(column, len(part) // 2)]
            halves += [order[: len(part) // 2], order[len(part) // 2 :]]
        parts = halves
    cells = np.empty(len(x), dtype=np.int64)
    for k, part in enumerate(parts):
        cells[part] = k
    return Choice(cells=cells)


def means_cells(x: np.ndarray, m: int) -> Choice:
    """Cells of k-means, which corral makes."""
    return Choice(cells=Cells.learn(x, None, m, np.ones(x.shape[1]), seed=0).divide(x))


Way = Callable[[np.ndarray, int], Choice]
WAYS: dict[str, tuple[Way, bool, bool]] = {  # with the coordinates of the pool, and the spread given back
    "random subset": (random_rows, True, True),
    "halving by kernels": (halves_by_kernels, True, True),
    "herding": (herded_rows, True, True),
    "k-d cells": (kd_cells, True, True),
    "k-means": (means_cells, True, True),
    "k-means, no spread given back": (means_cells, True, False),
    "k-means, all variables alike": (means_cells, False, True),
}


@dataclass(frozen=True, eq=False)
class Fitted:
    """A pool of all rows, and what it takes to represent them otherwise.

    Attributes
    ----------
    data : the rows.
    plan : what has been learnt of them.
    all : members that have a kernel on each row.
    """

    data: LabelledRows
    plan: ThinningPlan
    all: Mapping[str, Member]

    @classmethod
    def learn(cls, X: np.ndarray, y: np.ndarray, max_rows: int) -> Fitted:
        """Fit a pool; its classes are of equal priors."""
        data = LabelledRows.sort(TrainingRows(X, y, None))
        sizes, prior = np.bincount(data.codes), np.full(data.labels.size, 1.0 / data.labels.size)
        plan = ThinningPlan.learn(
            RowsInUnits.learn(data, KINDS),
            sizes,
            max_rows,
            prior,
            1.0 / (len(X) + 2.0),
            np.random.RandomState(0),
            _ONE,
            empirical=False,
        )
        members = {}
        for of in plan.members:
            scale = plan.scales[of.kind.scale]
            members[of.kind.name] = Member(
                of.kind.name,
                scale,
                [
                    Mixture.of_rows(
                        scale.transform(data.X[at]), None, of.frames[y], of.bandwidths[y], of.pulls[y]
                    )
                    for y, at in enumerate(data.members())
                ],
            )
        return cls(data, plan, members)

    def represented(self, way: Way, m: int, *, weighed: bool, spread: bool) -> list[Member]:
        """Members whose classes have m representatives."""
        score = self.plan.scales["score"].transform(self.data.X)
        choices = []
        for y, at in enumerate(self.data.members()):
            importance = self.plan.importance[y] if weighed else np.ones(score.shape[1])
            choices.append(way(score[at] * np.sqrt(importance), m))
        members = []
        for of in self.plan.members:
            scale, classes = self.plan.scales[of.kind.scale], []
            for y, (choice, at) in enumerate(zip(choices, self.data.members(), strict=True)):
                kernel = (of.frames[y], of.bandwidths[y], of.pulls[y])
                scaled = scale.transform(self.data.X[at])
                if choice.rows is not None:
                    classes.append(Mixture.of_rows(scaled[choice.rows], None, *kernel))
                    continue
                assert choice.cells is not None
                _, cells = np.unique(choice.cells, return_inverse=True)
                found = Representatives.of_rows([scaled]).averaged(cells, cells.max() + 1)
                lost = found.spreads[0] if spread else np.zeros((scaled.shape[1],) * 2)
                classes.append(Mixture.of_representatives(found.centres[0], found.weights, lost, *kernel))
            members.append(Member(of.kind.name, scale, classes))
        return members

    def scores(self, members: list[Member], X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Log loss, accuracy and mean log density at the right class, of the members' pool."""
        codes, n = np.searchsorted(self.data.labels, y), np.arange(len(y))
        log_density = np.zeros((len(X), self.data.labels.size))
        for member, weight in zip(members, self.plan.found.weights, strict=True):
            log_density += weight * member.log_densities(X, _ONE)
        log_proba = log_density - np.logaddexp.reduce(log_density, axis=1, keepdims=True)
        right = log_density[n, codes].mean() / self.plan.found.weights.sum()
        return np.array([-log_proba[n, codes].mean(), (log_proba.argmax(axis=1) == codes).mean(), right])


def _compare(n: int = 8192) -> Iterator[Figure]:
    for name, make in _MADE.items():
        random = np.random.RandomState(1)
        n_classes = np.unique(make(100, random)[1]).size
        X, y = make(n * n_classes, random)
        X_test, y_test = make(2000, random)
        fitted = Fitted.learn(X, y, max_rows=2048)
        of_all = fitted.scores(list(fitted.all.values()), X_test, y_test)
        yield Figure(
            f"{name}, {n} rows per class: log loss", of_all[0], digits=4, detail=f"accuracy {of_all[1]:.4f}"
        )
        for m in (512, 2048):
            for way, (make_choice, weighed, spread) in WAYS.items():
                start = time.process_time()
                members = fitted.represented(make_choice, m, weighed=weighed, spread=spread)
                took = time.process_time() - start
                lost = fitted.scores(members, X_test, y_test) - of_all
                yield Figure(
                    f"{name}, {m}: {way}, more log loss", lost[0], digits=4,
                    detail=f"accuracy {lost[1]:+.4f}, log density {lost[2]:+.3f}; {took:.1f} s",
                )  # fmt: skip


# ---------------------------------------------------------------------------------------- bandwidths


def _carry_over() -> Iterator[Figure]:
    """What is lost because bandwidths are carried over from 4000 rows, and would be if they were not."""
    (kind,) = (kind for kind in KINDS if kind.covariance == "own")
    for name in ("clusters", "surface"):
        random = np.random.RandomState(2)
        X_test, y_test = _MADE[name](500, random)
        data = LabelledRows.sort(TrainingRows(*_MADE[name](4000, random), None))
        prior = np.full(data.labels.size, 1.0 / data.labels.size)
        found = search(RowsInUnits.learn(data, [kind]), prior, 1e-3, np.random.RandomState(0), _ONE, [kind])
        h, d = found.kept[0].bandwidth, data.X.shape[1]
        for n in (32_000, 128_000):
            carried = carried_over(n, 4000, d)
            tried = [1.0, carried, *(2.0 ** np.arange(-1.0, 0.25, 0.125)).tolist()]
            rows = RowsInUnits.learn(LabelledRows.sort(TrainingRows(*_MADE[name](n, random), None)), [kind])
            log_density = {factor: _log_density(rows, kind, h * factor, X_test, y_test) for factor in tried}
            best = max(tried, key=lambda factor: log_density[factor])
            lost, without = (log_density[best] - log_density[factor] for factor in (carried, 1.0))
            yield Figure(
                f"{name}, {n} rows: log density lost by carrying over", lost, digits=4,
                detail=f"bandwidth x {carried:.3f}, best x {best:.3f}; if it stays {without:.4f}",
            )  # fmt: skip


def _log_density(rows: RowsInUnits, kind: Kind, h: float, X: np.ndarray, y: np.ndarray) -> float:
    """Mean log density of new rows in their classes, with a kernel on each row."""
    labels, members = rows.data.labels, rows.data.members()
    frames = frames_of_kind(kind, rows, np.full(labels.size, 1.0 / labels.size), 0)
    scaled, pull = rows.scaled[kind.scale], np.sqrt(1.0 - min(h, 1.0) ** 2)
    classes = [Mixture.of_rows(scaled[at], None, frames[k], h, pull) for k, at in enumerate(members)]
    log_density = Member(kind.name, rows.scales[kind.scale], classes).log_densities(X, _ONE)
    return float(log_density[np.arange(len(y)), np.searchsorted(labels, y)].mean())
