"""Convert the values of a column to labels, groups, or classes of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from corral.cli.formats import TableFile
from corral.cli.shared import listed, note
from corral.cli.tables import MISSING
from corral.sentences.numbers import counted

IF_MISSING = "leave these rows out by --missing drop-rows"


def as_labels(column: pd.Series[Any], file: TableFile) -> NDArray[Any]:
    """Return the labels of the rows: numbers and booleans stay, all other values become text.

    Labels of text files and spreadsheets are read as text. They become numbers or booleans if each label is
    written as Python writes that number or boolean.
    """
    if column.isna().all():
        raise ValueError(f"{file}: the target {column.name!r} is empty in all rows.")
    _refuse_missing(column, "target", file, "leave these rows out by --missing drop-unlabelled")
    labels: NDArray[Any] = column.to_numpy()
    if labels.dtype.kind in "biuf":
        return labels
    codes, texts = column.astype(str).factorize()
    values: Any = np.array(texts.tolist())
    if not file.is_typed:
        values = _as_written(values)
    return np.asarray(values[codes])


def _as_written(texts: NDArray[np.str_]) -> NDArray[Any]:
    """Convert distinct texts to numbers or booleans if Python writes them in the same way."""
    if set(texts.tolist()) <= {"True", "False"}:
        return np.equal(texts, "True")
    for dtype in (np.int64, np.float64):
        try:
            values = texts.astype(dtype)
        except (OverflowError, ValueError):
            continue
        are_same = [str(value) for value in values.tolist()] == texts.tolist()
        are_distinct = np.unique(values).size == texts.size  # -0.0 and 0.0 are equal
        if are_same and are_distinct and np.isfinite(values).all():
            return values
    return texts


def as_groups(column: pd.Series[Any], file: TableFile) -> NDArray[Any]:
    """Return the group of each row as text; raise ValueError if a row has no group."""
    _refuse_missing(column, "group", file, IF_MISSING)
    names: NDArray[Any] = column.astype(str).to_numpy(object)
    return names


def _refuse_missing(column: pd.Series[Any], role: str, file: TableFile, remedy: str) -> None:
    missing = column.isna()
    if missing.any():
        raise ValueError(
            f"{file}: the {role} {column.name!r} is missing in {counted(missing.sum(), 'row')}, first in row "
            f"{missing.idxmax()}: fill it in, or {remedy}."
        )


def note_labels_like_missing(y: NDArray[Any]) -> None:
    """Print a note about labels that may stand for a missing label, such as NA."""
    for label in np.unique(y).tolist() if y.dtype.kind == "U" else ():
        if _may_mean_missing(label):
            note(
                f"the label {label!r}, in {(y == label).sum()} of {y.size} rows, counts as a class; if it "
                f"stands for a missing value, use --na-values {label!r}."
            )


def _may_mean_missing(text: str) -> bool:
    """Whether a text is a common text for a missing value, such as NA, or only spaces."""
    return text.strip().casefold() in {marker.casefold() for marker in MISSING}


def as_classes(
    y: NDArray[Any], classes: NDArray[Any], numbers: Sequence[int], file: TableFile
) -> NDArray[Any]:
    """Convert labels to classes of the model, which may have another type; `numbers` are the row numbers."""
    class_by_text = {str(label): label for label in classes.tolist()}
    labels = [str(label) for label in y.tolist()]
    for number, label in zip(numbers, labels, strict=True):
        if label not in class_by_text:
            advice = "; if it stands for a missing value, use --na-values" * _may_mean_missing(label)
            raise ValueError(
                f"{file}: row {number} has the class {label!r}, which is not a class of the model: the model "
                "has "
                f"{listed(classes.tolist())}{advice}."
            )
    return np.array([class_by_text[label] for label in labels], dtype=classes.dtype)


def class_named(text: str, classes: NDArray[Any]) -> Any:
    """Return the class whose name is `text`."""
    for label in classes.tolist():
        if str(label) == text:
            return label
    raise ValueError(f"the model has no class {text!r}; its classes are {listed(classes.tolist())}.")
