"""
What if the rows do not fit into one machine?
=============================================

:class:`~corral.dask.DaskCorralClassifier` is fitted to training rows that lie on disk or on the workers of a
cluster. The fitted model is small and lies in this process. It does not depend on the number of workers, and
hardly on the partitions.
"""

import dask.array as da
import numpy as np

from corral.dask import DaskCorralClassifier
from corral.datasets import make_shifted_groups

X, y = make_shifted_groups(2000, groups=(1, 4, 5), random_state=0)
X_new, y_new = make_shifted_groups(500, groups=(1, 4, 5), random_state=1)

# %%
# Without a cluster, the fit runs on threads of this process. Inside ``with distributed.Client(...)`` the same
# lines run on the cluster. Each class has 2000 rows here, which are represented by 500 centroids.

rows, labels = da.from_array(X, chunks=(1500, 10)), da.from_array(y, chunks=1500)
classifier = DaskCorralClassifier(max_rows=500, random_state=0).fit(rows, labels)
print(f"{classifier.class_count_.sum():.0f} rows, {len(classifier.model_.data.X)} centroids")

# %%
# Predictions are computed lazily and have the same chunks as the predicted rows.

lazy = classifier.predict(da.from_array(X_new, chunks=(400, 10)))
print(lazy)
print(f"accuracy {(lazy.compute() == y_new).mean():.3f}")

# %%
# Other partitions give the same numbers to 1e-10.

other = DaskCorralClassifier(max_rows=500, random_state=0).fit(rows.rechunk((987, 10)), labels.rechunk(987))
np.testing.assert_allclose(other.predict_proba(X_new), classifier.predict_proba(X_new), atol=1e-10)

# %%
# ``explain`` identifies training rows by their positions in the whole table. ``to_local`` returns a
# ``CorralClassifier``, which can be saved.

print(classifier.explain(X_new[:1]))
