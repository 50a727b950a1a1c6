"""Check paths before a command does any work, and replace a file completely or not at all."""

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
    """Return the path; raise FileNotFoundError or ValueError if it is not an existing file."""
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    if not file.is_file():
        raise ValueError(f"{path} is not a file.")
    return file


def check_replaceable(path: str | os.PathLike[str]) -> Path:
    """Return the path; raise an error if its folder is missing or it is something other than a file."""
    target = _target(path)
    if target.is_symlink() or (target.exists() and not target.is_file()):
        raise ValueError(f"{path} is not a file that can be replaced.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to write {target.name} to.")
    return Path(path)


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Return the path; raise an error if no file can be created there, tested by a temporary file."""
    target = _target(check_replaceable(path))
    with naming(path):
        probe = target.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
        os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        probe.unlink()
    return Path(path)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces `path` at the end of the block.

    If the block raises an error or is stopped by Ctrl-C, the temporary file is removed and `path` stays as it
    is. If the process is killed, the temporary file remains, under a random name. It is in the folder of
    `path`, because a file can be replaced in one step only within a file system. If `path` is a link, the
    target of the link is replaced.
    """
    target = _target(check_replaceable(path))
    temporary = target.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
    with naming(path):
        # A new file gets the permissions of the umask. A file that replaces another is private until it gets
        # the permissions of the old file below.
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
    """Put `path` into errors of the operating system that contain no file name or a temporary one."""
    try:
        yield
    except BrokenPipeError:  # the reader of the output has ended, which is no error of the file
        raise
    except OSError as error:
        is_unknown = error.filename is None or Path(str(error.filename)).name.startswith(_TEMPORARY)
        if error.errno is not None and is_unknown:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def _target(path: str | os.PathLike[str]) -> Path:
    """Return the target of a link; the path itself if it is not a link."""
    file = Path(path)
    return Path(os.path.realpath(file)) if file.is_symlink() else file


def _copy_access(old: Path, new: Path) -> None:
    """Copy owner, group and permissions of the old file to the new file; do nothing on Windows."""
    if not hasattr(os, "chown"):
        return
    access = old.stat()
    mode = stat.S_IMODE(access.st_mode) & 0o777  # without setuid and setgid
    try:
        os.chown(new, access.st_uid if os.geteuid() == 0 else -1, access.st_gid)
    except OSError:
        mode &= ~stat.S_IRWXG  # the permissions of the group were meant for another group
    new.chmod(mode)
