"""Settings that all tests share: they are the same every time, unless `make fuzz` asks for new examples."""

import os
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import corral.pool.search

pytest.register_assert_rewrite("support")  # its failures say what was compared

# scikit-learn skips its array API checks unless scipy, which reads this when it is imported, checks its input
# as strictly as the standard asks for.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# Nothing here goes by the clock: the first example of a property may have to compile a kernel, and other
# programs may keep the machine busy.
settings.register_profile(
    "suite",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
    database=None,
)
settings.register_profile("fuzz", settings.get_profile("suite"), derandomize=False, print_blob=True)
settings.load_profile("suite")


def pytest_configure(config):
    """Name the marks of this suite."""
    config.addinivalue_line("markers", "all_divisions: pools divide small tables as often as for users.")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Let pools divide small tables into folds twice, not twelve times: a fit takes a third of the time.

    Examples of the documentation and tests with the mark `all_divisions` have the default.
    """
    with pytest.MonkeyPatch.context() as patch:
        is_example = isinstance(item, pytest.DoctestItem)
        if not is_example and item.get_closest_marker("all_divisions") is None:
            patch.setattr(corral.pool.search, "_MOST_DIVISIONS", 2)
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Seed the generators from which all draws that is given no seed, before fixtures of any scope."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 (the generator that scikit-learn takes for random_state=None)


def pytest_collection_modifyitems(items):
    """Hypothesis draws few rows of few values: near duplicates are what it looks for, and no fault."""
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.filterwarnings("ignore::corral.NearDuplicatesWarning"))
