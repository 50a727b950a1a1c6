"""Markers: the variables in which a class differs from its background, with error control.

`contrast` is the entry point: `learn_contrast` compares every class with its background. `value_counts`
counts the values of each class, and `background` finds the classes that are alike. `rank_tests` compare two
samples by ranks, and `group_effects` accounts for rows that come in groups. `distributions` has curves for
figures.
"""
