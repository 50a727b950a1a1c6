"""Numbers for the page, rounded to the digits that are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from corral.array_types import Floats, Integers
from corral.data.tiles import ClassRows, tile_density
from corral.estimators.decisions import is_torn
from corral.estimators.description import Description
from corral.estimators.encoding import is_gap
from corral.estimators.evaluated_rows import EvaluatedRows
from corral.estimators.explanation import Explanation
from corral.estimators.number_text import rounded_number
from corral.evaluation.held_out import HeldOut
from corral.model import LocalModel
from corral.parallel import Computation
from corral.planning import SampleSizes
from corral.report.packing import pack, pack_column

# Beyond these a page would be too large to send or to read. Variables are those that describe some class
# best; a typical row is looked for among so many of its class.
_MOST_VARIABLES = 200
_MOST_CELLS = 4_000  # of the map
_FEWEST_VARIABLES = 50
_MOST_CURVE_POINTS = 60_000
_FEWEST_CURVES = 6
_MOST_CANDIDATES = 1000

_N_POINTS = 49  # of a curve
_N_BARS = 24  # of a histogram
_LEAST_SCORE = -1e6  # what is less typical is drawn there
_N_TYPICAL = 5
_MOST_LEVELS = 12  # of a variable, as bars
_FEW_VALUES = 8  # of numbers, such as years, that are drawn as levels are
# Where intervals of the label's probability end, before 1: narrower where most probabilities are.
_ENDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
N_STRONGEST = 12  # variables of a waterfall

# How a class may differ in a variable: by its number the page gives it a colour and a mark.
KINDS = ("", "high", "low", "wide", "narrow", "more", "less")


@dataclass(frozen=True, eq=False)
class Judged:
    """Predictions whose truth is known.

    Attributes
    ----------
    predictions : what was said of rows, and their labels.
    unseen : whether these rows are new to the estimator, as they claim.
    on_page : whether they are the estimator's own, of the rows on the page, so that these can be shown.
    """

    predictions: HeldOut
    unseen: bool
    on_page: bool


class Judge(NamedTuple):
    """A classifier that labels and explains rows on the page.

    Attributes
    ----------
    estimator : the classifier, fitted.
    X : the rows.
    shown : (n_rows,) which of the rows on the page they are, in the order in which these were drawn.
    evaluated : the rows with their densities; None if the classifier has none and explains nothing.
    learnt_from : positions among all rows of its training rows, if it has learnt from some of them only.
    """

    estimator: Any
    X: Any
    shown: Integers
    evaluated: EvaluatedRows | None
    learnt_from: Integers | None

    @property
    def proba(self) -> Floats:
        """Probabilities (n_rows, n_classes)."""
        proba: Floats = (
            self.estimator.predict_proba(self.X) if self.evaluated is None else self.evaluated.proba
        )
        return proba


class Shown(NamedTuple):
    """Rows that can be browsed, in the order in which they were drawn.

    Attributes
    ----------
    judges : who labels and explains which of them.
    proba : (n_shown, n_classes) their probabilities.
    order : (n_shown,) their positions among all rows.
    names : (n_shown,) what they are called.
    word : what such a name names, "Row" if that has no name.
    truth : (n_rows,) labels of all rows, or None if they are not known.
    n_rows : how many rows could be shown.
    """

    judges: list[Judge]
    proba: Floats
    order: Integers
    names: list[Any]
    word: str
    truth: NDArray[Any] | None
    n_rows: int


# Numbers are rounded here, once, and the script shows all their digits: the page has what Python would print.


def _decimals(values: Any, n: int) -> Any:
    """Numbers with n digits behind the point."""
    if np.ndim(values):
        return [_decimals(value, n) for value in values]
    return round(float(values), n) + 0.0  # without the sign of -0.0


def digits(values: Any, n: int = 4) -> Any:
    """Numbers with n digits, more only before the point; whole ones as they are."""
    if np.ndim(values):
        return [digits(value, n) for value in values]
    return rounded_number(values, n)


def cells(values: Any) -> list[Any]:
    """Values of a row of a table: numbers, names of levels, None for gaps."""
    return [
        None if is_gap(value) else digits(value) if type(value) in (int, float) else str(value)
        for value in values.tolist()
    ]


def has_levels(estimator: Any, variables: Integers) -> list[int]:
    """Which of the variables hold levels and not numbers: 1 or 0 for each."""
    if not hasattr(estimator, "encoding_"):
        return [0] * variables.size
    return [int(estimator.encoding_.levels[j] is not None) for j in variables]


def training_values(estimator: Any, numbers: list[int], variables: Integers) -> dict[int, list[Any]]:
    """Values of some training rows, by their position."""
    rows = estimator.model_.rows_by_number(np.array(numbers, dtype=np.int64))
    values = estimator.encoding_.decode(rows)
    return {i: cells(row) for i, row in zip(numbers, values[:, variables], strict=True)}


# Markers and classes


def shown_variables(description: Description | None, d: int) -> Integers:
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


def markers(description: Description, variables: Integers) -> dict[str, Any]:
    """Return how classes differ, by class and variable."""
    assert description.evidence is not None
    n_classes = description.classes.size
    places = {j: i for i, j in enumerate(variables.tolist())}
    return {
        "effects": _decimals(description.effect[:, variables], 2),
        "pvalues": digits(description.pvalue[:, variables], 1),
        "markers": description.markers[:, variables].astype(int).tolist(),
        "kinds": [[_kind(description, a, j) for j in variables] for a in range(n_classes)],
        "differences": [[_difference(description, a, j) for j in variables] for a in range(n_classes)],
        "order": [[places[j] for j in order if j in places] for order in description.order.tolist()],
        "evidence": _decimals(description.evidence[:, variables], 2),
        "restOn": [
            [description.feature_names[j] for j in description.also_rests_on(a)] for a in range(n_classes)
        ],
        "missing": [description.missing_phrases(a) for a in range(n_classes)],
    }


def _difference(description: Description, a: int, j: int) -> str:
    """How a class differs in a variable, without its name; empty if nothing is known."""
    if not description.direction[a, j]:
        return ""
    return description.phrase(a, j).removeprefix(f"{description.feature_names[j]} ")


def _kind(description: Description, a: int, j: int) -> int:
    """Which of `KINDS` a difference is; what is no direction counts as something that is more frequent."""
    direction = description.direction[a, j]
    if direction in KINDS:
        return KINDS.index(direction)
    return KINDS.index("less" if direction.endswith(" less often") else "more")


def class_pages(estimator: Any, description: Description, variables: Integers) -> dict[str, Any]:
    """Densities of single variables, or shares of levels, and typical rows of each class."""
    model, levels = estimator.model_, estimator.encoding_.levels
    n_classes = model.labels.size
    max_drawn = max(_MOST_CURVE_POINTS // (n_classes * _N_POINTS), _FEWEST_CURVES)
    strongest = _strongest_first(description)
    drawn = np.sort(strongest[np.isin(strongest, variables)][:max_drawn])
    return {
        "typical": [_typical(model, a) for a in range(n_classes)],
        "curves": {int(np.searchsorted(variables, j)): _drawn(model, j, levels[j]) for j in drawn.tolist()},
    }


def _typical(model: LocalModel, a: int) -> list[int]:
    """Positions of the training rows of a class at which its own density is highest, complete ones first."""
    members = model.data.members()[a]
    if members.size > _MOST_CANDIDATES:  # evenly spaced, so the same in every report
        members = members[np.linspace(0, members.size - 1, _MOST_CANDIDATES).astype(np.int64)]
    if not members.size:
        return []
    log_density = model.log_densities(model.data.X[members], Computation())[:, a]
    # Densities of rows with different gaps do not compare.
    highest = np.lexsort((-log_density, np.isnan(model.data.X[members]).sum(axis=1)))[:_N_TYPICAL]
    positions = model.data.numbers[members[highest]]
    known: list[int] = positions[positions >= 0].tolist()  # averages have none
    return known


def _drawn(model: LocalModel, j: int, levels: list[Any] | None) -> dict[str, Any]:
    """Bars of variable j if it has levels, or numbers of which there are few; else curves."""
    x = model.data.X[:, j]
    if levels:
        return _bars(model, x, [str(level) for level in levels])
    values = np.unique(x[~np.isnan(x)])
    if 0 < values.size <= min(_FEW_VALUES, np.count_nonzero(~np.isnan(x)) / 2):
        places = np.where(np.isnan(x), np.nan, np.searchsorted(values, x))
        return _bars(model, places, [str(value) for value in digits(values)])
    return _curves(model, j)


def _curves(model: LocalModel, j: int) -> dict[str, Any]:
    """Densities of variable j in all classes, in thousandths of the highest point of all.

    Bandwidths are Silverman's, but none is narrower than a step of the grid: a peak must not fall between two
    points. The grid leaves out what lies far outside.
    """
    known = ~np.isnan(model.data.X[:, j])
    x = model.data.X[known, j]
    if not x.size:
        return {"x": pack_column([]), "y": pack(np.zeros((model.labels.size, 0), dtype=np.int64))}
    largest = np.abs(x).max() or 1.0  # so that no square overflows
    low, high = np.quantile(x / largest, [0.005, 0.995])
    margin = 0.05 * (high - low) or 0.5
    grid = np.linspace(low - margin, high + margin, _N_POINTS)
    step = float(grid[1] - grid[0])
    codes, weights = model.data.codes[known], model.data.weights
    rows = [
        ClassRows.arrange(
            x[codes == a, np.newaxis] / largest, None if weights is None else weights[known][codes == a]
        )
        for a in range(model.labels.size)
    ]
    log_density = np.array(
        [
            tile_density(of_class, grid[:, np.newaxis], np.array([max(_silverman(of_class), step)]))
            for of_class in rows
        ]
    )
    relative = np.exp(log_density - log_density.max())
    return {
        "x": pack_column(digits(grid * largest)),
        "y": pack(np.rint(1000.0 * relative).astype(np.int64)),
    }


def _bars(model: LocalModel, places: Floats, levels: list[str]) -> dict[str, Any]:
    """Shares of levels in all classes, in thousandths; of many levels the most frequent.

    `places` are those of the training rows among the levels, NaN for gaps.
    """
    known = ~np.isnan(places)
    weights = model.data.weights
    counts = np.zeros((model.labels.size, len(levels)))
    at = model.data.codes[known], places[known].astype(np.int64)
    np.add.at(counts, at, 1.0 if weights is None else weights[known])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    shown = np.sort(np.argsort(-shares.max(axis=0), kind="stable")[:_MOST_LEVELS])
    return {
        "levels": [levels[k] for k in shown],
        "y": pack(np.rint(1000.0 * shares[:, shown]).astype(np.int64)),
        "others": len(levels) - shown.size,
    }


def _silverman(rows: ClassRows) -> float:
    """Silverman's bandwidth of one variable."""
    if rows.n_rows < 2:
        return 0.0
    x = rows.all()[:, 0]
    low, high = np.quantile(x, [0.25, 0.75])
    spread = min(x.std(), (high - low) / 1.34) or x.std()
    return float(0.9 * spread * rows.measure.n**-0.2)


