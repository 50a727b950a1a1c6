"""Find leakage: columns from which alone the label can be predicted.

Such a column may also hold ids of groups whose rows all have one class; then another finding is reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from corral.array_types import Floats, Integers
from corral.checking.findings import ENOUGH_ROWS, Finding
from corral.checking.ids import is_called_id
from corral.checking.quick_model import left_out_probabilities, ranked_columns
from corral.data.subsample import random_rows
from corral.sentences.numbers import listed

if TYPE_CHECKING:
    import pandas as pd

# A column leaks the label if predictions from it alone have at most this share of the errors of always
# predicting the most frequent class.
_ERRORS_LEFT = 0.03
_ROWS_TRIED = 5000

# A column whose share of errors is at most _ERRORS_OF_SUSPECT is a suspect, if one suspect alone is as
# accurate as all variables together. A suspect leaks the label if one of its values is in nearly all rows of
# a class and in hardly any other row, or if a model without the suspects has at least the share
# _ERRORS_OF_REST of the errors. Good variables that do not leak, such as the petals of irises, meet neither
# condition.
_ERRORS_OF_SUSPECT = 0.15
_SHARE_IN_CLASS, _SHARE_IN_OTHERS = 0.9, 0.05
_ERRORS_OF_REST = 0.5

# Values may be ids of groups, such as patients, if there are so many rows per value on average, and so many
# values in each class.
_ROWS_OF_PATIENT = 2
_PATIENTS_OF_CLASS = 3

_ADVICE = "leave it out, unless its value is known before the label"


class SingleColumns(NamedTuple):
    """How well each column alone predicts the label."""

    accuracy: dict[str, float]  # by column
    baseline: float  # accuracy of always predicting the most frequent class
    rows: Integers  # (n,) positions of the rows that were predicted
    codes: Integers  # (n,) indices of their classes
    has_groups: bool  # whether each row was predicted from rows of other groups

    def errors_left(self, accuracy: float) -> float:
        """Return the errors at this accuracy, as a share of the errors of always predicting one class."""
        return (1.0 - accuracy) / (1.0 - self.baseline)


def judge_columns(
    coded: pd.DataFrame,
    numeric: Collection[str],
    labels: Integers,
    rows: Integers,
    groups: Integers | None,
) -> SingleColumns | None:
    """Predict the label from each column alone, with the group of the row held out.

    Parameters
    ----------
    coded : (n_rows, n_columns) columns of numbers, with texts as codes and NaN for missing values.
    numeric : names of the numeric columns.
    labels : (n_rows,) index of the class of each row.
    rows : positions of rows without duplicates, since any column predicts a row well from its duplicate.
    groups : (n_rows,) code of the group of each row; None if there are no groups.

    Returns
    -------
    alone : the accuracies; None if there are too few rows or only one class.
    """
    rows = rows[random_rows(rows.size, _ROWS_TRIED, np.random.default_rng(0))]
    codes = np.unique(labels[rows], return_inverse=True)[1]
    counts = np.bincount(codes)
    if counts.size < 2 or rows.size < 2 * ENOUGH_ROWS:
        return None
    group_ids = rows if groups is None else groups[rows]
    accuracy = {
        name: _accuracy_of_one(coded[name].to_numpy()[rows], codes, group_ids, ordered=name in numeric)
        for name in coded.columns
    }
    return SingleColumns(accuracy, counts.max() / rows.size, rows, codes, groups is not None)


def leakage(coded: pd.DataFrame, numeric: Collection[str], alone: SingleColumns) -> Iterator[Finding]:
    """Yield findings about columns that alone predict nearly all labels."""
    held_out = ", from rows of other groups" if alone.has_groups else ""
    for name, accuracy in alone.accuracy.items():
        if alone.errors_left(accuracy) > _ERRORS_LEFT:
            continue
        description = (
            f"column {name!r} alone predicts the label of {accuracy:.1%} of the rows{held_out}; always "
            "naming "
            f"the most frequent class predicts {alone.baseline:.1%}"
        )
        x = coded[name].to_numpy()[alone.rows]
        is_threshold = name in numeric and not is_called_id(name) and _in_order(x, alone.codes)
        if is_threshold or not _may_name_groups(x, alone.codes):
            yield Finding("leakage", description, _ADVICE, (name,))
            continue
        description += "; its values repeat, and all rows with the same value have the same class"
        advice = (
            "if it identifies groups such as patients, use it as the group column, otherwise leave it out"
        )
        yield Finding("names groups", description, advice, (name,))


def leaking_missing_values(
    coded: pd.DataFrame, alone: SingleColumns, classes: Sequence[str]
) -> Iterator[Finding]:
    """Yield findings about columns that are empty in nearly all rows of a class and hardly any other row.

    Columns that are empty in hardly any row of a class and in nearly all other rows are reported, too.
    `classes` (n_classes,) are the names of the classes in `alone`, in the order of their indices.
    """
    own = alone.codes == np.arange(len(classes))[:, np.newaxis]
    n_own = own.sum(axis=1)
    fewer = np.minimum(n_own, alone.rows.size - n_own)
    for name in coded.columns:
        present = np.isfinite(coded[name].to_numpy()[alone.rows])
        n_wrong = (own != present).sum(axis=1)
        n_wrong = np.minimum(n_wrong, alone.rows.size - n_wrong)
        given_away = np.flatnonzero((fewer >= ENOUGH_ROWS) & (n_wrong <= _ERRORS_LEFT * fewer))
        if given_away.size:
            a = given_away[0]
            yield Finding(
                "leakage",
                f"column {name!r} has a value in {present[own[a]].mean():.1%} of the rows of the class "
                f"{classes[a]!r} and in {present[~own[a]].mean():.1%} of all other rows, so this class can "
                "be "
                "predicted from the missing values alone",
                _ADVICE,
                (name,),
            )


def relative_leakage(
    coded: pd.DataFrame, alone: SingleColumns, probabilities: Floats, codes: Integers, rows: Integers
) -> Iterator[Finding]:
    """Yield findings about suspicious columns that alone predict as well as all variables together.

    Parameters
    ----------
    coded : (n_rows, n_variables) the variables.
    alone : how well each variable alone predicts the label.
    probabilities : (n, n_classes) probabilities of a model of all variables, each row predicted by a model
        fitted without it.
    codes : (n,) index of the class of each of these rows.
    rows : (n,) positions of these rows.
    """
    hits = probabilities.argmax(axis=1) == codes
    together = float(hits.mean())
    error = float(hits.std() / np.sqrt(hits.size))
    suspects = {
        name: accuracy
        for name, accuracy in alone.accuracy.items()
        if name in coded.columns and alone.errors_left(accuracy) <= _ERRORS_OF_SUSPECT
    }
    if max(suspects.values(), default=0.0) < together - error:
        return
    rest, others = None, coded.iloc[rows].drop(columns=list(suspects))
    if suspects and others.shape[1]:
        rest = float((left_out_probabilities(ranked_columns(others), codes).argmax(axis=1) == codes).mean())
    is_all = rest is not None and alone.errors_left(rest) >= _ERRORS_OF_REST
    for name, accuracy in suspects.items():
        if is_all or _value_names_class(coded[name].to_numpy()[rows], codes):
            without = "" if rest is None else f", and {rest:.1%} without {listed(list(suspects))}"
            yield Finding(
                "leakage",
                f"column {name!r} alone predicts the label of {accuracy:.1%} of the rows; all variables "
                f"together predict {together:.1%}{without}",
                _ADVICE,
                (name,),
            )


def _value_names_class(x: Floats, codes: Integers) -> bool:
    """Whether one value, or a missing value, is in nearly all rows of a class and in hardly any other row."""
    values, value = np.unique(x, return_inverse=True)
    if values.size < ENOUGH_ROWS:
        return False
    counts = np.zeros((values.size, codes.max() + 1))
    np.add.at(counts, (value, codes), 1.0)
    totals = counts.sum(axis=0)
    in_class = counts / np.maximum(totals, 1.0)
    in_others = (counts.sum(axis=1, keepdims=True) - counts) / np.maximum(totals.sum() - totals, 1.0)
    return bool(((in_class >= _SHARE_IN_CLASS) & (in_others <= _SHARE_IN_OTHERS)).any())


def _in_order(x: Floats, codes: Integers) -> bool:
    """Whether the value ranges of the classes do not overlap."""
    present = np.isfinite(x)
    sorted_codes = codes[present][np.argsort(x[present], kind="stable")]
    return int((np.diff(sorted_codes) != 0).sum()) == np.unique(sorted_codes).size - 1


def _may_name_groups(x: Floats, codes: Integers) -> bool:
    """Whether the values may be ids of groups: whole numbers or codes, all rows of a value in one class.

    Values that are hardly more than the classes are taken as codes of the classes instead.
    """
    present = np.isfinite(x)
    if (x[present] != np.round(x[present])).any():
        return False
    pairs = np.unique(np.column_stack([x[present], codes[present]]), axis=0)
    n_values = np.unique(pairs[:, 0]).size
    values_by_class = np.bincount(pairs[:, 1].astype(np.int64), minlength=int(codes.max()) + 1)
    return bool(
        len(pairs) == n_values
        and present.sum() >= _ROWS_OF_PATIENT * n_values
        and values_by_class.min() >= _PATIENTS_OF_CLASS
    )


def _accuracy_of_one(x: Floats, codes: Integers, group_ids: Integers, *, ordered: bool) -> float:
    """Predict each row by the most frequent class of other rows with the same value; return the accuracy.

    Other rows are the rows of other groups; `group_ids` (n_rows,) identify the groups. If no other row has
    the same value and the values are `ordered`, as numbers are, the other rows with the nearest value are
    used. Missing values count as equal to each other and have no nearest value.
    """
    order = np.lexsort((group_ids, x))  # missing values come last
    x, codes, group_ids = x[order], codes[order], group_ids[order]
    value = np.unique(x, return_inverse=True)[1]
    counts = np.zeros((value[-1] + 1, codes.max() + 1))
    np.add.at(counts, (value, codes), 1.0)
    pairs, pair = np.unique(group_ids * len(counts) + value, return_inverse=True)
    counts_in_group = np.zeros((pairs.size, counts.shape[1]))
    np.add.at(counts_in_group, (pair, codes), 1.0)
    others = counts[value] - counts_in_group[pair]
    if ordered:
        nearest = _nearest_of_others(x, group_ids)
        alone = np.flatnonzero(~others[: nearest.size].any(axis=1) & (nearest >= 0))
        own_pairs = group_ids[alone] * len(counts) + value[nearest[alone]]
        positions = np.minimum(np.searchsorted(pairs, own_pairs), pairs.size - 1)
        own = np.where((pairs[positions] == own_pairs)[:, np.newaxis], counts_in_group[positions], 0.0)
        others[alone] = counts[value[nearest[alone]]] - own
    rows = np.arange(codes.size)
    right = others[rows, codes]
    others[rows, codes] = -1.0
    return float((right > others.max(axis=1)).mean())


def _nearest_of_others(x: Floats, group_ids: Integers) -> Integers:
    """Return the position (n_values,) of the row of another group with the nearest value; -1 for none.

    `x` is sorted, with missing values last. Missing values are left out of the result.
    """
    x = x[~np.isnan(x)]
    group_ids = group_ids[: x.size]
    is_first = np.append(True, group_ids[1:] != group_ids[:-1])[
        : x.size
    ]  # whether a row is the first of consecutive rows of one group
    begins, run = np.flatnonzero(is_first), np.cumsum(is_first) - 1
    below, above = begins[run] - 1, np.append(begins[1:], x.size)[run]
    padded = np.concatenate([[-np.inf], x, [np.inf]])
    down, up = x - padded[below + 1], padded[above + 1] - x
    return np.where(np.isinf(down) & np.isinf(up), -1, np.where(down <= up, below, above))
