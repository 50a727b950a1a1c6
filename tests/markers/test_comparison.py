"""Each class beside all other rows: against pandas, numpy, ROC curves and loops over all ranges."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from corral.data.dataset import LabelledRows, TrainingRows
from corral.markers.comparison import Comparison, learn_comparison
from corral.markers.contrast import Contrast, learn_contrast

QUANTILES = [0.25, 0.5, 0.75]


def compared(
    X: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray | None = None,
    n_categories: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> tuple[Contrast, Comparison]:
    training = TrainingRows(X, y, weights, n_categories, groups)
    data = LabelledRows.sort(training)
    contrast = learn_contrast(data, 0.15)
    return contrast, learn_comparison(training, data.labels, contrast)


def table(seed: int = 0, n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Four classes of unequal sizes; measurements, counts, a flag, categories; missing values, duplicates."""
    rng = np.random.default_rng(seed)
    y = rng.choice(4, n, p=[0.1, 0.2, 0.3, 0.4])
    X = np.column_stack(
        [
            rng.normal(size=n) + (y == 0),
            np.exp(rng.normal(size=n)) * (1 + y),
            rng.poisson(1.0 + 2.0 * (y == 1)),
            rng.random(n) < 0.2 + 0.6 * (y == 3),
            np.where(rng.random(n) < 0.6, y, rng.integers(0, 6, n)),
        ]
    ).astype(float)
    X[rng.random(X.shape) < 0.1 + 0.1 * (y == 2)[:, np.newaxis]] = np.nan
    return np.vstack([X, X[:80]]), np.concatenate([y, y[:80]]), np.array([0, 0, 0, 0, 6])


def samples(contrast: Contrast, y: np.ndarray, a: int, j: int) -> list[np.ndarray]:
    """Rows of class a, all other rows, and rows of the background."""
    background = np.flatnonzero(contrast.background[:, j])
    chosen = background if background.size else np.unique(y)
    return [y == a, y != a, np.isin(y, chosen) & (y != a)]


def inside(result: Comparison, x: np.ndarray, a: int, j: int) -> np.ndarray:
    low, high = result.bounds[:, a, j]
    return (np.isnan(low) | (x >= low)) & (np.isnan(high) | (x <= high))


@pytest.mark.parametrize("grouped", [False, True])
def test_numbers_are_those_of_pandas(grouped: bool) -> None:
    X, y, n_categories = table()
    groups = np.arange(len(y)) // 7 if grouped else None
    contrast, result = compared(X, y, n_categories=n_categories, groups=groups)
    n_shares = 0
    for a in range(4):
        for j in range(5):
            for i, rows in enumerate(samples(contrast, y, a, j)):
                x = pd.Series(X[rows, j]).dropna()
                if n_categories[j]:
                    assert result.middles[i, a, j] == x.mode()[0]
                else:
                    lower, median, upper = x.quantile(QUANTILES)
                    assert_allclose(result.middles[i, a, j], median, rtol=1e-12)
                    assert_allclose(result.quartiles[:, i, a, j], [lower, upper], rtol=1e-12)
                if result.direction[a, j].endswith("often"):
                    n_shares += 1
                    assert_allclose(result.shares[i, a, j], inside(result, x.to_numpy(), a, j).mean())
                else:
                    assert np.isnan(result.shares[i, a, j])
            n_background = np.unique(y[samples(contrast, y, a, j)[2]]).size
            assert result.n_background[a, j] == (n_background if n_background < 3 else 0)
        assert_allclose(result.missing[a], np.isnan(X[y == a]).mean(axis=0))
    assert n_shares > 10
    assert (result.n_background > 0).any()


def test_shares_of_missing_values_are_those_of_pandas() -> None:
    X, y, _ = table()
    _, result = compared(X[:, :4], y)
    background = np.array([[True, False, True, False]] * 4).T & True
    background[:, 3] = [True, True, False, True]
    shares = result.missing_shares(background)
    for a in range(4):
        for j in range(4):
            chosen = np.flatnonzero(background[:, j]) if background[:, j].any() else np.arange(4)
            rows = [y == a, y != a, np.isin(y, chosen) & (y != a)]
            assert_allclose(
                shares[:, a, j], [np.isnan(X[each, j]).mean() if each.any() else 0.0 for each in rows]
            )
    complete = compared(np.nan_to_num(X[:, :4]), y)[1]
    assert not complete.missing_shares(background).any()


