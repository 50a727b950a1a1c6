"""Sparse kernel density classification that explains itself."""

from ._classifier import CopiedRowsWarning, EmptySelectionWarning, RodeoClassifier
from ._density import RodeoDensity
from ._display import (
    BandwidthDisplay,
    ExplanationDisplay,
    RelevanceDisplay,
    RodeoPathDisplay,
    SampleSizeDisplay,
)
from ._evaluate import HeldOut
from ._explain import Explanation
from ._lspc import LSPClassifier
from ._model_file import load_model, save_model
from ._path import RodeoPath
from ._sample_size import SampleSizes, estimate_sample_sizes
from ._search import RodeoClassifierCV
from ._selector import RodeoSelector
from .report import write_report

__version__: str
__all__ = [
    "BandwidthDisplay",
    "CopiedRowsWarning",
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
