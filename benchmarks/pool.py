"""The pool of class densities: accuracy without each kind of member, scores of noise, and time of a fit.

A member is one class-density model of the pool. Each design generates training rows and 200 test rows per
class. "Without" a kind is a pool of all other kinds, so the difference from the first line is the
contribution of the kind. Times are processor seconds of one thread, compared with a forest of 300 trees.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits

from benchmarks._measure import Figure, Options, peak, ratio, time_alternately
from benchmarks._trials import Samples, draw, spread
from corral.data.dataset import LabelledRows, TrainingRows
from corral.datasets import make_shifted_groups, make_ten_groups
from corral.parallel import Computation
from corral.pool.members import MEMBER_KINDS, AnyKind
from corral.pool.model import Pool
from corral.pool.search import fit_pool
from corral.posterior import log_probability

_N_NOISE = 120
_LARGE = (20_000, 20, 10)
_WIDE = (60, 2000, 4)


def run(options: Options) -> Iterator[Figure]:
    """Yield accuracy without each kind of member, scores of noise, and times."""
    with threadpool_limits(1):
        yield from _kinds(options)
        yield from _noise(options)
        yield from _costs(options)


def _fit(
    X: np.ndarray, y: np.ndarray, seed: int, kinds: Sequence[AnyKind] = MEMBER_KINDS, *, uniform: bool = False
) -> Pool:
    data = LabelledRows.sort(TrainingRows(X, y, None))
    prior = np.full(data.counts.size, 1.0 / data.counts.size) if uniform else data.counts / data.counts.sum()
    return fit_pool(data, prior, np.random.RandomState(seed), Computation(), kinds, empirical=not uniform)


# --------------------------------------------------------------------------------------------- designs


def own_covariances(per_class: int, random_state: np.random.RandomState) -> Samples:
    """Draw four classes with equal means and different correlations of eight variables."""
    mixings = np.random.RandomState(0).normal(size=(4, 8, 8))
    rows = [random_state.normal(size=(per_class, 8)) @ mixing for mixing in mixings]
    return np.vstack(rows), np.repeat(np.arange(4), per_class)


def shared_directions(per_class: int, random_state: np.random.RandomState) -> Samples:
    """Draw five classes that differ along directions in which twelve correlated variables vary least."""
    fixed = np.random.RandomState(1)
    mixing = fixed.normal(size=(12, 12)) * np.logspace(0.0, -1.5, 12)[:, np.newaxis]
    centers = fixed.normal(size=(5, 12)) * np.where(np.arange(12) < 8, 0.0, 1.5)
    y = np.repeat(np.arange(5), per_class)
    return (random_state.normal(size=(y.size, 12)) + centers[y]) @ mixing, y


def joint_signs(per_class: int, random_state: np.random.RandomState) -> Samples:
    """Draw two classes in ten skewed variables; the class is the sign of the product of two normal scores."""
    X = random_state.normal(size=(20 * per_class, 10))
    y = (X[:, 0] * X[:, 1] > 0.0).astype(int)
    chosen = np.concatenate([np.flatnonzero(y == k)[:per_class] for k in (0, 1)])
    return np.exp(X[chosen]), y[chosen]


three_groups = partial(make_shifted_groups, groups=(1, 2, 3))

_DESIGNS: dict[str, tuple[Callable[..., Samples], int]] = {
    "own covariances": (own_covariances, 60),
    "shared directions": (shared_directions, 60),
    "joint signs": (joint_signs, 150),
    "shifted groups": (three_groups, 100),
    "ten groups": (make_ten_groups, 60),
}


# --------------------------------------------------------------------------------------------- figures


def _kinds(options: Options) -> Iterator[Figure]:
    """Yield accuracy and log loss of pools with all kinds, and without each kind."""
    pools = {"all kinds": list(MEMBER_KINDS)}
    pools |= {f"without {kind.title}": [k for k in MEMBER_KINDS if k != kind] for kind in MEMBER_KINDS}
    means: dict[str, list[np.ndarray]] = {name: [] for name in pools}
    for design, (make, per_class) in _DESIGNS.items():
        for name, kinds in pools.items():
            scores = [_judge(make, per_class, seed, kinds) for seed in range(min(options.seeds, 3))]
            means[name].append(np.mean(scores, axis=0))
            accuracy, log_loss, expected, expected_loss = means[name][-1]
            detail = f"log loss {log_loss:.3f}; expected {expected:.3f}, {expected_loss:.3f}"
            yield Figure(f"{design}, {name}: accuracy", accuracy, digits=3, detail=detail)
    for name, scores in means.items():
        accuracy, log_loss, *_ = np.mean(scores, axis=0)
        what = f"mean of designs, {name}: accuracy"
        yield Figure(what, accuracy, digits=4, detail=f"log loss {log_loss:.4f}")


def _judge(make: Callable[..., Samples], per_class: int, seed: int, kinds: Sequence[AnyKind]) -> list[float]:
    """Measure accuracy and log loss on new rows, and the cross-validated scores of the pool."""
    X, y, X_test, y_test = draw(make, per_class, 200, seed)
    pool = _fit(X, y, seed, kinds)
    joint = pool.log_densities(X_test, Computation()) + np.log(pool.prior)
    log_proba = log_probability(joint, pool.prior, pool.prior_mixing)
    right = np.searchsorted(np.unique(y), y_test)
    accuracy = (log_proba.argmax(axis=1) == right).mean()
    log_loss = -log_proba[np.arange(right.size), right].mean()
    return [float(accuracy), float(log_loss), pool.scores.accuracy, pool.scores.log_loss]


def _noise(options: Options) -> Iterator[Figure]:
    """Yield cross-validated accuracies of pure noise, with empirical and with uniform priors."""
    for uniform in (False, True):
        scores = []
        for seed in range(max(options.seeds, 200)):
            rng = np.random.default_rng(seed)
            X, y = rng.normal(size=(_N_NOISE, 5)), rng.integers(0, 2, _N_NOISE)
            scores.append(_fit(X, y, seed, uniform=uniform).scores.accuracy)
        what = f"noise, {'uniform' if uniform else 'empirical'} priors: cross-validated accuracy"
        yield Figure(what, float(np.mean(scores)), low=0.49, high=0.51, digits=4, detail=spread(scores))


def _costs(options: Options) -> Iterator[Figure]:
    """Yield processor times relative to a forest, and times and memory of a wide and of a large table."""
    for d, per_class, make in ((30, 150, make_ten_groups), (20, 100, three_groups)):
        X, y = make(per_class, random_state=np.random.RandomState(0))
        X = X[:, :d]
        forest = RandomForestClassifier(300, random_state=0)
        calls = {"ours": partial(_fit, X, y, 0), "forest": partial(forest.fit, X, y)}
        timings = time_alternately(calls, min(options.repeats, 3))
        what = f"fit time of {len(X)} x {X.shape[1]}, pool / forest"
        yield ratio(what, timings["ours"], timings["forest"], high=1.5, cpu=True)
    for (n, d, n_classes), high in ((_WIDE, 5.0), (_LARGE, 20.0)):
        random = np.random.RandomState(0)
        y = np.arange(n) % n_classes
        X = random.normal(size=(n, d))
        X[:, :4] += 1.5 * random.normal(size=(n_classes, 4))[y]
        before, start = peak(), time.process_time()
        _fit(X, y, 0)
        seconds = time.process_time() - start
        yield Figure(f"fit of {n} x {d}, {n_classes} classes", seconds, high=high, unit=" s")
        added = peak() - before
        yield Figure("  increase of the peak memory of the process", added, high=500.0, unit=" MB", digits=0)
