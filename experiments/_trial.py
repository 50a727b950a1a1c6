"""Data classes of experiments, and random splits of rows.

A cell is one setting, such as a number of rows. A trial is one draw of training and test rows for a cell.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiments._methods import METHODS, Method


@dataclass(frozen=True, eq=False)
class Trial:
    """Training rows and test rows.

    Attributes
    ----------
    X, y : training rows and their classes.
    X_test, y_test : test rows and their classes, with the same number of rows of each class.
    log_joint : (n_test, n_classes) true log densities of the test rows, for the Bayes rule; None if unknown.
        Classes are sorted.
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    log_joint: np.ndarray | None = None


@dataclass(frozen=True)
class Task:
    """One line of the results: a method on a trial of a cell."""

    cell: str
    trial: int
    method: str


@dataclass(frozen=True, eq=False)
class Experiment:
    """A section of the paper.

    Attributes
    ----------
    name : name on the command line, and of the file of results.
    title : title in the report.
    make_trial : function of a seed and the settings of a cell, which draws a trial.
    cells : settings by name of the cell, as in `paper_values`.
    paper_trials : trials of each cell in the paper, and with ``--full``.
    quick : trials of a quick run by the cost of a method: "new" (the paper's rule), "light", "heavy".
    variants : other settings of the paper's rule that the paper may have used.
    simulated : whether the true densities are known, so that the Bayes rule is a method.
    tables : names of tables in `paper_values` with means and standard deviations.
    zscore_table : name of a table of z-scores in `paper_values`, or None.
    zscore_prefixes : prefixes that turn the cell names of `zscore_table` into names of `cells`.
    relevant : function of a class label, which returns its relevant variables, counted from 1.
    detailed : cells for which bandwidths at test rows and further z-scores are stored.
    drawn : methods whose bandwidths in the cells of `detailed` are drawn.
    columns : methods of this experiment, if they differ from `METHODS`.
    inspect : function of a fitted model, a trial and the settings of the cell, which returns further numbers.
    """

    name: str
    title: str
    make_trial: Callable[..., Trial]
    cells: Mapping[str, Mapping[str, Any]]
    paper_trials: int
    quick: Mapping[str, int]
    variants: Mapping[str, Method] = field(default_factory=dict)
    simulated: bool = False
    tables: tuple[str, ...] = ()
    zscore_table: str | None = None
    zscore_prefixes: tuple[str, ...] = ("",)
    relevant: Callable[[int], range] | None = None
    detailed: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ("local",)
    columns: Mapping[str, Method] | None = None
    inspect: Callable[..., dict[str, float]] | None = None

    @property
    def methods(self) -> dict[str, Method]:
        """Methods of the tables: first the paper's rule, then its variants."""
        if self.columns is not None:
            return dict(self.columns)
        methods = {"local": METHODS["local"], **self.variants, **METHODS}
        if not self.simulated:
            del methods["bayes"]
        return methods

    def tasks(self, trials: int | None, methods: tuple[str, ...] | None) -> Iterator[Task]:
        """Yield all tasks of a run; if `trials` is None, the tasks of a quick run."""
        for name, method in self.methods.items():
            if methods is None or name in methods:
                for cell in self.cells:
                    for trial in range(self.quick[method.cost] if trials is None else trials):
                        yield Task(cell, trial, name)


def child_seeds(seed: int, trial: int) -> tuple[int, int]:
    """Return the seeds of the data and of the methods of a trial.

    The seeds do not depend on the number or the order of trials. All cells have the same seeds, so that cells
    differ only in their settings.
    """
    data, methods = np.random.SeedSequence(seed, spawn_key=(trial,)).generate_state(2)
    return int(data), int(methods)


def sample_rows(
    groups: Mapping[Any, tuple[np.ndarray, np.ndarray]], n_train: int, n_test: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw disjoint training and test rows of each class from two pools, which may be equal."""
    train, test = [], []
    for learn, judge in groups.values():
        chosen = rng.choice(judge, n_test, replace=False)
        test.append(chosen)
        train.append(rng.choice(np.setdiff1d(learn, chosen), n_train, replace=False))
    return np.concatenate(train), np.concatenate(test)


def split_by_row(y: np.ndarray, n_train: int, n_test: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw disjoint rows, `n_train` and `n_test` of each class."""
    pools = {label: (np.flatnonzero(y == label),) * 2 for label in np.unique(y)}
    return sample_rows(pools, n_train, n_test, np.random.default_rng(seed))
