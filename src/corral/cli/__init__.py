"""The command line: commands that read tables and models, call the library and print the results.

- ``check``, ``fit``, ``predict``, ``explain`` (with `info`), ``report``, ``sample_size``, ``demo``: commands
- ``formats``: detects the format of a table file; ``tables``: reads tables; ``writing``: writes tables
- ``columns``: selects training rows and new rows, with ``variables`` and ``labels``; ``short_rows``: a check
- ``options``: options that several commands have; ``shared``: functions that several commands use
- ``console``: prints results; ``app``: prints errors and notes

Modules that `--help` does not need are imported inside functions, so that `--help` is fast.
"""

import signal
import threading
from typing import Any

# While modules are loaded, Ctrl-C ends the program at once, without a traceback.
_IN_MAIN_THREAD = threading.current_thread() is threading.main_thread()
_interrupt = signal.signal(signal.SIGINT, signal.SIG_DFL) if _IN_MAIN_THREAD else None

try:
    import typer  # noqa: F401
except ModuleNotFoundError:
    raise SystemExit('error: the command line needs more packages: pip install "corral[cli]"') from None

from corral.cli import check, demo, explain, fit, predict, report, sample_size  # noqa: E402, F401 (they add commands)
from corral.cli.app import program as app  # noqa: E402

if _IN_MAIN_THREAD:
    signal.signal(signal.SIGINT, _interrupt)

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line. SIGTERM and SIGHUP raise an exit, so that unfinished files are removed."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), _stop)
    app()


def _stop(number: int, frame: Any) -> None:
    """Exit with the code that shells use for a process that was ended by the signal `number`."""
    raise SystemExit(128 + number)
