"""Odd files and errors that people make, each with the exact answer; none ends in a traceback."""

import bz2
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from corral import RodeoClassifier, save_model
from support.cli import notes_of, refused, run

N = 40


def rows():
    """Two numbers and one of two classes, which overlap."""
    rng = np.random.default_rng(3)
    y = np.repeat(["u", "v"], N // 2)
    X = np.round(rng.normal(size=(N, 2)) + 1.5 * (y == "v")[:, np.newaxis], 2)
    return pd.DataFrame(X, columns=["a", "b"]).assign(y=y)


def text(frame=None, **options):
    return (rows() if frame is None else frame).to_csv(index=False, **options)


def with_cells(name, values):
    """The table with some cells of a column changed."""
    frame = rows().astype(object)
    for row, value in values.items():
        frame.loc[row, name] = value
    return text(frame)


def excel(frame):
    content = io.BytesIO()
    frame.to_excel(content, index=False)
    return content.getvalue()


def parquet():
    return rows().to_parquet()


SUFFIXES = (
    "must end in .csv, .tsv, .txt, .parquet, .pq, .feather, .arrow, .xlsx, because the ending sets the file "
    "format; text may be compressed: .csv.gz, .csv.bz2, .csv.xz, .csv.zst."
)
READABLE = SUFFIXES.replace(".xlsx", ".xlsx, .xls, .xlsb, .ods")
NO_TEXT = "{} contains the byte 0x00, so it is not text, or --encoding is needed."
NO_EXCEL = "{} cannot be read as Excel: Cannot detect file format; it may be damaged or locked."
NO_ENCODING = "--encoding: there is no encoding {!r}; examples are utf-8, utf-16, cp1252 and latin-1."
TOO_MANY_CELLS = "{} is not a proper table: rows have more cells than there are column names."
OTHERWISE = "; or leave the column out by --drop, or use its values as categories by --categorical."

# Name of the file unless it is t.csv, its content, and the error; '...' stands for words of other packages.
REFUSED = {
    "an empty file": ("", "{} is empty."),
    "empty lines": ("\n\n\n", "{} is empty."),
    "names alone": ("a,b,y\n", "{} has no rows."),
    "a last row cut short": (
        text()[:-5],
        "{}: the target 'y' is missing in 1 row, first in row 39: fill it in, or leave these rows out by "
        "--missing drop-unlabelled.",
    ),
    "no such file": (None, "there is no file {}."),
    "no table by its name": ("t.dat", text(), "{} " + READABLE),
    "packed Parquet": ("t.parquet.gz", gzip.compress(parquet()), "{} " + READABLE),
    "a locked spreadsheet": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), NO_EXCEL),
    "text called a spreadsheet": ("t.xlsx", text(), NO_EXCEL),
    "text called an old spreadsheet": ("t.xls", text(), NO_EXCEL),
    "half a spreadsheet": ("t.xlsx", excel(rows())[:900], NO_EXCEL),
    "a spreadsheet with nothing in it": ("t.xlsx", excel(pd.DataFrame()), "{} is empty."),
    "text called Parquet": ("t.parquet", text(), "{} cannot be read as Parquet: ..."),
    "half of Parquet": ("t.parquet", parquet()[:800], "{} cannot be read as Parquet: ..."),
    "text called Feather": ("t.feather", text(), "{} cannot be read as Feather: ..."),
    "half a packed file": (
        "t.csv.gz",
        gzip.compress(text().encode())[:200],
        "{} cannot be decompressed, and may be incomplete: Compressed file ended before the end-of-stream "
        "marker "
        "was reached.",
    ),
    "a packed file of nothing": ("t.csv.gz", gzip.compress(b""), "{} is empty."),
    "zeros": (bytes(300), NO_TEXT),
    "a zero in text": (text().replace("u", "\0", 1), NO_TEXT),
    "UTF-16 without a mark of its byte order": (text().encode("utf-16-le"), NO_TEXT),
    "broken UTF-8": (
        text().replace("u", "ü").encode() + b"1,2,\xfc\n",
        "{} is neither UTF-8 nor Windows-1252 text (byte 0xfc): ...set its encoding by --encoding, or save "
        "the file as UTF-8.",
    ),
    "Japanese": (
        text(rows().replace({"u": "\u5c71\u7530\u3001\u3055\u3093", "v": "\u6771\u4eac\u90fd"})).encode(
            "cp932"
        ),
        "{} is neither UTF-8 nor Windows-1252 text (byte 0x81): it may be cp932; set its encoding by "
        "--encoding, or save the file as UTF-8.",
    ),
    "an open quote": (
        text() + '1,2,"u\n3,4,v\n',
        "{} is not a proper table: EOF inside string starting at row 41.",
    ),
    "a row that is too long": (
        text() + "1,2,u,4\n",
        "{} is not a proper table: Expected 3 fields in line 42, saw 4.",
    ),
    "one name too few": (
        "a,y\n" + text().partition("\n")[2],
        TOO_MANY_CELLS,
    ),
    "one row with one cell too many": ("a,b,y\nr0,1,2,u\n", TOO_MANY_CELLS),
    "a first row that ends in a separator": (
        text(rows().set_axis([f"r{i}" for i in range(N)]).reset_index(names="id")).replace("u\n", "u,\n", 1),
        TOO_MANY_CELLS,
    ),
    "rows that begin with names and end in a separator": (
        text(rows().set_axis([f"r{i}" for i in range(N)]).reset_index(names="id"))
        .replace("u\n", "u,\n")
        .replace("v\n", "v,\n"),
        TOO_MANY_CELLS,
    ),
    "a title above the names": (
        "Measurements of May\n" + text(),
        "{} has no column 'y'; it has 'Measurements of May'.",
    ),
    "two columns of one name": (
        text().replace("a,b", "a,a", 1),
        "{} has the column 'a' twice: give each column a different name.",
    ),
    "a column without a name": (
        rows().to_csv(),
        "{} has a column without a name: add a name, or leave the column out by --drop 'Unnamed: 0'.",
    ),
    "a target in capitals": (text().replace("b,y", "b,Y", 1), "{} has no column 'y'; did you mean 'Y'?"),
    "a target with a space": (text().replace("b,y", "b, y", 1), "{} has no column 'y'; did you mean ' y'?"),
    "no target": (text().replace("b,y", "b,kind", 1), "{} has no column 'y'; it has 'a', 'b', 'kind'."),
    "missing classes": (
        with_cells("y", {3: "", 5: ""}),
        "{}: the target 'y' is missing in 2 rows, first in row 3: fill it in, or leave these rows out by "
        "--missing drop-unlabelled.",
    ),
    "one class": (
        text(rows().assign(y="u")),
        "the target must hold at least two classes, got one class: 'u'.",
    ),
    "a class of one row": (
        with_cells("y", {3: "w"}),
        "class 'w' has 1 row, fewer than the 2 needed to hold some out; leave small classes out by "
        "--drop-small-classes 2.",
    ),
    "a target of measurements": (
        text(rows().assign(y=rows()["a"] * 1.7)),
        "the target has {n} different values in 40 rows: these are not classes.",
    ),
    "the target alone": (text(rows()[["y"]]), "{} has no columns left that can be variables."),
    "empty variables": (text(rows().assign(a="", b="NA")), "{} has no columns left that can be variables."),
    "one bad cell": (
        with_cells("a", {17: "1.2.3"}),
        "{}: column 'a' would be numeric, but row 17 holds '1.2.3': correct the text, or replace "
        "it with NaN if it stands for a missing value (--na-values 1.2.3)" + OTHERWISE,
    ),
    "two bad cells": (
        with_cells("a", {17: "1.2.3", 20: "4..5"}),
        "{}: column 'a' would be numeric, but row 17 holds '1.2.3', and 1 more row holds no "
        "number: correct these cells (--na-values)" + OTHERWISE,
    ),
    "question marks": (
        with_cells("a", {17: "?", 20: "?"}),
        "{}: column 'a' would be numeric, but row 17 holds '?', and 1 more row holds no number: "
        "correct the text, or replace it with NaN if it stands for a missing value (--na-values '?')"
        + OTHERWISE,
    ),
    "one decimal comma": (
        with_cells("a", {17: "1,5"}),
        "{}: column 'a' would be numeric, but row 17 holds '1,5': correct the text, or replace it "
        "with NaN if it stands for a missing value (--na-values 1,5)" + OTHERWISE,
    ),
    "thousands": (
        with_cells("a", {row: f"{row + 1},234" for row in range(N)}),
        "{}: column 'a' holds numbers with a comma, such as '1,234' in row 0, so the column is read as text: "
        "remove the commas if they mark thousands, or read the file with decimal commas (--decimal ',').",
    ),
    "few decimal commas": (
        with_cells("a", {row: f"{row % 3},5" for row in range(N)}),
        "{}: column 'a' holds numbers with a comma, such as '0,5' in row 0, so the column is read as text: "
        "remove the commas if they mark thousands, or read the file with decimal commas (--decimal ',').",
    ),
    "infinity": (
        with_cells("b", {2: "inf"}),
        "{}: column 'b' holds an infinite value in row 2: correct it, or use --na-values inf if it stands "
        "for a missing value.",
    ),
    "integers that are one float": (
        text(rows().assign(a=np.arange(90071992547409930, 90071992547409930 + N))),
        "{}: column 'a' holds the integers 90071992547409930 and 90071992547409931, which become the same "
        "float: leave the column out by --drop, or use its values as categories by --categorical.",
    ),
}


