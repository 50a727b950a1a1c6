"""A look at a table before a classifier is fitted: what in it is likely to be a mistake, and what to do.

Each finding rests on a count or a measurement, not on names alone, and is told in one sentence. What sound
tables have, such as a variable that is far from normal or classes of unequal size, is no finding.

- ``table``: `check_table`, which calls all others; ``findings``: what a finding says, and what is looked for
- ``columns``, ``categories``, ``dates``, ``ids``, ``sentinels``, ``units``, ``written_numbers``:
  single columns
- ``functions``: columns that repeat another; ``leakage``: columns that give the label away
- ``labels``, ``contradictions``: labels; ``rows``, ``order``: duplicates, and the order of rows
- ``groups``: columns that seem to name groups; ``quick_model``: what the last ones measure accuracy with
"""
