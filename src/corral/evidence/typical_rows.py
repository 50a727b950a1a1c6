"""Training rows that are typical of a class."""

from __future__ import annotations

import numpy as np

from corral.model import LocalModel
from corral.parallel import Computation

# Rows of a class among which typical ones are looked for.
_MOST_ROWS = 1000


def typical_rows(model: LocalModel, a: int, n_rows: int, computation: Computation) -> list[int]:
    """Positions of the training rows of class a at which its density is highest, complete rows first.

    Parameters
    ----------
    model : the model.
    a : number of the class.
    n_rows : how many rows are wanted at most.
    computation : threads and progress.
    """
    rows = model.data.members()[a]
    if rows.size > _MOST_ROWS:  # evenly spaced, so the same in every call
        rows = rows[np.linspace(0, rows.size - 1, _MOST_ROWS).astype(np.int64)]
    if not rows.size:
        return []
    log_density = model.log_densities(model.data.X[rows], computation)[:, a]
    # Densities of rows with different missing values do not compare.
    highest = np.lexsort((-log_density, np.isnan(model.data.X[rows]).sum(axis=1)))[:n_rows]
    positions = model.data.numbers[rows[highest]]
    return [number for number in positions.tolist() if number >= 0]  # centroids have none
