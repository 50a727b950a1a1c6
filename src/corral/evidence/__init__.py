"""Why a row got its label: Shapley evidence of variables, supporting rows, and what makes a row novel.

`log_odds` is the entry point. An `Explainer` (`explainers`) evaluates a model's densities of some of the
variables (`marginals`), or of one variable given all others (`conditionals`); `shapley` divides a difference
of log odds among the variables; `novelty` divides the outlyingness of a row. `typical_rows` finds the
training rows at which the density of a class is highest.
"""
