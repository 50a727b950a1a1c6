"""Arguments and options that commands share, and what they may be; files are checked before any work."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from corral.cli.shared import STANDARD_STREAM
from corral.files.atomic import check_readable, check_replaceable


class EstimatorName(StrEnum):
    """What `corral fit` can fit."""

    cv = "cv"
    rodeo = "rodeo"
    lspc = "lspc"


class Priors(StrEnum):
    """How much the classes count."""

    empirical = "empirical"
    uniform = "uniform"


class ScaleName(StrEnum):
    """Units in which bandwidths are chosen."""

    range = "range"
    standard = "standard"
    rank = "rank"
    none = "none"


class Missing(StrEnum):
    """What to do with rows that lack a value; those without a class cannot be kept where classes count."""

    keep = "keep"
    drop_rows = "drop-rows"
    drop_unlabelled = "drop-unlabelled"


class MissingInNew(StrEnum):
    """The same of rows that have no classes."""

    keep = "keep"
    drop_rows = "drop-rows"


class AllocationName(StrEnum):
    """How `corral sample-size` shares rows out."""

    proportional = "proportional"
    optimal = "optimal"


_TABLE_HELP = (
    "Table with column names: .csv, .tsv or .txt, which may be packed (.gz, .bz2, .xz, .zst), .xlsx, "
    ".xls, .xlsb, .ods, .parquet or .feather; - is the standard input."
)


def _input(path: Path) -> Path:
    """Checked before anything else is imported."""
    return check_readable(path)


def input_file(path: Path | None) -> Path | None:
    """The same where there need not be a file."""
    return None if path is None else check_readable(path)


def _input_or_stream(path: Path) -> Path:
    return path if path == STANDARD_STREAM else check_readable(path)


def output(path: Path | None) -> Path | None:
    """Checked before any work that could then not be kept."""
    if path == STANDARD_STREAM:
        raise ValueError(
            "the standard output takes the tables of predict and the pages of report: name a file."
        )
    return None if path is None else check_replaceable(path)


def output_or_stream(path: Path | None) -> Path | None:
    """The same where the standard output will do."""
    return path if path == STANDARD_STREAM else output(path)


TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help=_TABLE_HELP, callback=_input_or_stream)]
Separator = Annotated[
    str | None,
    typer.Option(
        "--sep",
        metavar="CHARACTER",
        help="What separates the cells of a text, 'tab' and 'space' among them; found out by default.",
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option("--decimal", metavar="MARK", help="Decimal '.' or ',' of a text; found out by default."),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="NAME", help="Encoding of a text, such as cp1252; found out by default."
    ),
]
ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", help="File written by 'corral fit --model'.", callback=_input)
]
Target = Annotated[str, typer.Option("--target", "-t", metavar="COLUMN", help="Column with the classes.")]
Goal = Annotated[
    float | None,
    typer.Option(
        help="Wanted accuracy, and recall of each class: tell how many rows it takes.",
        min=1e-10,
        max=1 - 1e-10,
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="Column that names rows: no variable, and kept by 'corral predict'; may be repeated. The first "
        "names rows wherever they are shown, and for 'corral explain --row'.",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="COLUMN", help="Column to leave out; may be repeated."),
]
NumericOnly = Annotated[
    bool, typer.Option("--numeric-only", help="Leave out columns of text, which are levels otherwise.")
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="COLUMN",
        help="Column that names what several rows belong to, like a patient: no variable, and whatever "
        "leaves a row out leaves out all rows of its group.",
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        "--categorical",
        metavar="COLUMN",
        help="Column whose values are levels although they look like numbers; may be repeated. Columns of "
        "text are levels anyway.",
    ),
]
MissingRows = Annotated[
    Missing,
    typer.Option(
        "--missing",
        help="Whether rows that lack a value are kept, which leaves gaps, or left out, all of them or those "
        "without a class.",
    ),
]
MissingInNewRows = Annotated[
    MissingInNew,
    typer.Option(
        "--missing", help="Whether rows that lack a value are kept, which leaves gaps, or left out."
    ),
]
NaValues = Annotated[
    list[str] | None,
    typer.Option(
        "--na-values",
        metavar="TEXT",
        help="Text or number that stands for a missing value, like '?'; may be repeated.",
    ),
]
MoreNaValues = Annotated[
    list[str] | None,
    typer.Option(
        "--na-values",
        metavar="TEXT",
        help="Text or number that stands for a missing value, besides those that 'corral fit' was given; may "
        "be repeated.",
    ),
]
QuoteFormulas = Annotated[
    bool,
    typer.Option(
        "--quote-formulas",
        help="In a .csv or .tsv file, put an apostrophe before text that a spreadsheet may run as a formula.",
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of everything drawn at random.", min=0, max=2**32 - 1)]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print one line for each answer, and none if the answer is a file; no tables, bars or notes.",
    ),
]
