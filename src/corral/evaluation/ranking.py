"""Ranking of rows by their probability of a class: AUC, average precision, curves and thresholds.

A row is called if its probability of the class is at least a threshold. The AUC is the chance that a row of
the class has a higher probability of the class than a row of another class; ties count half. The average
precision is the mean of the precision over thresholds equal to the probabilities of the rows of the class.
AUC and average precision are defined as in scikit-learn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.evaluation.intervals import Measure, Sampling

# Thresholds whose consequences are shown, which are denser near 0 and 1.
THRESHOLDS = (0.01, 0.02, *(round(0.05 * k, 2) for k in range(1, 20)), 0.98, 0.99)


class Threshold(NamedTuple):
    """Consequences of calling every row with at least this probability of a class.

    Attributes
    ----------
    threshold : lowest probability of a called row.
    n_called : number of called rows.
    n_right, n_false : numbers of called rows that are of the class, and that are of other classes.
    n_rows : number of rows of the class, called or not.
    precision : `n_right / n_called`, 1 if no row is called.
    recall : `n_right / n_rows`.
    false_positive_rate : share of the rows of other classes that are called.
    """

    threshold: float
    n_called: int
    n_right: int
    n_false: int
    n_rows: int
    precision: float
    recall: float
    false_positive_rate: float


def auc(proba: Floats, own: Bools, sampling: Sampling) -> Measure:
    """Measure the area under the ROC curve, with DeLong's variance.

    If the AUC is near 1, the variance from few rows is often too small. So the interval is at least as wide
    as the interval of a share of n rows, where n is twice the number of rows of the class or of all other
    classes, whichever is smaller.
    """
    above = _shares_below(proba[own], proba[~own])
    below = 1.0 - _shares_below(proba[~own], proba[own])
    value = float(above.mean())
    influence = np.empty(own.size)
    influence[own] = (above - value) / above.size
    influence[~own] = (below - value) / below.size
    return Measure(value, influence, 2.0 * np.minimum(sampling.numbers(own), sampling.numbers(~own)))


def _shares_below(values: Floats, others: Floats) -> Floats:
    """Return, for each value, the share of `others` that are smaller; ties count half."""
    ordered = np.sort(others)
    ranks = np.searchsorted(ordered, values) + np.searchsorted(ordered, values, side="right")
    shares: Floats = ranks / (2.0 * ordered.size)
    return shares


def average_precision(proba: Floats, own: Bools, sampling: Sampling) -> Measure:
    """Measure the average precision.

    The interval is at least as wide as the interval of a share of the rows of the class (Boyd, Eng and Page,
    2013).
    """
    ranked = np.sort(proba[own])
    n_own = ranked.size
    n_called = own.size - np.searchsorted(np.sort(proba), ranked)
    precision = (n_own - np.searchsorted(ranked, ranked)) / n_called
    value = float(precision.mean())
    # The weight of a row changes the precision at all thresholds up to its probability.
    ones, shares = (np.concatenate([[0.0], np.cumsum(each / n_called)]) for each in (1.0, precision))
    n_below = np.searchsorted(ranked, proba, side="right")
    influence = (np.where(own, ones[n_below], 0.0) - shares[n_below]) / n_own
    influence[own] += (precision[np.searchsorted(ranked, proba[own])] - value) / n_own
    return Measure(value, influence, sampling.numbers(own))


def thresholds(proba: Floats, own: Bools, values: Floats) -> list[Threshold]:
    """Return the consequences of each threshold in `values`."""
    n_right, n_called = (n.tolist() for n in _counts(proba, own, values))
    n_own, n_others = int(own.sum()), int((~own).sum())
    return [
        Threshold(
            value,
            called,
            right,
            called - right,
            n_own,
            right / called if called else 1.0,
            right / max(n_own, 1),
            (called - right) / max(n_others, 1),
        )
        for value, right, called in zip(values.tolist(), n_right, n_called, strict=True)
    ]


def _counts(proba: Floats, own: Bools, values: Floats) -> tuple[Integers, Integers]:
    """Return, for each threshold, the numbers of called rows of the class and of all called rows."""
    n_right = own.sum() - np.searchsorted(np.sort(proba[own]), values)
    return n_right, own.size - np.searchsorted(np.sort(proba), values)


def curve(proba: Floats, own: Bools, most: int) -> list[Threshold]:
    """Return at most `most` points of the ROC and precision-recall curves, the largest threshold first.

    If there are more different probabilities, the points have about equal distances along the ROC curve, and
    at the last point all rows are called.
    """
    values = np.unique(proba)[::-1]
    if values.size > most:
        n_right, n_called = _counts(proba, own, values)
        distance = n_right / max(own.sum(), 1) + (n_called - n_right) / max((~own).sum(), 1)
        places = np.searchsorted(distance, np.linspace(distance[0], distance[-1], most))
        values = values[np.unique(np.minimum(places, distance.size - 1))]
    return thresholds(proba, own, values)
