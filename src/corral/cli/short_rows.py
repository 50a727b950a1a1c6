"""Find rows of a text file with fewer cells than columns, as at the end of an incomplete file."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import TextIOWrapper
from itertools import islice

from corral.checking.findings import Finding
from corral.cli.formats import TableFile, reading
from corral.sentences.numbers import MOST_LISTED, counted


def short_rows(file: TableFile) -> Iterator[Finding]:
    """Yield a finding about rows with too few cells, in which the last columns would count as missing."""
    if file.kind != "text" or file.separator == " ":  # with spaces as separator, no cell can be empty
        return
    n_columns, n_rows = len(file.columns), 0
    short: dict[int, int] = {}  # number of cells of each short row
    with reading(file), file.opened() as (stream, _):
        text = TextIOWrapper(stream, encoding=file.encoding, newline="")
        lines = (cells for cells in csv.reader(text, delimiter=file.separator) if not _is_empty(cells))
        with suppress(csv.Error):  # such as a cell that is too long for csv, but not for pandas
            for cells in islice(lines, file.n_before + 1, None):
                if len(cells) < n_columns:
                    short[n_rows] = len(cells)
                n_rows += 1
        text.detach()
    if short:
        row, n_cells = next(iter(short.items()))
        end = ", the last row, as in an incomplete file" if row == n_rows - 1 else ""
        yield Finding(
            "short rows",
            f"{counted(len(short), 'row')} {'has' if len(short) == 1 else 'have'} fewer cells than there are "
            f"columns, such as row {row} ({n_cells} of {n_columns}){end}",
            "add the missing cells; otherwise the last columns of these rows count as missing",
            rows=tuple(short)[:MOST_LISTED],
        )


def _is_empty(cells: Sequence[str]) -> bool:
    """Whether a line is empty, and so is not a row of the table."""
    return len(cells) < 2 and not "".join(cells).strip()
