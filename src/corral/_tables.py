"""Tables in files, read whole or in chunks and written whole or not at all; each fault told in one sentence.

Rows are counted from 0, as in pandas and in `explain`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corral._model_file import replacing

if TYPE_CHECKING:
    import pandas as pd

# Rows of a chunk: large enough that overhead does not count, small enough for any memory.
CHUNK = 20_000

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_MISSING = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "<NA>"]


def table_columns(path: Path) -> list[str]:
    """Names of the columns; two of the same name are refused."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    if not path.is_file():
        raise ValueError(f"{path} is not a file.")
    if _is_parquet(path):
        with _sentences(path):
            names = [str(name) for name in _open_parquet(path).schema_arrow.names]
    else:
        import pandas as pd

        with _sentences(path):
            first = pd.read_csv(path, header=None, nrows=1, **_csv_options(path, str))
        # As pandas calls a column without a name.
        names = first.iloc[0].fillna(pd.Series([f"Unnamed: {i}" for i in first.columns])).tolist()
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise ValueError(f"{path} has the column {twice[0]!r} twice: give every column a name of its own.")
    return names


def read_chunks(path: Path, columns: Sequence[str], *, as_text: Sequence[str] = ()) -> Iterator[pd.DataFrame]:
    """Some columns, chunk by chunk, with rows numbered on; those `as_text` as they stand in a CSV file."""
    missing = [name for name in dict.fromkeys((*columns, *as_text)) if name not in table_columns(path)]
    if missing:
        raise ValueError(f"{path} has no column {', '.join(map(repr, missing))}.")
    wanted = list(dict.fromkeys((*columns, *as_text)))
    start = 0
    with _sentences(path):
        for chunk in (_parquet_chunks if _is_parquet(path) else _csv_chunks)(path, wanted, as_text):
            chunk.index = range(start, start + len(chunk))
            start += len(chunk)
            yield chunk[wanted]
    if start == 0:
        raise ValueError(f"{path} has no rows.")


def read_table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Some columns of all rows."""
    import pandas as pd

    return pd.concat(read_chunks(path, columns))


def is_unnamed(column: str) -> bool:
    """Whether a column got its name from pandas: most often it numbers the rows."""
    return column.startswith(("Unnamed: ", "__index_level_"))


def numeric_columns(table: pd.DataFrame) -> list[str]:
    """Names of the columns that hold numbers, or yes and no, and nothing else."""
    return [name for name in table.columns if table[name].dtype.kind in "biuf"]


def as_numbers(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The table as finite floats; text, missing and infinite values are refused, the first one named."""
    import pandas as pd

    for name in table.columns:
        column = table[name]
        numbers = pd.to_numeric(column, errors="coerce") if column.dtype.kind not in "biuf" else column
        missing = column.isna()
        text = numbers.isna() & ~missing
        if text.any():
            row = text.idxmax()
            raise ValueError(
                f"{path}: column {name!r} is not numeric: row {row} holds {str(column[row])[:40]!r}."
            )
        if missing.any():
            raise ValueError(
                f"{path}: column {name!r} has {missing.sum()} missing values, the first in row "
                f"{missing.idxmax()}: fill them in or leave these rows out."
            )
        infinite = np.isinf(numbers.astype(np.float64))
        if infinite.any():
            raise ValueError(f"{path}: column {name!r} is infinite in row {infinite.idxmax()}.")
    return table.astype(np.float64)


def as_labels(column: pd.Series[Any], path: Path) -> NDArray[Any]:
    """Classes of the rows: numbers and yes or no stay what they are, all else is text."""
    missing = column.isna()
    if missing.any():
        raise ValueError(
            f"{path}: the target {column.name!r} is missing in {missing.sum()} rows, the first of them "
            f"row {missing.idxmax()}."
        )
    labels: NDArray[Any] = column.to_numpy()
    return labels if labels.dtype.kind in "biuf" else np.array([str(label) for label in labels])


@contextmanager
def writing_table(path: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Gives what adds rows to a new table, which takes its place when all rows are there."""
    parquet = _is_parquet(path)
    with replacing(path) as part:
        if parquet:
            import pyarrow as pa
            import pyarrow.parquet as pq

            writers: list[Any] = []

            def add(rows: pd.DataFrame) -> None:
                table = pa.Table.from_pandas(rows, preserve_index=False)
                if not writers:
                    writers.append(pq.ParquetWriter(part, table.schema))
                writers[0].write_table(table.cast(writers[0].schema))

            try:
                yield add
            finally:
                for writer in writers:
                    writer.close()
        else:
            with part.open("w", encoding="utf-8", newline="") as file:

                def add(rows: pd.DataFrame) -> None:
                    options: dict[str, Any] = {"sep": _SEPARATORS[path.suffix.lower()], "index": False}
                    rows.to_csv(file, header=file.tell() == 0, lineterminator="\n", **options)

                yield add


def _is_parquet(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix not in (*_SEPARATORS, *_PARQUET):
        raise ValueError(f"{path} must end in {', '.join((*_SEPARATORS, *_PARQUET))} to say what it is.")
    return suffix in _PARQUET


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    """Say in one sentence why a file cannot be read."""
    from pandas.errors import EmptyDataError, ParserError

    try:
        yield
    except EmptyDataError:
        raise ValueError(f"{path} is empty.") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.object[error.start]:#04x}).") from None
    except ParserError as error:
        said = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise ValueError(f"{path} is not a proper table: {said}.") from None


def _csv_options(path: Path, kind: Any = None) -> dict[str, Any]:
    return {"sep": _SEPARATORS[path.suffix.lower()], "encoding": "utf-8-sig", "dtype": kind}


def _csv_chunks(path: Path, columns: Sequence[str], as_text: Sequence[str]) -> Iterator[pd.DataFrame]:
    import pandas as pd

    # Only where numbers or classes are read: an identifier "NA" is a name like any other.
    missing = {name: _MISSING for name in columns if name not in as_text}
    options = _csv_options(path, dict.fromkeys(as_text, str)) | {
        "na_values": missing,
        "keep_default_na": False,
    }
    # All columns: with usecols pandas would cut rows that are too long, without a word.
    with pd.read_csv(path, chunksize=CHUNK, low_memory=False, **options) as chunks:
        for chunk in chunks:
            if not isinstance(chunk.index, pd.RangeIndex):
                raise ValueError(f"{path} is not a proper table: rows have more fields than there are names.")
            yield chunk


def _parquet_chunks(path: Path, columns: Sequence[str], as_text: Sequence[str]) -> Iterator[pd.DataFrame]:
    for batch in _open_parquet(path).iter_batches(CHUNK, columns=list(columns)):
        yield batch.to_pandas()


def _open_parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}.") from None
