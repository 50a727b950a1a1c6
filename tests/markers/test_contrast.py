"""Contrast: against loops over fractions and exact distributions; invariances, significance and power."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln
from scipy.stats import fisher_exact, mannwhitneyu, norm
from scipy.stats import t as student

from corral import MarkerSelector, RodeoClassifier
from corral.markers import background as background_module
from corral.markers import contrast as contrast_module
from corral.markers.contrast import Contrast, contrast
from corral.markers.group_effects import effects_of_groups, least_log_pvalues, pvalues_with_groups
from corral.markers.rank_tests import effects_between, log_pvalues, occupied_cells
from markers import markers_oracle

NUMBERS = ("pvalue", "effect")
NAMES = ("markers", "comparable", "background")


def _classes(*sizes: int) -> np.ndarray:
    return np.repeat(np.arange(len(sizes)), sizes)


def _agree(first: Contrast, second: Contrast) -> None:
    for name in NUMBERS:
        assert_allclose(getattr(first, name), getattr(second, name), rtol=1e-7, atol=1e-12, err_msg=name)
    for name in NAMES:
        assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)


# ------------------------------------------------------------------------------------ against loops

COLUMNS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "continuous": lambda rng, n: rng.standard_normal(n),
    "rounded": lambda rng, n: np.rint(2.0 * rng.standard_normal(n)),
    "three values": lambda rng, n: rng.choice([0.0, 1.0, 5.0], n, p=[0.5, 0.3, 0.2]),
    "flag": lambda rng, n: (rng.random(n) < 0.1).astype(float),
    "zeros": lambda rng, n: np.where(rng.random(n) < 0.7, 0.0, rng.exponential(size=n)),
}


def _table(seed: int, sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Of each kind a column in which the last class is shifted, and one in which all classes are in a row."""
    rng = np.random.default_rng(seed)
    y = _classes(*sizes)
    columns = []
    for draw in COLUMNS.values():
        x = draw(rng, y.size)
        columns += [x + (y == len(sizes) - 1), x + y]
    return np.column_stack(columns), y


@pytest.mark.parametrize(
    ("sizes", "extra"),
    [
        *product([(12, 15), (17, 9, 12), (8, 7, 8, 7)], [""]),
        *product([(12, 15), (12, 2, 1, 15, 14)], ["weights", "missing"]),
    ],
)
def test_agrees_with_loops(sizes: tuple[int, ...], extra: str) -> None:
    X, y = _table(len(sizes), sizes)
    rng = np.random.default_rng(0)
    weights = None
    if extra == "weights":
        weights = rng.choice([0.0, 0.5, 1.0, 1.75], y.size)
    if extra == "missing":
        X[rng.random(X.shape) < 0.15] = np.nan
    # A lower bound for significance and effects, so that both sides of either are seen.
    options = {"weights": weights, "significance_level": 0.2, "min_effect": 0.3}
    results = contrast(X, y, len(sizes), **options)
    expected = markers_oracle.contrast(X, y, len(sizes), **options)
    assert results.markers.any()
    for name in (*NUMBERS, *NAMES):
        expected_values = [[one[name] for one in class_counts] for class_counts in expected]
        same = assert_array_equal if name in NAMES else partial(assert_allclose, rtol=1e-6, atol=1e-9)
        same(getattr(results, name), expected_values, err_msg=name)


def test_many_distinct_values_agree_with_loops_over_cells() -> None:
    rng = np.random.default_rng(4)
    y = _classes(330, 290)
    X = (rng.standard_normal(y.size) + 0.25 * y)[:, np.newaxis]
    X[:40] = X[40]  # a tie that is larger than a cell
    results = contrast(X, y, 2)
    assert results.n_values.tolist() == [620 - 40]
    for a, (expected_values,) in enumerate(markers_oracle.contrast(X, y, 2)):
        assert results.pvalue[a, 0] == pytest.approx(expected_values["pvalue"], rel=1e-6)
        assert results.effect[a, 0] == pytest.approx(expected_values["effect"], rel=1e-6)
    values = np.unique(X)
    counts = [(X[y == a] == values).sum(axis=0).astype(float) for a in (1, 0)]
    exact = mannwhitneyu(X[y == 1, 0], X[y == 0, 0]).statistic / (330 * 290) * 2 - 1
    assert effects_between(*counts)[0] == pytest.approx(exact, abs=1e-12)


