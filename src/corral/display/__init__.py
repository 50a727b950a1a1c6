"""Displays as in scikit-learn: `from_...` computes what is drawn, and `plot` draws it (needs matplotlib)."""

from corral.display.bandwidths import BandwidthDisplay
from corral.display.explanation import ExplanationDisplay
from corral.display.path import RodeoPathDisplay
from corral.display.relevance import RelevanceDisplay
from corral.display.sample_sizes import SampleSizeDisplay

__all__ = [
    "BandwidthDisplay",
    "ExplanationDisplay",
    "RelevanceDisplay",
    "RodeoPathDisplay",
    "SampleSizeDisplay",
]
