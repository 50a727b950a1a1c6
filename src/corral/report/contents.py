"""The view model of the page: finished sentences, and numbers rounded to the digits that are shown."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from corral.report.shown import Judge, Judged, Shown
from corral.report.words import page_words
from corral.sentences.numbers import rounded_number
from corral.sentences.rows import (
    ambiguous,
    label_of_row,
    nearest_rows_caption,
    rows_to_look_at,
    wrong,
)
from corral.sentences.scores import ranking, reliability, threshold_consequences, threshold_costs

# Beyond these a page would be too large to send or to read. Variables are those that describe some class
# best.
_MOST_VARIABLES = 200
_MOST_CELLS = 4_000  # of the map
_FEWEST_VARIABLES = 50
_MOST_CURVE_POINTS = 60_000
_FEWEST_CURVES = 6
_MOST_RANKING_POINTS = 4_000  # of all ROC curves
_POINTS_OF_CLASS = (20, 100)  # fewest and most of one ROC curve

_N_BARS = 24  # of a histogram
_LEAST_SCORE = -1e6  # what is less typical is drawn there
_N_TYPICAL = 5
_MOST_CATEGORIES = 12  # of a variable, as bars
_FEW_VALUES = 8  # of numbers, such as years, that are drawn as categories are
_N_STRONGEST = 12  # variables of a waterfall
_NEARLY_AS_LIKELY = 0.5  # of such labels a third at least is wrong, if probabilities are right

# Why a row deserves a look.
_REASONS = ("wrong", "novel", "resting on one row or group", "torn between two")

# Rows that are listed to be looked at: at most so many, and at most a tenth of those on the page. Beyond, a
# list is not read.
_MOST_LOOKED_AT = 20
_SHARE_LOOKED_AT = 0.1


@dataclass(frozen=True, eq=False)
class Contents:
    """All that the page may show."""

    words: dict[str, Any]  # what the template writes
    numbers: dict[str, Any]  # what the script draws, all but the rows
    rows: list[dict[str, Any]]  # rows to browse, in the order in which they were drawn
    training: dict[int, list[Any]]  # values of the training rows that anything refers to, by position
    training_names: NDArray[Any] | None  # names of all training rows, if they have names

    @classmethod
    def gather(
        cls,
        estimator: Any,
        shown: Shown,
        sample_sizes: SampleSizes | LearningCurve | None,
        source: str | None,
        steps_before: Sequence[str],
    ) -> Contents:
        """Compute everything; `steps_before` are those of a pipeline whose last step is on the page."""
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
            "levels": [int(categories[j] is not None) for j in variables],
            "nHidden": len(names) - len(variables),
            "explains": description is not None,
            "rowWord": shown.word,
            "errors": None if shown.judged is None else _errors(shown.judged),
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
            numbers["yardsticks"] = [_yardsticks(judge.estimator.model_) for judge in shown.judges]
            numbers["nStrongest"] = _N_STRONGEST
            needed = _named_rows(rows, numbers)
            values = estimator.encoding_.decode(model.rows_by_number(np.array(needed, dtype=np.int64)))
            training = {i: _cells(row[variables]) for i, row in zip(needed, values, strict=True)}
        words = page_words(estimator, description, shown, sample_sizes, rows, source, steps_before)
        words["n_shown_variables"] = len(variables)
        return cls(words, numbers, rows, training, getattr(estimator, "row_names_in_", None))

    def script_data(self, n_rows: int) -> str:
        """What the script draws, with the first rows that were drawn and the training rows they refer to.

        It is JSON, compressed, in letters that need no escape.
        """
        rows = sorted(self.rows[:n_rows], key=lambda row: row["position"])
        needed, names = _named_rows(rows, self.numbers), self.training_names
        # Equal rows, such as a held-out row that is a training row of other rows, are written once.
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
        # A page that its own script cannot parse must not be written.
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
        return base64.b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")


def _named_rows(rows: Sequence[dict[str, Any]], numbers: dict[str, Any]) -> list[int]:
    """Positions of the training rows that rows to browse or pages of classes name."""
    supporting = {i for row in rows for i in row.get("support", ())}
    return sorted(supporting | {i for typical in numbers.get("typical", ()) for i in typical})


# Numbers are rounded here, once, and the script shows all their digits: the page has what Python would print.


def _decimals(values: Any, n: int) -> Any:
    """Numbers with n digits behind the point."""
    if np.ndim(values):
        return [_decimals(value, n) for value in values]
    return round(float(values), n) + 0.0  # without the sign of -0.0


def _digits(values: Any, n: int = 4) -> Any:
    """Numbers with n digits, more only before the point; whole ones as they are."""
    if np.ndim(values):
        return [_digits(value, n) for value in values]
    return rounded_number(values, n)


def _cells(values: Any) -> list[Any]:
    """Values of a row of a table: numbers, names of categories, None for missing values."""
    return [
        None if is_missing(value) else _digits(value) if type(value) in (int, float) else str(value)
        for value in values.tolist()
    ]


# Markers and classes


def _shown_variables(description: Description | None, d: int) -> Integers:
    """All of d variables, or those that describe some class best, in the order of the columns."""
    n_classes = 1 if description is None else description.classes.size
    n_shown = min(d, _MOST_VARIABLES, max(_MOST_CELLS // n_classes, _FEWEST_VARIABLES))
    strongest = np.arange(d) if description is None else _strongest_first(description)
    return np.sort(strongest[:n_shown])


def _strongest_first(description: Description) -> Integers:
    """Variables by the best place that they have in any class: a class with small effects is not left out."""
    d = len(description.feature_names)
    places = np.argsort(description.order, axis=1) + d * ~description.markers
    return np.lexsort((-np.abs(description.effect).max(axis=0), places.min(axis=0)))


def _map(description: Description, variables: Integers) -> dict[str, Any]:
    """How classes differ, by class and variable, and what is said of each class."""
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
    """How a class differs in a variable, without its name; empty if nothing is known."""
    if not description.direction[a, j]:
        return ""
    return description.phrase(a, j).removeprefix(f"{description.feature_names[j]} ")


def _kind(direction: str) -> str:
    """The class of a difference in the style sheet."""
    return kind_of_direction(direction).removesuffix(" often")


def _curves(
    model: LocalModel, categories: Sequence[list[Any] | None], description: Description, variables: Integers
) -> dict[int, dict[str, Any]]:
    """Densities of single variables, or shares of their categories, by place among the variables shown."""
    max_drawn = max(_MOST_CURVE_POINTS // (model.labels.size * N_POINTS), _FEWEST_CURVES)
    strongest = _strongest_first(description)
    drawn = np.sort(strongest[np.isin(strongest, variables)][:max_drawn])
    return {int(np.searchsorted(variables, j)): _drawn(model, j, categories[j]) for j in drawn.tolist()}


def _drawn(model: LocalModel, j: int, categories: list[Any] | None) -> dict[str, Any]:
    """Bars of variable j if it has categories, or numbers of which there are few; else curves."""
    data, training, n_classes = model.data, model.training, model.labels.size
    x = training.X[:, j]
    values = np.unique(x[~np.isnan(x)])
    if not categories and not 0 < values.size <= min(_FEW_VALUES, np.count_nonzero(~np.isnan(x)) / 2):
        grid, densities = density_curves(data.X[:, j], data.codes, data.weights, n_classes)
        return {"x": _digits(grid), "y": _thousandths(densities)}
    if categories:
        names = [str(level) for level in categories]
    else:
        names = [str(value) for value in _digits(values)]
        x = np.where(np.isnan(x), np.nan, np.searchsorted(values, x))
    codes = np.searchsorted(model.labels, training.y)  # bars are shares of the rows as they were given
    shares = shares_of_sum(category_counts(x, codes, training.weights, n_classes, len(names)))
    most = np.sort(np.argsort(-shares.max(axis=0), kind="stable")[:_MOST_CATEGORIES])
    return {
        "levels": [names[k] for k in most],
        "y": _thousandths(shares[:, most]),
        "others": len(names) - most.size,
    }


def _thousandths(shares: Floats) -> list[list[int]]:
    thousandths: list[list[int]] = np.rint(1000.0 * shares).astype(int).tolist()
    return thousandths


def _yardsticks(model: LocalModel) -> list[dict[str, Any]]:
    """How typical the training rows of each class are: the bounds of their scores, and counts between."""
    return [
        {"low": _decimals(low, 2), "high": _decimals(high, 2), "counts": counts.tolist()}
        for low, high, counts in model.trust.histograms(_N_BARS, _LEAST_SCORE, Computation())
    ]


# Rows


def _rows(
    estimator: Any, shown: Shown, variables: Integers, description: Description | None
) -> list[dict[str, Any]]:
    """Label, probabilities, explanation and sentences of each row that is shown."""
    classes = estimator.classes_.tolist()
    ranked = np.argsort(-shown.proba, axis=1, kind="stable")
    called = [f"{shown.word} {name}" for name in shown.names]
    rows: list[dict[str, Any]] = [{} for _ in called]
    for number, judge in enumerate(shown.judges):
        of_judge = [called[i] for i in judge.shown]
        all_explained = _explained(judge, of_judge, feature_names(estimator), variables, description)
        for i, explained in zip(judge.shown, all_explained, strict=True):
            rows[i] = explained | {"judge": number}
    for i, explained in enumerate(rows):
        label, rival = ranked[i, :2].tolist()
        proba, rival_proba = shown.proba[i, [label, rival]].tolist()
        said = label_of_row(called[i], classes[label], proba, classes[rival], rival_proba)
        row = {
            "name": str(shown.names[i]),
            "position": int(shown.order[i]),
            "truth": int(shown.truth[i]),
            "label": label,
            "rival": rival,
            "proba": _decimals(shown.proba[i], 3),
            "words": {"label": said},
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
    judge: Judge,
    called: Sequence[str],
    names: list[str],
    variables: Integers,
    description: Description | None,
) -> Iterator[dict[str, Any]]:
    """Values of rows and, if the classifier explains them, how typical they are and the evidence.

    `variables` are positions among the `names` of all variables on the page.
    """
    if judge.evaluated is None:
        for values in np.asarray(judge.X, dtype=np.float64)[:, variables]:
            yield {"values": _digits(values)}
        return
    assessed, explanation = judge.evaluated.assessment(), judge.evaluated.explanation()
    nearest = assessed.scores.argmax(axis=1)
    if judge.learnt_from is not None:
        explanation = explanation.renumbered(judge.learnt_from).aligned(names)
    labels = np.searchsorted(judge.estimator.classes_, explanation.label)
    rivals = np.searchsorted(judge.estimator.classes_, explanation.rival)
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
    return nearest_rows_caption(
        explanation.label[i],
        explanation.equal[i][explanation.rows[i] >= 0].tolist(),
        stands_out=bool(explanation.stands_out[i]),
        n_tied=int(explanation.n_tied[i]),
    )


def _look(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rows to look at, by their positions, the least certain first, and a sentence on them.

    The measure is the probability of the recorded class, or of the label where no class is recorded.
    """
    order = least_certain([row["certainty"] for row in rows])
    counts = Counter(rank for row in rows for rank, _ in row["why"])
    named = {name: counts[rank] for rank, name in enumerate(_REASONS)}
    truth_known = any(row["truth"] >= 0 for row in rows)
    if not truth_known:
        del named["wrong"]
    return {"rows": order, "said": rows_to_look_at(len(order), len(rows), named, truth_known=truth_known)}


