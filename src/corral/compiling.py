"""Compilation of kernels (compiled loops) by numba, and the cache of compiled code in a folder.

A kernel is compiled when it is first called. Later processes read the compiled code from the folder, if there
is a folder that can be written.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core.caching import FunctionCache
from numba.core.sigutils import normalize_signature

# The attribute of numba's functions that holds their cache. It is private, but the cache cannot be replaced
# in another way.
_CACHE = "_cache"


class _ForgivingCache(FunctionCache):
    """Numba's cache of compiled code; a kernel is compiled again if its file cannot be read or written."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Read the code that was compiled for a signature; None if there is none."""
        try:
            overload = super().load_overload(sig, target_context)
            # Two processes that write at the same time may use one file name. Then the index lists a file
            # with the code of a different signature, which would silently read arrays in a wrong layout.
            if overload is None or overload.signature.args == normalize_signature(sig)[0]:
                return overload
            self._forget()
        except MemoryError:
            # Compilation would need more memory, and LLVM ends the process if there is none. If the reason is
            # a damaged file, the next call compiles the kernel again.
            self._forget()
            raise
        except Exception:  # a damaged file may raise anything
            self._forget()
            warnings.warn(
                f"corral compiles its kernels again, because the files in {self.cache_path} are damaged.",
                stacklevel=1,
            )
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the code that was compiled for a signature."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self._forget()
            warnings.warn(
                f"corral cannot write its compiled kernels to {self.cache_path} ({error.strerror}), so each "
                "process compiles them again; the environment variable NUMBA_CACHE_DIR sets another folder.",
                stacklevel=1,
            )

    def _forget(self) -> None:
        """Empty the index, which may list a damaged file or a file with outdated code."""
        try:
            self.flush()
        except OSError:
            self.disable()


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function with numba's njit, and cache its compiled code if a folder can be written."""

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = njit(**options)(function)
        try:
            if not config.CACHE_DIR:
                Path.home()  # raises if there is no home: numba would make a folder "~" in the current folder
            setattr(kernel, _CACHE, _ForgivingCache(function))
        except RuntimeError:  # there is no home, or numba can write to none of its folders
            # The same text at the same line for all kernels, so that Python shows only the first warning.
            warnings.warn(
                "corral finds no folder for its compiled kernels, so each process compiles them again; the "
                "environment variable NUMBA_CACHE_DIR sets a folder.",
                stacklevel=1,
            )
        return kernel

    return decorate
