"""Why a row got its label: Shapley evidence of variables, supporting rows, and what makes a row novel.

`explanations` has the entry points: `explain_rows`, and `evidence_of_classes`, which is computed once for a
model. An `Explainer` (`explainers`) evaluates the densities of a pool or of the Rodeo for sets of variables;
`corral.shapley` divides a number among the variables: log odds (`log_odds`) and what makes a row novel
(`novelty`).
`support` finds the training rows behind a label, and those at which the density of a class is highest.
"""
