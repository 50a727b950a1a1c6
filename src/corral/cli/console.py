"""What commands print: words and tables for people, one line where they want quiet, JSON for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from corral.cli.shared import MOST_NAMED, listed, visible
from corral.estimators.priors import are_empirical
from corral.estimators.validation import feature_names
from corral.files.atomic import naming
from corral.planning.curve import TIMES
from corral.sentences.classes import NO_MARKER, NO_MARKER_AT_ALL, RANKING
from corral.sentences.numbers import counted, interval_text, number_text, value_text
from corral.sentences.scores import IF_PRIORS_HOLD, SCORES

if TYPE_CHECKING:
    from corral.estimators.description import Description
    from corral.estimators.explanation import Explanation
    from corral.evaluation.scores import Scores
    from corral.planning import LearningCurve, SampleSizes


@dataclass(frozen=True)
class Output:
    """How a command speaks: to a program, or only what was asked for."""

    as_json: bool
    quiet: bool

    def answer(
        self, data: Mapping[str, Any], brief: Sequence[RenderableType], full: Sequence[RenderableType]
    ) -> None:
        """Print what a command has found."""
        with naming("the standard output"):
            if self.as_json:
                typer.echo(json.dumps(_plain(data), indent=2, allow_nan=False))
                return
            console = _PlainConsole(markup=False, emoji=False, highlight=False, soft_wrap=True)
            for part in brief if self.quiet else full:
                console.print(part)

    @property
    def bars(self) -> int:
        """Whether to show progress, as estimators take it: a log would be full of bars."""
        return int(not self.quiet and sys.stderr.isatty())

    @contextmanager
    def progress(self, what: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
        """A bar, with the time left if a total is known; yields what is told the part that is `completed`."""
        if not self.bars:
            yield lambda completed: None
            return
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(escape(visible(what)), total=total)
            yield lambda completed: progress.update(task, completed=completed)

    def step(self, name: str) -> None:
        """Name a step that may have a bar of its own."""
        if self.bars:
            typer.echo(name, err=True)


class _PlainConsole(Console):
    """A console that prints names as they are: [brackets] are no markup, and terminals obey no name."""

    def render_str(self, text: str, **options: Any) -> Text:
        """All strings come through here, those in tables as well."""
        return super().render_str(visible(text), **options)


def _plain(value: Any) -> Any:
    """As JSON knows it, which has neither arrays nor infinity."""
    match value:
        case np.ndarray() | np.generic():
            return _plain(value.tolist())
        case Mapping():
            return {str(key): _plain(of_key) for key, of_key in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
    return str(value)


def by_class(classes: NDArray[Any], values: Any) -> dict[str, Any]:
    """Values by class."""
    return dict(zip(map(str, classes.tolist()), np.asarray(values).tolist(), strict=True))


# Models


def describe(fitted: Any) -> dict[str, Any]:
    """What every estimator has, and what only some have."""
    described: dict[str, Any] = {
        "estimator": type(fitted).__name__,
        "params": fitted.get_params(),
        "variables": feature_names(fitted),
        "na_values": getattr(fitted, "na_values_", []),
    }
    described |= _kinds(fitted)
    if hasattr(fitted, "members_"):
        described["pool"] = fitted.model_.pool.shares()
        described["expected_accuracy"] = fitted.cv_accuracy_
        described["priors_are_shares"] = are_empirical(fitted)
    elif hasattr(fitted, "best_params_"):
        described["chosen"] = fitted.best_params_
    if hasattr(fitted, "best_score_"):
        described["expected_accuracy"] = fitted.best_score_
    if hasattr(fitted, "class_count_"):
        described["rows_by_class"] = by_class(fitted.classes_, fitted.class_count_)
    if hasattr(fitted, "describe"):
        described |= _marks(fitted.describe())
    if hasattr(fitted, "relevant_"):
        described["relevant"] = {
            str(label): _relevant_variables(fitted, a) for a, label in enumerate(fitted.classes_.tolist())
        }
    return described


def _kinds(fitted: Any) -> dict[str, Any]:
    """Count the levels of variables, the values that they lack, and the groups of rows."""
    kinds: dict[str, Any] = {}
    names = feature_names(fitted)
    if hasattr(fitted, "encoding_"):
        pairs = zip(names, fitted.encoding_.categories, strict=True)
        kinds["levels"] = {name: len(categories) for name, categories in pairs if categories is not None}
    if hasattr(fitted, "model_"):
        training = fitted.model_.training
        pairs = zip(names, np.isnan(training.X).sum(axis=0).tolist(), strict=True)
        kinds["gaps"] = {name: n for name, n in pairs if n}
        if training.groups is not None:
            kinds["groups"] = np.unique(training.groups).size
    return kinds


def kinds_in_words(kinds: Mapping[str, Any]) -> Iterator[str]:
    """Say which columns are levels or dates, where values are missing, and how many groups there are."""
    for kind, what in (
        ("levels", "levels"),
        ("dates", "dates, which become variables"),
        ("gaps", "missing values, which stay gaps"),
    ):
        counts = kinds.get(kind)
        if counts:
            yield f"{what}: {listed([f'{name} ({n})' for name, n in counts.items()], str)}"
    if "groups" in kinds:
        yield f"groups, left out together: {kinds['groups']}"


def _relevant_variables(fitted: Any, a: int) -> list[str]:
    """Names of the variables that algorithm 2 finds relevant for a class, the smallest bandwidth first."""
    order = np.argsort(fitted.bandwidths_[a], kind="stable")
    names = feature_names(fitted)
    return [names[j] for j in order[fitted.relevant_[a, order]]]


def _marks(found: Description) -> dict[str, Any]:
    """Name the variables that describe each class, strongest first, and say how."""
    names, d = found.feature_names, len(found.feature_names)
    lines = found.to_frame().drop(columns=["class", "marker"]).to_dict("records")
    marks = {
        str(label): [
            {**lines[a * d + i], "words": found.phrase(a, j)} for i, j in enumerate(found.markers_of(a))
        ]
        for a, label in enumerate(found.classes.tolist())
    }
    return {
        "markers": {label: [mark["variable"] for mark in of_class] for label, of_class in marks.items()},
        "marks": marks,
        "often_missing": {label: found.missing_phrases(a) for a, label in enumerate(marks)},
        "also_rests_on": {label: [names[j] for j in found.also_rests_on(a)] for a, label in enumerate(marks)},
        "lines": {label: found.lines_beside_others(a) for a, label in enumerate(marks)},
    }


def description(described: Mapping[str, Any], *, measured: bool = False) -> Iterator[RenderableType]:
    """What a model is and which variables describe its classes; `measured` says that scores are shown."""
    yield f"{described['estimator']} of {len(described['variables'])} variables"
    yield from kinds_in_words(described)
    if described["na_values"]:
        yield f"what stands for a missing value, also in new tables: {listed(described['na_values'])}"
    if "pool" in described and not measured:  # of a file; a fit has more to tell
        members = (f"{name} ({share:.0%})" for name, share in described["pool"].items())
        yield f"densities that are pooled, and what each counts: {'; '.join(members)}"
    if "chosen" in described:
        chosen = ", ".join(f"{name}={value!r}" for name, value in described["chosen"].items())
        yield f"chosen by cross-validation: {chosen}"
    if "expected_accuracy" in described and not measured:  # held-out rows say more
        # That of LSPClassifier is the best of many.
        bias = ", which profits from the choice" if described["estimator"] == "LSPClassifier" else ""
        condition = "" if described.get("priors_are_shares", True) else f" {IF_PRIORS_HOLD}"
        yield (
            f"accuracy to expect{condition}, by cross-validation{bias}: {described['expected_accuracy']:.3f}"
        )
    if {"rows_by_class", "markers", "relevant"} & described.keys():
        yield _class_table(described)
    if "markers" in described:
        yield RANKING if any(described["markers"].values()) else NO_MARKER_AT_ALL


def _class_table(described: Mapping[str, Any]) -> Table:
    variables = described.get("markers", described.get("relevant"))
    counts = described.get("rows_by_class")
    labels = list(variables or counts or ())
    columns: dict[str, list[Any]] = {"class": labels}
    if counts is not None:
        columns["rows"] = [number_text(counts[label]) for label in labels]
    if variables is not None:  # in groups of lines: a line break would be made visible
        lines = [Group(*_variables_of(described, label)) for label in labels]
        columns["variables that describe it"] = lines
    shown = Table(*columns, show_lines=variables is not None)
    for cells in zip(*columns.values(), strict=True):
        shown.add_row(*cells)
    return shown


def _variables_of(described: Mapping[str, Any], label: str) -> Iterator[str]:
    """Lines on what marks a class."""
    if "marks" not in described:
        yield listed(described["relevant"][label], str) or NO_MARKER
        return
    yield from described["lines"][label]
    if "relevant" in described:
        yield f"relevant by its bandwidths: {listed(described['relevant'][label], str) or 'no variable'}"


# What commands have found


def score_table(scores: Mapping[str, Scores], measured_on: str) -> Table:
    """Scores of classifiers side by side, those of the first with intervals."""
    own, *others = scores
    shown = Table(title=f"Held out: {measured_on}; with 95% intervals", title_justify="left", show_edge=False)
    shown.add_column("score", no_wrap=True)
    shown.add_column(own, no_wrap=True)
    for name in others:  # in several lines, so that all columns fit into 80 letters
        width = max(map(len, name.split()))
        shown.add_column(name, min_width=width, max_width=width)
    for key, (name, _) in SCORES.items():
        first = _with_interval(getattr(scores[own], key), scores[own].intervals.get(key), 3)
        values = (_score_text(getattr(scores[other], key), 3) for other in others)
        shown.add_row(name, first, *values)
    return shown


def class_score_table(scores: Scores) -> Table:
    """Scores of each class, recall and precision with intervals."""
    shown = Table("class", "rows", "recall", "precision", "F1", "AUC", show_edge=False)
    for label, each in scores.by_class.items():
        shares = (
            _with_interval(getattr(each, name), each.intervals.get(name), 2)
            for name in ("recall", "precision")
        )
        shown.add_row(label, str(each.n_rows), *shares, _score_text(each.f1, 2), _score_text(each.auc, 2))
    return shown


def _with_interval(value: float | None, interval: tuple[float, float] | None, digits: int) -> str:
    text = _score_text(value, digits)
    return text if interval is None else f"{text} ({interval_text(interval, f'.{digits}f')})"


def _score_text(value: float | None, digits: int) -> str:
    """A score; empty if it is not defined."""
    return "" if value is None else f"{value:.{digits}f}"


def explanation_data(found: Explanation, row: int, name: str | None) -> dict[str, Any]:
    """The explanation of one row, which may have a name."""
    keys = ("label", "rival", "base", "log_odds", "effective_rows", "nearest", "typicality", "novel")
    support = found.support_to_frame().rename(columns={"training_row": "row", "name": "id"})
    return {
        "row": row,
        "id": name,
        **{key: getattr(found, key)[0] for key in keys},
        "probability": found.probability[0, 0],
        "probability_rival": found.probability[0, 1],
        "caution": found.caution(0),
        "variables": found.to_frame().drop(columns=["sample", "label", "rival"]).to_dict("records"),
        "training_rows": support.drop(columns="sample").to_dict("records"),
    }


def explanation_words(found: Explanation, called: str) -> Iterator[RenderableType]:
    """The explanation of one row, the most important first."""
    said = found.sentences(0, called)
    yield from (said[key] for key in ("label", "place", "reasons", "odds"))
    evidence = found.evidence[0]
    order = np.argsort(-np.abs(evidence), kind="stable")
    shown = Table("variable", "value", "evidence")
    for j in order[:MOST_NAMED]:
        value = value_text(found.values[0, j], unknown=bool(found.unknown[0, j]))
        shown.add_row(found.feature_names[j], value, f"{evidence[j]:+.2f}")
    yield shown
    if order.size > MOST_NAMED:
        yield f"and {counted(order.size - MOST_NAMED, 'more variable')} with less evidence"
    yield from (said[key] for key in ("nearest", "support", "caution") if said[key])


def sample_size_data(found: SampleSizes) -> dict[str, Any]:
    """What `estimate_sample_sizes` has found."""
    guess = found.extrapolation
    keys = ("converged", "reason", "tolerance", "epsilon", "accuracy", "caveats")
    return {
        **{key: getattr(found, key) for key in keys},
        "rows": by_class(found.classes, found.sizes),
        "extrapolation": None if guess is None else by_class(found.classes, guess.sizes),
        "steps": [
            {"rows": int(step.sizes.sum()), "epsilon": step.epsilon, "accuracy": step.accuracy}
            for step in found.steps
        ],
    }


def learning_curve_data(found: LearningCurve) -> dict[str, Any]:
    """What a learning curve tells; what is unlimited becomes null."""
    sizes = [times * found.n_rows for times in (1, *TIMES, math.inf)]
    return {
        "rows": by_class(found.classes, found.sizes),
        "measured": found.history[["rows", "accuracy", "log_loss"]].droplevel(1, axis=1).to_dict("records"),
        "expected": [
            {"rows": n, "accuracy": found.accuracy(n)._asdict(), "log_loss": found.log_loss(n)._asdict()}
            for n in sizes
        ],
        "goal": found.goal,
        "needed": [
            {"class": need.label, "rows": need.rows._asdict(), "probability": need.probability}
            for need in found.needed
        ],
    }
