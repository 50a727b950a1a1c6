"""What `corral predict` writes of each row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from corral._core.settings import Floats

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


@dataclass
class Answers:
    """Columns of answers, and the number of novel rows.

    Attributes
    ----------
    fitted : the classifier, or a pipeline that ends in it.
    judges : whether typicality and novelty are written: the classifier knows them, and they are wanted.
    coverage : of sets of labels, if they are asked for.
    costs : (n_classes, n_classes) by true and decided class, if decisions are asked for.
    reject_cost : what it costs not to decide, if that may be.
    n_novel : how many of the rows answered so far are novel.
    """

    fitted: Any
    judges: bool
    coverage: float | None
    costs: Floats | None
    reject_cost: float | None
    n_novel: int = 0

    @classmethod
    def of(
        cls,
        fitted: Any,
        model: Path,
        *,
        typicality: bool,
        coverage: float | None,
        costs: Path | None,
        reject_cost: float | None,
    ) -> Answers:
        """Check what is asked for, before any work."""
        from corral._estimators.decisions import check_reject_cost
        from corral._estimators.pipelines import last_of
        from corral._estimators.validation import check_number

        judges = hasattr(last_of(fitted), "assess")
        if coverage is not None:
            if not judges:
                kind = type(last_of(fitted)).__name__
                raise ValueError(f"{model} holds {kind}, and --set needs a model of class densities.")
            check_number("--set", coverage, 0.0, 1.0, inclusive=True)
        if reject_cost is not None and costs is None:
            raise ValueError("--reject-cost needs --costs: what wrong labels cost.")
        if reject_cost is not None:
            check_reject_cost("--reject-cost", reject_cost)
        matrix = None if costs is None else read_costs(costs, fitted.classes_)
        return cls(fitted, judges and typicality, coverage, matrix, reject_cost)

    @property
    def columns(self) -> list[str]:
        """Their names."""
        labels = self.fitted.classes_.tolist()
        columns = ["label", *(f"p_{label}" for label in labels)]
        if self.judges:
            columns += ["typicality", "novel"]
        if self.coverage is not None:
            columns += [f"in_set_{label}" for label in labels]
        return columns if self.costs is None else [*columns, "decision"]

    def of_rows(self, X: pd.DataFrame) -> list[NDArray[Any]]:
        """Answer for some rows."""
        from corral._estimators.decisions import least_costly
        from corral._estimators.pipelines import last_of, rows_of_last_step

        fitted, last, seen = self.fitted, last_of(self.fitted), rows_of_last_step(self.fitted, X)
        judged = last.assess(seen) if self.judges else None
        proba = last.predict_proba(seen) if judged is None else judged.proba
        found = [fitted.classes_[proba.argmax(axis=1)], *proba.T]
        if judged is not None:
            self.n_novel += int(judged.is_novel.sum())
            found += [judged.typicality.max(axis=1), judged.is_novel]
        if self.coverage is not None:
            found += [*last.predict_set(seen, self.coverage).T]
        if self.costs is not None:
            found.append(least_costly(proba, self.costs, fitted.classes_, self.reject_cost))
        return found


def read_costs(path: Path, classes: NDArray[Any]) -> Floats:
    """Costs from a table with the true classes in its first column and those to decide for in its header."""
    from corral._estimators.decisions import check_costs
    from corral.cli.tables import read_table, table_columns

    columns = table_columns(path)
    table = read_table(path, columns, verbatim=columns[:1])
    bad = [name for name in columns[1:] if table[name].dtype.kind not in "fiu"]
    if bad:
        raise ValueError(f"{path}: column {bad[0]!r} must hold costs, which are numbers.")
    called = {str(label): label for label in classes.tolist()}
    costs = table[columns[1:]].astype(np.float64)
    costs.index = [called.get(str(name), name) for name in table[columns[0]]]
    costs.columns = [called.get(name, name) for name in columns[1:]]
    try:
        return check_costs(costs, classes)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
