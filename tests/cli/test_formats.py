"""Tests of file formats: kinds, separators, decimal marks and encodings, and the standard streams."""

import io
import json
import subprocess
import sys
import warnings
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from openpyxl import Workbook
from pyarrow import feather
from typer.testing import CliRunner

import corral.cli.tables
from corral import RodeoClassifier, load_model, save_model
from corral.cli import app
from corral.cli.tables import open_table, read_table
from corral.cli.writing import write_table
from support.cli import answered, notes_of, refused, run

NUMBERS = ["Länge", "width, cm", "c"]
TEXT = ("t.csv", "t.tsv", "t.txt", "t.csv.gz", "t.csv.bz2", "t.tsv.xz", "t.txt.zst")
BINARY = ("t.parquet", "t.pq", "t.feather", "t.arrow")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(rng.normal(size=(90, 3)), columns=NUMBERS)
    return numbers.assign(id=[f"{i:04}" for i in range(90)], y=["ä", "b", "NA"] * 30)


@pytest.fixture(scope="module")
def model(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("formats") / "m.corral"
    save_model(RodeoClassifier(bandwidth="class").fit(frame[NUMBERS], frame["y"]), path)
    return path


def read(path, **given):
    """The table, and the notes on its format."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = read_table(open_table(path, **given), NUMBERS, {"y": [""], "id": []})
    return table, [str(each.message).removeprefix(f"{path} ") for each in caught]


def assert_same(actual, frame, exact=True):
    (assert_array_equal if exact else assert_allclose)(
        actual[NUMBERS].to_numpy(float), frame[NUMBERS].to_numpy()
    )
    for name in ("id", "y"):
        assert actual[name].tolist() == frame[name].tolist()


@pytest.mark.parametrize("name", [*TEXT, *BINARY, "t.xlsx"])
def test_what_is_written_is_read_again(name, frame, tmp_path, monkeypatch):
    monkeypatch.setattr(corral.cli.tables, "CHUNK", 40)
    write_table(tmp_path / name, frame)
    actual, notes = read(tmp_path / name)
    assert_same(actual, frame, exact=name != "t.xlsx")  # which has 16 digits
    assert notes == []


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_an_index_of_pandas_without_a_name_is_no_column(name, frame, tmp_path):
    """pandas writes the index of a filtered frame as a column, and reads it as an index."""
    filtered = frame[frame["c"] > -1.0].drop(columns="id")
    table, path = pa.Table.from_pandas(filtered), tmp_path / name
    (pq.write_table if name == "t.parquet" else feather.write_feather)(table, path)
    assert "__index_level_0__" in table.column_names
    assert answered("fit", path, "-t", "y", "--estimator", "rodeo")["variables"] == NUMBERS
    actual = answered("check", path, "-t", "y")
    assert (actual["columns"], [each["columns"] for each in actual["findings"]]) == (4, [])
    named = ("--id", "__index_level_0__", "--model", tmp_path / "m")
    assert answered("fit", path, "-t", "y", "--estimator", "rodeo", *named)["variables"] == NUMBERS
    assert load_model(tmp_path / "m").row_names_in_.tolist() == filtered.index.astype(str).tolist()


def test_others_read_what_is_written(frame, tmp_path):
    for name in ("t.csv.gz", "t.csv.bz2", "t.csv.xz", "t.feather", "t.xlsx"):
        write_table(tmp_path / name, frame)
    for packing in ("gz", "bz2", "xz"):
        actual = pd.read_csv(tmp_path / f"t.csv.{packing}", dtype={"id": str}, keep_default_na=False)
        pd.testing.assert_frame_equal(actual, frame)
    assert pd.read_feather(tmp_path / "t.feather")["id"].tolist() == frame["id"].tolist()
    assert (
        pd.read_excel(tmp_path / "t.xlsx", engine="openpyxl", dtype={"id": str})["id"].tolist()
        == frame["id"].tolist()
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("decimal", [".", ","])
def test_the_format_of_a_text_is_detected(encoding, separator, decimal, frame, tmp_path):
    text = frame.to_csv(index=False, sep=separator, decimal=decimal, lineterminator="\r\n")
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    actual, notes = read(tmp_path / "t.csv")
    assert_same(actual, frame)
    expected = [f"separator {separator!r}"] * (separator != ",") + ["decimal comma"] * (decimal == ",")
    expected += [f"encoding {encoding}"] * (not encoding.startswith("utf-8"))
    assert notes == ([f"is read with {', '.join(expected)}."] if expected else [])
    actual, notes = read(tmp_path / "t.csv", separator=separator, decimal=decimal, encoding=encoding)
    assert notes == []
    assert_same(actual, frame)


@pytest.mark.parametrize(
    ("text", "separator", "decimal"),
    [
        ("a;b\n1,234;5,678\n", ";", ","),
        ('a,b\n"1,234",5\n', ",", "."),  # more than a thousand, perhaps
        ('a,b\n"0,234",5\n', ",", ","),
        ("a\tb\n1,234\t5\n", "\t", "."),
        ("Length, cm;Width, cm;y\n1,5;2,5;u\n", ";", ","),
        ("a b y\n1 0.5 0.6 u\n2 0.7 0.8 v\n", " ", "."),  # as R writes it
        ("  a   b\n 10   2\n  1  20\n", " ", "."),
        ("sepal length\n1.5\n2.5\n", ",", "."),  # one column
        ('"a;b",c\n"1;2",3\n"4",5\n', ",", "."),
        ('a,y\n"two\nlines",u\n3,v\n', ",", "."),
        ("sep=|\na|b\n1|2\n", "|", "."),
        ("a;b\n", ";", "."),
        ("a;b\n1.5;2\n2.5;1,5\n3.5;x\n", ";", "."),
    ],
)
def test_separators_and_decimals(text, separator, decimal, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actual = open_table(tmp_path / "t.csv")
    assert (actual.separator, actual.decimal) == (separator, decimal)


@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(-9, 9), st.text("aäöß é", min_size=1)), min_size=1)
)
def test_a_spreadsheet_of_a_european_desk(tmp_path_factory, rows):
    """A file with semicolons, decimal commas and Windows-1252."""
    path = tmp_path_factory.mktemp("desk") / "t.csv"
    frame = pd.DataFrame(rows, columns=["Größe", "Zahl", "Klasse"])
    path.write_bytes(frame.to_csv(index=False, sep=";", decimal=",").encode("cp1252"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actual = read_table(open_table(path), ["Größe", "Zahl"], {"Klasse": []})
    assert actual["Größe"].tolist() == frame["Größe"].tolist()
    assert actual["Klasse"].tolist() == frame["Klasse"].tolist()


def test_a_strange_letter_far_below(tmp_path):
    text = "a,y\n" + "1,u\n" * 400_000
    (tmp_path / "t.csv").write_bytes(text.encode() + "2,ü\n".encode("cp1252"))
    with pytest.warns(UserWarning, match=r"is read with encoding cp1252\."):
        assert open_table(tmp_path / "t.csv").encoding == "cp1252"
    (tmp_path / "t.csv").write_bytes(text.encode() + "2,ü\n".encode())
    assert open_table(tmp_path / "t.csv").encoding == "utf-8-sig"


def test_spreadsheets_run_no_text(model, frame, tmp_path):
    frame.assign(id="=1+1").to_csv(tmp_path / "t.csv", index=False)
    result = run("predict", model, tmp_path / "t.csv", "--id", "id", "--out", tmp_path / "o.xlsx")
    assert result.stderr == ""
    assert set(pd.read_excel(tmp_path / "o.xlsx", engine="openpyxl")["id"]) == {"=1+1"}
    frame.assign(id="a\x01").to_csv(tmp_path / "t.csv", index=False)
    command = ("predict", model, tmp_path / "t.csv", "--id", "id", "--out", tmp_path / "new.xlsx")
    assert refused(*command).endswith(
        "new.xlsx: an Excel file cannot contain the text 'a\\x01': write to a .csv file."
    )
    assert not (tmp_path / "new.xlsx").exists()


def test_further_sheets_are_noted(frame, tmp_path):
    book = Workbook()
    for row in (["Länge", "width, cm", "c", "id", "y"], *frame.itertuples(index=False, name=None)):
        book.active.append(row)
    book.create_sheet("more").append([1])
    book.save(tmp_path / "t.xlsx")
    actual, notes = read(tmp_path / "t.xlsx")
    assert_same(actual, frame, exact=False)
    assert set(notes) == {"has 2 sheets; only the first sheet, 'Sheet', is read."}


def test_sheets_of_other_offices(frame, tmp_path):
    def cell(value):
        kind = f'float" office:value="{value}' if isinstance(value, float) else "string"
        return f'<table:table-cell office:value-type="{kind}"><text:p>{value}</text:p></table:table-cell>'

    lines = [frame.columns, *frame.itertuples(index=False, name=None)]
    cells = "".join(f"<table:table-row>{''.join(map(cell, line))}</table:table-row>" for line in lines)
    uses = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    with ZipFile(tmp_path / "t.ods", "w") as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        book.writestr("META-INF/manifest.xml", "<manifest/>")
        book.writestr(
            "content.xml",
            f"<?xml version='1.0' encoding='UTF-8'?><office:document-content {uses}><office:body>"
            "<office:spreadsheet><table:table table:name='s'>"
            f"{cells}</table:table></office:spreadsheet></office:body></office:document-content>",
        )
    assert_same(read(tmp_path / "t.ods")[0], frame, exact=False)


# Standard streams


def piped(content, *arguments, code=0):
    result = CliRunner().invoke(app, [str(each) for each in arguments], input=content)
    assert result.exit_code == code, (result.output, result.exception)
    return result


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.feather", "t.xlsx"])
def test_predict_from_and_to_standard_streams(name, model, frame, tmp_path, monkeypatch):
    monkeypatch.setattr(corral.cli.tables, "CHUNK", 40)
    write_table(tmp_path / name, frame)
    content = (tmp_path / name).read_bytes()
    result = piped(content, "predict", model, "-", "--id", "id", "--out", "-", "--json")
    actual = pd.read_csv(io.StringIO(result.stdout), dtype={"id": str}, keep_default_na=False)
    assert actual["id"].tolist() == frame["id"].tolist()
    assert_allclose(actual["p_b"], load_model(model).predict_proba(frame[NUMBERS])[:, 1], rtol=1e-12)
    piped(content, "predict", model, "-", "--id", "id", "--out", tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_bytes().decode() == result.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "o.csv"])


def test_other_commands_read_the_standard_input(model, frame, tmp_path, monkeypatch):
    content = frame.to_csv(index=False, sep=";", decimal=",").encode("cp1252")
    fit = ("fit", "-", "-t", "y", "--id", "id", "--estimator", "rodeo", "--na-values", "x", "--json")
    result = piped(content, *fit)
    answer = json.loads(result.stdout)
    assert (answer["table"], answer["rows"]) == ("the standard input", 90)
    read = "the standard input is read with separator ';', decimal comma, encoding cp1252."
    assert read in notes_of(result)
    shown = piped(content, "explain", model, "-", "--row", 3, "-q").stdout
    assert shown.startswith("Row 3 is ")
    page = piped(content, "report", model, "-", "--out", "-").stdout
    assert page.startswith("<!DOCTYPE html>")
    assert "standard input" in page


def test_faults_of_standard_streams(model):
    def error(content, *arguments):
        result = piped(content, *arguments, code=2)
        return result.stderr.splitlines()[-1].removeprefix("error: ")

    predict = ("predict", model, "-", "--out", "-")
    assert error(b"", *predict) == "the standard input is empty."
    assert error(b"a,b\n1,2\n", *predict).startswith("the standard input has no column 'L")
    assert error(b"a,y\n1,u\n2,v\n3,u\n4,v\nx,v\n", "fit", "-", "-t", "y").startswith(
        "the standard input: column 'a' would be num"
    )
    no_file = (
        "- (the standard output) is only for the tables of predict and the pages of report: give a file name."
    )
    assert error(b"a,y\n1,u\n", "fit", "-", "-t", "y", "--model", "-") == no_file
    assert error(b"a,y\n1,u\n", "explain", model, "-", "--row", 0, "--plot", "-") == no_file


def test_pipes_of_a_shell(model, frame):
    """In separate processes: the output is complete, and there is no other output."""
    command = [sys.executable, "-m", "corral", "predict", str(model), "-", "--out", "-"]
    content = frame.to_csv(index=False).encode()
    done = subprocess.run(command, input=content, capture_output=True, check=True)
    assert done.stdout.decode() == piped(content, "predict", model, "-", "--out", "-").stdout
    assert done.stderr == b""
    # A program that stops reading the output.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        process.stdin.write(content)
        process.stdin.close()
        assert b"Traceback" not in process.stderr.read()


# Options


def test_the_format_of_a_text_can_be_given(frame, tmp_path):
    frame.to_csv(tmp_path / "t.csv", index=False, sep=":", decimal=",", encoding="cp1250")
    options = ("--sep", ":", "--decimal", ",", "--encoding", "cp1250", "--id", "id", "--estimator", "rodeo")
    result = run("fit", tmp_path / "t.csv", "-t", "y", "--json", *options)
    assert json.loads(result.stdout)["variables"] == NUMBERS
    assert "is read with" not in result.stderr


def test_points_that_mark_thousands(tmp_path):
    path = tmp_path / "desk.csv"
    rows = [f"1,{i};{f'1.{i:03}' if i % 2 else 900 + i};{'high' if i % 2 else 'low'}" for i in range(60)]
    path.write_text("\n".join(["x;y;k", *rows]))
    shown = run("fit", path, "--target", "k").output
    assert "column 'y': points are read as marks of thousands, as in '1.001'." in shown
    assert "y low (929; others 1030)" in shown
    path.write_text("\n".join(["x;y;k", *rows, "2,5;1.5;low"]))  # a decimal point among them
    assert "thousands" not in run("fit", path, "--target", "k").output
