"""Files of users: which can be read, and how one is replaced, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def check_readable(path: str | os.PathLike[str]) -> Path:
    """Refuse what is not a file."""
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    if not file.is_file():
        raise ValueError(f"{path} is not a file.")
    return file


def check_replaceable(path: str | os.PathLike[str]) -> Path:
    """Refuse to write where no file can be."""
    target = Path(path)
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is not a file that can be replaced.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} to.")
    return target


def check_different(*paths: Path | None) -> None:
    """Refuse to write a file that is read, or written twice."""
    given = [path for path in paths if path is not None]
    for i, path in enumerate(given):
        if path.resolve() in [other.resolve() for other in given[:i]]:
            raise ValueError(f"{path} is named twice: every file needs a name of its own.")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file to write to, which takes the place of `path` when all went well, and is gone otherwise."""
    target = check_replaceable(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())  # or a power cut could leave the new name on an empty file
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
