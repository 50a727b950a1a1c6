"""Training rows as the mathematics sees them: sorted by class, weighted, scaled, without duplicates.

`dataset` holds the rows of all classes and `tiles` the rows of one class in the layout of the compiled loops.
`scaling` makes columns comparable, `weights` counts rows of unequal weight and of groups, `duplicates` and
`near_duplicates` find rows that a table repeats, `missing` groups rows by what they lack, `splits` divides
rows into folds and parts, `subsample` picks some of them, `hashing` gives rows keys that depend on their
values alone, `dates` reads dates that are written as text, `date_variables` makes variables
of dates, and `written_numbers` tells how text writes numbers.
"""
