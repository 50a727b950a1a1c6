"""Detect the format of a table file: kind, compression and, for text, separator, decimal mark and encoding.

The name of the file determines its kind and compression, and its first bytes correct the kind of a file named
as text. Separator, decimal mark and encoding are detected from the content, unless an option sets them: in
much of Europe, spreadsheets write ``1,5;2,5`` in Windows-1252.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import lzma
import re
import shutil
import sys
import tempfile
import weakref
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

import pandas as pd

from corral.cli.shared import STANDARD_STREAM, note
from corral.files.atomic import check_readable

Kind = Literal["text", "Parquet", "Feather", "Excel"]

_KINDS: dict[str, Kind] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "text"),
    **dict.fromkeys((".parquet", ".pq"), "Parquet"),
    **dict.fromkeys((".feather", ".arrow"), "Feather"),
    **dict.fromkeys((".xlsx", ".xls", ".xlsb", ".ods"), "Excel"),
}
_ONLY_READ = (".xls", ".xlsb", ".ods")
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_PACKED = (".gz", ".bz2", ".xz", ".zst")

# Regular expressions for the first bytes of a file, and the kind and compression of such files.
_STARTS: dict[bytes, tuple[Kind, str]] = {
    rb"\x1f\x8b": ("text", ".gz"),
    rb"BZh[1-9]": ("text", ".bz2"),
    rb"\xfd7zXZ\x00": ("text", ".xz"),
    rb"\x28\xb5\x2f\xfd": ("text", ".zst"),
    rb"PAR1": ("Parquet", ""),
    rb"ARROW1\x00\x00": ("Feather", ""),
    rb"PK\x03\x04": ("Excel", ""),
    rb"\xd0\xcf\x11\xe0": ("Excel", ""),
}

# In the order in which they are tried: the later ones occur more often within names and texts.
_COMMON_SEPARATORS = ("\t", ";", "|", ",", " ")
_NAMED_SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}

_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# This codec reads UTF-8 with and without a byte order mark.
_UTF8 = "utf-8-sig"
_WINDOWS = "cp1252"
_NOT_WINDOWS = {0x81, 0x8D, 0x8F, 0x90, 0x9D}  # bytes that Windows-1252 does not use

# Numbers of bytes and rows from which separator and decimal mark are detected.
_HEAD = 1 << 17
_HEAD_ROWS = 500
_BLOCK = 1 << 20

_WITH_COMMA = r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*"
_WITH_POINT = r"\s*[+-]?\d*\.\d+(?:[eE][+-]?\d+)?\s*"
# The comma of 1,234 may mark thousands; the commas of 0,234 and 12,34 may not.
_THOUSANDS = r"\s*[+-]?[1-9]\d{0,2}(?:,\d{3})+\s*"
_POINTED_THOUSANDS = r"\s*[+-]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?\s*"


@dataclass(eq=False)
class TableFile:
    """The file of a table and its format. `str(file)` is the name of the file in messages."""

    path: Path  # or STANDARD_STREAM
    kind: Kind
    packing: str = ""  # a suffix such as .gz
    buffer: IO[bytes] | None = None  # the content of the standard input, which can be read only once
    separator: str = ","  # of a text file; a space means any number of spaces and tabs
    decimal: str = "."
    encoding: str = _UTF8  # as Python calls it
    n_before: int = 0  # lines before the line of column names
    columns: list[str] = field(default_factory=list)  # their names
    has_row_names: bool = False  # whether the first column of a text file has no name, as in files of R

    def __str__(self) -> str:
        return "the standard input" if self.buffer is not None else str(self.path)

    @property
    def name(self) -> str:
        """The name without its folder."""
        return "standard input" if self.buffer is not None else self.path.name

    @property
    def is_typed(self) -> bool:
        """Whether the file stores types, so that text is never read as numbers."""
        return self.kind in ("Parquet", "Feather")

    @contextmanager
    def opened(self) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """Yield a stream of the uncompressed content, and the file itself, whose position is the progress."""
        with ExitStack() as open_files:
            file = self.buffer or open_files.enter_context(self.path.open("rb"))
            file.seek(0)
            yield open_files.enter_context(packed(file, self.packing, "rb")), file


def named_kind(path: Path, *, is_read: bool = False) -> tuple[Kind, str]:
    """Return the kind and compression of a file according to its name; the standard streams are text.

    `is_read` allows the kinds of spreadsheets that can be read but not written.
    """
    if path == STANDARD_STREAM:
        return "text", ""
    suffix = path.suffix.lower()
    packing = suffix if suffix in _PACKED else ""
    suffix = Path(path.stem).suffix.lower() if packing else suffix
    suffixes = [each for each in _KINDS if is_read or each not in _ONLY_READ]
    kind = _KINDS[suffix] if suffix in suffixes else None
    if kind is None or (packing and kind != "text"):
        raise ValueError(
            f"{path} must end in {', '.join(suffixes)}, because the ending sets the "
            "file "
            f"format; text may be compressed: {', '.join('.csv' + each for each in _PACKED)}."
        )
    return kind, packing


def named_separator(path: Path) -> str:
    """Return the usual separator of a text file with this name."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    return next((_SEPARATORS[suffix] for suffix in reversed(suffixes) if suffix in _SEPARATORS), ",")


