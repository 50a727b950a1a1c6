"""How good predictions of held-out rows are: scores, recalls, and how well these are known."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

from corral.array_types import Bools, Floats, Integers
from corral.data.weights import effective_number, largest_design_effect

_N_BINS = 10

# Ends of intervals of the label's probability: narrower where most probabilities are.
RELIABILITY_ENDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)

# Groups whose rows are all right or all wrong, with which the design effect of groups is averaged.
_MORE_GROUPS = 0.5


@dataclass(frozen=True)
class Scores:
    """Scores of one classifier on rows that took no part in fitting.

    Attributes
    ----------
    accuracy : share of rows with the right label.
    accuracy_interval : its 95 % interval by Wilson, for rows drawn at random, or groups of rows if they have
        some (`grouped_interval`); the choice of training rows is not counted. None where all rows are of one
        group.
    log_loss : mean of minus the logarithm of the right class's probability.
    calibration_error : mean distance between the probability of the label and how often it is right.
    accuracy_by_class : share of the rows of each class that get its label.
    """

    accuracy: float
    accuracy_interval: tuple[float, float] | None
    log_loss: float
    calibration_error: float
    accuracy_by_class: dict[str, float]


class Recall(NamedTuple):
    """How many rows of a class get its label.

    Attributes
    ----------
    n_right, n_rows : rows with the right label, and all of the class.
    interval : 95 % interval of the share by Wilson, for groups of rows if they have some; None where all rows
        of the class are of one group.
    mistaken_for : the class that its other rows are most often taken for, None if all are right.
    n_mistaken : how many are taken for that.
    """

    n_right: int
    n_rows: int
    interval: tuple[float, float] | None
    mistaken_for: Any
    n_mistaken: int

    @property
    def share(self) -> float:
        """Share of the rows that get the right label."""
        return self.n_right / self.n_rows


class Precision(NamedTuple):
    """How many rows with a label are of its class.

    Attributes
    ----------
    n_right, n_rows : rows of the class, and all that got the label.
    confidence : mean probability of the label at these rows.
    """

    n_right: int
    n_rows: int
    confidence: float


class Reliability(NamedTuple):
    """How often labels are right whose probability lies in an interval.

    Attributes
    ----------
    n_rows : how many rows have such a label.
    low, high : ends of the interval of probabilities.
    confidence : their mean probability.
    share_right, interval : how many are right, and the 95 % interval of that, as in `Recall`.
    """

    n_rows: int
    low: float
    high: float
    confidence: float
    share_right: float
    interval: tuple[float, float] | None


def grouped_interval(hits: Bools, groups: NDArray[Any]) -> tuple[float, float] | None:
    """The 95 % interval of a share by Wilson where rows of a group may be right or wrong together.

    The rows are worth fewer that are drawn one by one: their number over the design effect of the groups (see
    `data.weights`), which is at least 1.

    - The variance is that of the jackknife: the share is computed without each group in turn. So a group
      that has many of the rows counts for what it moves.
    - Few groups say little of the design effect. It is averaged with that of half a group more whose rows are
      all right or all wrong, and the number of rows is reduced as Student's t requires (Korn and Graubard,
      1998), with as many degrees of freedom as groups of equal size would have (Kish's number).
    - Where all rows are right, or none is, nothing is known of it, and each group counts as one row,
      weighted by its size.

    With fewer than two groups there is no interval. Coverage is 0.93 or more in simulations of 5 to 40 groups
    of 1 to 59 rows whose accuracies differ moderately; it is less where nearly all groups are right and a few
    are wrong as a whole: 0.85 to 0.93 if the accuracy is 0.9 or more and the intraclass correlation 0.5.
    """
    _, group = np.unique(groups, return_inverse=True)
    sizes = np.bincount(group).astype(np.float64)
    n, n_groups, share = hits.size, sizes.size, float(hits.mean())
    if n_groups < 2:
        return None
    n_equal_groups = effective_number(sizes)
    if share in (0.0, 1.0):
        return wilson_interval(share, n_equal_groups)
    moved = np.bincount(group, hits - share) / (n - sizes)  # by how much the share falls without each group
    variance = (n_groups - 1) / n_groups * float(moved @ moved)
    # Not `data.weights.design_effect`: a large group draws the share to itself, so that its residuals are too
    # small; without the group they are not.
    design_effect = max(variance / (share * (1.0 - share) / (n - 1)), 1.0)
    largest = largest_design_effect(np.ones(n), group)
    shrunk = (n_equal_groups * design_effect + _MORE_GROUPS * largest) / (n_equal_groups + _MORE_GROUPS)
    degrees = max(n_equal_groups - 1.0, 1.0)
    few_groups = (t.ppf(0.975, n - 1) / t.ppf(0.975, degrees)) ** 2
    return wilson_interval(share, n / max(design_effect, shrunk) * float(few_groups))


def wilson_interval(share: float, n: float) -> tuple[float, float]:
    """The 95 % interval of a share of n rows by Wilson, sensible for few rows and for shares of 0 and 1.

    The number of rows need not be whole.
    """
    z = float(norm.ppf(0.975))
    middle = share + z**2 / (2.0 * n)
    half = z * math.sqrt(share * (1.0 - share) / n + z**2 / (4.0 * n**2))
    low, high = (middle - half) / (1.0 + z**2 / n), (middle + half) / (1.0 + z**2 / n)
    return max(low, 0.0), min(high, 1.0)


def rows_to_halve_interval(share: float, n: int) -> int:
    """How many rows more than n would make Wilson's interval half as wide if the share stayed the same."""

    def narrowness(n_rows: int) -> float:
        low, high = wilson_interval(share, n_rows)
        return low - high

    # Wilson's interval with 16 times the rows is less than half as wide.
    return bisect_left(range(n, 16 * n), narrowness(n) / 2.0, key=narrowness)


def calibration_error(proba: Floats, codes: Integers) -> float:
    """Mean distance of confidence and accuracy over ten equal intervals of the label's probability."""
    confidence = proba.max(axis=1)
    hits = proba.argmax(axis=1) == codes
    tenths = np.minimum((confidence * _N_BINS).astype(np.int64), _N_BINS - 1)
    gaps = np.bincount(tenths, hits - confidence, minlength=_N_BINS)
    return float(np.abs(gaps).sum() / len(proba))
