"""How many examples of a property Hypothesis draws, and small tables of odd columns."""

import os

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

_TIMES = 10 if "CORRAL_FUZZ" in os.environ else 1


def seeds(n: int) -> range:
    """Seeds of random tables that a test makes itself; `make fuzz` finds it by a mark, and tries more."""
    return range(n * _TIMES)


def examples(n: int) -> settings:
    """As many as show a fault that anybody has thought of, and ten times as many in `make fuzz`."""
    return settings(max_examples=n * _TIMES)


@st.composite
def problems(draw, max_classes=3, max_rows=6, max_columns=3):
    """Rows, their classes and new rows, with columns wide, narrow, tied and constant."""
    sizes = draw(st.lists(st.integers(1, max_rows), min_size=2, max_size=max_classes))
    y = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kinds = st.sampled_from(["wide", "narrow", "tied", "constant"])
    columns = []
    for kind in draw(st.lists(kinds, min_size=1, max_size=max_columns)):
        x = {
            "wide": rng.normal(7, 20, y.size) + 10 * y,
            "narrow": rng.normal(0.5, 0.02, y.size),
            "tied": rng.integers(0, 3, y.size).astype(float),
            "constant": np.full(y.size, 2.5),
        }[kind]
        # Whole multiples of 1/1024: to add a constant to them, or to take their range, rounds nothing.
        columns.append(np.round(x * 1024) / 1024)
    X = np.column_stack(columns)
    new_rows = np.vstack([X[0], X.mean(axis=0), X.max(axis=0) + 0.3 * X.std(axis=0) + 0.1])
    order = rng.permutation(y.size)
    return X[order], y[order], np.round(new_rows * 1024) / 1024
