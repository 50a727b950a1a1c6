"""Explanations of labels: evidence of variables, supporting training rows, and variables of novel rows.

`explanations` has the entry points: `explain_rows`, and `evidence_of_classes`, which is computed once for a
model. An `Explainer` (`explainers`) evaluates the densities of a model for sets of variables.
`corral.shapley` divides a value among the variables: `log_odds` uses it for evidence, `novelty` for the
variables that make a row novel. `support` finds the training rows that support a label, and the typical rows
of a class, where its density is highest.
"""
