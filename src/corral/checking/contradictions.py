"""Labels that are improbable for a model that was fitted without the row."""

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
# of its class among the rows, and the probability of another label is at least _LEAST_OTHER.
_MOST_OWN, _MOST_OF_PRIOR, _LEAST_OTHER = 0.1, 0.3, 0.6
# If classes overlap, few of the errors of a model contradict the label so clearly. Labels are reported only
# if the contradicted labels are at least this share of all errors.
_SHARE_OF_ERRORS = 0.25
_FEWEST = 3
# Labels of a class are checked only if the model predicts at least this share of its rows right.
_LEAST_RECALL = 0.5


def contradicted_labels(
    proba: Floats, codes: Integers, names: NDArray[Any], index: pd.Index[Any]
) -> Iterator[Finding]:
    """Yield a finding about contradicted labels, if there are more than overlapping classes explain.

    Parameters
    ----------
    proba : (n, n_classes) probabilities of the classes, each row predicted by a model fitted without it.
    codes : (n,) index of the class of each row.
    names : (n_classes,) names of the classes.
    index : (n,) labels of the rows in the index of the table.
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
        f"row {index[i]} (label {str(names[codes[i]])!r}: probability {own[i]:.2f}; "
        f"{str(names[proba[i].argmax()])!r}: {proba[i].max():.2f})"
        for i in rows[:MOST_LISTED]
    ]
    more = f" and {rows.size - MOST_LISTED} more" if rows.size > MOST_LISTED else ""
    yield Finding(
        "contradicted labels",
        f"{rows.size} labels are improbable for a quick model that was fitted without the row: "
        f"{', '.join(shown)}{more}",
        "check whether these labels are right",
        rows=tuple(index[rows]),
    )
