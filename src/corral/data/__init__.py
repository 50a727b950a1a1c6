"""Training rows as arrays: class codes, weights, scales, duplicates, groups, splits and subsamples.

`dataset` has the rows of all classes, and `tiles` the rows of one class in the layout of the compiled loops.
`scaling` makes columns comparable, `weights` has effective numbers and design effects, `duplicates` and
`near_duplicates` find rows that a table repeats, `missing` handles missing values, `splits` divides rows into
folds and parts, `subsample` selects rows, and `hashing` computes keys of rows from their values. `dates`
reads dates that are written as text, `date_variables` converts dates to variables, and `written_numbers`
recognizes numbers that are written as text.
"""
