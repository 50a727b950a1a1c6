"""Algorithms 1 to 3 of the paper: kernel class densities whose bandwidths are chosen by the Rodeo.

The Rodeo starts from wide bandwidths and shrinks them in sweeps over the variables. `descent` is algorithm 1,
`factors` computes the kernels of single variables, and `path` records the sweeps at one row. `relevance` is
algorithm 2, which finds the relevant variables of a class. `density` evaluates class densities, `model` holds
the fitted state, and `settings` holds the parameters.
"""
