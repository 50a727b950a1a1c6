"""
When should a doctor look instead?
==================================

Overlooking a tumor costs more than a needless second look. With calibrated probabilities, the label with the
smallest expected cost is simple arithmetic. So is abstaining, because asking an expert has a price as well.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from corral import CorralClassifier

cancer = load_breast_cancer(as_frame=True)
names = cancer.target_names[cancer.target]
X_train, X_test, y_train, y_test = train_test_split(
    cancer.data, names, train_size=200, stratify=names, random_state=0
)
classifier = CorralClassifier(random_state=0).fit(X_train, y_train)
print(f"accuracy {classifier.score(X_test, y_test):.3f}")

# %%
# Are the probabilities right? Among rows that are said to be malignant with 80 %, four in five should be.

probability = classifier.predict_proba(X_test)[:, list(classifier.classes_).index("malignant")]
bins = np.linspace(0, 1, 6)
place = np.clip(np.digitize(probability, bins) - 1, 0, 4)
for k in range(5):
    share = (y_test[place == k] == "malignant").mean()
    print(f"{bins[k]:.0%} to {bins[k + 1]:.0%}: {share:.0%} of {np.sum(place == k)} rows")

# %%
# The costs: to overlook a tumour 50, a false alarm 1, and to ask an expert 0.5. Right decisions cost
# nothing.

costs = {"malignant": {"benign": 50.0}, "benign": {"malignant": 1.0}}
plain = classifier.predict(X_test)
careful = classifier.decide(X_test, costs)
asking = classifier.decide(X_test, costs, reject_cost=0.5)  # None where an expert is asked


def total(decided):
    """What the decisions cost, all test rows together, and how often each kind was made."""
    asked = np.array([label is None for label in decided])
    overlooked = (y_test == "malignant") & (decided == "benign")
    alarms = (y_test == "benign") & (decided == "malignant")
    kinds = overlooked.sum(), alarms.sum(), asked.sum()
    return np.dot(kinds, (50, 1, 0.5)), *kinds


results = {"most probable label": plain, "least expected cost": careful, "the same, or ask": asking}
for name, decided in results.items():
    cost, overlooked, alarms, asked = total(decided)
    print(f"{name:20} cost {cost:6.1f}: {overlooked} overlooked, {alarms} false alarms, {asked} asked")

# %%

figure, axis = plt.subplots(figsize=(7, 2.4), layout="constrained")
axis.barh(list(results), [total(decided)[0] for decided in results.values()], color="tab:blue")
axis.set(xlabel=f"cost of {len(y_test)} decisions", title="What decisions cost")
plt.show()

# %%
# On the command line: ``corral predict model.corral new.csv --costs costs.csv``.
