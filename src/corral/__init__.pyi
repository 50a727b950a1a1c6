"""Sparse kernel density classification that explains itself."""

from .checking.findings import Finding
from .checking.table import check_table
from .display import (
    BandwidthDisplay,
    ExplanationDisplay,
    RelevanceDisplay,
    RodeoPathDisplay,
    SampleSizeDisplay,
)
from .estimators.assessment import Assessment
from .estimators.corral_classifier import CorralClassifier
from .estimators.description import Description
from .estimators.explanation import Explanation
from .estimators.lspc import LSPClassifier
from .estimators.marker_selector import MarkerSelector
from .estimators.pipelines import describe, explain
from .estimators.rodeo_classifier import RodeoClassifier
from .estimators.rodeo_density import RodeoDensity
from .estimators.rodeo_selector import RodeoSelector
from .estimators.tables import ColumnKindWarning, UnknownCategoriesWarning
from .estimators.warned import (
    DuplicatesWarning,
    EmptySelectionWarning,
    NearDuplicatesWarning,
    ShiftedTableWarning,
)
from .evaluation.held_out import HeldOut
from .files.model_file import load_model, save_model
from .planning import LearningCurve, SampleSizes, estimate_sample_sizes
from .report import write_report
from .rodeo.path import RodeoPath

__version__: str
__all__ = [
    "Assessment",
    "BandwidthDisplay",
    "ColumnKindWarning",
    "CorralClassifier",
    "Description",
    "DuplicatesWarning",
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
    "ShiftedTableWarning",
    "UnknownCategoriesWarning",
    "check_table",
    "describe",
    "estimate_sample_sizes",
    "explain",
    "load_model",
    "save_model",
    "write_report",
]
