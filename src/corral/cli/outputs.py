"""What may be replaced by a command: a file of the kind that it writes, or an empty one, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from corral._persist.files import check_replaceable
from corral.cli.shared import STANDARD_STREAM, note

# In the head of every report.
_REPORT_MARK = b'<meta name="generator" content="corral">'
_PLOT_MARKS = {".png": b"\x89PNG\r\n\x1a\n", ".pdf": b"%PDF-", ".svg": b"<svg"}

# Bytes at the beginning of a file that are looked at.
_HEAD = 2_000


class Kind(NamedTuple):
    """A kind of file.

    Attributes
    ----------
    name : as in "this is a model of corral".
    recognises : tells whether a file is one.
    """

    name: str
    recognises: Callable[[Path], bool]


def check_kinds(*outputs: tuple[Path | None, Kind]) -> None:
    """Refuse to replace a file of another kind."""
    for path, kind in outputs:
        if path is not None and _holds_something(check_replaceable(path)) and not kind.recognises(path):
            raise ValueError(f"{path} is there and is not {kind.name}: remove it, or write to another file.")


def note_replaced(*paths: Path | None) -> None:
    """Say which files are there and will be replaced, when nothing can refuse to write them any more."""
    for path in paths:
        if path is not None and path != STANDARD_STREAM and _holds_something(path):
            note(f"{path} is there and will be replaced.")


def _holds_something(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)


def _is_model(path: Path) -> bool:
    from corral._persist.model_file import is_model

    return is_model(path)


def _is_report(path: Path) -> bool:
    return _REPORT_MARK in _head(path)


def _is_plot(path: Path) -> bool:
    mark = _PLOT_MARKS.get(path.suffix.lower())
    return mark is not None and mark in _head(path)


def table_of(name: str, has_names: Callable[[Sequence[str]], bool]) -> Kind:
    """The kind of tables whose columns have certain names."""

    def recognises(path: Path) -> bool:
        from corral.cli.tables import table_columns

        try:
            return has_names(table_columns(path))
        except (OSError, ValueError):
            return False

    return Kind(name, recognises)


def _are_predictions(columns: Sequence[str]) -> bool:
    """Whether the last columns are a label and what `corral predict` writes behind it."""
    labels = ((i, re.fullmatch(r"((?:predicted_)*)label", name)) for i, name in enumerate(columns[:-1]))
    answer = re.compile("p_.*|typicality|novel|in_set_.*|decision", re.DOTALL)
    return any(
        label
        and all(
            name.startswith(label[1]) and answer.fullmatch(name.removeprefix(label[1]))
            for name in columns[i + 1 :]
        )
        for i, label in labels
    )


MODEL = Kind("a model of corral", _is_model)
REPORT = Kind("a report of corral", _is_report)
PLOT = Kind("a plot", _is_plot)
PREDICTIONS = table_of("a table of predictions", _are_predictions)
