"""Functions that several commands use. Modules that `--help` does not need are imported inside functions."""

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

# The path - on the command line: the standard input or the standard output.
STANDARD_STREAM = Path("-")

# Largest number of names in a list. Lists in findings are shorter.
MOST_NAMED = 12

# Words and texts that are longer are shortened when they are printed: a word to its first characters, a text
# to its first and last characters.
_LONGEST_WORD, _SHORTENED_WORD = 300, 60
_LONGEST_TEXT, _SHORTENED_TEXT = 4000, 1000


def visible(text: str) -> str:
    r"""Return the text with invisible characters escaped as in Python, such as \x1b.

    Very long words and texts are shortened, because names of classes, columns and categories have any length.
    """
    text = re.sub(rf"(\S{{{_SHORTENED_WORD}}})\S{{{_LONGEST_WORD - _SHORTENED_WORD},}}", r"\1…", text)
    if len(text) > _LONGEST_TEXT:
        text = f"{text[:_SHORTENED_TEXT]} … {text[-_SHORTENED_TEXT:]}"
    return "".join(
        each if each.isprintable() or unicodedata.category(each) == "Zs" else ascii(each)[1:-1]
        for each in text
    )


def listed(names: Sequence[Any], show: Callable[[Any], str] = repr) -> str:
    """Return the first names of a list, and the number of further names."""
    return first_names(names, show, MOST_NAMED)


def note(message: str) -> None:
    """Issue a warning, which `app` prints as a note."""
    warnings.warn(message, stacklevel=2)


def check_different(*paths: Path | None) -> None:
    """Raise ValueError if two of the paths are the same file."""
    resolved = set()
    for path in paths:
        if path in (None, STANDARD_STREAM):
            continue
        if path.resolve() in resolved:
            raise ValueError(f"{path} is given twice: give a different name for each file.")
        resolved.add(path.resolve())


def load_classifier(
    path: Path, table: Path, na_values: Sequence[str] | None, *, explains: bool = False
) -> tuple[Any, ModelVariables]:
    """Load a classifier, and return it with its variables; `explains` requires a model of class densities.

    `table` is the file of the rows, to recognize that model and table were given in the wrong order.
    """
    from corral.cli.variables import ModelVariables
    from corral.estimators.tables import UnknownCategoriesWarning
    from corral.files.model_file import is_model, load_model

    # `ModelVariables` counts unknown categories in the whole table, the estimator only in a chunk.
    warnings.filterwarnings("ignore", ".* no training row has", UnknownCategoriesWarning)
    try:
        fitted = load_model(path)
    except ValueError:
        if table == STANDARD_STREAM or is_model(path) or not is_model(table):
            raise
        raise ValueError(
            f"{table} is a model, but {path} is not: give the model first, then the table."
        ) from None
    kind = type(fitted).__name__
    if not hasattr(fitted, "predict_proba"):
        raise ValueError(f"{path} contains a {kind}, which cannot predict labels.")
    if explains and not hasattr(fitted, "explain"):
        raise ValueError(
            f"{path} contains {kind}, which cannot explain labels: only models of class densities can."
        )
    if not hasattr(fitted, "feature_names_in_"):
        raise ValueError(
            f"{path} was fitted to an array without column names, so it cannot be used for a table."
        )
    return fitted, ModelVariables(fitted, na_values)


def naming_column(fitted: Any, file: TableFile) -> str | None:
    """Return the id column of the training table; None if there was none or `file` does not have it."""
    column = getattr(fitted, "row_names_column_", None)
    return column if column in file.columns else None


def threads(jobs: int) -> AbstractContextManager[Any]:
    """Return a context in which estimators with n_jobs=None, such as loaded models, use `jobs` threads."""
    import joblib

    if jobs == 0:
        raise ValueError("--jobs must not be 0.")
    config: AbstractContextManager[Any] = joblib.parallel_config(backend="threading", n_jobs=jobs)
    return config
