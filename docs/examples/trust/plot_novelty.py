"""
What if the new table is in other units?
========================================

Every classifier gives every row a label, often with a high probability. A classifier with densities can also
detect that a row is unlike all training rows, for example because a column is in millimeters instead of
centimeters, a decimal point is misplaced, or the species is not in the training table.
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
# Take new flowers, and the same flowers with petal lengths in millimeters. Labels are certain in both cases.

slipped = new.assign(**{"petal length (cm)": 10 * new["petal length (cm)"]})
for name, table in {"as they are": new, "one column in millimeters": slipped}.items():
    certainty, novel = classifier.predict_proba(table).max(axis=1), classifier.is_novel(table)
    print(f"{name}: mean probability of the label {certainty.mean():.2f}, novel {novel.mean():.0%}")

# %%
# ``typicality`` returns a p-value for each class: of the training rows of the class and the row itself, the
# share that is at most as typical of the class as the row. If the p-values of all classes are small, the row
# probably belongs to none of the classes.

print(classifier.typicality(new[:1]).round(3), classifier.typicality(slipped[:1]).round(3))

# %%
# What about a species that was not in the training table? Fit two of the three species, and show all three.

in_training = species != "virginica"
two = CorralClassifier(random_state=0).fit(X[even & in_training], species[even & in_training])
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
for name in ("setosa", "versicolor", "virginica"):
    best = two.typicality(X[~even & (species == name)]).max(axis=1)
    axis.plot(np.sort(best), np.linspace(0, 1, best.size), marker=".", label=name)
axis.set(xlabel="typicality in the best class", ylabel="share of rows")
axis.set_title("Virginica was not in the training table")
axis.legend()
plt.show()

# %%
# The curve of virginica lies to the left: most of its flowers are less typical than nearly all flowers of the
# two other species. The other flowers look like versicolor, which is similar. The parameter ``level`` is the
# share of rows of the training species that may be called novel: a higher level calls more rows novel.

for significance in (0.01, 0.05, 0.1):
    novel = two.is_novel(X[~even], level=significance)
    new_species, others = novel[~in_training[~even]].mean(), novel[in_training[~even]].mean()
    print(f"level {significance}: {new_species:.0%} of virginica and {others:.0%} of the others are novel")
