"""Training rows as arrays: sorted by class, weighted, scaled, without duplicates.

`dataset` holds the rows of all classes and `tiles` the rows of one class in the layout of the compiled loops.
`scaling` makes columns comparable, `weights` has effective numbers and design effects, `duplicates` and
`near_duplicates` find rows that a table repeats, `missing` handles missing values, `splits` divides rows into
folds and parts, `subsample` picks rows, and `hashing` has keys that depend on values alone. `dates` reads
dates that are written as text, `date_variables` makes variables of dates, and `written_numbers` recognizes
numbers that are written as text.
"""
