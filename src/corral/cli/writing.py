"""Tables that are written, whole or not at all, in the format of their name; a stopped run can go on."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from corral._persist.files import STANDARD_STREAM, naming, replacing
from corral._persist.kept import KeptParts
from corral.cli.formats import Kind, named_kind, named_separator, packed
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
    """A table that takes the place of an old one when it is whole."""
    with _joining(path) as join:
        join(_packed(rows, path, first=True))


@contextmanager
def resuming_table(
    path: Path, job: Mapping[str, Any]
) -> Iterator[Callable[[pd.DataFrame, Callable[[pd.DataFrame], pd.DataFrame]], None]]:
    """Write a table whose rows take long to make: after a kill, those made before need not be made again.

    Gives ``add(chunk, make)``, which adds the rows that `make` makes of a chunk, or those that an earlier run
    of the same job has made of it. Until the table is whole they are kept in a hidden folder beside it, each
    chunk's in a file of its own.

    Parameters
    ----------
    path : the table to write.
    job : all that the rows depend on, as JSON knows it. What is kept of any other job is removed.
    """
    named_kind(path)  # or refused, before any work
    parts = KeptParts.of(path, json.dumps(job, sort_keys=True))
    added, found = False, False

    with parts.kept(), _joining(path) as join:

        def add(chunk: pd.DataFrame, make: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
            nonlocal added, found
            first, last = chunk.index[0], chunk.index[-1]
            content = parts.read(first, last)
            if content is None and found:
                warnings.warn(f"going on from row {first}, where a run was stopped.", stacklevel=2)
            found = content is not None
            if content is None:
                content = _packed(make(chunk), path, first=not added)
                parts.write(first, last, content)
            join(content)
            added = True

        yield add


@contextmanager
def printed_table() -> Iterator[Callable[[pd.DataFrame, Callable[[pd.DataFrame], pd.DataFrame]], None]]:
    """The same as `resuming_table`, but rows go to the standard output as CSV, and nothing is kept."""
    import typer

    added = False

    def add(chunk: pd.DataFrame, make: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
        nonlocal added
        with naming("the standard output"):
            typer.echo(_packed(make(chunk), STANDARD_STREAM, first=not added), nl=False)
        added = True

    yield add


def _packed(rows: pd.DataFrame, path: Path, *, first: bool) -> bytes:
    """Rows as they are kept until the file is whole; the first ones of a text come with the names."""
    if named_kind(path)[0] is Kind.text:
        text: str = rows.to_csv(sep=named_separator(path), index=False, header=first, lineterminator="\n")
        return text.encode()
    content: bytes = rows.to_parquet(index=False)
    return content


@contextmanager
def _joining(path: Path) -> Iterator[Callable[[bytes], object]]:
    """Gives what adds packed rows to a new table, which takes its place when all went well."""
    kind, packing = named_kind(path)
    with replacing(path) as part, part.open("wb") as file:
        if kind is Kind.text:
            with packed(file, packing) as stream:
                yield stream.write
        else:
            with (_excel_writer if kind is Kind.excel else _arrow_writer)(path, file) as add:
                yield lambda content: add(_arrow_table(content))


def _arrow_table(content: bytes) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(pa.BufferReader(content)).read()


@contextmanager
def _arrow_writer(path: Path, file: IO[bytes]) -> Iterator[Callable[[Any], None]]:
    """Gives what adds tables to a file of Parquet or Feather."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    is_parquet = named_kind(path)[0] is Kind.parquet
    with ExitStack() as open_files:
        writer, schema = None, None

        def add(table: Any) -> None:
            nonlocal writer, schema
            if writer is None:
                schema = table.schema
                new = pq.ParquetWriter if is_parquet else pa.ipc.new_file
                writer = open_files.enter_context(new(file, schema))
            writer.write_table(table.cast(schema))

        yield add


@contextmanager
def _excel_writer(path: Path, file: IO[bytes]) -> Iterator[Callable[[Any], None]]:
    """Gives what adds tables to the only sheet of a workbook; all text stays text, formulas as well."""
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

    def add(table: Any) -> None:
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
