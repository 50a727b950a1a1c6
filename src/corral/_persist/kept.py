"""Parts of a long work, kept in a hidden folder until its file is whole, so that no kill costs much.

Somebody else may have put a link where the folder goes, or files into it: links are not followed there, and
only what this program has written is removed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from corral._persist.files import followed, naming, remove_abandoned, replacing_itself

# A part of a work, and what version 0.1.0 has left if it was killed while it wrote one or the whole.
_WRITTEN_HERE = re.compile(r"[0-9a-f]{32}-\d+-\d+|\..+\.\d+\.part")


@dataclass(frozen=True)
class KeptParts:
    """The parts of one work.

    Attributes
    ----------
    file : what is to be written.
    folder : where parts are kept, beside the file or what it links to.
    work : 32 digits that tell this work from others; the name of a part begins with them.
    """

    file: Path
    folder: Path
    work: str

    @classmethod
    def of(cls, path: Path, work: str) -> KeptParts:
        """The parts of what will be in a file, described by all that they depend on."""
        target = followed(path)
        digest = hashlib.sha256(work.encode()).hexdigest()
        return cls(path, target.with_name(f".{target.name}.parts"), digest[:32])

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Remove parts of other works now, and those of this one when it is done; another run is refused.

        After an error they stay, for the next run. A `ValueError` says that none can come to its end.
        """
        with naming(self.file, self.folder), self._only_run():
            self._remove(other_works=True)
            try:
                yield
            except ValueError:
                self._remove_all()
                raise
            self._remove_all()

    def write(self, first: int, last: int, content: bytes) -> None:
        """Keep a part, whole or not at all; `read` will notice if it is damaged."""
        with replacing_itself(self._part(first, last)) as new:
            new.write_bytes(hashlib.sha256(content).digest() + content)

    def read(self, first: int, last: int) -> bytes | None:
        """A part, or nothing if it is not there or damaged."""
        part = self._part(first, last)
        if part.is_symlink() or not part.is_file():
            return None
        stored = part.read_bytes()
        size = hashlib.sha256().digest_size
        return stored[size:] if hashlib.sha256(stored[size:]).digest() == stored[:size] else None

    def _part(self, first: int, last: int) -> Path:
        return self.folder / f"{self.work}-{first}-{last}"

    @property
    def _lock(self) -> Path:
        return self.folder / "lock"

    @contextmanager
    def _only_run(self) -> Iterator[None]:
        """Make the folder, and refuse to go on while another process is in it; a killed one is not."""
        self._check_way(self.folder, is_right=self.folder.is_dir())
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self._check_way(self._lock, is_right=self._lock.is_file())
        lock = FileLock(self._lock, timeout=0, mode=0o600)
        # Where there are no locks, of two runs the first may lose what it has done and end in an error; no
        # file becomes wrong, since every one is replaced whole.
        with suppress(NotImplementedError, OSError):
            try:
                lock.acquire()
            except Timeout:
                raise ValueError(
                    f"another run is writing {self.file}: wait for its end, or write to another file."
                ) from None
        try:
            yield
        finally:
            lock.release()

    def _check_way(self, path: Path, *, is_right: bool) -> None:
        if path.is_symlink() or (path.exists() and not is_right):
            raise ValueError(
                f"{path} is in the way of what is kept until {self.file} is whole: "
                "remove it, or write to another file."
            )

    def _remove(self, *, other_works: bool = False) -> None:
        """Remove what this program has written, or of that what other works have left."""
        remove_abandoned(self.folder)
        for file in self.folder.iterdir():
            written_here = _WRITTEN_HERE.fullmatch(file.name) and file.is_file() and not file.is_symlink()
            if written_here and not (other_works and file.name.startswith(self.work)):
                file.unlink(missing_ok=True)

    def _remove_all(self) -> None:
        """Remove the folder as well, unless somebody else has put something into it."""
        with suppress(OSError):
            self._remove()
            self._lock.unlink(missing_ok=True)
            self.folder.rmdir()
