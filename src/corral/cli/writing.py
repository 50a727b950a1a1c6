"""Files that commands write: what they may replace, and tables, which are complete or not there at all.

A command replaces a file of the kind that it writes, or an empty one, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import typer

from corral.cli.formats import named_kind, named_separator, packed
from corral.cli.shared import STANDARD_STREAM, note
from corral.cli.tables import open_table, text_columns
from corral.files.atomic import check_replaceable, naming, replacing

MODEL, REPORT, PLOT = "a model of corral", "a report of corral", "a plot"
PREDICTIONS = "a table of predictions"

# What the first bytes of a file hold: every report, and plots by their suffix.
_HEAD = 2_000
_REPORT_MARK = b'<meta name="generator" content="corral">'
_PLOT_MARKS = {".png": b"\x89PNG\r\n\x1a\n", ".pdf": b"%PDF-", ".svg": b"<svg"}

_REPORT_SUFFIXES = (".html", ".htm", ".xhtml")

# Suffixes of files that others would try to open in vain.
_NO_MODELS = (".pkl", ".pickle", ".joblib", ".onnx")

# OWASP's list of how a formula may begin.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")

_MOST_EXCEL_ROWS = 1_048_576


# What may be replaced


def check_kinds(*outputs: tuple[Path | None, str | Sequence[str]]) -> None:
    """Refuse a name of another kind, and to replace a file of another kind than it will be.

    A kind is one of the above, or a table of these columns.
    """
    for path, kind in outputs:
        if path is not None and path != STANDARD_STREAM:
            _check_name(path, kind)
        if path in (None, STANDARD_STREAM) or not _holds_something(check_replaceable(path)):
            continue
        if not _is_of_kind(path, kind):
            name = kind if isinstance(kind, str) else f"a table of {len(kind)} such columns"
            raise ValueError(f"{path} is there and is not {name}: remove it, or write to another file.")


def _check_name(path: Path, kind: str | Sequence[str]) -> None:
    """Refuse a name that says that a report or a model is something else."""
    suffix = path.suffix.lower()
    if kind == REPORT and suffix not in _REPORT_SUFFIXES:
        raise ValueError(f"{path} must end in .html: a report is a page, and no other kind of file.")
    if kind == MODEL and suffix in _NO_MODELS:
        raise ValueError(f"{path} must not end in {suffix}: a model is a file of its own kind (.corral).")


def note_replaced(*paths: Path | None) -> None:
    """Say which files are there and will be replaced, when nothing can refuse to write them any more."""
    for path in paths:
        if path not in (None, STANDARD_STREAM) and _holds_something(path):
            note(f"{path} is there and will be replaced.")


def _holds_something(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _is_of_kind(path: Path, kind: str | Sequence[str]) -> bool:
    if kind == MODEL:
        from corral.files.model_file import is_model

        return is_model(path)
    if kind in (REPORT, PLOT):
        with path.open("rb") as file:
            head = file.read(_HEAD)
        mark = _REPORT_MARK if kind == REPORT else _PLOT_MARKS.get(path.suffix.lower())
        return mark is not None and mark in head
    try:
        columns = open_table(path).columns
    except (OSError, ValueError):
        return False
    return _are_predictions(columns) if kind == PREDICTIONS else columns == kind


def _are_predictions(columns: Sequence[str]) -> bool:
    """Whether the last columns are a label and what `corral predict` writes behind it."""
    answer = "(p_.*|typicality|novel|in_set_.*|decision)"
    for i, name in enumerate(columns[:-1]):
        label = re.fullmatch("((?:predicted_)*)label", name)
        if label and all(re.fullmatch(label[1] + answer, each, re.DOTALL) for each in columns[i + 1 :]):
            return True
    return False


# Text that a spreadsheet may run


def may_be_formula(value: Any) -> bool:
    """Whether a spreadsheet may calculate what stands in a cell; numbers, and signs alone, are harmless."""
    if not isinstance(value, str) or len(value) < 2 or not value.startswith(_FORMULA_STARTS):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False


def quoted(value: Any) -> Any:
    """The value with an apostrophe before it if it may be a formula: spreadsheets then take it as text."""
    return f"'{value}" if may_be_formula(value) else value


def formula_in(rows: pd.DataFrame, path: Path) -> str | None:
    """The first text, or name of a column, that a spreadsheet would calculate if rows go to this file."""
    if named_kind(path)[0] != "text":
        return None
    cells = chain(rows.columns, *(rows[name].unique() for name in text_columns(rows)))
    return next(filter(may_be_formula, cells), None)


def without_formulas(rows: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The rows with an apostrophe before every such text, so that spreadsheets take it as text."""
    if named_kind(path)[0] != "text":
        return rows
    texts = {name: rows[name].map(quoted) for name in text_columns(rows)}
    return rows.assign(**texts).rename(columns=quoted)