# ------------------------------------------------------------------------- against exact distributions


@pytest.mark.parametrize(
    ("values", "error"), [(np.arange(17.0), 0.3), (np.repeat(np.arange(6.0), [4, 4, 3, 3, 2, 1]), 0.5)]
)
def test_tails_are_those_of_all_permutations(values: np.ndarray, error: float) -> None:
    """The approximation is near the mean of P(S > s) and P(S >= s)."""
    distinct, cells = np.unique(values, return_inverse=True)
    both = np.bincount(cells)
    draws = np.array(list(combinations(range(values.size), 6)))
    for polynomial in markers_oracle.rank_polynomials([Fraction(int(c)) for c in both]):
        scores = np.array(polynomial, dtype=float)
        square = float(both @ scores**2 / values.size)
        for sign in (1, -1):
            sums = sign * scores[cells][draws].sum(axis=1)
            for share in (0.02, 0.005, 0.002):
                position = np.argsort(sums)[int((1.0 - share) * len(sums))]
                first = np.bincount(cells[draws[position]], minlength=distinct.size)
                more, as_many = (sums > sums[position] + 1e-9).mean(), (sums > sums[position] - 1e-9).mean()
                tail = markers_oracle.permutation_tail(
                    [Fraction(int(f)) for f in first],
                    [Fraction(int(g)) for g in both - first],
                    [sign * p for p in polynomial],
                    Fraction(square),
                )
                assert tail == pytest.approx((more + as_many) / 2, rel=error)


@pytest.mark.parametrize(
    ("first", "second", "sizes"),
    [(7, 1, (40, 90)), *product([1, 3, 4, 6], [1, 3, 4, 6], [(10, 10)]), (1, 0, (10, 10)), (0, 1, (10, 10))],
)
def test_columns_of_two_values_have_fishers_pvalue(first: int, second: int, sizes: tuple[int, int]) -> None:
    X = np.zeros((sum(sizes), 1))
    X[:first] = X[sizes[0] : sizes[0] + second] = 3.0
    table = [[first, sizes[0] - first], [second, sizes[1] - second]]
    one_sided = min(fisher_exact(table, alternative=side).pvalue for side in ("greater", "less"))
    assert_allclose(contrast(X, _classes(*sizes), 2).pvalue, min(2.0 * one_sided, 1.0), rtol=1e-9)


@pytest.mark.parametrize("both", [[15, 14, 8, 2, 1], [14, 16, 7, 2, 1], [17, 14, 6, 2, 1]])
def test_far_tails_of_counts_keep_their_level_in_samples_of_equal_sizes(both: list[int]) -> None:
    """All ways to divide 40 rows with the counts 0 to 4 into two samples, with their probabilities."""
    n = sum(both) // 2
    ways = np.array(
        [rest for rest in product(*(range(c + 1) for c in both[1:])) if 0 <= n - sum(rest) <= both[0]]
    )
    first = np.column_stack([n - ways.sum(axis=1), ways]).astype(float)
    second = np.array(both) - first
    log_ways = (gammaln(np.array(both) + 1.0) - gammaln(first + 1.0) - gammaln(second + 1.0)).sum(axis=1)
    probability = np.exp(log_ways) / comb(2 * n, n)
    assert probability.sum() == pytest.approx(1.0)
    log_p, _ = log_pvalues(first, second)
    for significance_level in (1e-3, 1e-4, 1e-5, 2e-6):
        assert probability[log_p <= np.log(significance_level)].sum() <= 1.2 * significance_level


def test_a_weighted_column_of_two_values_is_tested_nearly_exactly() -> None:
    y = _classes(40, 90)
    X = np.zeros((130, 1))
    X[:7] = X[40] = 1.0
    weights = 1.0 + 1e-3 * np.cos(np.arange(130))
    results = contrast(X, y, 2, weights=weights).pvalue
    assert_allclose(results, contrast(X, y, 2).pvalue, rtol=0.1)
    assert results[0, 0] == pytest.approx(
        markers_oracle.contrast(X, y, 2, weights=weights)[0][0]["pvalue"], rel=1e-6
    )


def test_separate_samples_have_the_probability_of_their_arrangement() -> None:
    X = np.arange(12.0)[:, np.newaxis]
    # Twice one of 792 arrangements; location alone has half of the level.
    assert_allclose(contrast(X, _classes(5, 7), 2).pvalue, 4.0 / 792.0, rtol=1e-9)


