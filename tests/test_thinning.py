"""Thinning: cells and averages against plain loops; means and covariances stay, whatever the parts."""

import numpy as np
import pytest

from corral._core.thinning import Representatives, nearest_to_centres, thin
from tests import naive


def make_units(n, seed=0):
    """The same rows in two kinds of units."""
    random = np.random.RandomState(seed)
    X = random.normal(size=(n, 3)) * [1.0, 2.0, 0.5] + [0.0, 10.0, 0.0]
    return [X, np.arctan(X)], random.uniform(0.5, 2.0, n)


IMPORTANCE = [np.array([1.0, 0.0, 4.0]), np.array([0.0, 2.0, 0.0])]


def moments(rows):
    """Weighted means and covariances in all units, with the spread that averages have lost."""
    found = []
    for x, scatter in zip(rows.centres, rows.scatter, strict=True):
        mean = rows.weights @ x / rows.weights.sum()
        found += [mean, ((x - mean).T * rows.weights @ (x - mean) + scatter) / rows.weights.sum()]
    return found


def test_cells_and_averages_are_those_of_plain_loops():
    units, weights = make_units(40)
    thinned, cells = thin(Representatives.of_rows(units, weights), 6, IMPORTANCE, seed=3)
    x = np.column_stack([units[0][:, [0, 2]] * [1.0, 2.0], units[1][:, 1] * np.sqrt(2.0)])
    first = np.random.RandomState(3).permutation(40)[:6]
    expected = naive.cells_of(x, weights, x[first], 4)
    assert [sorted(set(expected)).index(cell) for cell in expected] == cells.tolist()
    for k in range(2):
        means, totals, scatter = naive.averages(units[k], weights, expected)
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
        for found, expected in zip(moments(thinned), moments(rows), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    spread = [scatter / rows.weights.sum() for scatter in merged.scatter]
    np.testing.assert_allclose(merged.spreads, spread)


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
    for found, expected in zip(moments(again), moments(rows), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_variables_without_importance_make_no_cells():
    units, weights = make_units(100)
    thinned, cells = thin(Representatives.of_rows(units, weights), 5, [np.zeros(3)] * 2, seed=0)
    assert len(thinned) == 1
    assert not cells.any()


def test_the_row_nearest_to_a_centre_is_in_its_cell():
    units, _ = make_units(100)
    thinned, cells = thin(Representatives.of_rows(units), 7, IMPORTANCE, seed=0)
    found = nearest_to_centres(units[0], cells, thinned.centres[0])
    for k, i in enumerate(found.tolist()):
        mine = np.flatnonzero(cells == k)
        apart = np.linalg.norm(units[0][mine] - thinned.centres[0][k], axis=1)
        assert i == mine[apart.argmin()]
