"""Contents of the page: finished sentences, and numbers rounded to the digits that are shown.

Rows to browse are the rows on the page, each with its label, explanation and probabilities. The rival of a
row is the class with which its label is compared.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corral.array_types import Floats, Integers
from corral.estimators.description import Description, kind_of_direction
from corral.estimators.encoding import is_missing
from corral.estimators.explanation import Explanation, unlike_values
from corral.estimators.validation import feature_names
from corral.evaluation.held_out import HeldOut
from corral.evaluation.ranking import Threshold
from corral.evidence.support import typical_rows
from corral.markers.distributions import N_POINTS, density_curves
from corral.markers.rank_tests import shares_of_sum
from corral.markers.value_counts import category_counts
from corral.model import LocalModel
from corral.parallel import Computation
from corral.planning import LearningCurve, SampleSizes
from corral.report.shown import MOST_VARIABLES, ScoredPredictions, ShownPart, ShownRows
from corral.report.words import page_words
from corral.sentences.numbers import rounded_number
from corral.sentences.rows import (
    REASONS_TO_LOOK,
    ambiguous,
    label_of_row,
    nearest_rows_caption,
    rows_to_look_at,
    wrong,
)
from corral.sentences.scores import ranking, reliability, threshold_consequences, threshold_costs

# Limits that keep the page small enough to send and to read.
_MOST_CELLS = 4_000  # cells of the map of classes and variables
_FEWEST_VARIABLES = 50
_MOST_CURVE_POINTS = 60_000
_FEWEST_CURVES = 6
_MOST_RANKING_POINTS = 4_000  # points of all ROC curves together
_POINTS_OF_CLASS = (20, 100)  # fewest and most points of one ROC curve

_N_BARS = 24  # bars of a histogram
_LEAST_SCORE = -1e6  # lower scores are drawn at this score
_N_TYPICAL = 5  # typical rows of a class
_MOST_CATEGORIES = 12  # bars of a variable
_FEW_VALUES = 8  # a variable with at most so many different numbers, such as years, is drawn as bars
_N_STRONGEST = 12  # variables in the chart of the evidence of a row
# A row is ambiguous if its rival has at least this share of the label's probability: if probabilities are
# right, at least a third of the labels of such rows are wrong.
_NEARLY_AS_LIKELY = 0.5

# Rows that are listed to be looked at: at most 20, and at most a tenth of the rows on the page. Nobody
# reads a longer list.
_MOST_LOOKED_AT = 20
_SHARE_LOOKED_AT = 0.1


@dataclass(frozen=True, eq=False)
class Contents:
    """Everything that the page may show."""

    # function that writes the texts of the template for a page with the given rows
    write_words: Callable[[Sequence[dict[str, Any]]], dict[str, Any]]
    numbers: dict[str, Any]  # data of the script, without the rows
    rows: list[dict[str, Any]]  # rows to browse, in the order of `ShownRows`
    training: dict[int, list[Any]]  # values of the training rows on the page, by position
    training_names: NDArray[Any] | None  # (n_training,) index labels; None if training rows have no index

    @classmethod
    def gather(
        cls,
        estimator: Any,
        shown: ShownRows,
        sample_sizes: SampleSizes | LearningCurve | None,
        source: str | None,
        steps_before: Sequence[str],
    ) -> Contents:
        """Compute all contents; `steps_before` are the steps of a pipeline before the classifier."""
        names = feature_names(estimator)
        description = estimator.describe() if hasattr(estimator, "describe") else None
        variables = _shown_variables(description, len(names))
        rows = _rows(estimator, shown, variables, description)
        categories = (
            estimator.encoding_.categories if hasattr(estimator, "encoding_") else [None] * len(names)
        )
        numbers: dict[str, Any] = {
            "classes": [str(label) for label in estimator.classes_.tolist()],
            "variables": [names[j] for j in variables],
            "isCategory": [int(categories[j] is not None) for j in variables],
            "nHidden": len(names) - len(variables),
            "explains": description is not None,
            "rowWord": shown.word,
            "errors": None if shown.scored is None else _errors(shown.scored),
            "sampleSizes": _steps(sample_sizes) if isinstance(sample_sizes, SampleSizes) else None,
        }
        training: dict[int, list[Any]] = {}
        if description is not None:
            model = estimator.model_
            numbers |= _map(description, variables)
            numbers["typical"] = [
                typical_rows(model, a, _N_TYPICAL, Computation()) for a in range(model.labels.size)
            ]
            numbers["curves"] = _curves(model, categories, description, variables)
            numbers["scoreHistograms"] = [_score_histograms(part.estimator.model_) for part in shown.parts]
            numbers["nStrongest"] = _N_STRONGEST
            needed = _named_rows(rows, numbers)
            values = estimator.encoding_.decode(model.rows_by_number(np.array(needed, dtype=np.int64)))
            training = {i: _cells(row[variables]) for i, row in zip(needed, values, strict=True)}
        write_words = partial(
            page_words,
            estimator,
            description,
            shown,
            sample_sizes=sample_sizes,
            source=source,
            steps_before=steps_before,
            n_shown_variables=len(variables),
        )
        return cls(write_words, numbers, rows, training, getattr(estimator, "row_names_in_", None))

    def words(self, n_rows: int) -> dict[str, Any]:
        """Return the texts of the template for a page with the first `n_rows` rows."""
        return self.write_words(self.rows[:n_rows])

    def script_data(self, n_rows: int) -> str:
        """Return the data of the script for the first `n_rows` rows: compressed JSON in base64."""
        rows = sorted(self.rows[:n_rows], key=lambda row: row["position"])
        needed, names = _named_rows(rows, self.numbers), self.training_names
        # Equal rows are written once: a held-out row may also be a training row that supports other rows.
        lines: dict[tuple[Any, ...], int] = {}

        def line(values: list[Any]) -> int:
            return lines.setdefault(tuple(values), len(lines))

        drawn = [
            {key: value for key, value in row.items() if key not in ("unlike", "certainty")} for row in rows
        ]
        data = self.numbers | {
            "rows": [row | {"values": line(row["values"])} for row in drawn],
            "training": {i: line(self.training[i]) for i in needed},
            "trainingNames": None if names is None else {i: names[i] for i in needed},
            "look": _look(rows),
        }
        data["values"] = list(lines)
        # The script cannot parse NaN or infinity.
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
        return base64.b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")


def _named_rows(rows: Sequence[dict[str, Any]], numbers: dict[str, Any]) -> list[int]:
    """Return positions of the training rows that rows to browse or pages of classes refer to."""
    supporting = {i for row in rows for i in row.get("support", ())}
    return sorted(supporting | {i for typical in numbers.get("typical", ()) for i in typical})


# Numbers are rounded only here: the script shows all digits that remain.


def _decimals(values: ArrayLike, n: int) -> Any:
    """Round numbers to n digits behind the point."""
    return _round_each(np.asarray(values, dtype=np.float64).tolist(), lambda value: round(value, n) + 0.0)


def _digits(values: ArrayLike, n: int = 4) -> Any:
    """Round numbers to n significant digits, keeping all digits before the point."""
    return _round_each(np.asarray(values, dtype=np.float64).tolist(), lambda value: rounded_number(value, n))


def _round_each(values: Any, round_number: Callable[[float], float]) -> Any:
    """Round a number, or all numbers of nested lists."""
    if isinstance(values, list):
        return [_round_each(value, round_number) for value in values]
    return round_number(values)


def _cells(values: NDArray[Any]) -> list[Any]:
    """Return the values of a row: rounded numbers, categories as text, None for missing values."""
    return [
        rounded_number(value)
        if type(value) in (int, float) and math.isfinite(value)
        else None
        if is_missing(value)
        else str(value)
        for value in values.tolist()
    ]


# Markers and classes


def _shown_variables(description: Description | None, d: int) -> Integers:
    """Return indices of the variables to show, in order: all of d, or those that describe some class best."""
    n_classes = 1 if description is None else description.classes.size
    n_shown = min(d, MOST_VARIABLES, max(_MOST_CELLS // n_classes, _FEWEST_VARIABLES))
    strongest = np.arange(d) if description is None else _strongest_first(description)
    return np.sort(strongest[:n_shown])


def _strongest_first(description: Description) -> Integers:
    """Order variables by their best rank in any class, so that no class with small effects is left out."""
    d = len(description.feature_names)
    places = np.argsort(description.order, axis=1) + d * ~description.markers
    return np.lexsort((-np.abs(description.effect).max(axis=0), places.min(axis=0)))


def _map(description: Description, variables: Integers) -> dict[str, Any]:
    """Return differences by class and variable, and the lines that describe each class."""
    assert description.evidence is not None
    classes = range(description.classes.size)
    places = {j: i for i, j in enumerate(variables.tolist())}
    return {
        "effects": _decimals(description.effect[:, variables], 2),
        "pvalues": _digits(description.pvalue[:, variables], 1),
        "markers": description.markers[:, variables].astype(int).tolist(),
        "kinds": [[_kind(description.direction[a, j]) for j in variables] for a in classes],
        "differences": [[_difference(description, a, j) for j in variables] for a in classes],
        "order": [[places[j] for j in order if j in places] for order in description.order.tolist()],
        "evidence": _decimals(description.evidence[:, variables], 2),
        "leading": [[places[j] for j in description.leading_markers(a) if j in places] for a in classes],
        "lines": [description.lines(a) for a in classes],
    }


def _difference(description: Description, a: int, j: int) -> str:
    """Return the phrase on class a in variable j without the name of the variable; empty if there is none."""
    if not description.direction[a, j]:
        return ""
    return description.phrase(a, j).removeprefix(f"{description.feature_names[j]} ")


def _kind(direction: str) -> str:
    """Return the name of a kind of difference in the style sheet."""
    return kind_of_direction(direction).removesuffix(" often")


def _curves(
    model: LocalModel, categories: Sequence[list[Any] | None], description: Description, variables: Integers
) -> dict[int, dict[str, Any]]:
    """Return densities of single variables, or shares of categories, by place among the shown variables."""
    max_drawn = max(_MOST_CURVE_POINTS // (model.labels.size * N_POINTS), _FEWEST_CURVES)
    strongest = _strongest_first(description)
    drawn = np.sort(strongest[np.isin(strongest, variables)][:max_drawn])
    return {int(np.searchsorted(variables, j)): _curve(model, j, categories[j]) for j in drawn.tolist()}


def _curve(model: LocalModel, j: int, categories: list[Any] | None) -> dict[str, Any]:
    """Return bars of variable j if it has categories or few different numbers, else densities by class."""
    data, training, n_classes = model.data, model.training, model.labels.size
    x = training.X[:, j]
    values = np.unique(x[~np.isnan(x)])
    if not categories and not 0 < values.size <= min(_FEW_VALUES, np.count_nonzero(~np.isnan(x)) / 2):
        grid, densities = density_curves(data.X[:, j], data.codes, data.weights, n_classes)
        return {"x": _digits(grid), "y": _thousandths(densities)}
    if categories:
        names = [str(category) for category in categories]
    else:
        names = [str(value) for value in _digits(values)]
        x = np.where(np.isnan(x), np.nan, np.searchsorted(values, x))
    codes = np.searchsorted(model.labels, training.y)  # bars show shares of the training rows as given
    shares = shares_of_sum(category_counts(x, codes, training.weights, n_classes, len(names)))
    most = np.sort(np.argsort(-shares.max(axis=0), kind="stable")[:_MOST_CATEGORIES])
    return {
        "categories": [names[k] for k in most],
        "y": _thousandths(shares[:, most]),
        "nOthers": len(names) - most.size,
    }


def _thousandths(shares: Floats) -> list[list[int]]:
    thousandths: list[list[int]] = np.rint(1000.0 * shares).astype(int).tolist()
    return thousandths


def _score_histograms(model: LocalModel) -> list[dict[str, Any]]:
    """Return histograms of the typicality scores of the training rows of each class."""
    return [
        {"low": _decimals(low, 2), "high": _decimals(high, 2), "counts": counts.tolist()}
        for low, high, counts in model.trust.histograms(_N_BARS, _LEAST_SCORE, Computation())
    ]


# Rows


def _rows(
    estimator: Any, shown: ShownRows, variables: Integers, description: Description | None
) -> list[dict[str, Any]]:
    """Return label, probabilities, explanation and sentences of each row to browse."""
    classes = estimator.classes_.tolist()
    ranked = np.argsort(-shown.proba, axis=1, kind="stable")
    called = [f"{shown.word} {name}" for name in shown.names]
    rows: list[dict[str, Any]] = [{} for _ in called]
    for number, part in enumerate(shown.parts):
        names = [called[i] for i in part.places]
        explained_rows = _explained(part, names, feature_names(estimator), variables, description)
        for i, explained in zip(part.places, explained_rows, strict=True):
            rows[i] = explained | {"part": number}
    for i, explained in enumerate(rows):
        label, rival = ranked[i, :2].tolist()
        proba, rival_proba = shown.proba[i, [label, rival]].tolist()
        label_sentence = label_of_row(called[i], classes[label], proba, classes[rival], rival_proba)
        row = {
            "name": str(shown.names[i]),
            "position": int(shown.positions[i]),
            "truth": int(shown.truth[i]),
            "label": label,
            "rival": rival,
            "proba": _decimals(shown.proba[i], 3),
            "words": {"label": label_sentence},
        } | explained
        is_wrong = row["truth"] not in (-1, row["label"])
        why = (
            wrong(classes[row["truth"]], classes[row["label"]], proba) if is_wrong else "",
            row.pop("novelty", ""),
            row.pop("caution", ""),
            ambiguous(classes[rival], rival_proba) if rival_proba >= _NEARLY_AS_LIKELY * proba else "",
        )
        row["words"]["label"] += f" Wrong: {why[0]}." if is_wrong else " Right." if row["truth"] >= 0 else ""
        row["why"] = [[rank, sentence] for rank, sentence in enumerate(why) if sentence]
        row["certainty"] = float(shown.proba[i, row["truth"] if row["truth"] >= 0 else label])
        rows[i] = row
    return rows


def _explained(
    part: ShownPart,
    called: Sequence[str],
    names: list[str],
    variables: Integers,
    description: Description | None,
) -> Iterator[dict[str, Any]]:
    """Yield the values of each row and, if the classifier explains rows, typicality and evidence.

    `called` has the names of the rows, `names` the names of all variables, and `variables` the indices of the
    shown variables.
    """
    if part.evaluated is None:
        for values in np.asarray(part.X, dtype=np.float64)[:, variables]:
            yield {"values": _digits(values)}
        return
    assessed, explanation = part.evaluated.assessment(), part.evaluated.explanation()
    nearest = assessed.scores.argmax(axis=1)
    if part.training_positions is not None:
        explanation = explanation.renumbered(part.training_positions).aligned(names)
    labels = np.searchsorted(part.estimator.classes_, explanation.label)
    rivals = np.searchsorted(part.estimator.classes_, explanation.rival)
    odds = np.clip(np.stack([explanation.base, explanation.log_odds]), -1e6, 1e6)  # JSON has no infinity
    for i, name in enumerate(called):
        evidence = _decimals(explanation.evidence[i, variables], 2)
        strongest = variables[np.argsort(-np.abs(evidence), kind="stable")[:_N_STRONGEST]]
        listed = explanation.rows[i] >= 0
        novelty = explanation.novelty(i, description)
        yield {
            "words": explanation.sentences(i, name, description) | {"nearest": _rows_caption(explanation, i)},
            "novel": int(assessed.is_novel[i]),
            "novelty": f"novel: {novelty}" if novelty else "",
            "unlike": unlike_values(explanation, i) if novelty else {},
            "caution": explanation.caution(i),
            "typicality": _decimals(assessed.typicality[i], 3),
            "nearest": int(nearest[i]),
            "score": _decimals(max(assessed.scores[i, nearest[i]], _LEAST_SCORE), 2),
            "label": int(labels[i]),
            "rival": int(rivals[i]),
            "values": _cells(explanation.values[i, variables]),
            "unknown": np.flatnonzero(explanation.unknown[i, variables]).tolist(),
            "evidence": evidence,
            "rest": _decimals(np.delete(explanation.evidence[i], strongest).sum(), 2),
            "base": _decimals(odds[0, i], 2),
            "odds": _decimals(odds[1, i], 2),
            "support": explanation.rows[i][listed].tolist(),
            "shares": _decimals(explanation.shares[i][listed], 3),
        }


def _rows_caption(explanation: Explanation, i: int) -> str:
    """Return the caption of the table of the training rows that support row i."""
    return nearest_rows_caption(
        explanation.label[i],
        explanation.equal[i][explanation.rows[i] >= 0].tolist(),
        stands_out=bool(explanation.stands_out[i]),
        n_tied=int(explanation.n_tied[i]),
    )


def _look(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the rows to look at, the least certain row first, and a sentence on these rows.

    Certainty is the probability of the recorded class, or of the label if no class is recorded.
    """
    order = least_certain([row["certainty"] for row in rows])
    counts = Counter(rank for row in rows for rank, _ in row["why"])
    reasons = {name: counts[rank] for rank, name in enumerate(REASONS_TO_LOOK)}
    truth_known = any(row["truth"] >= 0 for row in rows)
    if not truth_known:
        del reasons["wrong"]
    sentence = rows_to_look_at(len(order), len(rows), reasons, truth_known=truth_known)
    return {"rows": order, "sentence": sentence}


