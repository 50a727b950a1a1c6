"""How many densities `fit`, `explain` and `write_report` evaluate.

A density is evaluated at one row, in one class, with one bandwidth: for all variables, or for a set of them.
Seconds depend on the machine; these numbers do not.

The limits are what the code does today and a few percent more, since minimizers may take a step more on
another machine. Lower them when the code does less. To raise one needs a reason.
"""

from collections import Counter
from functools import partial

import numpy as np
import pandas as pd
import pytest

from corral import CorralClassifier, kernels, write_report
from corral.datasets import make_shifted_groups

# Compiled loops that evaluate densities, and which of their arguments has one number for each of them.
OF_ALL_VARIABLES = {
    "kernel_sums": -1,
    "unit_sums": -1,
    "pulled_log_means": -1,
    "kernel_weights": -1,
    "mixed_log_means": -1,
    "log_means": -1,
    "general_sums": -3,
    "sweep_sums": -3,
}
OF_SETS_OF_VARIABLES = {"walk_products": -1, "walk_squares": -1, "conditional_sums": -1}
LOOPS = OF_ALL_VARIABLES | OF_SETS_OF_VARIABLES

X, Y = make_shifted_groups(30, groups=(1, 4, 5), random_state=0)
X = X[:, :4]
COLOURS = np.where(np.random.default_rng(0).random(len(Y)) < 0.7, Y, 1).astype(str)
FRAME = pd.DataFrame(X).set_axis(list("abcd"), axis=1).assign(colour=COLOURS)
TABLES = {"numbers": X, "categories": FRAME}


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
    that evaluate densities.
    """
    found = [sum(evaluations[name] for name in loops) for loops in (OF_ALL_VARIABLES, OF_SETS_OF_VARIABLES)]
    for number, limit in zip(found, (rows, sets), strict=True):
        assert 0.8 * limit <= number <= limit, dict(evaluations)


@pytest.mark.parametrize(
    ("table", "rows", "sets"), [("numbers", 150_000, 0), ("categories", 142_000, 0)], ids=list(TABLES)
)
def test_fit(table, rows, sets, evaluations):
    CorralClassifier(random_state=0).fit(TABLES[table], Y)
    check(evaluations, rows=rows, sets=sets)


@pytest.mark.parametrize(
    ("table", "rows", "sets"), [("numbers", 400, 1_800), ("categories", 660, 5_700)], ids=list(TABLES)
)
def test_explain_of_one_row(table, rows, sets, evaluations):
    pool = CorralClassifier(random_state=0).fit(TABLES[table], Y)
    evaluations.clear()
    pool.explain(TABLES[table][:1])
    check(evaluations, rows=rows, sets=sets)


@pytest.mark.parametrize(
    ("table", "rows", "sets"), [("numbers", 7_100, 36_000), ("categories", 10_100, 80_000)], ids=list(TABLES)
)
def test_report_of_thirty_rows(table, rows, sets, evaluations, tmp_path):
    pool = CorralClassifier(random_state=0).fit(TABLES[table], Y)
    evaluations.clear()
    write_report(tmp_path / "report.html", pool, TABLES[table][::3], Y[::3])
    check(evaluations, rows=rows, sets=sets)
