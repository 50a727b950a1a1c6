"""Check files before any work, and replace a file as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Prefix of the names of temporary files.
_TEMPORARY = ".corral-"


def check_readable(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that is not a file."""
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    if not file.is_file():
        raise ValueError(f"{path} is not a file.")
    return file


def check_replaceable(path: str | os.PathLike[str]) -> Path:
    """Refuse a path to which no file can be written, by what is there now."""
    target = _target(path)
    if target.is_symlink() or (target.exists() and not target.is_file()):
        raise ValueError(f"{path} is not a file that can be replaced.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} to.")
    return Path(path)


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Refuse a path where no file can be created, by creating one; called before long work."""
    target = _target(check_replaceable(path))
    with naming(path):
        probe = target.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
        os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        probe.unlink()
    return Path(path)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new file to write to, which replaces `path` at the end of the block.

    An error or Ctrl-C in the block removes the new file and leaves `path` as it is. A kill leaves the new
    file behind, under a random name. The new file is in the folder of `path`, since a file can be replaced
    in one step only within a file system. A link stays, and its target is replaced.
    """
    target = _target(check_replaceable(path))
    temporary = target.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
    with naming(path):
        # The umask decides who may read a new file. One that replaces another gets its permissions below.
        mode = 0o600 if target.exists() else 0o666
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        try:
            yield temporary
            with temporary.open("r+b") as written:
                os.fsync(written.fileno())  # otherwise a power cut could leave an empty file
            if target.exists():
                _copy_access(target, temporary)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name `path` in errors of the system that name no file or a temporary one."""
    try:
        yield
    except BrokenPipeError:  # not an error of a file
        raise
    except OSError as error:
        is_unknown = error.filename is None or Path(str(error.filename)).name.startswith(_TEMPORARY)
        if error.errno is not None and is_unknown:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def _target(path: str | os.PathLike[str]) -> Path:
    """The file that a link leads to, or the path itself where there is no link."""
    file = Path(path)
    return Path(os.path.realpath(file)) if file.is_symlink() else file


def _copy_access(old: Path, new: Path) -> None:
    """Give a new file the owner, the group and the permissions of the old one; not on Windows."""
    if not hasattr(os, "chown"):
        return
    access = old.stat()
    mode = stat.S_IMODE(access.st_mode) & 0o777  # without setuid and setgid
    try:
        os.chown(new, access.st_uid if os.geteuid() == 0 else -1, access.st_gid)
    except OSError:
        mode &= ~stat.S_IRWXG  # they are of another group
    new.chmod(mode)
