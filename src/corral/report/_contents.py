"""What the page shows: words, and numbers rounded to the digits that are shown."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from corral._core.density import kernel_density
from corral._core.model import FittedModel
from corral._core.scale import Scale
from corral._core.settings import Floats, Integers
from corral._estimators.validation import feature_names
from corral._evaluation import HeldOut, confidence_bins, wilson_interval
from corral._planning import SampleSizes

# Beyond these a page would be too large to send or to read. Variables are those that describe some class
# best; a typical row is looked for among so many of its class.
_MOST_VARIABLES = 200
_MOST_CURVE_POINTS = 40_000
_MOST_CANDIDATES = 1000

_N_POINTS = 49  # of a curve
_N_TYPICAL = 5
_MOST_NAMED = 8


@dataclass(frozen=True, eq=False)
class Judged:
    """Predictions whose truth is known.

    Attributes
    ----------
    unseen : whether these rows are new to the estimator, as they claim.
    on_page : whether they are the estimator's own, of the rows on the page, so that these can be shown.
    """

    predictions: HeldOut
    unseen: bool
    on_page: bool


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
    """

    words: dict[str, Any]
    numbers: dict[str, Any]
    rows: list[dict[str, Any]]
    training: dict[int, list[Any]]

    @classmethod
    def gather(
        cls,
        estimator: Any,
        X: Any,
        truth: NDArray[Any] | None,
        order: Integers,
        judged: Judged | None,
        sample_sizes: SampleSizes | None,
        source: str | None,
    ) -> Contents:
        """Compute everything; rows are those of `order`, in this order."""
        explains = hasattr(estimator, "explain")
        variables = _shown_variables(estimator)
        names = feature_names(estimator)
        rows = _browsed(estimator, X, truth, order, variables)
        numbers: dict[str, Any] = {
            "classes": [str(label) for label in estimator.classes_.tolist()],
            "variables": [names[j] for j in variables],
            "explains": explains,
            "errors": None if judged is None else _errors(judged),
            "sampleSizes": None if sample_sizes is None else _steps(sample_sizes),
        }
        training: dict[int, list[Any]] = {}
        if explains:
            numbers |= _relevance(estimator, variables) | _class_pages(estimator, variables)
            X_train = estimator.model_.training.X
            supporting = [i for row in rows for i in row["support"]]
            typical = [i for of_class in numbers["typical"] for i in of_class]
            training = {i: _digits(X_train[i, variables]) for i in {*supporting, *typical}}
        words = {
            "summary": _summary(estimator, judged, source),
            "classes": _classes_at_a_glance(estimator, judged, names),
            "explains": explains,
            "judged": judged,
            "sample_sizes": [] if sample_sizes is None else _in_words(sample_sizes),
            "n_variables": len(names),
            "n_shown_variables": len(variables),
            "n_rows": len(X),
            "known": truth is not None,
            "facts": _facts(estimator, source, len(X)),
            "parameters": _parameters(estimator),
            "versions": _versions(),
        }
        return cls(words, numbers, rows, training)

    def shown(self, n_rows: int) -> dict[str, Any]:
        """What the script draws, with the first rows that were drawn and the training rows they refer to."""
        rows = sorted(self.rows[:n_rows], key=lambda row: row["position"])
        needed = {i for row in rows for i in row["support"]}
        needed |= {i for typical in self.numbers.get("typical", []) for i in typical}
        return self.numbers | {"rows": rows, "training": {i: self.training[i] for i in sorted(needed)}}


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
    value = float(values)
    if not value.is_integer():
        value = float(f"{value:.{n}g}") if abs(value) < 10.0**n else float(round(value))
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


# Relevance and classes


def _shown_variables(estimator: Any) -> Integers:
    """All variables, or those that describe some class best, in the order of the columns."""
    d: int = estimator.n_features_in_
    if d <= _MOST_VARIABLES:
        return np.arange(d)
    best = _best_first(estimator, np.arange(d)) if hasattr(estimator, "zscores_") else np.arange(d)
    return np.sort(best[:_MOST_VARIABLES])


