"""Labels that are contradicted by probabilities learnt without their rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Floats, Integers
from corral.checking.findings import Finding
from corral.sentences.numbers import MOST_LISTED

if TYPE_CHECKING:
    import pandas as pd

# A label is contradicted if its probability is at most _MOST_OWN and at most _MOST_OF_PRIOR times the share
# of its class among the rows, and if another label has at least the probability _LEAST_OTHER.
_MOST_OWN, _MOST_OF_PRIOR, _LEAST_OTHER = 0.1, 0.3, 0.6
# Classes that overlap have errors of all probabilities, and few of them are confident. Labels are suspected
# if confident errors are at least this share of all errors.
_SHARE_OF_ERRORS = 0.25
_FEWEST = 3
# Classes of which fewer rows are recognized are modelled too badly to contradict a label.
_LEAST_RECALL = 0.5


def contradicted_labels(
    proba: Floats, codes: Integers, names: NDArray[Any], index: pd.Index[Any]
) -> Iterator[Finding]:
    """Rows whose label is improbable, if there are more than overlapping classes explain.

    Parameters
    ----------
    proba : (n, n_classes) probabilities of the classes, learnt without the row.
    codes : (n,) numbers of the classes of the rows.
    names : (n_classes,) names of the classes.
    index : (n,) names of the rows.
    """
    own = proba[np.arange(codes.size), codes]
    share = np.bincount(codes)[codes] / codes.size
    hits = proba.argmax(axis=1) == codes
    is_recognized = (np.bincount(codes, weights=hits) >= _LEAST_RECALL * np.bincount(codes))[codes]
    is_improbable = own <= np.minimum(_MOST_OWN, _MOST_OF_PRIOR * share)
    rows = np.flatnonzero(is_recognized & is_improbable & (proba.max(axis=1) >= _LEAST_OTHER))
    n_errors = int((~hits).sum())
    if rows.size < max(_FEWEST, _SHARE_OF_ERRORS * n_errors):
        return
    rows = rows[np.argsort(own[rows], kind="stable")]
    shown = [
        f"row {index[i]} (labelled {str(names[codes[i]])!r}, {own[i]:.2f}; "
        f"rather {str(names[proba[i].argmax()])!r}, {proba[i].max():.2f})"
        for i in rows[:MOST_LISTED]
    ]
    more = f" and {rows.size - MOST_LISTED} more" if rows.size > MOST_LISTED else ""
    yield Finding(
        "contradicted labels",
        f"{rows.size} labels are contradicted by probabilities that were learnt without their rows: "
        f"{', '.join(shown)}{more}",
        "look whether these labels are right",
        rows=tuple(index[rows]),
    )
