"""Functions that several commands share; nothing here imports more than `--help` needs."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corral.sentences.numbers import listed as first_names

if TYPE_CHECKING:
    from corral.cli.formats import TableFile
    from corral.cli.variables import ModelVariables

# On the command line, the standard input or the standard output.
STANDARD_STREAM = Path("-")

# Number of names in a list; findings list fewer.
MOST_NAMED = 12

# Longer words and texts are shortened when they are printed: to their first characters, and a text also to
# its last ones.
_LONGEST_WORD, _SHORTENED_WORD = 300, 60
_LONGEST_TEXT, _SHORTENED_TEXT = 4000, 1000


def visible(text: str) -> str:
    r"""The text with control characters and other invisible ones escaped as in Python, such as \x1b.

    Names of classes, columns and categories may be of any length, so very long words are shortened.
    """
    text = re.sub(rf"(\S{{{_SHORTENED_WORD}}})\S{{{_LONGEST_WORD - _SHORTENED_WORD},}}", r"\1…", text)
    if len(text) > _LONGEST_TEXT:
        text = f"{text[:_SHORTENED_TEXT]} … {text[-_SHORTENED_TEXT:]}"
    return "".join(
        each if each.isprintable() or unicodedata.category(each) == "Zs" else ascii(each)[1:-1]
        for each in text
    )


def listed(names: Sequence[Any], show: Callable[[Any], str] = repr) -> str:
    """The first names of a list, and how many more there are."""
    return first_names(names, show, MOST_NAMED)


def note(message: str) -> None:
    """Print a note: `app` prints warnings, also from the library, as notes."""
    warnings.warn(message, stacklevel=2)


def check_different(*paths: Path | None) -> None:
    """Refuse a command that would write a file that it reads, or write a file twice."""
    resolved = set()
    for path in paths:
        if path in (None, STANDARD_STREAM):
            continue
        if path.resolve() in resolved:
            raise ValueError(f"{path} is named twice: every file needs a name of its own.")
        resolved.add(path.resolve())


def load_classifier(
    path: Path, table: Path, na_values: Sequence[str] | None, *, explains: bool = False
) -> tuple[Any, ModelVariables]:
    """Load a model that predicts probabilities, and explains them if it must; also return its variables.

    `table` is the file of the rows: if model and table were given in the wrong order, the error says so.
    """
    from corral.cli.variables import ModelVariables
    from corral.estimators.tables import UnknownCategoriesWarning
    from corral.files.model_file import is_model, load_model

    # `ModelVariables` counts unknown categories over all parts of a table, the estimator in one part only.
    warnings.filterwarnings("ignore", ".* no training row has", UnknownCategoriesWarning)
    try:
        fitted = load_model(path)
    except ValueError:
        if table == STANDARD_STREAM or is_model(path) or not is_model(table):
            raise
        raise ValueError(
            f"{table} is a model, and {path} is none: name the model first, then the table."
        ) from None
    kind = type(fitted).__name__
    if not hasattr(fitted, "predict_proba"):
        raise ValueError(f"{path} holds a {kind}, which gives no labels.")
    if explains and not hasattr(fitted, "explain"):
        raise ValueError(f"{path} holds {kind}, which cannot explain its labels: only class densities can.")
    if not hasattr(fitted, "feature_names_in_"):
        raise ValueError(f"{path} was fitted to an array without names, so its columns are not known.")
    return fitted, ModelVariables(fitted, na_values)


def naming_column(fitted: Any, file: TableFile) -> str | None:
    """The column that named the training rows of a model, if the table has it."""
    column = getattr(fitted, "row_names_column_", None)
    return column if column in file.columns else None


def threads(jobs: int) -> AbstractContextManager[Any]:
    """The number of threads for estimators whose n_jobs is None, as it is in loaded models."""
    import joblib

    if jobs == 0:
        raise ValueError("--jobs must not be 0.")
    config: AbstractContextManager[Any] = joblib.parallel_config(backend="threading", n_jobs=jobs)
    return config
