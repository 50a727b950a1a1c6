"""Explanations against the definition, with exact fractions in place of rounded sums."""

import math
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from corral import CorralClassifier, Explanation, RodeoClassifier
from corral.sentences.rows import reasons
from corral.sentences.scores import most_frequent_error
from support.tables import three_classes

pytestmark = pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")
SCALES = ["range", "standard", "rank", None]
NAMES = np.array(["ant", "bee", "cat"])


@pytest.fixture(scope="module")
def rows():
    return three_classes()


@pytest.fixture(scope="module")
def fitted(rows):
    return RodeoClassifier().fit(*rows)


@pytest.fixture(scope="module")
def named(rows):
    return RodeoClassifier().fit(rows[0], NAMES[rows[1]])


def brute_force(rows, weights, x, h):
    """Per variable, log of the kernel sum with its factor over the one without; and the shares of the rows.

    Exponents are exact and only their differences are rounded, so that samples may be far away.
    """
    terms = [
        [-(((Fraction(x[j]) - Fraction(row[j])) / Fraction(h[j])) ** 2) / 2 for j in range(len(x))]
        for row in rows
    ]
    all_terms = [sum(row) for row in terms]

    def log_sum(exponents):
        """The largest exponent, and for the rest the logarithms of terms and of their sum."""
        largest = max(exponents)
        rest = [math.log(w) + float(e - largest) for e, w in zip(exponents, weights, strict=True)]
        return largest, rest, logsumexp(rest)

    largest, logs, total = log_sum(all_terms)
    conditional = []
    for j in range(len(x)):
        largest_j, _, total_j = log_sum([e - row[j] for e, row in zip(all_terms, terms, strict=True)])
        log_ratio = float(largest - largest_j) + total - total_j
        conditional.append(log_ratio - math.log(h[j] * math.sqrt(2.0 * math.pi)))
    return conditional, [math.exp(log_share - total) for log_share in logs]


def expected_explanation(fitted, X, y, weights, samples, rivals=None):
    """Labels, rivals, conditionals and shares (by training row) from the public results of a classifier."""
    scaled, x = fitted.model_.scale.transform(X), fitted.model_.scale.transform(samples)
    ranges = np.ptp(scaled, axis=0)
    joint = fitted.predict_joint_log_proba(samples)
    h = fitted.local_bandwidths(samples)
    order = np.argsort(-joint, axis=1, kind="stable")
    labels, rivals = order[:, 0], order[:, 1] if rivals is None else rivals
    evidence, shares = np.zeros(samples.shape), np.zeros((len(samples), len(X)))
    for i in range(len(samples)):
        for k, sign in ((labels[i], 1.0), (rivals[i], -1.0)):
            used = fitted.relevant_[k] if fitted.features == "selected" else np.ones(X.shape[1], dtype=bool)
            conditional = -np.log(ranges)
            rows = np.flatnonzero(y == k)
            own, share = brute_force(scaled[rows][:, used], weights[rows], x[i, used], h[i, k, used])
            conditional[used] = own
            evidence[i] += sign * conditional
            if sign > 0:
                shares[i, rows] = share
    return labels, rivals, evidence, shares


def agree(explanation, expected):
    labels, rivals, evidence, shares = expected
    assert_array_equal(explanation.label, labels)
    assert_array_equal(explanation.rival, rivals)
    assert_allclose(explanation.conditional, evidence, rtol=1e-9, atol=1e-9)
    for i in range(len(explanation)):
        rows = explanation.rows[i][explanation.rows[i] >= 0]
        assert_allclose(explanation.shares[i, : rows.size], shares[i, rows], rtol=1e-9, atol=1e-12)
        assert_allclose(explanation.shares[i, : rows.size], np.sort(shares[i])[::-1][: rows.size], atol=1e-12)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bandwidth", ["local", "class"])
