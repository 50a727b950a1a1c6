"""Run trials, and append one line of results for each trial and method."""

import random
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from scipy.special import log_softmax
from sklearn.metrics import confusion_matrix, log_loss
from threadpoolctl import threadpool_limits

from corral import EmptySelectionWarning, RodeoClassifier
from corral.datasets import make_shifted_groups
from experiments._lines import append_line, read_lines
from experiments._trial import Experiment, Task, Trial, child_seeds

_warm: set[str] = set()  # labels of methods whose code is compiled in this process


def read_results(folder: Path, name: str, seed: int) -> list[dict[str, Any]]:
    """Read the result lines of one experiment with a seed."""
    return [row for row in read_lines(folder / f"{name}.jsonl") if row["seed"] == seed]


def run(
    experiment: Experiment,
    folder: Path,
    *,
    seed: int = 0,
    trials: int | None = None,
    methods: tuple[str, ...] | None = None,
    jobs: int = 1,
    console: Console | None = None,
) -> float:
    """Run all tasks that are not in the results, and return their processor seconds.

    Trials run in random order, which mixes slow and fast trials, so that the displayed remaining time is
    about right. The methods of a trial run one after another, so that methods can share fitted models.
    """
    results = read_results(folder, experiment.name, seed)
    done = {Task(row["cell"], row["trial"], row["method"]) for row in results}
    wanted = list(experiment.tasks(trials, methods))
    tasks = [task for task in wanted if task not in done]
    trials_left = list(dict.fromkeys((task.cell, task.trial) for task in tasks))
    random.Random(seed).shuffle(trials_left)
    place = {trial: k for k, trial in enumerate(trials_left)}
    tasks.sort(key=lambda task: place[task.cell, task.trial])
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    calls = (delayed(measure)(experiment, task, seed) for task in tasks)
    spent = 0.0
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task(experiment.name, total=len(wanted), completed=len(wanted) - len(tasks))
        for row in Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")(calls):
            append_line(folder / f"{experiment.name}.jsonl", row)
            spent += row["processor_seconds"]
            progress.advance(bar)
    return spent


def measure(experiment: Experiment, task: Task, seed: int) -> dict[str, Any]:
    """Run one method on one trial, and return a line of results."""
    start = time.process_time()
    data_seed, method_seed = child_seeds(seed, task.trial)
    trial = experiment.make_trial(data_seed, **experiment.cells[task.cell])
    method = experiment.methods[task.method]
    with threadpool_limits(1), warnings.catch_warnings():
        # If no variable of a class is relevant, all are used; that is a result, not an error.
        warnings.simplefilter("ignore", EmptySelectionWarning)
        if method.make is None:
            numbers = _judge(trial, log_softmax(trial.log_joint, axis=1), np.unique(trial.y))
        else:
            _warm_up(method.label, partial(method.make, method_seed))
            model = method.make(method_seed)
            numbers = _fit_and_judge(model, trial, detailed=task.cell in experiment.detailed)
            if experiment.inspect is not None:
                numbers |= experiment.inspect(model, trial, **experiment.cells[task.cell])
    numbers["processor_seconds"] = time.process_time() - start
    return {"cell": task.cell, "trial": task.trial, "method": task.method, "seed": seed, **numbers}


def _fit_and_judge(model: Any, trial: Trial, *, detailed: bool) -> dict[str, Any]:
    # Processor times of the single thread are not changed by other work on the machine.
    start = time.process_time()
    model.fit(trial.X, trial.y)
    fitted = time.process_time()
    if hasattr(model, "predict_proba"):
        with np.errstate(divide="ignore"):
            log_proba = np.log(model.predict_proba(trial.X_test))
        numbers = _judge(trial, log_proba, model.classes_)
    else:
        numbers = _scores(trial.y_test, model.predict(trial.X_test), model.classes_)
    # The prediction time includes the scores, which need less than a millisecond.
    numbers |= {"fit_seconds": fitted - start, "predict_seconds": time.process_time() - fitted}
    if isinstance(model, RodeoClassifier) and model.bandwidth == "local":
        numbers["zscores"] = _rounded(model.zscores_)
        if detailed:
            numbers |= _bandwidths(model, trial)
    return numbers


def _judge(trial: Trial, log_proba: np.ndarray, classes: np.ndarray) -> dict[str, Any]:
    numbers = _scores(trial.y_test, classes[log_proba.argmax(axis=1)], classes)
    return numbers | {"log_loss": float(log_loss(trial.y_test, np.exp(log_proba), labels=classes))}


def _scores(y: np.ndarray, predicted: np.ndarray, classes: np.ndarray) -> dict[str, float]:
    """Compute accuracy, and precision and specificity of each class against all others, averaged over
    classes.

    A class that is never predicted has precision 0.
    """
    confusion = confusion_matrix(y, predicted, labels=classes)
    hits = np.diag(confusion)
    claimed = confusion.sum(axis=0)
    others = confusion.sum() - confusion.sum(axis=1)
    return {
        "accuracy": float(hits.sum() / confusion.sum()),
        "precision": float(np.mean(hits / np.maximum(claimed, 1))),
        "specificity": float(np.mean(1.0 - (claimed - hits) / others)),
    }


def _bandwidths(model: RodeoClassifier, trial: Trial) -> dict[str, Any]:
    """Average bandwidths over two more sets of rows, and compute z-scores of the averages.

    `zscores_` (algorithm 2) averages over training rows, each left out. Here bandwidths are averaged over the
    test rows that are assigned to the class, as in the figures of the paper, and over training rows that are
    not left out.
    """
    h = model.local_bandwidths(trial.X_test)
    label = model.predict_joint_log_proba(trial.X_test).argmax(axis=1)
    code = np.searchsorted(model.classes_, trial.y)
    own = [model.local_bandwidths(trial.X[code == y])[:, y] for y in range(model.classes_.size)]
    # If no test row is assigned to a class, the initial bandwidth is used.
    initial = np.broadcast_to(model.initial_bandwidth_[:, np.newaxis], model.bandwidths_.shape)
    assigned = np.array(
        [h[label == y, y].mean(axis=0) if (label == y).any() else initial[y] for y in range(len(own))]
    )
    return {
        "bandwidths": _rounded(assigned),
        "zscores_assigned": _rounded(_standardise(assigned)),
        "zscores_itself": _rounded(_standardise(np.array([each.mean(axis=0) for each in own]))),
    }


def _standardise(means: np.ndarray) -> np.ndarray:
    """Standardize over the variables of each class, as in `zscores_`; zero if all bandwidths are equal."""
    spread = means.std(axis=1, ddof=1, keepdims=True)
    alike = spread <= 1e-12
    return np.where(alike, 0.0, (means - means.mean(axis=1, keepdims=True)) / np.where(alike, 1.0, spread))


def _rounded(values: np.ndarray) -> list[list[float]]:
    return values.round(5).tolist()


def _warm_up(label: str, make: Callable[[], Any]) -> None:
    """Call a method once in this process, so that times do not include compilation."""
    if label not in _warm:
        X, y = make_shifted_groups(20, groups=(1, 2), random_state=0)
        model = make().fit(X, y)
        (model.predict_proba if hasattr(model, "predict_proba") else model.predict)(X)
        _warm.add(label)
