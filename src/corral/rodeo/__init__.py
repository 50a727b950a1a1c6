"""Algorithms 1 to 3 of the paper: kernel densities whose bandwidths the Rodeo chooses.

`descent` is algorithm 1, `factors` has the kernels of its variables, and `path` records every sweep.
`relevance` is algorithm 2, `density` evaluates class densities, `model` is the fitted state, and `settings`
holds the parameters.
"""
