"""Rows that the report marks, on thirty real tables: how many rows, and how often their labels are wrong.

A quarter of the rows of each table is held out, three times. Figures of the held-out rows are

- *the list of the report*: the tenth of the rows, at most twenty, whose predicted label has the smallest
probability. (If
  true classes are recorded, the report uses the probability of the true class instead. That would prefer
  wrong rows by definition, so it is not used here.)
- *cautions*: labels that depend on one training row or group, if that is unusual for the table;
- *novel rows*: test of their number against the significance level of 0.01, as in the report.

Error rates of novel rows and of rows with a caution are printed with the error rate of all other rows,
without a target.
"""

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks._measure import Figure, Options
from benchmarks._mixed_tables import MixedTable, installed
from benchmarks.sentences import TABLES, fit
from corral.conformal.typicality import excess_pvalue
from corral.estimators.evaluated_rows import NOVELTY_LEVEL
from corral.parallel import Computation
from corral.report.contents import least_certain

_SEEDS = 3

# Largest number of held-out rows of a table that are explained.
_MOST_EXPLAINED = 100

# Smallest p-value that is accepted; the correction is for thirty tests.
_LEAST_PVALUE = 0.01 / 30


class Marked(NamedTuple):
    """Masks of the held-out rows of a table, concatenated over seeds."""

    name: str
    wrong: np.ndarray
    on_list: np.ndarray
    novel: np.ndarray
    wrong_explained: np.ndarray  # wrong labels among the explained rows
    caution: np.ndarray
    pvalue: float  # p-value of the number of novel rows, smallest of the seeds


def run(options: Options) -> Iterator[Figure]:
    """Mark the held-out rows of all tables."""
    del options
    tables = [_mark_table(table) for table in installed(TABLES)]
    wrong, on_list, novel, wrong_explained, caution = (
        np.concatenate([getattr(table, name) for table in tables])
        for name in ("wrong", "on_list", "novel", "wrong_explained", "caution")
    )
    pair = wrong[on_list].mean(), wrong[~on_list].mean()
    detail = f"{pair[0]:.3f} and {pair[1]:.3f}; {len(tables)} tables, {_SEEDS} seeds"
    yield Figure("error rate of rows on the list / of other rows", pair[0] / pair[1], 2.0, detail=detail)
    ratios = [
        table.wrong[table.on_list].mean() / max(table.wrong[~table.on_list].mean(), 1e-9)
        for table in tables
        if table.wrong.sum() >= 5
    ]
    yield Figure("the same, median of tables with at least five errors", float(np.median(ratios)), 2.0)
    shares = [table.caution.mean() for table in tables]
    detail = f"{min(shares):.3f} to {max(shares):.3f}"
    what = "share of rows with a caution, median of tables"
    yield Figure(what, float(np.median(shares)), high=0.1, digits=3, detail=detail)
    detail = f"{wrong_explained[caution].mean():.3f} wrong, others {wrong_explained[~caution].mean():.3f}"
    yield Figure("share of rows with a caution, all rows", caution.mean(), digits=3, detail=detail)
    detail = f"{wrong[novel].mean():.3f} wrong, others {wrong[~novel].mean():.3f}"
    yield Figure("share of novel rows", novel.mean(), digits=4, detail=detail)
    beyond = [table.name for table in tables if table.pvalue < _LEAST_PVALUE]
    what = "tables with more novel rows than the level allows"
    yield Figure(what, len(beyond), high=0, digits=0, detail=", ".join(beyond))


def _mark_table(table: MixedTable) -> Marked:
    *masks, pvalues = zip(*(_mark_rows(table, seed) for seed in range(_SEEDS)), strict=True)
    marked = Marked(table.name, *map(np.concatenate, masks), min(pvalues))
    print(
        f"    {table.name:18} wrong {marked.wrong.mean():.3f} (on the list "
        f"{marked.wrong[marked.on_list].mean():.3f}, others {marked.wrong[~marked.on_list].mean():.3f}), "
        f"caution {marked.caution.mean():.3f}, novel {marked.novel.mean():.4f} (least p {marked.pvalue:.2g})",
        flush=True,
    )
    return marked


def _mark_rows(table: MixedTable, seed: int) -> tuple[np.ndarray, ...]:
    """Masks of the held-out rows of one seed, and the p-value of their novel rows."""
    fitted = fit(table, seed)
    classifier, n = fitted.classifier, len(fitted.new_y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assessment = classifier.assess(fitted.new_X)
        explanation = classifier.explain(fitted.new_X[:_MOST_EXPLAINED], n_rows=1)
    wrong = classifier.classes_[assessment.proba.argmax(axis=1)] != fitted.new_y
    on_list = np.isin(np.arange(n), least_certain(assessment.proba.max(axis=1).tolist()))
    n_training = classifier.model_.trust.reference(Computation()).best.n
    pvalue = excess_pvalue(int(assessment.is_novel.sum()), n, NOVELTY_LEVEL, n_training)
    return wrong, on_list, assessment.is_novel, wrong[: len(explanation)], explanation.rests_on_few, pvalue
