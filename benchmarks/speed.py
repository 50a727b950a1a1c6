"""The whole prediction of the ten groups against scikit-learn's KernelDensity.

1500 training rows of ten classes and 30 variables, 1000 queries. KernelDensity has one fixed bandwidth and
needs one pass over the rows; the Rodeo chooses 30 bandwidths for each query and class.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from sklearn.neighbors import KernelDensity

from benchmarks._measure import Figure, Options, Task, ratio, time_alternately
from corral import RodeoClassifier
from corral.datasets import make_ten_groups

# Between the class's narrowest and widest variables. KernelDensity is exact by default (its tolerances are
# 0), so the bandwidth hardly changes its time.
_BANDWIDTH = 0.2


def run(options: Options) -> Iterator[Figure]:
    """Time everything in one alternating run."""
    X, y = make_ten_groups(150, random_state=0)
    X_test, _ = make_ten_groups(100, random_state=1)
    one, two = (RodeoClassifier(n_jobs=n).fit(X, y) for n in (1, 2))

    def densities(**settings: Any) -> Task:
        models = [
            KernelDensity(bandwidth=_BANDWIDTH, **settings).fit(X[y == label]) for label in one.classes_
        ]
        return Task(lambda: [model.score_samples(X_test) for model in models])

    timings = time_alternately(
        {
            "one": Task(partial(one.predict_proba, X_test)),
            "two": Task(partial(two.predict_proba, X_test)),
            "densities": densities(),
            "ball trees": densities(algorithm="ball_tree"),
        },
        options.repeats,
    )
    yield ratio(
        "time / ten KernelDensity, 1 thread", timings["one"], timings["densities"], high=1.3, cpu=True
    )
    yield ratio(
        "time / ten KernelDensity(ball_tree), 1 thread", timings["one"], timings["ball trees"], cpu=True
    )
    yield ratio("time on 1 thread / on 2 threads", timings["one"], timings["two"])
