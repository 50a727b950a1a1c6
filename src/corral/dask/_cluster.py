"""What estimators on a cluster share: a client that copies do without, and columns that are checked first."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import validate_data

from corral._estimators.reference import InReference


class OnCluster(InReference, BaseEstimator):
    """An estimator that is fitted on the cluster of a client."""

    client: Any
    client_: Any

    def _check_columns(self, X: Any) -> None:
        """Keep the number of columns of a collection, and their names if it has any."""
        names = getattr(X, "columns", None)
        empty = np.empty((0, X.shape[1])) if names is None else pd.DataFrame(columns=names, dtype=np.float64)
        validate_data(self, empty, ensure_min_samples=0)

    def __sklearn_clone__(self) -> Self:
        # A client cannot be copied: the copy shares it.
        parameters = {
            name: value if name == "client" else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        return type(self)(**parameters)

    def __getstate__(self) -> dict[str, Any]:
        # A copy on a worker has the client of this worker.
        return {**super().__getstate__(), "client": None, "client_": None}
