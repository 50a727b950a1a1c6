"""The published numbers."""

from functools import lru_cache
from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parent / "paper_values"


@lru_cache
def paper_table(name: str) -> pd.DataFrame:
    """Read a table of `paper_values`. Callers must not change the table, because it is cached."""
    return pd.read_csv(FOLDER / f"{name}.csv")
