"""The command line: it reads tables and models, calls the library and prints the results.

One module per command: `check`, `fit`, `predict`, `explain` (with `info`), `report`, `sample_size`, `demo`.
`formats` recognizes files, `tables` reads them, `variables`, `labels` and `columns` make training rows and
new rows of them; `writing` writes tables, `console` prints, `options` lists the shared options, and `app`
prints errors and notes. Only what `--help` needs is imported here; a command imports the rest when it runs.
"""

import signal
import threading
from typing import Any

# Ctrl-C while modules are loaded ends the program at once, as it would end any other, without a traceback.
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
    """Run the command line; a signal that ends it lets it remove files that are half written."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows has one of them
            signal.signal(getattr(signal, name), _stop)
    app()


def _stop(number: int, frame: Any) -> None:
    """Raise an exit with the code that a shell gives to a process that a signal has ended."""
    raise SystemExit(128 + number)