# ------------------------------------------------------------------------------------- invariances


def _mixed(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return _table(seed, (30, 25, 40, 20))


def test_scales_and_increasing_transformations_change_nothing() -> None:
    X, y = _mixed()
    expected = contrast(X, y, 4)
    _agree(contrast(-7.0 + 1e-6 * X, y, 4), expected)
    _agree(contrast(np.exp(X), y, 4), expected)
    _agree(contrast(np.sinh(X) ** 3, y, 4), expected)


def test_a_mirror_image_only_exchanges_high_and_low() -> None:
    X, y = _mixed(1)
    expected, mirrored = contrast(X, y, 4), contrast(-X, y, 4)
    assert_array_equal(mirrored.markers, expected.markers)
    assert_allclose(mirrored.pvalue, expected.pvalue, rtol=1e-7)
    assert_allclose(mirrored.effect, -expected.effect, atol=1e-9)
    y = _classes(1000, 1500)  # more values than cells
    X = np.random.default_rng(2).standard_normal((2500, 2)) + 0.2 * y[:, np.newaxis]
    assert_allclose(contrast(-X, y, 2).pvalue, contrast(X, y, 2).pvalue, rtol=1e-7)


def test_the_order_of_rows_columns_and_classes_changes_nothing() -> None:
    X, y = _mixed(2)
    expected = contrast(X, y, 4)
    rng = np.random.default_rng(0)
    rows, columns, classes = rng.permutation(len(X)), rng.permutation(X.shape[1]), np.array([2, 0, 3, 1])
    results = contrast(X[rows][:, columns], classes[y[rows]], 4)
    for name in (*NUMBERS, "statistic"):
        given = getattr(expected, name)[:, columns]
        assert_allclose(getattr(results, name)[classes], given, rtol=1e-7, atol=1e-12, err_msg=name)
    for name in NAMES:
        assert_array_equal(getattr(results, name)[classes], getattr(expected, name)[:, columns], err_msg=name)


def test_blocks_of_variables_do_not_matter() -> None:
    X, y = _mixed(3)
    many = np.tile(X, 60)  # more than fit into one block of variables
    results, alone = contrast(many, y, 4), contrast(X, y, 4)
    assert_allclose(results.statistic, np.tile(alone.statistic, 60), rtol=1e-7, atol=1e-12)
    assert_array_equal(results.background, np.tile(alone.background, 60))


# --------------------------------------------------------------------------------- weights, missing


def test_pairs_of_classes_that_cannot_differ_are_not_compared(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    y = _classes(*[3] * 60)
    X = rng.standard_normal((y.size, 4)) + (y[:, np.newaxis] == np.arange(4)) * 50.0
    n_tests = []

    def count_tests(first, second):
        n_tests.append(len(first))
        return log_pvalues(first, second)

    for module in (background_module, contrast_module):
        monkeypatch.setattr(module, "log_pvalues", count_tests)
    few = contrast(X, y, 60)
    assert sum(n_tests) == 60 * 4
    monkeypatch.setattr(background_module, "_may_differ", lambda table, _: np.ones(len(table.counts), bool))
    _agree(few, contrast(X, y, 60))
    assert sum(n_tests) >= 60 * 59 // 2 * 4
    assert few.markers[range(4), range(4)].all()


def test_empty_cells_change_no_pvalue() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 3, (2, 40, 60)) * (rng.random((2, 40, 60)) < 0.1).astype(float)
    packed = occupied_cells(first, second)
    assert packed[0].shape[1] < 30
    for packed_values, all_values in zip(log_pvalues(*packed), log_pvalues(first, second), strict=True):
        assert_allclose(packed_values, all_values, rtol=1e-9, atol=1e-12)


def test_the_scale_of_weights_does_not_matter() -> None:
    X, y = _mixed(4)
    weights = np.random.default_rng(0).exponential(size=y.size)
    expected = contrast(X, y, 4, weights=weights)
    _agree(contrast(X, y, 4, weights=1e3 * weights), expected)
    _agree(contrast(X, y, 4, weights=1e-200 * weights), expected)
    _agree(contrast(X, y, 4, weights=np.full(y.size, 0.1)), contrast(X, y, 4))


@pytest.mark.parametrize("seed", [3, 13, 40])
def test_weights_of_very_different_sizes_are_compared_in_their_class(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    X[:, 1] = np.round(X[:, 1])
    X[rng.random(X.shape) < 0.3] = np.nan
    codes, tiny = rng.integers(0, 3, 60), rng.random(60) < 0.3
    X[codes == 0] += 2.0
    factors = np.array([1e-300, 1.0, 1e300])[codes]
    results = contrast(X, codes, 3, weights=factors)
    assert_array_equal(results.pvalue, contrast(X, codes, 3).pvalue)
    assert results.markers.any()
    for little in (1e-200, 1e-150, 1e-20):
        results = contrast(X, codes, 3, weights=np.where(tiny, little, 1.0))
        assert_array_equal(results.pvalue, contrast(X[~tiny], codes[~tiny], 3).pvalue)


# ------------------------------------------------------------------------------------- silent cases


def test_nothing_is_said_of_constant_columns_and_tiny_classes() -> None:
    rng = np.random.default_rng(0)
    y = _classes(50, 2, 50, 1, 0)
    X = np.column_stack([np.full(y.size, 3.0), rng.standard_normal(y.size) + 3.0 * (y == 2), y == 1])
    X = np.column_stack([X, np.full(y.size, np.nan)])
    results = contrast(X, y, 5)
    assert results.markers.tolist() == [[False, a in (0, 2), False, False] for a in range(5)]
    silent = np.ones((5, 4), dtype=bool)
    silent[[0, 2], 1] = False
    assert (results.pvalue[silent] == 1.0).all()
    assert (results.effect[silent] == 0.0).all()
    assert_array_equal(results.comparable, ~silent)
    assert not results.background[[1, 3, 4]].any()
    assert_array_equal(contrast(np.ones((20, 2)), _classes(10, 10), 2).pvalue, np.ones((2, 2)))
    single = contrast(np.arange(20.0)[:, np.newaxis], np.zeros(20, dtype=int), 1)
    assert not single.markers.any()
    assert not single.background.any()
    assert single.pvalue.tolist() == [[1.0]]


def test_constant_columns_do_not_count_in_the_adjustment() -> None:
    X, y = _mixed(8)
    padded = np.hstack([X, np.ones((len(X), 50))])
    assert_allclose(contrast(padded, y, 4).pvalue[:, : X.shape[1]], contrast(X, y, 4).pvalue)


def test_the_largest_min_effect_asks_for_classes_that_do_not_overlap() -> None:
    X, y = np.arange(60.0)[:, np.newaxis], _classes(30, 30)
    assert MarkerSelector(min_effect=1.0).fit(X, y).markers_.all()
    with pytest.warns(UserWarning, match="have no markers"):
        assert not MarkerSelector(min_effect=1.0).fit(X, np.roll(y, 1)).markers_.any()


# ------------------------------------------------------------------------------------------ background


def _normals(seed: int, means: list[float], widths: list[float], n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = _classes(*[n] * len(means))
    return rng.normal(np.repeat(means, n), np.repeat(widths, n))[:, np.newaxis], y


@pytest.mark.parametrize(
    ("means", "widths", "n", "background", "marked"),
    [
        ([0.0, 2.0], [1.0, 1.0], 50, [0, 1], [0, 1]),
        ([0.0, 2.0, 0.0, 0.0, -3.0], [1.0] * 5, 60, [0, 2, 3], [1, 4]),
        (
            [0.0] * 7,
            [5.0, 5.0, 5.0, 0.1, 0.3, 0.8, 2.0],
            80,
            [0, 1, 2],
            [3, 4, 5, 6],
        ),
        ([0.0] * 4, [1.0, 1.0, 1.0, 3.0], 100, [0, 1, 2], [3]),
        # Without a background, every class that differs from half of the others is described.
        ([-2.0, 0.0, 2.0], [0.8] * 3, 60, [], [0, 1, 2]),
        ([0.0, 0.0, 2.0, 2.0], [1.0] * 4, 60, [], [0, 1, 2, 3]),
    ],
    ids=["one other class", "a majority", "a wide minority", "one wide class", "all apart", "two and two"],
)
def test_backgrounds_and_markers(means, widths, n, background, marked) -> None:
    X, y = _normals(4, means, widths, n)
    results = contrast(X, y, len(means))
    assert np.flatnonzero(results.background[:, 0]).tolist() == background
    assert np.flatnonzero(results.markers[:, 0]).tolist() == marked


def test_three_classes_apart_of_which_the_last_two_differ_only_just() -> None:
    X, y = _normals(0, [0.0, 3.0, 3.65], [1.0] * 3, 100)
    results = contrast(np.hstack([X, np.random.default_rng(1).normal(size=(300, 99))]), y, 3)
    assert not results.background[:, 0].any()
    assert results.markers[:, 0].all()


def test_a_class_with_two_modes_is_marked() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((400, 1))
    X[:100, 0] = rng.normal(rng.choice([0.25, 0.75], 100), 0.03)
    results = contrast(X, _classes(100, 100, 100, 100), 4)
    assert results.markers[:, 0].tolist() == [True, False, False, False]


def test_negligible_differences_are_left_out_however_significant() -> None:
    X, y = _normals(6, [0.0, 0.1, 0.5], [1.0] * 3, 20_000)
    results = contrast(X, y, 3)
    assert results.pvalue[1, 0] < 1e-10
    assert results.background[:, 0].tolist() == [True, True, False]
    assert results.markers[:, 0].tolist() == [False, False, True]
    assert contrast(X, y, 3, min_effect=0.0).markers.all()


@pytest.mark.parametrize("marked", [0, 1, 2])
def test_a_rare_flag_that_no_other_class_has_is_not_negligible(marked: int) -> None:
    y = _classes(400, 400, 400)
    X = np.zeros((1200, 1))
    X[400 * marked : 400 * marked + 20] = 1.0  # 5 %
    results = contrast(X, y, 3)
    assert contrast(X, y, 3, min_effect=0.184).markers[marked, 0]
    assert not contrast(X, y, 3, min_effect=0.186).markers.any()
    assert np.flatnonzero(results.markers).tolist() == [marked]
    assert np.flatnonzero(~results.background).tolist() == [marked]


def test_to_lack_a_rare_flag_marks_nothing() -> None:
    y = _classes(400, 400, 400)
    X = np.zeros((1200, 1))
    X[:20] = X[400:420] = 1.0
    results = contrast(X, y, 3)
    assert results.pvalue[2, 0] < 0.01
    assert not results.markers.any()
    assert contrast(X, y, 3, min_effect=0.049).markers[2, 0]
    assert not contrast(X, y, 3, min_effect=0.051).markers[2, 0]


# ---------------------------------------------------------------------------- significance and power


@pytest.mark.parametrize("kind", COLUMNS)
def test_classes_that_do_not_differ_get_no_variables(kind: str) -> None:
    results = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        y = _classes(*rng.integers(15, 40, 5))
        X = COLUMNS[kind](rng, 8 * y.size).reshape(-1, 8)
        results.append(contrast(X, y, 5).markers.any(axis=1))
    assert np.mean(results) <= 0.015


@pytest.mark.parametrize(
    ("n_rows", "n_others", "draw"),
    [
        *product([3, 6], [200], [lambda rng, n: np.arange(n)]),
        *product([3, 10], [500], [lambda rng, n: rng.poisson(1.0, n)]),
    ],
    ids=["3 rows", "6 rows", "3 counts", "10 counts"],
)
def test_a_few_rows_of_many_are_rarely_believed_to_differ(n_rows, n_others, draw) -> None:
    rng = np.random.default_rng(0)
    both = np.unique(draw(rng, n_others + n_rows), return_counts=True)[1]
    first = rng.multivariate_hypergeometric(both, n_rows, size=10_000).astype(float)
    log_p, _ = log_pvalues(first, both - first)
    assert np.mean(np.exp(log_p) <= 0.001) <= 0.0012


@pytest.mark.parametrize(("n1", "n2"), [(20, 20), (30, 60), (40, 400), (400, 40), (250, 2500)])
def test_few_rows_of_a_sample_are_those_of_the_plain_loop(n1: int, n2: int) -> None:
    rng = np.random.default_rng(n1)
    values = np.rint(2.0 * np.concatenate([rng.normal(0.2, 0.7, n1), rng.normal(size=n2)])).astype(int)
    first, second = (np.bincount(part + 9, minlength=19) for part in (values[:n1], values[n1:]))
    expected, _ = markers_oracle.two_sample_pvalue(
        *([Fraction(int(c)) for c in counts] for counts in (first, second))
    )
    results, _ = log_pvalues(first[np.newaxis].astype(float), second[np.newaxis].astype(float))
    assert np.exp(results[0]) == pytest.approx(expected, rel=1e-6)
    assert expected < 0.5


@pytest.mark.parametrize(("shift", "width", "least"), [(1.0, 1.0, 0.95), (0.0, 0.5, 0.9)])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_shift_of_one_deviation_and_a_halved_spread_are_found(
    shift: float, width: float, least: float, n_classes: int
) -> None:
    results = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = _classes(*[100] * n_classes)
        X = rng.standard_normal((y.size, 20))
        X[y == 0, 0] = shift + width * X[y == 0, 0]
        results.append(contrast(X, y, n_classes).markers[0, 0])
    assert np.mean(results) >= least


# -------------------------------------------------------------------------------------------- groups


def rows_of_groups(seed, classes=((10, 10, 0.6), (10, 10, 0.6)), flag_rate=None, d=10):
    """Rows of one distribution: a class has so many groups of a size, with a correlation of their rows."""
    rng = np.random.default_rng(seed)
    X, codes, groups = [], [], []
    for a, (n_groups, size, correlation) in enumerate(classes):
        group = np.repeat(np.arange(n_groups), size)
        if flag_rate is None:
            shared, own = rng.normal(size=(n_groups, d))[group], rng.normal(size=(group.size, d))
            X.append(np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * own)
        else:
            scale = 1.0 / correlation - 1.0
            rates = rng.beta(scale * flag_rate, scale * (1.0 - flag_rate), (n_groups, d))
            X.append((rng.random((group.size, d)) < rates[group]).astype(float))
        codes.append(np.full(group.size, a))
        groups.append(group + 1000 * a)
    return np.vstack(X), np.concatenate(codes), np.concatenate(groups)


def test_effects_of_groups_are_those_of_the_plain_loop():
    rng = np.random.default_rng(0)
    X, codes, _ = rows_of_groups(0, classes=[(7, 10, 0.6)] * 3, d=5)
    groups = rng.integers(0, 25, len(X))  # of unequal sizes, and across classes
    X[:, 1] = rng.integers(0, 3, len(X))
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    X[:, 2] = np.nan
    X[:, 3] = groups  # rows of a group agree
    weights = rng.uniform(0.1, 2.0, len(X))
    worth, clusters = effects_of_groups(X, codes, 4, weights, groups)
    effects = np.stack([worth, clusters.variance, clusters.error], axis=2)
    expected = np.array([markers_oracle.effects_of_groups(x, codes, 4, weights, groups) for x in X.T])
    assert_allclose(effects, expected, rtol=1e-9)
    assert_array_equal(worth[2], np.ones(4))
    assert (worth[3, :3] < 0.5).all()


def test_least_pvalues_are_those_of_the_plain_count():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 4, (2, 30, 7)) * rng.integers(0, 2, (2, 30, 7))
    expected = [
        markers_oracle.least_pvalue(*({g: n for g, n in enumerate(counts.tolist()) if n} for counts in pair))
        for pair in zip(first, second, strict=True)
    ]
    assert_allclose(np.exp(least_log_pvalues(first, second)), expected, rtol=1e-12)
    assert_allclose(markers_oracle.least_pvalue({0: 50, 2: 50}, {1: 50, 3: 50}), 1 / 3)
    assert_allclose(markers_oracle.least_pvalue({0: 2}, {0: 3}), 1 / 5)


@pytest.mark.parametrize("n_groups", [4, 6])
@pytest.mark.parametrize("kind", ["flags", "proportions", "numbers", "spread"])
def test_no_variable_is_found_that_few_groups_cannot_show(n_groups, kind):
    codes, groups = np.arange(n_groups).repeat(50) % 2, np.arange(n_groups).repeat(50)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        own, rows = rng.random((n_groups, 4))[groups], rng.normal(size=(groups.size, 4))
        X = {
            "flags": np.round(own),
            "proportions": (rng.random(own.shape) < own).astype(float),
            "numbers": 10.0 * own + rows,
            "spread": (0.1 + 10.0 * own) * rows,
        }[kind]
        X[:, 0] = X[:, 0] if kind != "flags" else codes
        results = contrast(X, codes, 2, groups=groups)
        assert results.pvalue.min() > 0.1
        assert not results.markers.any()


def test_groups_across_classes_of_one_row_and_of_one_class():
    X, codes, _ = rows_of_groups(0)
    X[:, 0] += 5.0 * codes
    plain = contrast(X, codes, 2)
    assert plain.markers[:, 0].all()
    assert_array_equal(contrast(X, codes, 2, groups=np.arange(len(X))).pvalue[:, 1:], plain.pvalue[:, 1:])
    assert not contrast(X, codes, 2, groups=codes).markers.any()  # one group for each class shows nothing
    assert contrast(X, codes, 2, groups=np.arange(len(X)) % 2).markers[:, 0].all()


def groups_of_shapes(seed, shape):
    """Groups that differ in shape alone, each in one class."""
    rng, groups = np.random.default_rng(seed), np.repeat(np.arange(24), 30)
    normal, exponential = rng.normal(size=(720, 5)), rng.exponential(size=(720, 5)) - 1.0
    modes = rng.choice([-2.0, 2.0], (720, 5)) + 0.3 * rng.normal(size=(720, 5))
    one, other = (modes, 2.05 * normal) if shape == "two modes" else (exponential, -exponential)
    return np.where((rng.random((24, 5)) < 0.5)[groups], one, other), groups % 2, groups


@pytest.mark.parametrize(
    "draw",
    [
        rows_of_groups,
        partial(groups_of_shapes, shape="two modes"),
        partial(groups_of_shapes, shape="skewness"),
        partial(rows_of_groups, classes=[(6, 50, 0.5), (500, 2, 0.0)]),
        # Three groups show too little of their own correlation, and so do groups that all lack a value.
        partial(rows_of_groups, classes=[(3, 100, 0.5), (300, 1, 0.5)]),
        partial(rows_of_groups, classes=[(20, 30, 0.5), (400, 3, 0.1)], flag_rate=0.05),
    ],
    ids=["alike", "two modes", "skewness", "many pairs", "single rows", "flags"],
)
def test_groups_that_differ_whatever_their_class_mark_no_class(draw):
    with_groups = without = 0
    for seed in range(20):
        X, codes, groups = draw(seed)
        with_groups += contrast(X, codes, 2, groups=groups).markers.any()
        without += contrast(X, codes, 2).markers.any()
    assert with_groups <= 1
    assert without >= 10


def test_few_groups_have_the_tails_of_students_distribution():
    codes, groups = np.repeat([0, 1], [300, 900]), np.repeat(np.arange(306), [50] * 6 + [3] * 300)
    X = np.random.default_rng(0).normal(size=(1200, 1))
    _, clusters = effects_of_groups(X, codes, 2, np.ones(1200), groups)
    apart = [clusters.take(np.array([0]), np.array([a])) for a in (0, 1)]
    terms = [(1 / 6, (1 - 1 / 50) ** 2 / 5), (1 / 300, (1 - 1 / 3) ** 2 / 299)]
    degrees = 1.5 * sum(v for v, _ in terms) ** 2 / sum(v**2 * gamma for v, gamma in terms)
    for log_p in (np.log(0.5), -8.0, -40.0):
        quantile = norm.isf(np.exp(log_p) / 2.0)
        results = pvalues_with_groups(np.array([log_p]), *apart)
        assert_allclose(np.exp(results), 2.0 * student.sf(quantile, degrees), rtol=1e-6)
    # Where each group has rows of both samples alike, differences between groups cancel out.
    assert_allclose(pvalues_with_groups(np.array([-8.0]), apart[0], apart[0]), -8.0)


def test_groups_leave_what_is_there():
    X, codes, groups = rows_of_groups(0, classes=[(30, 10, 0.6)] * 2)
    X[:, 4] += 3.0 * codes
    results = contrast(X, codes, 2, groups=groups)
    assert_array_equal(results.markers, np.arange(10) == np.full((2, 1), 4))
    assert_array_equal(np.sign(results.effect[:, 4]), [-1.0, 1.0])


def test_estimators_hand_on_their_groups():
    X, codes, groups = rows_of_groups(3)
    X = np.column_stack([X, codes[:, np.newaxis] + 0.1 * X[:, :1]])
    selector = MarkerSelector().fit(X, codes, groups=groups)
    expected = contrast(X, codes, 2, groups=groups)
    assert_array_equal(selector.contrast_.pvalue, expected.pvalue)
    fitted = RodeoClassifier(bandwidth="class").fit(X, codes, groups=groups)
    assert_array_equal(fitted.model_.contrast.pvalue, expected.pvalue)
    assert fitted.selection_frequency(3, random_state=0)[:, :-1].max() < 0.5
