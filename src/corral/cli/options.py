"""Arguments and options that several commands have. Files are checked before a command does any work."""

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
    """Return the path of an existing file; None if the option was not given."""
    return None if path is None else check_readable(path)


def _table(path: Path) -> Path:
    return path if path == STANDARD_STREAM else check_readable(path)


def output(path: Path | None) -> Path | None:
    """Return a path that can be written to; None if the option was not given. `-` is an error."""
    if path == STANDARD_STREAM:
        raise ValueError(
            "- (the standard output) is only for the tables of predict and the pages of report: give a file "
            "name."
        )
    return None if path is None else check_writable(path)


def output_or_stream(path: Path | None) -> Path | None:
    """Return a path that can be written to, or - for the standard output."""
    return path if path == STANDARD_STREAM else output(path)


def file_option(*flags: str, text: str, metavar: str = "FILE", callback: Any = output) -> Any:
    """Return an option whose value is a file, by default a file to write."""
    return typer.Option(*flags, metavar=metavar, help=text, callback=callback)


def _option(*flags: str, metavar: str = "COLUMN", text: str) -> Any:
    return typer.Option(*flags, metavar=metavar, help=text)


_TABLE_TEXT = (
    "Table with column names: .csv, .tsv or .txt, which may be compressed (.gz, .bz2, .xz, .zst), .xlsx, "
    ".xls, .xlsb, .ods, .parquet or .feather; - for the standard input."
)
_SEPARATOR_TEXT = "Separator of the cells of a text file, such as ';', 'tab' or 'space'; detected by default."
_DECIMAL_TEXT = "Decimal mark of a text file; detected by default."
_ENCODING_TEXT = "Encoding of a text file, such as cp1252; detected by default."
_GOAL_TEXT = "Estimate how many rows are needed for this accuracy, and for this recall of each class."
_IDS_TEXT = (
    "Column of ids, each of which identifies a row. It is not a variable, and 'corral predict' writes it to "
    "its "
    "table. May be repeated; the first column identifies rows in reports and for 'corral explain --row'."
)
_GROUP_TEXT = (
    "Column that identifies groups of rows, such as the patient of several visits. It is not a variable. "
    "Rows of "
    "a group are always held out together."
)
_CATEGORICAL_TEXT = (
    "Column whose values are categories although they look like numbers or dates; may be repeated. Columns "
    "of "
    "other text always hold categories."
)
_MISSING_TEXT = (
    "Whether to keep rows with missing values, to leave them out (drop-rows), or to leave out only rows "
    "without a "
    "label (drop-unlabelled)."
)
_MISSING_IN_NEW_TEXT = "Whether to keep rows with missing values, or to leave them out (drop-rows)."
_NA_VALUES_TEXT = (
    "Text or number that stands for a missing value, such as '?'; may be repeated. Values given to 'corral "
    "fit' "
    "also count as missing in the tables of later commands."
)
_QUIET_TEXT = "Print one line per result, or nothing if the result is a file; no tables, bars or notes."

TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help=_TABLE_TEXT, callback=_table)]
ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", help="File written by 'corral fit --model'.", callback=input_file)
]
Separator = Annotated[str | None, _option("--sep", metavar="CHARACTER", text=_SEPARATOR_TEXT)]
Decimal = Annotated[Literal[".", ","] | None, typer.Option("--decimal", help=_DECIMAL_TEXT)]
Encoding = Annotated[str | None, _option("--encoding", metavar="NAME", text=_ENCODING_TEXT)]
Target = Annotated[str, _option("--target", "-t", text="Column with the labels.")]
OptionalTarget = Annotated[
    str | None, _option("--target", "-t", text="Column with the labels, if the table has one.")
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
Seed = Annotated[int, typer.Option(help="Seed of the random numbers.", min=0, max=2**32 - 1)]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Number of threads; -1 for all cores.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help=_QUIET_TEXT)]
