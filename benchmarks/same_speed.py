"""Whether a change of the code leaves every call as fast as it was.

``python -m benchmarks.same_speed FOLDER`` measures this checkout and the one in FOLDER in turn, with the same
Python and libraries, one thread and warm caches, and prints seconds of processor time and their ratio. Both
must have `CorralClassifier`. The last line is the time from an empty cache of compiled code.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Runs in each checkout; prints seconds by table and call.
_MEASURE = """
import json, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from corral import CorralClassifier, RodeoClassifier
from corral.datasets import load_penguins

def least(call, n):
    seconds = []
    for _ in range(n):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)

X, y = load_digits(return_X_y=True)
loaders = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer, "penguins": load_penguins}
tables = {name: load(return_X_y=True) for name, load in loaders.items()} | {"digits": (X[:900], y[:900])}
Z = np.random.default_rng(0).normal(size=(15_000, 6)) + (np.arange(15_000) % 3)[:, np.newaxis]
tables["compressed"] = Z, np.arange(15_000) % 3
found = {}
for name, (X, y) in tables.items():
    pool = CorralClassifier(random_state=0, n_jobs=1, max_rows=500 if name == "compressed" else None)
    pool.fit(X, y).predict_proba(X[:100])
    pool.explain(X[:20])
    found[name + " fit"] = least(lambda: pool.fit(X, y), 3)
    found[name + " predict"] = least(lambda: pool.predict_proba(X[:3000]), 5)
    found[name + " explain"] = least(lambda: pool.explain(X[:20]), 3)
X, y = tables["cancer"]
rodeo = RodeoClassifier(n_jobs=1).fit(X, y)
rodeo.predict(X)
found["cancer, Rodeo, predict"] = least(lambda: rodeo.predict(X), 3)
print(json.dumps(found))
"""

_COMPILE = """
import json, time
from sklearn.datasets import load_iris
from corral import CorralClassifier
X, y = load_iris(return_X_y=True)
start = time.process_time()
pool = CorralClassifier(random_state=0, n_jobs=1).fit(X, y)
pool.predict_proba(X)
pool.explain(X[:5])
print(json.dumps({"iris from an empty cache": time.process_time() - start}))
"""


def seconds(checkout: Path) -> dict[str, float]:
    """Seconds of each call in a checkout."""
    environment = os.environ | {"PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as empty:
        for script, more in ((_MEASURE, {}), (_COMPILE, {"NUMBA_CACHE_DIR": empty})):
            command = [sys.executable, "-c", script]
            done = subprocess.run(command, env=environment | more, check=True, capture_output=True, text=True)
            found |= json.loads(done.stdout)
    return found


def main() -> None:
    """Measure both checkouts twice, in turn, and print the smaller times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.same_speed", description=__doc__)
    parser.add_argument("folder", type=Path, help="the checkout before the change")
    checkouts = {"before": parser.parse_args().folder.resolve(), "now": Path(__file__).parents[1]}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in checkouts}
    for _ in range(2):
        for name, checkout in checkouts.items():
            runs[name].append(seconds(checkout))
    print(f"{'':28}{'before':>9}{'now':>9}{'ratio':>8}")
    for call in runs["now"][0]:
        before, now = (min(run[call] for run in runs[name]) for name in ("before", "now"))
        print(f"{call:28}{before:9.4f}{now:9.4f}{now / before:8.2f}")


if __name__ == "__main__":
    main()
