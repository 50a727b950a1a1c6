"""Evidence that adds up: contributions of variables to log odds, against all orders in plain loops."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit, softmax
from sklearn.base import clone

import paper_oracle
from corral import CorralClassifier, RodeoClassifier
from corral.estimators.evaluated_rows import evaluate_rows
from corral.evidence import explainers
from corral.evidence import log_odds as evidence
from corral.evidence.explainers import explainer_of
from corral.evidence.log_odds import explanation_coalitions, row_evidence, strongest_rivals
from corral.evidence.support import largest_shares
from corral.parallel import Computation
from corral.posterior import log_probability, mixing_factors
from corral.shapley import Coalitions
from evidence import evidence_oracle

pytestmark = pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")

ALONE = Computation(1, 0)
UNEQUAL = {"priors": [0.5, 0.2, 0.3]}
# No bandwidth shrinks.
INITIAL = {"scale": None, "bandwidth": "class", "min_bandwidth": 100.0}


def three_classes(seed=0, d=4, n=14):
    """Classes that lie apart in one column each, with correlated columns."""
    random = np.random.RandomState(seed)
    y = np.repeat([0, 1, 2], [n, n + 2, n + 5])
    X = random.normal(size=(y.size, d))
    X[:, 1] += 0.8 * X[:, 0]
    for k in range(3):
        X[y == k, k] += 1.5
    return X, y


def codes_of(model, explanation):
    """Numbers of the labels and of their rivals."""
    return (np.searchsorted(model.classes_, labels) for labels in (explanation.label, explanation.rival))


def adds_up(model, X, explanation):
    """Compare the sum with the predicted log odds."""
    log_proba = model.predict_log_proba(X)
    rows, (label, rival) = np.arange(len(X)), codes_of(model, explanation)
    log_odds = log_proba[rows, label] - log_proba[rows, rival]
    assert_allclose(explanation.base + explanation.evidence.sum(axis=1), log_odds, rtol=1e-9, atol=1e-9)
    assert_array_equal(explanation.log_odds, explanation.base + explanation.evidence.sum(axis=1))
    assert np.isfinite(explanation.evidence).all()
    assert (explanation.evidence_error >= 0.0).all()


def by_predictions(model, samples, explanation, i):
    """Contributions by all orders, from what is predicted for sample i with missing values.

    They divide log odds without prior mixing, and are shrunk so that they add up to the predicted log odds.
    """
    row, d = samples[i : i + 1], samples.shape[1]
    sets = [frozenset(s) for k in range(d + 1) for s in itertools.combinations(range(d), k)]
    if isinstance(samples, pd.DataFrame):
        rows = pd.concat([row] * len(sets), ignore_index=True)
        for j, column in enumerate(rows.columns):
            rows[column] = rows[column].where([j in members for members in sets])
    else:
        rows = np.array([[x if j in members else np.nan for j, x in enumerate(row[0])] for members in sets])
    label, rival = (codes[i] for codes in codes_of(model, explanation))
    log_proba = model.predict_log_proba(rows)
    joint = model.model_.joint(evaluate_rows(model, rows).estimates.log_density)
    predicted, unmixed = (each[:, label] - each[:, rival] for each in (log_proba, joint))
    values = dict(zip(sets, unmixed, strict=True))
    difference = unmixed[-1] - unmixed[0]
    factor = (predicted[-1] - predicted[0]) / difference if abs(difference) > 1e-9 else 1.0
    assert 0.0 < factor < 1.0 + 1e-6
    return factor * np.array(evidence_oracle.shapley(values.__getitem__, list(range(d))))


# ------------------------------------------------------------------------------------- all sets, d <= 8


@pytest.mark.parametrize("more", [{}, UNEQUAL], ids=["uniform", "unequal"])
@pytest.mark.parametrize("features", ["all", "selected"])
@pytest.mark.parametrize("scale", ["range", "rank"])
def test_exact_evidence_with_the_bandwidths_of_the_sample(scale, features, more):
    X, y = three_classes()
    model = RodeoClassifier(scale=scale, features=features, cutpoint=-0.5, **more).fit(X, y)
    samples = X[::11] - 0.1
    samples[1, 2] = np.nan
    explanation, h = model.explain(samples), model.local_bandwidths(samples)
    label, rival = codes_of(model, explanation)
    scaled, x = (model.model_.scale.transform(rows) for rows in (X, samples))
    ranges = np.ptp(scaled, axis=0)
    for i in range(len(samples)):

        def log_density(a, coalition, i=i):
            used = model.relevant_[a] if features == "selected" else np.ones(4, dtype=bool)
            h_known = [h[i, a, j] if used[j] and j in coalition else np.inf for j in range(4)]
            uniform = sum(np.log(ranges[j]) for j in coalition if not used[j])
            return paper_oracle.kernel_log_density(scaled[y == a], x[i], h_known) - uniform

        def log_odds(coalition, i=i, log_density=log_density):
            P = paper_oracle.posterior([log_density(a, coalition) for a in range(3)], model.class_prior_)
            return np.log(P[label[i]]) - np.log(P[rival[i]])

        given = ~np.isnan(samples[i])
        expected = evidence_oracle.shapley(log_odds, np.flatnonzero(given).tolist())
        assert_allclose(explanation.evidence[i, given], expected, rtol=1e-8, atol=1e-9)
        assert_array_equal(explanation.evidence[i, ~given], 0.0)


@pytest.fixture(scope="module")
def pool():
    X, y = three_classes(d=5, n=30)
    return CorralClassifier(random_state=0).fit(X, y), X


def test_exact_evidence_of_a_pool(pool):
    model, X = pool
    kinds = {m.has_covariances for member in model.model_.pool.members for m in member.classes}
    assert kinds == {True, False}  # along variances and along covariances
    samples = np.vstack([X[::30] + 0.1, [[9.0, -7.0, 0.0, 30.0, 0.0]]])
    samples[1, 3] = np.nan
    explanation = model.explain(samples)
    for i in range(len(samples)):
        expected = by_predictions(model, samples, explanation, i)
        assert_allclose(explanation.evidence[i], expected, rtol=1e-7, atol=1e-8)
    assert explanation.evidence[1, 3] == 0.0
    adds_up(model, samples, explanation)


@pytest.fixture(scope="module")
def table():
    """Measurements and categories with missing values, and labels that depend on them."""
    random = np.random.RandomState(0)
    y = np.repeat(["a", "b", "c"], 40)
    X = random.normal(size=(120, 3))
    X[:, 0] += 1.5 * (y == "a")
    X[:, 1] += X[:, 0] + (y == "b")
    X[random.uniform(size=X.shape) < 0.1] = np.nan
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    frame["colour"] = np.where(random.uniform(size=120) < np.where(y == "c", 0.8, 0.3), "red", "blue")
    frame.loc[random.uniform(size=120) < 0.1, "colour"] = None
    return frame, y


@pytest.mark.parametrize(
    "model",
    [
        RodeoClassifier(bandwidth="class"),
        RodeoClassifier(bandwidth="class", features="selected", scale="rank"),
        RodeoClassifier(bandwidth="class", features="selected", cutpoint=-0.5, **UNEQUAL),
        CorralClassifier(random_state=0),
    ],
    ids=["class", "selected", "unequal", "pool"],
)
def test_exact_evidence_of_missing_values_and_categories(table, model):
    frame, y = table
    model.fit(frame, y, np.linspace(0.5, 2.0, len(y)))
    samples = frame.iloc[[0, 50, 100]].copy()
    samples.iloc[0, 1] = np.nan
    explanation = model.explain(samples)
    adds_up(model, samples, explanation)
    assert_array_equal(explanation.evidence_error, 0.0)
    label, rival = codes_of(model, explanation)
    assert_allclose(
        explanation.base, np.log(model.class_prior_[label] / model.class_prior_[rival]), atol=1e-12
    )
    for i in range(len(samples)):
        expected = by_predictions(model, samples, explanation, i)
        assert_allclose(explanation.evidence[i], expected, rtol=1e-7, atol=1e-8)
        assert_array_equal(explanation.evidence[i][samples.iloc[i].isna()], 0.0)


def test_evidence_where_products_of_factors_underflow():
    random = np.random.RandomState(0)
    X = random.normal(size=(20, 5))
    y = np.repeat([0, 1], 10)
    model = RodeoClassifier(**INITIAL, c0=0.05).fit(X, y)
    samples = np.array([[8.0, -9.0, 7.0, 8.0, -6.0], [0.1, 0.2, 9.0, 0.0, 0.1]])
    explanation = model.explain(samples)
    for i in range(len(samples)):
        expected = by_predictions(model, samples, explanation, i)
        assert np.abs(expected).max() > 100.0
        assert_allclose(explanation.evidence[i], expected, rtol=1e-9, atol=1e-7)


# -------------------------------------------------------------------------------------------- sums


@pytest.mark.parametrize(
    ("bandwidth", "features", "scale", "more"),
    [
        ("local", "all", "range", {}),
        ("class", "all", "range", UNEQUAL),
        ("local", "selected", "standard", UNEQUAL),
        ("class", "selected", "standard", {}),
        ("local", "selected", "rank", {}),
        ("class", "all", "rank", UNEQUAL),
        ("local", "all", None, UNEQUAL),
        ("class", "selected", None, {}),
    ],
)
def test_evidence_adds_up_to_the_log_odds(bandwidth, features, scale, more):
    X, y = three_classes(d=12)
    model = RodeoClassifier(bandwidth=bandwidth, features=features, scale=scale, cutpoint=-0.5, **more)
    model.fit(X, y)
    samples = np.vstack([X[::5], X[:2] + 100.0, X[2:3] * 1e6])
    samples[1, [0, 5]] = np.nan
    samples[2] = np.nan
    explanation = model.explain(samples)
    adds_up(model, samples, explanation)
    assert_array_equal(explanation.evidence[np.isnan(samples)], 0.0)
    assert_array_equal(explanation.evidence_error[np.isnan(samples)], 0.0)
    adds_up(model, samples, model.explain(samples, against=1))


def test_evidence_of_a_pool_adds_up_with_many_variables(table):
    random = np.random.RandomState(1)
    frame, y = table
    wide = pd.concat([frame, pd.DataFrame(random.normal(size=(120, 10)))], axis=1)
    wide.columns = wide.columns.astype(str)
    model = CorralClassifier(random_state=0).fit(wide, y)
    explanation = model.explain(wide)
    adds_up(model, wide, explanation)
    assert_array_equal(explanation.evidence[wide.isna().to_numpy()], 0.0)
    assert explanation.evidence_error.max() > 0.0


def test_odds_that_are_infinite_leave_nothing_to_the_variables():
    X, y = three_classes()
    improbable = RodeoClassifier(priors=[0.5, 0.5, 0.0]).fit(X, y)
    without_rows = RodeoClassifier().partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    for model in (improbable, without_rows):
        explanation = model.explain(X[:4], against=2)
        assert_array_equal(explanation.base, np.inf)
        assert_array_equal(explanation.evidence, 0.0)
        assert_array_equal(explanation.log_odds, np.inf)


@pytest.mark.parametrize(
    "model", [RodeoClassifier(), CorralClassifier(random_state=0)], ids=["local", "pool"]
)
def test_labels_by_priors_alone_have_the_odds_of_the_priors(model):
    """All classes with rows have a prior of 0, and the others no density: no set of variables has odds."""
    X, y = three_classes()
    two, rows = y < 2, X[:3]
    for priors, odds in (([0.0, 0.0, 1.0], np.inf), ([0.0, 0.0, 0.75, 0.25], np.log(3.0))):
        model = clone(model).set_params(priors=priors)
        model.partial_fit(X[two], y[two], classes=np.arange(len(priors)))
        explanation = model.explain(rows)
        assert_array_equal(explanation.label, 2)
        assert_allclose(explanation.base, odds, rtol=1e-12)
        assert_array_equal(explanation.evidence, 0.0)
        adds_up(model, rows, explanation)


# ------------------------------------------------------------------------------------------ axioms


@pytest.mark.parametrize("d", [0, 1, 2, 5])
def test_contributions_are_means_over_all_orders(d):
    coalitions = Coalitions.all(np.arange(d), d)
    v = np.random.RandomState(0).normal(size=(3, len(coalitions.members)))
    contributions, error = coalitions.contributions(v)
    for sample_contributions, values in zip(contributions, v, strict=True):
        numbers = {frozenset(np.flatnonzero(s)): i for i, s in enumerate(coalitions.members)}
        expected = evidence_oracle.shapley(
            lambda s, numbers=numbers, values=values: values[numbers[s]], list(range(d))
        )
        assert_allclose(sample_contributions, expected, rtol=1e-12, atol=1e-13)
    assert_array_equal(error, 0.0)
    assert_allclose(contributions.sum(axis=1), v[:, -1] - v[:, 0], atol=1e-12)


def test_pairs_of_orders_are_exact_where_two_variables_interact():
    d = 14
    random = np.random.RandomState(0)
    main, pairs = random.normal(size=d), np.triu(random.normal(size=(d, d)), 1)
    coalitions = Coalitions.sampled(np.arange(d), d, 3)
    members = coalitions.members.astype(float)
    v = members @ main + np.vecdot(members @ pairs, members)
    contributions, error = coalitions.contributions(v[np.newaxis])
    assert_allclose(contributions[0], main + 0.5 * (pairs.sum(axis=0) + pairs.sum(axis=1)), rtol=1e-10)
    assert_allclose(error, 0.0, atol=1e-12)


# ------------------------------------------------------------------------------------ random orders


def odds_of(model, X, coalitions=None):
    explainer = explainer_of(model.model_, X, ALONE)
    log_density = explainer.estimates.log_density
    label = model.model_.posterior(log_density).argmax(axis=1)
    rival = strongest_rivals(model.model_.joint(log_density), label)
    return row_evidence(explainer, label, rival, coalitions or explanation_coalitions(explainer))


def test_random_orders_agree_with_all_sets():
    X, y = three_classes(d=12)
    model = RodeoClassifier(bandwidth="class").fit(X, y)
    exact = odds_of(model, X, Coalitions.all(np.arange(12), 12))
    sampled = odds_of(model, X)
    assert_array_equal(exact.error, 0.0)
    assert sampled.error.min() > 0.0
    z = (sampled.evidence - exact.evidence) / sampled.error
    assert 0.5 < np.sqrt(np.mean(z**2)) < 2.0
    assert np.abs(z).max() < 8.0  # of 600, with 20 pairs of orders
    assert_allclose(sampled.evidence.sum(axis=1), exact.evidence.sum(axis=1), rtol=1e-9, atol=1e-9)


def test_large_tables_take_fewer_orders_which_are_the_same_every_time():
    players = np.arange(12)
    first, second = (Coalitions.choose(players, 12, 100).orders for _ in range(2))
    assert len(first) == 40
    assert_array_equal(first, second)
    assert_array_equal(first[0], first[1, ::-1])
    for n_kernels in (10**9, np.inf):
        assert len(Coalitions.choose(players, 12, n_kernels).orders) == 8
    assert Coalitions.choose(players[:10], 12, 10**9).exact
    assert not Coalitions.choose(players[:11], 12, 10**9).exact


# -------------------------------------------------------------------------------- the same numbers


def test_mixing_factors_lead_from_unmixed_to_mixed_log_odds():
    """Also where the label is far more probable than all others, and where label and rival are equal."""
    log_density = np.random.RandomState(0).normal(size=(6, 3)) * [
        [1.0],
        [10.0],
        [1000.0],
        [1e6],
        [1.0],
        [1.0],
    ]
    log_density[4, 1] = log_density[4, 2]
    log_density[5, 1] = log_density[5, 2] + 1e-5
    prior, label, rival = np.array([0.2, 0.3, 0.5]), np.full(6, 1), np.full(6, 2)
    joint, rows = log_density + np.log(prior), np.arange(6)
    base = np.log(prior[label] / prior[rival])
    for prior_mixing in (0.0, 1e-6, 0.01, 0.5, 0.999):
        mixed = log_probability(joint, prior, prior_mixing)
        expected = mixed[rows, label] - mixed[rows, rival]
        factor = mixing_factors(log_density, prior, prior_mixing, label, rival)
        assert ((factor >= 0.0) & (factor <= 1.0)).all()
        divided = factor * (log_density[rows, label] - log_density[rows, rival])
        assert_allclose(base + divided, expected, rtol=1e-9, atol=1e-12)
        middle = expit(
            joint[4, 1] - np.log(np.exp(joint[4]).sum()) - np.log(prior[1]) + logit(1.0 - prior_mixing)
        )
        assert_allclose(factor[4], middle, rtol=1e-9)  # the slope of the odds


def test_threads_change_no_bit_and_blocks_no_number(pool, monkeypatch):
    model, X = pool
    with_missing = X[:40].copy()
    with_missing[::3, 1] = np.nan
    unblocked = model.explain(with_missing)
    monkeypatch.setattr(explainers, "_MOST_TERMS", 1000)
    monkeypatch.setattr(evidence, "_MOST_VALUES", 1500)
    expected = model.explain(with_missing)
    model.n_jobs = 3
    explanation = model.explain(with_missing)
    model.n_jobs = None
    for name in ("base", "evidence", "evidence_error", "conditional", "effective_rows"):
        assert_array_equal(getattr(explanation, name), getattr(expected, name))
        assert_allclose(getattr(explanation, name), getattr(unblocked, name), rtol=1e-10, atol=1e-10)


# ---------------------------------------------------------------------------------- where it rests


def test_effective_rows_and_cautions():
    X = np.array([[0.0], [0.1], [5.0], [5.1], [5.2], [5.3], [9.0], [9.1], [9.2]])
    y = np.array(["a", "a", "b", "b", "b", "b", "c", "c", "c"])
    groups = np.array([0, 1, 2, 2, 3, 4, 5, 5, 5])
    model = RodeoClassifier(**INITIAL, c0=0.5).fit(X, y)
    explanation = model.explain([[5.15], [0.05]], n_rows=10)
    shares = explanation.shares[0, :4]
    assert_allclose(explanation.effective_rows[0], 1.0 / (shares**2).sum(), rtol=1e-12)
    assert 3.0 < explanation.effective_rows[0] <= 4.0
    assert_allclose(explanation.group_share[0], shares.max(), rtol=1e-12)
    assert explanation.caution(0) == ""
    grouped = RodeoClassifier(**INITIAL, c0=0.5).fit(X, y, groups=groups)
    grouped_explanation = grouped.explain([[5.0], [9.1]])
    both = grouped_explanation.shares[0][np.isin(grouped_explanation.rows[0], [2, 3])].sum()
    assert_allclose(grouped_explanation.group_share, [both, 1.0], rtol=1e-12)
    assert grouped_explanation.caution(1) == ""  # so few rows have no usual share


@pytest.fixture(scope="module")
def crowd():
    """Two classes of forty rows, one of which has a row far from the others."""
    X = np.concatenate([np.linspace(0.0, 1.0, 40), np.linspace(3.0, 4.0, 39), [9.0]])[:, np.newaxis]
    return pd.DataFrame(X, columns=["x"], index=[f"p{i}" for i in range(80)]), np.repeat(["a", "b"], 40)


def test_a_label_that_rests_on_one_row_is_unusual(crowd):
    X, y = crowd
    model = RodeoClassifier(**INITIAL, c0=0.1).fit(X, y)
    explanation = model.explain(pd.DataFrame({"x": [9.01, 0.5]}))
    assert explanation.rests_on_few.tolist() == [True, False]
    sentence = "the label rests on one training row: 100% of the class density comes from p79"
    sentence += ", a larger part than at 95 in 100 training rows"
    assert explanation.caution(0) == sentence
    assert explanation.caution(1) == ""
    assert f"caution:  {sentence}" in repr(explanation)
    assert explanation.sentences(0)["caution"] == f"Caution: {sentence}."


def test_labels_of_few_groups_need_no_caution(crowd):
    X, y = crowd
    groups = np.tile([0, 1], 40)  # one of the two must have half of each density
    model = RodeoClassifier(**INITIAL, c0=0.1).fit(X, y, groups=groups)
    explanation = model.explain(X[::3] + 0.003)
    assert (explanation.group_share > 0.5).all()
    assert not explanation.rests_on_few.any()
    paired = RodeoClassifier(**INITIAL, c0=0.1).fit(X, y, groups=np.arange(80) // 2)
    assert paired.explain(pd.DataFrame({"x": [9.01, 0.5]})).rests_on_few.tolist() == [True, False]


def test_largest_shares_leave_rows_and_their_groups_out(crowd):
    X, y = crowd
    for groups in (None, np.arange(80) // 5):
        model = RodeoClassifier(**INITIAL, c0=0.1).fit(X, y, groups=groups).model_
        largest = -largest_shares(model, Computation()).values[::-1]
        h, data = model.bandwidths.initial, model.data
        expected = []
        for i, (x, a) in enumerate(zip(data.X, data.codes, strict=True)):
            others = (data.codes == a) & (data.group_ids != data.group_ids[i])
            shares = softmax(-0.5 * ((data.X[others] - x)[:, 0] / h[a]) ** 2)
            by_group = pd.Series(shares).groupby(data.group_ids[others]).sum()
            expected.append(by_group.max())
        assert_allclose(np.sort(largest), np.sort(expected), rtol=1e-7)


# ------------------------------------------------------------------- samples that are training rows


def test_a_training_row_gets_no_caution_because_of_itself(crowd):
    X, y = crowd
    for groups in (None, np.arange(80) // 2):
        model = RodeoClassifier(**INITIAL, c0=0.1).fit(X, y, groups=groups)
        explanation = model.explain(pd.concat([X[-1:], X[-1:] + 0.01]))
        assert (explanation.group_share > 0.99).all()
        assert explanation.caution(0) == ""
        assert explanation.caution(1).startswith("the label rests on one training row: 100% of the")
        assert explanation.equal[:, 0].tolist() == [True, False]
        assert explanation.equal.sum() == 1
        assert "density: p79, equal to this row (100%), p78 (" in explanation.sentences(0)["nearest"]
        assert "density: p79 (100%), p78 (" in explanation.sentences(1)["nearest"]
        assert "closest:  p79, equal to this row (100%), p78 (" in repr(explanation)


def test_a_training_row_gets_a_caution_because_of_another_row(crowd):
    """The row that equals it has the other label, or hardly any weight."""
    X, y = crowd
    X = pd.concat([X, X[-1:].rename({"p79": "twin"}) + 0.005])
    model = RodeoClassifier(**INITIAL, c0=0.1)
    weights = np.append(np.ones(80), 0.01)
    light = model.fit(X, np.append(y, "b"), weights).explain(X[-1:])
    assert light.caution(0).startswith("the label rests on one training row: 99% of the")
    assert light.sentences(0)["nearest"].endswith(
        "density: p79 (99%), twin, equal to this row (1%), p78 (0%), p77 (0%), p76 (0%)."
    )
    other = model.fit(X, np.append(y, "a"), weights).explain(X[-1:])
    assert other.label[0] == "b"
    assert other.caution(0).startswith("the label rests on one training row: 100% of the")
    assert not other.equal.any()


def test_equal_rows_miss_the_same_values(crowd):
    X, y = crowd
    X = X.assign(z=np.where(np.arange(80) % 2 == 0, X["x"] ** 2, np.nan))
    explanation = (
        RodeoClassifier(**INITIAL, c0=0.1).fit(X, y).explain(X.assign(z=X["z"].where(X.index != "p6")))
    )
    own = explanation.rows == np.arange(80)[:, np.newaxis]
    assert own.sum() > 70
    own[6] = False
    assert_array_equal(explanation.equal, own)
