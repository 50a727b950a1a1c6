"""Sentences about classes, rows, scores and tables, shared by `repr`, console and report.

Functions accept plain values and names only, so that every other package can call them.

- ``numbers``: numbers, values and lists as text
- ``classes``: the variables that describe a class (its markers)
- ``rows``: label, evidence, typicality and supporting training rows of a row
- ``scores``: fitted models and their scores
- ``tables``: duplicates, groups and novel rows of a whole table
"""
