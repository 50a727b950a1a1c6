"""A look at a whole table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from corral._checking.columns import (
    constants,
    identifiers,
    is_numeric,
    mostly_empty,
    neither_numbers_nor_text,
    numbers_in,
    odd_levels,
    sentinels,
    text_among_numbers,
)
from corral._checking.findings import Finding
from corral._checking.giveaways import giveaways
from corral._checking.labels import is_missing, of_labels
from corral._checking.rows import copies, near_duplicates_of, of_groups, of_near_duplicates, repeated_ids
from corral._checking.written_numbers import numbers_as_text

if TYPE_CHECKING:
    import pandas as pd


def check_table(
    table: pd.DataFrame,
    y: NDArray[Any] | None = None,
    *,
    ids: Sequence[str] = (),
    group: str | None = None,
    categorical: Sequence[str] = (),
) -> list[Finding]:
    """Look for mistakes in a table.

    Parameters
    ----------
    table : DataFrame
        Columns of numbers or text; missing values are NaN or None.
    y : ndarray of shape (n_rows,), default=None
        Classes of the rows, if they are known; None or NaN where one is missing.
    ids : sequence of str
        Columns that name rows.
    group : str, default=None
        Column that names what rows belong to, such as a patient with several measurements.
    categorical : sequence of str
        Columns whose values are levels, whatever they look like.

    Returns
    -------
    findings : list of Finding
        In the order in which they should be mended.

    Examples
    --------
    >>> import pandas as pd
    >>> from corral._checking.table import check_table
    >>> heights, weights = [1.7, 1.6, -999.0, 1.8, -999.0, 1.9], [70.5, 66.1, 71.2, 80.3, 69.9, 84.0]
    >>> table = pd.DataFrame({"height": heights, "weight": weights, "site": 3})
    >>> for finding in check_table(table):
    ...     print(finding)
    column 'site' holds 3 in every row, which tells nothing: leave it out.
    column 'height' holds -999 in 2 rows and nothing else below 1.6: say that -999 stands for a missing value.
    """
    variables = table[[name for name in table.columns if name not in {*ids, group}]]
    strange = [*neither_numbers_nor_text(variables, categorical)]
    variables = variables.drop(columns=[finding.columns[0] for finding in strange])
    numeric = {name: numbers_in(variables[name]) for name in variables.columns}
    numeric = {
        name: x
        for name, x in numeric.items()
        if name not in categorical
        and not hasattr(variables[name].dtype, "categories")
        and is_numeric(variables[name], x)
    }
    known = None if y is None else ~is_missing(y)
    findings = [*([] if y is None else of_labels(y)), *strange]
    findings += mostly_empty(variables)
    named = [*identifiers(variables, numeric)]
    findings += named
    skipped = {name for finding in named for name in finding.columns}
    levels = [name for name in variables.columns if name not in (*numeric, *skipped)]
    texts = variables[[name for name in levels if name not in categorical]]
    slips = [*text_among_numbers(texts)]
    written = [*numbers_as_text(texts.drop(columns=[finding.columns[0] for finding in slips]))]
    findings += [*slips, *written]
    findings += odd_levels(variables[levels].drop(columns=[finding.columns[0] for finding in written]))
    findings += constants(variables, numeric, y)
    findings += sentinels(variables, numeric)
    groups = None if group is None else table[group]
    duplicates = near_duplicates_of(numeric, variables, groups)
    if y is not None and known is not None:
        repeated = None if duplicates is None else duplicates.pairs[:, 1]
        findings += giveaways(variables, numeric, y, known, skipped, groups, repeated)
    numbers = {name: x for name, x in numeric.items() if name not in skipped}
    findings += copies(numbers, variables[levels], y)
    if duplicates is not None:
        findings.append(of_near_duplicates(duplicates, variables))
    findings += repeated_ids(table, ids, group)
    if group is not None:
        findings += of_groups(table[group], group, y)
    return findings
