"""Files of users: which can be read, and how one is replaced, whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# What commands call their standard input and output.
STANDARD_STREAM = Path("-")

# A file that is being written, or was when its writer died. No other program is likely to name one so.
_PART = re.compile(r"\.corral\.[0-9a-f]{16}\.part")


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
    target = followed(path)
    if target.is_symlink() or (target.exists() and not target.is_file()):
        raise ValueError(f"{path} is not a file that can be replaced.")
    _check_folder(target)
    return Path(path)


def check_different(*paths: Path | None) -> None:
    """Refuse to write a file that is read, or written twice; the standard streams are no files."""
    given = [path for path in paths if path not in (None, STANDARD_STREAM)]
    for i, path in enumerate(given):
        if path.resolve() in [other.resolve() for other in given[:i]]:
            raise ValueError(f"{path} is named twice: every file needs a name of its own.")


def followed(path: str | os.PathLike[str]) -> Path:
    """The file that a link leads to in the end, or the path itself where there is no link."""
    file = Path(path)
    return Path(os.path.realpath(file)) if file.is_symlink() else file


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file to write to, which takes the place of `path` when all went well, and is gone otherwise.

    A link stays, and what it leads to is replaced. The new file may be read by those who may read the old
    one. Files that killed writers have left in its folder are removed.
    """
    target = followed(check_replaceable(path))
    remove_abandoned(target.parent)
    with naming(path, target), replacing_itself(target) as part:
        yield part


@contextmanager
def naming(path: str | os.PathLike[str], *hidden: Path) -> Iterator[None]:
    """Let an error of the system name `path` where it names no file, or one that people do not know.

    Those are files that are being written, the `hidden` ones, and all that is in folders of these.
    """
    try:
        yield
    except BrokenPipeError:  # no error of a file
        raise
    except OSError as error:
        if error.errno is not None and _is_hidden(error.filename, hidden):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def _is_hidden(name: object, hidden: tuple[Path, ...]) -> bool:
    if name is None:
        return True
    file = Path(str(name))
    return _PART.fullmatch(file.name) is not None or not {file, *file.parents}.isdisjoint(hidden)


@contextmanager
def replacing_itself(path: Path) -> Iterator[Path]:
    """The same as `replacing`, but a link is replaced by the file."""
    _check_folder(path)
    with naming(path), _living_part(path) as part:
        yield part
        with part.open("r+b") as written:
            os.fsync(written.fileno())  # or a power cut could leave the new name on an empty file
        _keep_access(part, path)
        part.replace(path)


def _check_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to.")


@contextmanager
def _living_part(path: Path) -> Iterator[Path]:
    """An empty file beside `path`, locked while its writer lives, and gone afterwards."""
    # One that replaces a file gets its mode in the end, and nobody else may look at it until then.
    mode = 0o666 if _old_file(path) is None else 0o600
    while True:
        part = path.with_name(f".corral.{secrets.token_hex(8)}.part")
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        lock(descriptor, wait=True)
        if os.fstat(descriptor).st_nlink:
            break
        os.close(descriptor)  # before it was locked, another process took its writer for dead
    if sys.platform == "win32":
        os.close(descriptor)  # open files cannot be renamed there
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)
        if sys.platform != "win32":
            os.close(descriptor)


def remove_abandoned(folder: Path) -> None:
    """Remove files that were being written in a folder when their writers died."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _PART.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(part: Path) -> None:
    # Where there are no locks nobody can tell, and it stays.
    with suppress(OSError):
        descriptor = os.open(part, os.O_RDWR)
        try:
            if lock(descriptor, wait=False):
                part.unlink()
        finally:
            os.close(descriptor)


def lock(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed, by a kill at the latest; false where there are no such locks.

    Raises `BlockingIOError` if it is locked and must not wait. Windows and some network drives have no locks.
    """
    if sys.platform == "win32":
        return False

    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


def _old_file(path: Path) -> os.stat_result | None:
    """What is known of the file that is to be replaced, if there is one."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _keep_access(part: Path, path: Path) -> None:
    """Let those read the new file who may read the old one, and nobody else."""
    old = _old_file(path)
    if old is None or sys.platform == "win32":
        return
    mode = stat.S_IMODE(old.st_mode) & 0o777  # nobody runs the new file as its owner
    try:
        os.chown(part, old.st_uid if os.geteuid() == 0 else -1, old.st_gid)
    except OSError:
        mode &= ~stat.S_IRWXG  # meant for a group that we are not in
    part.chmod(mode)
