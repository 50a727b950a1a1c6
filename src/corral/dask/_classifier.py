"""DaskRodeoClassifier: algorithms 1 to 3 on rows that no single machine holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from corral._classes import Classes, LabelledRows
from corral._classifier import RodeoClassifier
from corral._rodeo import MAX_POINTS, ClassRows, Floats, Integers, progress, some_rows, zscores
from corral._scale import Scale, largest_values, learn_scale, range_units, standard_units
from corral._validation import check_choice, check_integer, check_priors, unchanged_by_errors
from corral.dask._reductions import (
    Blocks,
    Queries,
    compute,
    current_client,
    descend,
    estimates,
    keep,
    tree,
    within_cluster,
)
from corral.dask._rows import (
    Overview,
    Pieces,
    arranged,
    as_collection,
    class_blocks,
    overview,
    part,
    partitions,
    power_sums,
    summary,
)

# What the queries that share a reduction may take, well below the 10 MB of a graph from which on dask warns;
# but never fewer queries than the least. A sweep sends 25 bytes for each variable and class, else it is 8.
_BYTES, _LEAST = 1 << 22, 64


def _on_one_machine(self: Any) -> bool:
    """Whether a method that needs all rows in one place is there: it is in `to_local()`."""
    return False


class DaskRodeoClassifier(RodeoClassifier):
    """`RodeoClassifier` with its training rows on the workers of a Dask cluster, or on disk.

    Bandwidths are the same and log densities agree to 1e-10: all that the Rodeo asks of rows are sums, which
    are taken over blocks of rows where these lie and merged in the order of the blocks. They are the same
    bits for any number of workers and any partitions. Rows never meet in one place; queries and sums travel.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster. None means the one that dask would use itself: that of the current client, or threads of
        this process, where nothing listens on the network.
    block_rows : int, default=100_000
        Rows of a class in one block, the unit of work and of memory. Classes with one block need no more than
        one reduction.
    n_points : int, default=1000
        Rows of each class at which bandwidths are averaged, if it has more. As many as in `RodeoClassifier`;
        fewer make `fit` faster where classes are huge.
    persist : bool, default=True
        Whether blocks are kept in the memory of the workers. False reads them from their source for every
        reduction, for rows that do not fit.
    bandwidth, features, update, beta, c0, cutpoint, priors, temperature, lapse, min_bandwidth, random_state
        As in `RodeoClassifier`. ``update="sequential"`` takes a reduction per variable and step: it is slow.
    scale : {"range", "standard"} or None, default="range"
        As in `RodeoClassifier`. "rank" and "whiten" are refused: ranks need every value in one place.
    rule : {"zscore"}, default="zscore"
        As in `RodeoClassifier`. "shadow" is refused: shadows are rows drawn from all classes.
    n_jobs : int, default=None
        Read by the estimator that `to_local` returns; here the cluster decides.
    verbose : int, default=0
        If positive, show a progress bar on the standard error stream.

    Attributes
    ----------
    client_ : distributed.Client or None
        The cluster that keeps the rows; None for threads of this process.
    classes_, class_count_, class_prior_, initial_bandwidth_, bandwidths_, zscores_, relevant_
        As in `RodeoClassifier`.
    n_features_in_ : int
        Number of variables seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if `X` had any.

    See Also
    --------
    RodeoClassifier : For rows that fit one machine. Its predictions take dask collections, too.

    Notes
    -----
    `X` and `y` are dask arrays or dataframes with the same partitions, which may be empty or of unknown size;
    arrays and frames at hand will do as well. Predictions of collections are lazy and keep chunks and index,
    those of arrays are computed at once. `partial_fit`, `bandwidth_path`, `explain` and `selection_frequency`
    need the rows in one place: `to_local` brings them there. With `persist` the model lives as long as the
    cluster.

    Examples
    --------
    >>> import dask.array as da
    >>> from corral.dask import DaskRodeoClassifier
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(200, groups=(4, 5), random_state=0)
    >>> X_test, y_test = make_shifted_groups(150, groups=(4, 5), random_state=1)
    >>> X, y = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    >>> classifier = DaskRodeoClassifier(block_rows=50).fit(X, y)  # far more rows in earnest
    >>> classifier.score(X_test, y_test) > 0.98
    True
    >>> classifier.predict(da.from_array(X_test, chunks=(100, -1)))
    dask.array<..., shape=(300,), dtype=int64, chunksize=(100,), chunktype=numpy.ndarray>
    >>> local = classifier.to_local()
    >>> bool((local.predict(X_test) == classifier.predict(X_test)).all())
    True
    """

    _shrinking_units: ClassVar[tuple[str, ...]] = ("range",)

    def __init__(
        self,
        *,
        client: Any = None,
        block_rows: int = 100_000,
        n_points: int = MAX_POINTS,
        persist: bool = True,
        bandwidth: Literal["local", "class", "initial"] = "local",
        features: Literal["all", "selected", "separate"] = "all",
        update: Literal["simultaneous", "sequential"] = "simultaneous",
        scale: Literal["range", "standard"] | None = "range",
        beta: float = 0.9,
        c0: float = 1.0,
        rule: Literal["zscore"] = "zscore",
        cutpoint: float = -1.0,
        priors: Literal["uniform", "empirical"] | ArrayLike = "uniform",
        temperature: float = 1.0,
        lapse: float = 0.0,
        min_bandwidth: float | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            bandwidth=bandwidth,
            features=features,
            update=update,
            scale=scale,
            beta=beta,
            c0=c0,
            rule=rule,
            cutpoint=cutpoint,
            priors=priors,
            temperature=temperature,
            lapse=lapse,
            min_bandwidth=min_bandwidth,
            n_jobs=n_jobs,
            verbose=verbose,
            random_state=random_state,
        )
        self.client = client
        self.block_rows = block_rows
        self.n_points = n_points
        self.persist = persist

    partial_fit = available_if(_on_one_machine)(RodeoClassifier.partial_fit)
    bandwidth_path = available_if(_on_one_machine)(RodeoClassifier.bandwidth_path)
    explain = available_if(_on_one_machine)(RodeoClassifier.explain)
    selection_frequency = available_if(_on_one_machine)(RodeoClassifier.selection_frequency)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Put the rows of each class into blocks and find the variables that describe it.

        Parameters
        ----------
        X : dask array or dataframe, or array-like, of shape (n_samples, n_features)
            Training rows.
        y : dask array or series, or array-like, of shape (n_samples,)
            Their classes; at least two.
        sample_weight : dask array or series, or array-like, of shape (n_samples,), default=None
            How often each row counts: weight k equals k copies, weight 0 removal.

        Returns
        -------
        self : estimator
        """
        with unchanged_by_errors(self):
            self.client_ = current_client(self.client)
            self._learn_partitions(X, y, sample_weight)
        return self

    def to_local(self) -> RodeoClassifier:
        """The ordinary estimator with the same bandwidths and variables; brings all rows to this process."""
        check_is_fitted(self)
        if not hasattr(self, "_sources"):
            raise RuntimeError("a copy does not know the source of the rows: call to_local of the original.")
        parts = compute([part(source) for source in self._sources], self.client_)
        parts = [rows for rows in parts if len(rows.X)]
        X, y = np.concatenate([rows.X for rows in parts]), np.concatenate([rows.y for rows in parts])
        weights = None if parts[0].weights is None else np.concatenate([rows.weights for rows in parts])
        common = RodeoClassifier().get_params()
        local = RodeoClassifier(**{name: getattr(self, name) for name in common})
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(local, name, getattr(self, name))
        settings, _ = self._check_parameters()
        data = LabelledRows.sort(X, y, weights, None)
        scaled = self._scale.transform(data.X)
        rows = [
            ClassRows.arrange(
                scaled[which], None if data.weights is None else data.weights[which], **settings
            )
            for which in data.members()
        ]
        learnt = replace(self._learnt, rows=rows)
        local._training = X, y, weights
        local._members = [data.numbers[which] for which in data.members()]
        local._keep(data.labels, data.counts, self.class_prior_, learnt, self.relevant_, learnt)
        return local

    def _learn_partitions(self, X: Any, y: Any, sample_weight: Any) -> None:
        settings, cutpoint = self._check_parameters()
        X = as_collection(X, self.block_rows)
        names = getattr(X, "columns", None)
        empty = np.empty((0, X.shape[1])) if names is None else pd.DataFrame(columns=names, dtype=np.float64)
        validate_data(self, empty, ensure_min_samples=0)
        sources = partitions(X, y, sample_weight)
        of_all = overview(compute([summary(source) for source in sources], self.client_))
        prior = check_priors(self.priors, of_all.totals)

        raw = class_blocks(sources, of_all, self.block_rows)
        units = self._learn_units(raw, of_all)
        tasks: Sequence[list[Any]] = [
            [arranged(units, total, settings, *pieces) for pieces in of_class]
            for of_class, total in zip(raw, of_all.totals, strict=True)
        ]
        if self.persist:
            tasks = keep(tasks, self.client_)
        rows = []
        for blocks, total in zip(tasks, of_all.totals, strict=True):
            grid = ClassRows.arrange(np.empty((0, units.center.size)), None, total=total, **settings).h
            rows.append(Blocks(blocks, self.block_rows, total, grid))

        means = self._mean_bandwidths(rows, of_all.n_rows.sum(axis=0))
        # Units keep the order of numbers, so the bounds of scaled columns are the scaled bounds.
        spread = np.ptp(units.transform(np.stack([of_all.low, of_all.high])), axis=0)
        learnt = Classes(
            units,
            cast(list[ClassRows], rows),
            np.where(spread > 0.0, spread, 1.0),
            spread > 0.0,
            means,
            np.array([zscores(h) for h in means]),
            None,
        )
        self._sources, self._learnt = sources, learnt
        self._keep(of_all.labels, of_all.totals, prior, learnt, learnt.relevant(self.rule, cutpoint), learnt)
        self._warn_of_empty_selections()

    def _learn_units(self, raw: list[list[Pieces]], of_all: Overview) -> Scale:
        """What `learn_scale` learns from rows at hand."""
        low, high = of_all.low, of_all.high
        if self.scale == "range":
            return range_units(low, high)
        if self.scale is None:
            return learn_scale(np.empty((0, low.size)), None, None)
        largest = largest_values(low, high)

        def mean(center: Floats, power: int) -> Floats:
            sums = [power_sums(largest, center, power, *pieces) for of_class in raw for pieces in of_class]
            of_rows: Floats = compute([tree(sums, sum)], self.client_)[0] / of_all.totals.sum()
            return of_rows

        center = mean(np.zeros_like(low), 1)
        return standard_units(low, high, center, mean(center, 2))

    def _mean_bandwidths(self, rows: list[Blocks], sizes: Integers) -> Floats:
        """What `mean_bandwidths` computes for rows at hand, at the same points."""
        random = check_random_state(self.random_state)
        points = [some_rows(int(size), self.n_points, random) for size in sizes]
        asked = [of_class.ask(_rows_at, own=at) for of_class, at in zip(rows, points, strict=True)]
        found = [
            [np.concatenate(arrays) for arrays in zip(*of_class, strict=True)]
            for of_class in compute(asked, self.client_)
        ]
        local: list[list[Floats]] = [[] for _ in rows]
        d = found[0][0].shape[1]
        with progress(sum(at.size for at in points), "Leave-one-out", self.verbose) as advance:
            for which in _batches(max(at.size for at in points), 25 * len(rows) * d):
                some = [k for k, at in enumerate(points) if at[which].size]
                start = []
                for k in some:
                    x, copies = found[k]
                    total = rows[k].total - np.minimum(copies[which], 1.0)
                    start.append(Queries(rows[k], x[which], total, points[k][which]))
                for k, (_, steps) in zip(some, descend(start, self.update, self.client_), strict=True):
                    local[k].append(rows[k].h[steps])
                    advance(len(steps))
        return np.array(
            [
                np.average(np.concatenate(h), axis=0, weights=copies)
                for h, (_, copies) in zip(local, found, strict=True)
            ]
        )

    def _estimate(self, X: ArrayLike, *, bandwidths: bool = False) -> tuple[Floats, Floats]:
        check_is_fitted(self)
        queries: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        scaled = self._scale.transform(queries)
        n_classes, d = self.bandwidths_.shape
        log_density = np.empty((len(scaled), n_classes))
        h = np.empty((len(scaled) if bandwidths else 0, n_classes, d))
        with (
            within_cluster(self.client_) as client,
            progress(
                len(scaled), "Rodeo" if self.bandwidth == "local" else "Kernel sums", self.verbose
            ) as advance,
        ):
            for which in _batches(len(scaled), self._payload()):
                found = estimates(self._densities, scaled[which], self.update, client)
                for a, (log_density_of_class, h_of_class) in enumerate(found):
                    log_density[which, a] = log_density_of_class
                    if bandwidths:
                        h[which, a] = h_of_class
                advance(len(scaled[which]))
        return log_density, h

    def _payload(self) -> int:
        """Bytes that a query sends in one reduction."""
        if self.bandwidth != "local":
            return 8 * int(self.n_features_in_)
        rows: list[Any] = [density.rows for density in self._densities]
        several = any(len(of_class.blocks) > 1 for of_class in rows)
        return (25 if several else 8) * self.bandwidths_.size

    def _check_parameters(self) -> tuple[dict[str, Any], float]:
        check_integer("block_rows", self.block_rows)
        check_integer("n_points", self.n_points)
        check_choice("persist", self.persist, (True, False))
        if self.scale in ("rank", "whiten"):
            raise ValueError(
                f"scale={self.scale!r} needs all rows in one place; on a cluster it must be 'range', "
                "'standard' or None."
            )
        if self.rule == "shadow":
            raise ValueError("rule='shadow' needs all rows in one place; on a cluster it must be 'zscore'.")
        return super()._check_parameters()

    def __sklearn_clone__(self) -> Self:
        # A client cannot be copied: the copy shares it.
        parameters = {
            name: value if name == "client" else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        return type(self)(**parameters)

    def __getstate__(self) -> dict[str, Any]:
        # A copy on a worker has the client of this worker, and no use for the source of the rows.
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_sources", None)
        return {**state, "client": None, "client_": None}


def _batches(n: int, payload: int) -> list[slice]:
    """Cut queries, each of which sends so many bytes, into batches."""
    size = max(_LEAST, _BYTES // payload)
    return [slice(first, first + size) for first in range(0, n, size)]


def _rows_at(rows: ClassRows, own: Integers) -> tuple[Floats, Floats]:
    """Scaled rows of a block and how often each counts; -1 is a row of another block."""
    inside = own[own >= 0]
    return rows.take(inside), rows.copies(inside)