def recognize(path: Path, separator: str | None, decimal: str | None, encoding: str | None) -> TableFile:
    """Detect the parts of a file's format that no option sets; print a note if the format is unusual."""
    separator, encoding = _check_options(separator, encoding)
    kind, _ = named_kind(path if path == STANDARD_STREAM else check_readable(path), is_read=True)
    file = TableFile(path, kind)
    if path == STANDARD_STREAM:
        file.buffer = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the table)
        weakref.finalize(file, file.buffer.close)
        shutil.copyfileobj(sys.stdin.buffer, file.buffer, _BLOCK)
    with reading(file):
        file.kind, file.packing = _by_content(file)
        if file.kind == "text":
            _set_dialect(file, separator, decimal, encoding)
            return file
    for option, value in (("--sep", separator), ("--decimal", decimal), ("--encoding", encoding)):
        if value is not None:
            raise ValueError(f"{option} is only for text files, but {file} is a file of {file.kind}.")
    return file


def _check_options(separator: str | None, encoding: str | None) -> tuple[str | None, str | None]:
    """Check --sep and --encoding; return the character and Python's name of the encoding."""
    if separator is not None:
        separator = _NAMED_SEPARATORS.get(separator.casefold(), separator)
        if len(separator) != 1 or separator in '"\r\n':
            raise ValueError(f"--sep must be one character, 'tab' or 'space', got {separator!r}.")
    if encoding is None:
        return separator, None
    try:
        name = codecs.lookup(encoding).name
        b"a".decode(name, errors="ignore")  # raises for codecs that do not decode to text
    except (LookupError, ValueError):
        raise ValueError(
            f"--encoding: there is no encoding {encoding!r}; examples are utf-8, utf-16, cp1252 and latin-1."
        ) from None
    return separator, _UTF8 if name == "utf-8" else name


def _by_content(file: TableFile) -> tuple[Kind, str]:
    """Return the kind and compression of a file; for a text file, the first bytes determine both."""
    with file.opened() as (stream, _):
        start = stream.read(8)
    if not start:
        raise ValueError(f"{file} is empty.")
    if file.kind != "text":
        return file.kind, ""
    return next((kind for pattern, kind in _STARTS.items() if re.match(pattern, start)), ("text", ""))


@contextmanager
def packed(file: IO[bytes], packing: str, mode: Literal["rb", "wb"]) -> Iterator[Any]:
    """Yield a stream that decompresses a file that is read, or compresses a file that is written."""
    stream: Any
    match packing:
        case "":
            yield file
            return
        case ".gz":
            stream = gzip.GzipFile("", mode, fileobj=file, mtime=0)
        case ".bz2":
            stream = bz2.BZ2File(file, mode)
        case ".xz":
            stream = lzma.LZMAFile(file, mode)  # noqa: SIM115 (closed below)
        case _:
            import pyarrow as pa

            zstd = pa.CompressedInputStream if mode == "rb" else pa.CompressedOutputStream
            stream = zstd(pa.PythonFile(file, mode=mode[0]), "zstd")
    with stream:
        yield stream


