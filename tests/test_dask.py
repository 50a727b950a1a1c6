"""The same model on a cluster: the same numbers, whatever the workers, partitions and accidents."""

import os
import pickle
import signal
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil
import pytest
from distributed import Client, LocalCluster, SchedulerPlugin, Status, get_worker
from sklearn.base import clone
from sklearn.utils import get_tags

from corral import EmptySelectionWarning, RodeoClassifier, RodeoClassifierCV, load_model, save_model
from corral.dask import DaskRodeoClassifier, DaskRodeoClassifierCV
from corral.datasets import make_shifted_groups

X, Y = make_shifted_groups(40, groups=(1, 4, 5), random_state=0)
QUERIES, _ = make_shifted_groups(5, groups=(1, 4, 5), random_state=1)
NAMES = [f"v{j}" for j in range(X.shape[1])]
FRAME = pd.DataFrame(X, columns=NAMES)

# Few steps, so that tests are fast, but blocks in which each class is cut twice.
FAST = {"beta": 0.5, "random_state": 0}
BLOCKS = {**FAST, "block_rows": 15}

# A search of which each class has more rows than its densities keep, and queries in many chunks.
THINNED = {"max_rows": 15, "block_rows": 15, "random_state": 0}
SOME_QUERIES = da.from_array(QUERIES, chunks=(2, -1))

# The whole of it in one chunk, in chunks that cut columns as well, and in unequal ones.
PARTITIONS = [((120,), (10,)), ((50, 50, 20), (4, 6)), ((7, 90, 23), (10,))]


def chunked(chunks=PARTITIONS[1]):
    return da.from_array(X, chunks=chunks), da.from_array(Y, chunks=(chunks[0],))


def assert_same(found, local, queries=QUERIES):
    np.testing.assert_array_equal(found.classes_, local.classes_)
    for name in ("class_count_", "class_prior_", "relevant_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(local, name))
    np.testing.assert_allclose(found.initial_bandwidth_, local.initial_bandwidth_, rtol=1e-14)
    np.testing.assert_allclose(found.bandwidths_, local.bandwidths_, rtol=1e-12)
    np.testing.assert_allclose(found.zscores_, local.zscores_, rtol=1e-9)
    np.testing.assert_allclose(found.local_bandwidths(queries), local.local_bandwidths(queries), rtol=1e-12)
    np.testing.assert_allclose(found.log_density(queries), local.log_density(queries), rtol=0, atol=1e-10)


# ------------------------------------------------------------------------------- threads of this process


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"bandwidth": "class", "scale": "standard"},
        {"bandwidth": "class", "scale": None},
        {"features": "selected", "cutpoint": -0.3},
        {"update": "sequential"},
    ],
    ids=str,
)
@pytest.mark.parametrize("block_rows", [15, 1000])
def test_agrees_with_rows_at_hand(parameters, block_rows):
    local = RodeoClassifier(**FAST, **parameters).fit(X, Y)
    found = DaskRodeoClassifier(**FAST, **parameters, block_rows=block_rows).fit(*chunked())
    assert_same(found, local)
    assert_same(found.to_local(), local)


@pytest.mark.parametrize("bandwidth", ["local", "class"])
@pytest.mark.parametrize("scale", ["range", "standard"])
def test_same_bits_for_any_partitions(bandwidth, scale):
    models = [
        DaskRodeoClassifier(**BLOCKS, bandwidth=bandwidth, scale=scale).fit(*chunked(chunks))
        for chunks in PARTITIONS
    ]
    for other in models[1:]:
        np.testing.assert_array_equal(other.bandwidths_, models[0].bandwidths_)
        np.testing.assert_array_equal(other.log_density(QUERIES), models[0].log_density(QUERIES))
    assert_same(models[0], RodeoClassifier(**FAST, bandwidth=bandwidth, scale=scale).fit(X, Y))


def test_points_are_those_of_the_local_fit():
    found = DaskRodeoClassifier(**BLOCKS, n_points=7, bandwidth="class").fit(*chunked())
    everything = DaskRodeoClassifier(**BLOCKS, bandwidth="class").fit(*chunked())
    assert np.abs(found.bandwidths_ - everything.bandwidths_).max() > 1e-3
    np.testing.assert_array_equal(
        found.bandwidths_, DaskRodeoClassifier(**FAST, n_points=7).fit(X, Y).bandwidths_
    )


