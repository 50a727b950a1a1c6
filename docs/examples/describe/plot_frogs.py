"""
Does it recognize a frog that is not in the table?
==================================================

Syllables of one recording resemble each other. A classifier that was fitted to some syllables of a recording
recognizes the other syllables, but perhaps not the syllables of another animal. If rows belong together, such
as the syllables of a recording or the visits of a patient, pass ``groups``. The rows of one group are then
left out together.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GroupKFold, KFold

from corral import CorralClassifier
from corral.datasets import load_anuran

# %%
# If the environment variable ``CORRAL_DATA`` is the path of a folder with UCI's table Anuran Calls, this
# example uses the table. Otherwise it simulates calls: five species with eight recordings each, and an accent
# for each recording.


def draw_calls(rng, n_species=5, n_recordings=8, n_syllables=15, n_coefficients=22):
    """Simulate syllables: the sum of a part of the species, a part of the recording and noise."""
    species = rng.normal(0, 1, (n_species, 1, 1, n_coefficients))
    accent = rng.normal(0, 1.5, (n_species, n_recordings, 1, n_coefficients))
    X = species + accent + rng.normal(0, 1, (n_species, n_recordings, n_syllables, n_coefficients))
    numbers = np.indices(X.shape[:3]).reshape(3, -1)
    return X.reshape(-1, n_coefficients), numbers[0].astype(str), numbers[0] * n_recordings + numbers[1]


rng = np.random.default_rng(0)
if os.environ.get("CORRAL_DATA"):
    frogs = load_anuran()
    kept = rng.choice(len(frogs.target), 1200, replace=False)
    X, y, recording = frogs.data[kept], frogs.target[kept], frogs.record_id[kept]
else:
    X, y, recording = draw_calls(rng)
print(f"{len(X)} syllables, {len(set(y))} species, {len(set(recording))} recordings")

# %%
# Fit the classifier twice: without groups, and with the recordings as groups. ``cv_accuracy_`` estimates the
# accuracy on new rows without groups, and on new recordings with groups.

by_row = CorralClassifier(random_state=0).fit(X, y)
by_recording = CorralClassifier(random_state=0).fit(X, y, groups=recording)
print(f"expected accuracy by row {by_row.cv_accuracy_:.3f}, by recording {by_recording.cv_accuracy_:.3f}")

# %%
# Which accuracy is right? Hold out single rows, then whole recordings, and measure.


def accuracy(splits):
    """Accuracy over three parts that are held out in turn."""
    hits = []
    for train, test in splits:
        model = CorralClassifier(random_state=0).fit(X[train], y[train], groups=recording[train])
        hits.append(model.predict(X[test]) == y[test])
    return np.concatenate(hits).mean()


new_rows = accuracy(KFold(3, shuffle=True, random_state=0).split(X))
new_recordings = accuracy(GroupKFold(3).split(X, y, recording))
print(f"measured: other syllables {new_rows:.3f}, other recordings {new_recordings:.3f}")

# %%
# The accuracy by row is valid for other syllables of the same recordings. The accuracy by recording is valid
# for new animals. With a few dozen recordings, its standard error is some hundredths.

figure, axis = plt.subplots(figsize=(7, 2.8), layout="constrained")
axis.barh([3, 2], [by_row.cv_accuracy_, new_rows], color="tab:orange", label="by row")
axis.barh([1, 0], [by_recording.cv_accuracy_, new_recordings], color="tab:blue", label="by recording")
axis.set_yticks([3, 2, 1, 0], ["cv_accuracy_", "other syllables", "cv_accuracy_, groups", "other recordings"])
axis.set(xlim=(0, 1.5), xlabel="accuracy", title="Expected and measured accuracy")
axis.legend(loc="center right")
plt.show()
