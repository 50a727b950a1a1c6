"""Variables that make samples unlike the nearest class, and groups that rows leave out of evidence."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

import paper_oracle
from corral import CorralClassifier, RodeoClassifier
from corral.data.dataset import LabelledRows, TrainingRows
from corral.evidence.explainers import explainer_of
from corral.model import Examples
from corral.parallel import Computation
from corral.pool.categories import CategoryCounts, learn_category_kernels
from corral.shapley import Coalitions
from evidence import evidence_oracle
from pool import pool_oracle

ALONE = Computation(1, 0)

KINDS = {
    "local": RodeoClassifier(),
    "class": RodeoClassifier(bandwidth="class", scale="standard"),
    "raw": RodeoClassifier(bandwidth="class", scale=None),
    "selected": RodeoClassifier(bandwidth="class", features="selected", cutpoint=-0.5),
    "pool": CorralClassifier(random_state=0),
}


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="module", params=KINDS)
def fitted(request, iris):
    return KINDS[request.param].fit(iris[0][::2], iris[1][::2])


def some_rows(n=24, seed=0):
    """Rows of two classes in short fractions."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [n // 2, n - n // 2])
    X = rng.normal(size=(n, 3)) + 2.0 * np.eye(3)[y]
    return np.round(X * 64.0) / 64.0, y


# --------------------------------------------------------------------------------------- novelty parts


@pytest.mark.parametrize("case", ["plain", "weights", "groups", "missing"])
def test_novelty_parts_against_loops(case):
    X, y = some_rows()
    weights = np.random.default_rng(1).choice([0.5, 1.0, 2.0], len(X)) if case == "weights" else None
    groups = np.arange(len(X)) // 2 if case == "groups" else None
    model = RodeoClassifier(bandwidth="class", scale=None, min_bandwidth=100.0).fit(X, y, weights, groups)
    data = model.model_.data
    m = np.ones(len(data.X)) if data.weights is None else data.weights
    samples = np.vstack([X[[0, 20]] + 0.25, X[:2] + np.array([9.0, 0.0, 0.5])])
    if case == "missing":
        samples[0, 1] = samples[3, 0] = np.nan
    explanation = model.explain(samples)
    assert_array_equal(explanation.novel, model.is_novel(samples))
    scores = model.assess(samples).scores
    spread = model.model_.trust.judge(samples, model.model_.log_densities(samples, ALONE), ALONE).spread
    for k, x in enumerate(samples):
        a = int(scores[k].argmax())
        assert explanation.nearest[k] == a
        assert explanation.typicality[k] == model.typicality(samples)[k, a]
        h = float(model.initial_bandwidth_[a])

        def log_density(i, coalition, x=x, a=a, h=h):
            left = data.codes == a
            if i is not None:
                x, left = data.X[i], left & (data.group_ids != data.group_ids[i])
            h_known = [h if j in coalition else np.inf for j in range(3)]
            return paper_oracle.kernel_log_density(data.X[left], x, h_known, weights=m[left])

        expected = evidence_oracle.novelty_parts(
            data.X, data.codes, data.group_ids, m, a, x, log_density, spread[k]
        )
        assert_allclose(explanation.novelty_parts[k], expected, rtol=1e-9, atol=1e-9)


def test_novelty_parts_add_up_to_the_score(fitted, iris):
    samples = iris[0][1::2] + 0.3
    explanation, scores = fitted.explain(samples), fitted.assess(samples).scores
    total = explanation.novelty_parts.sum(axis=1) + scores.max(axis=1)
    for a in np.unique(explanation.nearest):
        assert np.ptp(total[explanation.nearest == a]) < 1e-7
    assert_array_equal(fitted.classes_[scores.argmax(axis=1)], explanation.nearest)


@pytest.mark.parametrize("j", [0, 3])
def test_a_value_far_away_is_what_makes_a_sample_unlike(fitted, iris, j):
    samples = iris[0][1::30].copy()
    samples.isetitem(j, samples.iloc[:, j] + 10.0 * iris[0].std().iloc[j])
    explanation = fitted.explain(samples)
    assert explanation.novel.all()
    shown = str(explanation).split("sample ")[1:]
    assert len(shown) == len(samples)
    for i, text in enumerate(shown):
        assert explanation.unlike(i)[0] == j
        assert (
            "\n  novel:    less typical than 99 in 100 training rows; the row differs from "
            f"{explanation.nearest[i]}, the nearest class" in text
        )
        assert f"class, most in {samples.columns[j]} = {samples.iloc[i, j]:.4g}" in text


