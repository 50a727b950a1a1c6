"""Training rows on the scales of all members.

A scale is a transformation that makes the columns of a table comparable (see `corral.data.scaling`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.scaling import Scale, ScaleKind, SortedColumns, blurred_range, learn_scale

# A member uses at most this number of variables per training row, which is half of the number of rows outside
# a fold. The limit is never below _FEWEST_VARIABLES or above _MOST_VARIABLES.
_VARIABLES_PER_ROW = 0.4
_FEWEST_VARIABLES, _MOST_VARIABLES = 30, 200

# In tables with at most this number of cells, scales are fitted again without each fold. In larger tables
# leaving out a fold hardly changes the scales.
_MOST_CELLS = 300_000


def with_ranks(scale_kinds: Iterable[ScaleKind]) -> list[ScaleKind]:
    """Return the different kinds of scales, and the kind "rank", by which variables are selected."""
    return list(dict.fromkeys([*scale_kinds, "rank"]))


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """Rows on several scales. Scales do not depend on labels."""

    data: LabelledRows  # raw rows
    scales: Mapping[ScaleKind, Scale]  # scale of each kind
    scaled: dict[ScaleKind, Floats]  # by kind of scale, the rows (n_rows, n_features) on this scale
    # (n_rows,) ranks of the rows by their values. Random choices follow these ranks, so that they do not
    # depend on the order of rows and columns or on the class labels.
    rank: Integers
    # Largest number of variables of a member. It is the same for every fold and for all rows, so that log
    # densities of left-out rows are comparable with log densities of new rows.
    most_variables: int

    @classmethod
    def learn(
        cls, data: LabelledRows, scale_kinds: Iterable[ScaleKind], max_knots: int | None = None
    ) -> ScaledRows:
        """Fit scales of the given kinds, and the scale "rank", by which variables are selected.

        Parameters
        ----------
        data : the rows.
        scale_kinds : kinds of scales.
        max_knots : None, or a limit of the number of values that a scale stores for each column. If a column
            has more different values, its scale then stores averages of values, but no value of a row. In
            tables with missing values or categories, the range scale still stores the smallest and the
            largest value of each column.
        """
        scales = {
            kind: learn_scale(data.X, data.weights, kind, n_categories=data.n_categories)
            for kind in with_ranks(scale_kinds)
        }
        if max_knots is not None:
            scales = {kind: scale.with_fewer_knots(max_knots) for kind, scale in scales.items()}
            if not data.mixed:
                scales["range"] = blurred_range(data.X)
        return cls.on_scales(data, scales)

    @classmethod
    def on_scales(cls, data: LabelledRows, scales: Mapping[ScaleKind, Scale]) -> ScaledRows:
        """Transform rows to fitted scales."""
        scaled = {kind: scale.transform(data.X) for kind, scale in scales.items()}
        most_variables = int(np.clip(_VARIABLES_PER_ROW * data.n, _FEWEST_VARIABLES, _MOST_VARIABLES))
        return cls(data, scales, scaled, data.content_order(), most_variables)

    def take(self, positions: Integers) -> ScaledRows:
        """Return the rows at the given positions, on the same scales."""
        scaled = {kind: rows[positions] for kind, rows in self.scaled.items()}
        return replace(self, data=self.data.take(positions), scaled=scaled, rank=self.rank[positions])

    def without(
        self, left_out: Bools, scale_kinds: Iterable[ScaleKind]
    ) -> tuple[ScaledRows, Mapping[ScaleKind, Floats]]:
        """Return the remaining rows, and by kind of scale all rows (n_rows, n_features).

        Both are on scales fitted to the remaining rows. So an outlier among the left-out rows is as far from
        other rows as an outlier among new rows is. In tables with more than `_MOST_CELLS` cells, the scales
        of all rows are used instead.
        """
        positions = np.flatnonzero(~left_out)
        others = self.take(positions)
        if self.data.X.size > _MOST_CELLS:
            return others, self.scaled
        data, is_category = others.data, self.data.category_counts > 0
        # For ranks and normal scores, columns are sorted once for all folds.
        ranks, scores = self._sorted.among(~left_out)
        scaled: dict[ScaleKind, Floats] = {}
        for kind in with_ranks(scale_kinds):
            if kind in ("rank", "score"):
                scaled[kind] = np.where(is_category, self.data.X, ranks if kind == "rank" else scores)
            else:
                scale = learn_scale(data.X, data.weights, kind, n_categories=data.n_categories)
                scaled[kind] = scale.transform(self.data.X)
        return replace(others, scaled={kind: rows[positions] for kind, rows in scaled.items()}), scaled

    @cached_property
    def _sorted(self) -> SortedColumns:
        return SortedColumns(self.data.X, self.data.weights)
