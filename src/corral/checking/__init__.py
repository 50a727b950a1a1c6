"""Checks of a table before a classifier is fitted: what in it is likely to be wrong, and what to do.

Each finding is one sentence and is based on a count or a measurement, never on the name of a column alone.
Properties of sound tables, such as a skewed variable or classes of unequal size, are not findings.

- ``table``: `check_table`, which calls all other modules
- ``findings``: the class `Finding`, and the list of what `check_table` looks for
- ``columns``, ``categories``, ``dates``, ``ids``, ``sentinels``, ``units``, ``written_numbers``: checks of
  single columns
- ``functions``: columns that can be computed from another column
- ``leakage``: columns from which the label can be read off
- ``labels``, ``contradictions``: missing, misspelled and probably wrong labels
- ``rows``, ``order``: duplicates, groups, and the order of the rows
- ``groups``: columns that seem to identify groups
- ``quick_model``: the model that predicts labels to measure accuracies
"""
