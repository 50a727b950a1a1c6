"""Classes and groups of rows: as a column writes them, and as a model knows them."""

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
    """Classes of the rows: numbers and yes or no stay what they are, all else is text.

    Those of text files and spreadsheets are text unless all of them are written as Python would write the
    number.
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
    """Values of different texts: numbers, or yes and no, if this keeps every one as it is written."""
    if set(texts.tolist()) <= {"True", "False"}:
        return np.equal(texts, "True")
    for dtype in (np.int64, np.float64):
        try:
            values = texts.astype(dtype)
        except (OverflowError, ValueError):
            continue
        is_same = [str(value) for value in values.tolist()] == texts.tolist()
        is_distinct = np.unique(values).size == texts.size  # which -0.0 and 0.0 are not
        if is_same and is_distinct and np.isfinite(values).all():
            return values
    return texts


def as_groups(column: pd.Series[Any], file: TableFile) -> NDArray[Any]:
    """Names of what rows belong to; all rows must have one."""
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
    """Tell of labels that may stand for a missing one."""
    for label in np.unique(y).tolist() if y.dtype.kind == "U" else ():
        if _may_mean_missing(label):
            note(
                f"the label {label!r}, in {(y == label).sum()} of {y.size} rows, counts as a class; if it "
                f"stands for a missing value, say so by --na-values {label!r}."
            )


def _may_mean_missing(text: str) -> bool:
    """Whether a text is NA in one of its many forms, or nothing but spaces."""
    return text.strip().casefold() in {marker.casefold() for marker in MISSING}


def as_classes(
    y: NDArray[Any], classes: NDArray[Any], numbers: Sequence[int], file: TableFile
) -> NDArray[Any]:
    """The model's own classes: a table that has only some of them may have been read as another type."""
    known = {str(label): label for label in classes.tolist()}
    labels = [str(label) for label in y.tolist()]
    for number, label in zip(numbers, labels, strict=True):
        if label not in known:
            advice = "; if it stands for a missing value, say so by --na-values" * _may_mean_missing(label)
            raise ValueError(
                f"{file}: row {number} has the class {label!r}, which the model does not know: it knows "
                f"{listed(classes.tolist())}{advice}."
            )
    return np.array([known[label] for label in labels], dtype=classes.dtype)


def class_called(text: str | None, classes: NDArray[Any]) -> Any:
    """The class that is written like that."""
    known = {str(label): label for label in classes.tolist()}
    if text is not None and text not in known:
        raise ValueError(f"there is no class {text!r}; there are {listed(classes.tolist())}.")
    return None if text is None else known[text]
