"""Compare the speed of this checkout with the speed of another checkout.

``python -m benchmarks.same_speed FOLDER`` measures this checkout and the checkout in FOLDER alternately, with
the same Python, the same libraries, one thread and warm caches. It prints processor seconds of calls and
their ratios. The last line is the time with an empty cache of compiled code.
"""

import argparse
import tempfile
from pathlib import Path

from benchmarks._measure import ROOT, fresh_python

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
times = {}
for name, (X, y) in tables.items():
    pool = CorralClassifier(random_state=0, n_jobs=1, max_rows=500 if name == "compressed" else None)
    pool.fit(X, y).predict_proba(X[:100])
    pool.explain(X[:20])
    times[name + " fit"] = least(lambda: pool.fit(X, y), 3)
    times[name + " predict"] = least(lambda: pool.predict_proba(X[:3000]), 5)
    times[name + " explain"] = least(lambda: pool.explain(X[:20]), 3)
X, y = tables["cancer"]
rodeo = RodeoClassifier(n_jobs=1).fit(X, y)
rodeo.predict(X)
times["cancer, Rodeo, predict"] = least(lambda: rodeo.predict(X), 3)
print(json.dumps(times))
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
    """Measure the processor seconds of each call in a checkout."""
    environment = {"PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    times = fresh_python(_MEASURE, **environment)
    with tempfile.TemporaryDirectory() as empty:
        return times | fresh_python(_COMPILE, **environment, NUMBA_CACHE_DIR=empty)


def main() -> None:
    """Measure both checkouts twice, alternately, and print the shorter times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.same_speed", description=__doc__)
    parser.add_argument("folder", type=Path, help="checkout before the change")
    folder = parser.parse_args().folder.resolve()
    runs = [(seconds(folder), seconds(ROOT)) for _ in range(2)]
    print(f"{'':28}{'before':>9}{'now':>9}{'ratio':>8}")
    for call in runs[0][1]:
        before, now = (min(times[call] for times in each) for each in zip(*runs, strict=True))
        print(f"{call:28}{before:9.4f}{now:9.4f}{now / before:8.2f}")


if __name__ == "__main__":
    main()
