"""Scikit-learn estimators, one file each, and the objects that they return.

An estimator validates its parameters (`validation`, `priors`), reads a table (`tables`, `encoding`: the only
readers of column types) and delegates to `pool`, `rodeo`, `markers`, `conformal` and `evidence`. `base` has
one `fit` for all that learn classes, `density_classifier` what both density classifiers share; `description`,
`explanation` and `assessment` store and print results.
"""
