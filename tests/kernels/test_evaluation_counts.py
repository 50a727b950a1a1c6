"""How many densities `fit`, predictions, `explain` and `write_report` evaluate.

A density is evaluated at one row, in one class, with one bandwidth: for all variables, or for a set of them.
Seconds depend on the machine; these numbers do not.

The limits of `fit` are what the code does today and a few percent more, since minimizers may take a step more
on another machine. Lower them when the code does less. To raise one needs a reason. All others are exact: a
density of a member at a row serves probabilities, typicality and explanations, and what depends on the model
alone is learnt once.
"""

from collections import Counter
from copy import deepcopy
from functools import cache, partial

import numpy as np
import pandas as pd
import pytest

from corral import CorralClassifier, HeldOut, kernels, write_report
from corral.datasets import make_shifted_groups

# Compiled loops that evaluate densities, and which of their arguments has one number for each of them.
ALL_VARIABLES = {
    "kernel_sums": -1,
    "shrunken_log_means": -1,
    "kernel_weights": -1,
    "log_means": -1,
    "descend": -3,
}
SETS_OF_VARIABLES = {"walk_products": -1, "walk_squares": -1}
LOOPS = ALL_VARIABLES | SETS_OF_VARIABLES

pytestmark = pytest.mark.all_divisions  # the limits hold for users

X, Y = make_shifted_groups(30, groups=(1, 4, 5), random_state=0)
X = X[:, :4]
COLOURS = np.where(np.random.default_rng(0).random(len(Y)) < 0.7, Y, 1).astype(str)
FRAME = pd.DataFrame(X).set_axis(list("abcd"), axis=1).assign(colour=COLOURS)
MISSING = FRAME.mask(np.random.default_rng(1).random(FRAME.shape) < 0.1)
TABLES = {"numbers": X, "categories": FRAME, "missing values": MISSING}


@pytest.fixture
def evaluations(monkeypatch):
    """Count densities by the loop that evaluates them."""
    counts = Counter()

    def counted(name, loop, *arguments):
        counts[name] += arguments[LOOPS[name]].size
        return loop(*arguments)

    for name in LOOPS:
        monkeypatch.setattr(kernels, name, partial(counted, name, getattr(kernels, name)))
    return counts


def check(evaluations, *, rows, sets):
    """Compare numbers of densities with their limits: of all variables, and of sets of variables.

    Far fewer than the limit fail as well: the limit is to be lowered, or the loops above are no longer those
    that evaluate densities. Sets are fewer where a density uses some of the variables only.
    """
    numbers = [sum(evaluations[name] for name in loops) for loops in (ALL_VARIABLES, SETS_OF_VARIABLES)]
    for number, limit, least in zip(numbers, (rows, sets), (0.8, 0.4), strict=True):
        assert least * limit <= number <= limit, dict(evaluations)


@pytest.mark.parametrize(
    ("table", "rows", "sets"),
    [("numbers", 150_000, 0), ("categories", 142_000, 0), ("missing values", 148_000, 0)],
    ids=list(TABLES),
)
def test_fit(table, rows, sets, evaluations):
    CorralClassifier(random_state=0).fit(TABLES[table], Y)
    check(evaluations, rows=rows, sets=sets)


@cache
def fit(table):
    return CorralClassifier(random_state=0).fit(TABLES[table], Y)


@pytest.fixture(params=TABLES)
def pool(request):
    """A fitted pool, its table, and how many densities one row takes: one of each member and class."""
    fitted = deepcopy(fit(request.param))  # which has learnt nothing since
    fitted.assess(TABLES[request.param])  # learns what missing values change
    return fitted, TABLES[request.param], len(fitted.members_) * fitted.classes_.size


@pytest.mark.parametrize("method", ["predict_proba", "typicality", "is_novel", "predict_set", "assess"])
def test_predictions_evaluate_each_member_once_at_each_row(method, pool, evaluations):
    fitted, table, per_row = pool
    evaluations.clear()
    getattr(fitted, method)(table[:7])
    check(evaluations, rows=7 * per_row, sets=0)


@pytest.mark.parametrize("k", [1, 7])
def test_explain_evaluates_each_member_once_at_each_row_besides_sets(k, pool, evaluations):
    fitted, table, per_row = pool
    fitted.explain(table)  # learns what depends on the model alone
    evaluations.clear()
    fitted.explain(table[:k])
    # Sets of the label and of its rival, which are two of three classes; the nearest class is one of them.
    check(evaluations, rows=k * per_row, sets=k * per_row * 2 / 3 * 2 ** table.shape[1])


def test_what_depends_on_the_model_is_learnt_once(pool, evaluations):
    fitted, table, per_row = pool
    evaluations.clear()
    fitted.explain(table[:1])
    first = evaluations.total()
    fitted.describe()
    described = evaluations.total() - first
    # Shapley values of all training rows: their score in the class nearest to the row, and their odds in two
    # of three classes, for which rivals are looked for first.
    n_sets = 2 ** table.shape[1]
    assert 0.5 * 30 * per_row // 3 * n_sets <= first <= (per_row + 30 * per_row // 3) * n_sets
    assert 0.3 * len(Y) * per_row * n_sets <= described <= len(Y) * per_row * (2 / 3 * n_sets + 12)
    evaluations.clear()
    assert fitted.describe().evidence is not None
    assert fitted.feature_importances_.max() > 0.0
    assert evaluations.total() == 0


def test_a_report_evaluates_each_member_once_at_each_row(pool, evaluations, tmp_path):
    fitted, table, per_row = pool
    fitted.explain(table)
    fitted.describe()
    evaluations.clear()
    write_report(fitted, table[::3], Y[::3], tmp_path / "report.html")
    n_shown, n_numbers = len(table[::3]), X.shape[1]
    typical, curves = len(Y) * per_row, 49 * 3 * n_numbers  # of all training rows, and on grids
    n_sets = 2 ** table.shape[1]
    check(evaluations, rows=n_shown * per_row + typical + curves, sets=n_shown * per_row * n_sets)


def test_a_report_of_folds_evaluates_each_held_out_row_once(evaluations, tmp_path):
    fitted = deepcopy(fit("numbers"))
    fitted.describe()
    folds = HeldOut.of_folds(CorralClassifier(random_state=0), X, Y, cv=3)
    for part in folds.parts:
        part.estimator.explain(X)  # learns what depends on the model alone
    evaluations.clear()
    write_report(fitted, X, Y, tmp_path / "report.html", held_out=folds, max_samples=50)
    typical, curves = len(Y) * len(fitted.members_) * 3, 49 * 3 * X.shape[1]
    most = 50 * 3 * max(len(part.estimator.members_) for part in folds.parts)
    check(evaluations, rows=most + typical + curves, sets=most * 2 ** X.shape[1])


def test_a_report_without_classes_evaluates_the_rows_it_shows(evaluations, tmp_path):
    fitted = deepcopy(fit("numbers"))
    fitted.explain(X)
    fitted.describe()
    evaluations.clear()
    write_report(fitted, X, path=tmp_path / "report.html", max_samples=20)
    per_row = len(fitted.members_) * 3
    typical, curves = len(Y) * per_row, 49 * 3 * X.shape[1]
    check(evaluations, rows=20 * per_row + typical + curves, sets=20 * per_row * 2 ** X.shape[1])
