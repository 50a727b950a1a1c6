"""What a first user waits for: the import, a command, and the first call with and without compiled code.

Every measurement is a fresh process. Compiled code goes to a folder that is empty the first time.
"""

import math
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks._measure import Figure, Options, fresh_python, seconds
from corral import RodeoClassifier, save_model
from corral.datasets import load_penguins

_IMPORT = """
import json, time
wall, cpu = time.perf_counter(), time.process_time()
{statement}
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))
"""

_COMPILED_AT_IMPORT = """
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    import corral.datasets
    from corral import *
print([len(recorder.buffer)])
"""

_COMMAND = """
import io, json, time
from contextlib import redirect_stderr, redirect_stdout
wall, cpu = time.perf_counter(), time.process_time()
with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
    from corral.cli import app
    try:
        app({arguments!r})
    except SystemExit:
        pass
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))
"""

_FIRST_CALL = """
import json, time
import numpy as np
from corral import RodeoClassifier
rng = np.random.default_rng(0)
X = np.hstack([rng.normal(0.5, 0.05, (60, 1)), rng.random((60, 3))])
y = np.repeat([0, 1], 30)
wall, cpu = time.perf_counter(), time.process_time()
RodeoClassifier({settings}).fit(X, y).predict(X)
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))
"""

_FIRST_POOL = """
import json, time
from sklearn.datasets import load_iris
from corral import CorralClassifier
X, y = load_iris(return_X_y=True)
wall, cpu = time.perf_counter(), time.process_time()
model = CorralClassifier(random_state=0).fit(X, y)
model.predict_proba(X)
model.explain(X[:5])
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))
"""


def run(options: Options) -> Iterator[Figure]:
    """Import times in turn, then first calls."""
    imports = {
        "corral": "from corral import *",  # alone, "import corral" loads nothing
        "sklearn": "import sklearn",
        "peer": "import sklearn.neighbors, sklearn.naive_bayes",
    }
    runs: dict[str, list[list[float]]] = {name: [] for name in imports}
    for _ in range(options.repeats + 1):
        for name, statement in imports.items():
            runs[name].append(fresh_python(_IMPORT.format(statement=statement)))
    for found in runs.values():
        del found[0]  # it has filled the system's file cache
    yield _more("import corral, more than import sklearn", runs["corral"], runs["sklearn"], high=1.5)
    yield _more("import corral, more than sklearn's neighbours and Bayes", runs["corral"], runs["peer"])
    with tempfile.TemporaryDirectory() as empty:
        bare = {
            name: [
                fresh_python(_IMPORT.format(statement=imports[name]), PYTHONPYCACHEPREFIX=f"{empty}/{name}")
            ]
            for name in ("corral", "sklearn")
        }
    yield _more("the same, Python files not yet compiled", bare["corral"], bare["sklearn"])
    compiled = fresh_python(_COMPILED_AT_IMPORT)[0]
    yield Figure("functions compiled by numba at import", compiled, high=0.0, digits=0)

    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "m.corral")
        save_model(RodeoClassifier().fit([[0.0], [1.0], [0.0], [1.0]], [0, 1, 0, 1]), model)
        table = Path(folder, "penguins.csv")
        X, y = load_penguins(return_X_y=True)
        X.assign(species=y).to_csv(table, index=False)
        fit = ["fit", str(table), "--target", "species"]
        commands = {
            "corral --help": (["--help"], 0.5),
            "corral fit, without a table": (["fit"], 0.5),
            "corral info, of a small model": (["info", str(model)], math.inf),
            "corral fit, of penguins": (fit, 6.0),
            "corral fit, of penguins, with a report": ([*fit, "--report", f"{folder}/p.html"], math.inf),
        }
        for name, (arguments, high) in commands.items():
            found = [fresh_python(_COMMAND.format(arguments=arguments)) for _ in range(options.repeats)]
            wall, detail = _median(found)
            yield Figure(name, wall, high=high, unit=" s", detail=detail)

    first_calls = {
        f"first call, {{}}, {update}": (_FIRST_CALL.format(settings=f"update={update!r}"), 5.0)
        for update in ("simultaneous", "sequential")
    }
    first_calls["pool of iris and explanation, {}"] = (_FIRST_POOL, 8.0)
    for title, (code, limit) in first_calls.items():
        cold, warm = [], []
        for _ in range(min(options.repeats, 3)):
            with tempfile.TemporaryDirectory() as empty:
                cold.append(fresh_python(code, NUMBA_CACHE_DIR=empty))
                warm.append(fresh_python(code, NUMBA_CACHE_DIR=empty))
        for state, found, high in (("cold", cold, limit), ("code on the disk", warm, math.inf)):
            wall, detail = _median(found)
            yield Figure(title.format(state), wall, high=high, unit=" s", detail=detail)


def _more(what: str, runs: list[list[float]], peers: list[list[float]], high: float = math.inf) -> Figure:
    (own, detail), (other, other_detail) = _median(runs), _median(peers)
    detail = f"{seconds(own)} ({detail}) against {seconds(other)} ({other_detail})"
    return Figure(what, own - other, high=high, unit=" s", detail=detail)


def _median(runs: list[list[float]]) -> tuple[float, str]:
    """Median wall time, and what tells whether a busy machine has lengthened it."""
    walls, cpus = zip(*runs, strict=True)
    least, cpu = seconds(min(walls)), seconds(statistics.median(cpus))
    return statistics.median(walls), f"median of {len(walls)}, least {least}, processor {cpu}"
