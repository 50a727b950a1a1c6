"""Rows of results in a file, one line of JSON for each: a run that was killed goes on where it stopped.

One run at a time may write to a file.
"""

import json
import os
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All rows of a file that may not exist. A kill may have cut the last line short: it does not count."""
    if not path.exists():
        return []
    *lines, _ = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines]


def append_line(path: Path, row: dict[str, Any]) -> None:
    """Add a row in the place of a line that was cut short, and return when it is on the disk."""
    line = json.dumps(row, allow_nan=False).encode() + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
