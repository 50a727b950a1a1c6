"""HTML of tables and paragraphs for notebooks; all texts are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Make a table with a header row and one row for each sequence of cells."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_lines(lines: Iterable[str]) -> str:
    """Make a paragraph of each line of text."""
    return "".join(f"<p>{escape(line.strip())}</p>" for line in lines)
