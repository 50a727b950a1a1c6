"""Run benchmarks, and print each figure with its target."""

import argparse
import json
import math
import time
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from benchmarks._measure import Options, machine

NAMES = (
    *("speed", "startup", "pool", "accuracy", "tables", "selection", "contrast", "explanations"),
    *("error_rates", "sample_size", "predict", "large", "compression", "cluster", "sentences", "look"),
)
BENCHMARKS = {name: import_module(f"benchmarks.{name}") for name in NAMES}


def main() -> None:
    """Parse the command line, and run the listed benchmarks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="benchmarks to run (default: all), or 'list'")
    add("--repeats", type=int, default=Options.repeats, help="rounds of each timing (%(default)s)")
    add(
        "--seeds",
        type=int,
        default=Options.seeds,
        help="number of seeds, each of which is one trial (%(default)s)",
    )
    add(
        "--trials",
        type=Path,
        metavar="FILE",
        help="append trials to a file of JSON lines, and skip the trials that it has",
    )
    add("--json", type=Path, metavar="FILE", help="also write the figures to a file")
    arguments = parser.parse_args()
    if min(arguments.repeats, arguments.seeds) < 1:
        parser.error("--repeats and --seeds must be at least 1")
    if arguments.names == ["list"]:
        for name in BENCHMARKS:
            print(f"{name:12} {title(name)}")
        return
    for name in arguments.names:
        if name not in BENCHMARKS:
            parser.error(f"there is no benchmark {name!r}; choose from {', '.join(BENCHMARKS)}")
    options = Options(arguments.repeats, arguments.seeds, arguments.trials)
    run(arguments.names or list(BENCHMARKS), options, arguments.json)


def run(names: list[str], options: Options, file: Path | None) -> None:
    """Run benchmarks, print each figure as soon as it is measured, and a summary of the targets."""
    facts = machine() | {
        "settings": f"{options.repeats} rounds per timing, of which the shortest is reported; "
        f"seeds 0 to {options.seeds - 1}"
    }
    for key, value in facts.items():
        print(f"{key + ':':15}{value}")
    print(f"\n{'figure':64} {'value':>10}  {'target':14} {'':6}  detail")
    rows = []
    for name in names:
        print(f"{name}: {title(name)}", flush=True)
        start = time.perf_counter()
        for figure in BENCHMARKS[name].run(options):
            value = f"{figure.value:.{figure.digits}f}{figure.unit}"
            line = f"  {figure.what:62} {value:>10}  {figure.target:14} {figure.verdict:6}  {figure.detail}"
            print(line.rstrip(), flush=True)
            summary = {"target": figure.target, "verdict": figure.verdict}
            rows.append({"benchmark": name, **asdict(figure), **summary})
        print(f"  ({time.perf_counter() - start:.0f} s)", flush=True)
    verdicts = [row["verdict"] for row in rows if row["verdict"]]
    print(f"\n{verdicts.count('met')} of {len(verdicts)} targets met")
    for row in rows:
        if row["verdict"] == "MISSED":
            print(f"  MISSED  {row['benchmark']}: {row['what']}: {row['value']:.4g}, target {row['target']}")
    if file is not None:
        # JSON has no infinity, so a missing bound is null.
        figures = [
            {key: None if value in (math.inf, -math.inf) else value for key, value in row.items()}
            for row in rows
        ]
        file.write_text(json.dumps({"machine": facts, "figures": figures}, indent=2) + "\n")


def title(name: str) -> str:
    """Return the first line of the docstring of a benchmark."""
    return BENCHMARKS[name].__doc__.splitlines()[0]


if __name__ == "__main__":
    main()
