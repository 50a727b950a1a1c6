"""Pools of many rows with gaps, levels or groups: of drawn rows, near those of all rows, and as valid."""

import numpy as np
import pandas as pd
import pytest

import corral.data.subsample
from corral import CorralClassifier, load_model, save_model, write_report
from corral.dask import DaskCorralClassifier
from corral.pool.categories import EXTRA_ROWS

CASES = ("mixed", "groups")
SIZES = (400, 300, 40)
MAX_ROWS = 90


def make_rings(case, seed, sizes=SIZES):
    """Two rings and a small class between them; with gaps and text, or with groups of three rows."""
    random = np.random.RandomState(seed)
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


def fit(case, max_rows=MAX_ROWS, sizes=SIZES, **options):
    X, y, groups = make_rings(case, 0, sizes)
    return CorralClassifier(max_rows=max_rows, random_state=0, **options).fit(X, y, groups=groups)


@pytest.fixture(scope="module")
def fitted():
    return {case: fit(case) for case in CASES}


def log_loss(classifier, X, y):
    log_proba = classifier.predict_log_proba(X)
    return -log_proba[np.arange(len(y)), np.searchsorted(classifier.classes_, y)].mean()


@pytest.mark.parametrize("case", CASES)
def test_a_class_has_as_many_kernels_as_it_may(fitted, case):
    X, y, groups = make_rings(case, 0)
    classifier, model = fitted[case], fitted[case].model_
    assert np.bincount(model.data.codes).tolist() == [MAX_ROWS, MAX_ROWS, 40]
    np.testing.assert_array_equal(classifier.class_count_, SIZES)
    np.testing.assert_allclose(classifier.class_prior_, np.array(SIZES) / sum(SIZES))
    assert model.n_rows == sum(SIZES)
    np.testing.assert_array_equal(model.data.labels[model.data.codes], y[model.data.numbers])
    np.testing.assert_array_equal(model.data.X[:, :3], X.to_numpy()[model.data.numbers, :3].astype(float))
    # A drawn row weighs as much as the rows that it was drawn from.
    weights = model.data.weights * SIZES[0] / MAX_ROWS
    np.testing.assert_allclose(np.bincount(model.data.codes, weights), SIZES)
    if case == "mixed":
        for member in model.pool.members:
            assert [len(of_class.rows) for of_class in member.classes] == [MAX_ROWS, MAX_ROWS, 40]
    if groups is not None:
        same = groups[model.data.numbers][:, np.newaxis] == groups[model.data.numbers]
        np.testing.assert_array_equal(model.data.units[:, np.newaxis] == model.data.units, same)


@pytest.mark.parametrize("case", CASES)
def test_all_rows_are_still_known(fitted, case):
    X, y, groups = make_rings(case, 0)
    rows = fitted[case].model_.all_rows
    np.testing.assert_array_equal(rows.numbers, np.arange(sum(SIZES)))
    np.testing.assert_array_equal(rows.X[:, :3], X.to_numpy()[:, :3].astype(float))
    np.testing.assert_array_equal(rows.labels[rows.codes], y)
    assert rows.level_counts.tolist() == ([0, 0, 0, 3] if case == "mixed" else [0, 0, 0])
    unit = np.arange(len(y)) if groups is None else groups
    np.testing.assert_array_equal(rows.units[:, np.newaxis] == rows.units, unit[:, np.newaxis] == unit)


@pytest.mark.parametrize("case", CASES)
def test_predictions_are_near_those_of_all_rows(fitted, case):
    X, y, _ = make_rings(case, 1, (900, 600, 80))
    of_all = fit(case, max_rows=None)
    assert log_loss(fitted[case], X, y) < log_loss(of_all, X, y) + 0.08  # of fewer than a fourth of the rows
    assert fitted[case].score(X, y) > of_all.score(X, y) - 0.03


def test_scores_are_those_of_the_model_that_predicts():
    """Members have frames of the whole sample, and were judged with frames of the drawn rows."""
    random = np.random.RandomState(0)
    A = random.normal(size=(3, 8, 8))

    def draw(n):
        y = np.arange(n) % 3
        X = np.einsum("nij,nj->ni", A[y], random.normal(size=(n, 8)))
        X[random.uniform(size=X.shape) < 0.05] = np.nan
        return X, y

    classifier = CorralClassifier(max_rows=50, random_state=0).fit(*draw(900))
    X, y = draw(2000)
    assert abs(classifier.cv_accuracy_ - classifier.score(X, y)) < 0.05
    assert abs(classifier.cv_log_loss_ - log_loss(classifier, X, y)) < 0.1


