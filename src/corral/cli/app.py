"""The program `corral`, to which commands add themselves."""

from __future__ import annotations

from typing import Annotated

import typer

from corral.cli.errors import Commands

program = typer.Typer(
    name="corral",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Classify the rows of a table; see which variables describe each class and why a row got its label.",
    epilog="\b\nStart with:\n  corral demo\n"
    "  corral fit penguins.csv --target species --model penguins.corral --report penguins.html\n\n"
    "\b\nExit codes:\n  0    done\n"
    "  2    the command line, a table or a model is not right; no file is left half written\n"
    "  130  stopped by Ctrl-C\n\n"
    "A file that is there is replaced, with a note, by one of its kind: a model by a model, predictions by "
    "predictions. Any other is left alone, and the command refused.\n\n"
    "With --json, errors and notes are JSON as well, one object per line on the standard error stream.",
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"corral {version('corral')}")
        raise typer.Exit


@program.callback()
def _shared(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass
