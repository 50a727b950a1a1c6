"""DaskRodeoClassifier: algorithms 1 to 3 on rows that no single machine holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from corral._core.relevance import MAX_POINTS
from corral._core.settings import ModelSettings
from corral._estimators.base import BandwidthsOfClasses
from corral._estimators.classifier import RodeoClassifier
from corral._estimators.encoding import Encoding
from corral._estimators.validation import (
    check_choice,
    check_integer,
    check_priors,
    take_names_from,
    unchanged_by_errors,
)
from corral._estimators.warned import advice_on_units, warn_of_empty_selections
from corral.dask._cluster import OnCluster
from corral.dask._model import ClusterModel
from corral.dask._reductions import compute, current_client
from corral.dask._rows import as_collection, overview, partitions, refuse_other_columns, summary


class DaskRodeoClassifier(OnCluster, BandwidthsOfClasses):
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
    bandwidth, features, update, beta, c0, cutpoint, priors, min_bandwidth, random_state
        As in `RodeoClassifier`. ``update="sequential"`` takes a reduction per variable and step: it is slow.
    scale : {"range", "standard"} or None, default="range"
        As in `RodeoClassifier`. "rank" is refused: ranks need every value in one place.
    n_jobs : int, default=None
        Read by the estimator that `to_local` returns; here the cluster decides.
    verbose : int, default=0
        If positive, show a progress bar on the standard error stream.

    Attributes
    ----------
    model_ : ClusterModel
        All that `fit` has learnt, and where the rows are.
    client_ : distributed.Client or None
        The cluster that keeps the rows; None for threads of this process.
    n_copies_ : int
        Always 0: copies of rows would have to be looked for among all partitions, and count as separate rows.
    classes_, class_count_, class_prior_, initial_bandwidth_, bandwidths_, zscores_, relevant_
        As in `RodeoClassifier`.
    n_features_in_ : int
        Number of variables seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, if `X` had any.

    See Also
    --------
    RodeoClassifier : For rows that fit one machine. Its predictions take dask collections, too.

    Notes
    -----
    `X` and `y` are dask arrays or dataframes with the same partitions, which may be empty or of unknown size;
    arrays and frames at hand will do as well. They hold numbers without gaps, and there are no groups:
    `RodeoClassifier` takes gaps, levels and groups. Predictions of collections are lazy and keep chunks and
    index, those of arrays are computed at once. `partial_fit`, `bandwidth_path`, `explain` and
    `selection_frequency` need the rows in one place: `to_local` brings them there. With `persist` the model
    lives as long as the cluster.

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

    def __init__(
        self,
        *,
        client: Any = None,
        block_rows: int = 100_000,
        n_points: int = MAX_POINTS,
        persist: bool = True,
        bandwidth: Literal["local", "class"] = "local",
        features: Literal["all", "selected"] = "all",
        update: Literal["simultaneous", "sequential"] = "simultaneous",
        scale: Literal["range", "standard"] | None = "range",
        beta: float = 0.9,
        c0: float = 1.0,
        cutpoint: float = -1.0,
        priors: Literal["uniform", "empirical"] | ArrayLike = "uniform",
        min_bandwidth: float | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.client = client
        self.block_rows = block_rows
        self.n_points = n_points
        self.persist = persist
        self.bandwidth = bandwidth
        self.features = features
        self.update = update
        self.scale = scale
        self.beta = beta
        self.c0 = c0
        self.cutpoint = cutpoint
        self.priors = priors
        self.min_bandwidth = min_bandwidth
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    model_: ClusterModel

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Put the rows of each class into blocks and find the variables that describe it.

        Parameters
        ----------
        X : dask array or dataframe, or array-like, of shape (n_samples, n_features)
            Training rows.
        y : dask array or series, or array-like, of shape (n_samples,)
            Their classes; at least two.
        sample_weight : dask array or series, or array-like, of shape (n_samples,), default=None
            How much each row matters, up to a common factor; weight 0 equals removal.

        Returns
        -------
        self : estimator
        """
        with unchanged_by_errors(self):
            settings = self.model_settings()
            self.client_ = current_client(self.client)
            X = as_collection(X, self.block_rows)
            refuse_other_columns(X)
            self._check_columns(X)
            sources = partitions(X, y, sample_weight)
            of_all = overview(compute([summary(source) for source in sources], self.client_))
            self.model_ = ClusterModel.learn(
                sources,
                of_all,
                check_priors(self.priors, of_all.totals),
                settings,
                check_random_state(self.random_state),
                self._computation(),
                client=self.client_,
                block_rows=self.block_rows,
                n_points=self.n_points,
                persist=self.persist,
            )
            warn_of_empty_selections(self.model_, advice_on_units(self.model_, ("range",)))
        return self

    def to_local(self) -> RodeoClassifier:
        """Return the ordinary estimator with the same bandwidths and variables; brings all rows here."""
        check_is_fitted(self)
        local = self._local()
        local.model_ = self.model_.to_local()
        take_names_from(self, local)
        local.encoding_ = Encoding.of_numbers(self.n_features_in_)
        return local

    def model_settings(self) -> ModelSettings:
        """Check all parameters but the priors, and return those that a model depends on."""
        check_integer("block_rows", self.block_rows)
        check_integer("n_points", self.n_points)
        check_choice("persist", self.persist, (True, False))
        if self.scale not in ("range", "standard", None):
            raise ValueError(
                f"scale={self.scale!r} needs all rows in one place; on a cluster it must be 'range', "
                "'standard' or None."
            )
        return self._local().model_settings()

    def _local(self) -> RodeoClassifier:
        """Make an unfitted RodeoClassifier with the same parameters."""
        shared = RodeoClassifier().get_params().keys() & self.get_params().keys()
        return RodeoClassifier(**{name: getattr(self, name) for name in shared})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        tags.input_tags.categorical = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        # A copy on a worker has no use for the source of the rows.
        state = super().__getstate__()
        if "model_" in state:
            state["model_"] = replace(state["model_"], client=None, sources=None)
        return state
