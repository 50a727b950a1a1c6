"""Tables in files, read whole or in chunks; each fault told in one sentence.

Rows are counted from 0, as in pandas and in `explain`.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Bools
from corral.checking.columns import numbers_in
from corral.cli.formats import (
    Kind,
    TableFile,
    as_table_file,
    decimal_points,
    reading,
)
from corral.cli.shared import note

if TYPE_CHECKING:
    import pandas as pd

# Rows of a chunk: large enough that overhead does not count, small enough for any memory.
CHUNK = 20_000

# Of so few digits that numpy holds it, and written in the only way.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
# What pandas calls an index without a name in files of Parquet and Feather.
_INDEX = re.compile(r"__index_level_\d+__")
MISSING = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "<NA>"]


def table_columns(path: Path | TableFile) -> list[str]:
    """Names of the columns; two of the same name are refused."""
    file = as_table_file(path)
    with _sentences(file):
        match file.kind:
            case Kind.text:
                names = _text_names(file)
            case Kind.excel:
                names = [
                    _name(i, name) for i, name in enumerate(_read_excel(file, header=None, nrows=1).iloc[0])
                ]
            case _:
                with file.raw() as raw:
                    names = [str(name) for name in _open_arrow(file, raw).schema.names]
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise ValueError(f"{file} has the column {twice[0]!r} twice: give every column a name of its own.")
    return names


def _text_names(file: TableFile) -> list[str]:
    import pandas as pd

    with file.opened() as (stream, _):
        first = pd.read_csv(stream, header=None, nrows=1, keep_default_na=False, **_csv_options(file, str))
    return [_name(i, name) for i, name in enumerate(first.iloc[0])]


def _name(i: int, name: str) -> str:
    """The name of column i, as pandas calls it where it has none."""
    return name or f"Unnamed: {i}"


def read_chunks(
    path: Path | TableFile,
    columns: Sequence[str],
    *,
    levels: Sequence[str] = (),
    as_text: Sequence[str] = (),
    verbatim: Sequence[str] = (),
    na_values: Sequence[str] = (),
    on_progress: Callable[[float], None] = lambda share: None,
) -> Iterator[pd.DataFrame]:
    """Some columns, chunk by chunk, with rows numbered on.

    Parameters
    ----------
    path : the table.
    columns : which ones, besides those of `as_text` and `verbatim`.
    levels : those of them of which text files and spreadsheets give the text, such as 01.
    as_text : columns of which they do, too, and where "NA" is a text like any other; missing are empty cells
        and `na_values`.
    verbatim : the same, but nothing is missing.
    na_values : what stands for a missing value, besides an empty cell and NA in its many forms.
    on_progress : is called with the share of the file that has been read, after each chunk.
    """
    file = as_table_file(path)
    present = table_columns(file)
    wanted = list(dict.fromkeys((*columns, *as_text, *verbatim)))
    missing = [name for name in wanted if name not in present]
    if missing:
        raise ValueError(f"{file} has no column {', '.join(map(repr, missing))}.")
    start = 0
    read = _arrow_chunks if file.is_typed else _excel_chunks if file.kind is Kind.excel else _csv_chunks
    with _sentences(file):
        markers = {name: [*MISSING, *na_values] for name in wanted if name not in verbatim}
        markers |= {name: ["", *na_values] for name in as_text}
        for chunk in read(file, wanted, {*levels, *as_text, *verbatim}, markers, on_progress):
            if len(chunk):  # pandas gives an empty one for a table of names alone
                chunk.index = range(start, start + len(chunk))
                start += len(chunk)
                yield chunk[wanted]
    if start == 0:
        raise ValueError(f"{file} has no rows.")


def read_table(path: Path | TableFile, columns: Sequence[str], **options: Any) -> pd.DataFrame:
    """Some columns of all rows; the options are those of `read_chunks`."""
    import pandas as pd

    return pd.concat(read_chunks(path, columns, **options))


def is_unnamed(column: str) -> bool:
    """Whether a column got its name from pandas: most often it numbers the rows."""
    return column.startswith(("Unnamed: ", "__index_level_"))


def is_index(column: str, file: TableFile) -> bool:
    """Whether a column is an index of pandas that had no name, which pandas does not show as a column."""
    return file.is_typed and _INDEX.fullmatch(column) is not None


def text_columns(rows: pd.DataFrame) -> list[str]:
    """Names of the columns that do not hold numbers."""
    return [name for name in rows.columns if rows[name].dtype.kind not in "biuf"]


def missing_rows(table: pd.DataFrame) -> Bools:
    """Which rows lack a value in some column."""
    lacking: Bools = table.isna().to_numpy().any(axis=1)
    return lacking


def as_labels(column: pd.Series[Any], path: Path | TableFile, if_missing: str) -> NDArray[Any]:
    """Classes of the rows: numbers and yes or no stay what they are, all else is text.

    Those of text files and spreadsheets are text unless all of them are written as Python would write the
    number. `if_missing` ends the sentence that refuses a missing one: what can be done about it.
    """
    if column.isna().all():
        raise ValueError(f"{path}: the target {column.name!r} is empty in all rows.")
    refuse_missing(column, "target", path, if_missing)
    labels: NDArray[Any] = column.to_numpy()
    if labels.dtype.kind in "biuf":
        return labels
    values = {text: text for text in map(str, labels)}
    if not as_table_file(path).is_typed:
        values = _as_written(values)
    return np.array([values[str(label)] for label in labels])


def refuse_missing(column: pd.Series[Any], role: str, path: Path | TableFile, remedy: str) -> None:
    """Refuse a target or a column of groups that lacks a value; `remedy` ends the sentence."""
    missing = column.isna()
    if missing.any():
        n = int(missing.sum())
        raise ValueError(
            f"{path}: the {role} {column.name!r} is missing in {n} row{'s' * (n > 1)}, the first of them "
            f"row {missing.idxmax()}: fill it in, or {remedy}."
        )


def _as_written(texts: Collection[str]) -> dict[str, Any]:
    """Values of different texts: numbers, or yes and no, if this keeps every one as it is written."""
    if all(text in ("True", "False") for text in texts):
        return {text: text == "True" for text in texts}
    if all(map(_WHOLE.fullmatch, texts)):
        return {text: int(text) for text in texts}
    if all(map(_is_float, texts)) and "-0.0" not in texts:  # which is the same number as 0.0
        return {text: float(text) for text in texts}
    return {text: text for text in texts}


def _is_float(text: str) -> bool:
    try:
        value = float(text)
    except ValueError:
        return False
    return math.isfinite(value) and repr(value) == text


def may_mean_missing(text: str) -> bool:
    """Whether a text is NA in one of its many forms, or nothing but spaces."""
    return text.strip().casefold() in {marker.casefold() for marker in MISSING}


@contextmanager
def _sentences(file: TableFile) -> Iterator[None]:
    """Say in one sentence why a file cannot be read."""
    from pandas.errors import EmptyDataError, ParserError

    try:
        with reading(file):
            yield
    except EmptyDataError:
        raise ValueError(f"{file} is empty.") from None
    except ParserError as error:
        said = str(error).removeprefix("Error tokenizing data. C error: ").strip().removesuffix(".")
        raise ValueError(f"{file} is not a proper table: {said}.") from None


def _finite(texts: Sequence[str]) -> list[float]:
    """Those that are numbers."""
    import pandas as pd

    numbers = numbers_in(pd.Series(texts, dtype=object))
    return [float(number) for number in numbers[np.isfinite(numbers)]]


def _csv_options(file: TableFile, kind: Any = None) -> dict[str, Any]:
    import pandas as pd

    assert file.dialect is not None  # of text
    options = {
        "sep": r"\s+" if file.dialect.separator == " " else file.dialect.separator,
        "decimal": file.dialect.decimal,
        "encoding": file.dialect.encoding,
        "skiprows": file.dialect.n_before,
        "dtype": kind,
    }
    # Since 3.1 pandas reads the number that is nearest to the digits; before, only if it is asked to.
    if tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1):
        options["float_precision"] = "round_trip"
    return options


def _csv_chunks(
    file: TableFile,
    columns: Sequence[str],
    as_text: Collection[str],
    markers: Mapping[str, list[str]],
    on_progress: Callable[[float], None],
) -> Iterator[pd.DataFrame]:
    import pandas as pd

    options = _csv_options(file, dict.fromkeys(as_text, str))
    options |= {"na_values": dict(markers), "keep_default_na": False}
    # All columns: with usecols pandas would cut rows that are too long, without a word.
    with (
        file.opened() as (stream, raw),
        pd.read_csv(stream, chunksize=CHUNK, low_memory=False, **options) as chunks,
    ):
        size = max(os.fstat(raw.fileno()).st_size, 1)
        for chunk in chunks:
            _check_index(chunk.index, file)
            yield _with_points(chunk, as_text) if options["decimal"] == "," else chunk
            on_progress(raw.tell() / size)


def _check_index(index: pd.Index[Any], file: TableFile) -> None:
    """Refuse rows of more fields than there are names, unless the first ones name rows, as R writes it.

    Of such fields pandas makes an index.
    """
    import pandas as pd

    if isinstance(index, pd.RangeIndex) and index.start % CHUNK == 0:
        return
    counts = index.dtype.kind in "iu" and bool((np.diff(index.to_numpy()) == 1).all())
    names = index.nlevels == 1 and index.dtype.kind not in "iufb" and index.is_unique
    if not (counts or names):
        raise ValueError(f"{file} is not a proper table: rows have more fields than there are names.")
    note(f"{file} has one name less than columns, as R writes it: the first column is left out.")


def _with_points(chunk: pd.DataFrame, as_text: Collection[str]) -> pd.DataFrame:
    """Numbers with a decimal comma in columns that hold text as well, written with a point."""
    mixed = [name for name in text_columns(chunk) if name not in as_text]
    return chunk.assign(**{name: decimal_points(chunk[name]) for name in mixed})


def _excel_chunks(
    file: TableFile,
    columns: Sequence[str],
    as_text: Collection[str],
    markers: Mapping[str, list[str]],
    on_progress: Callable[[float], None],
) -> Iterator[pd.DataFrame]:
    whole = _read_excel(file, dtype=dict.fromkeys(as_text, str), na_values=dict(markers))
    for start in range(0, len(whole), CHUNK):
        yield whole[start : start + CHUNK]
        on_progress(min((start + CHUNK) / len(whole), 1.0))


def _read_excel(file: TableFile, **options: Any) -> pd.DataFrame:
    """The first sheet of a workbook; an empty one is refused."""
    import pandas as pd
    from python_calamine import CalamineError

    if options.get("header", 0) is None:
        options["dtype"] = str
    with file.raw() as raw:
        try:
            with pd.ExcelFile(raw, engine="calamine") as book:
                sheets = book.sheet_names
                first = pd.read_excel(book, sheet_name=0, keep_default_na=False, **options)
        except (CalamineError, LookupError, TypeError, ValueError) as error:
            raise ValueError(
                f"{file} cannot be read as Excel: {_first_line(error)}; it may be damaged, or be locked."
            ) from None
    if first.empty and not len(first.columns):
        raise ValueError(f"{file} is empty.")
    if len(sheets) > 1:
        note(f"{file} has {len(sheets)} sheets; the first, {sheets[0]!r}, is read.")
    return first


def _arrow_chunks(
    file: TableFile,
    columns: Sequence[str],
    as_text: Collection[str],
    markers: Mapping[str, list[str]],
    on_progress: Callable[[float], None],
) -> Iterator[pd.DataFrame]:
    import pyarrow as pa

    done = 0
    with file.raw() as raw:
        opened = _open_arrow(file, raw)
        try:
            for batch in opened.batches(list(columns)):
                # Without what pandas has noted in the file, which may be damaged.
                chunk = batch.replace_schema_metadata(None).to_pandas()
                for name, texts in markers.items():
                    column = chunk[name]
                    numeric = column.dtype.kind in "biuf"
                    chunk[name] = column.mask(column.isin(_finite(texts) if numeric else texts))
                done += len(chunk)
                yield chunk
                on_progress(done / max(opened.n_rows, done))
        except pa.ArrowException as error:
            raise ValueError(f"{file} cannot be read as {file.kind}: {_first_line(error)}.") from None


class _Opened(NamedTuple):
    """A file of Parquet or Feather: its schema and number of rows, and what gives batches of some columns."""

    schema: Any
    n_rows: int
    batches: Callable[[list[str]], Iterable[Any]]


def _open_arrow(file: TableFile, raw: IO[bytes]) -> _Opened:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if file.kind is Kind.parquet:
            parquet = pq.ParquetFile(raw)
            n_rows = parquet.metadata.num_rows
            return _Opened(
                parquet.schema_arrow, n_rows, lambda columns: parquet.iter_batches(CHUNK, columns=columns)
            )
        feather = pa.ipc.open_file(raw)
        numbers = range(feather.num_record_batches)
        n_rows = sum(feather.get_batch(i).num_rows for i in numbers)
        return _Opened(feather.schema, n_rows, lambda columns: _feather_batches(feather, columns))
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{file} cannot be read as {file.kind}: {_first_line(error)}.") from None


def _feather_batches(feather: Any, columns: list[str]) -> Iterator[Any]:
    for i in range(feather.num_record_batches):
        batch = feather.get_batch(i).select(columns)
        for start in range(0, batch.num_rows, CHUNK):
            yield batch.slice(start, CHUNK)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].removesuffix(".") or type(error).__name__
