"""Sparse kernel density classification that explains itself."""

from ._checking.findings import Finding
from ._checking.table import check_table
from ._core.path import RodeoPath
from ._display import (
    BandwidthDisplay,
    ExplanationDisplay,
    RelevanceDisplay,
    RodeoPathDisplay,
    SampleSizeDisplay,
)
from ._estimators.classifier import RodeoClassifier
from ._estimators.density import RodeoDensity
from ._estimators.description import Description
from ._estimators.explanation import Explanation
from ._estimators.lspc import LSPClassifier
from ._estimators.marker_selector import MarkerSelector
from ._estimators.pipelines import describe, explain
from ._estimators.search import CorralClassifier
from ._estimators.selector import RodeoSelector
from ._estimators.tables import UnknownLevelsWarning
from ._estimators.trust import Assessment
from ._estimators.warned import CopiedRowsWarning, EmptySelectionWarning, NearDuplicatesWarning
from ._evaluation.held_out import HeldOut
from ._persist.model_file import load_model, save_model
from ._planning import LearningCurve, SampleSizes, estimate_sample_sizes
from .report import write_report

__version__: str
__all__ = [
    "Assessment",
    "BandwidthDisplay",
    "CopiedRowsWarning",
    "CorralClassifier",
    "Description",
    "EmptySelectionWarning",
    "Explanation",
    "ExplanationDisplay",
    "Finding",
    "HeldOut",
    "LSPClassifier",
    "LearningCurve",
    "MarkerSelector",
    "NearDuplicatesWarning",
    "RelevanceDisplay",
    "RodeoClassifier",
    "RodeoDensity",
    "RodeoPath",
    "RodeoPathDisplay",
    "RodeoSelector",
    "SampleSizeDisplay",
    "SampleSizes",
    "UnknownLevelsWarning",
    "check_table",
    "describe",
    "estimate_sample_sizes",
    "explain",
    "load_model",
    "save_model",
    "write_report",
]