@pytest.mark.parametrize("weights", [(0, 1, 3), (0.5, 1.0, 2.5)], ids=str)
def test_sample_weight(weights):
    w = np.random.default_rng(0).choice(weights, len(X)).astype(float)
    local = RodeoClassifier(**FAST).fit(X, Y, w)
    found = DaskRodeoClassifier(**BLOCKS).fit(*chunked(), da.from_array(w, chunks=33))
    assert_same(found, local)
    assert_same(found.to_local(), local)


@pytest.mark.parametrize(
    "names",
    [np.array(["frog", "toad", "newt"]), np.array([1.5e9, -2.0, 0.0]), np.array([7, 8, 9], dtype=np.uint8)],
    ids=str,
)
def test_labels_of_any_kind(names):
    y = names[np.searchsorted([1, 4, 5], Y)]
    rows, _ = chunked()
    found = DaskRodeoClassifier(**FAST).fit(rows, da.from_array(y, chunks=31))
    local = RodeoClassifier(**FAST).fit(X, y)
    assert found.classes_.dtype == local.classes_.dtype
    labels = found.predict(da.from_array(QUERIES, chunks=(4, -1)))
    assert labels.dtype == local.predict(QUERIES).dtype
    np.testing.assert_array_equal(labels.compute(), local.predict(QUERIES))


def test_frames_with_text_labels_names_and_empty_partitions():
    frame = FRAME.assign(label=pd.Categorical.from_codes(np.searchsorted([1, 4, 5], Y), ["a", "b", "c"]))
    table = dd.from_pandas(frame, npartitions=4)
    table = dd.concat([table, table[table.v0 > 1e9]])  # partitions without rows
    found = DaskRodeoClassifier(**BLOCKS).fit(table[NAMES], table["label"])
    local = RodeoClassifier(**FAST).fit(FRAME, frame["label"])
    assert_same(found, local, pd.DataFrame(QUERIES, columns=NAMES))
    np.testing.assert_array_equal(found.feature_names_in_, NAMES)
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(pd.DataFrame(QUERIES, columns=NAMES[::-1]))


def test_unknown_chunk_sizes():
    rows, labels = chunked()
    kept = rows[:, 0] > np.median(X[:, 0])
    found = DaskRodeoClassifier(**BLOCKS).fit(rows[kept], labels.rechunk(rows.chunks[0])[kept])
    which = X[:, 0] > np.median(X[:, 0])
    assert_same(found, RodeoClassifier(**FAST).fit(X[which], Y[which]))


def test_rows_at_hand_are_taken_too():
    local = RodeoClassifier(**FAST).fit(FRAME, Y)
    assert_same(DaskRodeoClassifier(**FAST).fit(FRAME, Y), local, pd.DataFrame(QUERIES, columns=NAMES))
    rows, _ = chunked()
    assert_same(DaskRodeoClassifier(**FAST).fit(rows, Y.tolist()), RodeoClassifier(**FAST).fit(X, Y))


@pytest.mark.parametrize("persist", [True, False])
def test_parquet(tmp_path, persist):
    """Small columns are read in fewer, larger pieces, so X and y must be read together."""
    for part in range(4):
        rows = slice(30 * part, 30 * part + 30)
        FRAME.iloc[rows].assign(label=Y[rows]).to_parquet(tmp_path / f"{part}.parquet")
    table = dd.read_parquet(tmp_path)
    found = DaskRodeoClassifier(**BLOCKS, bandwidth="class", persist=persist).fit(table[NAMES], table.label)
    local = RodeoClassifier(**FAST, bandwidth="class").fit(FRAME, Y)
    assert_same(found, local, FRAME)
    assert found.predict(table[NAMES]).compute().tolist() == local.predict(FRAME).tolist()
    for file in tmp_path.iterdir():
        file.unlink()
    if persist:
        assert_same(found, local, FRAME)
    else:
        with pytest.raises(FileNotFoundError):
            found.predict(FRAME)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"scale": "rank"}, r"scale='rank' needs all rows in one place.*'range', 'standard' or None"),
        ({"block_rows": 0}, "block_rows must be a positive integer, got 0"),
        ({"n_points": 1.5}, r"n_points must be a positive integer, got 1\.5"),
        ({"persist": "yes"}, "persist must be one of True, False, got 'yes'"),
        ({"beta": 2}, "beta must be a number between 0 and 1"),
    ],
    ids=str,
)
def test_refuses_parameters(change, complaint):
    with pytest.raises(ValueError, match=complaint):
        DaskRodeoClassifier(**change).fit(*chunked())


