"""How the file of a table is written: its kind, what it is packed by and, for text, its dialect.

The name and the content say it, or the user does. Of text, separator, decimal mark and encoding are detected:
spreadsheets of much of Europe write ``1,5;2,5`` in Windows-1252.
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
from contextlib import contextmanager
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

# Bytes that a file begins with, its kind and what it is packed by: its name may not say so.
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
_NOT_WINDOWS = {0x81, 0x8D, 0x8F, 0x90, 0x9D}

_HEAD = 1 << 17
_BLOCK = 1 << 20
_ROWS_TRIED = 500

_WITH_COMMA = r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*"
_WITH_POINT = r"\s*[+-]?\d*\.\d+(?:[eE][+-]?\d+)?\s*"
# 1,234 may be more than a thousand; 0,234 and 12,34 may not.
_THOUSANDS = r"\s*[+-]?[1-9]\d{0,2}(?:,\d{3})+\s*"
_POINTED_THOUSANDS = r"\s*[+-]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?\s*"


@dataclass(eq=False)
class TableFile:
    """The file of a table, and how it is written; as text, what messages call it."""

    path: Path  # or STANDARD_STREAM
    kind: Kind
    packing: str = ""  # suffix of what it is packed by
    copy: IO[bytes] | None = None  # the standard input, which can be read only once
    separator: str = ","  # of text; a space is any number of spaces and tabs
    decimal: str = "."
    encoding: str = _UTF8  # as Python calls it
    n_before: int = 0  # lines before the names of the columns
    columns: list[str] = field(default_factory=list)  # their names

    def __str__(self) -> str:
        return "the standard input" if self.copy is not None else str(self.path)

    @property
    def name(self) -> str:
        """The name without its folder."""
        return "standard input" if self.copy is not None else self.path.name

    @property
    def is_typed(self) -> bool:
        """Whether the file tells numbers from text, so that no number is read from digits."""
        return self.kind in ("Parquet", "Feather")

    @contextmanager
    def opened(self) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """The file, unpacked, and the file as it is, whose position tells how much has been read."""
        if self.copy is not None:
            self.copy.seek(0)
            with packed(self.copy, self.packing, "rb") as stream:
                yield stream, self.copy
        else:
            with self.path.open("rb") as file, packed(file, self.packing, "rb") as stream:
                yield stream, file


def named_kind(path: Path, *, is_read: bool = False) -> tuple[Kind, str]:
    """What the name of a file says that it is, and what it is packed by; the standard streams are text.

    Some kinds of spreadsheets are read and not written.
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
    """The separator that the name of a text lets expect."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    return next((_SEPARATORS[suffix] for suffix in reversed(suffixes) if suffix in _SEPARATORS), ",")


def recognized(path: Path, separator: str | None, decimal: str | None, encoding: str | None) -> TableFile:
    """Find out how a file is written, as far as options do not say it; note what its name does not say."""
    separator, encoding = _check_options(separator, encoding)
    kind, _ = named_kind(path if path == STANDARD_STREAM else check_readable(path), is_read=True)
    file = TableFile(path, kind)
    if path == STANDARD_STREAM:
        file.copy = tempfile.TemporaryFile()  # noqa: SIM115 (without a name, and closed with the table)
        weakref.finalize(file, file.copy.close)
        shutil.copyfileobj(sys.stdin.buffer, file.copy, _BLOCK)
    with reading(file):
        file.kind, file.packing = _by_content(file)
        if file.kind == "text":
            _find_dialect(file, separator, decimal, encoding)
            return file
    for option, value in (("--sep", separator), ("--decimal", decimal), ("--encoding", encoding)):
        if value is not None:
            raise ValueError(f"{option} is for text, and {file} is a file of {file.kind}.")
    return file


def _check_options(separator: str | None, encoding: str | None) -> tuple[str | None, str | None]:
    """Check --sep and --encoding; return them as Python calls them."""
    if separator is not None:
        separator = _WORDS.get(separator.casefold(), separator)
        if len(separator) != 1 or separator in '"\r\n':
            raise ValueError(f"--sep must be one character, 'tab' or 'space', got {separator!r}.")
    if encoding is None:
        return separator, None
    try:
        name = codecs.lookup(encoding).name
        b"a".decode(name, errors="ignore")  # which codecs that make no text refuse
    except (LookupError, ValueError):
        raise ValueError(
            f"--encoding: there is no encoding {encoding!r}; utf-8, utf-16, cp1252 and latin-1 are some."
        ) from None
    return separator, _UTF8 if name == "utf-8" else name


def _by_content(file: TableFile) -> tuple[Kind, str]:
    """What a file is and what it is packed by; its first bytes know better than its name."""
    with file.opened() as (stream, _):
        start = stream.read(8)
    if not start:
        raise ValueError(f"{file} is empty.")
    if file.kind != "text":
        return file.kind, ""
    return next((found for mark, found in _STARTS.items() if re.match(mark, start)), ("text", ""))


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
    """Say in one sentence why a file cannot be unpacked or read."""
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


def _find_dialect(file: TableFile, separator: str | None, decimal: str | None, encoding: str | None) -> None:
    """Find separator, decimal mark and encoding of a text where they are not given, and note them."""
    file.encoding = encoding or _find_encoding(file)
    with file.opened() as (stream, _):
        head = stream.read(_HEAD)
    text = codecs.getincrementaldecoder(file.encoding)(errors="replace").decode(head).removeprefix("\ufeff")
    if len(head) == _HEAD:
        text = text[: text.rfind("\n") + 1] or text
    # Spreadsheets understand such a first line, and write it.
    hint = re.match(r'"?sep=(.)"?\r?\n', text)
    if hint:
        text, file.n_before = text[hint.end() :], 1
    expected = separator or named_separator(file.path)
    file.separator = separator or (hint[1] if hint else _find_separator(text, expected))
    file.decimal = decimal or _find_decimal(_cells(text, file.separator), file.separator)
    found = {
        f"separator {file.separator!r}": file.separator != expected,
        "decimal comma": file.decimal != (decimal or "."),
        f"encoding {file.encoding}": file.encoding != (encoding or _UTF8),
    }
    if any(found.values()):
        note(f"{file} is read with {', '.join(what for what, is_noted in found.items() if is_noted)}.")


def _find_encoding(file: TableFile) -> str:
    """The encoding of a whole text, of which the first strange letter may stand at the end."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="surrogateescape")
    n_letters, wrong = 0, b""
    with file.opened() as (stream, _):
        block = stream.read(_BLOCK)
        if not block:
            raise ValueError(f"{file} is empty.")
        for mark, encoding in _BOMS.items():
            if block.startswith(mark):
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
    """Say what can be done about a text whose encoding is another one, and which it may be."""
    from charset_normalizer import from_bytes

    with file.opened() as (stream, _):
        lines = stream.read(_BLOCK).splitlines(keepends=True)
    strange = b"".join(line for line in lines if not line.isascii())
    # Unicode is known before.
    guesses = [guess.encoding for guess in from_bytes(strange) if not guess.encoding.startswith("utf_")]
    guess = f"it may be {guesses[0]}; " if guesses else ""
    return f"{guess}say by --encoding in what it is written, or save it as UTF-8."


