"""Sparse kernel density classification that explains itself."""

from corral._classifier import EmptySelectionWarning, RodeoClassifier
from corral._density import RodeoDensity
from corral._display import (
    BandwidthDisplay,
    ExplanationDisplay,
    RelevanceDisplay,
    RodeoPathDisplay,
    SampleSizeDisplay,
)
from corral._evaluate import HeldOut
from corral._explain import Explanation
from corral._lspc import LSPClassifier
from corral._model_file import load_model, save_model
from corral._rodeo import RodeoPath
from corral._sample_size import SampleSizes, estimate_sample_sizes
from corral._search import RodeoClassifierCV
from corral._selector import RodeoSelector
from corral.report import write_report

__version__: str
__all__ = [
    "BandwidthDisplay",
    "EmptySelectionWarning",
    "Explanation",
    "ExplanationDisplay",
    "HeldOut",
    "LSPClassifier",
    "RelevanceDisplay",
    "RodeoClassifier",
    "RodeoClassifierCV",
    "RodeoDensity",
    "RodeoPath",
    "RodeoPathDisplay",
    "RodeoSelector",
    "SampleSizeDisplay",
    "SampleSizes",
    "estimate_sample_sizes",
    "load_model",
    "save_model",
    "write_report",
]
