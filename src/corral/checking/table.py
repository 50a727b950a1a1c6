"""A look at a whole table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from corral.array_types import Floats
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
from corral.checking.findings import Finding, columns_in
from corral.checking.giveaways import giveaways
from corral.checking.labels import of_labels
from corral.checking.rows import copies, group_numbers, of_groups, of_near_duplicates, repeated_ids
from corral.checking.written_numbers import numbers_as_text
from corral.data.duplicates import number_copies
from corral.data.near_duplicates import near_duplicates
from corral.estimators.encoding import are_gaps
from corral.sentences.numbers import listed

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
    import pandas as pd

    frame = nw.from_native(frame, eager_only=True).to_pandas()
    names = [*ids, *categorical, *(name for name in (target, group) if name is not None)]
    unknown = [name for name in names if name not in frame.columns]
    if unknown:
        raise ValueError(f"the table has no column {unknown[0]!r}; it has {listed(list(frame.columns))}.")
    y = None if target is None else frame[target].astype(object).to_numpy()
    table = frame if target is None else frame.drop(columns=target)

    # Columns, one by one.
    variables = table[[name for name in table.columns if name not in {*ids, group}]]
    contents = {name: content_of(column) for name, column in variables.items()}
    strange = [*neither_numbers_nor_text(variables, contents, categorical)]
    odd = [name for name in variables.columns if contents[name].kind == "strange" and name not in categorical]
    variables = variables.drop(columns=odd)
    numeric = {
        name: contents[name].numbers
        for name in variables.columns
        if contents[name].is_numeric and name not in categorical
    }
    named = [*identifiers(variables, contents, numeric)]
    levels = variables.drop(columns=[*{*numeric, *columns_in(named)}])
    texts = levels[[name for name in levels.columns if name not in categorical]]
    slips = [*text_among_numbers(texts, contents)]
    written = [*numbers_as_text(texts.drop(columns=columns_in(slips)))]
    findings = [] if y is None else [*of_labels(y)]
    findings += [*strange, *mostly_empty(variables), *named]
    findings += [*slips, *written, *odd_levels(levels.drop(columns=columns_in(written)), contents)]
    findings += [*constants(variables), *sentinels(variables, numeric)]

    # Rows are compared by numbers: texts are coded, and columns that name rows tell nothing.
    groups = None if group is None else group_numbers(table[group])
    coded = pd.DataFrame(
        {name: numeric[name] if name in numeric else _codes(variables[name]) for name in variables.columns},
        table.index,
    )
    kinds = np.array([name not in numeric for name in coded.columns], dtype=np.int64)
    duplicates = near_duplicates(coded.to_numpy(), kinds, groups)
    considered = coded.drop(columns=columns_in(named))
    labels = np.unique(np.zeros(len(table)) if y is None else y.astype(str), return_inverse=True)[1]
    numbers = number_copies(considered.to_numpy(), labels) if considered.size else None
    if y is not None:
        distinct = ~are_gaps(y)
        distinct[[] if duplicates is None else duplicates.pairs[:, 1]] = False
        if numbers is not None:
            distinct &= ~pd.DataFrame({"number": numbers, "label": labels}).duplicated().to_numpy()
        findings += giveaways(considered, numeric, labels, np.flatnonzero(distinct), groups)
    if numbers is not None and considered.shape[1] > 1:  # in one column, rows agree by chance
        findings += copies(numbers, labels, table.index)
    if duplicates is not None:
        findings.append(of_near_duplicates(duplicates, variables))
    findings += repeated_ids(table, [name for name in ids if name != group])
    return findings if group is None else [*findings, *of_groups(table[group], y)]


def _codes(column: pd.Series[Any]) -> Floats:
    """Numbers in place of the values of a column, NaN where there is none."""
    codes = column.factorize()[0].astype(np.float64)
    return np.where(codes < 0.0, np.nan, codes)
