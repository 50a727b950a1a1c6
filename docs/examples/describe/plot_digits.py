"""
Which pixels make a four?
=========================

The table has handwritten digits of 8 x 8 pixels. The classifier labels them and lists, for every digit, the
pixels that are darker or lighter than in the other digits.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from corral import CorralClassifier

digits = load_digits()
X_train, X_test, y_train, y_test = train_test_split(
    digits.data, digits.target, train_size=400, stratify=digits.target, random_state=0
)
classifier = CorralClassifier(random_state=0).fit(X_train, y_train)
print(f"expected accuracy {classifier.cv_accuracy_:.3f}, on new rows {classifier.score(X_test, y_test):.3f}")

# %%
# :meth:`~corral.CorralClassifier.describe` compares each digit with the others. In the pictures red pixels
# are darker in this digit than in the others, blue pixels are lighter, and white pixels do not mark it.

description = classifier.describe()
figure, axes = plt.subplots(2, 5, figsize=(9, 4), layout="constrained")
for digit, axis in zip(classifier.classes_, axes.flat, strict=True):
    effect = description.effect[digit] * description.markers[digit]
    shown = axis.imshow(effect.reshape(8, 8), cmap="RdBu_r", vmin=-1, vmax=1)
    axis.set(title=f"digit {digit}", xticks=[], yticks=[])
figure.colorbar(shown, ax=axes, label="effect (Cliff's delta)", shrink=0.8)
figure.suptitle("Pixels that mark each digit")
plt.show()

# %%
# Which pixels are evidence for a label? Take a digit with a wrong label (or, if there is none, the digit with
# the least certain label).

probability = classifier.predict_proba(X_test)
wrong = classifier.predict(X_test) != y_test
row = int((probability.max(axis=1) - wrong).argmin())
why = classifier.explain(X_test[[row]])
figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
axes[0].imshow(X_test[row].reshape(8, 8), cmap="gray_r")
axes[0].set(title=f"a {y_test[row]}, labeled {why.label[0]}", xticks=[], yticks=[])
limit = abs(why.evidence).max()
shown = axes[1].imshow(why.evidence.reshape(8, 8), cmap="PuOr_r", vmin=-limit, vmax=limit)
axes[1].set(title=f"evidence for {why.label[0]} over {why.rival[0]}", xticks=[], yticks=[])
figure.colorbar(shown, ax=axes[1], shrink=0.8)
plt.show()

# %%
# The next picture shows the training rows with the largest shares of the density of the label at this digit.

figure, axes = plt.subplots(1, 5, figsize=(9, 2.2), layout="constrained")
for position, share, axis in zip(why.rows[0], why.shares[0], axes, strict=False):
    axis.imshow(X_train[position].reshape(8, 8), cmap="gray_r")
    axis.set(title=f"a {y_train[position]}: {share:.0%}", xticks=[], yticks=[])
figure.suptitle("Training rows behind the label")
plt.show()
