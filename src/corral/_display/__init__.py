"""Drawings, after scikit-learn's convention: `from_...` computes, `plot` draws (needs matplotlib)."""

from corral._display._bandwidths import BandwidthDisplay
from corral._display._explanation import ExplanationDisplay
from corral._display._path import RodeoPathDisplay
from corral._display._relevance import RelevanceDisplay
from corral._display._sample_sizes import SampleSizeDisplay

__all__ = [
    "BandwidthDisplay",
    "ExplanationDisplay",
    "RelevanceDisplay",
    "RodeoPathDisplay",
    "SampleSizeDisplay",
]