def test_classes_that_are_not_thinned_have_the_same_bits():
    X = make_rings("mixed", 1)[0][:50]
    few, of_all = (fit("mixed", max_rows, (90, 60, 20)) for max_rows in (90, None))
    assert few.model_.thinning is None
    np.testing.assert_array_equal(few.predict_log_proba(X), of_all.predict_log_proba(X))


@pytest.mark.parametrize("case", CASES)
def test_threads_and_the_order_of_rows_change_nothing(fitted, case):
    X, y, groups = make_rings(case, 0)
    new = make_rings(case, 1)[0][:50]
    threads = fit(case, n_jobs=2)
    np.testing.assert_array_equal(threads.predict_log_proba(new), fitted[case].predict_log_proba(new))
    backwards = CorralClassifier(max_rows=MAX_ROWS, random_state=0)
    backwards.fit(X[::-1], y[::-1], groups=None if groups is None else groups[::-1])
    found, expected = (np.sort(of.model_.data.X[:, 0]) for of in (backwards, fitted[case]))
    np.testing.assert_array_equal(found, expected)
    if groups is None:
        np.testing.assert_allclose(
            backwards.predict_log_proba(new), fitted[case].predict_log_proba(new), rtol=1e-6, atol=1e-9
        )


def test_frequencies_are_those_of_the_whole_sample(fitted):
    X, y, _ = make_rings("mixed", 0)
    categories = fitted["mixed"].model_.pool.members[0].classes[1].transform.categories
    colours = ["blue", "grey", "red"]
    pooled = (np.array([(X["colour"] == colour).sum() for colour in colours]) + 1 / 3) / (len(X) + 1)
    counts = np.array([((X["colour"] == colour) & (y == "outer")).sum() for colour in colours])
    shares = (counts + EXTRA_ROWS * pooled) / (counts.sum() + EXTRA_ROWS)
    np.testing.assert_allclose(np.exp(categories.log_shares[0]), shares, rtol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_typicality_and_sets_keep_their_level(fitted, case):
    classifier = fitted[case]
    X, y, _ = make_rings(case, 2, (900, 900, 10))
    code = np.searchsorted(classifier.classes_, y)
    typicality = classifier.typicality(X)[np.arange(len(y)), code]
    covered = classifier.predict_set(X, coverage=0.9)[np.arange(len(y)), code]
    for a in range(2):
        for level in (0.05, 0.2, 0.5):
            error = np.sqrt(level * (1.0 - level) / MAX_ROWS)
            assert abs((typicality[code == a] <= level).mean() - level) < 4.0 * error
        assert 0.8 < covered[code == a].mean() < 0.98
    assert classifier.is_novel(X).mean() < 0.05  # 0.012 over six tables; so few rows tell 0.01 no better


@pytest.mark.parametrize("case", CASES)
def test_explanations_add_up_and_name_rows_of_the_table(fitted, case):
    y, new = make_rings(case, 0)[1], make_rings(case, 3)[0][:4]
    classifier = fitted[case]
    explanation = classifier.explain(new)
    assert (y[explanation.rows] == explanation.label[:, np.newaxis]).all()
    predicted = classifier.predict_log_proba(new)
    label, rival = (np.searchsorted(classifier.classes_, of) for of in (explanation.label, explanation.rival))
    odds = predicted[np.arange(4), label] - predicted[np.arange(4), rival]
    np.testing.assert_allclose(explanation.log_odds, odds, atol=1e-8)
    np.testing.assert_array_equal(explanation.stands_for, np.ones(explanation.rows.shape))
    assert classifier.describe().to_frame()["evidence"].notna().all()


@pytest.mark.parametrize("case", CASES)
def test_a_file_holds_the_drawn_rows_and_the_same_model(fitted, case, tmp_path):
    X, y, groups = make_rings(case, 0)
    new = make_rings(case, 3)[0][:20]
    save_model(fitted[case], tmp_path / "drawn.corral")
    loaded = load_model(tmp_path / "drawn.corral")
    assert len(loaded.model_.training.X) == 2 * MAX_ROWS + 40
    for method in ("predict_log_proba", "typicality", "predict_set"):
        found, expected = (getattr(of, method)(new) for of in (loaded, fitted[case]))
        np.testing.assert_array_equal(found, expected)
    found, expected = (of.explain(new[:3]) for of in (loaded, fitted[case]))
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.evidence, expected.evidence)
    np.testing.assert_array_equal(found.group_share, expected.group_share)
    np.testing.assert_array_equal(loaded.class_count_, SIZES)
    write_report(tmp_path / "report.html", loaded, new[:3])
    with pytest.raises(ValueError, match="partial_fit needs the 740 rows of the fit, of which the model has"):
        loaded.partial_fit(X, y, groups=groups)