# Numbers in text files


def without_points(rows: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The rows with 2007 in place of 2007.0 in a text file: pandas makes it of 2007 if others are missing."""
    if named_kind(path)[0] != "text":
        return rows
    numbers = {name: rows[name].dropna() for name in rows.columns[rows.dtypes == np.float64]}
    whole = [name for name, each in numbers.items() if ((each % 1.0 == 0.0) & (each.abs() < 2.0**53)).all()]
    return rows.astype(dict.fromkeys(whole, "Int64"))


# Tables


def write_table(path: Path, rows: pd.DataFrame) -> None:
    """Write a table, which replaces an old one when it is complete."""
    with writing_table(path) as add:
        add(rows)


@contextmanager
def writing_table(path: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Yield a function that adds rows to a new table, which replaces an old one at the end of the block.

    The standard output gets rows as CSV, as they come.
    """
    kind, packing = named_kind(path)
    if path == STANDARD_STREAM:
        with naming("the standard output"):
            yield _text_writer(path, lambda content: typer.echo(content, nl=False))
        return
    with replacing(path) as new, new.open("wb") as file:
        if kind == "text":
            with packed(file, packing, "wb") as stream:
                yield _text_writer(path, stream.write)
        else:
            with (_excel_writer if kind == "Excel" else _arrow_writer)(path, file) as add:
                yield add


def _text_writer(path: Path, write: Callable[[bytes], object]) -> Callable[[pd.DataFrame], None]:
    """A function that writes rows as text, the first ones with the names of the columns."""
    is_first = True

    def add(rows: pd.DataFrame) -> None:
        nonlocal is_first
        text = rows.to_csv(sep=named_separator(path), index=False, header=is_first, lineterminator="\n")
        write(text.encode())
        is_first = False

    return add


def _arrow_table(rows: pd.DataFrame) -> Any:
    import pyarrow as pa

    return pa.Table.from_pandas(rows, preserve_index=False)


@contextmanager
def _arrow_writer(path: Path, file: IO[bytes]) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Yield a function that adds rows to a file of Parquet or Feather."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    is_parquet = named_kind(path)[0] == "Parquet"
    with ExitStack() as open_files:
        writer, schema = None, None

        def add(rows: pd.DataFrame) -> None:
            nonlocal writer, schema
            table = _arrow_table(rows)
            if writer is None:
                schema = table.schema
                new = pq.ParquetWriter if is_parquet else pa.ipc.new_file
                writer = open_files.enter_context(new(file, schema))
            writer.write_table(table.cast(schema))

        yield add


@contextmanager
def _excel_writer(path: Path, file: IO[bytes]) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Yield a function that adds rows to the only sheet of a workbook; text stays text, also a formula."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.utils.exceptions import IllegalCharacterError

    book = Workbook(write_only=True)
    sheet = book.create_sheet("predictions")
    n_rows = 0

    def cell(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            written = WriteOnlyCell(sheet, value)
        except IllegalCharacterError:
            raise ValueError(
                f"{path}: an Excel file cannot hold the text {value[:40]!r}: write to a .csv file."
            ) from None
        written.data_type = "s"
        return written

    def add(rows: pd.DataFrame) -> None:
        nonlocal n_rows
        table = _arrow_table(rows)
        names = [] if n_rows else [table.column_names]
        for row in chain(names, zip(*(column.to_pylist() for column in table.columns), strict=True)):
            n_rows += 1
            if n_rows > _MOST_EXCEL_ROWS:
                raise ValueError(
                    f"{path}: an Excel file holds at most {_MOST_EXCEL_ROWS} rows: write to a .csv file."
                )
            sheet.append([cell(value) for value in row])

    try:
        yield add
    except BaseException:
        sheet.close()  # or it would try to in the end, when its file is gone
        raise
    book.save(file)
