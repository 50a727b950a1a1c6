"""Write tables, whole or not at all, and check which files a command may replace.

A command replaces a file of the kind that it writes, or an empty file, and no other.
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

# What the first bytes of every report and of plots contain.
_HEAD = 2_000
_REPORT_TAG = b'<meta name="generator" content="corral">'
_PLOT_SIGNATURES = {".png": b"\x89PNG\r\n\x1a\n", ".pdf": b"%PDF-", ".svg": b"<svg"}

_REPORT_SUFFIXES = (".html", ".htm", ".xhtml")

# Suffixes of models that other programs write.
_OTHER_MODELS = (".pkl", ".pickle", ".joblib", ".onnx")

# OWASP's list of how a formula may begin.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")

_MOST_EXCEL_ROWS = 1_048_576


# What may be replaced


def check_kinds(*outputs: tuple[Path | None, str | Sequence[str]]) -> None:
    """Refuse an output whose name is of another kind, or that would replace a file of another kind.

    A kind is one of the constants above, or the columns of a table.
    """
    for path, kind in outputs:
        if path is None or path == STANDARD_STREAM:
            continue
        suffix = path.suffix.lower()
        if kind == REPORT and suffix not in _REPORT_SUFFIXES:
            raise ValueError(f"{path} must end in .html: a report is a page, and no other kind of file.")
        if kind == MODEL and suffix in _OTHER_MODELS:
            raise ValueError(f"{path} must not end in {suffix}: a model is a file of its own kind (.corral).")
        if _has_content(check_replaceable(path)) and not _is_of_kind(path, kind):
            name = kind if isinstance(kind, str) else f"a table of {len(kind)} such columns"
            raise ValueError(f"{path} is there and is not {name}: remove it, or write to another file.")


def note_replaced(*paths: Path | None) -> None:
    """Note files that will be replaced; called when no check can refuse to write them any more."""
    for path in paths:
        if path is not None and path != STANDARD_STREAM and _has_content(path):
            note(f"{path} is there and will be replaced.")


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _is_of_kind(path: Path, kind: str | Sequence[str]) -> bool:
    """Whether the content of a file is of a kind."""
    if kind == MODEL:
        from corral.files.model_file import is_model

        return is_model(path)
    if kind in (REPORT, PLOT):
        with path.open("rb") as file:
            head = file.read(_HEAD)
        content = _REPORT_TAG if kind == REPORT else _PLOT_SIGNATURES.get(path.suffix.lower())
        return content is not None and content in head
    try:
        columns = open_table(path).columns
    except (OSError, ValueError):
        return False
    return _are_predictions(columns) if kind == PREDICTIONS else columns == kind


def _are_predictions(columns: Sequence[str]) -> bool:
    """Whether the last columns are a label and columns that `corral predict` writes behind it."""
    names = "(p_.*|typicality|novel|in_set_.*|decision)"
    for i, name in enumerate(columns[:-1]):
        label = re.fullmatch("((?:predicted_)*)label", name)
        if label and all(re.fullmatch(label[1] + names, each, re.DOTALL) for each in columns[i + 1 :]):
            return True
    return False


# Text that a spreadsheet may run


def may_be_formula(value: Any) -> bool:
    """Whether a spreadsheet may run a cell as a formula; numbers and signs alone are harmless."""
    if not isinstance(value, str) or len(value) < 2 or not value.startswith(_FORMULA_STARTS):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False


def quoted(value: Any) -> Any:
    """The value, with an apostrophe before it if it may be a formula: spreadsheets then take it as text."""
    return f"'{value}" if may_be_formula(value) else value


def formula_in(rows: pd.DataFrame, path: Path) -> str | None:
    """The first cell or column name that a spreadsheet may run as a formula if rows go to this file."""
    if named_kind(path)[0] != "text":
        return None
    cells = chain(rows.columns, *(rows[name].unique() for name in text_columns(rows)))
    return next(filter(may_be_formula, cells), None)


def without_formulas(rows: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The rows with an apostrophe before all that may be a formula in a text file."""
    if named_kind(path)[0] != "text":
        return rows
    texts = {name: rows[name].map(quoted) for name in text_columns(rows)}
    return rows.assign(**texts).rename(columns=quoted)


# Numbers in text files


def without_points(rows: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The rows with 2007 for 2007.0 in a text file: beside missing values pandas reads 2007 as a float."""
    if named_kind(path)[0] != "text":
        return rows
    floats = {name: rows[name].dropna() for name in rows.columns[rows.dtypes == np.float64]}
    integers = [name for name, x in floats.items() if ((x % 1.0 == 0.0) & (x.abs() < 2.0**53)).all()]
    return rows.astype(dict.fromkeys(integers, "Int64"))


# Tables


def write_table(path: Path, rows: pd.DataFrame) -> None:
    """Write a table, which replaces an old file when it is complete."""
    with writing_table(path) as add:
        add(rows)


@contextmanager
def writing_table(path: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Yield a function that adds rows to a new table, which replaces an old file at the end of the block.

    Rows for the standard output are printed as CSV at once.
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
    """A function that writes rows as text; the first ones with the names of the columns."""
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
    """Yield a function that adds rows to the only sheet of a workbook; formulas are written as text."""
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
            text_cell = WriteOnlyCell(sheet, value)
        except IllegalCharacterError:
            raise ValueError(
                f"{path}: an Excel file cannot hold the text {value[:40]!r}: write to a .csv file."
            ) from None
        text_cell.data_type = "s"
        return text_cell

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
        sheet.close()  # otherwise openpyxl closes it later, when its file no longer exists
        raise
    book.save(file)
