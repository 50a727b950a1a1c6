"""How the file of a table is written: its name and its content say it, or the user does.

Of text it is found out by which character cells are separated, whether decimals have a comma, and in which
encoding it is written. Spreadsheets of much of Europe write ``1,5;2,5`` in Windows-1252.
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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from io import StringIO
from itertools import chain, zip_longest
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from corral.cli.shared import STANDARD_STREAM, note
from corral.files.atomic import check_readable

if TYPE_CHECKING:
    import pandas as pd


class Kind(StrEnum):
    """What a file is, once it is unpacked."""

    text = "text"
    parquet = "Parquet"
    feather = "Feather"
    excel = "Excel"


_KINDS = {
    ".csv": Kind.text,
    ".tsv": Kind.text,
    ".txt": Kind.text,
    ".parquet": Kind.parquet,
    ".pq": Kind.parquet,
    ".feather": Kind.feather,
    ".arrow": Kind.feather,
    ".xlsx": Kind.excel,
    ".xls": Kind.excel,
    ".xlsb": Kind.excel,
    ".ods": Kind.excel,
}
_ONLY_READ = (".xls", ".xlsb", ".ods")
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
PACKED = (".gz", ".bz2", ".xz", ".zst")

# Bytes that a packed file begins with. One that has lost its suffix is unpacked all the same.
_PACKED_STARTS = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
_KIND_STARTS = {
    b"PAR1": Kind.parquet,
    b"ARROW1\0\0": Kind.feather,
    b"PK\x03\x04": Kind.excel,
    b"\xd0\xcf\x11\xe0": Kind.excel,
}

# In the order in which they are tried: names and text may hold those that come after the right one.
_CANDIDATES = ("\t", ";", "|", ",", " ")
_WORDS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}

_BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Reads UTF-8 with and without a mark of the byte order.
_UTF8 = "utf-8-sig"
_WINDOWS = "cp1252"
_NOT_WINDOWS = bytes([0x00, 0x81, 0x8D, 0x8F, 0x90, 0x9D])

_HEAD = 1 << 17
_BLOCK = 1 << 20
_ROWS_TRIED = 500

_WITH_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_WITH_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
# 1,234 may be more than a thousand; 0,234 and 12,34 may not.
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")
_POINTED_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?")


@dataclass(frozen=True)
class Given:
    """What a user says of how a text is written; None is to be found out."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    @classmethod
    def checked(cls, separator: str | None, decimal: str | None, encoding: str | None) -> Given:
        """What the options --sep, --decimal and --encoding say."""
        if separator is not None:
            separator = _WORDS.get(separator.casefold(), separator)
            if len(separator) != 1 or separator in '"\r\n':
                raise ValueError(f"--sep must be one character, 'tab' or 'space', got {separator!r}.")
        if decimal not in (None, ",", "."):
            raise ValueError(f"--decimal must be ',' or '.', got {decimal!r}.")
        if encoding is not None:
            encoding = _known_encoding(encoding)
        return cls(separator, decimal, encoding)


def _known_encoding(name: str) -> str:
    try:
        found = codecs.lookup(name)
        b"a".decode(name, errors="ignore")  # which codecs that make no text refuse
    except (LookupError, ValueError):
        raise ValueError(
            f"--encoding: there is no encoding {name!r}; utf-8, utf-16, cp1252 and latin-1 are some."
        ) from None
    return _UTF8 if found.name == "utf-8" else found.name


@dataclass(frozen=True)
class Dialect:
    """How a text is written.

    Attributes
    ----------
    separator : what stands between cells; a space is any number of spaces and tabs.
    decimal : point or comma.
    encoding : as Python calls it.
    n_before : lines before the names of the columns.
    """

    separator: str
    decimal: str
    encoding: str
    n_before: int = 0


