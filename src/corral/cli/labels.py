"""Classes and groups of rows: values of a column as labels, and as classes of a model."""

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

IF_MISSING = "leave such rows out by --missing drop-rows"


def as_labels(column: pd.Series[Any], file: TableFile) -> NDArray[Any]:
    """Labels of the rows: numbers and booleans stay as they are, and all else becomes text.

    In text files and spreadsheets, where labels are read as text, they become numbers if each of them is
    written as Python writes the number.
    """
    if column.isna().all():
        raise ValueError(f"{file}: the target {column.name!r} is empty in all rows.")
    _refuse_missing(column, "target", file, "leave such rows out by --missing drop-unlabelled")
    labels: NDArray[Any] = column.to_numpy()
    if labels.dtype.kind in "biuf":
        return labels
    codes, texts = column.astype(str).factorize()
    values: Any = np.array(texts.tolist())
    if not file.is_typed:
        values = _as_written(values)
    return np.asarray(values[codes])


def _as_written(texts: NDArray[np.str_]) -> NDArray[Any]:
    """Numbers or booleans in place of different texts if Python writes them alike; else the texts."""
    if set(texts.tolist()) <= {"True", "False"}:
        return np.equal(texts, "True")
    for dtype in (np.int64, np.float64):
        try:
            values = texts.astype(dtype)
        except (OverflowError, ValueError):
            continue
        are_same = [str(value) for value in values.tolist()] == texts.tolist()
        are_distinct = np.unique(values).size == texts.size  # -0.0 and 0.0 are not
        if are_same and are_distinct and np.isfinite(values).all():
            return values
    return texts


def as_groups(column: pd.Series[Any], file: TableFile) -> NDArray[Any]:
    """Names of the groups of the rows; every row must have one."""
    _refuse_missing(column, "group", file, IF_MISSING)
    names: NDArray[Any] = column.astype(str).to_numpy(object)
    return names


def _refuse_missing(column: pd.Series[Any], role: str, file: TableFile, remedy: str) -> None:
    missing = column.isna()
    if missing.any():
        raise ValueError(
            f"{file}: the {role} {column.name!r} is missing in {counted(missing.sum(), 'row')}, the first of "
            f"them row {missing.idxmax()}: fill it in, or {remedy}."
        )


def note_labels_like_missing(y: NDArray[Any]) -> None:
    """Note labels that may stand for a missing label."""
    for label in np.unique(y).tolist() if y.dtype.kind == "U" else ():
        if _may_mean_missing(label):
            note(
                f"the label {label!r}, in {(y == label).sum()} of {y.size} rows, counts as a class; if it "
                f"stands for a missing value, say so by --na-values {label!r}."
            )


def _may_mean_missing(text: str) -> bool:
    """Whether a text is NA in one of its many forms, or only spaces."""
    return text.strip().casefold() in {marker.casefold() for marker in MISSING}


def as_classes(
    y: NDArray[Any], classes: NDArray[Any], numbers: Sequence[int], file: TableFile
) -> NDArray[Any]:
    """Labels as classes of the model: labels of only some classes may have been read as another type."""
    class_by_text = {str(label): label for label in classes.tolist()}
    labels = [str(label) for label in y.tolist()]
    for number, label in zip(numbers, labels, strict=True):
        if label not in class_by_text:
            advice = "; if it stands for a missing value, say so by --na-values" * _may_mean_missing(label)
            raise ValueError(
                f"{file}: row {number} has the class {label!r}, which the model does not have: its classes "
                f"are {listed(classes.tolist())}{advice}."
            )
    return np.array([class_by_text[label] for label in labels], dtype=classes.dtype)


def class_named(text: str, classes: NDArray[Any]) -> Any:
    """The class whose name is the text."""
    for label in classes.tolist():
        if str(label) == text:
            return label
    raise ValueError(f"there is no class {text!r}; there are {listed(classes.tolist())}.")
