"""Thinning: cells and averages against plain loops; means and covariances stay, whatever the parts."""

import numpy as np
import pytest

from corral._core.thinning import Cells, CellSummary, Representatives, thin
from tests import naive


def make_units(n, seed=0):
    """The same rows in two kinds of units."""
    random = np.random.RandomState(seed)
    X = random.normal(size=(n, 3)) * [1.0, 2.0, 0.5] + [0.0, 10.0, 0.0]
    return [X, np.arctan(X)], random.uniform(0.5, 2.0, n)


IMPORTANCE = np.array([1.0, 0.0, 4.0])


def moments(rows):
    """Weighted means and covariances in all units, with the spread that averages have lost."""
    found = []
    for x, scatter in zip(rows.centres, rows.scatter, strict=True):
        mean = rows.weights @ x / rows.weights.sum()
        found += [mean, ((x - mean).T * rows.weights @ (x - mean) + scatter) / rows.weights.sum()]
    return found


def same_moments(found, expected):
    for one, other in zip(moments(found), moments(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_cells_and_averages_are_those_of_plain_loops():
    units, weights = make_units(40)
    thinned, cells = thin(Representatives.of_rows(units, weights), 6, IMPORTANCE, seed=3)
    x = units[0][:, [0, 2]] * [1.0, 2.0]
    some = np.random.RandomState(3).permutation(40)
    expected = np.empty(40, dtype=int)
    expected[some] = naive.cells_of(x[some], weights[some], x[some[:6]], 4)
    assert [sorted(set(expected)).index(cell) for cell in expected] == cells.tolist()
    for k in range(2):
        means, totals, scatter = naive.averages(units[k], weights, expected.tolist())
        np.testing.assert_allclose(thinned.centres[k], means, rtol=1e-12)
        np.testing.assert_allclose(thinned.weights, totals, rtol=1e-12)
        np.testing.assert_allclose(thinned.scatter[k], scatter, rtol=1e-9, atol=1e-12)
    assert thinned.counts.sum() == 40


def test_rows_that_are_few_stay_as_they_are():
    units, weights = make_units(20)
    rows = Representatives.of_rows(units, weights)
    thinned, cells = thin(rows, 20, IMPORTANCE, seed=0)
    assert thinned is rows
    assert cells.tolist() == list(range(20))
    assert not any(scatter.any() for scatter in thinned.scatter)


def test_thinning_is_the_same_for_a_seed():
    units, weights = make_units(300)
    rows = Representatives.of_rows(units, weights)
    first, second, other = (thin(rows, 30, IMPORTANCE, seed)[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


@pytest.mark.parametrize("weighted", [False, True])
def test_means_and_covariances_stay_whatever_the_parts(weighted):
    units, weights = make_units(500)
    rows = Representatives.of_rows(units, weights if weighted else None)
    whole, _ = thin(rows, 25, IMPORTANCE, seed=0)
    parts = []
    for at in np.split(np.arange(500), [120, 300]):
        part = Representatives.of_rows([x[at] for x in units], weights[at] if weighted else None)
        parts.append(thin(part, 40, IMPORTANCE, seed=0)[0])
    merged, _ = thin(Representatives.together(parts), 25, IMPORTANCE, seed=0)
    for thinned in (whole, merged):
        assert len(thinned) <= 25
        assert thinned.counts.sum() == 500
        np.testing.assert_allclose(thinned.weights.sum(), rows.weights.sum(), rtol=1e-12)
        same_moments(thinned, rows)
    spread = [scatter / rows.weights.sum() for scatter in merged.scatter]
    np.testing.assert_allclose(merged.spreads, spread)


@pytest.mark.parametrize("weighted", [False, True])
def test_summaries_of_parts_are_those_of_all_rows(weighted):
    units, weights = make_units(300)
    weights = weights if weighted else None
    numbers = np.random.RandomState(1).permutation(300)
    cells = Cells.learn(units[0], weights, 20, IMPORTANCE, seed=0)
    whole = cells.summarise(units, weights, units[0], numbers)
    parts = [
        cells.summarise(
            [x[at] for x in units], None if weights is None else weights[at], units[0][at], numbers[at]
        )
        for at in np.split(np.arange(300), [4, 100])  # the first has fewer rows than there are cells
    ]
    merged = CellSummary.merge(parts)
    np.testing.assert_array_equal(merged.numbers, whole.numbers)
    np.testing.assert_array_equal(merged.X, whole.X)
    np.testing.assert_array_equal(merged.averages.counts, whole.averages.counts)
    np.testing.assert_allclose(merged.averages.centres, whole.averages.centres, rtol=1e-12)
    np.testing.assert_allclose(merged.averages.scatter, whole.averages.scatter, rtol=1e-10)
    same_moments(merged.averages, Representatives.of_rows(units, weights))


def test_a_cell_knows_the_row_that_is_nearest_to_its_centre():
    units, _ = make_units(100)
    cells = Cells.learn(units[0], None, 7, IMPORTANCE, seed=0)
    far = Cells(cells.importance, np.vstack([cells.centres, [[1e3, 1e3]]]))  # and one without rows
    summary = far.summarise(units, None, units[0], np.arange(100, 200))
    assert summary.numbers[-1] == -1
    kept = summary.filled()
    assert len(kept.averages) == 7
    of_rows = far.divide(units[0])
    for k in range(7):
        mine = np.flatnonzero(of_rows == k)
        apart = np.linalg.norm(units[0][mine][:, [0, 2]] * [1.0, 2.0] - cells.centres[k], axis=1)
        assert kept.numbers[k] == 100 + mine[apart.argmin()]
        np.testing.assert_array_equal(kept.X[k], units[0][mine[apart.argmin()]])


def test_no_average_is_of_fewer_rows_than_asked_for():
    units, weights = make_units(200)
    rows = Representatives.of_rows(units, weights)
    assert thin(rows, 60, IMPORTANCE, seed=0)[0].counts.min() == 1
    thinned, cells = thin(rows, 60, IMPORTANCE, seed=0, min_count=4)
    assert thinned.counts.min() >= 4
    assert thinned.counts.tolist() == np.bincount(cells).tolist()
    few, _ = thin(rows, 1000, IMPORTANCE, seed=0, min_count=4)  # each row has too few rows
    assert few.counts.tolist() == [200]
    again, _ = thin(thinned, 60, IMPORTANCE, seed=0, min_count=10)
    assert again.counts.min() >= 10
    same_moments(again, rows)


def test_variables_without_importance_make_no_cells():
    units, weights = make_units(100)
    thinned, cells = thin(Representatives.of_rows(units, weights), 5, np.zeros(3), seed=0)
    assert len(thinned) == 1
    assert not cells.any()