def _best_first(estimator: Any, variables: Integers) -> Integers:
    """Variables in order: relevant for some class, then by their smallest z-score."""
    irrelevant = ~estimator.relevant_[:, variables].any(axis=0)
    return variables[np.lexsort((estimator.zscores_[:, variables].min(axis=0), irrelevant))]


def _relevance(estimator: Any, variables: Integers) -> dict[str, Any]:
    return {
        "zscores": _decimals(estimator.zscores_[:, variables], 2),
        "bandwidths": _digits(estimator.bandwidths_[:, variables], 3),
        "relevant": estimator.relevant_[:, variables].astype(int).tolist(),
    }


def _class_pages(estimator: Any, variables: Integers) -> dict[str, Any]:
    """Densities of single variables and typical rows of each class."""
    model: FittedModel = estimator.model_
    n_classes = model.labels.size
    scaled = model.variable_scale.transform(model.data.X)
    max_drawn = max(_MOST_CURVE_POINTS // (n_classes * _N_POINTS), _MOST_NAMED)
    drawn = np.sort(_best_first(estimator, variables)[:max_drawn])
    return {
        "typical": [_typical(model, a) for a in range(n_classes)],
        "inRanks": model.variable_scale.knots is not None,
        "curves": {
            int(np.searchsorted(variables, j)): _curves(model, scaled[:, j], j) for j in drawn.tolist()
        },
    }


def _typical(model: FittedModel, a: int) -> list[int]:
    """Positions of the training rows of a class at which its own density is highest."""
    members = model.data.members()[a]
    if members.size > _MOST_CANDIDATES:  # evenly spaced, so the same in every report
        members = members[np.linspace(0, members.size - 1, _MOST_CANDIDATES).astype(np.int64)]
    scaled = model.scale.transform(model.data.X[members])
    log_density, _ = model.densities[a].estimate(scaled, model.settings.rodeo.update)
    highest = np.argsort(-log_density, kind="stable")[:_N_TYPICAL]
    positions: list[int] = model.data.numbers[members[highest]].tolist()
    return positions


def _curves(model: FittedModel, x: Floats, j: int) -> dict[str, Any]:
    """Densities of variable j, scaled to x, in all classes: in thousandths of the highest point of all.

    With the mean bandwidths of the classes, but none narrower than a step of the grid: a peak must not
    fall between two points.
    """
    scale = model.variable_scale
    margin = 0.0 if scale.knots is not None else 0.05 * np.ptp(x) or 0.5
    grid = np.linspace(x.min() - margin, x.max() + margin, _N_POINTS)
    step = float(grid[1] - grid[0]) or 1.0
    log_density = np.array(
        [
            kernel_density(rows, grid[:, np.newaxis], np.array([max(h, step)]))
            for rows, h in zip(
                model.data.arrange(x[:, np.newaxis]), model.bandwidths.means[:, j], strict=True
            )
        ]
    )
    relative = np.exp(log_density - log_density.max())
    return {
        "x": _digits(_raw(scale, grid, j)),
        "y": np.rint(1000.0 * relative).astype(int).tolist(),
    }


def _raw(scale: Scale, grid: Floats, j: int) -> Floats:
    """Points of one scaled variable in its own units; for ranks, values of training rows that have them."""
    if scale.knots is not None:
        values, ranks = scale.knots[j]
        return values[np.minimum(np.searchsorted(ranks, grid), values.size - 1)]
    return Scale(scale.center[j : j + 1], scale.half_width[j : j + 1]).restore(grid)


# Rows


def _browsed(
    estimator: Any, X: Any, truth: NDArray[Any] | None, order: Integers, variables: Integers
) -> list[dict[str, Any]]:
    """Label, probabilities and explanation of each row, in the order given."""
    part = X.iloc[order] if hasattr(X, "iloc") else X[order]
    names = part.index.tolist() if hasattr(part, "index") else order.tolist()
    proba: Floats = estimator.predict_proba(part)
    ranked = np.argsort(-proba, axis=1, kind="stable")
    rows: list[dict[str, Any]] = [
        {
            "name": str(names[i]),
            "position": int(position),
            "truth": -1,
            "label": int(ranked[i, 0]),
            "rival": int(ranked[i, 1]),
            "proba": _decimals(proba[i], 3),
            "support": [],
        }
        for i, position in enumerate(order)
    ]
    if truth is not None:
        for row, code in zip(rows, np.searchsorted(estimator.classes_, truth[order]).tolist(), strict=True):
            row["truth"] = code
    if not hasattr(estimator, "explain"):
        values = np.asarray(part, dtype=np.float64)
        for row, of_row in zip(rows, values[:, variables], strict=True):
            row["values"] = _digits(of_row)
        return rows
    explanation = estimator.explain(part)
    labels = np.searchsorted(estimator.classes_, explanation.label)
    rivals = np.searchsorted(estimator.classes_, explanation.rival)
    for i, row in enumerate(rows):
        listed = explanation.rows[i] >= 0
        row |= {
            "label": int(labels[i]),
            "rival": int(rivals[i]),
            "values": _digits(explanation.values[i, variables]),
            "evidence": _decimals(explanation.evidence[i, variables], 2),
            "support": explanation.rows[i][listed].tolist(),
            "shares": _decimals(explanation.shares[i][listed], 3),
        }
    return rows


# Errors and sample sizes


def _errors(judged: Judged) -> dict[str, Any]:
    """The confusion matrix, truth by label, and the points of the reliability curve."""
    predictions = judged.predictions
    counts = confusion_matrix(predictions.truth, predictions.labels, labels=predictions.classes)
    confidence = predictions.proba.max(axis=1)
    hits = predictions.labels == predictions.truth
    bins = confidence_bins(confidence)
    points = []
    for b in np.unique(bins):
        inside = bins == b
        low, high = wilson_interval(hits[inside])
        points.append(
            {
                "n": int(inside.sum()),
                "confidence": _decimals(confidence[inside].mean(), 3),
                "right": _decimals(hits[inside].mean(), 3),
                "low": _decimals(low, 3),
                "high": _decimals(high, 3),
            }
        )
    return {"confusion": counts.tolist(), "on_page": judged.on_page, "reliability": points}


def _steps(found: SampleSizes) -> dict[str, Any]:
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


def _in_words(found: SampleSizes) -> list[str]:
    return str(found).removeprefix(f"{type(found).__name__}: ").splitlines()


# Words


def _summary(estimator: Any, judged: Judged | None, source: str | None) -> list[str]:
    """Paragraphs that say what was fitted, how good it is and what it found."""
    n, d, k = estimator.class_count_.sum(), estimator.n_features_in_, estimator.classes_.size
    paragraphs = [
        f"{type(estimator).__name__} learnt {k} classes from {_count(n, 'row')} with {_count(d, 'variable')}."
    ]
    if source:
        paragraphs[0] += f" The rows on this page are of {source}."
    if judged is not None:
        paragraphs += _quality(judged)
    elif hasattr(estimator, "best_log_loss_"):
        paragraphs.append(
            f"Of its training rows it labels {estimator.best_score_:.1%} right when each is held out in turn "
            "and classes count as its priors say."
        )
    if hasattr(estimator, "relevant_"):
        paragraphs.append(_relevance_in_words(estimator))
    return paragraphs


def _quality(judged: Judged) -> list[str]:
    predictions = judged.predictions
    scores, n = predictions.scores(), len(predictions.truth)
    _, counts = np.unique(predictions.truth, return_counts=True)
    low, high = scores.accuracy_interval
    rows, interval = (
        (f"{_count(n, 'row')} {predictions.claim},", f" (95% interval {low:.1%} to {high:.1%})")
        if judged.unseen
        else (f"the {_count(n, 'row')} given, which may be training rows (new ones would then do worse),", "")
    )
    said = [
        f"Of {rows} {scores.accuracy:.1%} get the right label{interval}; always naming the most frequent "
        f"class would give {counts.max() / n:.1%}. The log loss is {scores.log_loss:.3f}, and the "
        f"probability of a label is off by {scores.calibration_error:.3f} on average."
    ]
    wrong = confusion_matrix(predictions.truth, predictions.labels, labels=predictions.classes)
    in_class = wrong.sum(axis=1)
    np.fill_diagonal(wrong, 0)
    if not wrong.any():
        return [*said, "None is wrong."]
    a, b = np.unravel_index(wrong.argmax(), wrong.shape)
    names = predictions.classes.tolist()
    said.append(
        f"The most frequent mistake is to take {names[a]} for {names[b]}: {wrong[a, b]} of "
        f"{_count(in_class[a], 'row')} of {names[a]}."
    )
    return said


def _relevance_in_words(estimator: Any) -> str:
    numbers = estimator.relevant_.sum(axis=1)
    if not numbers.any():
        return (
            "No variable stands out as describing a class: bandwidths shrink hardly or all alike, so labels "
            "rest on all variables together."
        )
    used = estimator.relevant_.sum(axis=0)
    some = int((used > 0).sum())
    low, high = int(numbers.min()), int(numbers.max())
    each = f"{low}" if low == high else f"{low} to {high}"
    return (
        f"{_count(some, 'variable')} of {used.size} "
        f"{'describes' if some == 1 else 'describe'} at least one class, {each} in each class. "
        + _meaning_of_relevance(getattr(estimator, "best_estimator_", estimator))
    )


def _meaning_of_relevance(best: Any) -> str:
    """What it means that a variable describes a class, which depends on the rule and the units."""
    if best.rule == "shadow":
        return (
            "A variable describes a class if the class is more concentrated in it than the rows of all "
            "classes together are, by more than chance."
        )
    if best.scale == "rank":
        return (
            "A variable describes a class if the class is distributed in it otherwise than all rows "
            "together, more so than in its other variables."
        )
    return (
        "A variable describes a class if the class is more concentrated in it than in its other variables; "
        "other classes may be so as well."
    )


def _classes_at_a_glance(estimator: Any, judged: Judged | None, names: list[str]) -> list[dict[str, Any]]:
    """One line per class: its rows, how many of those judged are right, its variables."""
    accuracy = {} if judged is None else judged.predictions.scores().accuracy_by_class
    lines = []
    for a, label in enumerate(estimator.classes_.tolist()):
        line = {"name": str(label), "rows": f"{estimator.class_count_[a]:g}", "variables": ""}
        line["accuracy"] = f"{accuracy[str(label)]:.3f}" if str(label) in accuracy else ""
        if hasattr(estimator, "relevant_"):
            strongest = np.argsort(estimator.bandwidths_[a], kind="stable")
            relevant = [names[j] for j in strongest if estimator.relevant_[a, j]]
            more = len(relevant) - _MOST_NAMED
            line["variables"] = ", ".join(relevant[:_MOST_NAMED]) or "none found"
            line["variables"] += f" and {more} more" if more > 0 else ""
        lines.append(line)
    return lines


def _facts(estimator: Any, source: str | None, n_rows: int) -> list[tuple[str, str]]:
    facts = [
        ("data", source or "not named"),
        ("training rows", f"{estimator.class_count_.sum():g}"),
        ("variables", str(estimator.n_features_in_)),
        ("classes", str(estimator.classes_.size)),
        ("rows given to browse", str(n_rows)),
    ]
    if hasattr(estimator, "best_log_loss_"):
        facts.append(("leave-one-out accuracy", f"{estimator.best_score_:.3f}"))
        facts.append(("leave-one-out log loss", f"{estimator.best_log_loss_:.3f}"))
    return facts


def _parameters(estimator: Any) -> list[tuple[str, str, str]]:
    """Name, value and where it comes from."""
    chosen = dict(getattr(estimator, "best_params_", {}))
    if hasattr(estimator, "temperature_"):
        chosen["temperature"] = float(f"{estimator.temperature_:.4g}")
    given = estimator.get_params()
    return [(name, repr(value), "chosen") for name, value in chosen.items()] + [
        (name, repr(value), "given") for name, value in given.items()
    ]


def _versions() -> list[tuple[str, str]]:
    packages = ("corral", "numpy", "scipy", "scikit-learn", "numba")
    return [("Python", platform.python_version()), *((name, version(name)) for name in packages)]


def _count(n: float, what: str) -> str:
    return f"{n:g} {what}" + ("" if n == 1 else "s")
