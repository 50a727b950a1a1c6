"""The same models where the training rows lie on the workers of a Dask cluster, or on disk."""

from corral.dask._classifier import DaskRodeoClassifier
from corral.dask._search import DaskRodeoClassifierCV

__all__ = ["DaskRodeoClassifier", "DaskRodeoClassifierCV"]