def least_certain(certainty: Sequence[float]) -> list[int]:
    """Return positions of the least certain tenth of the rows, at most twenty, the least certain first."""
    n_listed = min(_MOST_LOOKED_AT, math.ceil(_SHARE_LOOKED_AT * len(certainty)))
    return sorted(range(len(certainty)), key=lambda i: certainty[i])[:n_listed]


# Errors and sample sizes


def _errors(scored: ScoredPredictions) -> dict[str, Any]:
    """Return confusion matrix and points of the reliability, ROC and precision-recall curves."""
    predictions = scored.predictions
    return {
        "confusion": predictions.confusion().tolist(),
        "on_page": scored.on_page,
        "reliability": [point._asdict() for point in predictions.reliability()],
        "caption": reliability(predictions.n_groups),
        "ranking": _ranking(predictions),
        "thresholds": _thresholds(predictions),
    }


def _ranking(predictions: HeldOut) -> list[dict[str, Any]]:
    """Return ROC and precision-recall curves of each class, or of the rarer of two classes."""
    rarer = predictions.rarer_class
    fewest, most = _POINTS_OF_CLASS
    n_points = min(max(_MOST_RANKING_POINTS // predictions.classes.size, fewest), most)
    scores, curves = predictions.scores(), []
    for a, label in enumerate(predictions.classes.tolist()):
        each = scores.by_class.get(str(label))
        if each is None or each.auc is None or each.average_precision is None or rarer not in (None, label):
            continue
        share, intervals = each.n_rows / len(predictions.truth), each.intervals
        points = [_threshold(point) for point in predictions.ranking_curve(label, n_points)]
        captions = ranking(
            label,
            each.auc,
            intervals["auc"],
            each.average_precision,
            intervals["average_precision"],
            share,
        )
        curves.append({"class": a, "share": _decimals(share, 3), "points": points, "captions": captions})
    return curves


def _threshold(point: Threshold) -> list[Any]:
    """Return threshold, called rows, called rows of the class, recall, false positive rate and precision."""
    shares = (point.recall, point.false_positive_rate, point.precision)
    return [_digits(point.threshold, 3), point.n_called, point.n_right, *_decimals(shares, 3)]


def _thresholds(predictions: HeldOut) -> dict[str, Any] | None:
    """Return consequences of thresholds for the rarer of two classes; None if there is no ranking."""
    label = predictions.rarer_class
    if label is None or not _ranking(predictions):
        return None
    points = predictions.thresholds(label)
    sentences = [
        threshold_consequences(
            label, point.threshold, point.n_called, point.n_right, point.n_rows, len(predictions.truth)
        )
        for point in points
    ]
    return {
        "points": [_threshold(point) for point in points],
        "sentences": sentences,
        "use": threshold_costs(label),
    }


def _steps(result: SampleSizes) -> dict[str, Any]:
    """Return the steps of the bound on sample sizes."""
    return {
        "classes": [str(label) for label in result.classes.tolist()],
        "tolerance": _digits(result.tolerance),
        "steps": [
            {
                "total": int(step.sizes.sum()),
                "sizes": step.sizes.tolist(),
                "epsilon": _digits(step.epsilon),
                "accuracy": _decimals(step.accuracy, 3),
            }
            for step in result.steps
        ],
    }
