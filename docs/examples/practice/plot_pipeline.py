"""
How does it fit into a scikit-learn pipeline?
=============================================

corral's estimators follow scikit-learn: they can be steps of a pipeline, ``GridSearchCV`` can search their
parameters, and ``cross_validate`` can compare them.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from corral import CorralClassifier, MarkerSelector, RodeoClassifier, describe, explain

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
X, y = X.iloc[:300], y.iloc[:300]

# %%
# Add a step before the classifier: the ratio of two columns often carries more information than the columns.


def add_ratio(table):
    """Add the jaggedness of the outline: its squared length divided by the area."""
    return table.assign(jaggedness=table["mean perimeter"] ** 2 / table["mean area"])


pipeline = make_pipeline(FunctionTransformer(add_ratio), CorralClassifier(random_state=0))
pipeline.fit(X, y)

# %%
# A pipeline has no methods ``describe`` and ``explain``; use the functions with these names. Reports and
# displays also accept pipelines. Variables have the names of the columns.

describe(pipeline)

# %%

print(explain(pipeline, X[:1]))

# %%
# A selector can be a step: :class:`~corral.MarkerSelector` keeps the variables that mark a class. A
# classifier with ``feature_importances_``, such as ``CorralClassifier``, also works in ``SelectFromModel``.

models = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "markers, then regression": make_pipeline(MarkerSelector(), StandardScaler(), LogisticRegression()),
    "ten most important, then logistic regression": make_pipeline(
        SelectFromModel(CorralClassifier(random_state=0), max_features=10, threshold=-1.0),
        StandardScaler(),
        LogisticRegression(),
    ),
    "gradient boosting": HistGradientBoostingClassifier(max_iter=50, random_state=0),
    "corral": pipeline,
}
scores = {
    name: cross_validate(model, X, y, cv=3, scoring=("accuracy", "neg_log_loss"))
    for name, model in models.items()
}
for name, score in scores.items():
    print(f"{name:45} {score['test_accuracy'].mean():.3f} {-score['test_neg_log_loss'].mean():.3f}")

# %%
# :class:`~corral.RodeoClassifier` has parameters to search, such as the scale and the constant ``c0`` of
# the initial bandwidth.

search = GridSearchCV(
    RodeoClassifier(bandwidth="class"), {"scale": ["range", "standard"], "c0": [0.5, 1.0]}, cv=3
).fit(X, y)
print(search.best_params_, f"{search.best_score_:.3f}")

# %%

figure, axis = plt.subplots(figsize=(8, 2.6), layout="constrained")
axis.barh(list(scores), [-score["test_neg_log_loss"].mean() for score in scores.values()], color="tab:blue")
axis.set(xlabel="log loss, smaller is better", title="Breast cancer, 300 rows, three folds")
plt.show()
