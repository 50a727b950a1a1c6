"""Checks of a table before a classifier is fitted: what in it is likely to be wrong, and what to do.

Each finding rests on a count or a measurement, not on names alone, and is one sentence. What sound tables
have, such as a variable that is far from normal or classes of unequal size, is no finding.

- ``table``: `check_table`, which calls all others; ``findings``: the class `Finding`, and what is looked for
- ``columns``, ``categories``, ``dates``, ``ids``, ``sentinels``, ``units``, ``written_numbers``:
  single columns
- ``functions``: columns that repeat another one; ``leakage``: columns that give the label away
- ``labels``, ``contradictions``: labels; ``rows``, ``order``: duplicates, and the order of rows
- ``groups``: columns that seem to name groups; ``quick_model``: the model that measures accuracies
"""