def test_gaps_that_no_drawn_row_has():
    X, y, _ = make_rings("groups", 0)
    X.iloc[4, 2] = np.nan
    classifier = CorralClassifier(max_rows=MAX_ROWS, random_state=0).fit(X, y)
    assert np.bincount(classifier.model_.data.codes).tolist() == [MAX_ROWS, MAX_ROWS, 40]
    assert not classifier.model_.data.mixed
    assert np.isfinite(classifier.predict_log_proba(X[4:5])).all()


def test_values_that_no_drawn_row_has_count(tmp_path):
    X, y, _ = make_rings("mixed", 0)
    seldom = np.full(len(X), np.nan)
    seldom[np.flatnonzero(y == "outer")[:4]] = [1.0, 2.0, 1.5, 1.2]
    no_level = pd.Categorical([None] * len(X), ["p", "q"])
    X = X.assign(seldom=seldom, never=np.nan, no_level=no_level)
    with pytest.warns(UserWarning, match="value of 'never', 'no_level', which are ignored"):
        classifier = CorralClassifier(max_rows=20, random_state=0).fit(X, y)
    assert np.isnan(classifier.model_.data.X[:, 4]).all()
    save_model(classifier, tmp_path / "drawn.corral")
    new = make_rings("mixed", 3)[0][:5].assign(seldom=np.nan, never=np.nan, no_level=no_level[:5])
    for each in (classifier, load_model(tmp_path / "drawn.corral")):
        found = each.predict_proba(new.assign(seldom=1.2))  # without a warning
        assert (found[:, 1] != each.predict_proba(new)[:, 1]).all()
        assert found[:, 1].mean() > each.predict_proba(new)[:, 1].mean() + 0.01
        with pytest.warns(UserWarning, match="count as missing: 5 of 'never'"):
            found = each.predict_proba(new.assign(never=1.0))
        np.testing.assert_array_equal(found, each.predict_proba(new))


def test_wide_tables_have_as_many_variables_as_they_were_tried_with():
    rng = np.random.default_rng(0)
    y = np.arange(160) % 2
    X = pd.DataFrame(rng.normal(size=(160, 35)) + y[:, np.newaxis]).rename(columns=str)
    X["kind"] = np.where(rng.uniform(size=160) < 0.5, "p", "q")
    classifier = CorralClassifier(max_rows=30, random_state=0).fit(X, y)
    members = classifier.model_.pool.members
    assert {member.classes[0].transform.variables.size for member in members} == {30}


def test_the_sample_is_larger_than_what_is_drawn(monkeypatch, fitted):
    monkeypatch.setattr(corral.data.subsample, "SAMPLE_ROWS", 400)
    few = fit("mixed")
    new = make_rings("mixed", 3)[0][:20]
    np.testing.assert_array_equal(few.model_.data.numbers, fitted["mixed"].model_.data.numbers)
    assert (few.predict_log_proba(new) != fitted["mixed"].predict_log_proba(new)).any()


@pytest.mark.parametrize("case", CASES)
def test_a_cluster_draws_rows_as_well(case, tmp_path):
    X, y, groups = make_rings(case, 0)
    new = make_rings(case, 3)[0][:20]
    first, second = (
        DaskCorralClassifier(max_rows=MAX_ROWS, random_state=0, block_rows=n).fit(X, y, groups=groups)
        for n in (200, 331)
    )
    found = (each.predict_log_proba(new) for each in (first, second))
    np.testing.assert_allclose(*found, rtol=1e-10, atol=1e-10)
    model = first.model_
    assert np.bincount(model.data.codes).tolist() == [MAX_ROWS, MAX_ROWS, 40]
    np.testing.assert_array_equal(model.data.labels[model.data.codes], y[model.data.numbers])
    assert first.score(X, y) > 0.9
    local = first.to_local()
    save_model(local, tmp_path / "drawn.corral")
    loaded = load_model(tmp_path / "drawn.corral")
    np.testing.assert_array_equal(loaded.predict_log_proba(new), first.predict_log_proba(new))
    np.testing.assert_array_equal(loaded.explain(new[:2]).rows, first.explain(new[:2]).rows)
