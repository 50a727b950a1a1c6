"""
When should a doctor look instead?
==================================

Overlooking a tumor costs more than a needless second look. With calibrated probabilities, ``decide`` returns
the label with the smallest expected cost, or no label if asking an expert costs less.
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
# Are the probabilities right? Of the rows with a probability of 80% for malignant, four in five should be
# malignant.

probability = classifier.predict_proba(X_test)[:, list(classifier.classes_).index("malignant")]
bins = np.linspace(0, 1, 6)
place = np.clip(np.digitize(probability, bins) - 1, 0, 4)
for k in range(5):
    share = (y_test[place == k] == "malignant").mean()
    print(f"{bins[k]:.0%} to {bins[k + 1]:.0%}: {share:.0%} of {np.sum(place == k)} rows")

# %%
# Say that an overlooked tumor costs 50, a false alarm 1, and an expert's opinion 0.5. Right decisions cost
# nothing.

costs = {"malignant": {"benign": 50.0}, "benign": {"malignant": 1.0}}
plain = classifier.predict(X_test)
careful = classifier.decide(X_test, costs)
with_expert = classifier.decide(X_test, costs, reject_cost=0.5)  # None where an expert decides


def total(decisions):
    """Total cost of the decisions; numbers of overlooked tumors, false alarms and rows for the expert."""
    referred = np.array([label is None for label in decisions])
    overlooked = (y_test == "malignant") & (decisions == "benign")
    alarms = (y_test == "benign") & (decisions == "malignant")
    counts = overlooked.sum(), alarms.sum(), referred.sum()
    return np.dot(counts, (50, 1, 0.5)), *counts


results = {
    "most probable label": plain,
    "least expected cost": careful,
    "least cost, or an expert": with_expert,
}
for name, decisions in results.items():
    cost, overlooked, alarms, referred = total(decisions)
    counts = f"{overlooked} overlooked, {alarms} false alarms, {referred} for the expert"
    print(f"{name:24} cost {cost:6.1f}: {counts}")

# %%

figure, axis = plt.subplots(figsize=(7, 2.4), layout="constrained")
axis.barh(list(results), [total(decisions)[0] for decisions in results.values()], color="tab:blue")
axis.set(xlabel=f"cost of {len(y_test)} decisions", title="Total cost by rule")
plt.show()

# %%
# On the command line, ``corral predict model.corral new.csv --costs costs.csv --out decisions.csv`` writes
# the decisions.