@pytest.mark.parametrize("features", ["all", "selected"])
@pytest.mark.parametrize("weighted", [False, True])
def test_conditionals_and_shares_by_brute_force(scale, bandwidth, features, weighted):
    X, y = three_classes()
    random = np.random.RandomState(1)
    weights = random.uniform(0.2, 4.0, len(y)) if weighted else np.ones(len(y))
    classifier = RodeoClassifier(bandwidth=bandwidth, features=features, scale=scale, cutpoint=-0.6)
    fitted = classifier.fit(X, y, weights if weighted else None)
    assert fitted.relevant_.any(axis=1).all()
    assert not fitted.relevant_.all(axis=1).any()
    samples = np.vstack([[X[y == k][0] for k in range(3)], X.mean(axis=0), X.max(axis=0) + 0.5])
    samples[:3] += random.normal(0.0, 0.02, (3, 4))
    explanation = fitted.explain(samples, n_rows=len(y))
    agree(explanation, expected_explanation(fitted, X, y, weights, samples))
    # All rows of the class are listed, so nothing of the class density is missing.
    assert explanation.shares.shape == (5, 17)  # rows of the largest class
    assert_allclose(explanation.shares.sum(axis=1), 1.0, rtol=1e-12)
    for i in range(5):
        listed = explanation.rows[i][explanation.rows[i] >= 0]
        assert_array_equal(np.sort(listed), np.flatnonzero(y == explanation.label[i]))
        assert_array_equal(explanation.shares[i][explanation.rows[i] < 0], 0.0)
    assert (np.diff(explanation.shares, axis=1) <= 0.0).all()
    assert np.unique(explanation.label).size >= 2


def test_explanation_agrees_with_the_predictions(fitted, rows):
    X, _ = rows
    explanation = fitted.explain(X)
    proba, h = fitted.predict_proba(X), fitted.local_bandwidths(X)
    assert isinstance(explanation, Explanation)
    assert len(explanation) == len(X)
    assert explanation.rows.shape == (len(X), 5)  # as many as asked for by default
    assert_array_equal(explanation.label, fitted.predict(X))
    assert_array_equal(explanation.rival, np.argsort(proba, axis=1)[:, 1])
    for i, (a, b) in enumerate(zip(explanation.label, explanation.rival, strict=True)):
        assert_allclose(explanation.probability[i], proba[i, [a, b]], rtol=1e-12)
        assert_array_equal(explanation.bandwidths[i], h[i, [a, b]])
    assert_array_equal(explanation.values, X)
    assert explanation.feature_names == ["x0", "x1", "x2", "x3"]  # columns without names are numbered


# ---------------------------------------------------------------------------------- rows and classes


def test_rows_are_numbered_as_in_fit_where_some_have_no_weight():
    X, y = three_classes()
    weights = np.ones(len(y))
    weights[::3] = 0.0
    fitted = RodeoClassifier(bandwidth="class").fit(X, y, weights)
    explanation = fitted.explain(X, n_rows=3)
    assert (weights[explanation.rows] > 0.0).all()
    assert_array_equal(y[explanation.rows], np.tile(explanation.label[:, np.newaxis], 3))
    kept = np.flatnonzero(weights)
    *expected, shares = expected_explanation(fitted, X[kept], y[kept], weights[kept], X)
    numbered = np.zeros((len(X), len(X)))
    numbered[:, kept] = shares
    agree(explanation, (*expected, numbered))


def test_rows_of_partial_fit_are_numbered_in_order_of_arrival(fitted, rows):
    X, y = rows
    all_terms = fitted.explain(X)
    parts = RodeoClassifier().fit(X[:30], y[:30]).partial_fit(X[30:], y[30:]).explain(X)
    assert_array_equal(parts.rows, all_terms.rows)
    assert_array_equal(parts.shares, all_terms.shares)


