"""Run trials, one line of results for each trial and method: a killed run goes on where it stopped."""

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

_warm: set[str] = set()  # labels of methods that this process has called


def read_results(folder: Path, name: str, seed: int) -> list[dict[str, Any]]:
    """The lines of one experiment with a seed."""
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
    """Measure what the results do not hold yet, and return the processor time that it took, in seconds.

    Trials run in a shuffled order: costly and cheap ones mix, so that the time left is about right. Methods
    on the same trial follow each other, so that they can share what they learn from its rows.
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
    """One line of the results: a method on a trial."""
    start = time.process_time()
    data_seed, method_seed = child_seeds(seed, task.trial)
    trial = experiment.make_trial(data_seed, **experiment.cells[task.cell])
    method = experiment.methods[task.method]
    with threadpool_limits(1), warnings.catch_warnings():
        # A class without relevant variables keeps them all; that is a result, not an error.
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
    # Processor times of the one thread that there is: other work on the machine does not count.
    start = time.process_time()
    model.fit(trial.X, trial.y)
    fitted = time.process_time()
    if hasattr(model, "predict_proba"):
        with np.errstate(divide="ignore"):
            log_proba = np.log(model.predict_proba(trial.X_test))
        numbers = _judge(trial, log_proba, model.classes_)
    else:
        numbers = _scores(trial.y_test, model.predict(trial.X_test), model.classes_)
    # The scores are counted as part of the prediction: they take less than a millisecond.
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
    """Accuracy; precision and specificity of each class against all others, averaged over the classes.

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
    """Mean bandwidths of each class over test rows assigned to it, and z-scores by two more sets of points.

    Algorithm 2 averages over training rows (`zscores_` does so, each row leaving itself out); the figures of
    the paper average over the test rows that are assigned to a class.
    """
    h = model.local_bandwidths(trial.X_test)
    label = model.predict_joint_log_proba(trial.X_test).argmax(axis=1)
    code = np.searchsorted(model.classes_, trial.y)
    own = [model.local_bandwidths(trial.X[code == y])[:, y] for y in range(model.classes_.size)]
    # A class to which no test row is assigned has no mean: the initial bandwidth stands in for it.
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
    """Z-scores over the variables of each class, as in `zscores_`; zero where all bandwidths are alike."""
    spread = means.std(axis=1, ddof=1, keepdims=True)
    alike = spread <= 1e-12
    return np.where(alike, 0.0, (means - means.mean(axis=1, keepdims=True)) / np.where(alike, 1.0, spread))


def _rounded(values: np.ndarray) -> list[list[float]]:
    return values.round(5).tolist()


def _warm_up(label: str, make: Callable[[], Any]) -> None:
    """Call a method once in this process, so that no compilation is timed."""
    if label not in _warm:
        X, y = make_shifted_groups(20, groups=(1, 2), random_state=0)
        model = make().fit(X, y)
        (model.predict_proba if hasattr(model, "predict_proba") else model.predict)(X)
        _warm.add(label)
