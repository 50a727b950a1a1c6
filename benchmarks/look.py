"""Rows that deserve a look, on thirty real tables: are they wrong more often, and are few rows marked?

A quarter of the rows of each table is held out, three times. Measured on them are

- *the list of the report*: the tenth of the rows, at most twenty, whose label has the least probability. The
  report ranks by the probability of the recorded class where it has one, which would make it right by design;
- *cautions*: labels that rest on one training row or group, if that is unusual for the table;
- *novel rows*: their number against the level of 0.01, by the test that the report makes.

Errors of novel rows and of rows with a caution are shown beside the errors of all others, without a target.
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

# Most held-out rows of a table that are explained.
_MOST_EXPLAINED = 100

# Thirty tables are tested at once.
_LEAST_PVALUE = 0.01 / 30


class Marked(NamedTuple):
    """Masks of the held-out rows of a table, of all seeds together."""

    name: str
    wrong: np.ndarray
    on_list: np.ndarray
    novel: np.ndarray
    wrong_explained: np.ndarray  # of the rows that were explained
    caution: np.ndarray
    pvalue: float  # of the number of novel rows, the least one of the seeds


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
    yield Figure("errors of rows on the list over errors of others", pair[0] / pair[1], 2.0, detail=detail)
    ratios = [
        table.wrong[table.on_list].mean() / max(table.wrong[~table.on_list].mean(), 1e-9)
        for table in tables
        if table.wrong.sum() >= 5
    ]
    yield Figure("the same in the median table with five errors or more", float(np.median(ratios)), 2.0)
    shares = [table.caution.mean() for table in tables]
    detail = f"{min(shares):.3f} to {max(shares):.3f}"
    what = "share of rows with a caution, median table"
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
