"""Rows that deserve a look, on thirty real tables: are they wrong more often, and are few rows marked?

A quarter of the rows of each table is held out, three times. Measured on them are

- *the list of the report*: the tenth, at most twenty, whose label has the least probability. The report ranks
  by the probability of the recorded class where one is known, which would make it right by construction;
- *cautions*: labels that rest on one training row or group, as far as that is unusual;
- *novel rows*: their number against the level of 0.01, by the test that the report makes.

Errors of novel rows and of rows with a caution are shown beside those of all others, without a target.
"""

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks._measure import Figure, Options
from benchmarks._mixed_tables import MixedTable, installed
from benchmarks.sentences import TABLES
from corral import CorralClassifier
from corral.conformal.typicality import excess_pvalue
from corral.estimators.evaluated_rows import NOVELTY_LEVEL
from corral.parallel import Computation
from corral.report.contents import least_certain

_SEEDS = 3

# Of larger tables so many rows are drawn, and so many of the held-out rows are explained.
_MOST_ROWS = 2000
_MOST_EXPLAINED = 100

# Thirty tables are tested at once.
_LEAST_PVALUE = 0.01 / 30


class Marked(NamedTuple):
    """Held-out rows of a table: which labels are wrong, and which rows are marked, for each seed."""

    name: str
    wrong: np.ndarray
    on_list: np.ndarray
    novel: np.ndarray
    wrong_explained: np.ndarray  # of the rows that were explained
    caution: np.ndarray
    pvalue: float  # the least one of the seeds, of the number of novel rows


def run(options: Options) -> Iterator[Figure]:
    """Mark the held-out rows of all tables."""
    del options
    marked = [_marked(table) for table in installed(TABLES)]
    wrong, on_list, novel, wrong_explained, caution = (
        np.concatenate([getattr(each, name) for each in marked])
        for name in ("wrong", "on_list", "novel", "wrong_explained", "caution")
    )
    of_list, of_others = wrong[on_list].mean(), wrong[~on_list].mean()
    ratios = [
        each.wrong[each.on_list].mean() / max(each.wrong[~each.on_list].mean(), 1e-9) for each in marked
    ]
    has_errors = [each.wrong.sum() >= 5 for each in marked]
    detail = f"{of_list:.3f} and {of_others:.3f}; {len(marked)} tables, {_SEEDS} seeds"
    yield Figure(
        "errors of rows on the list over errors of others", of_list / of_others, low=2.0, detail=detail
    )
    least = float(np.median(np.array(ratios)[has_errors]))
    yield Figure("the same in the median table with five errors or more", least, low=2.0)
    shares = [each.caution.mean() for each in marked]
    detail = f"{min(shares):.3f} to {max(shares):.3f}"
    yield Figure(
        "share of rows with a caution, median table",
        float(np.median(shares)),
        high=0.1,
        digits=3,
        detail=detail,
    )
    detail = f"{wrong_explained[caution].mean():.3f} wrong, others {wrong_explained[~caution].mean():.3f}"
    yield Figure("share of rows with a caution, all rows", caution.mean(), digits=3, detail=detail)
    detail = f"{wrong[novel].mean():.3f} wrong, others {wrong[~novel].mean():.3f}"
    yield Figure("share of novel rows", novel.mean(), digits=4, detail=detail)
    beyond = [each.name for each in marked if each.pvalue < _LEAST_PVALUE]
    yield Figure(
        "tables with more novel rows than the level allows",
        len(beyond),
        high=0,
        digits=0,
        detail=", ".join(beyond),
    )


def _marked(table: MixedTable) -> Marked:
    X, y = table.load()
    counts = pd.Series(y).value_counts()
    kept = np.flatnonzero(pd.Series(y).isin(counts.index[counts > 1]))
    parts = [_of_seed(X, y, kept, seed) for seed in range(_SEEDS)]
    wrong, on_list, novel, wrong_explained, caution, pvalues = zip(*parts, strict=True)
    marked = Marked(
        table.name, *map(np.concatenate, (wrong, on_list, novel, wrong_explained, caution)), min(pvalues)
    )
    print(
        f"    {table.name:18} wrong {marked.wrong.mean():.3f} (on the list "
        f"{marked.wrong[marked.on_list].mean():.3f}, others {marked.wrong[~marked.on_list].mean():.3f}), "
        f"caution {marked.caution.mean():.3f}, novel {marked.novel.mean():.4f} (least p {marked.pvalue:.2g})",
        flush=True,
    )
    return marked


def _of_seed(X: pd.DataFrame, y: np.ndarray, kept: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    rows = np.sort(np.random.default_rng(seed).permutation(kept)[:_MOST_ROWS])
    first, second = train_test_split(rows, test_size=0.25, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier = CorralClassifier(random_state=seed).fit(X.iloc[first], y[first])
        found = classifier.assess(X.iloc[second])
        explanation = classifier.explain(X.iloc[second[:_MOST_EXPLAINED]], n_rows=1)
    wrong = classifier.classes_[found.proba.argmax(axis=1)] != y[second]
    on_list = np.isin(np.arange(second.size), least_certain(found.proba.max(axis=1).tolist()))
    n_training = classifier.model_.trust.reference(Computation()).best.n
    pvalue = excess_pvalue(int(found.is_novel.sum()), second.size, NOVELTY_LEVEL, n_training)
    explained = slice(len(explanation))
    return wrong, on_list, found.is_novel, wrong[explained], explanation.rests_on_few, pvalue


if __name__ == "__main__":
    from benchmarks.__main__ import run as run_benchmarks

    run_benchmarks(["look"], Options(), None)
