"""The program `corral`, to which commands add themselves; errors and notes are one sentence each."""

from __future__ import annotations

import json
import re
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from corral.cli.shared import visible

# Code of the exit for a command line, table or model that is not right; Typer's own for the first of these.
_USER_ERROR = 2

_ORDER = ("check", "fit", "predict", "explain", "report", "info", "sample-size", "demo")


class Commands(TyperGroup):
    """Commands in the order of a first use, whose errors are one sentence on the standard error stream."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Name the commands as `--help` shows them."""
        return sorted(super().list_commands(ctx), key=_ORDER.index)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remember how to speak, before anything can go wrong."""
        ctx.meta["json"] = "--json" in args
        ctx.meta["quiet"] = "--quiet" in args or "-q" in args
        help_is_the_answer = not args
        try:
            rest: list[str] = super().parse_args(ctx, args)
        except Exception as error:
            if help_is_the_answer or not _is_usage_error(error):
                raise
            _say("error", _sentence(error), as_json=ctx.meta["json"])
            raise typer.Exit(_USER_ERROR) from None
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what it warns of is told at once, each sentence once."""
        told: set[str] = set()

        def tell(message: Warning | str, *_: Any, **__: Any) -> None:
            if not ctx.meta["quiet"] and str(message) not in told:
                told.add(str(message))
                _say("note", str(message), as_json=ctx.meta["json"])

        with warnings.catch_warnings():
            warnings.showwarning = tell
            warnings.simplefilter("ignore")
            for category in (UserWarning, RuntimeWarning):
                warnings.simplefilter("always", category)
            try:
                return super().invoke(ctx)
            except Exception as error:
                if not _is_told(error):
                    raise
                _say("error", _sentence(error), as_json=ctx.meta["json"])
        raise typer.Exit(_USER_ERROR)


def _is_usage_error(error: Exception) -> bool:
    """Whether Typer refuses a command line; it publishes only some of the classes of such errors."""
    return hasattr(error, "format_message")


def _is_told(error: Exception) -> bool:
    """Whether an error is the user's to mend; all others are ours and end with a traceback."""
    if isinstance(error, BrokenPipeError):  # whoever reads the answer has had enough
        return False
    if isinstance(error, ImportError):  # of an extra that is missing, not of a part of corral
        return not (error.name or "").startswith("corral")
    return isinstance(error, MemoryError | OSError | ValueError) or _is_usage_error(error)


def _say(kind: str, message: str, *, as_json: bool) -> None:
    """One line on the standard error stream: words, or an object of JSON."""
    sentence = " ".join(line.strip() for line in message.split("\n"))
    typer.echo(json.dumps({kind: sentence}) if as_json else visible(f"{kind}: {sentence}"), err=True)


def _sentence(error: Exception) -> str:
    """What went wrong, for people."""
    if isinstance(error, MemoryError):
        return "there is not enough memory."
    if isinstance(error, ModuleNotFoundError):
        return f'{error.name} is not installed: pip install "corral[cli]".'
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if _is_usage_error(error):
        context, said = getattr(error, "ctx", None), _usage(error)
        return f"{said}." if context is None else f"{said}: see '{context.command_path} --help'."
    return str(error) or f"{type(error).__name__}."


def _usage(error: Any) -> str:
    """What Typer says of a command line, with the value in place of "Input" and without words of pydantic."""
    said: str = error.format_message().removesuffix(".")
    said = re.sub(", unable to parse .*", "", said.replace(": Value error, ", ": "))
    for fault in error.__cause__.errors() if hasattr(error.__cause__, "errors") else ():
        said = said.replace("Input should", f"{str(fault['input'])[:40]!r} should", 1)
    return said


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
