"""Different numbers of training rows: 50 to 1000 per group, two to five groups (tables 6 to 8).

The paper does not state the number of test rows. The standard deviations of table 6 correspond to about 100
test rows per group (0.027 at accuracy 0.79 in two groups, 0.0176 at 0.785 in five groups), so 100 are drawn.
The paper does not state the number of training rows of table 8 either, so table 8 is compared with all four
numbers.
"""

from experiments import shifted_groups
from experiments._methods import RANGE
from experiments._trial import Experiment, Trial

SIZES = (50, 150, 500, 1000)


def make_trial(seed: int, n_groups: int, n_train: int, n_test: int = 100) -> Trial:
    """Draw rows of the first `n_groups` shifted groups."""
    return shifted_groups.make_trial(seed, tuple(range(1, n_groups + 1)), n_train, n_test)


EXPERIMENT = Experiment(
    name="training_sizes",
    title="Different numbers of training examples",
    make_trial=make_trial,
    cells={
        f"{n_train} rows, {n_groups} groups": {"n_train": n_train, "n_groups": n_groups}
        for n_train in SIZES
        for n_groups in (2, 3, 4, 5)
    },
    paper_trials=1000,
    quick={"new": 100, "light": 10, "heavy": 1},
    variants={"local_range": RANGE},
    simulated=True,
    tables=("table_6", "table_7"),
    zscore_table="table_8",
    zscore_prefixes=tuple(f"{n_train} rows, " for n_train in SIZES),
    relevant=shifted_groups.EXPERIMENT.relevant,
)
