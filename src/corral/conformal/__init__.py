"""Typicality, novelty and prediction sets: conformal p-values from training rows that are left out.

`typicality` is the entry point. `outlyingness` measures how far single values are from the values of a class,
and `missing_values` what missing values change in a score on average.
"""
