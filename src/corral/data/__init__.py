"""Training rows as the mathematics sees them: sorted by class, weighted, scaled, without duplicates.

`dataset` holds the rows of all classes and `tiles` the rows of one class in the layout of the compiled loops.
`scaling` makes columns comparable, `weights` counts rows of unequal weight, `duplicates` and
`near_duplicates` find rows that a table repeats, `missing` groups rows by what they lack, `subsample` picks
rows at random by their values, and `hashing` gives rows keys that depend on nothing but their values.
"""
