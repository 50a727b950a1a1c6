"""Sparse kernel density classification that explains itself."""

from corral._classifier import RodeoClassifier
from corral._density import RodeoDensity

__version__ = "0.1.0"
__all__ = ["RodeoClassifier", "RodeoDensity"]