def test_refuses_bad_rows():
    rows, labels = chunked()
    bad = X.copy()
    bad[77, 3] = np.nan
    model = DaskRodeoClassifier()
    for x, y, w, complaint in (
        (da.from_array(bad, chunks=(50, -1)), labels, None, "Column 'x3' has gaps .*DaskRodeoClassifier"),
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
    assert not vars(model).keys() & {"classes_", "n_features_in_", "client_"}
    short = dd.from_pandas(FRAME.iloc[:-1], npartitions=1)
    with pytest.raises(ValueError, match="a partition of X has 119 rows, but 120 labels or weights"):
        model.fit(short, dd.from_pandas(pd.Series(Y), npartitions=1))


@pytest.mark.parametrize("at_hand", [True, False])
def test_refuses_gaps_and_levels_by_name(at_hand):
    gaps = FRAME.copy()
    gaps.iloc[7, 2] = np.nan
    for frame, complaint in (
        (gaps, f"^Column '{FRAME.columns[2]}' has gaps .*: DaskRodeoClassifier takes none"),
        (FRAME.assign(colour="red"), "^Column 'colour' holds values of type .*takes numbers only"),
        (FRAME.assign(colour=pd.Categorical(Y)), "^Column 'colour' holds values of type category"),
    ):
        x = frame if at_hand else dd.from_pandas(frame, npartitions=3)
        y = Y if at_hand else dd.from_pandas(pd.Series(Y), npartitions=3)
        with pytest.raises(ValueError, match=complaint):
            DaskRodeoClassifier().fit(x, y)
    found = DaskRodeoClassifier(**BLOCKS).fit(FRAME, Y)
    with pytest.raises(ValueError, match=r"has gaps .*: DaskRodeoClassifier takes none"):
        found.predict(gaps)
    assert found.to_local().predict(gaps).shape == Y.shape
    tags = get_tags(found).input_tags
    assert not tags.allow_nan
    assert not tags.categorical


def test_a_class_without_variables_is_told():
    with pytest.warns(EmptySelectionWarning, match="no variable was found") as caught:
        DaskRodeoClassifier(**FAST, features="selected", cutpoint=-9.0).fit(*chunked())
    assert caught[0].filename == __file__  # points at the caller's line


def test_what_needs_all_rows_is_in_the_local_estimator(tmp_path):
    found = DaskRodeoClassifier(**BLOCKS, n_jobs=2).fit(*chunked())
    for name in ("partial_fit", "bandwidth_path", "explain", "selection_frequency"):
        assert not hasattr(found, name)
        assert hasattr(found.to_local(), name)
    local = found.to_local()
    assert type(local) is RodeoClassifier
    assert local.n_jobs == 2
    explained = RodeoClassifier(**FAST).fit(X, Y).explain(QUERIES)
    assert str(local.explain(QUERIES)) == str(explained)
    save_model(local, tmp_path / "groups.corral")
    loaded = load_model(tmp_path / "groups.corral")
    np.testing.assert_array_equal(loaded.log_density(QUERIES), local.log_density(QUERIES))
    with pytest.raises(TypeError, match="not DaskRodeoClassifier"):
        save_model(found, tmp_path / "cluster.corral")
    assert [file.name for file in tmp_path.iterdir()] == ["groups.corral"]


def test_a_copy_predicts_but_has_no_source():
    """It is what workers get; the source of the rows may be as large as the rows."""
    found = DaskRodeoClassifier(**BLOCKS).fit(*chunked())
    copy = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(copy.log_density(QUERIES), found.log_density(QUERIES))
    with pytest.raises(RuntimeError, match="call to_local of the original"):
        copy.to_local()


def test_progress(capsys):
    DaskRodeoClassifier(**FAST, verbose=1).fit(*chunked()).predict(QUERIES)
    shown = capsys.readouterr()
    assert "Leave-one-out" in shown.err
    assert "Rodeo" in shown.err
    assert shown.out == ""


# ------------------------------------------------------------------------------------- lazy predictions

METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "predict_joint_log_proba",
    "log_density",
    "local_bandwidths",
)


@pytest.fixture(scope="module", params=["RodeoClassifier", "RodeoClassifierCV", "DaskRodeoClassifier"])
def fitted(request):
    """The same model with and without names of variables."""
    model = {
        "RodeoClassifier": RodeoClassifier(**FAST),
        "RodeoClassifierCV": RodeoClassifierCV(random_state=0),
        "DaskRodeoClassifier": DaskRodeoClassifier(**FAST),
    }[request.param]
    return clone(model).fit(X, Y), clone(model).fit(FRAME, Y)


def untouched(*_):
    raise AssertionError("computed before it was asked for")


