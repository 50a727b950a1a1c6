"""Intervals of an accuracy, for new rows and for new groups."""

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from corral.evaluation.intervals import grouped_interval, rows_to_halve_interval, wilson_interval


def test_interval_of_groups_against_plain_loops():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(8), rng.integers(1, 9, size=8))
    hits = rng.random(groups.size) < rng.beta(2.0, 1.0, size=8)[groups]
    n, p = hits.size, hits.mean()
    without = [np.mean([hits[i] for i in range(n) if groups[i] != g]) for g in range(8)]
    effect = 7 / 8 * sum((share - p) ** 2 for share in without) / (p * (1 - p) / (n - 1))
    assert effect > 1.0
    kish = n**2 / sum(sum(groups == g) ** 2 for g in range(8))
    effect = max(effect, (kish * effect + 0.5 * n / kish) / (kish + 0.5))
    worth = n / effect * (student.ppf(0.975, n - 1) / student.ppf(0.975, kish - 1)) ** 2
    z = norm.ppf(0.975)
    # Wilson's limits are the shares from which p lies z standard errors away.
    for limit in grouped_interval(hits, groups):
        assert abs(p - limit) == pytest.approx(z * np.sqrt(limit * (1.0 - limit) / worth))


@pytest.mark.parametrize("accuracy", [0.7, 0.9, 0.97])
@pytest.mark.parametrize(("n_groups", "largest"), [(5, 60), (10, 60), (20, 60)])
def test_intervals_cover_the_accuracy_of_new_groups(accuracy, n_groups, largest):
    """Groups of 1 to 59 rows, whose accuracies have a beta distribution (intraclass correlation 0.17)."""
    rng = np.random.default_rng(0)
    n_covered = 0
    for _ in range(300):
        groups = np.repeat(np.arange(n_groups), rng.integers(1, largest, n_groups))
        shares = rng.beta(5.0 * accuracy, 5.0 * (1.0 - accuracy), n_groups)
        low, high = grouped_interval(rng.random(groups.size) < shares[groups], groups)
        n_covered += low <= accuracy <= high
    assert n_covered >= 0.93 * 300


def test_one_group_with_nearly_all_rows_says_little():
    groups = np.repeat([0, 1], [99, 1])
    low, high = grouped_interval(np.arange(100) % 10 > 0, groups)
    assert high - low > 0.5


def test_intervals_of_single_rows_and_of_one_group():
    hits = np.arange(30) % 5 > 0
    assert grouped_interval(hits, np.arange(30)) == pytest.approx(wilson_interval(0.8, 30))
    spread = np.arange(30) // 5  # each group has the same share, less than chance lets differ
    assert grouped_interval(hits, spread)[0] < wilson_interval(0.8, 30)[0]
    assert grouped_interval(hits, np.zeros(30)) is None
    sure = np.ones(30, dtype=bool)  # six groups, each of which may be right as a whole
    assert grouped_interval(sure, spread) == pytest.approx(wilson_interval(1.0, 6))
    assert grouped_interval(~sure, spread) == pytest.approx(wilson_interval(0.0, 6))


def test_rows_that_halve_an_interval():
    for right, n in ((67, 68), (201, 212), (5, 10), (30, 30)):
        (low, high), more = wilson_interval(right / n, n), rows_to_halve_interval(right / n, n)

        def width(n_rows, share=right / n):
            z = norm.ppf(0.975)
            return (
                2 * z * np.sqrt(share * (1 - share) / n_rows + z**2 / (4 * n_rows**2)) / (1 + z**2 / n_rows)
            )

        assert width(n + more) <= (high - low) / 2 < width(n + more - 1)
