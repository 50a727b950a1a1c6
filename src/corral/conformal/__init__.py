"""Typicality, novelty and prediction sets: conformal p-values of a row among training rows.

Each training row is scored by densities that leave the row out. `typicality` is the entry point.
`outlyingness` measures how far single values are from the values of a class, and `missing_values` estimates
how much missing values change a score on average.
"""
