"""The same model where the training rows lie on the workers of a Dask cluster, or on disk."""

from corral.dask._classifier import DaskRodeoClassifier

__all__ = ["DaskRodeoClassifier"]
