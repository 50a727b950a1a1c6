"""The command line, called as a user calls it."""

import json

from typer.testing import CliRunner

from corral.cli import app


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.output, result.stderr, result.exception)
    assert "Traceback" not in result.output
    return result


def notes_of(result):
    """What a command has noted on the way, asked for JSON."""
    return [json.loads(line)["note"] for line in result.stderr.splitlines()]


def answered(*arguments):
    """What a command says as JSON."""
    return json.loads(run(*arguments, "--json").stdout)


def refused(*arguments):
    """The sentence that a command ends with."""
    result = run(*arguments, code=2)
    assert result.stdout == ""
    if "--json" in arguments:
        [(kind, output)] = json.loads(result.stderr.splitlines()[-1]).items()
        assert kind == "error"
        return output
    (output,) = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert output.startswith("error: ")
    return output.removeprefix("error: ")
