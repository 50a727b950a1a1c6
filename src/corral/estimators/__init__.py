"""Scikit-learn estimators, one file each, and the objects that they return.

An estimator validates its parameters (`validation`, `priors`), reads a table (`tables`, `encoding`: the only
modules that inspect the types of columns) and calls `pool`, `rodeo`, `markers`, `conformal` and `evidence`.
`base` has the `fit` of classifiers and selectors, and `density_classifier` the methods that `RodeoClassifier`
and `CorralClassifier` share. `evaluated_rows` evaluates rows for `assess` and `explain`. `description`,
`explanation` and `assessment` store and print results. `collections` is for dask, `pipelines` for pipelines,
`decisions` for costs, `warned` for warnings and `html` for notebooks.
"""
