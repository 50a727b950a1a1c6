"""What several commands do."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from corral._planning import SampleSizes
    from corral.cli.variables import ModelVariables


# What commands call their standard input and output.
STANDARD_STREAM = Path("-")


def check_different(*paths: Path | None) -> None:
    """Refuse to write a file that is read, or written twice; the standard streams are no files."""
    given = [path for path in paths if path not in (None, STANDARD_STREAM)]
    for i, path in enumerate(given):
        if path.resolve() in [other.resolve() for other in given[:i]]:
            raise ValueError(f"{path} is named twice: every file needs a name of its own.")


def note(message: str) -> None:
    """Something that is good to know: told like a warning of the library."""
    warnings.warn(message, stacklevel=2)


def load_classifier(path: Path, *, explains: bool = False) -> tuple[Any, ModelVariables]:
    """A model that gives probabilities, and reasons if asked, and the variables that it reads."""
    from corral._persist.model_file import load_model
    from corral.cli.variables import ModelVariables

    fitted = load_model(path)
    kind = type(fitted).__name__
    if not hasattr(fitted, "predict_proba"):
        raise ValueError(f"{path} holds a {kind}, which gives no labels.")
    if explains and not hasattr(fitted, "explain"):
        raise ValueError(f"{path} holds {kind}, which cannot explain its labels: only class densities can.")
    if not hasattr(fitted, "feature_names_in_"):
        raise ValueError(f"{path} was fitted to an array without names, so its columns are not known.")
    return fitted, ModelVariables.of(fitted)


def naming_column(fitted: Any, columns: Sequence[str]) -> str | None:
    """The column that named the rows of a model when it was fitted, if a table has it."""
    column = getattr(fitted, "row_names_column_", None)
    return column if column in columns else None


def threads(jobs: int) -> AbstractContextManager[Any]:
    """For estimators that leave n_jobs open, as loaded ones do."""
    import joblib

    if jobs == 0:
        raise ValueError("--jobs must not be 0.")
    config: AbstractContextManager[Any] = joblib.parallel_config(backend="threading", n_jobs=jobs)
    return config


def refuse_two_questions(tolerance: float | None, goal: float | None) -> None:
    """Refuse to ask for the bound of algorithm 4 and for a learning curve at once."""
    if tolerance is not None and goal is not None:
        raise ValueError("--tolerance and --goal ask different questions: take one of them.")


def sample_sizes(
    X: pd.DataFrame,
    y: NDArray[Any],
    tolerance: float,
    *,
    seed: int,
    initial_size: int | None = None,
    test_size: int | None = None,
    step: int | None = None,
    allocation: Any = None,
) -> SampleSizes:
    """`estimate_sample_sizes` with defaults that small tables allow: a third each to start and to test."""
    import numpy as np

    from corral._planning import estimate_sample_sizes

    classes, counts = np.unique(y, return_counts=True)
    third = max(int(counts.min()) // 3, 1)
    return estimate_sample_sizes(
        X,
        y,
        tolerance=tolerance,
        initial_size=min(30, third) if initial_size is None else initial_size,
        test_size=min(50, third) if test_size is None else test_size,
        step=max(30, classes.size) if step is None else step,
        allocation=allocation,
        random_state=seed,
    )
