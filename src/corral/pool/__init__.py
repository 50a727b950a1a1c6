"""The pool of class densities that `CorralClassifier` fits: members, their weights, and how they are found.

`learning` is the entry point. `search` tries the kinds of members that `members` lists on the folds of
`fold_plan` (`cross_fitting`), weighs them (`weights`, `calibration`) and builds those that are kept of all
rows (`scaled_rows`). `model` is the fitted state.

`member_kind` says what a kind of member is; `kernel_members` has all that there are. A kernel member is a
transform of the rows of each class (`transforms`, `covariance`, `categories`) in the variables that take part
(`variable_selection`), and a mixture of kernels in it (`densities`, `marginals`). `exponents` forms the
exponent of a kernel, also where values are missing, and `bandwidths` refines one bandwidth per variable.
`compression` represents classes of more than `max_rows` rows by centroids.
"""
