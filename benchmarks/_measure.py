"""What every benchmark shares: a figure with its target, alternating timings, facts about the machine."""

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
from pathlib import Path
from typing import Any

import psutil
from threadpoolctl import ThreadpoolController


@dataclass(frozen=True)
class Options:
    """What the command line asks for.

    Attributes
    ----------
    repeats : rounds of every timing.
    seeds : trials of every accuracy.
    queries : queries of the memory benchmark.
    trials : file that keeps the trials of the accuracy benchmark.
    """

    repeats: int = 7
    seeds: int = 20
    queries: int = 1000
    trials: Path | None = None


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Attributes
    ----------
    what : what was measured.
    value : the number.
    low, high : the target as bounds, where there is one.
    unit : printed behind the value and the target.
    digits : decimals to print.
    detail : what helps to judge the number.
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
        """The target in words, empty where the figure is for information."""
        low, high = f"{self.low:g}", f"{self.high:g}{self.unit}"
        if math.isinf(self.low):
            return "" if math.isinf(self.high) else f"<= {high}"
        return f">= {low}{self.unit}" if math.isinf(self.high) else f"{low} to {high}"

    @property
    def verdict(self) -> str:
        """Whether the value, unrounded, meets the target."""
        if not self.target:
            return ""
        return "met" if self.low <= self.value <= self.high else "MISSED"


@dataclass(frozen=True)
class Task:
    """A call to time, and how many threads it may use in BLAS and OpenMP."""

    call: Callable[[], object]
    threads: int = 1


@dataclass(frozen=True)
class Timing:
    """Seconds of one call, by the wall clock and by the processor time of the process, one per round."""

    wall: list[float]
    cpu: list[float]

    @property
    def best(self) -> float:
        """The least wall time: whatever else the machine does can only add to it."""
        return min(self.wall)

    @property
    def best_cpu(self) -> float:
        """The least processor time: on one thread the same, but other processes disturb it less."""
        return min(self.cpu)


def time_alternately(tasks: Mapping[str, Task], repeats: int, least: float = 0.02) -> dict[str, Timing]:
    """Time tasks in turn, round by round, so that a slow spell of the machine meets them all.

    Every task first runs once untimed, which compiles and fills caches. A call shorter than `least`
    seconds is timed several times at once. Each round starts with another task, so that none always
    runs in the wake of the same one.
    """
    controller = ThreadpoolController()
    number = {}
    for name, task in tasks.items():
        with controller.limit(limits=task.threads):
            task.call()
            start = time.perf_counter()
            task.call()
            number[name] = math.ceil(least / (time.perf_counter() - start))
    timings = {name: Timing([], []) for name in tasks}
    names = list(tasks)
    for r in range(repeats):
        for name in names[r % len(names) :] + names[: r % len(names)]:
            call, count = tasks[name].call, number[name]
            gc.collect()
            gc.disable()
            try:
                with controller.limit(limits=tasks[name].threads):
                    wall, cpu = time.perf_counter(), time.process_time()
                    for _ in range(count):
                        call()
                    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            finally:
                gc.enable()
            timings[name].wall.append(wall / count)
            timings[name].cpu.append(cpu / count)
    return timings


def ratio(
    what: str,
    above: Timing,
    below: Timing,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    cpu: bool = False,
) -> Figure:
    """Ratio of the least times of two tasks, by the wall clock or, if both have one thread, processor time.

    The detail tells how far the other clock and the single rounds agree.
    """
    clocks = {
        "processor time": (above.cpu, below.cpu, above.best_cpu, below.best_cpu),
        "wall": (above.wall, below.wall, above.best, below.best),
    }
    used, other = ("processor time", "wall") if cpu else ("wall", "processor time")
    all_a, all_b, a, b = clocks[used]
    rounds = [x / y for x, y in zip(all_a, all_b, strict=True)]
    detail = (
        f"{used} {seconds(a)} / {seconds(b)}; rounds {min(rounds):.2f} to {max(rounds):.2f}, median "
        f"{statistics.median(rounds):.2f}; {other} {clocks[other][2] / clocks[other][3]:.2f}"
    )
    return Figure(what, a / b, low, high, detail=detail)


def seconds(t: float) -> str:
    """A duration as text."""
    return f"{t:.2f} s" if t >= 1.0 else f"{1e3 * t:.3g} ms"


def fresh_python(code: str, **environment: str) -> Any:
    """Run code in a fresh interpreter and return what it prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent.parent,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def resident() -> float:
    """Memory of this process in MB (10^6 bytes)."""
    return psutil.Process().memory_info().rss / 1e6


def peak() -> float:
    """The most memory that was ever resident in this process, in MB."""
    # On Linux, getrusage also counts what the parent held when it started this process, so the kernel's
    # own record for the current program comes first.
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    import resource  # not on Windows

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def machine() -> dict[str, str]:
    """Facts without which no figure can be judged."""
    cpu = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1] for line in cpuinfo.read_text().splitlines() if "model name" in line]
        cpu = names[0].strip() if names else cpu
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
