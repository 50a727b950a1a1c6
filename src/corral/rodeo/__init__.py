"""The paper: kernel densities whose bandwidths the Rodeo chooses (algorithms 1 to 3).

`descent` is algorithm 1 on complete rows and `general_descent` the same for missing values and categories;
`recorded_descent` and `path` record every sweep. `relevance` is algorithm 2, `density` evaluates class
densities, `model` is the fitted state, and `settings` holds the parameters.
"""
