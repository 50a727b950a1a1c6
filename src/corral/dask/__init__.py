"""`DaskCorralClassifier`, which is fitted to training rows on the workers of a Dask cluster, or on disk."""

try:
    import dask.dataframe  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError('corral.dask needs dask: pip install "corral[dask]".') from error

from corral.dask.search import DaskCorralClassifier

__all__ = ["DaskCorralClassifier"]
