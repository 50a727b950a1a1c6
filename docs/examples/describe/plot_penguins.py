"""
What marks each species of penguin?
===================================

The table of the Palmer penguins has numbers on several scales, text columns and missing values. The
classifier is fitted to this table directly, without imputing or encoding.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from corral import CorralClassifier, ExplanationDisplay, RelevanceDisplay
from corral.datasets import load_penguins

penguins, species = load_penguins(return_X_y=True)
penguins.head()

# %%
# Some rows lack a measurement, and eleven rows lack the sex.

penguins.isna().sum()

# %%
# Hold out a random third of the rows. Missing values need not be filled in: the classifier uses the other
# values of a row.

train, new, y_train, y_new = train_test_split(
    penguins, species, test_size=1 / 3, stratify=species, random_state=0
)
classifier = CorralClassifier(random_state=0).fit(train, y_train)
print(f"accuracy on held-out rows: {classifier.score(new, y_new):.3f}")

# %%
# :meth:`~corral.CorralClassifier.describe` returns what marks each species: the variables in which the
# species differs from the others, the direction, and typical values. Each difference has been tested: if a
# species differed in no variable, the probability that it gets any marker would be at most 1%.

classifier.describe()

# %%
# A map shows the same effects: red where the values of a species are higher than the values of the others,
# blue where they are lower.

RelevanceDisplay.from_estimator(classifier)
plt.show()

# %%
# Why did a penguin get its label? Each value is evidence for the label or for its rival, the class with the
# next highest prior times density. Among the birds without missing values, take the bird with the least
# certain label.

complete = new.notna().all(axis=1)
row = int(np.where(complete, classifier.predict_proba(new).max(axis=1), 1).argmin())
print(classifier.explain(new.iloc[[row]]))

# %%
# The same evidence as a picture, beside the training rows that support the label:

ExplanationDisplay.from_estimator(classifier, new, sample=row)
plt.show()

# %%
# The same evidence as a table with one line per variable:

classifier.explain(new.iloc[[row]]).to_frame()
