"""Write tables completely or not at all, and check which existing files a command may replace.

A command may replace an empty file, or a file with the kind of content that it writes: a model, a report, a
plot, predictions, or a table with the same columns.
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

# Bytes that occur in the first _HEAD bytes of every report and of every plot.
_HEAD = 2_000
_REPORT_TAG = b'<meta name="generator" content="corral">'
_PLOT_SIGNATURES = {".png": b"\x89PNG\r\n\x1a\n", ".pdf": b"%PDF-", ".svg": b"<svg"}

_REPORT_SUFFIXES = (".html", ".htm", ".xhtml")

# Suffixes of models that other programs write.
_OTHER_MODELS = (".pkl", ".pickle", ".joblib", ".onnx")

# The first characters of formulas, from a list of OWASP.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")

_MOST_EXCEL_ROWS = 1_048_576


# Which files may be replaced


def check_kinds(*outputs: tuple[Path | None, str | Sequence[str]]) -> None:
    """Raise ValueError if an output has a wrong ending, or would replace a file of another kind.

    Each output is a path and the kind of its content: one of the constants above, or the columns of a table.
    """
    for path, kind in outputs:
        if path is None or path == STANDARD_STREAM:
            continue
        suffix = path.suffix.lower()
        if kind == REPORT and suffix not in _REPORT_SUFFIXES:
            raise ValueError(f"{path} must end in .html, because a report is an HTML page.")
        if kind == MODEL and suffix in _OTHER_MODELS:
            raise ValueError(f"{path} must not end in {suffix}, which is another file format; use .corral.")
        if _has_content(check_replaceable(path)) and not _is_of_kind(path, kind):
            name = kind if isinstance(kind, str) else f"a table with the same {len(kind)} columns"
            raise ValueError(f"{path} exists and is not {name}: remove it, or write to another file.")


def note_replaced(*paths: Path | None) -> None:
    """Print a note about each file that will be replaced; called after all checks have passed."""
    for path in paths:
        if path is not None and path != STANDARD_STREAM and _has_content(path):
            note(f"{path} exists and will be replaced.")


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _is_of_kind(path: Path, kind: str | Sequence[str]) -> bool:
    """Whether the content of a file is of this kind."""
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
    """Whether the last columns are a label and the other columns that `corral predict` writes."""
    names = "(p_.*|typicality|novel|in_set_.*|decision)"
    for i, name in enumerate(columns[:-1]):
        label = re.fullmatch("((?:predicted_)*)label", name)
        if label and all(re.fullmatch(label[1] + names, each, re.DOTALL) for each in columns[i + 1 :]):
            return True
    return False


# Text that a spreadsheet may run


def may_be_formula(value: Any) -> bool:
    """Whether a spreadsheet may run a cell as a formula. Numbers and single characters are harmless."""
    if not isinstance(value, str) or len(value) < 2 or not value.startswith(_FORMULA_STARTS):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False


def quoted(value: Any) -> Any:
    """Put an apostrophe before a value that may be a formula, so that spreadsheets read it as text."""
    return f"'{value}" if may_be_formula(value) else value


def formula_in(rows: pd.DataFrame, path: Path) -> str | None:
    """Return the first cell or column name that may be run as a formula if rows are written to this file."""
    if named_kind(path)[0] != "text":
        return None
    cells = chain(rows.columns, *(rows[name].unique() for name in text_columns(rows)))
    return next(filter(may_be_formula, cells), None)


def without_formulas(rows: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Put an apostrophe before cells and column names that may be formulas, if the file is a text file."""
    if named_kind(path)[0] != "text":
        return rows
    texts = {name: rows[name].map(quoted) for name in text_columns(rows)}
    return rows.assign(**texts).rename(columns=quoted)


# Numbers in text files


def without_points(rows: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Write 2007 instead of 2007.0 to a text file: pandas reads columns with missing values as floats."""
    if named_kind(path)[0] != "text":
        return rows
    floats = {name: rows[name].dropna() for name in rows.columns[rows.dtypes == np.float64]}
    integers = [name for name, x in floats.items() if ((x % 1.0 == 0.0) & (x.abs() < 2.0**53)).all()]
    return rows.astype(dict.fromkeys(integers, "Int64"))


# Tables


def write_table(path: Path, rows: pd.DataFrame) -> None:
    """Write a table. An existing file is replaced when the new file is complete."""
    with writing_table(path) as add:
        add(rows)


@contextmanager
def writing_table(path: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Yield a function that adds rows to a new file, which replaces an existing file at the end of the block.

    For the standard output, the function prints rows as CSV at once.
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
    """Return a function that writes rows as text, in the first call after a line of column names."""
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
    """Yield a function that adds rows to a Parquet or Feather file."""
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
    """Yield a function that adds rows to a workbook with one sheet; formulas are written as text."""
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
                f"{path}: an Excel file cannot contain the text {value[:40]!r}: write to a .csv file."
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
                    f"{path}: an Excel file can have at most {_MOST_EXCEL_ROWS} rows: write to a .csv file."
                )
            sheet.append([cell(value) for value in row])

    try:
        yield add
    except BaseException:
        sheet.close()  # otherwise openpyxl closes the sheet later, when its temporary file no longer exists
        raise
    book.save(file)
