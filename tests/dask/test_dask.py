"""Collections as training rows and as samples, whatever the workers, partitions and accidents."""

import os
import signal
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import SimpleNamespace

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil
import pytest
from distributed import Client, LocalCluster, SchedulerPlugin, Status, get_worker
from sklearn.base import clone

from corral import CorralClassifier, RodeoClassifier
from corral.dask import DaskCorralClassifier
from corral.datasets import make_shifted_groups

X, Y = make_shifted_groups(40, groups=(1, 4, 5), random_state=0)
NEW_ROWS, _ = make_shifted_groups(5, groups=(1, 4, 5), random_state=1)
NAMES = [f"v{j}" for j in range(X.shape[1])]
FRAME = pd.DataFrame(X, columns=NAMES)

# Parameters with which all classes are compressed, and new rows in many chunks.
COMPRESSED = {"max_rows": 15, "block_rows": 15, "random_state": 0}
NEW_COLLECTION = da.from_array(NEW_ROWS, chunks=(2, -1))


def chunked():
    """Rows in chunks that cut columns as well, and their labels."""
    return da.from_array(X, chunks=((50, 50, 20), (4, 6))), da.from_array(Y, chunks=((50, 50, 20),))


def fit_on_cluster(X, y):
    """Fit with few rows, which are all brought to this process: the model equals a local one."""
    return DaskCorralClassifier(random_state=0).fit(X, y)


def assert_same(model, X, y, new_rows=NEW_ROWS):
    """Compare a model with the one of a local fit."""
    local = CorralClassifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.classes_, local.classes_)
    np.testing.assert_array_equal(model.class_count_, local.class_count_)
    np.testing.assert_allclose(model.log_density(new_rows), local.log_density(new_rows), rtol=0, atol=1e-10)


# ------------------------------------------------------------------------------- threads of this process


@pytest.mark.parametrize(
    "names", [["frog", "toad", "newt"], [1.5e9, -2.0, 0.0], np.uint8([7, 8, 9])], ids=str
)
def test_labels_of_any_kind(names):
    y = np.array(names)[np.searchsorted([1, 4, 5], Y)]
    rows, _ = chunked()
    fitted = fit_on_cluster(rows, da.from_array(y, chunks=31))
    local = CorralClassifier(random_state=0).fit(X, y)
    assert fitted.classes_.dtype == local.classes_.dtype
    labels = fitted.predict(da.from_array(NEW_ROWS, chunks=(4, -1)))
    assert labels.dtype == local.predict(NEW_ROWS).dtype
    np.testing.assert_array_equal(labels.compute(), local.predict(NEW_ROWS))


def test_frames_with_text_labels_names_and_empty_partitions():
    frame = FRAME.assign(label=pd.Categorical.from_codes(np.searchsorted([1, 4, 5], Y), ["a", "b", "c"]))
    table = dd.from_pandas(frame, npartitions=4)
    table = dd.concat([table, table[table.v0 > 1e9]])  # partitions without rows
    fitted = fit_on_cluster(table[NAMES], table["label"])
    assert_same(fitted, FRAME, frame["label"], pd.DataFrame(NEW_ROWS, columns=NAMES))
    np.testing.assert_array_equal(fitted.feature_names_in_, NAMES)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(pd.DataFrame(NEW_ROWS, columns=NAMES[::-1]))


def test_unknown_chunk_sizes_and_rows_at_hand():
    rows, labels = chunked()
    kept = rows[:, 0] > np.median(X[:, 0])
    fitted = fit_on_cluster(rows[kept], labels.rechunk(rows.chunks[0])[kept])
    which = X[:, 0] > np.median(X[:, 0])
    assert_same(fitted, X[which], Y[which])
    assert_same(fit_on_cluster(FRAME, Y), FRAME, Y, pd.DataFrame(NEW_ROWS, columns=NAMES))
    assert_same(fit_on_cluster(rows, Y.tolist()), X, Y)


