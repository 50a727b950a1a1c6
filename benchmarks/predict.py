"""`corral predict` on 1,000,000 rows of 20 variables: rows per second and peak memory, one thread.

The model has 5 classes of 200 rows and class bandwidths. A fresh process runs the command, so that its peak
holds everything: Python, the libraries, the model and the chunks.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._measure import Figure, Options, seconds
from benchmarks._measure import peak as peak_memory
from corral import RodeoClassifier, save_model
from corral.datasets import make_shifted_groups

_ROWS, _VARIABLES, _PART = 1_000_000, 20, 100_000


def run(options: Options) -> Iterator[Figure]:
    """Write the model and the table, and run the command once."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        model, table, out = (Path(folder, name) for name in ("m.corral", "t.csv", "o.csv"))
        X, y = _rows(200, rng)
        save_model(RodeoClassifier(bandwidth="class").fit(X, y), model)
        for first in range(0, _ROWS, _PART):
            part, _ = _rows(_PART // 5, rng)
            part.insert(0, "id", np.arange(first, first + _PART))
            part.to_csv(table, index=False, mode="a", header=first == 0)
        command = ["predict", str(model), str(table), "--id", "id", "--out", str(out), "--json"]
        code = f"from benchmarks.predict import child; child({command!r})"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parent.parent,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        size = table.stat().st_size / 1e6
    said, _, peak = done.stdout.rpartition("\n\n")
    found = json.loads(said)
    if found["rows"] != _ROWS:
        raise ValueError(f"{found['rows']} rows were predicted instead of {_ROWS}")
    detail = f"{seconds(found['seconds'])}, CSV of {size:.0f} MB to CSV"
    yield Figure("rows per second", _ROWS / found["seconds"], digits=0, detail=detail)
    yield Figure("peak memory", float(peak), high=500.0, unit=" MB", digits=0)


def _rows(n_per_class: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    X, y = make_shifted_groups(n_per_class, random_state=int(rng.integers(2**31)))
    noise = rng.uniform(size=(len(X), _VARIABLES - X.shape[1]))
    return pd.DataFrame(np.hstack([X, noise]), columns=[f"x{j}" for j in range(_VARIABLES)]), y


def child(command: list[str]) -> None:
    """Run in the fresh process; print what the command prints, and the peak in MB."""
    from corral.cli import app

    app(command, standalone_mode=False)
    print(f"\n{peak_memory()}")
