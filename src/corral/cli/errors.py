"""Errors and notes of commands: one sentence on the standard error stream."""

from __future__ import annotations

import json
import warnings
from typing import Any, Protocol, runtime_checkable

import typer
from typer.core import TyperGroup

from corral.cli.text import visible

# Code of the exit for a command line, table or model that is not right; Typer's own for the first of these.
USER_ERROR = 2

_ORDER = ("check", "fit", "predict", "explain", "report", "info", "sample-size", "demo")


@runtime_checkable
class _UsageError(Protocol):
    """What Typer raises for a command line that is not right; it publishes some kinds of it, but not all."""

    exit_code: int

    def format_message(self) -> str:
        """What is not right, for people."""
        ...


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
            if help_is_the_answer or not isinstance(error, _UsageError):
                raise
            _say("error", _sentence(error), as_json=ctx.meta["json"])
            raise typer.Exit(USER_ERROR) from None
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
        raise typer.Exit(USER_ERROR)


def _is_told(error: Exception) -> bool:
    """Whether an error is the user's to mend; all others are ours and end with a traceback."""
    if isinstance(error, BrokenPipeError):  # whoever reads the answer has had enough
        return False
    if isinstance(error, ImportError):  # of an extra that is missing, not of a part of corral
        return not (error.name or "").startswith("corral")
    return isinstance(error, MemoryError | OSError | ValueError | _UsageError)


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
    if isinstance(error, _UsageError):
        context = getattr(error, "ctx", None)
        said = error.format_message().removesuffix(".")
        return f"{said}." if context is None else f"{said}: see '{context.command_path} --help'."
    return str(error) or f"{type(error).__name__}."
