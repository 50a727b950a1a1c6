"""Regenerate the tables and figures of the paper.

`run` measures all trials that are not in the results, so an interrupted run can be continued. `report` writes
RESULTS.md, the tables and the figures from the results.
"""

import argparse
import shlex
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from experiments import anuran, digits, rates, shifted_groups, ten_groups, training_sizes, waveform
from experiments._lines import append_line
from experiments._report import machine, write_report
from experiments._run import run

MODULES = (ten_groups, shifted_groups, training_sizes, anuran, waveform, digits, rates)
EXPERIMENTS = {module.EXPERIMENT.name: module.EXPERIMENT for module in MODULES}
HERE = Path(__file__).parent


def main() -> None:
    """Parse the command line, and run the command."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the experiments and methods")
    runner = commands.add_parser("run", help="run one experiment, or all")
    runner.add_argument("name", choices=(*EXPERIMENTS, "all"), metavar="NAME", help="an experiment, or 'all'")
    size = runner.add_mutually_exclusive_group()
    size.add_argument(
        "--trials", type=_positive, help="trials of each cell and method (default: a quick run)"
    )
    size.add_argument("--full", action="store_true", help="the number of trials of the paper")
    runner.add_argument("--jobs", type=_positive, default=1, help="processes (%(default)s)")
    runner.add_argument("--methods", help="methods to run, separated by commas (default: all)")
    reporter = commands.add_parser("report", help="write RESULTS.md, the tables and the figures")
    reporter.add_argument(
        "--output", type=Path, default=HERE, metavar="FOLDER", help="folder of the output (%(default)s)"
    )
    for command in (runner, reporter):
        command.add_argument("--seed", type=int, default=0, help="seed of the trials (%(default)s)")
        command.add_argument(
            "--results",
            type=Path,
            default=HERE / "results",
            metavar="FOLDER",
            help="folder of the results (%(default)s)",
        )
    arguments = parser.parse_args()
    if arguments.command == "list":
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:15} {experiment.title}: {len(experiment.cells)} cells")
        print(f"{'methods':15} {', '.join(_methods())}")
    elif arguments.command == "report":
        write_report(EXPERIMENTS.values(), arguments.results, arguments.output, arguments.seed)
    else:
        methods = None if arguments.methods is None else tuple(arguments.methods.split(","))
        for method in methods or ():
            if method not in _methods():
                parser.error(f"there is no method {method!r}; choose from {', '.join(_methods())}")
        _run(arguments, methods)


def _run(arguments: argparse.Namespace, methods: tuple[str, ...] | None) -> None:
    start, date, spent = time.perf_counter(), datetime.now(UTC), 0.0
    for name in EXPERIMENTS if arguments.name == "all" else (arguments.name,):
        experiment = EXPERIMENTS[name]
        spent += run(
            experiment,
            arguments.results,
            seed=arguments.seed,
            trials=experiment.paper_trials if arguments.full else arguments.trials,
            methods=methods,
            jobs=arguments.jobs,
            console=Console(stderr=True),
        )
    # The report prints the commands and machines of all runs.
    entry = {
        "command": "python -m experiments " + shlex.join(sys.argv[1:]),
        "date": date.strftime("%Y-%m-%d"),
        "minutes": round((time.perf_counter() - start) / 60, 1),
        "processor_minutes": round(spent / 60, 1),
        "machine": machine(),
    }
    append_line(arguments.results / "runs.jsonl", entry)


def _methods() -> list[str]:
    return list(dict.fromkeys(name for each in EXPERIMENTS.values() for name in each.methods))


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


if __name__ == "__main__":
    main()