@contextmanager
def reading(file: TableFile) -> Iterator[None]:
    """Replace errors of other packages by one sentence on why a file cannot be read."""
    import pyarrow as pa
    from pandas.errors import EmptyDataError, ParserError
    from python_calamine import CalamineError

    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file} is not {error.encoding} text (byte {error.object[error.start]:#04x}): {_remedy(file)}"
        ) from None
    except EmptyDataError:
        raise ValueError(f"{file} is empty.") from None
    except ParserError as error:
        reason = _reason(error).removeprefix("Error tokenizing data. C error: ")
        raise ValueError(f"{file} is not a proper table: {reason}.") from None
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{file} cannot be decompressed, and may be incomplete: {_reason(error)}.") from None
    except (CalamineError, pa.ArrowException) as error:
        damage = "; it may be damaged or locked" if file.kind == "Excel" else ""
        raise ValueError(f"{file} cannot be read as {file.kind}: {_reason(error)}{damage}.") from None
    except OSError as error:
        raise OSError(f"{file} cannot be read: {error.strerror or error}.") from None


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].removesuffix(".") or type(error).__name__


# Text


def _set_dialect(file: TableFile, separator: str | None, decimal: str | None, encoding: str | None) -> None:
    """Set separator, decimal mark and encoding; detect those without an option, and note unusual ones."""
    file.encoding = encoding or _find_encoding(file)
    with file.opened() as (stream, _):
        head = stream.read(_HEAD)
    text = codecs.getincrementaldecoder(file.encoding)(errors="replace").decode(head).removeprefix("\ufeff")
    is_cut = len(head) == _HEAD
    if is_cut:
        text = text[: text.rfind("\n") + 1] or text
    # Some spreadsheets write a first line such as sep=; for other spreadsheets.
    first_line = re.match(r'"?sep=(.)"?\r?\n', text)
    if first_line:
        text, file.n_before = text[first_line.end() :], 1
    expected = separator or named_separator(file.path)
    file.separator = separator or (first_line[1] if first_line else _find_separator(text, expected))
    rows = _cells(text, file.separator)
    file.has_row_names = _have_row_names(rows, is_cut=is_cut)
    file.decimal = decimal or _find_decimal(rows, file.separator)
    unexpected = {
        f"separator {file.separator!r}": file.separator != expected,
        "decimal comma": file.decimal != (decimal or "."),
        f"encoding {file.encoding}": file.encoding != (encoding or _UTF8),
    }
    if any(unexpected.values()):
        note(f"{file} is read with {', '.join(name for name, is_noted in unexpected.items() if is_noted)}.")