def test_parquet(tmp_path):
    """Small columns are read in fewer, larger pieces, so X and y must be read together."""
    for part in range(4):
        rows = slice(30 * part, 30 * part + 30)
        FRAME.iloc[rows].assign(label=Y[rows]).to_parquet(tmp_path / f"{part}.parquet")
    table = dd.read_parquet(tmp_path)
    fitted = DaskCorralClassifier(**COMPRESSED).fit(table[NAMES], table.label)
    expected = DaskCorralClassifier(**COMPRESSED).fit(*chunked()).predict_proba(X)
    np.testing.assert_allclose(fitted.predict_proba(FRAME), expected, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(fitted.predict(table[NAMES]).compute(), fitted.predict(FRAME))


def test_refuses_bad_rows():
    rows, labels = chunked()
    model = DaskCorralClassifier()
    for x, y, w, complaint in (
        (rows, da.zeros(120, chunks=50), None, "y must hold at least two classes, got one class: 0.0"),
        (rows, da.from_array(Y + 0.5, chunks=50), None, "Unknown label type"),
        (rows, labels[:100], None, "X has 120 rows, but y has 100"),
        (rows, Y[:100], None, "X has 120 rows, but y has 100"),
        (rows, labels, -da.ones(120), "sample_weight must not be negative, got -1"),
        (rows, labels, da.zeros(120), "rows with a positive weight, got none"),
        (rows[:, 0], labels, None, "X must be a table"),
        (rows[rows[:, 0] > 0], Y, None, "y must be a dask collection like X"),
        (rows[rows[:, 0] > 0], labels.rechunk(60)[labels.rechunk(60) > 0], None, "give both as frames"),
    ):
        with pytest.raises(ValueError, match=complaint):
            model.fit(x, y, w)
    assert not vars(model).keys() & {"model_", "n_features_in_", "client_"}
    short = dd.from_pandas(FRAME.iloc[:-1], npartitions=1)
    with pytest.raises(ValueError, match="a partition of X has 119 rows, but 120 labels, weights or groups"):
        model.fit(short, dd.from_pandas(pd.Series(Y), npartitions=1))


# ------------------------------------------------------------------------------------- lazy predictions

METHODS = (
    "predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "log_density",
    "local_bandwidths", "typicality", "is_novel", "predict_set",
)  # fmt: skip
MODELS = [
    RodeoClassifier(beta=0.5, random_state=0),
    CorralClassifier(random_state=0),
    DaskCorralClassifier(**COMPRESSED),
]


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: type(model).__name__)
def fitted(request):
    """The same model with and without names of variables."""
    return clone(request.param).fit(X, Y), clone(request.param).fit(FRAME, Y)


def untouched(*_):
    raise AssertionError("computed before it was asked for")


@pytest.mark.parametrize("method", METHODS)
def test_collections_are_predicted_when_asked_for(fitted, method):
    plain, named = fitted
    if not hasattr(plain, method):
        assert isinstance(plain, CorralClassifier)  # whose members have bandwidths of their own
        return
    expected = getattr(plain, method)(NEW_ROWS)
    rows = da.from_array(NEW_ROWS, chunks=((4, 1, 10), 3))
    frame = dd.from_pandas(
        pd.DataFrame(NEW_ROWS, columns=NAMES, index=pd.Index(np.arange(15)[::-1], name="id")),
        npartitions=3,
        sort=False,
    )
    with dask.config.set(scheduler=untouched):
        lazy, lazy_frame = getattr(plain, method)(rows), getattr(named, method)(frame)
    assert lazy.chunks[0] == rows.chunks[0]
    assert lazy.shape == expected.shape
    assert lazy.dtype == expected.dtype
    np.testing.assert_allclose(lazy.compute(), expected, rtol=0, atol=1e-10)

    predicted = lazy_frame.compute()
    np.testing.assert_allclose(np.asarray(predicted), expected, rtol=0, atol=1e-10)
    if method != "local_bandwidths":
        assert lazy_frame.npartitions == 3
        assert predicted.index.equals(frame.compute().index)
        assert predicted.index.name == "id"
    if predicted.ndim == 2:
        assert predicted.columns.tolist() == plain.classes_.tolist()

    few = getattr(plain, method)(rows[rows[:, 0] > np.sort(NEW_ROWS[:, 0])[-2]])
    assert few.compute().shape == (1, *expected.shape[1:])  # chunks of unknown size, most of them empty


def test_other_collections_are_refused(fitted):
    plain, _ = fitted
    with pytest.raises(ValueError, match="X must have two dimensions, got 1"):
        plain.predict(da.zeros(10))
    with pytest.raises(TypeError, match="X must be a dask array or dataframe, got Series"):
        plain.predict(dd.from_pandas(pd.Series(Y), npartitions=1))


# ----------------------------------------------------------------------------------- worker processes


# Seconds, for a machine on which many other programs run: until a worker has started, and until one that
# does not answer is taken for dead. A result that was kept by a killed worker waits for the latter.
PATIENCE = 600
CONNECTED_WITHIN = 20