def test_a_value_beyond_the_range_looks_different_from_its_end(fitted, iris):
    explanation = fitted.explain(iris[0][1:2])
    ends, nearest = np.array([[[1.0] * 4, [52.371] * 4]]), explanation.nearest[0]
    for value, sentence in (
        (52.373, f"52.373 ({nearest} from 1 to 52.371)"),
        (123456.0, f"123456 ({nearest} from 1 to 52.37)"),
    ):
        far = {"values": np.full((1, 4), value), "nearest_range": ends, "novel": np.array([True])}
        beyond = replace(explanation, novelty_parts=np.eye(4)[2:3], **far)
        assert beyond.novelty(0).endswith(f"class, most in {explanation.feature_names[2]} = {sentence}")
    typical = f"{fitted.describe().typical[0, 2]:g}"
    assert explanation.nearest[0] == fitted.classes_[0]
    assert beyond.novelty(0, fitted.describe()).endswith(
        f"({explanation.nearest[0]} typically {typical}; from 1 to 52.37)"
    )


def test_a_value_inside_the_range_is_unusual_beside_the_others(fitted, iris):
    explanation = fitted.explain(iris[0][1:2])
    ends, name = np.array([[[1.0] * 4, [10.0] * 4]]), explanation.feature_names[2]
    explanation = replace(
        explanation, novel=np.array([True]), nearest_range=ends, novelty_parts=np.eye(4)[2:3]
    )
    typical = f"{fitted.describe().typical[0, 2]:g}"
    for value in (1.0, 4.5, 10.0):
        inside = replace(explanation, values=np.full((1, 4), value))
        sentence = (
            f"class, most in {name} = {value:g} (setosa from 1 to 10; unusual with the other values of the "
            "row)"
        )
        assert inside.novelty(0).endswith(sentence)
        sentence = f"(setosa typically {typical}; from 1 to 10; unusual with the other values of the row)"
        assert inside.novelty(0, fitted.describe()).endswith(sentence)
        # A training row may be what the range ends with.
        itself = replace(inside, in_training=np.array([True]))
        assert itself.novelty(0).endswith("of the row)" if value == 4.5 else "(setosa from 1 to 10)")
    alone = replace(explanation, values=np.array([[np.nan, np.nan, 4.5, np.nan]]))
    assert alone.novelty(0).endswith("= 4.5 (setosa from 1 to 10)")
    beyond = replace(explanation, values=np.full((1, 4), 10.5))
    assert beyond.novelty(0).endswith(f"{name} = 10.5 (setosa from 1 to 10)")


def test_ordered_categories_have_no_range():
    X, y = some_rows()
    sizes = pd.Categorical(np.tile(["small", "large"], 12), ["small", "middle", "large"], ordered=True)
    table = pd.DataFrame(X, columns=list("abc")).assign(size=sizes)
    explanation = CorralClassifier(random_state=0).fit(table, y).explain(table[:1])
    assert np.isnan(explanation.nearest_range[0, :, 3]).all()
    novel = replace(explanation, novel=np.array([True]), novelty_parts=np.eye(4)[3:])
    assert novel.novelty(0).endswith('class, most in size = "small"')


def test_a_training_row_may_be_novel(fitted, iris):
    """Whichever class it has: here one that the label is not."""
    explanation = fitted.explain(iris[0][:2])
    assert explanation.in_training.tolist() == [True, False]
    novel = replace(explanation, novel=np.array([True, True]), novelty_parts=np.ones((2, 4)))
    assert novel.novelty(0).startswith(
        "less typical than 99 in 100 training rows; the row differs from setosa, "
    )
    assert novel.novelty(1).startswith(
        "less typical than 99 in 100 training rows; the row differs from setosa, "
    )
    alike = replace(novel, novelty_parts=np.zeros(explanation.novelty_parts.shape))
    assert alike.sentences(0)["place"].startswith(
        "This row is novel: less typical than 99 in 100 training rows; the row differs from "
    )
    y = np.where(np.arange(150) == 0, "virginica", iris[1])
    mistaken = CorralClassifier(random_state=0).fit(iris[0], y).explain(iris[0][:1])
    assert mistaken.label[0] == "setosa"
    assert mistaken.in_training[0]
    assert not mistaken.equal.any()


def test_a_sample_that_no_variable_makes_unlike(fitted, iris):
    explanation = fitted.explain(iris[0][1:2] + 100.0)
    alike = replace(explanation, novelty_parts=np.full(explanation.novelty_parts.shape, 0.01))
    many = replace(alike, novelty_parts=np.zeros(explanation.novelty_parts.shape))
    assert alike.novelty(0).count(" = ") == 3
    assert many.novelty(0).endswith(
        f"; the row differs from {explanation.nearest[0]}, the nearest class, a little in all variables"
    )