def least_certain(certainty: Sequence[float]) -> list[int]:
    """Positions of the rows to look at, the least certain first: a tenth of them, at most twenty."""
    n_listed = min(_MOST_LOOKED_AT, math.ceil(_SHARE_LOOKED_AT * len(certainty)))
    return sorted(range(len(certainty)), key=lambda i: certainty[i])[:n_listed]


# Errors and sample sizes


def _errors(judged: Judged) -> dict[str, Any]:
    """The confusion matrix, truth by label, and points of reliability, ROC and precision-recall curves."""
    predictions = judged.predictions
    return {
        "confusion": predictions.confusion().tolist(),
        "on_page": judged.on_page,
        "reliability": [point._asdict() for point in predictions.reliability()],
        "said": reliability(predictions.n_groups),
        "ranking": _ranking(predictions),
        "thresholds": _thresholds(predictions),
    }


def _ranking(predictions: HeldOut) -> list[dict[str, Any]]:
    """Curves of each class that can be told from others; of two classes, those of the rarer one."""
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
        said = ranking(
            label,
            each.auc,
            intervals["auc"],
            each.average_precision,
            intervals["average_precision"],
            share,
        )
        curves.append({"class": a, "share": _decimals(share, 3), "points": points, "said": said})
    return curves


def _threshold(point: Threshold) -> list[Any]:
    """The threshold, rows called, right ones among them, recall, false positive rate and precision."""
    shares = (point.recall, point.false_positive_rate, point.precision)
    return [_digits(point.threshold, 3), point.n_called, point.n_right, *_decimals(shares, 3)]


def _thresholds(predictions: HeldOut) -> dict[str, Any] | None:
    """What comes of thresholds for the rarer of two classes."""
    label = predictions.rarer_class
    if label is None or not _ranking(predictions):
        return None
    points = predictions.thresholds(label)
    said = [
        threshold_consequences(
            label, point.threshold, point.n_called, point.n_right, point.n_rows, len(predictions.truth)
        )
        for point in points
    ]
    return {"points": [_threshold(point) for point in points], "said": said, "use": threshold_costs(label)}


def _steps(found: SampleSizes) -> dict[str, Any]:
    """The curve of sample sizes."""
    return {
        "classes": [str(label) for label in found.classes.tolist()],
        "tolerance": _digits(found.tolerance),
        "steps": [
            {
                "total": int(step.sizes.sum()),
                "sizes": step.sizes.tolist(),
                "epsilon": _digits(step.epsilon),
                "accuracy": _decimals(step.accuracy, 3),
            }
            for step in found.steps
        ],
    }
