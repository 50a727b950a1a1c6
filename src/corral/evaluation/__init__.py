"""Scores of classifiers on held-out rows.

`splits` divides rows, `held_out` predicts the held-out rows, `scores` and `ranking` score the predictions,
`intervals` has their 95 % intervals, `advice` says when labels are of no use, and `baselines` has classifiers
to compare with.
"""
