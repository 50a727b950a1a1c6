"""
What if the new table is in other units?
========================================

A classifier that only separates classes gives every row a label, often with a high probability. A density
also shows that a row is unlike all training rows: a column in millimeters instead of centimeters, a species
that was not in the training table, a misplaced decimal point.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from corral import CorralClassifier

X, y = load_iris(return_X_y=True, as_frame=True)
species = load_iris().target_names[y]
even = np.arange(len(X)) % 2 == 0
classifier = CorralClassifier(random_state=0).fit(X[even], species[even])
new = X[~even]

# %%
# New flowers, and the same flowers with petal lengths in millimetres. Labels are certain in both cases.

slipped = new.assign(**{"petal length (cm)": 10 * new["petal length (cm)"]})
for name, table in {"as they are": new, "one column in millimetres": slipped}.items():
    confidence = classifier.predict_proba(table).max(axis=1).mean()
    print(f"{name}: mean confidence {confidence:.2f}, novel {classifier.is_novel(table).mean():.0%}")

# %%
# ``typicality`` has a number for each class: the share of its rows that are at most as typical. It is a
# p-value: if it is small for all classes, the row is none of them.

print(classifier.typicality(new[:1]).round(3), classifier.typicality(slipped[:1]).round(3))

# %%
# And a species that was not there? Fit two of three, and show the third.

known = species != "virginica"
two = CorralClassifier(random_state=0).fit(X[even & known], species[even & known])
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
for name in ("setosa", "versicolor", "virginica"):
    best = two.typicality(X[~even & (species == name)]).max(axis=1)
    axis.plot(np.sort(best), np.linspace(0, 1, best.size), marker=".", label=name)
axis.set(xlabel="typicality at the best class", ylabel="share of rows")
axis.set_title("Virginica was not in the training table")
axis.legend()
plt.show()

# %%
# The unknown species lies to the left: most of its flowers are less typical than nearly all known ones, and
# the others pass for versicolor, which is like them. How many are called novel depends on the level, the
# share of known rows that may be called so by mistake.

for level in (0.01, 0.05, 0.1):
    called = two.is_novel(X[~even], level=level)
    found, mistaken = called[~known[~even]].mean(), called[known[~even]].mean()
    print(f"level {level}: {found:.0%} of virginica, {mistaken:.0%} of the others")
