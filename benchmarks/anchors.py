"""RodeoClassifier beside the paper's figures and beside other classifiers on the same splits.

Trial s draws its data from the seed s. The real data are split by row, as in the paper; rows of one anuran
recording are alike, so those figures do not tell how a classifier does on other animals.
"""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks._measure import Figure, Options
from benchmarks._trials import Split, draw, rivals, sample, spread
from corral import RodeoClassifier
from corral.datasets import load_anuran, load_optdigits, load_waveform, make_shifted_groups, make_ten_groups

# Row 1 of the paper's Table 2: z-scores of the mean bandwidths of class 1, for variables 1 to 30.
_TABLE_2_ROW_1 = np.array(
    [
        *(-2.4945, -2.2906, -2.0713, -1.7927, -1.5563, -1.3577, 0.4271, 0.4578, 0.5111, 0.4665),
        *(0.4570, 0.4687, 0.4126, 0.4872, 0.4917, 0.5714, 0.4831, 0.5172, 0.3807, 0.4928),
        *(0.4685, 0.4576, 0.4486, 0.5553, 0.5031, 0.5277, 0.4911, 0.5012, 0.4959, 0.4890),
    ]
)


@dataclass(frozen=True)
class Data:
    """A data set and what is expected of `RodeoClassifier` on it.

    Attributes
    ----------
    name : with the numbers of training and test rows per class.
    split : draws training and test rows from a seed.
    settings : of `RodeoClassifier`; the others are compared with the first.
    targets : bounds of the mean accuracy, by position in `settings`.
    """

    name: str
    split: Callable[[int], Split]
    settings: tuple[Mapping[str, Any], ...] = ({"scale": "range"}, {"scale": "standard"})
    targets: Mapping[int, tuple[float, float]] = field(default_factory=dict)


_UPDATES = ("simultaneous", "sequential")
_ORDERS = tuple({"update": update} for update in _UPDATES)


def run(options: Options) -> Iterator[Figure]:
    """Simulated data first, then the real ones where they are."""
    yield from _compare(
        Data("ten groups 150/100", partial(draw, make_ten_groups, 150, 100), _ORDERS, {0: (0.66, 0.71)}),
        options,
    )
    for settings in _ORDERS:
        yield from _table_2(settings, options, high=0.15 if settings is _ORDERS[0] else np.inf)
    yield from _compare(
        Data(
            "shifted groups 200/150",
            partial(draw, make_shifted_groups, 200, 150),
            _ORDERS,
            {0: (0.765, 0.80)},
        ),
        options,
    )
    if not os.environ.get("CORRAL_DATA"):
        print("  optdigits, anuran, waveform: not measured, because CORRAL_DATA does not name a data folder")
        return
    for data in _real_data():
        yield from _compare(data, options)
        yield _ends(data)


def _real_data() -> Iterator[Data]:
    scales = ({"scale": "standard"}, {"scale": None}, {"scale": "range"}, {"scale": "rank"})
    least = (0.955, np.inf)
    digits = load_optdigits(subset="all", return_X_y=True)
    yield Data("optdigits 100/100", partial(sample, *digits, 100, 100), scales, {0: least, 1: least})
    frogs = load_anuran(return_X_y=True)
    yield Data("anuran 100/50", partial(sample, *frogs, 100, 50))
    yield Data("anuran + 5 noise 100/50", partial(sample, *frogs, 100, 50, noise=5))
    waves = load_waveform(return_X_y=True)
    yield Data("waveform 100/100", partial(sample, *waves, 100, 100))


def _compare(data: Data, options: Options) -> Iterator[Figure]:
    """Mean accuracies over the seeds; rivals also by their paired difference to the first setting."""
    scores: dict[str, list[float]] = {}
    names = ["RodeoClassifier " + ", ".join(f"{k}={v}" for k, v in s.items()) for s in data.settings]
    for seed in range(options.seeds):
        X, y, X_test, y_test = data.split(seed)
        models = {
            name: RodeoClassifier(**settings, n_jobs=-1)
            for name, settings in zip(names, data.settings, strict=True)
        }
        for name, model in (models | rivals(seed)).items():
            scores.setdefault(name, []).append(model.fit(X, y).score(X_test, y_test))
    first = np.array(scores[names[0]])
    for i, (name, values) in enumerate(scores.items()):
        found = np.array(values)
        low, high = data.targets.get(i, (-np.inf, np.inf))
        detail = spread(found)
        if name not in names:
            ahead = found.mean() - first.mean()
            detail += f"; {'AHEAD of' if ahead > 0 else 'behind'} the first line by {abs(ahead):.3f}"
            detail += f", ahead in {int((found > first).sum())} of {len(found)}"
        yield Figure(f"{data.name}: {name}", found.mean(), low, high, digits=4, detail=detail)


def _ends(data: Data) -> Figure:
    """Point masses (constant pixels, mfcc_1) must not keep the loop going or spoil a probability."""
    ways = [(scale, update) for scale in ("range", "standard", "rank", None) for update in _UPDATES]
    X, y, X_test, _ = data.split(0)
    failed = []
    for scale, update in ways:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            P = RodeoClassifier(scale=scale, update=update, n_jobs=-1).fit(X, y).predict_proba(X_test)
        if caught or not np.isfinite(P).all() or np.abs(P.sum(axis=1) - 1.0).max() > 1e-12:
            failed.append(f"{scale}, {update}")
    return Figure(
        f"{data.name}: scales and orders that end well, of {len(ways)}",
        len(ways) - len(failed),
        low=len(ways),
        digits=0,
        detail="; ".join(failed) or "finite, sums within 1e-12 of 1, no warnings; seed 0",
    )


def _table_2(settings: Mapping[str, Any], options: Options, high: float) -> Iterator[Figure]:
    z, exact = [], []
    relevant = np.array([(np.arange(30) >= group) & (np.arange(30) < group + 6) for group in range(10)])
    for seed in range(options.seeds):
        X, y, _, _ = draw(make_ten_groups, 150, 1, seed)
        classifier = RodeoClassifier(**settings, n_jobs=-1).fit(X, y)
        z.append(classifier.zscores_[0])
        exact.append((classifier.relevant_ == relevant).all(axis=1).mean())
    difference = np.abs(np.mean(z, axis=0) - _TABLE_2_ROW_1)
    most = int(difference.argmax())
    name = f"ten groups: {settings['update']}"
    detail = f"variable {most + 1}: paper {_TABLE_2_ROW_1[most]:.3f}, {spread([row[most] for row in z])}"
    yield Figure(f"{name}, z-scores off Table 2 by", difference.max(), high=high, digits=3, detail=detail)
    yield Figure(f"{name}, classes with the exact variables", float(np.mean(exact)), detail=spread(exact))
