"""Scores of classifiers on held-out rows.

- ``splits``: divide a table into training rows and held-out rows
- ``held_out``: predict held-out rows
- ``scores``, ``ranking``: score predictions
- ``intervals``: 95% intervals of scores
- ``advice``: sentences on labels that are of little use
- ``baselines``: classifiers to compare with
"""
