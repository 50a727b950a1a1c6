"""Runs the examples of pages and writes their output below them: python docs/outputs.py [PAGE ...]

A block of Python or of shell commands is an example. A block of text right below it is its output. The tests
run all examples of a page, from top to bottom, and compare the output; this script replaces it.
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *(page for folder in (DOCS, DOCS / "guide", DOCS / "appendix") for page in sorted(folder.glob("*.md"))),
]
EXAMPLE = re.compile(
    r"^```(?P<language>python|sh|console)\n(?P<code>.*?)^```(?:\n\n```text\n(?P<output>.*?)^```)?",
    re.MULTILINE | re.DOTALL,
)
# Programs that install, build or take too long; other tests run them.
OTHER_PROGRAMS = {"pip", "make", "cd", "python"}
TABLES = ("penguins.csv", "new_penguins.csv")


@dataclass
class Example:
    """A block of code on a page and the output below it."""

    language: str
    code: str
    output: str | None  # None if the page shows none
    span: tuple[int, int]  # of the output in the text of the page


def examples(page: Path) -> list[Example]:
    """All examples of a page, from top to bottom."""
    return [
        Example(match["language"], match["code"], match["output"], match.span("output"))
        for match in EXAMPLE.finditer(page.read_text(encoding="utf-8"))
    ]


def has_output(page: Path) -> Iterator[bool]:
    """Whether the page shows the output, for each example."""
    return (example.output is not None for example in examples(page))


def run(page: Path) -> Iterator[tuple[Example, str]]:
    """Run a page in the current folder, as one program; yield each example and its output."""
    names: dict[str, object] = {"__name__": "__main__"}
    if any(example.language != "python" for example in examples(page)):
        write_penguins()
    for example in examples(page):
        if example.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(example.code, str(page), "exec"), names)
            yield example, printed.getvalue()
        else:
            yield example, "".join(run_command(line) for line in commands(example.code))


def commands(code: str) -> list[list[str]]:
    """The commands of corral in a block, as lists of words."""
    lines = code.replace("\\\n", " ").splitlines()
    words = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]
    return [line for line in words if line and line[0] not in OTHER_PROGRAMS]


def run_command(words: list[str]) -> str:
    """Run a command of corral; `corral demo` takes long and has a test of its own."""
    from typer.testing import CliRunner

    from corral.cli import app

    program, *arguments = words
    if program != "corral":
        raise ValueError(f"{program} is not a command of corral: {shlex.join(words)}")
    if arguments[0] == "demo":
        return ""
    result = CliRunner().invoke(app, arguments)
    if result.exit_code:
        raise ValueError(f"{shlex.join(words)} failed: {result.output} {result.exception}")
    return result.stdout


def write_penguins() -> None:
    """Write the tables of penguins that `corral demo` writes."""
    from corral.cli.demo import penguins

    for name, table in zip(TABLES, penguins(), strict=True):
        table.to_csv(name, index=False)


def refresh(page: Path) -> None:
    """Replace the output on a page by the output of its examples."""
    text = page.read_text(encoding="utf-8")
    replaced = [(example.span, printed) for example, printed in run(page) if example.output is not None]
    for (start, end), printed in reversed(replaced):
        lines = "\n".join(line.rstrip() for line in printed.rstrip().splitlines())
        text = text[:start] + lines + "\n" + text[end:]
    page.write_text(text, encoding="utf-8")


def main() -> None:
    import matplotlib as mpl

    mpl.use("agg")
    pages = [Path(name).resolve() for name in sys.argv[1:]]
    for page in pages or [page for page in PAGES if any(has_output(page))]:
        with tempfile.TemporaryDirectory() as scratch:
            os.chdir(scratch)
            refresh(page)
        print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
