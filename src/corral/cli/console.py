"""Print the results of commands: as text and tables, as one line with --quiet, or as JSON."""

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
    """Prints results on the standard output, and progress on the standard error stream."""

    as_json: bool
    quiet: bool

    def answer(
        self, data: Mapping[str, Any], brief: Sequence[RenderableType], full: Sequence[RenderableType]
    ) -> None:
        """Print `data` with --json, `brief` with --quiet, otherwise `full`."""
        with naming("the standard output"):
            if self.as_json:
                typer.echo(json.dumps(_plain(data), indent=2, allow_nan=False))
                return
            console = _PlainConsole(markup=False, emoji=False, highlight=False, soft_wrap=True)
            for part in brief if self.quiet else full:
                console.print(part)

    @property
    def bars(self) -> int:
        """Value of `verbose` for estimators: 1 for progress bars, 0 with --quiet or without terminal."""
        return int(not self.quiet and sys.stderr.isatty())

    @contextmanager
    def progress(self, name: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
        """Show a progress bar; yield a function that sets the progress, a number up to `total`."""
        if not self.bars:
            yield lambda completed: None
            return
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(escape(visible(name)), total=total)
            yield lambda completed: progress.update(task, completed=completed)

    def step(self, name: str) -> None:
        """Print the name of a step of the work, unless progress is hidden."""
        if self.bars:
            typer.echo(name, err=True)


class _PlainConsole(Console):
    """A console that prints text literally: markup is not interpreted, control characters are escaped."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Render a string. Rich calls this method for every string, also in tables."""
        return super().render_str(visible(text), **options)


def _plain(value: Any) -> Any:
    """Convert a value to JSON types: arrays become lists, NaN and infinity become null."""
    match value:
        case np.ndarray() | np.generic():
            return _plain(value.tolist())
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
    return str(value)


def by_class(classes: NDArray[Any], values: Any) -> dict[str, Any]:
    """Return the value of each class by the name of the class."""
    return dict(zip(map(str, classes.tolist()), np.asarray(values).tolist(), strict=True))


# Models


def describe(fitted: Any) -> dict[str, Any]:
    """Return the data that describe a fitted estimator."""
    described: dict[str, Any] = {
        "estimator": type(fitted).__name__,
        "params": fitted.get_params(),
        "variables": feature_names(fitted),
        "na_values": getattr(fitted, "na_values_", []),
    }
    described |= _counts(fitted)
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
        described |= _markers(fitted.describe())
    if hasattr(fitted, "relevant_"):
        described["relevant"] = {
            str(label): _relevant_variables(fitted, a) for a, label in enumerate(fitted.classes_.tolist())
        }
    return described


def _counts(fitted: Any) -> dict[str, Any]:
    """Return the numbers of categories and of missing values by variable, and the number of groups."""
    counts: dict[str, Any] = {}
    names = feature_names(fitted)
    if hasattr(fitted, "encoding_"):
        pairs = zip(names, fitted.encoding_.categories, strict=True)
        counts["categories"] = {name: len(categories) for name, categories in pairs if categories is not None}
    if hasattr(fitted, "model_"):
        training = fitted.model_.training
        pairs = zip(names, np.isnan(training.X).sum(axis=0).tolist(), strict=True)
        counts["missing_values"] = {name: n for name, n in pairs if n}
        if training.groups is not None:
            counts["groups"] = np.unique(training.groups).size
    return counts


def counts_in_words(counts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line each about columns of categories, columns of dates, missing values and groups."""
    for key, words in (
        ("categories", "categories"),
        ("dates", "dates, which a fit replaces with variables"),
        ("missing_values", "missing values"),
    ):
        if counts.get(key):
            yield f"{words}: {listed([f'{name} ({n})' for name, n in counts[key].items()], str)}"
    if "groups" in counts:
        yield f"groups of rows that are held out together: {counts['groups']}"


def _relevant_variables(fitted: Any, a: int) -> list[str]:
    """Return the variables that algorithm 2 finds relevant for class `a`, smallest bandwidth first."""
    order = np.argsort(fitted.bandwidths_[a], kind="stable")
    names = feature_names(fitted)
    return [names[j] for j in order[fitted.relevant_[a, order]]]


def _markers(description: Description) -> dict[str, Any]:
    """Return the markers of each class, strongest first, and other variables that describe the class."""
    names, d = description.feature_names, len(description.feature_names)
    lines = description.to_frame().drop(columns=["class", "marker"]).to_dict("records")
    markers = {
        str(label): [
            {**lines[a * d + i], "words": description.phrase(a, j)}
            for i, j in enumerate(description.markers_of(a))
        ]
        for a, label in enumerate(description.classes.tolist())
    }
    return {
        "markers": {label: [line["variable"] for line in lines] for label, lines in markers.items()},
        "marker_details": markers,
        "often_missing": {label: description.missing_phrases(a) for a, label in enumerate(markers)},
        "also_rests_on": {
            label: [names[j] for j in description.also_rests_on(a)] for a, label in enumerate(markers)
        },
        "lines": {label: description.lines_beside_others(a) for a, label in enumerate(markers)},
    }


def description(described: Mapping[str, Any], *, has_scores: bool = False) -> Iterator[RenderableType]:
    """Yield lines about a model and a table of its classes; fewer lines if scores are printed, too."""
    yield f"{described['estimator']} of {len(described['variables'])} variables"
    yield from counts_in_words(described)
    if described["na_values"]:
        yield f"values that count as missing, also in new tables: {listed(described['na_values'])}"
    if "pool" in described and not has_scores:
        members = (f"{name} ({weight:.0%})" for name, weight in described["pool"].items())
        yield f"members of the pool and their weights: {'; '.join(members)}"
    if "chosen" in described:
        chosen = ", ".join(f"{name}={value!r}" for name, value in described["chosen"].items())
        yield f"chosen by cross-validation: {chosen}"
    if "expected_accuracy" in described and not has_scores:
        # The cross-validated accuracy of LSPClassifier is the best of all parameters tried, and so too good.
        bias = (
            " (too good, because parameters were chosen by it)"
            if described["estimator"] == "LSPClassifier"
            else ""
        )
        condition = "" if described.get("priors_are_shares", True) else f" {IF_PRIORS_HOLD}"
        accuracy = described["expected_accuracy"]
        yield f"expected accuracy{condition}, by cross-validation{bias}: {accuracy:.3f}"
    if {"rows_by_class", "markers", "relevant"} & described.keys():
        yield _class_table(described)
    if "markers" in described:
        yield RANKING if any(described["markers"].values()) else NO_MARKER_AT_ALL


def _class_table(described: Mapping[str, Any]) -> Table:
    """Return a table of the classes, with numbers of rows and the variables that describe each class."""
    variables = described.get("markers", described.get("relevant"))
    counts = described.get("rows_by_class")
    labels = list(variables or counts or ())
    columns: dict[str, list[Any]] = {"class": labels}
    if counts is not None:
        columns["rows"] = [number_text(counts[label]) for label in labels]
    if variables is not None:  # a `Group` of lines, because `visible` would escape line breaks
        lines = [Group(*_lines_on_class(described, label)) for label in labels]
        columns["variables that describe it"] = lines
    table = Table(*columns, show_lines=variables is not None)
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*cells)
    return table


def _lines_on_class(described: Mapping[str, Any], label: str) -> Iterator[str]:
    """Yield lines about the variables that describe a class."""
    if "markers" not in described:
        yield listed(described["relevant"][label], str) or NO_MARKER
        return
    yield from described["lines"][label]
    if "relevant" in described:
        relevant = listed(described["relevant"][label], str) or "no variable"
        yield f"relevant (by the bandwidths of the class): {relevant}"


# Results of commands


def score_table(scores: Mapping[str, Scores], rows_held_out: str) -> Table:
    """Return a table of scores, a column per classifier; the first classifier has intervals."""
    own, *others = scores
    title = f"Held out: {rows_held_out}; with 95% intervals"
    table = Table(title=title, title_justify="left", show_edge=False)
    table.add_column("score", no_wrap=True)
    table.add_column(own, no_wrap=True)
    for name in others:  # names are broken into lines, so that the table is at most 80 characters wide
        width = max(map(len, name.split()))
        table.add_column(name, min_width=width, max_width=width)
    for key, (name, _) in SCORES.items():
        first = _score_text(getattr(scores[own], key), 3, scores[own].intervals.get(key))
        table.add_row(name, first, *(_score_text(getattr(scores[other], key), 3) for other in others))
    return table


def class_score_table(scores: Scores) -> Table:
    """Return a table of the scores of each class; recall and precision have intervals."""
    table = Table("class", "rows", "recall", "precision", "F1", "AUC", show_edge=False)
    for label, each in scores.by_class.items():
        shares = (
            _score_text(getattr(each, key), 2, each.intervals.get(key)) for key in ("recall", "precision")
        )
        table.add_row(label, str(each.n_rows), *shares, _score_text(each.f1, 2), _score_text(each.auc, 2))
    return table


def _score_text(value: float | None, digits: int, interval: tuple[float, float] | None = None) -> str:
    """Return a score as text, with its interval if there is one; empty if the score is not defined."""
    text = "" if value is None else f"{value:.{digits}f}"
    return text if interval is None else f"{text} ({interval_text(interval, f'.{digits}f')})"


def explanation_data(explanation: Explanation, row: int, name: str | None) -> dict[str, Any]:
    """Return the data of the explanation of a row; `row` is its number, `name` its id or None."""
    keys = ("label", "rival", "base", "log_odds", "effective_rows", "nearest", "typicality", "novel")
    support = explanation.support_to_frame().rename(columns={"training_row": "row", "name": "id"})
    return {
        "row": row,
        "id": name,
        **{key: getattr(explanation, key)[0] for key in keys},
        "probability": explanation.probability[0, 0],
        "probability_rival": explanation.probability[0, 1],
        "caution": explanation.caution(0),
        "variables": explanation.to_frame().drop(columns=["sample", "label", "rival"]).to_dict("records"),
        "training_rows": support.drop(columns="sample").to_dict("records"),
    }


def explanation_words(explanation: Explanation, title: str) -> Iterator[RenderableType]:
    """Yield the explanation of a row: sentences, in which the row is called `title`, and a table."""
    sentences = explanation.sentences(0, title)
    yield from (sentences[key] for key in ("label", "place", "reasons", "odds"))
    evidence = explanation.evidence[0]
    order = np.argsort(-np.abs(evidence), kind="stable")
    table = Table("variable", "value", "evidence")
    for j in order[:MOST_NAMED]:
        value = value_text(explanation.values[0, j], unknown=bool(explanation.unknown[0, j]))
        table.add_row(explanation.feature_names[j], value, f"{evidence[j]:+.2f}")
    yield table
    if order.size > MOST_NAMED:
        yield f"and {counted(order.size - MOST_NAMED, 'more variable')} with less evidence"
    yield from (sentences[key] for key in ("nearest", "support", "caution") if sentences[key])


def sample_size_data(sizes: SampleSizes) -> dict[str, Any]:
    """Return the data of the sample sizes by algorithm 4."""
    guess = sizes.extrapolation
    keys = ("converged", "reason", "tolerance", "epsilon", "accuracy", "caveats")
    return {
        **{key: getattr(sizes, key) for key in keys},
        "rows": by_class(sizes.classes, sizes.sizes),
        "extrapolation": None if guess is None else by_class(sizes.classes, guess.sizes),
        "steps": [
            {"rows": int(step.sizes.sum()), "epsilon": step.epsilon, "accuracy": step.accuracy}
            for step in sizes.steps
        ],
    }


def learning_curve_data(curve: LearningCurve) -> dict[str, Any]:
    """Return the data of a learning curve; an infinite number of rows becomes null in JSON."""
    sizes = [times * curve.n_rows for times in (1, *TIMES, math.inf)]
    return {
        "rows": by_class(curve.classes, curve.sizes),
        "measured": curve.history[["rows", "accuracy", "log_loss"]].droplevel(1, axis=1).to_dict("records"),
        "expected": [
            {"rows": n, "accuracy": curve.accuracy(n)._asdict(), "log_loss": curve.log_loss(n)._asdict()}
            for n in sizes
        ],
        "goal": curve.goal,
        "needed": [
            {"class": need.label, "rows": need.rows._asdict(), "probability": need.probability}
            for need in curve.needed
        ],
    }
