"""Sparse kernel density classification that explains itself."""

from importlib import import_module

__version__ = "0.1.0"

# Where each public name is defined. A module is loaded when one of its names is first asked for, or
# `corral --help` would wait for scikit-learn and numba. Type checkers read __init__.pyi instead.
_HOMES = {
    "BandwidthDisplay": "corral._display",
    "EmptySelectionWarning": "corral._classifier",
    "Explanation": "corral._explain",
    "ExplanationDisplay": "corral._display",
    "HeldOut": "corral._evaluate",
    "LSPClassifier": "corral._lspc",
    "RelevanceDisplay": "corral._display",
    "RodeoClassifier": "corral._classifier",
    "RodeoClassifierCV": "corral._search",
    "RodeoDensity": "corral._density",
    "RodeoPath": "corral._rodeo",
    "RodeoPathDisplay": "corral._display",
    "RodeoSelector": "corral._selector",
    "SampleSizeDisplay": "corral._display",
    "SampleSizes": "corral._sample_size",
    "estimate_sample_sizes": "corral._sample_size",
    "load_model": "corral._model_file",
    "save_model": "corral._model_file",
    "write_report": "corral.report",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
