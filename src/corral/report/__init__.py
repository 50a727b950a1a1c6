"""The report: one HTML page that holds its data, style and script, and asks no network for anything."""

from __future__ import annotations

import base64
import hashlib
import os
import warnings
from dataclasses import dataclass
from functools import partial
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from corral.array_types import Floats, Integers
from corral.estimators.corral_classifier import CorralClassifier
from corral.estimators.evaluated_rows import EvaluatedRows, evaluate_rows
from corral.estimators.lspc import LSPClassifier
from corral.estimators.pipelines import last_step, rows_of_last_step, steps_in_words
from corral.estimators.rodeo_classifier import RodeoClassifier
from corral.estimators.tables import UnknownLevelsWarning
from corral.estimators.validation import check_integer
from corral.evaluation.held_out import HeldOut, take_rows
from corral.files.atomic import replacing
from corral.planning import LearningCurve, SampleSizes
from corral.report.contents import Contents
from corral.report.numbers import Judge, Judged, Shown

_KINDS = (RodeoClassifier, CorralClassifier, LSPClassifier)

# A page that mails and opens well. Rows to browse are left out until it is no larger.
_MOST_BYTES = 1_000_000

# Parts of the page's one script, in this order.
_SCRIPTS = ("elements", "pictures", "data", "classes", "rows", "quality", "page")


@overload
def write_report(
    path: None,
    estimator: RodeoClassifier | CorralClassifier | LSPClassifier | Pipeline,
    X: Any,
    y: ArrayLike | None = None,
    *,
    held_out: HeldOut | None = None,
    sample_sizes: SampleSizes | LearningCurve | None = None,
    title: str | None = None,
    source: str | None = None,
    max_samples: int = 2000,
    random_state: int | np.random.RandomState | None = 0,
) -> Page: ...


@overload
def write_report(
    path: str | os.PathLike[str],
    estimator: RodeoClassifier | CorralClassifier | LSPClassifier | Pipeline,
    X: Any,
    y: ArrayLike | None = None,
    *,
    held_out: HeldOut | None = None,
    sample_sizes: SampleSizes | LearningCurve | None = None,
    title: str | None = None,
    source: str | None = None,
    max_samples: int = 2000,
    random_state: int | np.random.RandomState | None = 0,
) -> Path: ...


def write_report(
    path: str | os.PathLike[str] | None,
    estimator: RodeoClassifier | CorralClassifier | LSPClassifier | Pipeline,
    X: Any,
    y: ArrayLike | None = None,
    *,
    held_out: HeldOut | None = None,
    sample_sizes: SampleSizes | LearningCurve | None = None,
    title: str | None = None,
    source: str | None = None,
    max_samples: int = 2000,
    random_state: int | np.random.RandomState | None = 0,
) -> Path | Page:
    """Write an HTML page that shows what a classifier has learnt and why rows get their labels.

    After a summary it answers five questions: what marks each class, how good it is per class, why a row gets
    its label, which rows deserve a look, and what to do next (with sample sizes, if they are given). It is
    one file, works without a network and can be printed.

    Parameters
    ----------
    path : str, path or None
        The file; one that is there is replaced when the new one is complete. None returns the page, to be
        shown in a notebook.
    estimator : RodeoClassifier, CorralClassifier or LSPClassifier, or Pipeline that ends in one
        A fitted one. LSPClassifier explains nothing, so its page has labels, probabilities and errors only.
        The page of a pipeline shows values as its last step sees them.
    X : array-like of shape (n_samples, n_features)
        Rows to browse. They are called as the index of a pandas frame says, and so are training rows if the
        index of the X given to fit had names.
    y : array-like of shape (n_samples,), default=None
        Their classes, if known.
    held_out : HeldOut, default=None
        Classes, labels and probabilities of rows that were not seen in fitting: errors and calibration are
        theirs, and the page repeats what it claims of them. If it has `parts`, as `HeldOut.of_folds` makes
        them, these are rows of `X`: the page shows them and no others, each labelled and explained by a
        classifier that has not seen it. Without `held_out`, errors are those of `X`, provided that `y` is
        given, and the page says so.
    sample_sizes : SampleSizes or LearningCurve, default=None
        What `estimate_sample_sizes` found.
    title : str, default=None
        Heading of the page.
    source : str, default=None
        What the data are called, for instance a file name.
    max_samples : int, default=2000
        How many rows can be browsed at most. Of more, wrong ones are taken first, then the same number from
        each class as far as there are so many. Of wide tables it may be fewer, since a page stays below 1 MB.
    random_state : int, RandomState or None, default=0
        Draws these rows.

    Returns
    -------
    page : Path or Page
        The file; or, if `path` is None, the page.

    See Also
    --------
    RodeoClassifier.describe : The numbers behind the map and the pages of classes.
    RodeoClassifier.explain : The numbers behind the explanations.

    Notes
    -----
    Needs jinja2, which comes with the extra ``cli``. The page holds rows of `X` and of the training data:
    do not pass it on where these must not go.

    Examples
    --------
    >>> import tempfile
    >>> from corral import CorralClassifier, write_report
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(50, groups=(4, 5), random_state=0)
    >>> classifier = CorralClassifier(random_state=0).fit(X, y)
    >>> X_new, y_new = make_shifted_groups(20, groups=(4, 5), random_state=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(f"{folder}/groups.html", classifier, X_new, y_new, title="Two groups")
    ...     "<title>Two groups</title>" in page.read_text(encoding="utf-8")
    True
    """
    compose = partial(
        _compose,
        estimator,
        X,
        y,
        held_out=held_out,
        sample_sizes=sample_sizes,
        title=title,
        source=source,
        max_samples=max_samples,
        random_state=random_state,
    )
    if path is None:
        return Page(compose().decode("utf-8"))
    with replacing(path) as part:  # a folder that is missing is told of before all the work
        part.write_bytes(compose())
    return Path(path)


