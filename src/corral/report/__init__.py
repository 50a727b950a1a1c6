"""The report: one HTML page that holds its data, style and script and needs no network."""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from corral.estimators.corral_classifier import CorralClassifier
from corral.estimators.lspc import LSPClassifier
from corral.estimators.pipelines import last_step, steps_in_words
from corral.estimators.rodeo_classifier import RodeoClassifier
from corral.estimators.validation import check_integer
from corral.evaluation.held_out import HeldOut
from corral.files.atomic import replacing
from corral.planning import LearningCurve, SampleSizes
from corral.report.contents import Contents
from corral.report.shown import choose_rows

_KINDS = (RodeoClassifier, CorralClassifier, LSPClassifier)

_ORDER = "call write_report(estimator, X, y, path)"

# A larger page is hard to mail and slow to open: rows to browse are left out until it is small enough.
_MOST_BYTES = 1_000_000

# Files that are joined, in this order, to the script of the page.
_SCRIPTS = ("elements", "pictures", "data", "classes", "rows", "quality", "page")


@overload
def write_report(
    estimator: RodeoClassifier | CorralClassifier | LSPClassifier | Pipeline,
    X: Any,
    y: ArrayLike | None = ...,
    path: None = ...,
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
    estimator: RodeoClassifier | CorralClassifier | LSPClassifier | Pipeline,
    X: Any,
    y: ArrayLike | None = ...,
    path: str | os.PathLike[str] = ...,
    *,
    held_out: HeldOut | None = None,
    sample_sizes: SampleSizes | LearningCurve | None = None,
    title: str | None = None,
    source: str | None = None,
    max_samples: int = 2000,
    random_state: int | np.random.RandomState | None = 0,
) -> Path: ...


