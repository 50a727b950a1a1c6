"""The pool of class densities where the training rows lie on the workers of a Dask cluster, or on disk."""

from corral.dask._search import DaskCorralClassifier

__all__ = ["DaskCorralClassifier"]
