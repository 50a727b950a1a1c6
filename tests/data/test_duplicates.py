"""Tests of duplicates: distinguished from rows that agree by chance, merged, and left out together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from corral import CorralClassifier, DuplicatesWarning, RodeoClassifier, RodeoDensity
from corral.data.duplicates import duplicates_and_groups, filled, number_duplicates
from corral.datasets import make_shifted_groups
from data import data_oracle
from support.tables import labelled

QUICK = {"random_state": 0}
quiet = pytest.mark.filterwarnings("ignore::corral.DuplicatesWarning", "ignore::corral.EmptySelectionWarning")


def tables():
    """Rows of which hardly any agree, and rows of which many agree by chance, from a fixed seed."""
    rng = np.random.default_rng(0)
    n_categories = [np.eye(k)[rng.integers(0, k, 600)] for k in (5, 4, 3)]
    flag, code = rng.integers(0, 2, 600), rng.integers(1, 9, 200)
    differing = {
        "continuous": rng.normal(size=(120, 5)),
        "whole numbers": rng.integers(0, 30, (120, 5)).astype(float),
        "a number and a flag": np.column_stack([rng.normal(size=120), rng.integers(0, 2, 120)]),
        "one number": rng.normal(size=(120, 1)),
    }
    agreeing = {
        "one flag": rng.integers(0, 2, (600, 1)).astype(float),
        "two flags": rng.integers(0, 2, (600, 2)).astype(float),
        "three flags": rng.integers(0, 2, (600, 3)).astype(float),
        "ten flags": rng.integers(0, 2, (600, 10)).astype(float),
        "rare flags": (rng.random((600, 3)) < 0.05).astype(float),
        "categories": n_categories[0],
        "three variables of categories": np.hstack(n_categories),
        "a flag and its opposite": np.column_stack([flag, 1.0 - flag]),
        "ages": rng.integers(0, 100, (1000, 1)).astype(float),
        "ages and flags": np.column_stack([rng.integers(0, 100, 600), rng.integers(0, 2, (600, 3))]),
        "symptoms": rng.integers(0, 4, (366, 6)).astype(float),
        "a code and its logarithm": np.column_stack([np.sqrt(code), np.log(code)]),
        "two codes": np.array([code, np.array([0, 5, 2, 7, 1, 4, 3, 8, 6])[code]]).T.astype(float),
        "very many rows": rng.integers(0, 60, (200_000, 3)).astype(float),  # chance by 20,000 of 130,000
    }
    return differing, agreeing


DIFFERING, AGREEING = tables()
REPEATED = {
    "all twice": lambda X: np.vstack([X, X]),
    "a tenth twice": lambda X: np.vstack([X, X[: len(X) // 10]]),
    "one twice": lambda X: np.vstack([X, X[:1]]),
    "all fifty times": lambda X: np.tile(X, (50, 1)),
}


@pytest.mark.parametrize("kind", DIFFERING)
@pytest.mark.parametrize("repeat", REPEATED)
def test_rows_that_a_table_repeats_are_duplicates(kind, repeat):
    X = DIFFERING[kind]
    assert number_duplicates(X) is None
    repeated = REPEATED[repeat](X)
    if (kind, repeat) == (
        "a number and a flag",
        "one twice",
    ):  # rows with equal numbers often have equal flags
        assert number_duplicates(repeated) is None
        return
    assert_array_equal(number_duplicates(repeated), np.arange(len(repeated)) % len(X))


@pytest.mark.parametrize("kind", AGREEING)
def test_rows_that_agree_by_chance_are_separate(kind):
    X = AGREEING[kind]
    assert len(np.unique(X, axis=0)) < len(X)  # or there would be nothing to tell apart
    assert number_duplicates(X) is None


@pytest.mark.parametrize("correlation", [0.0, 0.7])
@pytest.mark.parametrize("steps", [[30, 30], [0.5, 10], [3, 3, 3], [10, 10, 10], [1] * 8])
@pytest.mark.parametrize("n", [20, 99])
def test_two_noise_tables_in_a_thousand_have_duplicates_by_chance(n, steps, correlation):
    """Chance makes about one pair of equal rows in many of these tables."""
    rng = np.random.default_rng(0)
    shared, own = correlation, np.sqrt(1.0 - correlation**2)
    X = shared * rng.normal(size=(200, n, 1)) + own * rng.normal(size=(200, n, len(steps)))
    assert sum(number_duplicates(table) is not None for table in np.round(X * steps)) <= 1


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.sampled_from(["number", "flag", "level", "constant", "sum"]), min_size=1, max_size=4),
    st.integers(0, 12),
    st.integers(1, 3),
)
def test_the_rule_is_that_of_the_plain_loops(seed, kinds, n_repeated, n_times):
    rng = np.random.default_rng(seed)
    columns = []
    for kind in kinds:
        columns.append(
            {
                "number": rng.normal(size=24),
                "flag": rng.integers(0, 2, 24).astype(float),
                "level": rng.integers(0, 5, 24).astype(float),
                "constant": np.ones(24),
                "sum": np.sum(columns, axis=0) if columns else np.zeros(24),
            }[kind]
        )
    X = np.column_stack(columns)
    X = np.vstack([X, X[rng.integers(0, 24, n_repeated)]])
    X, y = np.tile(X, (n_times, 1)), np.tile(rng.integers(0, 2, len(X)), n_times)
    numbers, expected = number_duplicates(X, y), data_oracle.number_duplicates(X, y)
    assert (None if numbers is None else numbers.tolist()) == expected


@pytest.mark.parametrize("n_times", [2, 3])
@pytest.mark.parametrize("extra", [0, 5])
@pytest.mark.parametrize("kind", ["ten values", "flags"])
def test_a_table_appended_to_itself_is_seen_where_rows_agree_by_chance(kind, n_times, extra):
    rng = np.random.default_rng(0)
    shape, n_values = {"ten values": ((200, 3), 10), "flags": ((100, 8), 2)}[kind]
    X = rng.integers(0, n_values, shape).astype(float)
    y = np.arange(len(X)) % 2
    assert len(np.unique(np.column_stack([X, y]), axis=0)) < len(X)
    assert number_duplicates(X, y) is None
    stacked = np.vstack([X] * n_times + [X[:extra]])
    labels = np.tile(y, n_times + 1)[: len(stacked)]
    numbers = number_duplicates(stacked, labels)
    assert numbers.tolist() == data_oracle.number_duplicates(stacked, labels)
    for n in range(n_times):
        assert_array_equal(numbers[n * len(X) : (n + 1) * len(X)], np.arange(len(X)))
    shuffled = rng.permutation(len(stacked))
    counts = np.unique(number_duplicates(stacked[shuffled], labels[shuffled]), return_counts=True)[1]
    assert len(counts) == len(X)
    assert counts.min() == n_times


@pytest.mark.parametrize(("n_distinct", "n_times"), [(4, 4), (12, 10), (20, 4), (21, 10)])
def test_few_rows_of_measurements_repeated_often_are_duplicates(n_distinct, n_times):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(n_distinct, 3)), np.arange(n_distinct) % 2])
    rows = np.repeat(np.arange(n_distinct), rng.integers(n_times, n_times + 5, n_distinct))
    assert_array_equal(number_duplicates(X[rows]), rows)
    assert data_oracle.number_duplicates(X[rows]) == rows.tolist()


@quiet
def test_noise_of_few_rows_does_not_score_above_chance():
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.normal(size=(20, 5)), 10, axis=0), np.repeat(rng.permutation(np.arange(20) % 2), 10)
    model = CorralClassifier(**QUICK).fit(X, y)
    assert model.n_duplicates_ == 180
    assert model.cv_accuracy_ < 0.8  # of 20 rows; it was 1.0


def test_rows_given_so_often_by_chance_are_separate():
    """Equal rows of a design that is repeated have labels of their own."""
    rng = np.random.default_rng(0)
    X = np.tile(np.stack(np.meshgrid(*[[0.0, 1.0]] * 5), axis=-1).reshape(-1, 5), (4, 1))
    assert number_duplicates(X, rng.integers(0, 2, len(X))) is None
    assert number_duplicates(X) is not None


def test_duplicates_become_one_row_with_their_weight():
    X = DIFFERING["continuous"][[0, 1, 0, 2, 1, 3, 1, *range(4, 40)]]
    y = np.array(["a"] * 3 + ["b"] * 4 + ["c"] * 36)
    weights = np.array([1.0, 2.0, 3.0, 1.0, 0.5, 4.0, 1.5] + [1.0] * 36)
    data = labelled(X, y, weights)
    assert_array_equal(data.numbers, [0, 1, 3, 4, 5, *range(7, 43)])
    assert_array_equal(data.weights[:5], [1.0, 0.5, 0.25, 0.5, 1.0])  # over the largest
    assert_array_equal(data.counts, [6.0, 7.0, 36.0])
    assert data.group_ids[1] == data.group_ids[3]  # the same values with another label
    assert np.unique(data.group_ids).size == 40
    assert data.n_duplicates == 3


@quiet
@pytest.mark.parametrize("bandwidth", ["local", "class"])
def test_a_common_weight_and_duplicates_of_all_rows_change_no_bit(bandwidth):
    X, y = make_shifted_groups(20, random_state=0)
    plain = RodeoClassifier(bandwidth=bandwidth).fit(X, y)
    twice = RodeoClassifier(bandwidth=bandwidth).fit(np.vstack([X, X]), np.tile(y, 2))
    others = [RodeoClassifier(bandwidth=bandwidth).fit(X, y, np.full(len(y), w)) for w in (1.01, 2.0)]
    for other in (twice, *others):
        assert_array_equal(other.bandwidths_, plain.bandwidths_)
        assert_array_equal(other.relevant_, plain.relevant_)
        assert_array_equal(other.log_density(X[::7] + 0.01), plain.log_density(X[::7] + 0.01))
    assert (plain.n_duplicates_, twice.n_duplicates_) == (0, len(y))


@quiet
@pytest.mark.parametrize("repeat", ["all twice", "a tenth twice", "ten values, all twice", "weights"])
def test_noise_does_not_score_above_chance(repeat):
    scores, n = [], 200
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y, weights = rng.normal(size=(n, 5)), rng.integers(0, 2, n), None
        if repeat.startswith("ten values"):
            X = rng.integers(0, 10, (n, 3)).astype(float)
        if repeat == "weights":
            weights = rng.uniform(0.5, 1.5, n)
        else:
            again = slice(n // 10 if repeat == "a tenth twice" else n)
            X, y = np.vstack([X, X[again]]), np.append(y, y[again])
        model = CorralClassifier(**QUICK).fit(X, y, weights)
        assert model.n_duplicates_ == len(y) - n
        scores.append(model.cv_accuracy_)
    # Rows share the members that predict them, so the score varies by half as much again as a binomial one.
    error = 1.5 * np.sqrt(0.25 / n)
    assert max(scores) < 0.5 + 4 * error
    assert np.mean(scores) < 0.5 + 3 * error / np.sqrt(6)  # 0.8 and more if duplicates predict each other


@quiet
def test_a_table_of_flags_keeps_its_accuracy():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1500)
    X = (rng.random((1500, 3)) < np.array([[0.2, 0.5, 0.7], [0.8, 0.4, 0.3]])[y]).astype(float)
    model = CorralClassifier(**QUICK).fit(X[:1000], y[:1000])
    cells = X @ [4, 2, 1]
    best = [np.bincount(y[:1000][cells[:1000] == c], minlength=2).argmax() for c in range(8)]
    expected = np.mean(np.array(best)[cells[1000:].astype(int)] == y[1000:])
    assert model.n_duplicates_ == 0
    assert model.score(X[1000:], y[1000:]) > expected - 0.02
    assert abs(model.cv_accuracy_ - expected) < 0.04


def test_a_fit_warns_of_many_duplicates_and_not_of_few():
    X, y = make_shifted_groups(40, random_state=0)
    with pytest.warns(
        DuplicatesWarning, match=r"^4 of 204 rows are duplicates of other rows; a row and its duplicates"
    ):
        RodeoClassifier().fit(np.vstack([X, X[:4]]), np.append(y, y[:4]))
    assert RodeoClassifier().fit(np.vstack([X, X[:1]]), np.append(y, y[:1])).n_duplicates_ == 1
    with pytest.warns(DuplicatesWarning, match="200 of 400 rows are duplicates"):
        density = RodeoDensity().fit(np.vstack([X, X]))
    assert_array_equal(density.score_samples(X[:5]), RodeoDensity().fit(X).score_samples(X[:5]))


def test_a_missing_value_is_a_value_but_an_empty_row_is_no_duplicate():
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[3, 1] = X[8] = np.nan
    assert number_duplicates(X) is None
    twice = np.vstack([X, X, X[8:9]])
    numbers = number_duplicates(twice)
    empty = np.isnan(twice).all(axis=1)
    assert empty.sum() == 3
    assert np.unique(numbers[empty]).size == 3
    first, second = numbers[:30][~empty[:30]], numbers[30:60][~empty[30:60]]
    assert_array_equal(first, second)
    assert np.unique(first).size == 29
    assert not set(first) & set(numbers[empty])
    mostly_missing = np.where(np.arange(40) % 3 == 0, np.nan, np.arange(40.0))[:, np.newaxis]
    assert number_duplicates(mostly_missing) is None


def test_zeros_of_both_signs_are_one_value():
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[::2, 0] = 0.0
    again = X.copy()
    again[::2, 0] = -0.0
    assert_array_equal(number_duplicates(np.vstack([X, again])), np.tile(np.arange(30), 2))


def test_missing_values_beside_the_largest_numbers_get_a_number_that_no_row_has():
    largest = np.finfo(np.float64).max
    below = np.nextafter(largest, 0.0)
    X = np.array([[largest, -1.7e308], [below, 1.7e308], [np.nan, np.nan], [0.0, 1.0]])
    assert_array_equal(filled(X)[2], [np.nextafter(below, 0.0), np.nextafter(1.7e308, 0.0)])
    assert_array_equal(filled(X)[[0, 1, 3]], X[[0, 1, 3]])
    numbers = number_duplicates(np.tile(X, (3, 1)))
    assert_array_equal(numbers[[0, 1, 3]], numbers[[4, 5, 7]])


# --------------------------------------------------------------------------------- duplicates in groups


@pytest.mark.parametrize("seed", range(6))
def test_groups_are_joined_as_by_plain_loops(seed):
    rng = np.random.default_rng(seed)
    duplicates, groups = rng.integers(0, 60, 120), rng.choice(30, 120, p=rng.dirichlet(np.full(30, 0.5)))
    numbers, group_ids = duplicates_and_groups(duplicates, groups, 120)
    joined = data_oracle.joined_groups(duplicates.tolist(), groups.tolist())
    expected = np.array([joined[group] for group in groups.tolist()])
    assert 1 < np.unique(expected).size < np.unique(groups).size
    assert_array_equal(group_ids[:, None] == group_ids, expected[:, None] == expected)
    are_duplicates = (duplicates[:, None] == duplicates) & (expected[:, None] == expected)
    assert_array_equal(numbers[:, None] == numbers, are_duplicates)
    again, same = duplicates_and_groups(numbers, groups, 120)  # as when a file is read
    assert_array_equal(again, numbers)
    assert_array_equal(same, group_ids)


def patients(shift, seed=0, n_rows=8):
    """Twenty patients of two classes, each with a blank; and rows of new patients without one."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(20), n_rows)
    y = groups % 2
    X = rng.normal(size=(groups.size, 4))
    X[:, 0] += shift * y
    X[::n_rows] = 0.0
    new = rng.normal(size=(500, 4))
    new[:, 0] += shift * (np.arange(500) % 2)
    return X, y, groups, new