def write_report(
    estimator: RodeoClassifier | CorralClassifier | LSPClassifier | Pipeline,
    X: Any,
    y: ArrayLike | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    held_out: HeldOut | None = None,
    sample_sizes: SampleSizes | LearningCurve | None = None,
    title: str | None = None,
    source: str | None = None,
    max_samples: int = 2000,
    random_state: int | np.random.RandomState | None = 0,
) -> Path | Page:
    """Write an HTML page that describes a fitted classifier and explains the labels of rows.

    After a summary, the page answers five questions: which variables describe each class, how good the
    classifier is for each class, why a row gets its label, which rows to look at, and what to do next (with
    sample sizes, if they are given). The page is one file, works without a network and can be printed.

    Parameters
    ----------
    estimator : RodeoClassifier, CorralClassifier or LSPClassifier, or Pipeline that ends in one
        A fitted classifier. The page of an LSPClassifier has labels, probabilities and errors, but no
        explanations. The page of a pipeline shows values as they are before its last step.
    X : array-like of shape (n_samples, n_features)
        Rows to browse. If X is a pandas frame, its index labels identify the rows. Training rows are
        identified by the index of the frame that was passed to `fit`.
    y : array-like of shape (n_samples,), default=None
        Classes of the rows of `X`, if known.
    path : str or path, default=None
        Path of the file. An existing file is replaced when the new file is complete. If None, the page is
        returned, to be shown in a notebook.
    held_out : HeldOut, default=None
        Classes and probabilities of rows that were not used to fit. All scores on the page are computed from
        these rows, and the page repeats `held_out.claim`. If `held_out` has `parts`, as from
        `HeldOut.of_folds`, its rows are rows of `X`: the page shows only these rows, each labeled and
        explained by a classifier that was fitted without the row. By default, scores are computed from `X`
        if `y` is given, and the page says so.
    sample_sizes : SampleSizes or LearningCurve, default=None
        Result of `estimate_sample_sizes`.
    title : str, default=None
        Heading of the page.
    source : str, default=None
        Name of the data, for instance a file name.
    max_samples : int, default=2000
        Largest number of rows to browse. If X has more rows, rows with wrong labels are chosen first if the
        page can count them, then the same number from each class as far as possible. The page has fewer rows
        if it would exceed 1 MB, or if more than 200 rows would take long to explain.
    random_state : int, RandomState or None, default=0
        Seed of the random choice of rows.

    Returns
    -------
    page : Path or Page
        The path of the file or, if `path` is None, the page.

    See Also
    --------
    RodeoClassifier.describe : The numbers behind the map and the pages of classes.
    RodeoClassifier.explain : The numbers behind the explanations.

    Notes
    -----
    Needs jinja2, which the extra ``cli`` installs. The page holds rows of `X` and of the training data: share
    the page only with people who may see these rows.

    Examples
    --------
    >>> import tempfile
    >>> from corral import CorralClassifier, write_report
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(50, groups=(4, 5), random_state=0)
    >>> classifier = CorralClassifier(random_state=0).fit(X, y)
    >>> X_new, y_new = make_shifted_groups(20, groups=(4, 5), random_state=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(classifier, X_new, y_new, f"{folder}/groups.html", title="Two groups")
    ...     "<title>Two groups</title>" in page.read_text(encoding="utf-8")
    True
    """
    template = _template()
    final = last_step(estimator)
    if not isinstance(final, _KINDS):
        kinds = " or ".join(kind.__name__ for kind in _KINDS)
        local = "; call to_local() of this estimator first" if hasattr(final, "to_local") else ""
        order = f"; {_ORDER}" if isinstance(final, str | os.PathLike) else ""
        raise TypeError(f"write_report needs a {kinds}, got a {type(final).__name__}{local}{order}.")
    if isinstance(X, str | os.PathLike):
        raise TypeError(f"X must hold the rows to browse, got {X!r}; {_ORDER}.")
    if isinstance(y, str | os.PathLike):
        raise TypeError(f"y must hold the classes of the rows, got {y!r}; pass the file as path={y!r}.")
    check_is_fitted(estimator, msg="%(name)s is not fitted: call fit before writing its report.")
    max_rows = check_integer("max_samples", max_samples)
    heading = title or (f"Classes of {source}" if source else "Classification report")

    def make_page() -> bytes:
        rows, random = X if hasattr(X, "shape") else np.asarray(X), check_random_state(random_state)
        shown = choose_rows(estimator, rows, y, held_out, max_rows, random)
        contents = Contents.gather(final, shown, sample_sizes, source, steps_in_words(estimator))
        return _render(template, contents, heading)

    if path is None:
        return Page(make_page().decode("utf-8"))
    with replacing(path) as part:  # refuses a missing folder before all work
        part.write_bytes(make_page())
    return Path(path)


@dataclass(frozen=True)
class Page:
    """A report that a notebook can show.

    Attributes
    ----------
    html : str
        The page.
    height : int, default=800
        Height of the frame in pixels.
    """

    html: str
    height: int = 800

    def __repr__(self) -> str:
        return f"Page of {len(self.html)} characters"

    def _repr_html_(self) -> str:
        """Return a sandboxed frame, in which the page can save pictures but cannot reach the notebook."""
        return (
            '<iframe title="Report" sandbox="allow-scripts allow-downloads" width="100%" '
            f'height="{self.height}" srcdoc="{escape(self.html)}"></iframe>'
        )


def _template() -> Any:
    """Return the template of the page; it escapes all texts of the user."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError('Reports need jinja2: pip install "corral[cli]".') from error
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_read("page.html"))


def _render(template: Any, contents: Contents, title: str) -> bytes:
    """Return the page with as many rows as fit into the largest size of a page."""
    script, style = "".join(_read(f"{name}.js") for name in _SCRIPTS), _read("page.css")
    hashes = {"script_hash": _hash(script), "style_hash": _hash(style)}
    fixed = {"title": title, "script": script, "style": style} | hashes
    n_rows = len(contents.rows)
    while True:
        text: str = template.render(fixed | contents.words(n_rows), data=contents.script_data(n_rows))
        page = text.encode("utf-8", "replace")  # column names may hold lone surrogates
        if len(page) <= _MOST_BYTES or n_rows <= 1:
            return page
        n_rows //= 2


def _read(name: str) -> str:
    """Return the text of a file of this package."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash that allows a script or style in the content security policy."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
