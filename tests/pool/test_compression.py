"""Classes of more than `max_rows` rows: centroids against plain loops, and pools near pools of all rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss

import corral.data.subsample
import corral.pool.compression
from corral import CorralClassifier, load_model, save_model, write_report
from corral.conformal.typicality import Distribution
from corral.data.scaling import learn_scale
from corral.evidence.support import Support, rests_on_few
from corral.parallel import Computation
from corral.pool.categories import EXTRA_ROWS
from corral.pool.compression import Cells, Centroids, carried_over
from corral.pool.densities import Mixture
from corral.pool.transforms import ClassTransform
from pool import pool_oracle
from support.forgery import forge_value, put_together, take_apart
from support.tables import NO_CATEGORIES

IMPORTANCE = np.array([1.0, 0.0, 4.0])


def make_rows(n, seed=0):
    """Rows, weights, and two scales for them."""
    random = np.random.RandomState(seed)
    X = random.normal(size=(n, 3)) * [1.0, 2.0, 0.5] + [0.0, 10.0, 0.0]
    scales = {kind: learn_scale(X, None, kind) for kind in ("score", "standard")}
    return X, random.uniform(0.5, 2.0, n), scales


def moments(means, weights, scatter):
    """Weighted mean and covariance on one scale, with the scatter around centroids."""
    mean = weights @ means / weights.sum()
    return mean, ((means - mean).T * weights @ (means - mean) + scatter) / weights.sum()


def centroids_by_plain_loops(X, weights, scales, n_cells, seed):
    """The cell of each row, and means, weights and scatter on each scale."""
    x = scales["score"].transform(X)[:, [0, 2]] * [1.0, 2.0]
    order = np.random.RandomState(seed).permutation(len(X))
    cells = np.empty(len(X), dtype=int)
    cells[order] = pool_oracle.cells_of(x[order], weights[order], x[order[:n_cells]], 4)
    averages = {
        kind: pool_oracle.averages(scale.transform(X), weights, cells) for kind, scale in scales.items()
    }
    return cells, averages


def test_centroids_and_their_kernels_are_those_of_plain_loops():
    X, weights, scales = make_rows(40)
    cells = Cells.learn(scales, X, weights, 6, IMPORTANCE, seed=3)
    centroids = cells.average(X, weights, np.arange(40)).filled()
    cell_of_row, expected = centroids_by_plain_loops(X, weights, scales, 6, seed=3)
    for kind, (means, totals, scatter) in expected.items():
        assert_allclose(centroids.means[kind], means, rtol=1e-10, atol=1e-12)
        assert_allclose(centroids.weights, totals, rtol=1e-12)
        assert_allclose(centroids.scatter[kind], scatter, rtol=1e-9, atol=1e-12)
        assert_allclose(centroids.spread(kind), np.array(scatter) / weights.sum(), atol=1e-12)
    assert centroids.counts.sum() == 40
    random = np.random.RandomState(0)
    B, mean, h, pull = np.tril(random.normal(size=(2, 2))) + 2.0 * np.eye(2), np.array([0.1, -0.2]), 0.7, 0.6
    transform = ClassTransform.standard(np.array([0, 2]), mean, B, NO_CATEGORIES)
    mixture = Mixture(X[:0], None, transform, h, pull).on_centroids(
        centroids.means["score"], centroids.weights, centroids.spread("score")
    )
    x, H = scales["score"].transform(X), h**2 * np.linalg.inv(B @ B.T)
    for row in x[:5]:
        expected = pool_oracle.averaged_log_density(
            x[:, [0, 2]], weights, cell_of_row, row[[0, 2]], H, mean, pull
        )
        assert_allclose(mixture.log_density(row[np.newaxis])[0], expected, rtol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_centroids_of_parts_are_those_of_all_rows_and_keep_their_moments(weighted):
    X, weights, scales = make_rows(300)
    w = weights if weighted else np.ones(300)
    numbers = np.random.RandomState(1).permutation(300)
    cells = Cells.learn(scales, X, weights if weighted else None, 20, IMPORTANCE, seed=0)
    all_averages = cells.average(X, weights if weighted else None, numbers)
    parts = [
        cells.average(X[part], weights[part] if weighted else None, numbers[part])
        for part in np.split(np.arange(300), [4, 100])  # the first has fewer rows than there are cells
    ]
    merged = Centroids.merge(parts)
    for name in ("numbers", "X", "counts"):
        assert_array_equal(getattr(merged, name), getattr(all_averages, name))
    assert merged.counts.sum() == 300
    for kind, scale in scales.items():
        assert_allclose(merged.means[kind], all_averages.means[kind], rtol=1e-11, atol=1e-12)
        assert_allclose(merged.scatter[kind], all_averages.scatter[kind], rtol=1e-10, atol=1e-12)
        expected = moments(scale.transform(X), w, 0.0)
        for centroids in (all_averages, merged):
            result = moments(centroids.means[kind], centroids.weights, centroids.scatter[kind])
            for one, other in zip(result, expected, strict=True):
                assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_a_cell_has_the_row_that_is_nearest_to_its_center():
    X, _, scales = make_rows(100)
    cells = Cells.learn(scales, X, None, 7, IMPORTANCE, seed=0)
    far = replace(cells, centers=np.vstack([cells.centers, [[1e3, 1e3]]]))  # and one without rows
    centroids = far.average(X, None, np.arange(100, 200))
    assert centroids.numbers[-1] == -1
    assert centroids.filled().numbers.size == 7
    x = scales["score"].transform(X)[:, [0, 2]] * [1.0, 2.0]
    distances = np.linalg.norm(x[:, np.newaxis] - cells.centers, axis=2)
    for k in range(7):
        mine = np.flatnonzero(distances.argmin(axis=1) == k)
        closest = mine[distances[mine, k].argmin()]
        assert centroids.numbers[k] == 100 + closest
        assert_array_equal(centroids.X[k], X[closest])


def test_variables_without_importance_make_no_cells():
    X, weights, scales = make_rows(100)
    cells = Cells.learn(scales, X, weights, 5, np.zeros(3), seed=0)
    assert cells.average(X, weights, np.arange(100)).filled().counts.tolist() == [100]


def test_fewer_knots_tell_of_no_row():
    x = np.random.RandomState(0).lognormal(size=(5000, 1))
    scale = learn_scale(x, None, "score")
    fewer = scale.with_fewer_knots(200)
    values, scores = fewer.knots[0]
    assert 150 < values.size <= 200
    assert (np.diff(scores) > 0.0).all()
    assert not np.isin(values, x).any()
    assert_allclose(fewer.transform(x), scale.transform(x), atol=0.25)  # at the ends
    inside = np.abs(scale.transform(x)) < 2.0
    assert_allclose(fewer.transform(x)[inside], scale.transform(x)[inside], atol=0.02)
    assert scale.with_fewer_knots(5000).knots[0][0] is scale.knots[0][0]
    assert learn_scale(x, None, "range").with_fewer_knots(10).knots is None


def test_bandwidths_are_carried_over_by_the_rate():
    assert carried_over(1000, 1000, 3) == 1.0
    assert_allclose(carried_over(32_000, 1000, 1), 0.5)
    assert_allclose(carried_over(2**12, 1, 8), 0.5)


# ---------------------------------------------------------------------------------------------- pools

# A complete table of numbers has centroids, the others a subsample. Sizes of classes, and `max_rows`.
TABLES = {
    "numbers": ((600, 580, 40), 80),
    "mixed": ((400, 300, 40), 90),
    "groups": ((400, 300, 40), 90),
}
CASES, SUBSAMPLED = tuple(TABLES), ("mixed", "groups")


def make_rings(case, seed, sizes=None):
    """Two rings and a small class between them, with missing values and text, or with groups, if asked."""
    random, sizes = np.random.RandomState(seed), sizes or TABLES[case][0]
    radius = np.concatenate([random.normal(r, 0.35, n) for r, n in zip((1.0, 3.0, 2.0), sizes, strict=True)])
    angle = random.uniform(0.0, 2.0 * np.pi, radius.size)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), random.normal(size=radius.size)])
    order = random.permutation(radius.size)
    X, y = X[order], np.repeat(["inner", "outer", "rare"], sizes)[order]
    groups = np.arange(len(y)) // 3 if case == "groups" else None
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    if case == "mixed":
        colours = np.where(random.uniform(size=len(y)) < 0.7, np.where(X[:, 1] > 0.0, "red", "blue"), "grey")
        frame = frame.mask(random.uniform(size=X.shape) < 0.05).assign(colour=colours)
    return frame, y, groups


def fit(case, sizes=None, **options):
    X, y, groups = make_rings(case, 0, sizes)
    options = {"max_rows": TABLES[case][1], "random_state": 0} | options
    return CorralClassifier(**options).fit(X, y, groups=groups)


@pytest.fixture(scope="module")
def fitted():
    return {case: fit(case) for case in CASES}


@pytest.fixture(scope="module")
def uncompressed():
    return {case: fit(case, max_rows=None) for case in CASES}


def assert_rows_of(rows, X, y, groups):
    """Check rows against the rows of a table with their numbers."""
    positions = rows.numbers
    assert_array_equal(rows.labels[rows.codes], y[positions])
    assert_array_equal(rows.X[:, :3], X.to_numpy()[positions, :3].astype(float))
    group_ids = positions if groups is None else groups[positions]
    assert_array_equal(rows.group_ids[:, np.newaxis] == rows.group_ids, group_ids[:, np.newaxis] == group_ids)


@pytest.mark.parametrize("case", CASES)
def test_a_class_has_as_many_kernels_as_it_may_and_all_rows_are_known(fitted, case):
    table, (sizes, max_rows) = make_rings(case, 0), TABLES[case]
    classifier, model = fitted[case], fitted[case].model_
    assert np.bincount(model.data.codes).tolist() == [max_rows, max_rows, 40]
    assert_array_equal(classifier.class_count_, sizes)
    assert_allclose(classifier.class_prior_, np.array(sizes) / sum(sizes))
    assert model.n_rows == sum(sizes)
    assert_rows_of(model.data, *table)
    for member in model.pool.members:
        assert [len(density.rows) for density in member.classes] == [max_rows, max_rows, 40]
    if case in SUBSAMPLED:  # a row weighs as much as the rows that it stands for
        weights = model.data.weights * sizes[0] / max_rows
        assert_allclose(np.bincount(model.data.codes, weights), sizes)
        assert_array_equal(model.all_rows.numbers, np.arange(sum(sizes)))
        assert_rows_of(model.all_rows, *table)
        assert model.all_rows.category_counts.tolist() == ([0, 0, 0, 3] if case == "mixed" else [0, 0, 0])


@pytest.mark.parametrize(
    ("case", "loss", "accuracy"), [("numbers", 0.01, 0.01), ("mixed", 0.08, 0.03), ("groups", 0.08, 0.03)]
)
def test_predictions_are_near_those_of_all_rows(fitted, uncompressed, case, loss, accuracy):
    X, y, _ = make_rings(case, 1, (900, 600, 80))
    P, expected = fitted[case].predict_proba(X), uncompressed[case].predict_proba(X)
    assert log_loss(y, P) < log_loss(y, expected) + loss
    assert fitted[case].score(X, y) > uncompressed[case].score(X, y) - accuracy


def clusters(random):
    """Twenty clusters in each class, for which five kernels are too few: a search of all rows is better."""
    centers = 3.0 * random.normal(size=(40, 3))

    def draw(n):
        cluster = random.randint(40, size=n)
        return centers[cluster] + 0.35 * random.normal(size=(n, 3)), cluster % 2

    return draw, 2000, 5


def covariances(random):
    """Members have transforms of the whole sample, and were judged with transforms of the subsample."""
    A = random.normal(size=(3, 8, 8))

    def draw(n):
        y = np.arange(n) % 3
        X = np.einsum("nij,nj->ni", A[y], random.normal(size=(n, 8)))
        X[random.uniform(size=X.shape) < 0.05] = np.nan
        return X, y

    return draw, 900, 50


@pytest.mark.parametrize("make", [clusters, covariances])
def test_scores_are_those_of_the_model_that_predicts(make):
    draw, n, max_rows = make(np.random.RandomState(0))
    classifier = CorralClassifier(max_rows=max_rows, random_state=0).fit(*draw(n))
    X, y = draw(2000)
    accuracy = classifier.score(X, y)
    assert accuracy < 0.9 or make is covariances
    assert abs(classifier.cv_accuracy_ - accuracy) < 0.05
    difference = abs(classifier.cv_log_loss_ - log_loss(y, classifier.predict_proba(X)))
    assert difference < (0.06 if make is clusters else 0.1)
    assert_allclose(classifier.cv_balanced_accuracy_, classifier.cv_recall_.mean())
    assert abs(classifier.cv_balanced_accuracy_ - classifier.cv_accuracy_) < 0.02


def test_noise_is_not_predictable_by_transforms_that_know_the_rows():
    random = np.random.RandomState(0)
    y = np.arange(600) % 2
    classifier = CorralClassifier(max_rows=50, random_state=0).fit(random.normal(size=(600, 40)), y)
    assert classifier.cv_log_loss_ > 0.68
    # Of which 0.693 is to be expected.
    assert log_loss(y, classifier.predict_proba(random.normal(size=(600, 40)))) < 0.71


@pytest.mark.parametrize("case", ["numbers", "mixed"])
def test_classes_that_are_not_compressed_have_the_same_bits(case):
    X = make_rings(case, 1)[0][:50]
    few, uncompressed = (fit(case, (90, 60, 20), max_rows=max_rows) for max_rows in (90, None))
    assert few.model_.compression is None
    for method in ("predict_log_proba", "typicality"):
        assert_array_equal(getattr(few, method)(X), getattr(uncompressed, method)(X))


@pytest.mark.parametrize("case", CASES)
def test_threads_parts_and_the_order_of_rows_change_nothing(fitted, case, monkeypatch):
    X, y, groups = make_rings(case, 0)
    new = make_rings(case, 1)[0][:50]
    expected = fitted[case].predict_log_proba(new)
    backwards = CorralClassifier(max_rows=TABLES[case][1], random_state=0)
    backwards.fit(X[::-1], y[::-1], groups=None if groups is None else groups[::-1])
    if case in SUBSAMPLED:
        rows = (np.sort(each.model_.data.X[:, 0]) for each in (backwards, fitted[case]))
        assert_array_equal(*rows)
    if groups is None:
        assert_allclose(backwards.predict_log_proba(new), expected, rtol=1e-6, atol=1e-9)
    monkeypatch.setattr(corral.pool.compression, "PART_ROWS", 100)
    threads = fit(case, n_jobs=2).predict_log_proba(new)
    if case == "numbers":
        assert_array_equal(threads, fit(case).predict_log_proba(new))
        assert_allclose(threads, expected, rtol=1e-6)
    else:
        assert_array_equal(threads, expected)


def test_rows_that_calibrate_are_in_no_cell(fitted):
    model, X = fitted["numbers"].model_, make_rings("numbers", 0)[0].to_numpy()
    held_out, kept = model.compression.held_out, model.pool.cross_fitted
    assert set(np.unique(held_out.codes)) == {0, 1}
    assert not np.isin(held_out.numbers, model.data.numbers).any()
    counts = np.bincount(model.data.codes, model.compression.counts)
    assert counts[:2].sum() + len(held_out.X) == 600 + 580
    assert counts[2] == 40
    assert_array_equal(model.compared_rows.X, X[model.compared_rows.numbers])
    points = model.compared_rows.take(kept.points)
    assert np.bincount(points.codes).tolist() == [120, 116, 40]
    # What is known of them is what the members say, but that rows of the rare class are left out of it.
    log_density, rare = model.pool.members[0].log_densities(points.X, Computation()), points.codes == 2
    assert (kept.log_density[0][rare, 2] < log_density[rare, 2]).all()
    left_out = np.stack([rare, rare, rare], axis=1) & (np.arange(3) == 2)
    assert_allclose(kept.log_density[0][~left_out], log_density[~left_out], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_typicality_and_sets_keep_their_level(fitted, case):
    classifier = fitted[case]
    X, y, _ = make_rings(case, 2, (900, 900, 10))
    code = np.searchsorted(classifier.classes_, y)
    typicality = classifier.typicality(X)[np.arange(len(y)), code]
    covered = classifier.predict_set(X, coverage=0.9)[np.arange(len(y)), code]
    n_calibrating = 116 if case == "numbers" else TABLES[case][1]
    for a in range(2):
        for alpha in (0.05, 0.2, 0.5):
            error = np.sqrt(alpha * (1.0 - alpha) / n_calibrating)
            assert abs((typicality[code == a] <= alpha).mean() - alpha) < 4.0 * error
        assert 0.8 < covered[code == a].mean() < 0.98
    assert classifier.is_novel(X).mean() < 0.05  # 0.012 over six tables; so few rows give no better level
    if case == "numbers":
        assert classifier.is_novel(X[:1].assign(a=0.0, b=9.0, c=0.0)).all()
        # Approximate where a variable is always missing: the third tells nothing, and varies most.
        few_typicality = classifier.typicality(X[:200].assign(c=np.nan))[np.arange(200), code[:200]]
        assert 0.05 < (few_typicality <= 0.2).mean() < 0.25


@pytest.mark.parametrize("case", CASES)
def test_explanations_add_up_and_name_rows_of_the_table(fitted, case):
    y, new = make_rings(case, 0)[1], make_rings(case, 3)[0][:4]
    classifier = fitted[case]
    explanation = classifier.explain(new)
    assert (explanation.rows >= 0).all()
    assert (y[explanation.rows] == explanation.label[:, np.newaxis]).all()
    predicted = classifier.predict_log_proba(new)
    label, rival = (
        np.searchsorted(classifier.classes_, codes) for codes in (explanation.label, explanation.rival)
    )
    odds = predicted[np.arange(4), label] - predicted[np.arange(4), rival]
    assert_allclose(explanation.log_odds, odds, atol=1e-8)
    assert (explanation.stands_for > 1).any() == (case == "numbers")
    support = Support(*(getattr(explanation, name) for name in Support._fields))
    # A cell is not called a single row.
    unusual = rests_on_few(support, np.ones(4), Distribution.from_values(np.full(99, -0.1), np.ones(99)))
    assert_array_equal(unusual, explanation.stands_for[:, 0] == 1)
    assert classifier.describe().to_frame()["evidence"].notna().all()


def test_halves_are_of_all_rows(fitted, uncompressed):
    actual, expected = (
        pools["numbers"].selection_frequency(4, random_state=0) for pools in (fitted, uncompressed)
    )
    assert_array_equal(actual, expected)
    assert ((expected > 0.0) & (expected < 1.0)).any()


def test_a_common_factor_of_weights_changes_nothing():
    X, y, _ = make_rings("numbers", 0)
    weights = np.random.RandomState(0).uniform(0.5, 2.0, len(y))
    new = make_rings("numbers", 1)[0][:100]
    once, thrice = (
        CorralClassifier(max_rows=80, random_state=0).fit(X, y, sample_weight=w)
        for w in (weights, 3.0 * weights)
    )
    assert_allclose(once.predict_log_proba(new), thrice.predict_log_proba(new), rtol=1e-6)
    rows = thrice.model_.all_rows
    assert_array_equal(rows.X, X.to_numpy()[rows.numbers])
    assert_allclose(rows.weights, weights[rows.numbers] / weights.max())


@pytest.mark.parametrize("max_rows", [0, -3, 2.5, "many"])
def test_max_rows_that_mean_nothing(max_rows):
    with pytest.raises(ValueError, match="max_rows must be a positive integer, got"):
        CorralClassifier(max_rows=max_rows).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])


# --------------------------------------------------------------------------------------- a subsample


def test_frequencies_are_those_of_the_whole_sample(fitted):
    X, y, _ = make_rings("mixed", 0)
    categories = fitted["mixed"].model_.pool.members[0].classes[1].transform.categories
    colours = ["blue", "grey", "red"]
    pooled = (np.array([(X["colour"] == colour).sum() for colour in colours]) + 1 / 3) / (len(X) + 1)
    counts = np.array([((X["colour"] == colour) & (y == "outer")).sum() for colour in colours])
    shares = (counts + EXTRA_ROWS * pooled) / (counts.sum() + EXTRA_ROWS)
    assert_allclose(np.exp(categories.log_shares[0]), shares, rtol=1e-12)


def test_missing_values_that_no_row_of_the_subsample_has():
    X, y, _ = make_rings("groups", 0)
    X.iloc[4, 2] = np.nan
    classifier = CorralClassifier(max_rows=90, random_state=0).fit(X, y)
    assert np.bincount(classifier.model_.data.codes).tolist() == [90, 90, 40]
    assert not classifier.model_.data.mixed
    assert np.isfinite(classifier.predict_log_proba(X[4:5])).all()


def test_values_that_no_row_of_the_subsample_has_count(tmp_path):
    X, y, _ = make_rings("mixed", 0)
    seldom = np.full(len(X), np.nan)
    seldom[np.flatnonzero(y == "outer")[:4]] = [1.0, 2.0, 1.5, 1.2]
    no_level = pd.Categorical([None] * len(X), ["p", "q"])
    X = X.assign(seldom=seldom, never=np.nan, no_level=no_level)
    with pytest.warns(UserWarning, match="value of 'never', 'no_level', which are ignored"):
        classifier = CorralClassifier(max_rows=20, random_state=0).fit(X, y)
    assert np.isnan(classifier.model_.data.X[:, 4]).all()
    save_model(classifier, tmp_path / "model.corral")
    new = make_rings("mixed", 3)[0][:5].assign(seldom=np.nan, never=np.nan, no_level=no_level[:5])
    for each in (classifier, load_model(tmp_path / "model.corral")):
        actual = each.predict_proba(new.assign(seldom=1.2))  # without a warning
        assert (actual[:, 1] != each.predict_proba(new)[:, 1]).all()
        assert actual[:, 1].mean() > each.predict_proba(new)[:, 1].mean() + 0.01
        with pytest.warns(UserWarning, match="count as missing: 5 of 'never'"):
            actual = each.predict_proba(new.assign(never=1.0))
        assert_array_equal(actual, each.predict_proba(new))


def test_wide_tables_have_as_many_variables_as_they_were_tried_with():
    rng = np.random.default_rng(0)
    y = np.arange(160) % 2
    X = pd.DataFrame(rng.normal(size=(160, 35)) + y[:, np.newaxis]).rename(columns=str)
    X["kind"] = np.where(rng.uniform(size=160) < 0.5, "p", "q")
    classifier = CorralClassifier(max_rows=30, random_state=0).fit(X, y)
    members = classifier.model_.pool.members
    assert {member.classes[0].transform.variables.size for member in members} == {30}


def test_the_sample_is_larger_than_the_subsample(monkeypatch, fitted):
    monkeypatch.setattr(corral.data.subsample, "SAMPLE_ROWS", 400)
    few = fit("mixed")
    new = make_rings("mixed", 3)[0][:20]
    assert_array_equal(few.model_.data.numbers, fitted["mixed"].model_.data.numbers)
    assert (few.predict_log_proba(new) != fitted["mixed"].predict_log_proba(new)).any()


# ---------------------------------------------------------------------------------------- model files


@pytest.mark.parametrize("case", CASES)
def test_a_file_holds_few_rows_and_the_same_model(fitted, case, tmp_path):
    X, y, groups = make_rings(case, 0)
    new, classifier = make_rings(case, 3)[0][:20], fitted[case]
    save_model(classifier, tmp_path / "once.corral")
    save_model(load_model(tmp_path / "once.corral"), tmp_path / "twice.corral")
    loaded = load_model(tmp_path / "twice.corral")
    kept = len(classifier.model_.compared_rows.X)
    assert len(loaded.model_.training.X) == kept < loaded.model_.n_rows == len(y)
    for method in ("predict_log_proba", "typicality", "predict_set"):
        assert_array_equal(getattr(loaded, method)(new), getattr(classifier, method)(new))
    actual, expected = (model.explain(new[:3]) for model in (loaded, classifier))
    for name in ("rows", "evidence", "group_share"):
        assert_array_equal(getattr(actual, name), getattr(expected, name))
    assert_array_equal(loaded.class_count_, TABLES[case][0])
    write_report(loaded, new[:3], path=tmp_path / "report.html")
    message = f"needs all {len(y)} training rows, and the model has kept only {kept} of them"
    with pytest.raises(ValueError, match=message):
        loaded.selection_frequency()
    message = f"partial_fit needs all {len(y)} training rows, but the model keeps only"
    with pytest.raises(ValueError, match=message):
        loaded.partial_fit(X, y, groups=groups)


@pytest.mark.parametrize(
    ("name", "forge", "message"),
    [
        ("pool/members/0/classes/0/rows", lambda a: a[1:], "rows has the shape"),
        ("pool/members/0/classes/0/rows", lambda a: a * np.nan, "rows holds a number"),
        ("compression/counts", lambda a: a[1:], "counts has the shape"),
        ("compression/counts", lambda a: a * 0, "counts holds a number"),
        ("compression/held_out/numbers", lambda a: a + 5000, "numbers contains a position that is not below"),
    ],
)
def test_forged_centroids(fitted, name, forge, message, tmp_path):
    path = tmp_path / "model.corral"
    save_model(fitted["numbers"], path)
    header, arrays = take_apart(path)
    forge_value(header, arrays, f"state/model_/{name}", forge)
    put_together(path, header, arrays)
    with pytest.raises(ValueError, match=f"is damaged: {message}"):
        load_model(path)


# A class that is hardly too large has a cell for each row.
@pytest.mark.parametrize(("n", "max_rows", "all_kept"), [(200, 30, False), (42, 20, True)])
def test_names_of_rows_that_are_kept_are_kept(n, max_rows, all_kept, tmp_path):
    X, y = np.random.default_rng(0).normal(size=(n, 2)), np.arange(n) % 2
    frame = pd.DataFrame(X, columns=["a", "b"], index=[f"row {i}" for i in range(n)])
    named = CorralClassifier(max_rows=max_rows, random_state=0).fit(frame, y)
    save_model(named, tmp_path / "named.corral")
    loaded = load_model(tmp_path / "named.corral")
    assert (len(loaded.model_.training.X) == n) == all_kept
    explanation = loaded.explain(frame[:2])
    assert_array_equal(explanation.row_names, named.explain(frame[:2]).row_names)
    assert explanation.row_names[0, 0] == f"row {explanation.rows[0, 0]}"
    assert not all_kept or loaded.row_names_in_.tolist() == frame.index.tolist()
