"""Scikit-learn estimators, one file each, and the objects that they return.

An estimator validates its parameters (`validation`), reads a table (`tables`, `encoding`: the only readers of
column types) and delegates to `pool`, `rodeo`, `markers`, `conformal` and `evidence`. `density_classifier`
holds what both density classifiers share; `description` and `explanation` store and print results.
"""
