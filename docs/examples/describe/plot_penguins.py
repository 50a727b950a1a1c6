"""
What marks each species of penguin?
===================================

The table of the Palmer penguins is a typical one: numbers on several scales, text columns and missing
values. It is fitted as it is, without imputing or encoding.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from corral import CorralClassifier, ExplanationDisplay, RelevanceDisplay
from corral.datasets import load_penguins

penguins, species = load_penguins(return_X_y=True)
penguins.head()

# %%
# Some rows lack a measurement, and eleven the sex.

penguins.isna().sum()

# %%
# A random third of the rows is held out. Missing values need no care: the density of a row is that of the
# values that it has.

train, new, y_train, y_new = train_test_split(
    penguins, species, test_size=1 / 3, stratify=species, random_state=0
)
classifier = CorralClassifier(random_state=0).fit(train, y_train)
print(f"accuracy on the other rows: {classifier.score(new, y_new):.3f}")

# %%
# :meth:`~corral.CorralClassifier.describe` says what marks each species: in which variables it differs
# from the others, in which direction, and which values are typical. Each difference has been tested; in pure
# noise a species would get one with a probability of at most 1 %, over all variables together.

classifier.describe()

# %%
# The same as a map: red where a species is higher than its background, blue where it is lower.

RelevanceDisplay.from_estimator(classifier)
plt.show()

# %%
# Why did a penguin get its label? Each variable has evidence for the label or for its rival. Take the bird
# with the least certain label, among those with all values.

complete = new.notna().all(axis=1)
row = int(np.where(complete, classifier.predict_proba(new).max(axis=1), 1).argmin())
print(classifier.explain(new.iloc[[row]]))

# %%
# The same as a picture, beside the training rows that the label rests on:

ExplanationDisplay.from_estimator(classifier, new, sample=row)
plt.show()

# %%
# As a table, one line per variable, for a program to read:

classifier.explain(new.iloc[[row]]).to_frame()
