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

# Parts of the page's one script, in this order.
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
    """Write an HTML page that shows what a classifier has learnt and why rows get their labels.

    After a summary it answers five questions: what marks each class, how good the classifier is per class,
    why a row gets its label, which rows deserve a look, and what to do next (with sample sizes, if they are
    given). The page is one file, works without a network and can be printed.

    Parameters
    ----------
    estimator : RodeoClassifier, CorralClassifier or LSPClassifier, or Pipeline that ends in one
        A fitted classifier. The page of LSPClassifier has labels, probabilities and errors only, no
        explanations. The page of a pipeline shows the values that its last step gets.
    X : array-like of shape (n_samples, n_features)
        Rows to browse. The index of a pandas frame names them. Training rows are named by the index of the X
        given to fit.
    y : array-like of shape (n_samples,), default=None
        Their classes, if known.
    path : str or path, default=None
        The file. An existing file is replaced when the new one is complete. None returns the page, to be
        shown in a notebook.
    held_out : HeldOut, default=None
        Classes and probabilities of rows that were not used to fit. Errors and calibration on the page are
        counted on these rows, and the page repeats its `claim`. If it has `parts`, as from
        `HeldOut.of_folds`, its rows are rows of `X`: the page shows these rows only, each labelled and
        explained by a classifier that was fitted without it. By default errors are counted on `X` if `y` is
        given, and the page says so.
    sample_sizes : SampleSizes or LearningCurve, default=None
        Result of `estimate_sample_sizes`.
    title : str, default=None
        Heading of the page.
    source : str, default=None
        Name of the data, for instance a file name.
    max_samples : int, default=2000
        Largest number of rows to browse. If X has more, rows with wrong labels are chosen first, then the
        same number from each class as far as possible. The page has fewer rows if it would exceed 1 MB, or if
        more than 200 rows would take long to explain.
    random_state : int, RandomState or None, default=0
        Seed of the choice of rows.

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
    Needs jinja2, which comes with the extra ``cli``. The page holds rows of `X` and of the training data: do
    not share it where these data must not go.

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
        local = "; call its to_local() first" if hasattr(final, "to_local") else ""
        order = f"; {_ORDER}" if isinstance(final, str | os.PathLike) else ""
        raise TypeError(f"a report is of a {kinds}, not of a {type(final).__name__}{local}{order}.")
    if isinstance(X, str | os.PathLike):
        raise TypeError(f"X must hold the rows to browse, got {X!r}; {_ORDER}.")
    if isinstance(y, str | os.PathLike):
        raise TypeError(f"y must hold the classes of the rows, got {y!r}; the file is named by path={y!r}.")
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
    """A report, as shown in notebooks.

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
        """Show the page in a sandboxed frame: it can save pictures but cannot reach the notebook."""
        return (
            '<iframe title="Report" sandbox="allow-scripts allow-downloads" width="100%" '
            f'height="{self.height}" srcdoc="{escape(self.html)}"></iframe>'
        )


def _template() -> Any:
    """The template of the page; it escapes all names."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError('Reports need jinja2: pip install "corral[cli]".') from error
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_read("page.html"))


def _render(template: Any, contents: Contents, title: str) -> bytes:
    """Fill in the template, with as many rows as a page can hold."""
    script, style = "".join(_read(f"{name}.js") for name in _SCRIPTS), _read("page.css")
    hashes = {"script_hash": _hash(script), "style_hash": _hash(style)}
    fixed = {"title": title, "script": script, "style": style} | hashes
    n_rows = len(contents.rows)
    while True:
        text: str = template.render(fixed | contents.words(n_rows), data=contents.script_data(n_rows))
        page = text.encode("utf-8", "replace")  # names may hold lone surrogates
        if len(page) <= _MOST_BYTES or n_rows <= 1:
            return page
        n_rows //= 2


def _read(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Hash by which the content security policy allows the one script or style."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
