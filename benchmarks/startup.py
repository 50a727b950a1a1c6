"""Start-up times: the import, commands, and first calls with and without a cache of compiled code.

Every measurement uses a fresh process. The cache of compiled code is a folder that is empty at the first
call.
"""

import math
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks._measure import Figure, Options, fresh_python, seconds
from corral import RodeoClassifier, save_model
from corral.datasets import load_penguins

_IMPORTS = {
    "corral": "from corral import *",  # "import corral" alone loads no estimators
    "sklearn": "import sklearn",
    "peer": "import sklearn.neighbors, sklearn.naive_bayes",
}

# Prints the wall and processor seconds of code.
_TIMED = """
import io, json, sys, time
from contextlib import redirect_stderr, redirect_stdout
{preparation}
wall, cpu = time.perf_counter(), time.process_time()
{code}
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
with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
    from corral.cli import app
    try:
        app({arguments!r})
    except SystemExit:
        pass
"""

_TWO_CLASSES = """
import numpy as np
from corral import RodeoClassifier
rng = np.random.default_rng(0)
X = np.hstack([rng.normal(0.5, 0.05, (60, 1)), rng.random((60, 3))])
y = np.repeat([0, 1], 30)
"""

_IRIS = """
from sklearn.datasets import load_iris
from corral import CorralClassifier
X, y = load_iris(return_X_y=True)
"""

_POOL = """
model = CorralClassifier(random_state=0).fit(X, y)
model.predict_proba(X)
model.explain(X[:5])
"""

Run = tuple[float, float]  # wall and processor seconds


def run(options: Options) -> Iterator[Figure]:
    """Yield import times, then times of commands, then of first calls."""
    yield from _imports(options.repeats)
    yield from _commands(options.repeats)
    yield from _first_calls(min(options.repeats, 3))


def _timed(code: str, preparation: str = "", **environment: str) -> Run:
    """Time code in a fresh process."""
    return tuple(fresh_python(_TIMED.format(code=code, preparation=preparation), **environment))


def _imports(repeats: int) -> Iterator[Figure]:
    # The first round fills the file cache of the system, and is dropped.
    rounds = [{name: _timed(code) for name, code in _IMPORTS.items()} for _ in range(repeats + 1)][1:]
    runs = {name: [times[name] for times in rounds] for name in _IMPORTS}
    yield _more("import corral minus import sklearn", runs["corral"], runs["sklearn"], high=1.5)
    yield _more("import corral minus import sklearn.neighbors and naive_bayes", runs["corral"], runs["peer"])
    with tempfile.TemporaryDirectory() as empty:
        own, peer = (
            [_timed(_IMPORTS[name], PYTHONPYCACHEPREFIX=f"{empty}/{name}")] for name in ("corral", "sklearn")
        )
    yield _more("import corral minus import sklearn, without compiled Python files", own, peer)
    compiled = fresh_python(_COMPILED_AT_IMPORT)[0]
    yield Figure("functions compiled by numba at import", compiled, high=0.0, digits=0)


def _commands(repeats: int) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        model, table = Path(folder, "m.corral"), Path(folder, "penguins.csv")
        save_model(RodeoClassifier().fit([[0.0], [1.0], [0.0], [1.0]], [0, 1, 0, 1]), model)
        X, y = load_penguins(return_X_y=True)
        X.assign(species=y).to_csv(table, index=False)
        fit = ["fit", str(table), "--target", "species"]
        for name, arguments, high in (
            ("corral --help", ["--help"], 0.5),
            ("corral fit, without a table", ["fit"], 0.5),
            ("corral info, of a small model", ["info", str(model)], math.inf),
            ("corral fit, of penguins", fit, 6.0),
            ("corral fit, of penguins, with a report", [*fit, "--report", f"{folder}/p.html"], math.inf),
        ):
            runs = [_timed(_COMMAND.format(arguments=arguments)) for _ in range(repeats)]
            yield _median_figure(name, runs, high)


def _first_calls(repeats: int) -> Iterator[Figure]:
    rodeo = "RodeoClassifier(update={!r}).fit(X, y).predict(X)"
    for title, preparation, code, limit in (
        ("first call, {}, simultaneous", _TWO_CLASSES, rodeo.format("simultaneous"), 5.0),
        ("first call, {}, sequential", _TWO_CLASSES, rodeo.format("sequential"), 5.0),
        ("pool of iris and explanation, {}", _IRIS, _POOL, 8.0),
    ):
        cold, warm = [], []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as empty:
                cold.append(_timed(code, preparation, NUMBA_CACHE_DIR=empty))
                warm.append(_timed(code, preparation, NUMBA_CACHE_DIR=empty))
        yield _median_figure(title.format("cold"), cold, limit)
        yield _median_figure(title.format("code on the disk"), warm)


def _median_figure(what: str, runs: list[Run], high: float = math.inf) -> Figure:
    wall, detail = _median(runs)
    return Figure(what, wall, high=high, unit=" s", detail=detail)


def _more(what: str, runs: list[Run], peers: list[Run], high: float = math.inf) -> Figure:
    (own, detail), (other, other_detail) = _median(runs), _median(peers)
    detail = f"{seconds(own)} ({detail}) against {seconds(other)} ({other_detail})"
    return Figure(what, own - other, high=high, unit=" s", detail=detail)


def _median(runs: list[Run]) -> tuple[float, str]:
    """Return the median wall time, and the shortest and the processor time as text."""
    walls, cpus = zip(*runs, strict=True)
    least, cpu = seconds(min(walls)), seconds(statistics.median(cpus))
    return statistics.median(walls), f"median of {len(walls)}, least {least}, processor {cpu}"
