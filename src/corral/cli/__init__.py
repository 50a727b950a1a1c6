"""The command line: reads tables and models, calls the library, and has `console` print what it says.

Only what `--help` needs is imported here; a command imports the rest when it runs.
"""

try:
    import typer  # noqa: F401
except ModuleNotFoundError:
    raise SystemExit('error: the command line needs more packages: pip install "corral[cli]"') from None

from corral.cli import check, demo, explain, fit, predict, report, sample_size  # noqa: F401 (they add commands)
from corral.cli.app import program as app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line."""
    app()
