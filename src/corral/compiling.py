"""How a kernel is compiled: when it is first called, and later read from a folder, where there is one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core.caching import FunctionCache
from numba.core.sigutils import normalize_signature

# Where numba's functions have their cache; it has no public name, and no other way to replace it.
_CACHE = "_cache"


class _ForgivingCache(FunctionCache):
    """Compiled code in numba's folder; what cannot be read there or written is compiled anew."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Read what was compiled for a signature, None if there is nothing."""
        try:
            overload = super().load_overload(sig, target_context)
            # Two processes that write at a time may give their files one name, so that the index leads one
            # signature to the code of another, which would read arrays of another layout without a word.
            if overload is None or overload.signature.args == normalize_signature(sig)[0]:
                return overload
            self._forget()
        except MemoryError:
            # To compile it anew would take more memory, and where there is none LLVM ends the process. If a
            # damaged file is the reason, the next call compiles it anew.
            self._forget()
            raise
        except Exception:  # a damaged file may raise anything
            self._forget()
            warnings.warn(
                f"corral compiles its kernels anew, because those kept in {self.cache_path} are damaged.",
                stacklevel=1,
            )
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write what was compiled for a signature."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            self._forget()
            warnings.warn(
                f"corral cannot keep its compiled kernels in {self.cache_path} ({error.strerror}), so each "
                "process compiles them anew; the environment variable NUMBA_CACHE_DIR can name another.",
                stacklevel=1,
            )

    def _forget(self) -> None:
        """Empty the index: it may name a damaged file, or one with older code that was to be replaced."""
        try:
            self.flush()
        except OSError:
            self.disable()


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a function with numba's njit, and keep its compiled code if a folder can be written."""

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = njit(**options)(function)
        try:
            if not config.CACHE_DIR:
                Path.home()  # without a home, numba would make a folder called "~" in the current one
            setattr(kernel, _CACHE, _ForgivingCache(function))
        except RuntimeError:  # there is no home, or numba may write to none of the folders that it knows
            # The same words from the same line for all kernels: Python shows the first such warning alone.
            warnings.warn(
                "corral finds no folder where it can keep its compiled kernels, so each process compiles "
                "them anew; the environment variable NUMBA_CACHE_DIR can name one.",
                stacklevel=1,
            )
        return kernel

    return decorate
