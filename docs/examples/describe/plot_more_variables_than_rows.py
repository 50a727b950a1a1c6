"""
Can 2,000 variables be searched with 60 rows?
=============================================

Tables of gene expression have few rows and thousands of columns. This table has four groups of 15 rows. Ten
columns mark each group; all other columns are noise.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from corral import CorralClassifier, MarkerSelector

rng = np.random.default_rng(0)
n_groups, n_rows, n_variables, n_markers = 4, 15, 2000, 10


def draw(n):
    """Draw n rows of each group; group g is shifted by 1.8 in the variables 10 g to 10 g + 9."""
    y = np.repeat(np.arange(n_groups), n)
    X = rng.standard_normal((y.size, n_variables))
    for group in range(n_groups):
        X[y == group, n_markers * group : n_markers * (group + 1)] += 1.8
    return X, y


X, y = draw(n_rows)
X_new, y_new = draw(100)

# %%
# :class:`~corral.MarkerSelector` tests one variable at a time by its ranks and corrects for the number of
# variables. Thousands of columns take less than a second.

start = time.perf_counter()
selector = MarkerSelector().fit(X, y)
print(f"{time.perf_counter() - start:.1f} s")
for group, markers in zip(selector.classes_, selector.markers_, strict=True):
    selected = np.flatnonzero(markers)
    right = np.isin(selected, np.arange(n_markers * group, n_markers * (group + 1))).sum()
    print(f"group {group}: {selected.size} markers, {right} of them among its {n_markers} variables")

# %%
# With 15 rows per group and 2,000 tests, the selector misses some variables, but the selected variables are
# right. The labels of ``CorralClassifier`` do not depend on these markers: each member uses all variables, or
# selects variables without the rows of the fold that it predicts, so that ``cv_accuracy_`` is not too high.

classifier = CorralClassifier(random_state=0).fit(X, y)
print(f"expected accuracy {classifier.cv_accuracy_:.2f}, on new rows {classifier.score(X_new, y_new):.2f}")

# %%
# What happens if the variables have no information? With shuffled labels the accuracy should be about 0.25,
# the accuracy of guessing.

nothing = CorralClassifier(random_state=0).fit(X, rng.permutation(y))
print(f"expected accuracy with shuffled labels {nothing.cv_accuracy_:.2f}")
print("markers:", int(nothing.markers_.sum()))

# %%
# The picture shows the effect of the first 80 variables. The first ten mark group 0, the next ten group 1,
# and so on; variables from 40 on are noise.

strength = np.abs(classifier.describe().effect)
figure, axis = plt.subplots(figsize=(8, 3), layout="constrained")
for group in range(n_groups):
    axis.plot(np.arange(80), strength[group, :80], marker=".", label=f"group {group}")
axis.set(
    xlabel="variable (0 to 39 are markers, ten for each group)", ylabel="size of the effect", ylim=(0, 1)
)
axis.set_title("How strongly the first 80 of 2,000 variables mark each group")
axis.legend(ncols=4, loc="upper right")
plt.show()