def test_a_blank_that_all_groups_share_leaves_them_apart():
    X, y, groups, new = patients(0.0)
    noise = CorralClassifier(**QUICK).fit(X, y, groups=groups)
    assert noise.n_duplicates_ == 0
    assert noise.predict_proba(new).max(axis=1).mean() < 0.65  # linked by the blank, it was 0.96
    assert noise.is_novel(new[:50] + 1000).all()
    X, y, groups, new = patients(3.0)
    model = CorralClassifier(**QUICK).fit(X, y, groups=groups)
    assert abs(model.cv_accuracy_ - model.score(new, np.arange(500) % 2)) < 0.05
    assert_array_equal(model.markers_, [[True, False, False, False]] * 2)


@quiet
@pytest.mark.parametrize("n_times", [2, 5])
def test_noise_whose_groups_are_repeated_under_other_names_does_not_score_above_chance(n_times):
    X, y, groups, _ = patients(0.0, n_rows=4)
    named = np.concatenate([groups + 20 * k for k in range(n_times)])
    model = CorralClassifier(**QUICK).fit(np.tile(X, (n_times, 1)), np.tile(y, n_times), groups=named)
    assert model.n_duplicates_ == (n_times - 1) * 80
    assert_array_equal(np.unique(model.model_.data.group_ids), np.arange(20))
    assert model.cv_accuracy_ < 0.65


def test_a_row_that_very_many_groups_share_makes_no_pair_of_all():
    groups = np.repeat(np.arange(100_000), 2)
    duplicates = np.where(np.arange(groups.size) % 2, 0, np.arange(groups.size) + 1)
    _, group_ids = duplicates_and_groups(duplicates, groups, groups.size)  # whose pairs would fill 80 GB
    assert_array_equal(group_ids, groups)


@quiet
@pytest.mark.parametrize("estimator", [RodeoClassifier(), CorralClassifier(**QUICK)])
def test_groups_that_duplicates_make_one_are_refused(estimator):
    X = np.tile(np.random.default_rng(0).normal(size=(20, 3)), (3, 1))
    y, groups = np.arange(60) % 2, np.repeat([0, 1, 2], 20)
    with pytest.raises(ValueError, match=r"at least two groups, got one \(two groups are joined if"):
        estimator.fit(X, y, groups=groups)
    X[40:] += 10.0
    with pytest.raises(ValueError, match=r"each class is in a single group \(two groups are joined if"):
        estimator.fit(X, np.repeat([0, 0, 1], 20), groups=groups)
    estimator.fit(X, y, groups=groups)
