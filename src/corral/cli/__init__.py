"""The command line: reads tables and models, calls the library, and has `console` print what it says.

Only what `--help` needs is imported here; a command imports the rest when it runs.
"""

import signal
from typing import Any

try:
    import typer  # noqa: F401
except ModuleNotFoundError:
    raise SystemExit('error: the command line needs more packages: pip install "corral[cli]"') from None

from corral.cli import check, demo, explain, fit, predict, report, sample_size  # noqa: F401 (they add commands)
from corral.cli.app import program as app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; what ends it from outside lets it remove files that are half written."""
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows has one of them
            signal.signal(getattr(signal, name), _stop)
    app()


def _stop(number: int, frame: Any) -> None:
    """Leave as an error would, with the code that a shell gives to a process that a signal has ended."""
    raise SystemExit(128 + number)