@dataclass(frozen=True, eq=False)
class TableFile:
    """The file of a table, and how it is written; as text, what messages call it.

    Attributes
    ----------
    path : the file, or `STANDARD_STREAM`.
    kind : what it is.
    packing : suffix of what it is packed by, or nothing.
    dialect : of text.
    copy : the standard input, which can be read only once.
    """

    path: Path
    kind: Kind
    packing: str = ""
    dialect: Dialect | None = None
    copy: IO[bytes] | None = None

    def __str__(self) -> str:
        return "the standard input" if self.copy is not None else str(self.path)

    @property
    def name(self) -> str:
        """The name without its folder."""
        return "standard input" if self.copy is not None else self.path.name

    @property
    def is_typed(self) -> bool:
        """Whether the file knows numbers from text, so that nothing need be read from digits."""
        return self.kind in (Kind.parquet, Kind.feather)

    @contextmanager
    def raw(self) -> Iterator[IO[bytes]]:
        """The file as it is."""
        if self.copy is not None:
            self.copy.seek(0)
            yield self.copy
        else:
            with self.path.open("rb") as file:
                yield file

    @contextmanager
    def opened(self) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """The file, unpacked, and the file as it is, whose position tells how much has been read."""
        with self.raw() as file, packed(file, self.packing, "rb") as stream:
            yield stream, file


def named_kind(path: Path, *, is_read: bool = False) -> tuple[Kind, str]:
    """What the name of a file says that it is, and what it is packed by; the standard streams are text.

    Some kinds of spreadsheets are read and not written.
    """
    if path == STANDARD_STREAM:
        return Kind.text, ""
    suffix = path.suffix.lower()
    packing = suffix if suffix in PACKED else ""
    suffix = Path(path.stem).suffix.lower() if packing else suffix
    suffixes = [each for each in _KINDS if is_read or each not in _ONLY_READ]
    kind = _KINDS[suffix] if suffix in suffixes else None
    if kind is None or (packing and kind is not Kind.text):
        raise ValueError(
            f"{path} must end in {', '.join(suffixes)} to say what it is; text may be packed: "
            f"{', '.join('.csv' + each for each in PACKED)}."
        )
    return kind, packing


def named_separator(path: Path) -> str:
    """The separator that the name of a text lets expect."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    return next((_SEPARATORS[suffix] for suffix in reversed(suffixes) if suffix in _SEPARATORS), ",")


def as_table_file(path: Path | TableFile) -> TableFile:
    """Find out how a file is written, without a word."""
    return path if isinstance(path, TableFile) else find_table(path, Given())


def open_table(
    path: Path, separator: str | None = None, decimal: str | None = None, encoding: str | None = None
) -> TableFile:
    """Find out how a file is written, as far as options do not say it; tell what its name does not say."""
    given = Given.checked(separator, decimal, encoding)
    file = find_table(path, given)
    if file.dialect is None:
        return file
    parts = []
    if file.dialect.separator != (given.separator or named_separator(path)):
        parts.append(f"separator {file.dialect.separator!r}")
    if given.decimal is None and file.dialect.decimal != ".":
        parts.append("decimal comma")
    if given.encoding is None and file.dialect.encoding != _UTF8:
        parts.append(f"encoding {file.dialect.encoding}")
    if parts:
        note(f"{file} is read with {', '.join(parts)}.")
    return file


def find_table(path: Path, given: Given) -> TableFile:
    """Find out how a file is written, from its name and its content, as far as it is not given."""
    named, _ = named_kind(path if path == STANDARD_STREAM else check_readable(path), is_read=True)
    copy = _copy_of_input() if path == STANDARD_STREAM else None
    file = TableFile(path, named, copy=copy)
    with ExitStack() as if_refused, reading(file):
        if copy is not None:
            if_refused.callback(copy.close)
        with file.raw() as raw:
            kind, packing = _by_content(raw, named, str(file))
        file = replace(file, kind=kind, packing=packing)
        if kind is Kind.text:
            file = replace(file, dialect=_find_dialect(file, given))
        else:
            _refuse_given(file, given)
        if_refused.pop_all()
    if copy is not None:
        weakref.finalize(file, copy.close)
    return file


def _copy_of_input() -> IO[bytes]:
    """All of the standard input, in a file without a name that is gone when it is closed."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 (closed when nobody refers to the table)
    shutil.copyfileobj(sys.stdin.buffer, copy, _BLOCK)
    return copy