def test_weights_count_in_shares_and_equal_rows_keep_their_order():
    # Two rows equally near: the one that counts three times has three quarters.
    X = np.array([[-1.0], [1.0], [9.0], [10.0]])
    fitted = RodeoClassifier(scale=None).fit(X, [0, 0, 1, 1], [1.0, 3.0, 1.0, 1.0])
    explanation = fitted.explain([[0.0]])
    assert_array_equal(explanation.rows, [[1, 0]])
    assert_allclose(explanation.shares, [[0.75, 0.25]], rtol=1e-12)
    X = np.array([[0.0], [0.0], [0.0], [5.0]])
    explanation = RodeoClassifier(scale=None).fit(X, [0, 0, 0, 1]).explain([[0.0]])
    assert explanation.rows.tolist() == [[0, 1, 2]]
    assert_allclose(explanation.shares, 1.0 / 3.0)


def test_a_class_with_fewer_rows_than_asked_for():
    X = np.array([[0.0], [1.0], [1.1], [1.2]])
    explanation = RodeoClassifier(scale=None).fit(X, [0, 1, 1, 1]).explain([[-1.0], [1.1]], n_rows=50)
    assert explanation.rows[0].tolist() == [0, -1, -1]
    assert explanation.shares[0].tolist() == [1.0, 0.0, 0.0]
    assert sorted(explanation.rows[1]) == [1, 2, 3]
    assert explanation.rows[1, 0] == 2
    assert "row -1" not in repr(explanation)
    assert "more samples" not in repr(explanation)
    assert_array_equal(explanation.support_to_frame()["training_row"], [0, *explanation.rows[1]])


def test_against_names_the_rival(fitted, named, rows):
    X, y = rows
    one = named.explain(X, against="cat")
    others = one.label != "cat"
    assert_array_equal(one.rival[others], "cat")
    each = NAMES[(fitted.predict(X) + np.random.RandomState(0).randint(1, 3, len(y))) % 3]
    assert_array_equal(named.explain(X, against=each).rival, each)
    assert_array_equal(named.explain(X, against=each.tolist()).rival, each)
    expected = expected_explanation(fitted, X, y, np.ones(len(y)), X[others][:6], np.full(6, 2))
    assert_allclose(one.conditional[others][:6], expected[2], rtol=1e-9, atol=1e-9)
    # A label is compared with the runner-up rather than with itself.
    by_default, each = named.explain(X), named.explain(X, against=named.predict(X))
    assert 0 < others.sum() < len(X)
    assert_array_equal(one.rival[~others], by_default.rival[~others])
    assert_array_equal(one.evidence[~others], by_default.evidence[~others])
    assert_array_equal(each.rival, by_default.rival)


@pytest.mark.parametrize("bandwidth", ["local", "class"])
def test_a_class_without_rows_is_the_last_rival(bandwidth):
    X, y = three_classes()
    keep = y > 0
    fitted = RodeoClassifier(bandwidth=bandwidth, cutpoint=-0.6)
    fitted.partial_fit(X[keep], y[keep], classes=[0, 1, 2])
    explanation = fitted.explain(X)
    assert set(explanation.label) == set(explanation.rival) == {1, 2}
    # Named, it is compared as if uniform: all that is known of it is the range of the variables.
    against = fitted.explain(X[:5], against=0)
    assert_array_equal(against.rival, 0)
    assert np.isfinite(against.conditional).all()
    assert np.isfinite(against.evidence).all()
    assert_array_equal(against.probability[:, 1], 0.0)
    assert_allclose(against.shares.sum(axis=1) <= 1.0 + 1e-12, True)


def test_one_class_with_rows_has_a_rival_all_the_same():
    X, _ = three_classes()
    for only in (0, 1):
        fitted = RodeoClassifier().partial_fit(X, np.full(len(X), only), classes=[0, 1])
        explanation = fitted.explain(X[:3])
        assert_array_equal(explanation.label, only)
        assert_array_equal(explanation.rival, 1 - only)


def test_only_a_class_without_rows_has_a_prior():
    # The label then has no rows to list.
    X, y = three_classes()
    fitted = RodeoClassifier(priors=[1.0, 0.0, 0.0])
    fitted.partial_fit(X[y > 0], y[y > 0], classes=[0, 1, 2])
    explanation = fitted.explain(X[:2])
    assert_array_equal(explanation.label, 0)
    assert (explanation.rival != 0).all()
    assert_array_equal(explanation.rows, -1)
    assert_array_equal(explanation.shares, 0.0)
    assert np.isfinite(explanation.evidence).all()
    assert len(explanation.support_to_frame()) == 0
    assert "sample 1" in repr(explanation)


