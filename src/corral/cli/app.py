"""The Typer program `corral`. Errors and notes are printed on the standard error stream, one line each."""

from __future__ import annotations

import json
import re
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from corral.cli.shared import visible

# Exit code for an error in the command line, a table or a model. Typer uses the same code.
_USER_ERROR = 2

_ORDER = ("check", "fit", "predict", "explain", "report", "info", "sample-size", "demo")


class Commands(TyperGroup):
    """The commands, in the order of first use. Errors are printed as one line, without a traceback."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands in the order in which `--help` shows them."""
        return sorted(super().list_commands(ctx), key=_ORDER.index)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments; --json and --quiet are read first because they decide how errors are printed."""
        ctx.meta["json"] = "--json" in args
        ctx.meta["quiet"] = "--quiet" in args or "-q" in args
        shows_help = not args
        try:
            rest: list[str] = super().parse_args(ctx, args)
        except Exception as error:
            if shows_help or not _is_usage_error(error):
                raise
            _print_line("error", _sentence(error), as_json=ctx.meta["json"])
            raise typer.Exit(_USER_ERROR) from None
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command, and print its warnings as notes at once; equal notes are printed once."""
        notes: set[str] = set()

        def print_note(message: Warning | str, *_: Any, **__: Any) -> None:
            if not ctx.meta["quiet"] and str(message) not in notes:
                notes.add(str(message))
                _print_line("note", str(message), as_json=ctx.meta["json"])

        with warnings.catch_warnings():
            warnings.showwarning = print_note
            warnings.simplefilter("ignore")
            for category in (UserWarning, RuntimeWarning):
                warnings.simplefilter("always", category)
            try:
                return super().invoke(ctx)
            except Exception as error:
                if not _is_user_error(error):
                    raise
                _print_line("error", _sentence(error), as_json=ctx.meta["json"])
        raise typer.Exit(_USER_ERROR)


def _is_usage_error(error: Exception) -> bool:
    """Whether an error is about the command line; not all classes of such errors are public in Typer."""
    return hasattr(error, "format_message")


def _is_user_error(error: Exception) -> bool:
    """Whether the user can correct the cause of an error. Any other error is a bug and has a traceback."""
    if isinstance(error, BrokenPipeError):  # the program that reads the output has ended
        return False
    if isinstance(error, ImportError):  # a missing extra, not a missing part of corral
        return not (error.name or "").startswith("corral")
    return isinstance(error, MemoryError | OSError | ValueError) or _is_usage_error(error)


def _print_line(kind: str, message: str, *, as_json: bool) -> None:
    """Print an error or a note (`kind`) on the standard error stream, as a line of text or a JSON object."""
    sentence = " ".join(line.strip() for line in message.split("\n"))
    typer.echo(json.dumps({kind: sentence}) if as_json else visible(f"{kind}: {sentence}"), err=True)


def _sentence(error: Exception) -> str:
    """Describe an error in one sentence."""
    if isinstance(error, MemoryError):
        return "there is not enough memory."
    if isinstance(error, ModuleNotFoundError):
        return f'{error.name} is not installed: pip install "corral[cli]".'
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if _is_usage_error(error):
        context, text = getattr(error, "ctx", None), _usage(error)
        return f"{text}." if context is None else f"{text}: see '{context.command_path} --help'."
    return str(error) or f"{type(error).__name__}."


def _usage(error: Any) -> str:
    """Return Typer's message about a command line, with the value in place of "Input"."""
    text: str = error.format_message().removesuffix(".")
    text = re.sub(", unable to parse .*", "", text.replace(": Value error, ", ": "))
    for fault in error.__cause__.errors() if hasattr(error.__cause__, "errors") else ():
        text = text.replace("Input should", f"{str(fault['input'])[:40]!r} should", 1)
    return text


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
    "  2    error in the command line, a table or a model; no unfinished file is left\n"
    "  130  stopped by Ctrl-C\n\n"
    "An existing file is replaced, with a note, only if it has the same kind of content, such as a model for "
    "--model. Otherwise the command ends with an error.\n\n"
    "With --json, errors and notes are JSON as well, one object per line on the standard error stream.",
)


def _print_version(is_given: bool) -> None:
    if is_given:
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
