"""
How is a fitted model deployed?
===============================

A model file contains only numbers and text, so that loading a file runs no code. The predictions of the
loaded model are identical in every bit.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

import corral
from corral import CorralClassifier, load_model, save_model

wines = load_wine(as_frame=True)
names = wines.target_names[wines.target]
X_train, X_test, y_train, y_test = train_test_split(wines.data, names, stratify=names, random_state=0)
classifier = CorralClassifier(random_state=0).fit(X_train, y_train)

# %%
# Save the model. The file is written completely or not at all. It contains a checksum and the versions that
# wrote it.

folder = Path(tempfile.mkdtemp())
save_model(classifier, folder / "wines.corral")
print(f"{(folder / 'wines.corral').stat().st_size / 1024:.0f} KiB, corral {corral.__version__}")

# %%
# Load the model, for example in a service. The model checks the names of the columns, so that columns cannot
# be exchanged.

served = load_model(folder / "wines.corral")
assert np.array_equal(served.predict_proba(X_test), classifier.predict_proba(X_test))
try:
    served.predict(X_test[X_test.columns[::-1]])
except ValueError as error:
    print(error)

# %%
# How long does one row take?

served.predict_proba(X_test[:1])  # the first call compiles or loads compiled code
start = time.perf_counter()
for row in range(20):
    served.predict_proba(X_test[row : row + 1])
print(f"{(time.perf_counter() - start) / 20 * 1000:.1f} ms for one row")

# %%
# A damaged file and a file that is not a model are refused.

damaged = bytearray((folder / "wines.corral").read_bytes())
damaged[-100] ^= 1
(folder / "damaged.corral").write_bytes(damaged)
try:
    load_model(folder / "damaged.corral")
except ValueError as error:
    print(str(error).replace(str(folder), "..."))

# %%
# The file contains training rows, because predictions evaluate kernels at training rows: do not give it to
# anyone who may not see these rows. On the command line, ``corral predict wines.corral new.csv --out
# labels.csv`` labels tables of any length, in chunks.