def _find_encoding(file: TableFile) -> str:
    """Return the encoding of a text file: by its byte order mark, else UTF-8, else Windows-1252.

    The whole file is read, because the first letter beyond ASCII may be at its end.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
    n_letters, wrong = 0, b""  # letters beyond ASCII in UTF-8, and bytes that are not UTF-8
    with file.opened() as (stream, _):
        block = stream.read(_BLOCK)
        if not block:
            raise ValueError(f"{file} is empty.")
        for bom, encoding in _BOMS.items():
            if block.startswith(bom):
                return encoding
        while block:
            if b"\0" in block:
                raise ValueError(
                    f"{file} contains the byte 0x00, so it is not text, or --encoding is needed."
                )
            text = decoder.decode(block)
            if not text.isascii():
                wrong += "".join(re.findall("[\udc80-\udcff]", text)).encode("ascii", "surrogateescape")
                n_letters += len(re.findall("[^\x00-\x7f\udc80-\udcff]", text))
            block = stream.read(_BLOCK)
    wrong += decoder.decode(b"", final=True).encode("ascii", "surrogateescape")
    if not wrong:
        return _UTF8
    if n_letters >= len(wrong) or _NOT_WINDOWS & set(wrong):
        byte = min(_NOT_WINDOWS & set(wrong), default=wrong[0])
        raise ValueError(f"{file} is neither UTF-8 nor Windows-1252 text (byte {byte:#04x}): {_remedy(file)}")
    return _WINDOWS


def _remedy(file: TableFile) -> str:
    """Return the advice if an encoding was not recognized, with a guess of the encoding."""
    from charset_normalizer import from_bytes

    with file.opened() as (stream, _):
        lines = stream.read(_BLOCK).splitlines(keepends=True)
    guesses = from_bytes(b"".join(line for line in lines if not line.isascii()))
    # The file is not UTF-8, and UTF-16 and UTF-32 would have a byte order mark.
    name = next((guess.encoding for guess in guesses if not guess.encoding.startswith("utf_")), None)
    guess = f"it may be {name}; " if name else ""
    return f"{guess}set its encoding by --encoding, or save the file as UTF-8."


def _cells(text: str, separator: str) -> list[list[str]]:
    """Return the cells of the first rows of a text, without empty rows."""
    by_space = separator == " "
    lines = csv.reader(StringIO(text, newline=""), delimiter=separator, skipinitialspace=by_space)
    rows = []
    with suppress(csv.Error):  # such as for a cell of more than 131,072 characters
        for row in islice(filter(any, lines), _HEAD_ROWS):
            rows.append([cell for cell in row if cell] if by_space else row)
    return rows


def _find_separator(text: str, expected: str) -> str:
    """Return the separator with which most rows have as many cells as there are names, or one more."""
    best, largest_share = expected, 0.0
    for separator in _COMMON_SEPARATORS:
        names, *rows = _cells(text, separator) or [[]]
        if len(names) < 2:
            continue
        # In files of R, the column of row names has no name.
        share = sum(len(row) - len(names) in (0, 1) for row in rows) / len(rows) if rows else 1.0
        if share > largest_share:
            best, largest_share = separator, share
    return best


def _have_row_names(rows: Sequence[Sequence[str]], *, is_cut: bool) -> bool:
    """Whether the first column has no name and contains row names, as in files of R.

    Then every row has one cell more than there are column names. A separator at the end of each row has the
    same effect; it is assumed if there is a single row, or if all rows end with an empty cell. If the text
    was cut before the second row, the result is True.
    """
    names, *others = rows or [[]]
    if len(others) < 2:
        return is_cut
    return all(len(row) == len(names) + 1 for row in others) and any(row[-1] for row in others)


def _find_decimal(rows: Sequence[Sequence[str]], separator: str) -> str:
    """Return a comma if more cells are numbers with a comma than numbers with a point, else a point."""
    cells = [cell for row in rows[1:] for cell in row]
    commas = [cell for cell in cells if re.fullmatch(_WITH_COMMA, cell)]
    # Between semicolons, commas mark decimals; elsewhere they may mark thousands.
    if separator != ";" and all(re.fullmatch(_THOUSANDS, cell) for cell in commas):
        return "."
    return "," if len(commas) > sum(bool(re.fullmatch(_WITH_POINT, cell)) for cell in cells) else "."


def with_decimal_points(texts: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of texts with points in place of decimal commas.

    If all points in the column can be marks of thousands, as in 1.065 or 1.065,50, they are removed;
    otherwise they are decimal points.
    """
    is_marked = texts.str.fullmatch(_POINTED_THOUSANDS, na=False)
    if is_marked.any() and not texts[~is_marked].str.fullmatch(_WITH_POINT, na=False).any():
        note(
            f"column {texts.name!r}: points are read as marks of thousands, as in "
            f"{texts[is_marked].iloc[0].strip()!r}."
        )
        texts = texts.mask(is_marked, texts.str.replace(".", "", regex=False))
    with_comma = texts.str.fullmatch(_WITH_COMMA, na=False)
    return texts.mask(with_comma, texts.str.replace(",", ".", regex=False))