@pytest.mark.parametrize("seed", [0, 1])
def test_effects_are_areas_under_roc_curves(seed: int) -> None:
    X, y, _ = table(seed)
    result = compared(X[:, :2], y)[1]
    words = set()
    for a in range(4):
        for j in range(2):
            x = pd.Series(X[:, j])
            present, own = x.notna(), y == a
            if result.direction[a, j] in ("high", "low"):
                score = x[present]
            elif result.direction[a, j] in ("narrow", "wide"):
                ranks = x[present].rank()
                score = (ranks - (ranks.size + 1) / 2).abs().round(9)
            else:
                assert_allclose(result.effect[a, j], -np.diff(result.shares[:2, a, j])[0])
                continue
            words.add(result.direction[a, j])
            assert_allclose(result.effect[a, j], 2.0 * roc_auc_score(own[present], score) - 1.0, atol=1e-9)
    assert words & {"high", "low"}
    assert words & {"narrow", "wide"}


def test_weights_count_rows_as_often() -> None:
    X, y, n_categories = table()
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    weighted = compared(X, y, 0.25 * weights, n_categories=n_categories)[1]
    repeated = np.repeat(np.arange(len(y)), weights.astype(int))
    X, y = X[repeated], y[repeated]
    assert_allclose(weighted.missing, [np.isnan(X[y == a]).mean(axis=0) for a in range(4)])
    for a in range(4):
        for i, rows in enumerate([y == a, y != a]):
            for j in range(4):
                x = X[rows, j][~np.isnan(X[rows, j])]
                expected = np.quantile(x, QUANTILES, method="averaged_inverted_cdf")
                assert_allclose([weighted.quartiles[0, i, a, j], weighted.middles[i, a, j]], expected[:2])
                if weighted.direction[a, j].endswith("often"):
                    assert_allclose(weighted.shares[i, a, j], inside(weighted, x, a, j).mean())
    equal = compared(X, y, np.full(len(y), 0.3), n_categories=n_categories)[1]
    assert_array_equal(equal.middles, compared(X, y, n_categories=n_categories)[1].middles)


def test_two_modes_are_a_range_that_no_other_beats() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    x = np.where(
        y == 0, rng.normal(size=120), rng.choice([-1.0, 1.0], 120) * (1.0 + 0.1 * rng.normal(size=120))
    )
    contrast, result = compared(x[:, np.newaxis], y)
    assert contrast.markers.all()
    assert result.direction[:, 0].tolist() == ["more often", "less often"]
    values = np.sort(x)
    for a in (0, 1):
        differences = [
            ((x[y == a] >= low) & (x[y == a] <= high)).mean()
            - ((x[y != a] >= low) & (x[y != a] <= high)).mean()
            for low, high in combinations_with_replacement(values, 2)
        ]
        assert_allclose(abs(result.effect[a, 0]), np.abs(differences).max())
        assert_allclose(
            result.shares[:2, a, 0], [inside(result, x[rows], a, 0).mean() for rows in (y == a, y != a)]
        )
        assert all(float(f"{bound:.6g}") == bound for bound in result.bounds[:, a, 0])


def test_a_range_without_limit_is_told_from_where_it_is_more_frequent() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    x = np.where(rng.random(400) < 0.2 * (y == 1), rng.exponential(5.0, 400), 0.0)
    result = compared(x[:, np.newaxis], y)[1]
    assert result.direction[:, 0].tolist() == ["more often", "more often"]
    assert_allclose(result.bounds[:, 0, 0], 0.0)  # a single value
    assert_allclose(result.bounds[:, 1, 0], [x[x > 0.0].min(), np.nan], rtol=1e-3)
    assert_allclose(result.shares[:2, 0, 0], [(x[y == a] == 0.0).mean() for a in (0, 1)])


def test_categories_that_are_equally_frequent_are_counted_together() -> None:
    """Ten countries of a continent have 12 rows each, an eleventh has two; other continents have others."""
    y = np.repeat([0, 1, 2], [122, 300, 300])
    x = np.concatenate([np.repeat(np.arange(10), 12), [10, 10], np.tile(np.arange(11, 17), 100)]).astype(
        float
    )
    contrast, result = compared(x[:, np.newaxis], y, n_categories=np.array([17]))
    assert contrast.markers[0, 0]
    assert (result.n_alike[0, 0], result.bounds[0, 0, 0], result.direction[0, 0]) == (10, 0.0, "more often")
    assert_allclose(result.shares[:, 0, 0], [120 / 122, 0.0, 0.0])
    assert_allclose(result.effect[0, 0], 120 / 122)
    assert not contrast.markers[1:].any()
    assert (result.n_alike[1:] == 1).all()