@dataclass(frozen=True)
class Page:
    """A report that notebooks show.

    Attributes
    ----------
    html : str
        The page.
    height : int, default=800
        Pixels of it that are seen at once.
    """

    html: str
    height: int = 800

    def __repr__(self) -> str:
        return f"Page of {len(self.html)} characters"

    def _repr_html_(self) -> str:
        """Show the page in a frame of its own, in which its script can reach nothing but itself.

        Its pictures can be saved.
        """
        return (
            '<iframe title="Report" sandbox="allow-scripts allow-downloads" width="100%" '
            f'height="{self.height}" srcdoc="{escape(self.html)}"></iframe>'
        )


def _compose(
    estimator: Any,
    X: Any,
    y: ArrayLike | None,
    *,
    held_out: HeldOut | None,
    sample_sizes: SampleSizes | LearningCurve | None,
    title: str | None,
    source: str | None,
    max_samples: int,
    random_state: int | np.random.RandomState | None,
) -> bytes:
    """Check everything and make the page."""
    template = _template()
    whole, estimator = estimator, last_step(estimator)
    if not isinstance(estimator, _KINDS):
        kinds = " or ".join(kind.__name__ for kind in _KINDS)
        local = "; call its to_local() first" if hasattr(estimator, "to_local") else ""
        raise TypeError(f"a report is of a {kinds}, not of a {type(estimator).__name__}{local}.")
    check_is_fitted(whole, msg="%(name)s is not fitted: call fit before writing its report.")
    max_rows = check_integer("max_samples", max_samples)
    given = X if hasattr(X, "shape") else np.asarray(X)
    rows = rows_of_last_step(whole, given)
    truth = None if y is None else _check_labels(y, len(rows), estimator.classes_)
    if held_out is not None and not np.array_equal(held_out.classes, estimator.classes_):
        raise ValueError(
            f"held_out has the classes {held_out.classes.tolist()}, "
            f"and the estimator {estimator.classes_.tolist()}."
        )
    _check_parts(held_out, truth, len(rows))
    random = check_random_state(random_state)
    judged, known = _judge(estimator, rows, truth, held_out)
    order = _draw(known, truth, estimator.classes_, max_rows, random)
    judges = _judges(estimator, rows, given, held_out, order, known)
    of_shown = judges[0].proba if known.proba is None else known.of(order)
    index = getattr(given, "index", None)
    names = order.tolist() if index is None else index[order].tolist()
    word = "Row" if index is None or index.name is None else str(index.name)
    of_rows = Shown(judges, of_shown, order, names, word, truth, known.positions.size)
    steps = steps_in_words(whole)
    contents = Contents.gather(estimator, of_rows, judged, sample_sizes, source, steps)
    heading = title or (f"Classes of {source}" if source else "Classification report")
    n_browsed = len(order)
    page = _render(template, contents, n_browsed, heading)
    while len(page) > _MOST_BYTES and n_browsed > 1:
        n_browsed //= 2
        page = _render(template, contents, n_browsed, heading)
    return page


class _Known(NamedTuple):
    """Rows that the page may show, by position, and what is known of them yet.

    Attributes
    ----------
    positions : (n_rows,)
    proba : (n_rows, n_classes)
    rows : all rows of the table with the densities that the estimator gives them.
    """

    positions: Integers
    proba: Floats | None = None
    rows: EvaluatedRows | None = None

    def of(self, order: Integers) -> Floats:
        """Probabilities of some of the rows."""
        assert self.proba is not None
        by_position = np.argsort(self.positions)
        at = by_position[np.searchsorted(self.positions, order, sorter=by_position)]
        return self.proba[at]


def _judge(
    estimator: Any, rows: Any, truth: NDArray[Any] | None, held_out: HeldOut | None
) -> tuple[Judged | None, _Known]:
    """Find predictions whose truth is known, and which rows the page may show."""
    everything = np.arange(len(rows))
    if held_out is None:
        if truth is None:
            return None, _Known(everything)
        proba, evaluated = _predicted(estimator, rows)
        judged = Judged(HeldOut(estimator.classes_, truth, proba), unseen=False, on_page=True)
        return judged, _Known(everything, proba, evaluated)
    if held_out.positions is not None:
        return Judged(held_out, unseen=True, on_page=True), _Known(held_out.positions, held_out.proba)
    # Other labels tell without a prediction of all rows, which may take long.
    if not np.array_equal(held_out.truth, truth if truth is not None else ()):
        return Judged(held_out, unseen=True, on_page=False), _Known(everything)
    proba, evaluated = _predicted(estimator, rows)
    on_page = np.array_equal(held_out.proba, proba)
    return Judged(held_out, unseen=True, on_page=on_page), _Known(everything, proba, evaluated)