def _by_content(raw: IO[bytes], named: Kind, called: str) -> tuple[Kind, str]:
    """What a file is and what it is packed by; its first bytes know better than its name."""
    start = raw.read(8)
    if not start:
        raise ValueError(f"{called} is empty.")
    if named is not Kind.text:
        return named, ""
    for mark, packing in _PACKED_STARTS.items():
        if start.startswith(mark) and not (packing == ".bz2" and start[3:4] not in b"123456789"):
            return Kind.text, packing
    for mark, kind in _KIND_STARTS.items():
        # A text, too, may begin with PAR1, but it does not end with it.
        if start.startswith(mark) and (kind is not Kind.parquet or _end(raw, 4) == mark):
            return kind, ""
    return Kind.text, ""


def _end(raw: IO[bytes], n: int) -> bytes:
    size = raw.seek(0, 2)
    raw.seek(max(size - n, 0))
    return raw.read(n)


def _refuse_given(file: TableFile, given: Given) -> None:
    for option, value in (
        ("--sep", given.separator),
        ("--decimal", given.decimal),
        ("--encoding", given.encoding),
    ):
        if value is not None:
            raise ValueError(f"{option} is for text, and {file} is a file of {file.kind}.")


# Packing


@contextmanager
def packed(file: IO[bytes], packing: str, mode: Literal["rb", "wb"]) -> Iterator[Any]:
    """A stream that unpacks what is read, or packs what is written, always to the same bytes."""
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
    """Say in one sentence why a file cannot be unpacked or read as text."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file} is not {error.encoding} text (byte {error.object[error.start]:#04x}): {_remedy(file)}"
        ) from None
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        said = str(error).removesuffix(".")
        raise ValueError(f"{file} cannot be unpacked, and may be cut short: {said}.") from None
    except OSError as error:
        raise OSError(f"{file} cannot be read: {error.strerror or error}.") from None


# Text


def _find_dialect(file: TableFile, given: Given) -> Dialect:
    encoding = given.encoding or _find_encoding(file)
    with file.opened() as (stream, _):
        head = stream.read(_HEAD)
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    text = decoder.decode(head).removeprefix("\ufeff")
    if len(head) == _HEAD:
        text = text[: text.rfind("\n") + 1] or text
    # Spreadsheets understand such a first line, and write it.
    hint = re.match(r'"?sep=(.)"?\r?\n', text)
    if hint:
        text = text[hint.end() :]
    separator = given.separator or (hint[1] if hint else _find_separator(text, named_separator(file.path)))
    decimal = given.decimal
    if decimal is None:
        rows = _cells(text, separator)
        decimal = _find_decimal(rows, separator)
        _note_of_thousands(rows, decimal)
    return Dialect(separator, decimal, encoding, n_before=1 if hint else 0)


def _find_encoding(file: TableFile) -> str:
    """The encoding of a whole text, of which the first strange letter may stand at the end."""
    with file.opened() as (stream, _):
        head = stream.read(_HEAD)
    if not head:
        raise ValueError(f"{file} is empty.")
    for mark, encoding in _BOMS.items():
        if head.startswith(mark):
            return encoding
    for encoding, zeros in (("utf-16-le", head[1::2]), ("utf-16-be", head[::2])):
        # Of letters and digits, one of two bytes is zero.
        if len(head) >= 4 and zeros.count(0) > 0.7 * len(zeros) and head.count(0) < 0.6 * len(head):
            return encoding
    return _utf8_or_windows(file)


def _utf8_or_windows(file: TableFile) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
    n_letters, wrong, not_windows = 0, "", set[int]()
    with file.opened() as (stream, _):
        for block in chain(iter(lambda: stream.read(_BLOCK), b""), [b""]):
            not_windows |= {byte for byte in _NOT_WINDOWS if byte in block}
            text = decoder.decode(block, final=not block)
            if not text.isascii():
                escaped = re.findall("[\udc80-\udcff]", text)
                wrong += "".join(escaped)
                n_letters += len(re.findall("[^\x00-\x7f]", text)) - len(escaped)
    if 0x00 in not_windows:
        raise ValueError(f"{file} is no text: it holds the byte 0x00.")
    if not wrong:
        return _UTF8
    if n_letters >= len(wrong) or not_windows:
        byte = min(not_windows, default=ord(wrong[0]) - 0xDC00)
        raise ValueError(f"{file} is neither UTF-8 nor Windows-1252 text (byte {byte:#04x}): {_remedy(file)}")
    return _WINDOWS


def _remedy(file: TableFile) -> str:
    """Say what can be done about a text whose encoding is another one, and which it may be."""
    from charset_normalizer import from_bytes

    with file.opened() as (stream, _):
        strange = b"".join(
            line for line in stream.read(_BLOCK).splitlines(keepends=True) if not line.isascii()
        )
    # Unicode is known before.
    guesses = [guess.encoding for guess in from_bytes(strange) if not guess.encoding.startswith("utf_")]
    said = "say by --encoding in what it is written, or save it as UTF-8."
    return f"it may be {guesses[0]}; {said}" if guesses else said


def _cells(text: str, separator: str) -> list[list[str]]:
    """The first rows of a text that are not empty."""
    rows: list[list[str]] = []
    try:
        lines = csv.reader(StringIO(text, newline=""), delimiter=separator, skipinitialspace=separator == " ")
        for row in lines:
            cells = [cell for cell in row if cell] if separator == " " else row
            if any(cells):
                rows.append(cells)
            if len(rows) == _ROWS_TRIED:
                break
    except csv.Error:  # such as a cell of more than 131,072 characters
        pass
    return rows


def _find_separator(text: str, expected: str) -> str:
    """The character that cuts most rows into as many cells as there are names, or one more."""
    best, most = expected, 0.0
    for separator in _CANDIDATES:
        names, *rows = _cells(text, separator) or [[]]
        if len(names) < 2:
            continue
        # R writes numbers of rows without a name above them.
        agreeing = sum(len(row) - len(names) in (0, 1) for row in rows) / len(rows) if rows else 1.0
        if agreeing > most:
            best, most = separator, agreeing
    return best


def _find_decimal(rows: Sequence[Sequence[str]], separator: str) -> str:
    cells = [cell.strip() for row in rows[1:] for cell in row]
    commas = [cell for cell in cells if _WITH_COMMA.fullmatch(cell)]
    points = sum(_WITH_POINT.fullmatch(cell) is not None for cell in cells)
    # Where cells are separated by ';', commas are free for decimals; elsewhere they may mark thousands.
    if separator != ";" and all(map(_THOUSANDS.fullmatch, commas)):
        return "."
    return "," if len(commas) > points else "."


def _note_of_thousands(rows: Sequence[Sequence[str]], decimal: str) -> None:
    """Warn of columns such as 595, 2,964 and 1,097, whose marks are read as decimal ones."""
    marked = _THOUSANDS if decimal == "," else _POINTED_THOUSANDS
    for name, *cells in zip_longest(*rows, fillvalue=""):
        texts = [cell.strip() for cell in cells]
        with_mark = [text for text in texts if decimal in text]
        whole = [text for text in texts if text.isdecimal()]
        # Decimals have three digits each, and whole numbers no more, though some have as many.
        if with_mark and all(map(marked.fullmatch, with_mark)) and max(map(len, whole), default=0) == 3:
            note(
                f"column {name!r}: {with_mark[0]!r} is read as a decimal number; if the mark is one of "
                f"thousands, as {max(whole, key=len)!r} beside it suggests, take it out of the table."
            )


def decimal_points(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column of a text with decimal commas, its numbers written with points.

    Points mark thousands, as in 1.065 or 1.065,50, if all of them may; else they are decimal points, too.
    """
    texts = [cell.strip() for cell in column if isinstance(cell, str)]
    pointed = [text for text in texts if _WITH_POINT.fullmatch(text) or _POINTED_THOUSANDS.fullmatch(text)]
    if pointed and all(map(_POINTED_THOUSANDS.fullmatch, pointed)):
        note(f"column {column.name!r}: the point marks thousands, as in {pointed[0]!r}.")
        column = column.map(lambda cell: cell.replace(".", "") if _is_pointed(cell) else cell)
    return column.map(lambda cell: cell.replace(",", ".") if _is_with_comma(cell) else cell)


def _is_pointed(cell: Any) -> bool:
    return isinstance(cell, str) and _POINTED_THOUSANDS.fullmatch(cell.strip()) is not None


def _is_with_comma(cell: Any) -> bool:
    return isinstance(cell, str) and looks_like_comma_number(cell)


def looks_like_comma_number(text: str) -> bool:
    """Whether a text would be a number if commas were decimal points."""
    return _WITH_COMMA.fullmatch(text.strip()) is not None
