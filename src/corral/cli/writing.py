"""Tables that are written in the format of their name, chunk by chunk, complete or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from corral._persist.files import naming, replacing
from corral.cli.formats import Kind, named_kind, named_separator, packed
from corral.cli.shared import STANDARD_STREAM
from corral.cli.tables import text_columns
from corral.cli.text import may_be_formula, quoted

if TYPE_CHECKING:
    import pandas as pd

_MOST_EXCEL_ROWS = 1_048_576


def formula_in(rows: pd.DataFrame, path: Path) -> str | None:
    """The first text, or name of a column, that a spreadsheet would calculate if rows go to this file."""
    if named_kind(path)[0] is not Kind.text:
        return None
    cells = chain(rows.columns, *(rows[name] for name in text_columns(rows)))
    return next(filter(may_be_formula, cells), None)


def without_formulas(rows: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The rows with an apostrophe before every such text, so that spreadsheets take it as text."""
    if named_kind(path)[0] is not Kind.text:
        return rows
    texts = {name: rows[name].map(quoted) for name in text_columns(rows)}
    return rows.assign(**texts).rename(columns=quoted)


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
        yield _text_writer(path, _print)
        return
    with replacing(path) as new, new.open("wb") as file:
        if kind is Kind.text:
            with packed(file, packing, "wb") as stream:
                yield _text_writer(path, stream.write)
        else:
            with (_excel_writer if kind is Kind.excel else _arrow_writer)(path, file) as add:
                yield add


def _print(content: bytes) -> None:
    import typer

    with naming("the standard output"):
        typer.echo(content, nl=False)


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

    is_parquet = named_kind(path)[0] is Kind.parquet
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

    def append(values: Iterable[Any]) -> None:
        nonlocal n_rows
        n_rows += 1
        if n_rows > _MOST_EXCEL_ROWS:
            raise ValueError(
                f"{path}: an Excel file holds at most {_MOST_EXCEL_ROWS} rows: write to a .csv file."
            )
        sheet.append([cell(value) for value in values])

    def add(rows: pd.DataFrame) -> None:
        table = _arrow_table(rows)
        if n_rows == 0:
            append(table.column_names)
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            append(row)

    try:
        yield add
    except BaseException:
        sheet.close()  # or it would try to in the end, when its file is gone
        raise
    book.save(file)