# Rows


def browsed(
    estimator: Any, shown: Shown, variables: Integers, description: Description | None
) -> list[dict[str, Any]]:
    """Label, probabilities and explanation of each row that is shown."""
    judges, proba, order, names, _, truth, _ = shown
    torn = is_torn(proba)
    ranked = np.argsort(-proba, axis=1, kind="stable")
    rows: list[dict[str, Any]] = [
        {
            "name": str(names[i]),
            "position": int(position),
            "truth": -1,
            "label": int(ranked[i, 0]),
            "rival": int(ranked[i, 1]),
            "proba": _decimals(proba[i], 3),
            "torn": int(torn[i]),
        }
        for i, position in enumerate(order)
    ]
    if truth is not None:
        for row, code in zip(rows, np.searchsorted(estimator.classes_, truth[order]).tolist(), strict=True):
            row["truth"] = code
    for number, judge in enumerate(judges):
        for i in judge.shown:
            rows[i]["judge"] = number
        _judge_rows(judge, [rows[i] for i in judge.shown], variables, description)
    n_listed = max((len(row.get("support", ())) for row in rows), default=0)
    for row in rows:  # a judge of few rows may have listed fewer
        if "support" in row:
            n_missing = n_listed - len(row["support"])
            row["support"] += [-1] * n_missing
            row["shares"] += [0.0] * n_missing
    return rows


