"""Sentences about classes, rows, scores and tables, composed once for `repr`, console and report.

Functions take plain values and names, so that every package above can use them.

- ``numbers``: numbers, values and lists as text
- ``classes``: the markers of a class
- ``rows``: label, evidence, typicality and support of a row
- ``scores``: models and their scores
- ``tables``: a whole table: duplicates, groups, novel rows
"""