def test_usual_rows_are_not_said_to_be_novel(fitted, iris):
    explanation = fitted.explain(iris[0][1:2])
    assert explanation.novelty(0) == ""
    assert "novel" not in str(explanation)
    assert_array_equal(explanation.to_frame()["novelty_parts"], explanation.novelty_parts[0])
    alone, among = explanation.novelty_parts[0], fitted.explain(iris[0][:5]).novelty_parts[1]
    assert_allclose(alone, among, rtol=1e-9, atol=1e-12)


def test_a_class_with_one_row():
    X, y = some_rows()
    model = RodeoClassifier().fit(np.vstack([X, [[30.0, 0.0, 0.0]]]), np.append(y, 2))
    explanation = model.explain([[30.0, 0.1, 0.0], [1e8, 0.0, np.nan], [np.nan] * 3])
    assert np.isfinite(explanation.novelty_parts).all()
    assert_array_equal(explanation.novelty_parts[2], 0.0)


# ------------------------------------------------------------------------------- what is left out of evidence


def mixed_rows(seed=0, n=36):
    """Rows with two columns of measurements and two of categories, missing values, weights and groups."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 3, n), rng.integers(0, 12, n)])
    X[rng.random((n, 4)) < 0.15] = np.nan
    return X, rng.integers(0, 3, n), rng.choice([0.5, 1.0, 2.0], n), rng.integers(0, n // 2, n)


def test_frequencies_without_a_group_against_loops():
    X, y, weights, groups = mixed_rows()
    data = LabelledRows.sort(TrainingRows(X, y, weights, np.array([0, 0, 3, 12]), groups))
    points = np.arange(0, len(data.X), 3)
    log_shares = CategoryCounts(data).log_shares_without(data.group_ids[points], data.X[points])
    assert log_shares.shape == (3, points.size, 2)
    for q, i in enumerate(points):
        for k, (j, n_levels) in enumerate([(2, 3), (3, 12)]):
            for a in range(3):
                expected = 0.0
                if not np.isnan(data.X[i, j]):
                    column_rows = data.X[:, j], data.codes, data.group_ids, data.weights, n_levels
                    expected = np.log(
                        pool_oracle.level_share(*column_rows, data.X[i, j], a, data.group_ids[i])
                    )
                assert_allclose(log_shares[a, q, k], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("has_categories", [False, True])
def test_a_pool_leaves_whole_groups_out(has_categories):
    X, y, weights, groups = mixed_rows(4, n=60)
    X = pd.DataFrame(X, columns=list("abcd"))
    if has_categories:
        X = X.assign(c=X["c"].map("level {:.0f}".format, na_action="ignore").astype("category"))
        X = X.assign(d=X["d"].map("name {:.0f}".format, na_action="ignore").astype("category"))
    else:
        X = X.fillna(0.5)
    model = CorralClassifier(random_state=0).fit(X, y, weights, groups).model_
    data, points = model.data, np.array([1, 17, 40])
    coalitions = Coalitions.all(np.arange(4), 4)
    examples = Examples.choose(data, points, points, points)
    explainer = explainer_of(model, examples.X, ALONE, examples=examples)
    for a in range(3):
        log_density = explainer.evaluate_sets(a, np.arange(3), coalitions).log_density
        expected = [without_group(model, a, int(i), coalitions.members) for i in points]
        assert_allclose(log_density, expected, rtol=1e-8, atol=1e-8)


def without_group(model, a, i, sets):
    """Log densities of a training row in a class whose members are put together without its group."""
    data = model.data
    left = data.group_ids != data.group_ids[i]
    assert left.sum() < len(left) - 1  # there are others in its group
    incomplete = np.where(sets, data.X[i], np.nan)
    log_density = np.zeros(len(sets))
    for member, weight in zip(model.pool.members, model.pool.weights, strict=True):
        mixture, scaled, x = (
            member.classes[a],
            member.scale.transform(data.X),
            member.scale.transform(incomplete),
        )
        rows_of_class = left[data.codes == a]
        learnt = learn_category_kernels(
            scaled[left], data.codes[left], data.weights[left], 3, data.category_counts, shrunk=True
        )[a]
        categories = learnt._replace(precision=mixture.transform.categories.precision)
        mixture = replace(mixture, transform=replace(mixture.transform, categories=categories))
        for k, values in enumerate(x):
            weights = np.where(rows_of_class, mixture.weights, 0.0)
            log_density[k] += weight * pool_oracle.mixture_log_density(mixture, values, weights)
    return log_density


def test_names_of_rows_are_no_evidence():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    X = pd.DataFrame({"a": rng.normal(size=120) + 1.5 * y, "id": [f"i{i}" for i in range(120)]})
    description = CorralClassifier(random_state=0).fit(X, y).describe()
    assert np.abs(description.evidence[:, 1]).max() < 0.2
    assert description.evidence[:, 0].min() > 0.8
    assert "much evidence" not in str(description)
