"""
Which labels are possible?
==========================

If classes overlap, the label of a row may be little better than a guess. ``predict_set`` returns all labels
that are possible for a row. Such a prediction set contains the right label with a given probability, for rows
of each class. It contains one label if the class of a row is clear, and several labels if it is not.
"""

import matplotlib.pyplot as plt
import numpy as np

from corral import CorralClassifier
from corral.datasets import make_shifted_groups

X, y = make_shifted_groups(100, random_state=0)
X_new, y_new = make_shifted_groups(400, random_state=1)
classifier = CorralClassifier(random_state=0).fit(X, y)
print(f"accuracy {classifier.score(X_new, y_new):.3f}")

# %%
# How often do sets with 95% coverage contain the right label?

sets = classifier.predict_set(X_new, coverage=0.95)
truth = classifier.classes_ == y_new[:, None]
for label, in_group in zip(classifier.classes_, truth.T, strict=True):
    print(f"group {label}: {(sets & truth)[in_group].any(axis=1).mean():.1%} of the sets contain it")
print("rows by number of labels in their set:", np.bincount(sets.sum(axis=1)))

# %%
# The five groups differ in the first two variables. Sets with several labels lie where groups overlap.

size = sets.sum(axis=1)
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
points = axis.scatter(*X_new[:, :2].T, c=size, cmap="viridis_r", s=8)
figure.colorbar(points, ticks=range(6), label="labels in the set")
for label in classifier.classes_:
    axis.annotate(str(label), X_new[y_new == label, :2].mean(axis=0), fontsize=18, weight="bold")
axis.set(xlabel="x0", ylabel="x1", title="How many labels are possible")
plt.show()

# %%
# With a higher coverage, sets contain more labels. The coverage is guaranteed for new rows from the same
# source as the training rows. If several rows come from one patient or recording, pass ``groups`` to ``fit``.

required = np.array([0.7, 0.8, 0.9, 0.95, 0.99])
sets = [classifier.predict_set(X_new, coverage=coverage) for coverage in required]
figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
axes[0].plot(required, [(each & truth).any(axis=1).mean() for each in sets], marker="o")
axes[0].plot(required, required, "k:")
axes[0].set(xlabel="required coverage", ylabel="measured coverage", title="Coverage")
axes[1].plot(required, [each.sum(axis=1).mean() for each in sets], marker="o", color="tab:orange")
axes[1].set(xlabel="required coverage", ylabel="mean number of labels", title="Size of the sets")
plt.show()