# --------------------------------------------------------------------------------------- far samples


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bandwidth", ["local", "class"])
@pytest.mark.parametrize("features", ["all", "selected"])
def test_far_samples_are_explained(scale, bandwidth, features):
    X, y = three_classes()
    fitted = RodeoClassifier(scale=scale, bandwidth=bandwidth, features=features).fit(X, y)
    far = np.vstack([X[0] + 1e6, X[1] - 1e6, X[2] + [1e6, 0.0, 0.0, 0.0], X[3] * 1e300])
    explanation = fitted.explain(far, n_rows=len(y))
    assert np.isfinite(explanation.evidence).all()
    assert np.isfinite(explanation.conditional).all()
    assert np.isfinite(explanation.shares).all()
    assert_allclose(explanation.shares.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("bandwidth", ["local", "class"])
@pytest.mark.parametrize("distance", [1e2, 1e4, 1e6])
def test_conditionals_of_near_variables_where_another_is_far(bandwidth, distance):
    # The exponent of the far variable, up to 1e14, must not swallow the digits of the others. Own scales,
    # so that no rounding of the scale comes between.
    X, y = three_classes()
    X[:, 0] = np.minimum(X[:, 0], 0.5)  # several rows are equally far in it, and share the density
    fitted = RodeoClassifier(scale=None, bandwidth=bandwidth).fit(X, y)
    samples = np.round(X[::8], 1)
    samples[:, 0] += distance
    rivals = np.where(fitted.predict(samples) == 0, 1, 0)
    explanation = fitted.explain(samples, n_rows=len(y), against=rivals)
    expected = expected_explanation(fitted, X, y, np.ones(len(y)), samples, rivals)
    agree(explanation, expected)
    assert explanation.shares[:, 1].max() > 0.1


# ------------------------------------------------------------------------------------- what it shows


@pytest.fixture(scope="module")
def seen(rows):
    frame = pd.DataFrame(rows[0], columns=["length", "width", "height", "weight"])
    return RodeoClassifier().fit(frame, NAMES[rows[1]]).explain(frame.iloc[:7], n_rows=2)


def test_to_frame_has_a_line_per_sample_and_variable(seen):
    frame = seen.to_frame()
    assert frame.shape == (28, 12)
    heads = "sample label rival variable value unknown bandwidth bandwidth_rival evidence evidence_error"
    assert frame.columns.tolist() == [*heads.split(), "conditional", "novelty_parts"]
    assert frame["variable"].tolist() == ["length", "width", "height", "weight"] * 7
    for (i, name), line in frame.set_index(["sample", "variable"]).iterrows():
        j = seen.feature_names.index(name)
        assert (line["label"], line["rival"]) == (seen.label[i], seen.rival[i])
        assert line["value"] == seen.values[i, j]
        assert (line["bandwidth"], line["bandwidth_rival"]) == tuple(seen.bandwidths[i, :, j])
        assert line["evidence"] == seen.evidence[i, j]
        assert (line["evidence_error"], line["conditional"]) == (0.0, seen.conditional[i, j])


def test_support_to_frame_has_a_line_per_sample_and_row(seen):
    frame = seen.support_to_frame()
    assert frame.columns.tolist() == ["sample", "training_row", "share"]
    assert frame["sample"].tolist() == np.repeat(np.arange(7), 2).tolist()
    assert_array_equal(frame["training_row"], seen.rows.ravel())
    assert_array_equal(frame["share"], seen.shares.ravel())


def test_repr_says_which_why_and_by_whom(seen):
    text = repr(seen).splitlines()
    assert len(text) == 5 * 3 + 1
    for i in range(5):
        head, evidence, closest = text[3 * i : 3 * i + 3]
        assert head == (
            f"sample {i}: {seen.label[i]} ({seen.probability[i, 0]:.2f}) "
            f"rather than {seen.rival[i]} ({seen.probability[i, 1]:.2f})"
        )
        j = np.abs(seen.evidence[i]).argmax()
        assert evidence.startswith(f"  evidence: {seen.feature_names[j]} {seen.evidence[i, j]:+.2f}")
        assert f"row {seen.rows[i, 0]}, equal to this row ({seen.shares[i, 0]:.0%})" in closest
    assert text[-1] == "... and 2 more samples"


def test_sentences_are_plain(named, rows):
    explanation = named.explain(rows[0][:1])
    sentence = explanation.sentences(0)
    label, nearest = explanation.label[0], explanation.nearest[0]
    assert sentence["place"].startswith(f"The nearest class is {nearest}. ")
    assert sentence["place"].endswith(f"as one of them, are at most as typical of {nearest} as this row.")
    n_rows = round(explanation.effective_rows[0])
    supporting = f"effectively {n_rows} training row{'s' * (n_rows != 1)}"
    assert sentence["support"] == f"The density of {label} at this row comes from {supporting}."
    assert re.search(
        rf"^(In|Mainly in) favor of {label}: .* = .* \(multiplies the odds of {label} against .* by [\d.]+\)",
        sentence["reasons"],
    )
    assert most_frequent_error("ant", None, 0, 9) == "Every label is right."


# -------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "named_in_error"),
    [
        *(({"n_rows": n_rows}, "n_rows") for n_rows in (0, -1, 2.5, "3", True, None)),
        ({"against": "dog"}, "against.*'dog'"),
        ({"against": ["ant", "dog"]}, "against.*'dog'"),
        ({"against": 7}, "against.*7"),
        ({"against": ["ant", "bee", "cat"]}, "against"),  # for two samples
    ],
)
def test_bad_options_are_named(named, rows, options, named_in_error):
    with pytest.raises(ValueError, match=named_in_error):
        named.explain(rows[0][:2], **options)


