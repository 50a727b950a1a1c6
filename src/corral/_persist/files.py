"""Files of users: which can be read, and how one is replaced, whole or not at all."""

from __future__ import annotations

import hashlib
import os
import sys
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


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file of our own, whole or not at all, whose damage `read_sealed` will notice."""
    with replacing(path) as part:
        part.write_bytes(hashlib.sha256(content).digest() + content)


def read_sealed(path: Path) -> bytes | None:
    """What `write_sealed` has written, or nothing if the file is not there or damaged."""
    try:
        stored = path.read_bytes()
    except FileNotFoundError:
        return None
    size = hashlib.sha256().digest_size
    return stored[size:] if hashlib.sha256(stored[size:]).digest() == stored[:size] else None


@contextmanager
def only_run(lock: Path, refusal: str) -> Iterator[None]:
    """Refuse to go on while another process is in here with the same file; a killed one is not."""
    # Windows and some network drives have no such locks. Of two runs there the first may lose what it has
    # done and end in an error; no file becomes wrong, since every one is replaced whole.
    if sys.platform == "win32":
        yield
        return

    import fcntl

    with lock.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(refusal) from None
        except OSError:
            pass
        yield
