"""`DaskCorralClassifier`, a `CorralClassifier` of training rows that need not fit into one machine."""

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
    """`CorralClassifier` that is fitted to training rows on the workers of a Dask cluster, or on disk.

    The rows are read partition by partition, three times: to count rows, to sample rows of each class, and to
    compress large classes, that is to replace their rows by centroids. Columns of text and categories are
    read once more, to find the categories. The fitted model is in the memory of this process and has the
    methods of `CorralClassifier`; it predicts dask collections block by block.

    The result depends on the order of the rows, but not on the number of workers. With other partitions,
    results agree to 1e-10. If no class has more than `max_rows` rows, the model equals that of
    `CorralClassifier`.

    Parameters
    ----------
    client : distributed.Client, default=None
        Client of the cluster. None for the current client of dask or, if there is none, for threads of this
        process.
    block_rows : int, default=100_000
        Number of rows of a class that a task compresses, independent of the partitions; also the number of
        rows per partition into which a table in memory is divided.
    max_rows : int, default=3000
        As in `CorralClassifier`.
    priors, class_weight, min_effect, categorical_features, n_jobs, verbose, random_state
        As in `CorralClassifier`. Members are fitted on threads of this process; predictions of collections
        run on the cluster.

    Attributes
    ----------
    client_ : distributed.Client or None
        Client that was used by `fit`; None for threads of this process.
    members_, member_weights_, cv_accuracy_, model_, classes_, class_count_, markers_, and others
        As in `CorralClassifier`. `class_count_` includes all rows, not only the sample.

    See Also
    --------
    CorralClassifier : For training rows that fit into memory; also predicts dask collections.

    Notes
    -----
    `X`, `y`, weights and groups are dask arrays or dataframes with the same partitions, or arrays
    and frames in memory. Partitions may be empty or of unknown size. A frame may have text, categories,
    booleans and missing values. Indices of frames are ignored. Duplicates are merged, and groups are left
    out, only within the sampled rows.

    Each thread of a worker needs memory for several partitions. If a worker is lost, other workers
    repeat its tasks.

    Examples
    --------
    >>> import dask.array as da
    >>> from corral.dask import DaskCorralClassifier
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(200, groups=(4, 5), random_state=0)
    >>> X_test, y_test = make_shifted_groups(150, groups=(4, 5), random_state=1)
    >>> X, y = da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)
    >>> classifier = DaskCorralClassifier(max_rows=100, random_state=0).fit(X, y)  # use more for real tables
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
        """Fit a pool of class densities to rows on a cluster.

        Parameters
        ----------
        X : dask array or dataframe, or array-like, of shape (n_samples, n_features)
            Training rows, possibly with missing values; frames may hold text, categories and booleans.
        y : dask array or series, or array-like, of shape (n_samples,)
            Classes of the rows; at least two.
        sample_weight : dask array or series, or array-like, of shape (n_samples,), default=None
            Weights of the rows. A common factor does not change the result; rows with weight 0 are left out.
        groups : dask array or series, or array-like, of shape (n_samples,), default=None
            Group of each row. If a row is left out of a density, all rows of its group are left out.

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

    @available_if(lambda estimator: False)  # the model does not have all rows
    def partial_fit(self, *args: Any, **kwargs: Any) -> Self:
        """Unavailable."""
        raise AssertionError

    def _check_parameters(self) -> float:
        """Raise ValueError if a parameter is not valid; return the smallest effect of a marker."""
        check_integer("block_rows", self.block_rows)
        check_integer("max_rows", self.max_rows)
        return super()._check_parameters()

    def to_local(self) -> CorralClassifier:
        """Return a `CorralClassifier` with the same model, which does not need a cluster.

        Returns
        -------
        local : CorralClassifier
        """
        check_is_fitted(self)
        shared = CorralClassifier().get_params().keys() & self.get_params().keys()
        local = CorralClassifier(**{name: getattr(self, name) for name in shared})
        take_names_from(self, local)
        local.model_ = self.model_
        return local

    def __sklearn_clone__(self) -> Self:
        # A client cannot be copied, so the clone has the same client.
        parameters = {
            name: value if name == "client" else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        return type(self)(**parameters)

    def __getstate__(self) -> dict[str, Any]:
        # The client and the threads of this process do not exist on a worker that receives the estimator.
        return {**super().__getstate__(), "client": None, "client_": None, "n_jobs": None}

    def _check_columns(self, X: Any) -> None:
        """Set `n_features_in_` and, if the columns of X have names, `feature_names_in_`."""
        names = getattr(X, "columns", None)
        empty = np.empty((0, X.shape[1])) if names is None else pd.DataFrame(columns=names, dtype=np.float64)
        validate_data(self, empty, ensure_min_samples=0)