def _cells(text: str, separator: str) -> list[list[str]]:
    """The first rows of a text that are not empty."""
    by_space = separator == " "
    lines = csv.reader(StringIO(text, newline=""), delimiter=separator, skipinitialspace=by_space)
    rows = []
    try:
        for row in islice(filter(any, lines), _ROWS_TRIED):
            rows.append([cell for cell in row if cell] if by_space else row)
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
    cells = [cell for row in rows[1:] for cell in row]
    commas = [cell for cell in cells if re.fullmatch(_WITH_COMMA, cell)]
    # Where cells are separated by ';', commas are free for decimals; elsewhere they may mark thousands.
    if separator != ";" and all(re.fullmatch(_THOUSANDS, cell) for cell in commas):
        return "."
    return "," if len(commas) > sum(bool(re.fullmatch(_WITH_POINT, cell)) for cell in cells) else "."


def with_decimal_points(texts: pd.Series[Any]) -> pd.Series[Any]:
    """A column of texts from a file with decimal commas, its numbers written with points.

    Points mark thousands, as in 1.065 or 1.065,50, if all of them may; else they are decimal points, too.
    """
    is_marked = texts.str.fullmatch(_POINTED_THOUSANDS, na=False)
    if is_marked.any() and not texts[~is_marked].str.fullmatch(_WITH_POINT, na=False).any():
        note(f"column {texts.name!r}: the point marks thousands, as in {texts[is_marked].iloc[0].strip()!r}.")
        texts = texts.mask(is_marked, texts.str.replace(".", "", regex=False))
    with_comma = texts.str.fullmatch(_WITH_COMMA, na=False)
    return texts.mask(with_comma, texts.str.replace(",", ".", regex=False))
