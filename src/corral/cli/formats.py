"""The format of a table's file: its kind, its packing and, for text, separator, decimal mark and encoding.

They follow from the name, the content and the options. Separator, decimal mark and encoding are detected
where no option gives them: spreadsheets of much of Europe write ``1,5;2,5`` in Windows-1252.
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

# First bytes of a file, as regular expressions, and the kind and packing that they show: the name may differ.
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

# In the order in which they are tried: names and texts often contain a separator that comes later.
_COMMON_SEPARATORS = ("\t", ";", "|", ",", " ")
_NAMED_SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}

_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Reads UTF-8 with and without a byte order mark.
_UTF8 = "utf-8-sig"
_WINDOWS = "cp1252"
_NOT_WINDOWS = {0x81, 0x8D, 0x8F, 0x90, 0x9D}  # bytes that Windows-1252 does not use

# Separator and decimal mark are detected in the first bytes and rows of a file.
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
    """The file of a table and its format; converted to text, its name in messages."""

    path: Path  # or STANDARD_STREAM
    kind: Kind
    packing: str = ""  # a suffix such as .gz
    buffer: IO[bytes] | None = None  # the content of the standard input, which can be read only once
    separator: str = ","  # of text; a space stands for any number of spaces and tabs
    decimal: str = "."
    encoding: str = _UTF8  # as Python calls it
    n_before: int = 0  # lines before the line of column names
    columns: list[str] = field(default_factory=list)  # their names
    has_row_names: bool = False  # whether the first column of a text has no name above it, as R writes it

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
        """The unpacked content, and the file itself, whose position shows how much has been read."""
        with ExitStack() as open_files:
            file = self.buffer or open_files.enter_context(self.path.open("rb"))
            file.seek(0)
            yield open_files.enter_context(packed(file, self.packing, "rb")), file


def named_kind(path: Path, *, is_read: bool = False) -> tuple[Kind, str]:
    """Kind and packing of a file by its name; the standard streams are text.

    Some kinds of spreadsheets can be read and not written.
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
            f"{path} must end in {', '.join(suffixes)} to say what it is; text may be packed: "
            f"{', '.join('.csv' + each for each in _PACKED)}."
        )
    return kind, packing


def named_separator(path: Path) -> str:
    """The usual separator of a text file of this name."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    return next((_SEPARATORS[suffix] for suffix in reversed(suffixes) if suffix in _SEPARATORS), ",")


def recognize(path: Path, separator: str | None, decimal: str | None, encoding: str | None) -> TableFile:
    """Detect the format of a file where options do not give it; note what its name does not show."""
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
            raise ValueError(f"{option} is for text, and {file} is a file of {file.kind}.")
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
            f"--encoding: there is no encoding {encoding!r}; utf-8, utf-16, cp1252 and latin-1 are some."
        ) from None
    return separator, _UTF8 if name == "utf-8" else name


def _by_content(file: TableFile) -> tuple[Kind, str]:
    """Kind and packing of a file; for a file named as text its first bytes decide."""
    with file.opened() as (stream, _):
        start = stream.read(8)
    if not start:
        raise ValueError(f"{file} is empty.")
    if file.kind != "text":
        return file.kind, ""
    return next((kind for pattern, kind in _STARTS.items() if re.match(pattern, start)), ("text", ""))


@contextmanager
def packed(file: IO[bytes], packing: str, mode: Literal["rb", "wb"]) -> Iterator[Any]:
    """A stream that unpacks what is read from a file, or packs what is written, always to the same bytes."""
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
    """Turn errors of other packages into one sentence on why a file cannot be unpacked or read."""
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
        raise ValueError(f"{file} cannot be unpacked, and may be cut short: {_reason(error)}.") from None
    except (CalamineError, pa.ArrowException) as error:
        damage = "; it may be damaged, or be locked" if file.kind == "Excel" else ""
        raise ValueError(f"{file} cannot be read as {file.kind}: {_reason(error)}{damage}.") from None
    except OSError as error:
        raise OSError(f"{file} cannot be read: {error.strerror or error}.") from None


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].removesuffix(".") or type(error).__name__


# Text


def _set_dialect(file: TableFile, separator: str | None, decimal: str | None, encoding: str | None) -> None:
    """Set separator, decimal mark and encoding; detect and note those that are not given."""
    file.encoding = encoding or _find_encoding(file)
    with file.opened() as (stream, _):
        head = stream.read(_HEAD)
    text = codecs.getincrementaldecoder(file.encoding)(errors="replace").decode(head).removeprefix("\ufeff")
    is_cut = len(head) == _HEAD
    if is_cut:
        text = text[: text.rfind("\n") + 1] or text
    # Spreadsheets write such a first line, and read it.
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
    """The encoding of a text file: a Unicode with its mark, else UTF-8, else Windows-1252.

    The file is read to its end, where the first letter beyond ASCII may stand.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
    n_letters, wrong = 0, b""  # beyond ASCII: letters in UTF-8, and bytes that are no UTF-8
    with file.opened() as (stream, _):
        block = stream.read(_BLOCK)
        if not block:
            raise ValueError(f"{file} is empty.")
        for bom, encoding in _BOMS.items():
            if block.startswith(bom):
                return encoding
        while block:
            if b"\0" in block:
                raise ValueError(f"{file} is not text, or needs --encoding: it holds the byte 0x00.")
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
    """The advice for a text whose encoding was not recognized, with the encoding that it may have."""
    from charset_normalizer import from_bytes

    with file.opened() as (stream, _):
        lines = stream.read(_BLOCK).splitlines(keepends=True)
    guesses = from_bytes(b"".join(line for line in lines if not line.isascii()))
    # UTF-8 has failed before, and any other Unicode has a mark.
    name = next((guess.encoding for guess in guesses if not guess.encoding.startswith("utf_")), None)
    guess = f"it may be {name}; " if name else ""
    return f"{guess}say by --encoding in what it is written, or save it as UTF-8."


