"""Files of results with one JSON line for each result, so that a killed run can be continued.

Only one process at a time may write to a file.
"""

import json
import os
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read all complete lines of a file; the last line may be incomplete if a run was killed."""
    if not path.exists():
        return []
    *lines, _ = path.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines]


def append_line(path: Path, row: dict[str, Any]) -> None:
    """Append a line, or replace an incomplete last line; return when the line is on disk."""
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
