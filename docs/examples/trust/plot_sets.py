"""
Which labels are possible?
==========================

Sometimes a single label is a guess. ``predict_set`` returns all labels that are possible: a prediction set,
which contains the right label as often as required, for each class. It has one label if the row is easy and
several if it is hard.
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
# Sets with 95 % coverage: how often do they hold the right label?

sets = classifier.predict_set(X_new, coverage=0.95)
truth = classifier.classes_ == y_new[:, None]
for label, of_class in zip(classifier.classes_, truth.T, strict=True):
    print(f"group {label}: held in {(sets & truth)[of_class].any(axis=1).mean():.1%}")
print("rows by size of their set:", np.bincount(sets.sum(axis=1)))

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
# More coverage, larger sets. The promise holds for rows that come from where the training rows came from;
# rows of one patient or one recording are exchangeable with others only by group.

wanted = np.array([0.7, 0.8, 0.9, 0.95, 0.99])
found = [classifier.predict_set(X_new, coverage=share) for share in wanted]
figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
axes[0].plot(wanted, [(each & truth).any(axis=1).mean() for each in found], marker="o")
axes[0].plot(wanted, wanted, "k:")
axes[0].set(xlabel="coverage asked for", ylabel="coverage found", title="What is promised is held")
axes[1].plot(wanted, [each.sum(axis=1).mean() for each in found], marker="o", color="tab:orange")
axes[1].set(xlabel="coverage asked for", ylabel="mean number of labels", title="What it costs")
plt.show()
