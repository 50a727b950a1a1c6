"""How well one column alone tells the classes, in plain loops."""

import math

from numpy.typing import ArrayLike

from paper_oracle import floats


def accuracy_of_one_column(x: ArrayLike, codes: ArrayLike, units: ArrayLike, *, ordered: bool) -> float:
    """Share of rows whose class is that of most rows of other units with their value, or with the nearest."""
    values, labels, of = floats(x), list(map(int, codes)), list(map(int, units))
    n_right = 0
    for i, value in enumerate(values):
        others = [k for k in range(len(values)) if of[k] != of[i]]
        same = [k for k in others if values[k] == value or (math.isnan(values[k]) and math.isnan(value))]
        if same:
            mine = sum(labels[k] == labels[i] for k in same)
            n_right += all(mine > sum(labels[k] == c for k in same) for c in set(labels) - {labels[i]})
            continue
        known = [k for k in others if not math.isnan(values[k])]
        if not ordered or math.isnan(value) or not known:
            continue
        # Of two that are equally near the lower one, and of classes that are equally frequent the first.
        nearest = min({values[k] for k in known}, key=lambda v: (abs(v - value), v))
        there = [labels[k] for k in known if values[k] == nearest]
        n_right += min(set(there), key=lambda c: (-there.count(c), c)) == labels[i]
    return n_right / len(values)
