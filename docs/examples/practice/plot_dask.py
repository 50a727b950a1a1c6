"""
What if the rows do not fit one machine?
========================================

:class:`~corral.dask.DaskRodeoClassifier` leaves training rows where they lie, on the workers of a cluster
or on disk, and gives the same bits for any number of workers and partitions.
"""

import dask.array as da
import numpy as np

from corral import RodeoClassifier
from corral.dask import DaskRodeoClassifier
from corral.datasets import make_shifted_groups

X, y = make_shifted_groups(400, random_state=0)
X_new, y_new = make_shifted_groups(200, random_state=1)

# %%
# Without a cluster this runs on threads of the process; inside ``with distributed.Client(...)`` the same
# lines run there. The rows of each class are put into blocks, and the Rodeo asks blocks for sums only.

rows, labels = da.from_array(X, chunks=(500, 10)), da.from_array(y, chunks=500)
classifier = DaskRodeoClassifier(bandwidth="class").fit(rows, labels)
print(classifier.relevant_.astype(int))

# %%
# Predictions are lazy and have the chunks of their rows.

lazy = classifier.predict(da.from_array(X_new, chunks=(250, 10)))
print(lazy)
print(f"accuracy {(lazy.compute() == y_new).mean():.3f}")

# %%
# Another partition, the same bits; and those of the ordinary classifier.

other = DaskRodeoClassifier(bandwidth="class").fit(rows.rechunk((321, 10)), labels.rechunk(321))
local = RodeoClassifier(bandwidth="class").fit(X, y)
np.testing.assert_array_equal(other.bandwidths_, classifier.bandwidths_)
np.testing.assert_array_equal(local.bandwidths_, classifier.bandwidths_)

# %%
# ``to_local`` brings the model to this process, to explain, report and save it.

print(classifier.to_local().explain(X_new[:1]))