def _judge_rows(
    judge: Judge, rows: list[dict[str, Any]], variables: Integers, description: Description | None
) -> None:
    """Add what a classifier says of its rows: how typical they are, and why they get their labels."""
    estimator = judge.estimator
    if judge.evaluated is None:
        values = np.asarray(judge.X, dtype=np.float64)
        for row, of_row in zip(rows, values[:, variables], strict=True):
            row["values"] = digits(of_row)
        return
    found = judge.evaluated.assessment()
    nearest = found.scores.argmax(axis=1)
    for i, row in enumerate(rows):
        row |= {
            "novel": int(found.is_novel[i]),
            "typicality": _decimals(found.typicality[i], 3),
            "nearest": int(nearest[i]),
            "score": _decimals(max(found.scores[i, nearest[i]], _LEAST_SCORE), 2),
        }
    explanation = judge.evaluated.explanation()
    if judge.learnt_from is not None:
        explanation = explanation.renumbered(judge.learnt_from)
    labels = np.searchsorted(estimator.classes_, explanation.label)
    rivals = np.searchsorted(estimator.classes_, explanation.rival)
    for i, row in enumerate(rows):
        evidence = _decimals(explanation.evidence[i, variables], 2)
        strongest = variables[np.argsort(-np.abs(evidence), kind="stable")[:N_STRONGEST]]
        unlike = explanation.unlike(i) if row.get("novel") else []
        row |= {
            "label": int(labels[i]),
            "rival": int(rivals[i]),
            "values": cells(explanation.values[i, variables]),
            "evidence": evidence,
            "rest": _decimals(np.delete(explanation.evidence[i], strongest).sum(), 2),
            "base": _decimals(_bounded(explanation.base[i]), 2),
            "odds": _decimals(_bounded(explanation.log_odds[i]), 2),
            "effective": round(float(explanation.effective_rows[i])),
            "rests_on": _rests_on(explanation, i),
            "unlike": [_unlike(explanation, i, j, row["nearest"], description) for j in unlike],
            "unlike_variables": [explanation.feature_names[j] for j in unlike],
            "support": explanation.rows[i].tolist(),
            "shares": _decimals(explanation.shares[i], 3),
        }