class Watch(SchedulerPlugin):
    """Counts the tasks that are done; after the fatal one it kills the worker that keeps most results."""

    def __init__(self, scheduler, processes, fatal):
        self.scheduler, self.processes, self.fatal, self.done = scheduler, processes, fatal, 0

    def transition(self, key, start, finish, *args, **kwargs):
        if (start, finish) != ("processing", "memory"):
            return
        self.done += 1
        if self.done == self.fatal:
            richest = max(self.scheduler.workers.values(), key=lambda worker: len(worker.has_what))
            os.kill(self.processes[richest.address], signal.SIGKILL)


@contextmanager
def watching(cluster, client, fatal=None):
    watch = Watch(cluster.scheduler, client.run(os.getpid), fatal)
    cluster.scheduler.add_plugin(watch, name="watch")
    yield watch
    cluster.scheduler.remove_plugin("watch")


def search_on_cluster(cluster, client):
    """Weights and densities of a model that was fitted on a cluster, and numbers of tasks."""
    with watching(cluster, client) as fit_watch:
        model = DaskCorralClassifier(client=client, **COMPRESSED).fit(*chunked())
    with watching(cluster, client) as predict_watch:
        log_density = model.log_density(NEW_COLLECTION).compute(scheduler=client)
    tasks = {"fit": fit_watch.done, "predict": predict_watch.done}
    return SimpleNamespace(weights=model.member_weights_, log_density=log_density, tasks=tasks)


@pytest.fixture(scope="module")
def cluster():
    """Workers are processes, watched over by a nanny; it starts with one of them."""
    patience = dict.fromkeys(("connect", "tcp"), f"{CONNECTED_WITHIN}s")
    # A killed worker whose successor needs longer than this would be given up for ever.
    lost = {"distributed.deploy.lost-worker-timeout": f"{PATIENCE}s"}
    with (
        dask.config.set({"distributed.comm.timeouts": patience, **lost}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def one_worker(cluster):
    """Results of a model that was fitted, and predicts, on one worker."""
    with Client(cluster, set_as_default=False) as client:
        assert len(client.scheduler_info()["workers"]) == 1
        return search_on_cluster(cluster, client)


@pytest.fixture
def client(cluster, one_worker):
    """Two workers."""
    cluster.scale(2)
    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=PATIENCE)
        yield client


def test_same_bits_on_one_and_two_workers(cluster, client, one_worker):
    result = search_on_cluster(cluster, client)
    np.testing.assert_array_equal(result.weights, one_worker.weights)
    np.testing.assert_array_equal(result.log_density, one_worker.log_density)


@pytest.mark.parametrize("when", ["fit", "predict"])
def test_a_worker_killed_in_a_search(cluster, client, one_worker, when):
    model = DaskCorralClassifier(client=client, **COMPRESSED)
    if when == "predict":
        model.fit(*chunked())
    with watching(cluster, client, fatal=one_worker.tasks[when] // 2) as watch:
        if when == "fit":
            model.fit(*chunked())
            np.testing.assert_array_equal(model.member_weights_, one_worker.weights)
        log_density = model.log_density(NEW_COLLECTION).compute(scheduler=client)
        np.testing.assert_array_equal(log_density, one_worker.log_density)
    assert watch.done > one_worker.tasks[when]


def test_only_loopback_is_listened_to(client):
    listening = set()
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):  # it may end meanwhile
            connections = process.net_connections(kind="inet")
            listening |= {each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}


@contextmanager
def cluster_in_this_process():
    """Without network, and quick to start, for tests that close it."""
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster),
    ):
        yield cluster


@dataclass
class Closing:
    """Blocks that pass through it; at the fatal one the cluster is closed, before the task has ended."""

    cluster: LocalCluster
    fatal: int
    passed: int = 0

    def __call__(self, block):
        self.passed += 1
        if self.passed == self.fatal:
            threading.Thread(target=self.cluster.close).start()
            worker, until = get_worker(), time.monotonic() + PATIENCE
            while worker.status == Status.running and time.monotonic() < until:
                time.sleep(0.01)
        return block

    def __reduce__(self):
        """Dask pickles arguments even within a process: unpickling returns this object."""
        CLOSINGS[id(self)] = self
        return closing_by_id, (id(self),)


CLOSINGS: dict[int, Closing] = {}


def closing_by_id(number):
    return CLOSINGS[number]


@pytest.mark.parametrize("fatal", [1, 5], ids=["first pass", "second pass"])
def test_a_cluster_that_goes_away_in_a_fit_is_reported(fatal):
    rows, labels = chunked()
    with cluster_in_this_process() as cluster:
        source = rows.map_blocks(Closing(cluster, fatal), meta=np.empty((0, 0)))
        with pytest.raises(ConnectionError, match=r"the Dask cluster is not available any more.*fit again"):
            DaskCorralClassifier(**COMPRESSED).fit(source, labels)
