"""Error rates of novelty and prediction sets: few rows, many columns, long tails, missing values.

Training tables and new rows come from the same distribution, so that a share `level` of the new rows may be
novel, and prediction sets must hold the label as often as asked. Columns are independent; the second of two
classes differs in three of them. Targets are for the mean over training tables of each design. With n rows
in all, a row can be novel at 0.01 only if it is less typical than every training row, which has the
probability 1 / (n + 1): 0.0196 for 25 rows per class.

192 designs with 30 tables each take hours: `--trials FILE` keeps each table, so that a run can be stopped and
resumed, and `CORRAL_DESIGNS` chooses designs by a part of their names, such as "25 rows".
"""

import os
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._measure import Figure, Options
from benchmarks._trials import Trials
from corral import CorralClassifier

_ROWS = (25, 40, 100, 300)
_COLUMNS = (10, 20, 100, 500)
_MISSING = (0.0, 0.1)
_NEW_ROWS = 150
_LEVELS = (0.05, 0.01)
_COVERAGES = (0.9, 0.95)

Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


class Columns(NamedTuple):
    """A distribution of columns, and how the second class differs in some of them."""

    draw: Draw
    other: Callable[[np.random.Generator, np.ndarray], np.ndarray]


def _shifted(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return x + 1.0


def _doubled(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return 2.0 * x


def _counted(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return x + rng.poisson(0.7, size=x.shape)


_KINDS = {
    "normal": Columns(lambda rng, shape: rng.normal(size=shape), _shifted),
    "lognormal 1": Columns(lambda rng, shape: np.exp(rng.normal(size=shape)), _doubled),
    "lognormal 1.5": Columns(lambda rng, shape: np.exp(1.5 * rng.normal(size=shape)), _doubled),
    "t(2)": Columns(lambda rng, shape: rng.standard_t(2, size=shape), _shifted),
    "Cauchy": Columns(lambda rng, shape: rng.standard_cauchy(size=shape), _shifted),
    "Poisson 0.5": Columns(lambda rng, shape: rng.poisson(0.5, size=shape).astype(float), _counted),
}


class Design(NamedTuple):
    """Two classes of so many rows and columns, with a share of values missing."""

    kind: str
    rows: int
    columns: int
    missing: float

    @property
    def name(self) -> str:
        """What it is called in the table."""
        gaps = f", {self.missing:.0%} missing" if self.missing else ""
        return f"{self.kind}, {self.rows} rows x {self.columns} columns{gaps}"

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw n rows of each class."""
        kind = _KINDS[self.kind]
        X = kind.draw(rng, (2 * n, self.columns))
        X[n:, :3] = kind.other(rng, X[n:, :3])
        if self.missing:
            X[rng.random(X.shape) < self.missing] = np.nan
        return X, np.repeat([0, 1], n)


def designs() -> Iterator[Design]:
    """All designs, those of few cells first."""
    chosen = os.environ.get("CORRAL_DESIGNS", "")
    every = (Design(*each) for each in product(_KINDS, _ROWS, _COLUMNS, _MISSING))
    for design in sorted(every, key=lambda design: design.rows * design.columns):
        if chosen in design.name:
            yield design


def run(options: Options) -> Iterator[Figure]:
    """One line per design and rate that is outside its target, and the extremes over all designs."""
    rates: dict[str, np.ndarray] = {}
    trials = Trials(options.trials)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for design in designs():
            calls = {seed: partial(_trial, design, seed) for seed in range(max(options.seeds, 2))}
            found = [
                trials.measure(design.name, design.rows, seed, "own", call) for seed, call in calls.items()
            ]
            tables = np.array([trial["rates"] for trial in found])
            rates[design.name] = tables.mean(axis=0)
            errors = tables.std(axis=0, ddof=1) / np.sqrt(len(tables))
            shown = ", ".join(
                f"{rate:.3f} ({error:.3f})" for rate, error in zip(rates[design.name], errors, strict=True)
            )
            detail = f"novel at 0.05 and 0.01, coverage of 0.9 and 0.95 (standard errors): {shown}"
            yield Figure(design.name, rates[design.name][0], digits=3, detail=detail)
    every, names = np.array(list(rates.values())), list(rates)
    for k, (what, low, high) in enumerate(
        (
            (f"novel at {_LEVELS[0]}", 0.03, 0.07),
            (f"novel at {_LEVELS[1]}", -np.inf, 0.02),
            (f"coverage of sets at {_COVERAGES[0]}", _COVERAGES[0] - 0.02, np.inf),
            (f"coverage of sets at {_COVERAGES[1]}", _COVERAGES[1] - 0.02, np.inf),
        )
    ):
        n_met = int(((every[:, k] >= low) & (every[:, k] <= high)).sum())
        lowest, highest = int(every[:, k].argmin()), int(every[:, k].argmax())
        detail = f"{n_met} of {len(names)} designs within the target"
        yield Figure(f"{what}, mean over designs", every[:, k].mean(), low, high, digits=3, detail=detail)
        yield Figure("  lowest of all designs", every[lowest, k], low, digits=3, detail=names[lowest])
        yield Figure(
            "  highest of all designs", every[highest, k], high=high, digits=3, detail=names[highest]
        )


def _trial(design: Design, seed: int) -> dict[str, list[float]]:
    """Rates of one training table: novel at both levels, and coverage of sets at both coverages."""
    numbers = [design.rows, design.columns, int(100 * design.missing), *map(ord, design.kind)]
    rng = np.random.default_rng([seed, *numbers])
    X, y = design.draw(design.rows, rng)
    X_new, y_new = design.draw(_NEW_ROWS, rng)
    model = CorralClassifier(n_jobs=1, random_state=seed).fit(X, y)
    rows = np.arange(y_new.size)
    novel = [float(model.is_novel(X_new, level).mean()) for level in _LEVELS]
    held = [float(model.predict_set(X_new, c)[rows, y_new].mean()) for c in _COVERAGES]
    return {"rates": [*novel, *held]}
