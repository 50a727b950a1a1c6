"""How many examples of a property Hypothesis draws."""

import os

from hypothesis import settings

_TIMES = 10 if "CORRAL_FUZZ" in os.environ else 1


def seeds(n: int) -> range:
    """Seeds of random tables that a test makes itself; a mark has `make fuzz` find it, which tries more."""
    return range(n * _TIMES)


def examples(n: int) -> settings:
    """As many as show a fault that anybody has thought of, and ten times as many in `make fuzz`."""
    return settings(max_examples=n * _TIMES)
