"""A look at a table before a classifier is fitted: what in it is likely to be a mistake, and what to do.

Each finding rests on a count or a measurement, not on names alone, and is told in one sentence. What sound
tables have, such as a variable that is far from normal or classes of unequal size, is no finding.
"""
