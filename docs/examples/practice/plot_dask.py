"""
What if the rows do not fit into one machine?
=============================================

:class:`~corral.dask.DaskCorralClassifier` reads training rows where they lie, on the workers of a cluster
or on disk. The fitted model is small and lies in this process. Neither the number of workers nor the
partitions change its numbers.
"""

import dask.array as da
import numpy as np

from corral.dask import DaskCorralClassifier
from corral.datasets import make_shifted_groups

X, y = make_shifted_groups(2000, groups=(1, 4, 5), random_state=0)
X_new, y_new = make_shifted_groups(500, groups=(1, 4, 5), random_state=1)

# %%
# Without a cluster this runs on threads of the process. Inside ``with distributed.Client(...)`` the same
# lines run on the cluster. Each class has 2000 rows here, which become 500 centroids.

rows, labels = da.from_array(X, chunks=(1500, 10)), da.from_array(y, chunks=1500)
classifier = DaskCorralClassifier(max_rows=500, random_state=0).fit(rows, labels)
print(f"{classifier.class_count_.sum():.0f} rows, {len(classifier.model_.data.X)} centroids")

# %%
# Predictions are lazy and have the chunks of their rows.

lazy = classifier.predict(da.from_array(X_new, chunks=(400, 10)))
print(lazy)
print(f"accuracy {(lazy.compute() == y_new).mean():.3f}")

# %%
# Other partitions give the same numbers to 1e-10.

other = DaskCorralClassifier(max_rows=500, random_state=0).fit(rows.rechunk((987, 10)), labels.rechunk(987))
np.testing.assert_allclose(other.predict_proba(X_new), classifier.predict_proba(X_new), atol=1e-10)

# %%
# ``explain`` names training rows by their positions in the whole table. ``to_local`` returns an ordinary
# classifier, which can be saved.

print(classifier.explain(X_new[:1]))
