"""Helpers of all benchmarks: figures with targets, alternating timings, fresh processes, machine facts."""

import gc
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
from threadpoolctl import ThreadpoolController

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Options:
    """Options of the command line.

    Attributes
    ----------
    repeats : rounds of each timing.
    seeds : number of seeds, each of which is one trial.
    trials : file of the results of single trials, or None.
    """

    repeats: int = 7
    seeds: int = 20
    trials: Path | None = None


@dataclass(frozen=True)
class Figure:
    """One line of the printed table.

    Attributes
    ----------
    what : what was measured.
    value : measured number.
    low, high : bounds of the target; infinite if there is no target.
    unit : unit of measurement, printed after the value and after the target.
    digits : number of printed decimals.
    detail : further numbers, printed after the target.
    """

    what: str
    value: float
    low: float = -math.inf
    high: float = math.inf
    unit: str = ""
    digits: int = 2
    detail: str = ""

    @property
    def target(self) -> str:
        """Text of the target; empty if there is none."""
        low, high = f"{self.low:g}", f"{self.high:g}{self.unit}"
        if math.isinf(self.low):
            return "" if math.isinf(self.high) else f"<= {high}"
        return f">= {low}{self.unit}" if math.isinf(self.high) else f"{low} to {high}"

    @property
    def verdict(self) -> str:
        """ "met" or "MISSED", from the value before rounding; empty if there is no target."""
        if not self.target:
            return ""
        return "met" if self.low <= self.value <= self.high else "MISSED"


@dataclass(frozen=True)
class Timing:
    """Wall times and processor times of one call in seconds, one for each round."""

    wall: list[float]
    cpu: list[float]

    @property
    def best(self) -> float:
        """Shortest wall time, because other processes can only increase the time."""
        return min(self.wall)

    @property
    def best_cpu(self) -> float:
        """Shortest processor time, on which other processes have less influence."""
        return min(self.cpu)


def time_alternately(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, Timing]:
    """Time calls alternately, so that a slow period of the machine affects all calls.

    BLAS uses one thread. Every call first runs once without timing, which compiles code and fills caches.
    Calls shorter than 20 ms are repeated within a round. Each round starts with a different call, so that the
    order of the calls changes.
    """
    timings = {name: Timing([], []) for name in calls}
    names, counts = list(calls), {}
    with ThreadpoolController().limit(limits=1):
        for name, call in calls.items():
            call()
            counts[name] = math.ceil(0.02 / _timed(call, 1)[0])
        for r in range(repeats):
            for name in names[r % len(names) :] + names[: r % len(names)]:
                wall, cpu = _timed(calls[name], counts[name])
                timings[name].wall.append(wall)
                timings[name].cpu.append(cpu)
    return timings


def _timed(call: Callable[[], object], count: int) -> tuple[float, float]:
    """Measure wall and processor seconds per call, without garbage collection."""
    gc.collect()
    gc.disable()
    try:
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(count):
            call()
        return (time.perf_counter() - wall) / count, (time.process_time() - cpu) / count
    finally:
        gc.enable()


def ratio(
    what: str,
    above: Timing,
    below: Timing,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    cpu: bool = False,
) -> Figure:
    """Divide the shortest time of a call by that of another call: wall times, or processor times if `cpu`.

    Use processor times if both calls have one thread. The detail has the ratio of the other kind of times,
    and the ratios of single rounds.
    """
    by_wall, by_cpu = above.best / below.best, above.best_cpu / below.best_cpu
    if cpu:
        clock, value, other, times = "processor time", by_cpu, f"wall {by_wall:.2f}", (above.cpu, below.cpu)
    else:
        clock, value, other, times = "wall", by_wall, f"processor time {by_cpu:.2f}", (above.wall, below.wall)
    rounds = [a / b for a, b in zip(*times, strict=True)]
    detail = (
        f"{clock} {seconds(min(times[0]))} / {seconds(min(times[1]))}; rounds {min(rounds):.2f} to "
        f"{max(rounds):.2f}, median {statistics.median(rounds):.2f}; {other}"
    )
    return Figure(what, value, low, high, detail=detail)


def seconds(t: float) -> str:
    """Format a duration."""
    return f"{t:.2f} s" if t >= 1.0 else f"{1e3 * t:.3g} ms"


def listed(values: Mapping[str, float], form: str = ".3f") -> str:
    """Format names with numbers, such as "iris 0.959, wine 0.993"."""
    return ", ".join(f"{name} {value:{form}}" for name, value in values.items())


def print_table(head: str, columns: list[str], lines: Mapping[str, list[str]]) -> None:
    """Print a Markdown table, with lines of cells by the first cell of each line."""
    print(f"\n| {head} | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
    for name, cells in lines.items():
        print(f"| {name} | {' | '.join(cells)} |")


def is_installed(package: str, purpose: str) -> bool:
    """Return whether an optional package is installed; if not, print that `purpose` is not measured."""
    if find_spec(package) is not None:
        return True
    print(f"  {purpose}: not measured, because {package} is not installed")
    return False


def has_data_folder(purpose: str) -> bool:
    """Return whether CORRAL_DATA is set; if not, print that `purpose` is not measured."""
    if os.environ.get("CORRAL_DATA"):
        return True
    print(f"  {purpose}: not measured, because CORRAL_DATA is not set to a data folder")
    return False


def output_of_python(code: str, **environment: str) -> str:
    """Run code in a fresh interpreter in the root of the checkout, and return the standard output."""
    command = [sys.executable, "-c", code]
    variables = os.environ | environment
    return subprocess.run(
        command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def fresh_python(code: str, **environment: str) -> Any:
    """Run code in a fresh interpreter, and return the JSON that it prints."""
    return json.loads(output_of_python(code, **environment))


def resident() -> float:
    """Return the current memory of this process in MB (10^6 bytes)."""
    return psutil.Process().memory_info().rss / 1e6


def peak() -> float:
    """Largest memory that this process has had, in MB."""
    # On Linux, getrusage also counts what the parent had when it started this process; the status does not.
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM:"))
    import resource  # not on Windows

    size = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * size / 1e6


def machine() -> dict[str, str]:
    """Facts without which no figure can be judged."""
    cpu, cpuinfo = platform.processor() or platform.machine(), Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        cpu = next((line.split(":", 1)[1].strip() for line in lines if "model name" in line), cpu)
    packages = ("corral", "numpy", "scipy", "scikit-learn", "numba", "llvmlite", "joblib")
    blas = {
        f"{lib['internal_api']} {lib['version']} ({lib.get('architecture', '?')})"
        for lib in ThreadpoolController().info()
        if lib["user_api"] == "blas"
    }
    return {
        "processor": f"{cpu}, {os.cpu_count()} logical processors",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "packages": ", ".join(f"{package} {version(package)}" for package in packages),
        "BLAS": ", ".join(sorted(blas)),
        "load at start": " ".join(f"{load:.2f}" for load in psutil.getloadavg()) + " (1, 5, 15 minutes)",
    }
