"""Centroids against plain loops, and pools with compressed classes: near those of all rows, and as valid."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import corral.data.subsample
import corral.pool.compression
from corral import CorralClassifier, load_model, save_model
from corral.data.scaling import learn_scale
from corral.parallel import Computation
from corral.pool.categories import LevelKernels
from corral.pool.centroids import Cells, Centroids
from corral.pool.compression import carried_over
from corral.pool.densities import Mixture
from corral.pool.transforms import ClassTransform
from pool import pool_oracle


def make_rows(n, seed=0):
    """Rows, weights, and two scales for them."""
    random = np.random.RandomState(seed)
    X = random.normal(size=(n, 3)) * [1.0, 2.0, 0.5] + [0.0, 10.0, 0.0]
    return X, random.uniform(0.5, 2.0, n), [learn_scale(X, None, kind) for kind in ("standard", "score")]


IMPORTANCE = np.array([1.0, 0.0, 4.0])


def moments(means, weights, scatter):
    """Weighted mean and covariance on one scale, with the scatter around centroids."""
    mean = weights @ means / weights.sum()
    return mean, ((means - mean).T * weights @ (means - mean) + scatter) / weights.sum()


def centroids_by_plain_loops(X, weights, scales, n_cells, seed):
    """The cell of each row, and means, weights and scatter on each scale."""
    x = scales[0].transform(X)[:, [0, 2]] * [1.0, 2.0]
    order = np.random.RandomState(seed).permutation(len(X))
    cells = np.empty(len(X), dtype=int)
    cells[order] = pool_oracle.cells_of(x[order], weights[order], x[order[:n_cells]], 4)
    return cells, [pool_oracle.averages(scale.transform(X), weights, cells.tolist()) for scale in scales]


def test_centroids_are_those_of_plain_loops():
    X, weights, scales = make_rows(40)
    cells = Cells.learn(scales, X, weights, 6, IMPORTANCE, seed=3)
    centroids = cells.average(X, weights, np.arange(40)).filled()
    _, expected = centroids_by_plain_loops(X, weights, scales, 6, seed=3)
    for k, (means, totals, scatter) in enumerate(expected):
        np.testing.assert_allclose(centroids.means[k], means, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(centroids.weights, totals, rtol=1e-12)
        np.testing.assert_allclose(centroids.scatter[k], scatter, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(centroids.spread(k), np.array(scatter) / weights.sum(), atol=1e-12)
    assert centroids.counts.sum() == 40


def test_cells_are_the_same_for_a_seed():
    X, weights, scales = make_rows(300)
    first, second, other = (Cells.learn(scales, X, weights, 30, IMPORTANCE, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.centers, second.centers)
    assert (first.centers != other.centers).any()


@pytest.mark.parametrize("weighted", [False, True])
def test_centroids_of_parts_are_those_of_all_rows_and_keep_their_moments(weighted):
    X, weights, scales = make_rows(300)
    w = weights if weighted else np.ones(300)
    numbers = np.random.RandomState(1).permutation(300)
    cells = Cells.learn(scales, X, weights if weighted else None, 20, IMPORTANCE, seed=0)
    whole = cells.average(X, weights if weighted else None, numbers)
    parts = [
        cells.average(X[part], weights[part] if weighted else None, numbers[part])
        for part in np.split(np.arange(300), [4, 100])  # the first has fewer rows than there are cells
    ]
    merged = Centroids.merge(parts)
    np.testing.assert_array_equal(merged.numbers, whole.numbers)
    np.testing.assert_array_equal(merged.X, whole.X)
    np.testing.assert_array_equal(merged.counts, whole.counts)
    assert merged.counts.sum() == 300
    np.testing.assert_allclose(merged.means, whole.means, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(merged.scatter, whole.scatter, rtol=1e-10, atol=1e-12)
    for k, scale in enumerate(scales):
        expected = moments(scale.transform(X), w, 0.0)
        for centroids in (whole, merged):
            result = moments(centroids.means[k], centroids.weights, centroids.scatter[k])
            for one, other in zip(result, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_a_cell_has_the_row_that_is_nearest_to_its_centre():
    X, _, scales = make_rows(100)
    cells = Cells.learn(scales, X, None, 7, IMPORTANCE, seed=0)
    far = replace(cells, centers=np.vstack([cells.centers, [[1e3, 1e3]]]))  # and one without rows
    centroids = far.average(X, None, np.arange(100, 200))
    assert centroids.numbers[-1] == -1
    assert centroids.filled().numbers.size == 7
    x = scales[0].transform(X)[:, [0, 2]] * [1.0, 2.0]
    distances = np.linalg.norm(x[:, np.newaxis] - cells.centers, axis=2)
    for k in range(7):
        mine = np.flatnonzero(distances.argmin(axis=1) == k)
        closest = mine[distances[mine, k].argmin()]
        assert centroids.numbers[k] == 100 + closest
        np.testing.assert_array_equal(centroids.X[k], X[closest])


def test_variables_without_importance_make_no_cells():
    X, weights, scales = make_rows(100)
    cells = Cells.learn(scales, X, weights, 5, np.zeros(3), seed=0)
    assert cells.average(X, weights, np.arange(100)).filled().counts.tolist() == [100]


def test_kernels_on_centroids_are_those_of_plain_loops():
    X, weights, scales = make_rows(40)
    centroids = Cells.learn(scales, X, weights, 6, IMPORTANCE, seed=3).average(X, weights, np.arange(40))
    centroids = centroids.filled()
    random = np.random.RandomState(0)
    B, mean, h, pull = np.tril(random.normal(size=(2, 2))) + 2.0 * np.eye(2), np.array([0.1, -0.2]), 0.7, 0.6
    transform = ClassTransform.standard(np.array([0, 2]), mean, B, LevelKernels.none())
    mixture = Mixture.of_representatives(
        centroids.means[0], centroids.weights, centroids.spread(0), transform, h, pull
    )
    H = h**2 * np.linalg.inv(B @ B.T)
    x = scales[0].transform(X)
    cells, _ = centroids_by_plain_loops(X, weights, scales, 6, seed=3)
    for row in x[:5]:
        expected = pool_oracle.averaged_log_density(
            x[:, [0, 2]], weights, cells.tolist(), row[[0, 2]], H, mean, pull
        )
        np.testing.assert_allclose(mixture.log_density(row[np.newaxis])[0], expected, rtol=1e-10)


def test_fewer_knots_tell_of_no_row():
    x = np.random.RandomState(0).lognormal(size=(5000, 1))
    scale = learn_scale(x, None, "score")
    fewer = scale.with_fewer_knots(200)
    values, scores = fewer.knots[0]
    assert 150 < values.size <= 200
    assert (np.diff(scores) > 0.0).all()
    assert not np.isin(values, x).any()
    np.testing.assert_allclose(fewer.transform(x), scale.transform(x), atol=0.25)  # at the ends
    inside = np.abs(scale.transform(x)) < 2.0
    np.testing.assert_allclose(fewer.transform(x)[inside], scale.transform(x)[inside], atol=0.02)
    assert scale.with_fewer_knots(5000).knots[0][0] is scale.knots[0][0]
    assert learn_scale(x, None, "range").with_fewer_knots(10).knots is None


# ---------------------------------------------------------------------------------------------- pools


def make_rings(n, seed):
    """Two rings and a small class between them, and a column of noise."""
    random = np.random.RandomState(seed)
    sizes = (n, n - 20, 40)
    radius = np.concatenate([random.normal(r, 0.35, m) for r, m in zip((1.0, 3.0, 2.0), sizes, strict=True)])
    angle = random.uniform(0.0, 2.0 * np.pi, radius.size)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), random.normal(size=radius.size)])
    order = random.permutation(radius.size)
    return X[order], np.repeat(["inner", "outer", "rare"], sizes)[order]


@pytest.fixture(scope="module")
def rings():
    return make_rings(600, 0)


@pytest.fixture(scope="module")
def fitted(rings):
    return CorralClassifier(max_rows=80, random_state=0).fit(*rings)


@pytest.fixture(scope="module")
def of_all(rings):
    return CorralClassifier(max_rows=None, random_state=0).fit(*rings)


def log_loss(classifier, X, y):
    log_proba = classifier.predict_log_proba(X)
    return -log_proba[np.arange(len(y)), np.searchsorted(classifier.classes_, y)].mean()


def test_a_thinned_pool_predicts_nearly_as_one_of_all_rows(fitted, of_all):
    X, y = make_rings(800, 1)
    assert np.bincount(fitted.model_.data.codes).tolist() == [80, 80, 40]
    assert log_loss(fitted, X, y) < log_loss(of_all, X, y) + 0.01
    assert fitted.score(X, y) > of_all.score(X, y) - 0.01
    np.testing.assert_array_equal(fitted.class_count_, [600, 580, 40])


def test_scores_are_those_of_the_model_that_predicts():
    """Five kernels for twenty clusters: the search, which has all rows, is much better."""
    random = np.random.RandomState(0)
    centres = 3.0 * random.normal(size=(40, 3))

    def draw(n):
        cluster = random.randint(40, size=n)
        return centres[cluster] + 0.35 * random.normal(size=(n, 3)), cluster % 2

    classifier = CorralClassifier(max_rows=5, random_state=0).fit(*draw(2000))
    X, y = draw(2000)
    assert classifier.score(X, y) < 0.9
    assert abs(classifier.cv_accuracy_ - classifier.score(X, y)) < 0.05
    assert abs(classifier.cv_log_loss_ - log_loss(classifier, X, y)) < 0.06
    np.testing.assert_allclose(classifier.cv_balanced_accuracy_, classifier.cv_recall_.mean())
    assert abs(classifier.cv_balanced_accuracy_ - classifier.cv_accuracy_) < 0.02


def test_noise_is_not_predictable_by_frames_that_know_the_rows():
    random = np.random.RandomState(0)
    y = np.arange(600) % 2
    classifier = CorralClassifier(max_rows=50, random_state=0).fit(random.normal(size=(600, 40)), y)
    assert classifier.cv_log_loss_ > 0.68
    assert log_loss(classifier, random.normal(size=(600, 40)), y) < 0.71  # of which 0.693 is to be expected


def test_classes_that_are_not_thinned_have_the_same_bits(rings, of_all):
    X, _ = make_rings(100, 1)
    few = CorralClassifier(max_rows=600, random_state=0).fit(*rings)
    np.testing.assert_array_equal(few.predict_log_proba(X), of_all.predict_log_proba(X))
    np.testing.assert_array_equal(few.typicality(X), of_all.typicality(X))


def test_threads_and_the_order_of_rows_change_nothing(rings, fitted, monkeypatch):
    X, y = rings
    new, _ = make_rings(100, 1)
    monkeypatch.setattr(corral.pool.compression, "PART_ROWS", 100)
    parts = CorralClassifier(max_rows=80, random_state=0).fit(X, y)
    threads = CorralClassifier(max_rows=80, random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(parts.predict_log_proba(new), threads.predict_log_proba(new))
    np.testing.assert_allclose(parts.predict_log_proba(new), fitted.predict_log_proba(new), rtol=1e-6)
    backwards = CorralClassifier(max_rows=80, random_state=0).fit(X[::-1], y[::-1])
    np.testing.assert_allclose(backwards.predict_log_proba(new), fitted.predict_log_proba(new), rtol=1e-6)


def test_rows_that_calibrate_are_in_no_cell(rings, fitted):
    model = fitted.model_
    held_out, kept = model.thinning.held_out, model.pool.cross_fitted
    assert set(np.unique(held_out.codes)) == {0, 1}
    assert not np.isin(held_out.numbers, model.data.numbers).any()
    thinned = [of_class for of_class in model.thinning.classes if of_class is not None]
    assert sum(of_class.counts.sum() for of_class in thinned) + len(held_out.X) == 600 + 580
    np.testing.assert_array_equal(model.compared_rows.X, rings[0][model.compared_rows.numbers])
    points = model.compared_rows.take(kept.points)
    assert np.bincount(points.codes).tolist() == [120, 116, 40]
    # What is known of them is what the members say, but that rows of the rare class are left out of it.
    member = model.pool.members[0]
    log_density = member.log_densities(points.X, Computation())
    np.testing.assert_allclose(kept.log_density[0][:, :2], log_density[:, :2], rtol=1e-12)
    rare = points.codes == 2
    assert (kept.log_density[0][rare, 2] < log_density[rare, 2]).all()
    np.testing.assert_allclose(kept.log_density[0][~rare, 2], log_density[~rare, 2], rtol=1e-12)


def test_typicality_and_sets_keep_their_level(fitted):
    X, y = make_rings(1500, 2)
    code = np.searchsorted(fitted.classes_, y)
    typicality = fitted.typicality(X)[np.arange(len(y)), code]
    covered = fitted.predict_set(X, coverage=0.9)[np.arange(len(y)), code]
    for a in range(2):
        for level in (0.05, 0.2, 0.5):
            error = np.sqrt(level * (1.0 - level) / 116.0)  # of so many rows that were held out
            assert abs((typicality[code == a] <= level).mean() - level) < 3.0 * error
        assert 0.82 < covered[code == a].mean() < 0.98
    assert fitted.is_novel(X).mean() < 0.03
    assert fitted.is_novel([[0.0, 9.0, 0.0]]).all()
    gaps = X[:200].copy()
    gaps[:, 2] = np.nan
    # Approximate where a variable is always missing: the third tells nothing, and varies most.
    assert 0.05 < (fitted.typicality(gaps)[np.arange(200), code[:200]] <= 0.2).mean() < 0.25


def test_supporting_rows_are_rows_of_the_label(rings, fitted):
    X, _ = make_rings(20, 3)
    explanation = fitted.explain(X[:6])
    assert (explanation.rows >= 0).all()
    assert (rings[1][explanation.rows] == explanation.label[:, np.newaxis]).all()
    predicted = fitted.predict_log_proba(X[:6])
    label, rival = (np.searchsorted(fitted.classes_, of) for of in (explanation.label, explanation.rival))
    odds = predicted[np.arange(6), label] - predicted[np.arange(6), rival]
    np.testing.assert_allclose(explanation.log_odds, odds, atol=1e-8)
    assert fitted.describe().to_frame()["evidence"].notna().all()


def test_halves_are_of_all_rows(fitted, of_all):
    found, expected = (of.selection_frequency(4, random_state=0) for of in (fitted, of_all))
    np.testing.assert_array_equal(found, expected)
    assert ((expected > 0.0) & (expected < 1.0)).any()


def test_a_common_factor_of_weights_changes_nothing(rings):
    X, y = rings
    weights = np.random.RandomState(0).uniform(0.5, 2.0, len(y))
    new, _ = make_rings(100, 1)
    once, thrice = (
        CorralClassifier(max_rows=80, random_state=0).fit(X, y, sample_weight=w)
        for w in (weights, 3.0 * weights)
    )
    np.testing.assert_allclose(once.predict_log_proba(new), thrice.predict_log_proba(new), rtol=1e-6)
    rows = thrice.model_.all_rows
    np.testing.assert_array_equal(rows.X, X[rows.numbers])
    np.testing.assert_allclose(rows.weights, weights[rows.numbers] / weights.max())


@pytest.mark.parametrize("max_rows", [0, -3, 2.5, "many"])
def test_max_rows_that_mean_nothing(rings, max_rows):
    with pytest.raises(ValueError, match="max_rows must be a positive integer, got"):
        CorralClassifier(max_rows=max_rows).fit(*rings)


def test_bandwidths_are_carried_over_by_the_rate():
    assert carried_over(1000, 1000, 3) == 1.0
    np.testing.assert_allclose(carried_over(32_000, 1000, 1), 0.5)
    np.testing.assert_allclose(carried_over(2**12, 1, 8), 0.5)


# ---------------------------------------------------------------------------------------- model files


def test_a_file_holds_few_rows_and_the_same_model(rings, fitted, of_all, tmp_path):
    X, _ = make_rings(50, 4)
    save_model(fitted, tmp_path / "thinned.corral")
    loaded = load_model(tmp_path / "thinned.corral")
    np.testing.assert_array_equal(loaded.predict_log_proba(X), fitted.predict_log_proba(X))
    np.testing.assert_array_equal(loaded.typicality(X), fitted.typicality(X))
    np.testing.assert_array_equal(loaded.explain(X[:3]).rows, fitted.explain(X[:3]).rows)
    np.testing.assert_array_equal(loaded.explain(X[:3]).evidence, fitted.explain(X[:3]).evidence)
    assert loaded.model_.n_rows == len(rings[0])
    save_model(loaded, tmp_path / "again.corral")
    again = load_model(tmp_path / "again.corral")
    np.testing.assert_array_equal(again.predict_log_proba(X), fitted.predict_log_proba(X))
    with pytest.raises(
        ValueError, match="partial_fit needs the 1220 rows of the fit, of which the model has"
    ):
        loaded.partial_fit(*rings)


@pytest.fixture(scope="module")
def all_thinned():
    X, y = make_rings(600, 0)
    is_frequent = y != "rare"
    X, y = X[is_frequent], y[is_frequent]
    frame = pd.DataFrame(
        X, columns=["a", "b", "c"], index=pd.Index([f"id{i}" for i in range(len(X))], name="id")
    )
    return frame, y, CorralClassifier(max_rows=60, random_state=0).fit(frame, y)


def test_what_needs_rows_says_so(all_thinned, tmp_path):
    frame, y, fitted = all_thinned
    save_model(fitted, tmp_path / "model.corral")
    loaded = load_model(tmp_path / "model.corral")
    kept = len(fitted.model_.compared_rows.X)
    said = f"needs all 1180 training rows, and the model has kept only {kept} of them"
    with pytest.raises(ValueError, match=said):
        loaded.selection_frequency()
    with pytest.raises(ValueError, match="partial_fit needs the 1180 rows of the fit"):
        loaded.partial_fit(frame, y)


def test_a_cell_is_not_called_a_single_row(all_thinned):
    frame, _, fitted = all_thinned
    explanation = fitted.explain(frame[:5])
    assert (explanation.stands_for[:, 0] > 1).any()
    alone = replace(explanation, shares=np.full(explanation.shares.shape, 0.9), group_share=np.full(5, 0.9))
    assert [bool(alone.caution(i)) for i in range(5)] == (explanation.stands_for[:, 0] == 1).tolist()


def test_names_of_rows_that_are_kept_are_kept(rings, tmp_path):
    X, y = rings
    frame = pd.DataFrame(
        X, columns=["a", "b", "c"], index=pd.Index([f"row {i}" for i in range(len(X))], name="id")
    )
    named = CorralClassifier(max_rows=80, random_state=0).fit(frame, y)
    save_model(named, tmp_path / "named.corral")
    loaded = load_model(tmp_path / "named.corral")
    explanation = loaded.explain(frame[:2])
    np.testing.assert_array_equal(explanation.row_names, named.explain(frame[:2]).row_names)
    assert explanation.row_names[0, 0] == f"row {explanation.rows[0, 0]}"


def test_names_are_those_of_their_rows_if_all_are_kept(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(42, 2)), np.arange(42) % 2
    frame = pd.DataFrame(X, columns=["a", "b"], index=[f"row {i}" for i in range(42)])
    save_model(CorralClassifier(max_rows=20, random_state=0).fit(frame, y), tmp_path / "named.corral")
    loaded = load_model(tmp_path / "named.corral")
    assert len(loaded.model_.training.X) == 42  # a class that is hardly too large has a cell for each row
    assert loaded.row_names_in_.tolist() == frame.index.tolist()
