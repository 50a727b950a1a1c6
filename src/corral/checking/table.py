"""A look at a whole table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
from numpy.typing import NDArray

from corral.checking.columns import (
    constants,
    content_of,
    identifiers,
    mostly_empty,
    neither_numbers_nor_text,
    odd_levels,
    sentinels,
    text_among_numbers,
)
from corral.checking.findings import Finding
from corral.checking.giveaways import giveaways
from corral.checking.labels import is_missing, of_labels
from corral.checking.rows import copies, near_duplicates_of, of_groups, of_near_duplicates, repeated_ids
from corral.checking.written_numbers import numbers_as_text
from corral.sentences import listed

if TYPE_CHECKING:
    import pandas as pd


def check_table(
    frame: Any,
    target: str | None = None,
    *,
    ids: Sequence[str] = (),
    group: str | None = None,
    categorical: Sequence[str] = (),
) -> list[Finding]:
    """Look for mistakes in a table before a classifier is fitted to it, as `corral check` does.

    Parameters
    ----------
    frame : DataFrame
        Columns of numbers or text; missing values are NaN or None. Frames of other libraries than pandas are
        turned into its.
    target : str, default=None
        Column with the classes of the rows, if there is one; a class may be missing.
    ids : sequence of str, default=()
        Columns that name rows.
    group : str, default=None
        Column that names what rows belong to, such as a patient with several measurements.
    categorical : sequence of str, default=()
        Columns whose values are categories, whatever they look like.

    Returns
    -------
    findings : list of Finding
        In the order in which they should be mended. `print` shows one as a sentence.

    Examples
    --------
    >>> import pandas as pd
    >>> from corral import check_table
    >>> heights, weights = [1.7, 1.6, -999.0, 1.8, -999.0, 1.9], [70.5, 66.1, 71.2, 80.3, 69.9, 84.0]
    >>> frame = pd.DataFrame({"height": heights, "weight": weights, "site": 3})
    >>> for finding in check_table(frame):
    ...     print(finding)
    column 'site' holds 3 in every row, which tells nothing: leave it out.
    column 'height' holds -999 in 2 rows and nothing else below 1.6: say that -999 stands for a missing value.
    """
    frame = nw.from_native(frame, eager_only=True).to_pandas()
    named = [*ids, *categorical, *(name for name in (target, group) if name is not None)]
    unknown = [name for name in named if name not in frame.columns]
    if unknown:
        raise ValueError(f"the table has no column {unknown[0]!r}; it has {listed(list(frame.columns))}.")
    y = None if target is None else frame[target].astype(object).to_numpy()
    table = frame if target is None else frame.drop(columns=target)
    return table_findings(table, y, ids=ids, group=group, categorical=categorical)


def table_findings(
    table: pd.DataFrame,
    y: NDArray[Any] | None = None,
    *,
    ids: Sequence[str] = (),
    group: str | None = None,
    categorical: Sequence[str] = (),
) -> list[Finding]:
    """Findings of a table whose classes (n_rows,), if there are any, stand beside it; see `check_table`."""
    variables = table[[name for name in table.columns if name not in {*ids, group}]]
    strange = [*neither_numbers_nor_text(variables, categorical)]
    variables = variables.drop(columns=[finding.columns[0] for finding in strange])
    contents = {
        name: content_of(variables[name], is_levels=name in categorical) for name in variables.columns
    }
    numeric = {
        name: content.numbers
        for name, content in contents.items()
        if content.is_numeric and name not in categorical and not hasattr(variables[name].dtype, "categories")
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
