"""`corral predict`: rows per second and peak memory with 1,000,000 rows, and the time of missing values.

Large table: the model has 5 classes of 200 rows, 20 variables and class bandwidths. The command uses one
thread in a fresh process, so the peak memory includes Python, the libraries, the model and the chunks of the
table.

Missing values: training tables have 1,000 rows of four classes in 30 columns, with and without 5% missing
values. In the new rows, values are missing at random, so nearly every row has a different set of missing
columns. The figure is the processor time of the command, divided by the time for a table without missing
values.

Text columns: time of encoding 1,000,000 cells as numbers in `fit` and in `predict`, relative to
OrdinalEncoder of scikit-learn.
"""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
from sklearn.base import BaseEstimator
from sklearn.preprocessing import OrdinalEncoder

from benchmarks._measure import Figure, Options, output_of_python, peak, ratio, seconds, time_alternately
from corral import RodeoClassifier, save_model
from corral.datasets import make_shifted_groups
from corral.estimators.tables import read_table

_ROWS, _VARIABLES, _PART = 1_000_000, 20, 100_000
_COLUMNS, _TRAINING_ROWS = 30, 1000

# Number of new rows, share of missing values, and target of the ratio.
_CASES = ((600, 0.05, 3.0), (100_000, 0.3, 10.0))


def run(options: Options) -> Iterator[Figure]:
    """Yield figures of the large table, then of missing values and text."""
    del options
    yield from _large_table()
    yield from _missing_values()
    yield from _text_cells()


def _large_table() -> Iterator[Figure]:
    """Write the model and the table, and run the command once in a fresh process."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        model, table, out = (Path(folder, name) for name in ("m.corral", "t.csv", "o.csv"))
        save_model(RodeoClassifier(bandwidth="class").fit(*_draw(200, rng)), model)
        for first in range(0, _ROWS, _PART):
            part, _ = _draw(_PART // 5, rng)
            part.insert(0, "id", np.arange(first, first + _PART))
            part.to_csv(table, index=False, mode="a", header=first == 0)
        command = ["predict", str(model), str(table), "--id", "id", "--out", str(out), "--json"]
        output = output_of_python(f"from benchmarks.predict import run_command; run_command({command!r})")
        size = table.stat().st_size / 1e6
    summary, _, memory = output.rpartition("\n\n")
    numbers = json.loads(summary)
    if numbers["rows"] != _ROWS:
        raise ValueError(f"{numbers['rows']} rows were predicted instead of {_ROWS}")
    detail = f"{seconds(numbers['seconds'])}, CSV of {size:.0f} MB to CSV"
    yield Figure("rows per second", _ROWS / numbers["seconds"], digits=0, detail=detail)
    yield Figure("peak memory", float(memory), high=500.0, unit=" MB", digits=0)


def _draw(n_per_class: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    X, y = make_shifted_groups(n_per_class, random_state=int(rng.integers(2**31)))
    noise = rng.uniform(size=(len(X), _VARIABLES - X.shape[1]))
    return pd.DataFrame(np.hstack([X, noise])).add_prefix("x"), y


def run_command(command: list[str]) -> None:
    """Run a command in this process, and print the peak memory in MB below the output."""
    from corral.cli import app

    app(command, standalone_mode=False)
    print(f"\n{peak()}")


def _missing_values() -> Iterator[Figure]:
    """Yield figures for both numbers of new rows and both training tables."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        table, model, new, out = (Path(folder, name) for name in ("t.csv", "m.corral", "n.csv", "o.csv"))
        for trained in (0.0, 0.05):
            _table(_TRAINING_ROWS, trained, rng, labelled=True).to_csv(table, index=False)
            _processor_seconds("fit", table, "--target", "label", "--model", model)
            for n, share, target in _CASES:
                spent = {}
                for missing in (0.0, share):
                    _table(n, missing, rng, labelled=False).to_csv(new, index=False)
                    spent[missing] = _processor_seconds("predict", model, new, "--out", out)
                without = _processor_seconds("predict", model, new, "--out", out, "--no-typicality")
                detail = f"{spent[share]:.1f} s and {spent[0.0]:.1f} s, {without:.1f} s with "
                detail += f"--no-typicality; {n / spent[share]:.0f} rows per second"
                what = f"time of {n} rows, {share:.0%} / 0% missing; {trained:.0%} in training"
                yield Figure(what, spent[share] / spent[0.0], high=target, detail=detail)


def _table(n: int, missing: float, rng: np.random.Generator, *, labelled: bool) -> pd.DataFrame:
    X, y = rng.normal(size=(n, _COLUMNS)), np.arange(n) % 4
    X[y == 1] += 0.5
    X[rng.random(X.shape) < missing] = np.nan
    frame = pd.DataFrame(X).add_prefix("x")
    return frame.assign(label=y) if labelled else frame


def _processor_seconds(*command: object) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = "from corral.cli import main; main()"
    arguments = [sys.executable, "-c", code, *map(str, command), "--quiet"]
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _text_cells() -> Iterator[Figure]:
    """Yield times of reading text columns of several libraries."""
    categories = np.array([f"category {k}" for k in range(30)], dtype=object)
    cells = categories[np.random.default_rng(0).integers(0, 30, size=(100_000, 10))]
    frame = pd.DataFrame(cells).rename(columns=str).astype("str")
    kinds = {"str": frame, "category": frame.astype("category"), "polars": pl.from_pandas(frame)}
    for kind, X in kinds.items():
        estimator = BaseEstimator()
        calls = {
            "fit": partial(read_table, estimator, X, reset=True),
            "predict": partial(read_table, estimator, X, reset=False),
            "rival": partial(OrdinalEncoder().fit_transform, X),
        }
        times = time_alternately(calls, 3)
        for name in ("fit", "predict"):
            what = f"time of text cells, {name}, {kind} / OrdinalEncoder"
            yield ratio(what, times[name], times["rival"], high=1.0)
