"""The pool of class densities that `CorralClassifier` fits.

A member is one classifier by class densities. A pool is a few members with weights.

`learning` is the entry point of a fit. `search` fits the kinds of members that `members` lists on the folds
of `fold_plan` (module `cross_fitting`), fits their weights (`weights`, `calibration`), drops members with
small weights, and fits the other members to all rows (`scaled_rows`). `model` is the fitted state.

`member_kind` defines the interface of a kind of member; `kernel_members` has all kinds that exist. A kernel
member transforms the rows of each class (`transforms`, `covariance`, `categories`), uses a selection of
variables (`variable_selection`), and has a mixture of kernels as its density (`densities`, `marginals`).
`exponents` computes the exponents of kernels, also if values are missing. `bandwidths` fits one bandwidth per
variable. `compression` represents classes of more than `max_rows` rows by centroids.
"""