def test_rows_that_miss_the_same_variables_share_their_directions(monkeypatch):
    from corral.pool import marginals

    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 4)) @ rng.normal(size=(4, 4)) + y[:, np.newaxis]
    fitted = CorralClassifier(random_state=0).fit(X, y)
    new = np.tile(X[:1], (60, 1)) + rng.normal(size=(60, 4))
    new[::2, 0], new[1::2, 1] = np.nan, np.nan  # two patterns, in turns
    computed = marginals.residual_directions
    calls = []
    monkeypatch.setattr(
        marginals, "residual_directions", lambda *given: calls.append(given) or computed(*given)
    )
    monkeypatch.setattr("corral.evidence.explainers.BLOCK", 1)
    together = fitted.explain(new)
    n_calls = len(calls)
    alone = np.concatenate([fitted.explain(new[i : i + 1]).evidence for i in range(60)])
    np.testing.assert_allclose(together.evidence, alone, atol=1e-10)
    assert 0 < n_calls <= (len(calls) - n_calls) / 20


def test_reasons_are_silent_below_five_percent_and_say_so():
    just_below, just_above = math.log(1.0499), math.log(1.0501)
    sentence = reasons("benign", "malignant", ["V1", "V7"], [1.0, 2.0], [2.0, -just_below])
    assert sentence == (
        "In favor of benign: V1 = 1 (multiplies the odds of benign against malignant by 7.4). "
        "No variable raises the odds of malignant by 5% or more."
    )
    sentence = reasons("benign", "malignant", ["V1", "V7"], [1.0, 2.0], [2.0, -just_above])
    assert sentence.endswith(
        " In favor of malignant: V7 = 2 (multiplies the odds of malignant against benign by 1.1)."
    )
    sentence = reasons("benign", "malignant", ["V1", "V7"], [1.0, 2.0], [just_below, -just_below])
    assert sentence == "No variable raises the odds of benign or of malignant by 5% or more."