@pytest.mark.parametrize("method", METHODS)
def test_collections_are_predicted_when_asked_for(fitted, method):
    plain, named = fitted
    if not hasattr(plain, method):
        assert isinstance(plain, RodeoClassifierCV)  # whose members have bandwidths of their own
        return
    expected = getattr(plain, method)(QUERIES)
    rows = da.from_array(QUERIES, chunks=((4, 1, 10), 3))
    frame = dd.from_pandas(
        pd.DataFrame(QUERIES, columns=NAMES, index=pd.Index(np.arange(15)[::-1], name="id")),
        npartitions=3,
        sort=False,
    )
    with dask.config.set(scheduler=untouched):
        lazy, lazy_frame = getattr(plain, method)(rows), getattr(named, method)(frame)
    assert lazy.chunks[0] == rows.chunks[0]
    assert lazy.shape == expected.shape
    assert lazy.dtype == expected.dtype
    np.testing.assert_array_equal(lazy.compute(), expected)

    found = lazy_frame.compute()
    np.testing.assert_array_equal(np.asarray(found), expected)
    if method != "local_bandwidths":
        assert lazy_frame.npartitions == 3
        assert found.index.equals(frame.compute().index)
        assert found.index.name == "id"
    if found.ndim == 2:
        assert found.columns.tolist() == plain.classes_.tolist()

    few = getattr(plain, method)(rows[rows[:, 0] > np.sort(QUERIES[:, 0])[-2]])
    assert few.compute().shape == (1, *expected.shape[1:])  # chunks of unknown size, most of them empty


def test_other_collections_are_refused(fitted):
    plain, _ = fitted
    with pytest.raises(ValueError, match="X must have two dimensions, got 1"):
        plain.predict(da.zeros(10))
    with pytest.raises(TypeError, match="X must be a dask array or dataframe, got Series"):
        plain.predict(dd.from_pandas(pd.Series(Y), npartitions=1))


# ----------------------------------------------------------------------------------- worker processes


PATIENCE = 600  # seconds, for a machine on which many other programs run


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


@dataclass
class Found:
    """What a model found on a cluster, and in how many tasks."""

    bandwidths: np.ndarray
    log_density: np.ndarray
    tasks: dict[str, int]


def on_cluster(cluster, client, bandwidth, chunks=PARTITIONS[1]):
    with watching(cluster, client) as of_fit:
        model = DaskRodeoClassifier(client=client, bandwidth=bandwidth, **BLOCKS).fit(*chunked(chunks))
    with watching(cluster, client) as of_predict:
        log_density = model.log_density(QUERIES)
    return Found(model.bandwidths_, log_density, {"fit": of_fit.done, "predict": of_predict.done})


def search_on_cluster(cluster, client, chunks=PARTITIONS[1]):
    with watching(cluster, client) as of_fit:
        model = DaskRodeoClassifierCV(client=client, **THINNED).fit(*chunked(chunks))
    with watching(cluster, client) as of_predict:
        log_density = model.log_density(SOME_QUERIES).compute(scheduler=client)
    return Found(model.weights_, log_density, {"fit": of_fit.done, "predict": of_predict.done})


@pytest.fixture(scope="module")
def cluster():
    """Workers are processes, watched over by a nanny; it starts with one of them."""
    patience = dict.fromkeys(("connect", "tcp"), f"{PATIENCE}s")
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
    """Findings of models that were fitted and asked on one worker: both kinds of bandwidths, and a search."""
    with Client(cluster, set_as_default=False) as client:
        assert len(client.scheduler_info()["workers"]) == 1
        found = {bandwidth: on_cluster(cluster, client, bandwidth) for bandwidth in ("local", "class")}
        return found | {"search": search_on_cluster(cluster, client)}


@pytest.fixture
def client(cluster, one_worker):
    """Two workers."""
    cluster.scale(2)
    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=PATIENCE)
        yield client


@pytest.mark.parametrize("bandwidth", ["local", "class"])
def test_same_bits_on_one_and_two_workers(cluster, client, one_worker, bandwidth):
    expected = one_worker[bandwidth]
    found = on_cluster(cluster, client, bandwidth, PARTITIONS[2])
    np.testing.assert_array_equal(found.bandwidths, expected.bandwidths)
    np.testing.assert_array_equal(found.log_density, expected.log_density)
    local = RodeoClassifier(**FAST, bandwidth=bandwidth).fit(X, Y)
    np.testing.assert_allclose(expected.bandwidths, local.bandwidths_, rtol=1e-12)
    np.testing.assert_allclose(expected.log_density, local.log_density(QUERIES), rtol=0, atol=1e-10)


