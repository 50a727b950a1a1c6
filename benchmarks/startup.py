"""What a first user waits for: the import, and the first call with and without compiled code on the disk.

Every measurement is a fresh process. Compiled code goes to a folder that is empty the first time.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks._measure import Figure, Options, seconds

_IMPORT = """
import time
start = time.perf_counter()
import {modules}
print(time.perf_counter() - start)
"""

_COMPILED_AT_IMPORT = """
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    import corral, corral.datasets
print(len(recorder.buffer))
"""

_FIRST_CALL = """
import json, time
start = time.perf_counter()
from corral import RodeoClassifier
imported = time.perf_counter()
import numpy as np
X = np.random.default_rng(0).random((60, 4))
y = np.repeat([0, 1], 30)
begin = time.perf_counter()
RodeoClassifier({settings}).fit(X, y).predict(X)
print(json.dumps([imported - start, time.perf_counter() - begin]))
"""


def run(options: Options) -> Iterator[Figure]:
    """Import times in turn, then first calls."""
    imports = {
        "corral": "corral",
        "sklearn": "sklearn",
        "peer": "sklearn.neighbors, sklearn.naive_bayes",
    }
    times: dict[str, list[float]] = {name: [] for name in imports}
    for _ in range(options.repeats + 1):
        for name, modules in imports.items():
            times[name].append(float(_python(_IMPORT.format(modules=modules))))
    # The first round has filled the system's file cache.
    median = {name: statistics.median(found[1:]) for name, found in times.items()}
    own = seconds(median["corral"])
    yield _more("import corral, more than import sklearn", median, "sklearn", own, high=1.5)
    yield _more("import corral, more than sklearn's neighbours and Bayes", median, "peer", own)

    with tempfile.TemporaryDirectory() as empty:
        bare = {
            name: float(_python(_IMPORT.format(modules=modules), PYTHONPYCACHEPREFIX=f"{empty}/{name}"))
            for name, modules in imports.items()
            if name != "peer"
        }
    yield _more("the same, Python files not yet compiled, one run", bare, "sklearn", seconds(bare["corral"]))
    yield Figure(
        "functions compiled by numba at import", float(_python(_COMPILED_AT_IMPORT)), high=0.0, digits=0
    )

    for update in ("simultaneous", "sequential"):
        code = _FIRST_CALL.format(settings=f"update={update!r}")
        cold, warm = [], []
        for _ in range(min(options.repeats, 3)):
            with tempfile.TemporaryDirectory() as empty:
                cold.append(json.loads(_python(code, NUMBA_CACHE_DIR=empty)))
                warm.append(json.loads(_python(code, NUMBA_CACHE_DIR=empty)))
        detail = f"with the import {seconds(statistics.median(map(sum, cold)))}; median of {len(cold)}"
        value = statistics.median(call for _, call in cold)
        yield Figure(f"first call, cold, {update}", value, high=5.0, unit=" s", detail=detail)
        detail = f"with the import {seconds(statistics.median(map(sum, warm)))}; median of {len(warm)}"
        value = statistics.median(call for _, call in warm)
        yield Figure(f"first call, code on the disk, {update}", value, unit=" s", detail=detail)


def _more(what: str, times: dict[str, float], peer: str, own: str, high: float = float("inf")) -> Figure:
    detail = f"{own} against {seconds(times[peer])}"
    return Figure(what, times["corral"] - times[peer], high=high, unit=" s", detail=detail)


def _python(code: str, **environment: str) -> str:
    """Run code in a fresh interpreter and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent.parent,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout
