"""How well one column alone tells the classes, in plain loops."""

import math

from numpy.typing import ArrayLike

from paper_oracle import floats


def accuracy_of_one_column(x: ArrayLike, codes: ArrayLike, group_ids: ArrayLike, *, ordered: bool) -> float:
    """Share of rows whose class is that of most rows of other units with their value, or with the nearest."""
    values, labels, groups = floats(x), list(map(int, codes)), list(map(int, group_ids))
    n_right = 0
    for i, value in enumerate(values):
        others = [k for k in range(len(values)) if groups[k] != groups[i]]
        near = [k for k in others if values[k] == value or (math.isnan(values[k]) and math.isnan(value))]
        present = [k for k in others if not math.isnan(values[k])]
        if not near and ordered and present and not math.isnan(value):
            # Of two that are equally near the lower one.
            nearest = min({values[k] for k in present}, key=lambda v: (abs(v - value), v))
            near = [k for k in present if values[k] == nearest]
        mine = sum(labels[k] == labels[i] for k in near)
        n_right += all(mine > sum(labels[k] == c for k in near) for c in set(labels) - {labels[i]})
    return n_right / len(values)
