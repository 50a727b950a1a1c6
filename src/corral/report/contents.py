"""What the page shows: words, and numbers rounded to the digits that are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral._estimators.validation import feature_names
from corral._planning import LearningCurve, SampleSizes
from corral.report.numbers import (
    N_STRONGEST,
    Judged,
    Shown,
    browsed,
    class_pages,
    errors,
    has_levels,
    markers,
    medians_where_unlike,
    shown_variables,
    steps,
    training_values,
    yardsticks,
)
from corral.report.packing import pack, pack_column, pack_rows
from corral.report.words import (
    called,
    classes_at_a_glance,
    facts,
    in_words,
    novelty,
    outlook,
    parameters,
    recalls,
    summary,
    versions,
    what_next,
)


@dataclass(frozen=True, eq=False)
class Contents:
    """All that the page may show.

    Attributes
    ----------
    words : dict
        What the template writes.
    numbers : dict
        What the script draws, all but the rows.
    rows : list of dict
        Rows to browse, in the order in which they were drawn.
    training : dict
        Values of the training rows that anything refers to, by position.
    training_names : list of str or None
        Names of all training rows, if they have names.
    """

    words: dict[str, Any]
    numbers: dict[str, Any]
    rows: list[dict[str, Any]]
    training: dict[int, list[Any]]
    training_names: list[str] | None

    @classmethod
    def gather(
        cls,
        estimator: Any,
        shown: Shown,
        judged: Judged | None,
        sample_sizes: SampleSizes | LearningCurve | None,
        source: str | None,
        steps_before: Sequence[str] = (),
    ) -> Contents:
        """Compute everything; `steps_before` are those of a pipeline whose last step is on the page."""
        names = feature_names(estimator)
        description = estimator.describe() if hasattr(estimator, "describe") else None
        variables = shown_variables(description, len(names))
        rows = browsed(estimator, shown, variables, description)
        numbers: dict[str, Any] = {
            "classes": [str(label) for label in estimator.classes_.tolist()],
            "variables": [names[j] for j in variables],
            "levels": has_levels(estimator, variables),
            "nHidden": len(names) - len(variables),
            "explains": description is not None,
            "rowWord": shown.word,
            "ownTable": any(judge.learnt_from is not None for judge in shown.judges),
            "errors": None if judged is None else errors(judged),
            "sampleSizes": steps(sample_sizes) if isinstance(sample_sizes, SampleSizes) else None,
        }
        training: dict[int, list[Any]] = {}
        medians: dict[str, tuple[float, float]] = {}
        if description is not None:
            medians = medians_where_unlike(rows, estimator.model_.training.X, variables, names)
            numbers |= markers(description, variables)
            numbers |= class_pages(estimator, description, variables)
            numbers["yardsticks"] = [yardsticks(judge.estimator.model_) for judge in shown.judges]
            numbers["nStrongest"] = N_STRONGEST
            training = training_values(estimator, _named_rows(rows, numbers), variables)
        words = {
            "summary": summary(estimator, description, judged, source, novelty(rows, medians), steps_before),
            "classes": classes_at_a_glance(estimator, description),
            "recalls": [] if judged is None else recalls(judged),
            "called": [] if judged is None else called(judged),
            "what_next": what_next(estimator, description, judged, sample_sizes),
            "kind": type(estimator).__name__,
            "explains": description is not None,
            "judged": judged,
            "sample_sizes": in_words(sample_sizes) if isinstance(sample_sizes, SampleSizes) else [],
            "curve": outlook(sample_sizes, judged) if isinstance(sample_sizes, LearningCurve) else None,
            "n_variables": len(names),
            "n_shown_variables": len(variables),
            "n_rows": shown.n_rows,
            "n_wrong": 0
            if judged is None
            else int((judged.predictions.labels != judged.predictions.truth).sum()),
            "which": judged.predictions.claim if judged is not None and judged.predictions.parts else "given",
            "by_others": numbers["ownTable"],
            "known": shown.truth is not None,
            "facts": facts(
                estimator,
                source,
                shown.n_rows,
                steps_before,
                measured=judged is not None and judged.unseen,
            ),
            "parameters": parameters(estimator),
            "versions": versions(),
        }
        training_names = getattr(estimator, "row_names_in_", None)
        return cls(
            words, numbers, rows, training, None if training_names is None else training_names.tolist()
        )

    def shown(self, n_rows: int) -> dict[str, Any]:
        """What the script draws, with the first rows that were drawn and the training rows they refer to."""
        rows = sorted(self.rows[:n_rows], key=lambda row: row["position"])
        needed = _named_rows(rows, self.numbers)
        names = self.training_names
        # Rows that are equal, as a held-out row and a training row of other rows are, are written once.
        lines: dict[tuple[Any, ...], int] = {}
        of_rows = [lines.setdefault(tuple(row["values"]), len(lines)) for row in rows]
        of_training = [lines.setdefault(tuple(self.training[i]), len(lines)) for i in needed]
        return self.numbers | {
            "rows": pack_rows(rows, of_rows),
            "training": {"rows": pack(needed), "values": pack(of_training)},
            "trainingNames": None if names is None else [names[i] for i in needed],
            "values": [pack_column(column) for column in zip(*lines, strict=True)],
        }


def _named_rows(rows: Sequence[Mapping[str, Any]], numbers: Mapping[str, Any]) -> list[int]:
    """Positions of the training rows that rows to browse or pages of classes name."""
    supporting = {i for row in rows for i in row.get("support", []) if i >= 0}
    return sorted(supporting | {i for typical in numbers.get("typical", []) for i in typical})
