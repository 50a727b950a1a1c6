"""Run benchmarks and print their figures, each with its target beside it."""

import argparse
import json
import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from benchmarks._measure import Options, machine

NAMES = (
    *("speed", "memory", "startup", "pool", "accuracy", "tables", "selection", "contrast", "explanations"),
    *("error_rates", "sample_size", "predict", "large", "thinning", "cluster", "sentences"),
    "look",
)
BENCHMARKS = {name: import_module(f"benchmarks.{name}") for name in NAMES}


def main() -> None:
    """Parse the command line and run what it names."""
    defaults = Options()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="benchmarks to run (default: all), or 'list'"
    )
    parser.add_argument(
        "--repeats", type=int, default=defaults.repeats, help="rounds of every timing (%(default)s)"
    )
    parser.add_argument(
        "--seeds", type=int, default=defaults.seeds, help="trials of every accuracy (%(default)s)"
    )
    parser.add_argument(
        "--queries", type=int, default=defaults.queries, help="queries for 'memory' (%(default)s)"
    )
    parser.add_argument(
        "--trials",
        type=Path,
        metavar="FILE",
        help="keep each trial of 'accuracy', 'error_rates', 'explanations' or 'tables' in a file as JSON; "
        "those it has are not repeated",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file as well")
    arguments = parser.parse_args()
    for number in ("repeats", "seeds", "queries"):
        if getattr(arguments, number) < 1:
            parser.error(f"--{number} must be at least 1, got {getattr(arguments, number)}")
    if arguments.names == ["list"]:
        for name, benchmark in BENCHMARKS.items():
            print(f"{name:12} {_title(benchmark)}")
        return
    for name in arguments.names:
        if name not in BENCHMARKS:
            parser.error(f"there is no benchmark {name!r}; there are {', '.join(BENCHMARKS)}")
    run(
        arguments.names or list(BENCHMARKS),
        Options(arguments.repeats, arguments.seeds, arguments.queries, arguments.trials),
        arguments.json,
    )


def run(names: list[str], options: Options, file: Path | None) -> None:
    """Run benchmarks, print each figure as soon as it is known, and a summary of the targets."""
    facts = machine()
    for key, value in facts.items():
        print(f"{key + ':':15}{value}")
    print(
        f"{'settings:':15}{options.repeats} rounds per timing, least time of all; "
        f"seeds 0 to {options.seeds - 1}; {options.queries} queries for memory"
    )
    print(f"\n{'figure':64} {'value':>10}  {'target':14} {'':6}  detail")
    rows = []
    for name in names:
        print(f"{name}: {_title(BENCHMARKS[name])}", flush=True)
        start = time.perf_counter()
        for figure in BENCHMARKS[name].run(options):
            value = f"{figure.value:.{figure.digits}f}{figure.unit}"
            line = f"  {figure.what:62} {value:>10}  {figure.target:14} {figure.verdict:6}  {figure.detail}"
            print(line.rstrip(), flush=True)
            rows.append(
                {"benchmark": name, **asdict(figure), "target": figure.target, "verdict": figure.verdict}
            )
        print(f"  ({time.perf_counter() - start:.0f} s)", flush=True)

    verdicts = [row["verdict"] for row in rows if row["verdict"]]
    print(f"\n{verdicts.count('met')} of {len(verdicts)} targets met")
    for row in rows:
        if row["verdict"] == "MISSED":
            print(f"  MISSED  {row['benchmark']}: {row['what']}: {row['value']:.4g}, target {row['target']}")
    if file is not None:
        # JSON has no infinity: a bound that is not there is null.
        plain = [
            {k: None if v in (float("inf"), -float("inf")) else v for k, v in row.items()} for row in rows
        ]
        file.write_text(
            json.dumps(
                {"machine": facts, "options": asdict(options), "figures": plain},
                indent=2,
                default=str,  # a path
            )
            + "\n"
        )


def _title(benchmark: object) -> str:
    return (benchmark.__doc__ or "").splitlines()[0]


if __name__ == "__main__":
    main()
