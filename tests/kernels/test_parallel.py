"""Tasks on threads: as many as asked for, results in order, and no task begun after an error."""

import threading
import time
from contextlib import nullcontext
from functools import partial

import joblib
import pytest

from corral.parallel import on_threads

PATIENCE = 600  # seconds, for a machine on which many other programs run


def square(number, seen):
    seen.append(threading.get_ident())
    return number**2


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 7, -1])
@pytest.mark.parametrize("n_tasks", [0, 1, 5, 100])
def test_results_are_in_the_order_of_the_tasks(n_tasks, n_jobs):
    seen = []
    tasks = (partial(square, number, seen) for number in range(n_tasks))
    assert list(on_threads(tasks, n_jobs)) == [number**2 for number in range(n_tasks)]
    assert len(seen) == n_tasks
    if n_tasks < 2 or n_jobs in (None, 1):
        assert set(seen) <= {threading.get_ident()}


def test_tasks_run_at_once_by_a_context_as_well():
    def meet(barrier):
        return barrier.wait(PATIENCE)  # broken unless the other two come

    for n_jobs, context in ((3, 1), (None, 3)):
        with joblib.parallel_config("threading", n_jobs=context):
            assert sorted(on_threads([partial(meet, threading.Barrier(3))] * 3, n_jobs)) == [0, 1, 2]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_no_task_is_begun_that_nobody_waits_for(n_jobs, error):
    begun = []

    def task(number):
        begun.append(number)
        if number == 0 and error is not None:
            raise error
        time.sleep(0.01)

    results = on_threads([partial(task, number) for number in range(1000)], n_jobs)
    with pytest.raises(error) if error is not None else nullcontext():
        next(results)
    results.close()
    n_begun = len(begun)
    assert n_begun < 1000
    time.sleep(0.05)
    assert len(begun) == n_begun  # no thread is left


def test_threads_start_no_threads():
    def outer():
        return set(on_threads([threading.get_ident] * 4, 2)) == {threading.get_ident()}

    assert list(on_threads([outer] * 4, 2)) == [True] * 4