def contradictions(contrast: Contrast, result: Comparison) -> list[tuple[int, int]]:
    """Classes and variables whose direction medians, quartiles or shares contradict."""
    own, others = result.quartiles[:, 0], result.quartiles[:, 1]
    wider, higher = (
        np.diff(own, axis=0)[0] - np.diff(others, axis=0)[0],
        result.middles[0] - result.middles[1],
    )
    same, more = higher == 0.0, result.shares[0] - result.shares[1]
    wrong = {
        "narrow": wider >= 0.0,
        "wide": wider <= 0.0,
        "high": (higher < 0.0) | (same & ((own < others).any(axis=0) | (own == others).all(axis=0))),
        "low": (higher > 0.0) | (same & ((own > others).any(axis=0) | (own == others).all(axis=0))),
        "more often": more <= 0.0,
        "less often": more >= 0.0,
        "": contrast.markers & (result.effect != 0.0),
    }
    wrongly = np.logical_or.reduce([(result.direction == word) & where for word, where in wrong.items()])
    return [(int(a), int(j)) for a, j in np.argwhere(wrongly)]


def test_no_direction_contradicts_the_numbers_beside_it() -> None:
    X, y = load_digits(return_X_y=True)
    assert not contradictions(*compared(X, y))
    n_marked, words = 0, set()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n_classes = int(rng.integers(2, 5))
        y = np.repeat(np.arange(n_classes), rng.integers(15, 120, n_classes))
        shift, width = rng.normal(size=(n_classes, 5))[y], np.exp(rng.normal(0.0, 0.5, (n_classes, 5)))[y]
        X = width * rng.normal(size=shift.shape) + shift
        X[:, 0] = np.exp(X[:, 0])
        X[:, 1] = rng.poisson(np.exp(shift[:, 1]))
        X[:, 2] = np.where(rng.random(y.size) < 0.5 + 0.3 * np.tanh(shift[:, 2]), 0.0, np.exp(X[:, 2]))
        X[:, 3] = np.round(X[:, 3])
        X[:, 4] = rng.choice([-1.0, 1.0], y.size) * np.abs(shift[:, 4]) + 0.3 * rng.normal(size=y.size)
        contrast, result = compared(X, y)
        n_marked += int(contrast.markers.sum())
        words |= set(result.direction[contrast.markers].tolist())
        assert not contradictions(contrast, result)
    assert n_marked > 200
    assert words >= {"high", "low", "narrow", "wide", "more often", "less often"}


def test_of_few_values_the_one_that_marks_the_class_is_told() -> None:
    y = np.repeat([0, 1, 2], [20, 40, 40])
    X = np.zeros((100, 1))
    X[:14], X[14:18], X[20:26] = 2.0, 3.0, 1.0
    contrast, result = compared(X, y)
    assert contrast.markers[:, 0].tolist() == [True, False, False]
    assert (result.direction[0, 0], result.middles[0, 0, 0], result.middles[1, 0, 0]) == ("high", 2.0, 0.0)
    flag = compared((X == 2.0).astype(float), y)[1]
    assert (flag.direction[0, 0], flag.bounds[0, 0, 0], *flag.shares[:2, 0, 0]) == (
        "more often",
        1.0,
        0.7,
        0.0,
    )


def test_very_large_values_and_classes_without_rows_are_taken() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 3], 30)
    X = np.column_stack([rng.choice([-1e308, 1e308], 90), np.where(y == 0, 1e308, -1e308 * rng.random(90))])
    training = TrainingRows(X, y, None)
    data = LabelledRows.sort(training, expected=np.arange(4))
    result = learn_comparison(training, data.labels, learn_contrast(data, 0.15))
    result.validate()
    assert np.isfinite(result.effect).all()
    assert np.isfinite(result.middles[:, [0, 1, 3]]).all()
    assert result.direction[2].tolist() == ["", ""]
    assert_allclose(result.middles[1, 2], np.median(X / 1e308, axis=0) * 1e308)


def test_damaged_comparisons_are_refused() -> None:
    X, y, n_categories = table()
    result = compared(X, y, n_categories=n_categories)[1]
    result.validate()
    result.direction[0, 0] = "upwards"
    with pytest.raises(ValueError, match="direction must be a table of"):
        result.validate()
