"""Experiments: cells of a table, a function that draws a trial of a cell, and numbers of trials."""

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
    X_test, y_test : test rows, equally many of each class.
    log_joint : (n_test, n_classes) true log densities of the test rows, in the order of the sorted classes,
        where they are known: the Bayes rule.
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
    name : on the command line and of the file of results.
    title : in the report.
    make_trial : draws a trial from a seed and the settings of a cell.
    cells : settings by name of cell, as in `paper_values`.
    paper_trials : trials of each cell in the paper, and with ``--full``.
    quick : trials of a quick run by the cost of a method: "new" (the paper's rule), "light", "heavy".
    variants : the paper's rule in other settings, which it may have meant.
    simulated : whether the true densities are known, so that there is a Bayes rule.
    tables : of `paper_values`, with means and standard deviations.
    zscore_table : of `paper_values`.
    zscore_prefixes : what precedes the name of a cell of that table in the names of ours.
    relevant : variables, counted from 1, that describe a class, by its label; for tables of z-scores.
    detailed : cells in which bandwidths at test rows and the z-scores that follow from them are kept.
    drawn : methods whose bandwidths in these cells are drawn.
    columns : its methods, if they differ from the methods of the other tables.
    inspect : further numbers of a fitted model, given the trial and the settings of the cell.
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
        """All columns of its tables; the paper's rule first, its variants next."""
        if self.columns is not None:
            return dict(self.columns)
        methods = {"local": METHODS["local"], **self.variants, **METHODS}
        if not self.simulated:
            del methods["bayes"]
        return methods

    def tasks(self, trials: int | None, methods: tuple[str, ...] | None) -> Iterator[Task]:
        """All lines of a run; `trials` None means as many as a quick run has."""
        for name, method in self.methods.items():
            if methods is None or name in methods:
                for cell in self.cells:
                    for trial in range(self.quick[method.cost] if trials is None else trials):
                        yield Task(cell, trial, name)


def child_seeds(seed: int, trial: int) -> tuple[int, int]:
    """Seeds of a trial's data and of its methods, from the trial's child of `SeedSequence(seed)`.

    They do not depend on the number of trials or their order. The cells of a table share them, so that cells
    which differ in one setting differ in nothing else.
    """
    data, methods = np.random.SeedSequence(seed, spawn_key=(trial,)).generate_state(2)
    return int(data), int(methods)


def sample_rows(
    groups: Mapping[Any, tuple[np.ndarray, np.ndarray]], n_train: int, n_test: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw training and test rows of each class, from two pools that may be the same."""
    train, test = [], []
    for learn, judge in groups.values():
        chosen = rng.choice(judge, n_test, replace=False)
        test.append(chosen)
        train.append(rng.choice(np.setdiff1d(learn, chosen), n_train, replace=False))
    return np.concatenate(train), np.concatenate(test)


def split_by_row(y: np.ndarray, n_train: int, n_test: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Disjoint rows, `n_train` and `n_test` of each class."""
    pools = {label: (np.flatnonzero(y == label),) * 2 for label in np.unique(y)}
    return sample_rows(pools, n_train, n_test, np.random.default_rng(seed))