def _cells(text: str, separator: str) -> list[list[str]]:
    """The first rows of a text, without empty ones."""
    by_space = separator == " "
    lines = csv.reader(StringIO(text, newline=""), delimiter=separator, skipinitialspace=by_space)
    rows = []
    with suppress(csv.Error):  # such as for a cell of more than 131,072 characters
        for row in islice(filter(any, lines), _HEAD_ROWS):
            rows.append([cell for cell in row if cell] if by_space else row)
    return rows


def _find_separator(text: str, expected: str) -> str:
    """The character that splits most rows into as many cells as there are names, or one more."""
    best, largest_share = expected, 0.0
    for separator in _COMMON_SEPARATORS:
        names, *rows = _cells(text, separator) or [[]]
        if len(names) < 2:
            continue
        # R writes names of rows without a name above them.
        share = sum(len(row) - len(names) in (0, 1) for row in rows) / len(rows) if rows else 1.0
        if share > largest_share:
            best, largest_share = separator, share
    return best


def _have_row_names(rows: Sequence[Sequence[str]], *, is_cut: bool) -> bool:
    """Whether the first cell of each row is a name of the row, with no column name above it, as R writes it.

    Then every row has one cell more than there are names. The cause may also be a separator at the end of
    rows: this is assumed for a single row, and for rows that all end with an empty cell. If the text is cut
    before the second row, rows may have names.
    """
    names, *others = rows or [[]]
    if len(others) < 2:
        return is_cut
    return all(len(row) == len(names) + 1 for row in others) and any(row[-1] for row in others)


def _find_decimal(rows: Sequence[Sequence[str]], separator: str) -> str:
    """The comma if more cells are numbers with a comma than numbers with a point."""
    cells = [cell for row in rows[1:] for cell in row]
    commas = [cell for cell in cells if re.fullmatch(_WITH_COMMA, cell)]
    # Between semicolons, commas mark decimals; elsewhere they may mark thousands.
    if separator != ";" and all(re.fullmatch(_THOUSANDS, cell) for cell in commas):
        return "."
    return "," if len(commas) > sum(bool(re.fullmatch(_WITH_POINT, cell)) for cell in cells) else "."


def with_decimal_points(texts: pd.Series[Any]) -> pd.Series[Any]:
    """A column of texts with points in place of decimal commas.

    Points mark thousands, as in 1.065 or 1.065,50, if all of them may; otherwise they are decimal points.
    """
    is_marked = texts.str.fullmatch(_POINTED_THOUSANDS, na=False)
    if is_marked.any() and not texts[~is_marked].str.fullmatch(_WITH_POINT, na=False).any():
        note(f"column {texts.name!r}: the point marks thousands, as in {texts[is_marked].iloc[0].strip()!r}.")
        texts = texts.mask(is_marked, texts.str.replace(".", "", regex=False))
    with_comma = texts.str.fullmatch(_WITH_COMMA, na=False)
    return texts.mask(with_comma, texts.str.replace(",", ".", regex=False))