def answer(folder, name, content, *options, code):
    path = folder / name
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path, run("fit", path, "-t", "y", "--estimator", "rodeo", "--json", *options, code=code)


def assert_says(result, sentence):
    """Compare the error with a sentence, except for words of other packages."""
    assert result.stdout == ""
    message = json.loads(result.stderr.splitlines()[-1])["error"]
    start, foreign, end = sentence.partition("...")
    assert message.startswith(start)
    assert message.endswith(end or ".") if foreign else message == start


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_sentence(case, tmp_path):
    *name, content, sentence = REFUSED[case]
    path, result = answer(tmp_path, *(name or ["t.csv"]), content, code=2)
    n = (rows()["a"] * 1.7).nunique()
    assert_says(result, sentence.replace("{}", str(path)).replace("{n}", str(n)))
    assert len(list(tmp_path.iterdir())) == (content is not None)


desk = text(rows().rename(columns={"a": "Größe"}), sep=";", decimal=",")

# Name of the file unless it is t.csv, its content, and the notes; all have forty rows and two variables.
READ = {
    "text of a spreadsheet in Unicode": (
        "t.txt",
        text(sep="\t").encode("utf-16"),
        "{} is read with encoding utf-16.",
    ),
    "a first line that names the separator": (
        "sep=;\r\n" + desk,
        "{} is read with separator ';', decimal comma.",
    ),
    "commas in a .tsv file": ("t.tsv", text(), "{} is read with separator ','."),
    "semicolons": ("t.txt", text(sep=";"), "{} is read with separator ';'."),
    "columns of spaces": ("t.txt", rows().to_string(index=False), "{} is read with separator ' '."),
    "a packed file that has lost its suffix": (bz2.compress(text().encode()), None),
    "a text that is not packed": ("t.csv.gz", text(), None),
    "a spreadsheet called .csv": (excel(rows()), None),
    "Parquet called .csv": (parquet(), None),
    "a name like a missing value": (text(rows().rename(columns={"a": "NA"})), None),
    "lines of an old Mac": (text().replace("\n", "\r"), None),
    "empty lines between rows": (text().replace("\n", "\n\n"), None),
    "spaces around numbers": (text().replace(",", " , ").replace("a , b , y", "a,b,y"), None),
    "names of rows without a name, as R writes them": (
        "t.txt",
        text(rows().set_axis([f"r{i}" for i in range(N)]).reset_index(), sep=" ").replace("index ", "", 1),
        "{} is read with separator ' '.|{} has no name for its first column, as in files of R: this column "
        "is left out.",
    ),
    "a separator at the end of each row": (
        text().replace("\n", ",\n"),
        "left out column 'Unnamed: 3', which has no name and is empty.",
    ),
    "few rows of a class": (
        with_cells("y", dict.fromkeys(range(4), "w")),
        "class with fewer than 10 rows: 'w' (4); the measured recall of a class with 4 rows may be off by up "
        "to 0.49 (95% interval): collect more rows, or leave small classes out (--drop-small-classes 10).",
    ),
}