def _unlike(explanation: Explanation, i: int, j: int, a: int, description: Description | None) -> str:
    """A value that makes a row unlike class a, beside the one that is typical of the class, and the range."""
    if description is None or not np.isfinite(description.typical[a, j]):
        return explanation.value_in_words(i, j)
    typical = description.typical[a, j]
    named = typical if description.levels[j] is None else description.value_text(j, typical)
    return explanation.value_in_words(i, j, (str(description.classes[a]), named))


def medians_where_unlike(
    rows: list[dict[str, Any]], training: Floats, variables: Integers, names: list[str]
) -> dict[str, tuple[float, float]]:
    """Medians of numbers in novel rows that they make unlike, and in the training rows, by variable."""
    found = {}
    for place, j in enumerate(variables.tolist()):
        values = [row["values"][place] for row in rows if names[j] in row.get("unlike_variables", ())]
        known = training[~np.isnan(training[:, j]), j]
        if values and known.size and not any(isinstance(value, str | None) for value in values):
            found[names[j]] = float(np.median(values)), float(np.median(known))
    return found


def _rests_on(explanation: Explanation, i: int) -> int:
    """Percents of the density that one row has, or minus those of one group, if a label rests on it; else 0.

    Of these the page makes the sentence of `Explanation.caution`, which would take more room.
    """
    carrier, share = explanation.carrier(i)
    return int(f"{share:.0%}"[:-1]) * (-1 if carrier == "group" else 1)


def _bounded(log_odds: float) -> float:
    """Log odds that JSON can hold; beyond these nobody asks how large they are."""
    return float(np.clip(log_odds, -1e6, 1e6))


def yardsticks(model: LocalModel) -> list[dict[str, Any]]:
    """How typical the training rows of each class are: the bounds of their scores, and counts between."""
    found = []
    for scores in model.trust.scores_of_rows(Computation()):
        low, high = max(float(scores.min(initial=0.0)), _LEAST_SCORE), float(scores.max(initial=1.0))
        counts, _ = np.histogram(np.maximum(scores, low), bins=_N_BARS, range=(low, high))
        found.append({"low": _decimals(low, 2), "high": _decimals(high, 2), "counts": counts.tolist()})
    return found


# Errors and sample sizes


def errors(judged: Judged) -> dict[str, Any]:
    """The confusion matrix, truth by label, and the points of the reliability curve."""
    predictions = judged.predictions
    counts = confusion_matrix(predictions.truth, predictions.labels, labels=predictions.classes)
    confidence = predictions.proba.max(axis=1)
    bins = np.searchsorted(_ENDS, confidence, side="right")
    ends = (0.0, *_ENDS, 1.0)
    points = []
    for b in np.unique(bins):
        inside = bins == b
        right, interval = predictions.share_right(inside)
        points.append(
            {
                "n": int(inside.sum()),
                "from": ends[b],
                "to": ends[b + 1],
                "confidence": _decimals(confidence[inside].mean(), 3),
                "right": _decimals(right, 3),
                "interval": None if interval is None else _decimals(interval, 3),
            }
        )
    return {
        "confusion": counts.tolist(),
        "on_page": judged.on_page,
        "reliability": points,
        "groups": predictions.n_groups,
    }


def steps(found: SampleSizes) -> dict[str, Any]:
    """Return the curve of sample sizes."""
    return {
        "classes": [str(label) for label in found.classes.tolist()],
        "tolerance": digits(found.tolerance),
        "steps": [
            {
                "total": int(step.sizes.sum()),
                "sizes": step.sizes.tolist(),
                "epsilon": digits(step.epsilon),
                "accuracy": _decimals(step.accuracy, 3),
            }
            for step in found.steps
        ],
    }