def _predicted(estimator: Any, rows: Any) -> tuple[Floats, EvaluatedRows | None]:
    """Probabilities of rows, and the densities that they come from if there are any."""
    evaluated = _evaluated(estimator, rows)
    return estimator.predict_proba(rows) if evaluated is None else evaluated.proba, evaluated


def _evaluated(estimator: Any, rows: Any) -> EvaluatedRows | None:
    """Rows with their densities, or None if the classifier has none."""
    return None if isinstance(estimator, LSPClassifier) else evaluate_rows(estimator, rows)


def _judges(
    estimator: Any, rows: Any, given: Any, held_out: HeldOut | None, order: Integers, known: _Known
) -> list[Judge]:
    """Who labels and explains which of the rows that are shown."""
    if held_out is None or not held_out.parts:
        shown_rows = take_rows(rows, order)
        evaluated = _evaluated(estimator, shown_rows) if known.rows is None else known.rows.take(order)
        return [Judge(estimator, shown_rows, np.arange(order.size), evaluated, None)]
    judges = []
    for part in held_out.parts:
        shown = np.flatnonzero(np.isin(order, part.rows))
        if not shown.size:
            continue
        of_part = rows_of_last_step(part.estimator, take_rows(given, order[shown]))
        with warnings.catch_warnings():
            if part.learnt_from is not None:  # levels that only rows left out have, as new rows may, too
                warnings.simplefilter("ignore", UnknownLevelsWarning)
            evaluated = _evaluated(last_step(part.estimator), of_part)
        judges.append(Judge(last_step(part.estimator), of_part, shown, evaluated, part.learnt_from))
    return judges


def _check_parts(held_out: HeldOut | None, truth: NDArray[Any] | None, n: int) -> None:
    """Refuse rows that were held out, but are not those on the page."""
    positions = None if held_out is None else held_out.positions
    if held_out is None or positions is None:
        return
    if truth is None:
        raise ValueError("held_out names rows of X, and y, their labels, is not given.")
    if positions.size and positions.max() >= n:
        raise ValueError(f"held_out names row {positions.max()} of X, which has {n} rows.")
    if not np.array_equal(held_out.truth, truth[positions]):
        raise ValueError(
            "held_out has other labels of its rows than y: hand over the X and y it was made of."
        )


def _check_labels(y: ArrayLike, n: int, classes: NDArray[Any]) -> NDArray[Any]:
    """Labels of the rows, all of them known to the estimator."""
    labels: NDArray[Any] = column_or_1d(y)
    if len(labels) != n:
        raise ValueError(f"y must hold a label for each of the {n} rows of X, got {len(labels)}.")
    known = set(classes.tolist())
    for i, label in enumerate(labels.tolist()):
        if label not in known:
            raise ValueError(f"y holds the class {label!r} in row {i}, which the estimator does not know.")
    return labels.astype(classes.dtype)


def _draw(
    known: _Known,
    truth: NDArray[Any] | None,
    classes: NDArray[Any],
    max_rows: int,
    random: np.random.RandomState,
) -> Integers:
    """Positions of the rows to browse: wrong ones first, as far as they are known, then classes in turns."""
    order: Integers = np.sort(known.positions)[random.permutation(known.positions.size)]
    if truth is not None:
        right = np.zeros(order.size, dtype=np.bool_)
        if known.proba is not None:
            right = classes[known.of(order).argmax(axis=1)] == truth[order]
        order, right = order[np.argsort(right, kind="stable")], np.sort(right)
        turn = np.empty(order.size, dtype=np.int64)  # how many rows of its class come before each
        for label in np.unique(truth):
            of_class = np.flatnonzero(truth[order] == label)
            turn[of_class] = np.arange(of_class.size)
        order = order[np.lexsort((turn, right))]
    return order[:max_rows]


def _template() -> Any:
    """The page, to be filled in: every name in it is escaped."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError('Reports need jinja2: pip install "corral[cli]".') from error
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    # Without spaces; and a page that its own script cannot parse must not be written.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment.from_string(_read("page.html"))


def _render(template: Any, contents: Contents, n_rows: int, title: str) -> bytes:
    """The page with so many rows to browse."""
    script, style = "".join(_read(f"{name}.js") for name in _SCRIPTS), _read("page.css")
    page: str = template.render(
        contents.words,
        title=title,
        data=contents.shown(n_rows),
        n_browsed=n_rows,
        script=script,
        style=style,
        script_hash=_hash(script),
        style_hash=_hash(style),
    )
    return page.encode("utf-8", "replace")  # names may hold halves of characters


def _read(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """How a content security policy names the one script or style that may run."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
