"""DaskCorralClassifier: a pool of class densities for rows that do not fit into one machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from corral.dask.categories import learn_encoding
from corral.dask.pool import all_rows, learn_cluster_pool
from corral.dask.reductions import current_client
from corral.dask.rows import as_collection, partitions, survey
from corral.estimators.corral_classifier import MAX_ROWS, CorralClassifier
from corral.estimators.validation import check_integer, take_names_from, unchanged_by_errors


@dataclass(kw_only=True, eq=False, repr=False)
class DaskCorralClassifier(CorralClassifier):
    """`CorralClassifier` of training rows on the workers of a Dask cluster, or on disk.

    The rows are read partition by partition, three times: to count them, to sample rows of each class, and to
    compress the classes. The result is an ordinary model of few rows in this process. It predicts dask
    collections block by block, explains rows, and can be written to reports.

    The same partitions give the same bits on any number of workers, and other partitions the same numbers to
    1e-10: rows are sampled by their positions. If no class has more than `max_rows` rows, the model equals
    that of `CorralClassifier` for the same rows.

    Parameters
    ----------
    client : distributed.Client, default=None
        The cluster. None means dask's default: the cluster of the current client, or threads of this process
        without any network.
    block_rows : int, default=100_000
        Rows of a class that are compressed at once, independent of partitions; and rows in a partition of a
        table in memory.
    max_rows : int, default=3000
        As in `CorralClassifier`.
    priors, class_weight, min_effect, categorical_features, n_jobs, verbose, random_state
        As in `CorralClassifier`; the search runs on threads of this process, predictions of collections run
        on the cluster.

    Attributes
    ----------
    client_ : distributed.Client or None
        The cluster that has read the rows; None for threads of this process.
    members_, member_weights_, cv_accuracy_, model_, classes_, class_count_, markers_, and others
        As in `CorralClassifier`. `class_count_` counts all rows.

    See Also
    --------
    CorralClassifier : For rows that fit one machine. Its predictions take dask collections, too.

    Notes
    -----
    `X` and `y`, and weights and groups if there are any, are dask arrays or dataframes with the same
    partitions, which may be empty or of unknown size, or arrays and frames in memory. A frame may hold text,
    categories, booleans and missing values. The index of frames is ignored. Duplicates are merged, and groups
    left out, among the sampled rows.

    Each worker holds one partition per thread, and a few times as much for a moment: partitions should be
    small relative to its memory. A lost worker is replaced, and its tasks are repeated.

    Examples
    --------
    >>> import dask.array as da
    >>> from corral.dask import DaskCorralClassifier
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(200, groups=(4, 5), random_state=0)
    >>> X_test, y_test = make_shifted_groups(150, groups=(4, 5), random_state=1)
    >>> X, y = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    >>> classifier = DaskCorralClassifier(max_rows=100, random_state=0).fit(X, y)  # real tables need more
    >>> classifier.score(X_test, y_test) > 0.98
    True
    >>> classifier.class_count_
    array([200., 200.])
    >>> classifier.predict(da.from_array(X_test, chunks=(100, -1)))
    dask.array<..., shape=(300,), dtype=int64, chunksize=(100,), chunktype=numpy.ndarray>
    """

    client: Any = None
    block_rows: int = 100_000
    max_rows: int = MAX_ROWS

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn a pool of class densities from rows on a cluster.

        Parameters
        ----------
        X : dask array or dataframe, or array-like, of shape (n_samples, n_features)
            Training rows, possibly with missing values; frames may hold text, categories and booleans.
        y : dask array or series, or array-like, of shape (n_samples,)
            Their classes; at least two.
        sample_weight : dask array or series, or array-like, of shape (n_samples,), default=None
            Weights of the rows, up to a common factor; weight 0 equals removal.
        groups : dask array or series, or array-like, of shape (n_samples,), default=None
            Group of each row: whatever leaves a row out leaves its group out.

        Returns
        -------
        self : estimator
        """
        with unchanged_by_errors(self):
            self._check_parameters()
            if y is None:
                raise ValueError("DaskCorralClassifier requires y to be passed, but the target y is None.")
            self.client_ = current_client(self.client)
            X = as_collection(X, self.block_rows)
            self._check_columns(X)
            self.encoding_ = learn_encoding(X, self.categorical_features, self.client_)
            self._name_rows(None)
            sources = partitions(X, y, sample_weight, groups, self.encoding_)
            sources, overview = survey(sources, self.client_)
            if (overview.n_rows.sum(axis=0) <= self.max_rows).all():
                training = all_rows(sources, overview, self.encoding_.counts, self.client_)
                return self._learn_at_once(training)
            self.model_ = learn_cluster_pool(
                sources,
                overview,
                self._settings(overview.labels, overview.totals),
                self.encoding_.counts,
                self.block_rows,
                check_random_state(self.random_state),
                self._computation(),
                self.client_,
            )
            return self

    @available_if(lambda estimator: False)  # the model does not keep all rows
    def partial_fit(self, *args: Any, **kwargs: Any) -> Self:
        """Unavailable."""
        raise AssertionError

    def _check_parameters(self) -> float:
        """Refuse a bad parameter before any work; return the smallest effect of a marker."""
        check_integer("block_rows", self.block_rows)
        check_integer("max_rows", self.max_rows)
        return super()._check_parameters()

    def to_local(self) -> CorralClassifier:
        """Return a `CorralClassifier` with the same model, which needs no cluster."""
        check_is_fitted(self)
        shared = CorralClassifier().get_params().keys() & self.get_params().keys()
        local = CorralClassifier(**{name: getattr(self, name) for name in shared})
        take_names_from(self, local)
        local.model_ = self.model_
        return local

    def __sklearn_clone__(self) -> Self:
        # A client cannot be copied: both estimators share it.
        parameters = {
            name: value if name == "client" else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        return type(self)(**parameters)

    def __getstate__(self) -> dict[str, Any]:
        # On a worker, the estimator uses the client of the worker, and the thread of its task.
        return {**super().__getstate__(), "client": None, "client_": None, "n_jobs": None}

    def _check_columns(self, X: Any) -> None:
        """Keep the number of columns of a collection, and their names if it has any."""
        names = getattr(X, "columns", None)
        empty = np.empty((0, X.shape[1])) if names is None else pd.DataFrame(columns=names, dtype=np.float64)
        validate_data(self, empty, ensure_min_samples=0)
