"""What several commands do; nothing here loads more than `--help` needs."""

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

# What commands call their standard input and output.
STANDARD_STREAM = Path("-")

# Names that a sentence lists, more than those of findings.
MOST_NAMED = 12

# Words and texts that are longer are shortened when they are printed, and what is left of them then.
_MOST_OF_WORD, _LEFT_OF_WORD = 300, 60
_MOST_OF_TEXT, _LEFT_OF_TEXT = 4000, 1000


def visible(text: str) -> str:
    r"""The text with control characters, and all others that cannot be seen, written as in Python: \x1b.

    Names of classes, columns or levels may be of any length, and only their beginning is shown.
    """
    text = re.sub(rf"(\S{{{_LEFT_OF_WORD}}})\S{{{_MOST_OF_WORD - _LEFT_OF_WORD},}}", r"\1…", text)
    if len(text) > _MOST_OF_TEXT:
        text = f"{text[:_LEFT_OF_TEXT]} … {text[-_LEFT_OF_TEXT:]}"
    return "".join(
        each if each.isprintable() or unicodedata.category(each) == "Zs" else ascii(each)[1:-1]
        for each in text
    )


def listed(names: Sequence[Any], show: Callable[[Any], str] = repr) -> str:
    """The first of some names."""
    return first_names(names, show, MOST_NAMED)


def note(message: str) -> None:
    """Something that is good to know: told like a warning of the library."""
    warnings.warn(message, stacklevel=2)


def check_different(*paths: Path | None) -> None:
    """Refuse to write a file that is read, or written twice; the standard streams are no files."""
    given = [path for path in paths if path not in (None, STANDARD_STREAM)]
    for i, path in enumerate(given):
        if path.resolve() in [other.resolve() for other in given[:i]]:
            raise ValueError(f"{path} is named twice: every file needs a name of its own.")


def load_classifier(
    path: Path, table: Path, na_values: Sequence[str] | None, *, explains: bool = False
) -> tuple[Any, ModelVariables]:
    """A model that gives probabilities, and reasons if asked, and the variables that it reads.

    `table` is the file of the rows, which may have been named first by mistake.
    """
    from corral.cli.variables import ModelVariables
    from corral.estimators.tables import UnknownLevelsWarning
    from corral.files.model_file import is_model, load_model

    # `ModelVariables` counts unknown categories over all parts of a table, the estimator those of one part.
    warnings.filterwarnings("ignore", ".* no training row has", UnknownLevelsWarning)
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
    """The column that named the rows of a model when it was fitted, if a table has it."""
    column = getattr(fitted, "row_names_column_", None)
    return column if column in file.columns else None


def threads(jobs: int) -> AbstractContextManager[Any]:
    """For estimators that leave n_jobs open, as loaded ones do."""
    import joblib

    if jobs == 0:
        raise ValueError("--jobs must not be 0.")
    config: AbstractContextManager[Any] = joblib.parallel_config(backend="threading", n_jobs=jobs)
    return config
