"""Read tables from files, at once or in chunks. Row numbers begin with 0."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from corral.array_types import Bools
from corral.checking.columns import numbers_in
from corral.cli.formats import TableFile, reading, recognize, with_decimal_points
from corral.cli.shared import note

_Streams = tuple[IO[bytes], IO[bytes]]
_Markers = Mapping[str, list[str]]
_Chunks = Iterator[tuple[pd.DataFrame, float]]

# Rows of a chunk: enough rows that the overhead is small, few enough to need little memory.
CHUNK = 20_000

# The name of an index without a name in files of Parquet and Feather that pandas wrote.
_INDEX = re.compile(r"__index_level_\d+__")
# Texts that stand for a missing value.
MISSING = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "<NA>"]


def open_table(
    path: Path, separator: str | None = None, decimal: str | None = None, encoding: str | None = None
) -> TableFile:
    """Detect the format and the columns of a file; raise ValueError if a column name occurs twice."""
    file = recognize(path, separator, decimal, encoding)
    with reading(file), file.opened() as (stream, _):
        if file.is_typed:
            opened = _open_arrow(file, stream)
            file.columns = [str(name) for name in getattr(opened, "schema_arrow", opened.schema).names]
        else:
            options: dict[str, Any] = {"header": None, "nrows": 1, "dtype": str, "keep_default_na": False}
            if file.kind == "Excel":
                first = _read_excel(file, stream, **options)
            else:
                first = pd.read_csv(stream, **options, **_csv_options(file))
            # The names that pandas gives to columns without a name.
            file.columns = [name or f"Unnamed: {i}" for i, name in enumerate(first.iloc[0])]
    twice = [name for name, n in Counter(file.columns).items() if n > 1]
    if twice:
        raise ValueError(f"{file} has the column {twice[0]!r} twice: give each column a different name.")
    return file


def read_chunks(
    file: TableFile,
    columns: Sequence[str],
    texts: Mapping[str, Sequence[str]] | None = None,
    na_values: Sequence[str] = (),
    *,
    size: int = 0,
    on_progress: Callable[[float], None] = lambda share: None,
) -> Iterator[pd.DataFrame]:
    """Yield the columns of a table in chunks; the index of a chunk contains the row numbers in the table.

    Parameters
    ----------
    file : the file.
    columns : names of columns to read.
    texts : by column, the texts that stand for a missing value. In text files and spreadsheets, these columns
        are read as text, so that 01 stays 01. They are read in addition to `columns`.
    na_values : texts that stand for a missing value in all other columns, besides the texts of `MISSING`.
    size : largest number of rows in a chunk; `CHUNK` if it is 0.
    on_progress : called after each chunk with the share of the file that has been read.
    """
    texts = texts or {}
    wanted = list(dict.fromkeys((*columns, *texts)))
    lacking = [name for name in wanted if name not in file.columns]
    if lacking:
        pairs = [(near_name(name, file.columns), name) for name in lacking]
        hints = [f"{near!r} for {name!r}" for near, name in pairs if near]
        hint = f"; did you mean {', '.join(hints)}?" if hints else "."
        raise ValueError(f"{file} has no column {', '.join(map(repr, lacking))}{hint}")
    markers = {name: list(texts.get(name, [*MISSING, *na_values])) for name in wanted}
    start, size = 0, size or CHUNK
    read = _arrow_chunks if file.is_typed else _excel_chunks if file.kind == "Excel" else _csv_chunks
    with reading(file), file.opened() as streams:
        for chunk, share in read(file, streams, markers, texts, size):
            if len(chunk):  # pandas yields an empty chunk for a table without rows
                chunk.index = range(start, start + len(chunk))
                start += len(chunk)
                yield chunk[wanted]
                on_progress(share)
    if start == 0:
        raise ValueError(f"{file} has no rows.")


def read_table(
    file: TableFile,
    columns: Sequence[str],
    texts: Mapping[str, Sequence[str]] | None = None,
    na_values: Sequence[str] = (),
) -> pd.DataFrame:
    """Read all rows at once, as `read_chunks` does; the type of a column depends on all of its cells."""
    return pd.concat(read_chunks(file, columns, texts, na_values, size=sys.maxsize))


def near_name(name: str, columns: Sequence[str]) -> str | None:
    """Return the most similar column name, ignoring case; None if no name is similar."""
    by_folded = {column.casefold(): column for column in reversed(columns)}
    near = get_close_matches(name.casefold(), by_folded, n=1)
    return by_folded[near[0]] if near else None


def is_index(column: str, file: TableFile) -> bool:
    """Whether a column is an unnamed index that pandas wrote to the file, not a column of the table."""
    return file.is_typed and _INDEX.fullmatch(column) is not None


def text_columns(rows: pd.DataFrame) -> list[str]:
    """Return the names of the columns whose type is not numeric."""
    return [name for name in rows.columns if rows[name].dtype.kind not in "biuf"]


def missing_rows(table: pd.DataFrame) -> Bools:
    """Return whether each row (n_rows,) has a missing value."""
    is_missing: Bools = table.isna().to_numpy().any(axis=1)
    return is_missing


def _csv_options(file: TableFile) -> dict[str, Any]:
    options = {
        "sep": r"\s+" if file.separator == " " else file.separator,
        "decimal": file.decimal,
        "encoding": file.encoding,
        "skiprows": file.n_before,
    }
    # pandas before 3.1 does not read the float nearest to the digits by default.
    if tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1):
        options["float_precision"] = "round_trip"
    return options


# A reader for each kind of file, which yields chunks and the share of the table that has been read


def _csv_chunks(
    file: TableFile, streams: _Streams, markers: _Markers, texts: Collection[str], size: int
) -> _Chunks:
    stream, raw = streams
    options = {"na_values": markers, "keep_default_na": False, "low_memory": False}
    options["dtype"] = dict.fromkeys(texts, str)
    n_bytes, start = max(os.fstat(raw.fileno()).st_size, 1), 0
    # All columns are read, because with usecols pandas silently drops surplus cells of a row.
    with pd.read_csv(stream, chunksize=size, **options, **_csv_options(file)) as chunks:
        for chunk in chunks:
            _check_index(chunk.index, start, file)
            start += len(chunk)
            if file.decimal == ",":  # pandas leaves numbers as they are in columns that also hold text
                mixed = [name for name in text_columns(chunk) if name not in texts]
                mixed = [name for name in mixed if pd.api.types.infer_dtype(chunk[name]) == "string"]
                chunk = chunk.assign(**{name: with_decimal_points(chunk[name]) for name in mixed})  # noqa: PLW2901
            yield chunk, raw.tell() / n_bytes


def _check_index(index: pd.Index[Any], start: int, file: TableFile) -> None:
    """Raise ValueError if rows have more cells than column names, unless the first cells are row names.

    pandas takes the first cells as the index if the first row has more cells than there are column names.
    """
    if isinstance(index, pd.RangeIndex) and index.start == start:
        return
    are_numbers = index.dtype.kind in "iu" and bool((np.diff(index.to_numpy()) == 1).all())
    are_names = index.nlevels == 1 and index.dtype.kind not in "iufb" and index.is_unique
    if not (file.has_row_names and (are_numbers or are_names)):
        raise ValueError(f"{file} is not a proper table: rows have more cells than there are column names.")
    note(f"{file} has no name for its first column, as in files of R: this column is left out.")


def _excel_chunks(
    file: TableFile, streams: _Streams, markers: _Markers, texts: Collection[str], size: int
) -> _Chunks:
    # Read as objects first, because pandas would convert true, false and missing values to numbers.
    types = {name: str if name in texts else object for name in markers}
    rows = _read_excel(file, streams[0], dtype=types, na_values=markers, keep_default_na=False)
    rows = rows.infer_objects()
    for start in range(0, len(rows), size):
        yield rows[start : start + size], min((start + size) / len(rows), 1.0)


def _read_excel(file: TableFile, stream: IO[bytes], **options: Any) -> pd.DataFrame:
    """Return the first sheet of a workbook; raise ValueError if it is empty."""
    from python_calamine import CalamineError

    try:
        with pd.ExcelFile(stream, engine="calamine") as book:
            sheets = book.sheet_names
            first = pd.read_excel(book, sheet_name=0, **options)
    except (LookupError, TypeError, ValueError) as error:  # the workbook is damaged
        raise CalamineError(str(error)) from None
    if first.empty and not len(first.columns):
        raise ValueError(f"{file} is empty.")
    if len(sheets) > 1:
        note(f"{file} has {len(sheets)} sheets; only the first sheet, {sheets[0]!r}, is read.")
    return first


def _arrow_chunks(
    file: TableFile, streams: _Streams, markers: _Markers, texts: Collection[str], size: int
) -> _Chunks:
    opened, names, done = _open_arrow(file, streams[0]), list(markers), 0
    if file.kind == "Parquet":
        n_rows = opened.metadata.num_rows
        # In a damaged file the number of rows may be negative.
        batches = opened.iter_batches(min(size, max(n_rows, 1)), columns=names)
    else:
        n_rows = sum(opened.get_batch(i).num_rows for i in range(opened.num_record_batches))
        batches = _feather_batches(opened, names, size)
    finite = {name: numbers_in(pd.Series(missing, dtype=object)) for name, missing in markers.items()}
    finite = {name: numbers[np.isfinite(numbers)] for name, numbers in finite.items()}
    for batch in batches:
        # The metadata of pandas are removed, because they may be damaged.
        chunk = batch.replace_schema_metadata(None).to_pandas()
        for name in names:
            missing = finite[name] if chunk[name].dtype.kind in "biuf" else markers[name]
            chunk[name] = chunk[name].mask(chunk[name].isin(missing))
        done += len(chunk)
        yield chunk, done / n_rows


def _feather_batches(opened: Any, names: list[str], size: int) -> Iterator[Any]:
    for i in range(opened.num_record_batches):
        batch = opened.get_batch(i).select(names)
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size)


def _open_arrow(file: TableFile, stream: IO[bytes]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(stream) if file.kind == "Parquet" else pa.ipc.open_file(stream)
    except OSError as error:  # the file is damaged
        raise pa.ArrowException(str(error)) from None
