"""Arguments and options that commands share. Files are checked here, before a command does any work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from corral.cli.shared import STANDARD_STREAM
from corral.files.atomic import check_readable, check_writable

EstimatorName = Literal["cv", "rodeo", "lspc"]
Priors = Literal["empirical", "uniform"]
ScaleName = Literal["range", "standard", "rank", "none"]
Missing = Literal["keep", "drop-rows", "drop-unlabelled"]
MissingInNew = Literal["keep", "drop-rows"]
AllocationName = Literal["proportional", "optimal"]


def input_file(path: Path | None) -> Path | None:
    """A path that must be a readable file, or None for an option not given."""
    return None if path is None else check_readable(path)


def _table(path: Path) -> Path:
    return path if path == STANDARD_STREAM else check_readable(path)


def output(path: Path | None) -> Path | None:
    """A path that can be written to, or None for an option not given; the standard output is refused."""
    if path == STANDARD_STREAM:
        raise ValueError(
            "the standard output takes the tables of predict and the pages of report: name a file."
        )
    return None if path is None else check_writable(path)


def output_or_stream(path: Path | None) -> Path | None:
    """A path as `output` returns it, or - for the standard output."""
    return path if path == STANDARD_STREAM else output(path)


def file_option(*flags: str, text: str, metavar: str = "FILE", callback: Any = output) -> Any:
    """An option that names a file, by default one to write."""
    return typer.Option(*flags, metavar=metavar, help=text, callback=callback)


def _option(*flags: str, metavar: str = "COLUMN", text: str) -> Any:
    return typer.Option(*flags, metavar=metavar, help=text)


_TABLE_TEXT = (
    "Table with column names: .csv, .tsv or .txt, which may be packed (.gz, .bz2, .xz, .zst), .xlsx, "
    ".xls, .xlsb, .ods, .parquet or .feather; - is the standard input."
)
_SEPARATOR_TEXT = "What separates the cells of a text file, such as 'tab' or 'space'; detected by default."
_DECIMAL_TEXT = "Decimal mark of a text file; detected by default."
_ENCODING_TEXT = "Encoding of a text file, such as cp1252; detected by default."
_GOAL_TEXT = "Estimate how many rows it takes to reach this accuracy, and this recall of each class."
_IDS_TEXT = (
    "Column that names rows: not a variable, and kept by 'corral predict'; may be repeated. The first one "
    "names rows wherever they are shown, and for 'corral explain --row'."
)
_GROUP_TEXT = (
    "Column that names what several rows belong to, like a patient: not a variable. Rows of a group are "
    "always left out together."
)
_CATEGORICAL_TEXT = (
    "Column whose values are categories although they look like numbers; may be repeated. Columns of text "
    "always hold categories."
)
_MISSING_TEXT = (
    "Whether rows with missing values are kept or left out: all of them, or only rows without a class."
)
_MISSING_IN_NEW_TEXT = "Whether rows with missing values are kept or left out."
_NA_VALUES_TEXT = (
    "Text or number that stands for a missing value, like '?'; may be repeated. Values given to 'corral fit' "
    "count as missing in new tables, too."
)
_QUIET_TEXT = "Print one line for each answer, and none if the answer is a file; no tables, bars or notes."

TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help=_TABLE_TEXT, callback=_table)]
ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", help="File written by 'corral fit --model'.", callback=input_file)
]
Separator = Annotated[str | None, _option("--sep", metavar="CHARACTER", text=_SEPARATOR_TEXT)]
Decimal = Annotated[Literal[".", ","] | None, typer.Option("--decimal", help=_DECIMAL_TEXT)]
Encoding = Annotated[str | None, _option("--encoding", metavar="NAME", text=_ENCODING_TEXT)]
Target = Annotated[str, _option("--target", "-t", text="Column with the classes.")]
OptionalTarget = Annotated[
    str | None, _option("--target", "-t", text="Column with the classes, if there is one.")
]
Goal = Annotated[float | None, typer.Option(help=_GOAL_TEXT, min=1e-10, max=1 - 1e-10)]
Ids = Annotated[list[str] | None, _option("--id", text=_IDS_TEXT)]
Drop = Annotated[list[str] | None, _option("--drop", text="Column to leave out; may be repeated.")]
NumericOnly = Annotated[
    bool, typer.Option("--numeric-only", help="Leave out columns of text instead of using their categories.")
]
Group = Annotated[str | None, _option("--group", text=_GROUP_TEXT)]
Categorical = Annotated[list[str] | None, _option("--categorical", text=_CATEGORICAL_TEXT)]
MissingRows = Annotated[Missing, typer.Option("--missing", help=_MISSING_TEXT)]
MissingInNewRows = Annotated[MissingInNew, typer.Option("--missing", help=_MISSING_IN_NEW_TEXT)]
NaValues = Annotated[list[str] | None, _option("--na-values", metavar="TEXT", text=_NA_VALUES_TEXT)]
Seed = Annotated[int, typer.Option(help="Seed of all random numbers.", min=0, max=2**32 - 1)]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help=_QUIET_TEXT)]