@pytest.mark.parametrize("case", READ)
def test_read_as_it_is_meant(case, tmp_path):
    *name, content, note = READ[case]
    path, result = answer(tmp_path, *(name or ["t.csv"]), content, code=0)
    actual = json.loads(result.stdout)
    assert (actual["rows"], len(actual["variables"])) == (N, 2)
    assert notes_of(result) == ([] if note is None else note.replace("{}", str(path)).split("|"))


def sexes(*odd):
    return text(rows().assign(sex=[*odd, *["m", "f"] * N][:N]))


def taken(content, *options, n_categories=None, n_missing=None, note=""):
    """Content, options, numbers of categories and of missing values by column, and the note."""
    return content, options, n_categories or {}, n_missing or {}, note


TAKEN = {
    "words": taken(sexes(), n_categories={"sex": 2}),
    "words that are not wanted": taken(
        sexes(), "--numeric-only", note="left out columns that are not numeric: 'sex'."
    ),
    "words and missing values": taken(
        sexes("", "NA", "null", "?"), "--na-values", "?", n_categories={"sex": 2}, n_missing={"sex": 4}
    ),
    "yes, no and missing values": taken(
        text(rows().assign(c=["TRUE", "false", "", "True"] * (N // 4))),
        n_categories={"c": 2},
        n_missing={"c": 10},
    ),
    "codes": taken(
        text(rows().assign(c=["01", "1"] * (N // 2))),
        "--categorical",
        "c",
        n_categories={"c": 2},
        note="some categories of column 'c' differ only by case, spaces or the way a number is written, "
        "and count as different: ('01', '1'): write each category in one way.",
    ),
    "codes in one class": taken(
        text(rows().assign(c=[3] * 10 + [4] * 30)), "--categorical", "c", n_categories={"c": 2}
    ),
    "a slip that is meant": taken(
        with_cells("a", {17: "1.2.3"}),
        "--categorical",
        "a",
        n_categories={"a": 38},
        note="column 'a' holds 38 different texts in 40 rows, so most texts in new rows will be unknown "
        "and count as missing: leave the column out, or replace the texts by a few categories "
        "(--drop a).",
    ),
    "a slip that stands for nothing": taken(
        with_cells("a", {17: "1.2.3"}), "--na-values", "1.2.3", n_missing={"a": 1}
    ),
    "text in a third of the rows": taken(
        text(rows().assign(c=["1", "2", "3+", "4"] * (N // 4))),
        n_categories={"c": 4},
        note="column 'c' holds text in 10 of 40 rows, such as '3+', and numbers in other rows: each "
        "text and each number counts as a category.",
    ),
    "dates": taken(
        text(rows().assign(day=pd.date_range("2020-01-01", periods=N))),
        n_categories={"day (weekday)": 7},
        note="column 'day' holds dates: days since 2000, month and weekday are its variables; --categorical "
        "day makes the dates categories.",
    ),
    "per cent": taken(
        text(rows().assign(c="5%")),
        n_categories={"c": 1},
        note="column 'c' holds '5%' in every row; a constant column has no information about the label: "
        "leave it out (--drop c).",
    ),
    "a row of missing values": taken(
        text(rows().assign(a=rows()["a"].drop(4), b=rows()["b"].drop(4))), n_missing={"a": 1, "b": 1}
    ),
    "rows without a class": taken(
        with_cells("y", {3: "", 5: ""}),
        "--missing",
        "drop-unlabelled",
        note="left out 2 of 40 rows, which have no class; the other rows keep their numbers.",
    ),
}


@pytest.mark.parametrize("case", TAKEN)
def test_taken_as_it_is(case, tmp_path):
    content, options, categories, n_missing, note = TAKEN[case]
    _, result = answer(tmp_path, "t.csv", content, *options, code=0)
    actual = json.loads(result.stdout)
    assert (actual["categories"], actual["missing_values"]) == (categories, n_missing)
    assert notes_of(result) == ([note] if note else [])


# Content, options and the error.
OPTIONS = {
    "a wrong separator": (desk, ("--sep", ","), "{} has no column 'y'; it has 'Größe;b;y'."),
    "a wrong encoding": (
        text(rows().assign(y=["ä", "ö"] * (N // 2))).encode("cp1252"),
        ("--encoding", "utf-8"),
        "{} is not utf-8 text (byte 0xe4): ...",
    ),
    "a target that is left out": (text(), ("--drop", "y"), "the target, 'y', cannot be left out."),
    "an id that is no column": (text(), ("--id", "id"), "{} has no column 'id'; it has 'a', 'b', 'y'."),
    "all variables left out": (
        text(),
        ("--drop", "a", "--drop", "b"),
        "{} has no columns left that can be variables.",
    ),
    "no row without a missing value": (
        text(rows().assign(c=["", 1.0] * (N // 2), d=[2.0, ""] * (N // 2))),
        ("--missing", "drop-rows"),
        "{} has no row without missing values.",
    ),
    "categories that are no column": (
        text(),
        ("--categorical", "B"),
        "{} has no column 'B'; did you mean 'b'?",
    ),
    "a group that is no column": (
        text(),
        ("--group", "patient"),
        "{} has no column 'patient'; it has 'a', 'b', 'y'.",
    ),
    "a group that is the target": (
        text(),
        ("--group", "y"),
        "--group 'y' is the target: a group is the source of several rows, such as a patient.",
    ),
    "one group": (
        text(rows().assign(p="x")),
        ("--group", "p"),
        "{}: all rows have the same value, 'x', in the group column 'p': at least two groups are needed.",
    ),
    "missing groups": (
        text(rows().assign(p=["x", "", "z", "w"] * (N // 4))),
        ("--group", "p"),
        "{}: the group 'p' is missing in 10 rows, first in row 1: fill it in, or leave these rows out by "
        "--missing drop-rows.",
    ),
    "a class of one group": (
        text(rows().assign(p=["x"] * 20 + ["y", "z"] * 10)),
        ("--group", "p"),
        "class 'u' has 1 group, fewer than the 2 needed to hold some out; collect more groups: "
        "without such classes only one class would be left.",
    ),
    "words for a classifier of numbers": (
        sexes(),
        ("--estimator", "lspc"),
        "{}: column 'sex' holds text, such as 'm', but only numbers are accepted: leave it out by --drop, or "
        "all columns of text by --numeric-only.",
    ),
    "missing values for a classifier of numbers": (
        with_cells("b", {2: "", 7: "NA"}),
        ("--estimator", "lspc"),
        "{}: column 'b' has no value in 2 of 40 rows, first in row 2: fill in the values, or leave these "
        "rows out by "
        "--missing drop-rows.",
    ),
    "groups for a classifier of rows": (
        text(rows().assign(p=["x", "y"] * (N // 2))),
        ("--group", "p", "--estimator", "lspc"),
        "--group is not for --estimator lspc, which holds out single rows to choose its parameters.",
    ),
    "a separator of two characters": (
        text(),
        ("--sep", "xx"),
        "--sep must be one character, 'tab' or 'space', got 'xx'.",
    ),
    "a separator of no text": (
        parquet(),
        ("--sep", ";"),
        "--sep is only for text files, but {} is a file of Parquet.",
    ),
    "an encoding that there is not": (text(), ("--encoding", "klingon"), NO_ENCODING.format("klingon")),
    "an encoding that is none of text": (text(), ("--encoding", "hex"), NO_ENCODING.format("hex")),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options_that_do_not_fit_the_file(case, tmp_path):
    content, options, sentence = OPTIONS[case]
    path, result = answer(tmp_path, "t.csv", content, *options, code=2)
    assert_says(result, sentence.replace("{}", str(path)))


@pytest.mark.parametrize(
    ("content", "out", "sentence"),
    [
        (text(rows()[["a"]]), "o.csv", "{t} has no column 'b'."),
        ("a,b,y\n", "o.csv", "{t} has no rows."),
        *((text(), f"o.{suffix}", "{o} " + SUFFIXES) for suffix in ("docx", "xls", "xlsb", "ods")),
        (text(), "none/o.csv", "there is no folder {folder} to write o.csv to."),
        (text().encode("utf-16")[:-1], "o.csv", "{t} is not utf-16-le text (byte 0x0a): ..."),
    ],
)
def test_tables_that_cannot_be_predicted(content, out, sentence, tmp_path):
    table, to = tmp_path / "t.csv", tmp_path / out
    table.write_bytes(content if isinstance(content, bytes) else content.encode())
    save_model(RodeoClassifier().fit(rows()[["a", "b"]], rows()["y"]), tmp_path / "m.corral")
    result = run("predict", tmp_path / "m.corral", table, "--out", to, "--json", code=2)
    assert_says(result, sentence.format(t=table, o=to, folder=to.parent))
    assert not to.exists()


# The command line


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"length": rng.normal(size=40), "width": rng.normal(size=40)})
    frame.assign(kind=np.repeat(["p", "q"], 20)).to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


@pytest.fixture
def model(table):
    run("fit", table, "-t", "kind", "--estimator", "rodeo", "-q", "-m", table.with_name("m.corral"))
    return table.with_name("m.corral")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--test-size", "2"], r"'--test-size': .*'?2(\.0)?'? .*0\.99"),
        (["--cv", "x"], "'--cv': 'x' "),
        (["--estimator", "foo"], "'--estimator': 'foo' is not one of 'cv', 'rodeo', 'lspc'"),
        (["--estimator", "lspc", "--priors", "uniform"], "--priors uniform is not for --estimator lspc"),
        (["--group", "kind"], "--group 'kind' is the target: a group is the source of several rows"),
        (
            ["--cv", "2", "--test-size", "0.3"],
            "^--cv 2 and --test-size 0.3 are different ways .*: use only one of them.$",
        ),
        (["--cv", "1000"], "use a smaller --cv, or leave small classes out by --drop-small-classes 1000"),
        (["--report", "r.pdf"], r"r\.pdf must end in \.html"),
        (["--model", "m.pkl"], r"m\.pkl must not end in \.pkl"),
    ],
)
def test_a_wrong_option_is_named_with_its_value(options, sentence, table, monkeypatch):
    monkeypatch.chdir(table.parent)
    message = refused("fit", table, "-t", "kind", *options)
    assert re.search(sentence, message), message
    assert "Value error" not in message
    assert "Input" not in message
    assert [path.name for path in table.parent.iterdir()] == ["t.csv"]


def test_model_and_table_in_the_wrong_order(table, model):
    sentence = f"{model} is a model, but {table} is not: give the model first, then the table."
    assert refused("predict", table, model, "-o", table.with_name("o.csv")) == sentence
    assert refused("explain", table, model, "--row", "0") == sentence
    assert refused("report", table, model) == sentence


def test_columns_of_another_case_are_named(table, model):
    frame = pd.read_csv(table).rename(columns={"length": "Length", "width": "breadth"})
    frame.to_csv(table, index=False)
    message = refused("predict", model, table, "-o", table.with_name("o.csv"))
    assert message.endswith("has no column 'length', 'width'; did you mean 'Length' for 'length'?")


def test_infinite_and_huge_numbers_have_a_remedy(table):
    frame = pd.read_csv(table)
    frame.assign(width=np.where(frame.index == 3, np.inf, 1.0)).to_csv(table, index=False)
    message = refused("fit", table, "-t", "kind")
    assert message.endswith("in row 3: correct it, or use --na-values inf if it stands for a missing value.")
    assert "accuracy" in run("fit", table, "-t", "kind", "--na-values", "inf", "-q").stdout
    frame.assign(width=np.where(frame.index % 2, 1e308, -1e308)).to_csv(table, index=False)
    assert "column 'width' holds -1e+308 in row 0, which is too large" in refused("fit", table, "-t", "kind")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder in which nobody can make a file")
def test_a_file_that_cannot_be_written_is_refused_before_the_fit(table):
    message = refused("fit", table, "-t", "no such column", "-m", "/proc/self/m.corral")
    assert message.startswith("/proc/self/m.corral: ")  # and not about the column, which is looked for later


def test_an_interrupt_while_modules_are_loaded_prints_no_traceback(tmp_path):
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    ended = subprocess.run(
        [sys.executable, "-c", "import corral.cli"], capture_output=True, env=environment, check=False
    )
    assert ended.returncode == -signal.SIGINT
    assert ended.stderr == b""
    import corral.cli  # noqa: F401

    # A shell starts jobs in the background with SIGINT ignored; then Python leaves it so.
    assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)


def test_the_package_runs_as_a_command():
    ended = subprocess.run(
        [sys.executable, "-m", "corral", "--help"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "predict" in ended.stdout
