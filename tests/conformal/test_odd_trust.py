"""Typicality, novelty, sets, decisions and explanations of odd tables: right answers, or one sentence."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from corral import CorralClassifier, RodeoClassifier
from corral.parallel import Computation

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of odd tables there are many

KINDS = {
    "pool": CorralClassifier(random_state=0),
    "class": RodeoClassifier(bandwidth="class"),
    "rank": RodeoClassifier(bandwidth="class", scale="rank"),
}
TYPICAL, FAR = [0.1, 0.2, -0.3], [0.0, 1e6, 0.0]
NAN = np.nan


def groups_of_rows(n=12):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], n)
    return rng.normal(size=(3 * n, 3)) + np.array([[0.0, 0.0, 0.0], [5.0, 0.0, 0.0], [0.0, 0.0, 6.0]])[y], y


X, Y = groups_of_rows()
PAIRS, TWO = np.repeat([0, 1], 10), groups_of_rows(2)
MISSING = np.where(np.random.default_rng(1).random(X.shape) < 0.2, NAN, X)

# By name: rows, labels, samples, and which of these are novel.
TABLES = {
    "plain": (X, Y, [TYPICAL, FAR], [0, 1]),
    "all rows equal": (np.ones((20, 3)), PAIRS, [[1.0, 1.0, 1.0], [1.0, 1.0, 2.0]], [0, 1]),
    "rows equal in each class": (
        np.repeat(PAIRS[:, np.newaxis], 3, axis=1),
        PAIRS,
        [[0.0] * 3, [1.0] * 3, [9.0] * 3],
        [0, 0, 1],
    ),
    "class of two": (X[:26], Y[:26], [TYPICAL, FAR], [0, 1]),
    "classes of two": (*TWO, [TWO[0][0], FAR], [0, 1]),
    "constant column": (
        np.column_stack([X, np.full(len(X), 7.0)]),
        Y,
        [[*TYPICAL, 7.0], [*TYPICAL, 7.0 + 1e-9], [*TYPICAL, 8.0], [*TYPICAL, -1e300]],
        [0, 0, 1, 1],
    ),
    "flag never set": (
        np.column_stack([X, np.zeros(len(X))]),
        Y,
        [[*TYPICAL, 0.0], [*TYPICAL, 1.0]],
        [0, 1],
    ),
    "columns twice": (np.hstack([X, X, X]), Y, [TYPICAL * 3, FAR * 3], [0, 1]),
    "missing values": (
        MISSING,
        Y,
        [TYPICAL, [NAN, NAN, NAN], [NAN, 1e6, NAN], [1e6, NAN, 0.0]],
        [0, 0, 1, 1],
    ),
    "column without values": (X * [1.0, NAN, 1.0], Y, [TYPICAL, FAR, [1e6, 0.0, 0.0]], [0, 0, 1]),
    "largest": (X, Y, [TYPICAL, [1e300, 0.0, 0.0], [-1.7e308, 1.7e308, 0.0]], [0, 1, 1]),
    "large numbers": (1e299 * X, Y, [1e299 * np.array(TYPICAL), [1.7e308] * 3], [0, 1]),
    "small numbers": (1e-300 * X, Y, [1e-300 * np.array(TYPICAL), [1.0] * 3, [0.0, 1e300, 0.0]], [0, 1, 1]),
    "denormals": (1e-318 * X, Y, [1e-318 * np.array(TYPICAL), [1.0] * 3], [0, 1]),
    "integers": (
        (10.0 * X).astype(np.int8),
        Y,
        np.array([[0, 2, -3], [127, -128, 127]], dtype=np.int8),
        [0, 1],
    ),
    "large integers": (
        (1e16 * X).astype(np.int64),
        Y,
        np.array([[0, 2 * 10**15, 0], [2**63 - 1, 0, 0], [-(2**63), 0, 0]]),
        [0, 1, 1],
    ),
    "single precision": (  # 0.1 is another number there
        np.column_stack([X, np.full(len(X), 0.1)]),
        Y,
        np.array([[*TYPICAL, 0.1], [*FAR, 0.1]], dtype=np.float32),
        [0, 1],
    ),
}


def check_answers(model, samples):
    """What must hold of all answers, whatever the table; returns which samples are novel."""
    assessment, labels = model.assess(samples), model.predict(samples)
    assert_allclose(assessment.proba.sum(axis=1), 1.0)
    assert not np.isnan(assessment.scores).any()
    for pvalues in (assessment.typicality, assessment.novelty):
        assert ((pvalues > 0.0) & (pvalues <= 1.0)).all()
    assert not model.is_novel(samples, 0.0).any()
    n_rows = model.model_.trust.reference(Computation(1)).best.n
    strangest, n = assessment.novelty <= 0.5 / (1.0 + n_rows), model.classes_.size
    smaller = np.zeros((len(samples), n), dtype=bool)
    for coverage in (0.0, 0.5, 0.95, 1.0):
        sets = model.predict_set(samples, coverage)
        assert_array_equal(sets.any(axis=1), ~strangest)
        assert sets[~strangest].all() or coverage < 1.0
        assert (sets >= smaller).all()
        smaller = sets if coverage > 0.0 else smaller  # at 0 all but one would be empty
    assert_array_equal(model.decide(samples, 1.0 - np.eye(n)), labels)
    assert all(label is None for label in model.decide(samples, 1.0 - np.eye(n), reject_cost=-1.0))
    explained = model.explain(samples)
    assert_array_equal(explained.novel, assessment.is_novel)
    assert np.isfinite(explained.evidence).all()
    assert not np.isnan(explained.novelty_parts).any()
    assert str(explained)
    return assessment.is_novel


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        (table, kind)
        for table in TABLES
        for kind in (KINDS if table in ("plain", "flag never set", "largest") else ("pool", "class"))
    ],
)
def test_answers_of_odd_tables(table, kind):
    rows, labels, samples, expected = TABLES[table]
    model = KINDS[kind].fit(rows, labels)
    with np.errstate(all="raise", under="ignore"):
        novel = check_answers(model, np.asarray(samples))
    assert_array_equal(novel, np.array(expected, dtype=bool))


@pytest.mark.parametrize("kind", ["pool", "class"])
def test_one_row_with_nearly_all_weight(kind):
    weights = np.append(1e9, np.ones(len(X) - 1))
    model = KINDS[kind].fit(X, Y, sample_weight=weights)
    assert_array_equal(check_answers(model, np.array([X[0] + 0.01, FAR])), [False, True])
    assert (model.typicality(X)[:, 0] > 0.49).all()  # one row says little


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_tiny_and_huge_weights_that_are_equal(factor):
    same = KINDS["class"].fit(X, Y, sample_weight=np.full(len(X), factor)).assess(X[:4])
    assert_allclose(same.typicality, KINDS["class"].fit(X, Y).assess(X[:4]).typicality)


def test_groups_of_which_each_class_has_two_and_compressed_classes():
    for model in (
        CorralClassifier(random_state=0).fit(X, Y, groups=np.arange(len(X)) // 6),
        CorralClassifier(random_state=0, max_rows=30).fit(*groups_of_rows(60)),
    ):
        assert_array_equal(check_answers(model, np.array([TYPICAL, FAR])), [False, True])
