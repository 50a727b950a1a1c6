"""The script that holds the vocabulary finds what it is meant to find."""

import ast
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "vocabulary"


@pytest.fixture(scope="module")
def vocabulary() -> ModuleType:
    module = ModuleType("vocabulary")
    module.__file__ = str(SCRIPT)  # the script looks for the files beside it
    exec(SourceFileLoader("vocabulary", str(SCRIPT)).get_code("vocabulary"), module.__dict__)
    return module


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("found = 1", "found"),
        ("def f(of_rows): pass", "of_rows"),
        ("self.lapse = 0.1", "lapse"),
        ("class UnitTable: pass", "UnitTable"),
        ("n_copies = 2", "n_copies"),
    ],
)
def test_forbidden_names_are_reported(source: str, name: str, vocabulary: ModuleType) -> None:
    (message,) = vocabulary.findings_in_names("src/corral/model.py", ast.parse(source))
    assert message.startswith(f"src/corral/model.py:1: name {name}: ")


def test_names_of_the_vocabulary_pass(vocabulary: ModuleType) -> None:
    source = "n_duplicates = of = 1\nclass GroupTable:\n    prior_mixing: float = 0.0\n"
    messages = list(vocabulary.findings_in_names("src/corral/model.py", ast.parse(source)))
    assert messages == ["src/corral/model.py:1: name of: use a noun that can be searched for"]


def test_forbidden_words_of_prose_are_reported(vocabulary: ModuleType) -> None:
    lines = ["Rows vote.", "`copies` is a name.", "The units of a column.", "Gaps and those of others."]
    messages = list(vocabulary.findings_in_prose("src/corral/model.py", iter(enumerate(lines, 1))))
    assert [message.split(": ")[1].split(" -> ")[0] for message in messages] == [
        "'vote'",
        "'units'",
        "'Gaps'",
        "'those of'",
    ]
    assert list(vocabulary.findings_in_prose("docs/index.md", iter([(1, "a unit of measurement")]))) == []
