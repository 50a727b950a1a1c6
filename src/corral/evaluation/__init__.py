"""How well classifiers predict rows that they have not seen.

`splits` divides rows, `held_out` has predictions of rows that were held out, `scores` and `ranking` measure
them, `intervals` says how well that is known, `advice` what to do about it, and `baselines` has classifiers
to compare with.
"""