@pytest.mark.parametrize("when", ["fit", "predict"])
def test_a_worker_killed_in_the_middle_of_the_rodeo(cluster, client, one_worker, when):
    """Its blocks are lost, and are made again."""
    expected = one_worker["local"]
    model = DaskRodeoClassifier(client=client, **BLOCKS)
    if when == "predict":
        model.fit(*chunked())
    with watching(cluster, client, fatal=expected.tasks[when] // 2) as watch:
        if when == "fit":
            model.fit(*chunked())
            np.testing.assert_array_equal(model.bandwidths_, expected.bandwidths)
        else:
            np.testing.assert_array_equal(model.log_density(QUERIES), expected.log_density)
    assert watch.done > expected.tasks[when]


def test_a_worker_killed_within_a_lazy_prediction(client, one_worker, tmp_path):
    """The task that leads the sweeps dies with its worker, and is led again by another one."""
    done = tmp_path / "killed"

    def fatal_once(block):
        if not done.exists():
            done.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    model = DaskRodeoClassifier(client=client, **BLOCKS).fit(*chunked())
    rows = da.from_array(QUERIES, chunks=(5, -1)).map_blocks(fatal_once, meta=np.empty((0, 0)))
    lazy = model.log_density(rows)
    np.testing.assert_array_equal(lazy.compute(scheduler=client), one_worker["local"].log_density)
    assert done.exists()


def test_a_search_is_the_same_bits_on_two_workers(cluster, client, one_worker):
    expected, found = one_worker["search"], search_on_cluster(cluster, client, PARTITIONS[2])
    np.testing.assert_array_equal(found.bandwidths, expected.bandwidths)
    np.testing.assert_array_equal(found.log_density, expected.log_density)


@pytest.mark.parametrize("when", ["fit", "predict"])
def test_a_worker_killed_in_a_search(cluster, client, one_worker, when):
    expected = one_worker["search"]
    model = DaskRodeoClassifierCV(client=client, **THINNED)
    if when == "predict":
        model.fit(*chunked())
    with watching(cluster, client, fatal=expected.tasks[when] // 2) as watch:
        if when == "fit":
            model.fit(*chunked())
            np.testing.assert_array_equal(model.weights_, expected.bandwidths)
        found = model.log_density(SOME_QUERIES).compute(scheduler=client)
        np.testing.assert_array_equal(found, expected.log_density)
    assert watch.done > expected.tasks[when]


def test_only_loopback_is_listened_to(client):
    listening = set()
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):  # it may end meanwhile
            connections = process.net_connections(kind="inet")
            listening |= {each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}


def test_copies_share_the_client(client):
    model = DaskRodeoClassifier(client=client, beta=0.7)
    assert clone(model).client is client
    assert clone(model).beta == 0.7


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
    fatal: int | None = None
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
        """Dask copies what it sends, even within a process: the copy is this object."""
        CLOSINGS[id(self)] = self
        return closing_of, (id(self),)


CLOSINGS: dict[int, Closing] = {}


def closing_of(number):
    return CLOSINGS[number]


def test_a_cluster_that_goes_away_in_the_middle_of_the_rodeo_is_told():
    rows, labels = chunked()
    with cluster_in_this_process() as cluster:
        closing = Closing(cluster)
        source = rows.map_blocks(closing, meta=np.empty((0, 0)))
        model = DaskRodeoClassifier(**BLOCKS, persist=False).fit(source, labels)
        before = closing.passed
        lazy = model.log_density(da.from_array(QUERIES, chunks=(8, -1)))
        np.testing.assert_array_equal(lazy.compute(), model.log_density(QUERIES))
        of_predict = (closing.passed - before) // 3  # two chunks of queries, and all queries at once
        closing.fatal = closing.passed + of_predict // 2
        with pytest.raises(ConnectionError, match=r"the Dask cluster has gone away.*fit again"):
            model.predict(QUERIES)
    with pytest.raises(ConnectionError, match="the Dask cluster has gone away"):
        model.to_local()


def test_a_cluster_that_goes_away_while_rows_are_read_is_told():
    rows, labels = chunked()
    with cluster_in_this_process() as cluster:
        source = rows.map_blocks(Closing(cluster, fatal=1), meta=np.empty((0, 0)))
        with pytest.raises(ConnectionError, match=r"the Dask cluster has gone away.*fit again"):
            DaskRodeoClassifier(**BLOCKS).fit(source, labels)
