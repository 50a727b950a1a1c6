"""How well classifiers predict rows that they have not seen.

`splits` divides rows, `held_out` has predictions of rows that were held out, `scores` measures them, and
`naive_bayes` is a baseline.
"""
