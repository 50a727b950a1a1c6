"""`corral predict` of tables with missing values: time over that of the same table without any.

Training tables have 1,000 rows of four classes in 30 columns, without missing values and with 5 % of them. A
fresh process runs each command, and its processor time counts. New rows lack values at random, so that nearly
every row lacks another combination of columns.
"""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._measure import Figure, Options

_COLUMNS, _TRAINING_ROWS = 30, 1000
_CASES = ((600, 0.05, 3.0), (100_000, 0.3, 10.0))


def run(options: Options) -> Iterator[Figure]:
    """Both sizes, for both training tables, and what typicality costs."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        for trained in (0.0, 0.05):
            table, model = Path(folder, "training.csv"), Path(folder, "model.corral")
            _table(_TRAINING_ROWS, trained, rng, labelled=True).to_csv(table, index=False)
            _processor_seconds("fit", table, "--target", "label", "--model", model)
            for n, share, target in _CASES:
                spent = {}
                for missing in (0.0, share):
                    new, out = Path(folder, "new.csv"), Path(folder, "out.csv")
                    _table(n, missing, rng, labelled=False).to_csv(new, index=False)
                    spent[missing] = _processor_seconds("predict", model, new, "--out", out)
                without = _processor_seconds("predict", model, new, "--out", out, "--no-typicality")
                yield Figure(
                    f"{n} rows, {share:.0%} missing, over none; {trained:.0%} in training",
                    spent[share] / spent[0.0],
                    high=target,
                    detail=f"{spent[share]:.1f} s and {spent[0.0]:.1f} s, {without:.1f} s with "
                    f"--no-typicality; {n / spent[share]:.0f} rows per second",
                )


def _table(n: int, missing: float, rng: np.random.Generator, *, labelled: bool) -> pd.DataFrame:
    X, y = rng.normal(size=(n, _COLUMNS)), np.arange(n) % 4
    X[y == 1] += 0.5
    X[rng.random(X.shape) < missing] = np.nan
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(_COLUMNS)])
    return frame.assign(label=y) if labelled else frame


def _processor_seconds(*command: object) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", "from corral.cli import main; main()", *map(str, command), "--quiet"],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
