"""Markers: the variables in which a class differs from its background, with error control.

The background of a variable is the set of classes that are alike in this variable. `contrast` is the entry
point: `learn_contrast` compares every class with the background of each variable. `background` finds the
classes that are alike, and `value_counts` counts the values of each class. `rank_tests` compares two samples
by ranks, and `group_effects` corrects the tests if rows come in groups, such as the rows of one patient.
`comparison` describes each class next to all other rows, for sentences. `distributions` computes curves for
figures.
"""
