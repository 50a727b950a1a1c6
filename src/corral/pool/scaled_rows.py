"""Training rows on the scales of all members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.scaling import Scale, ScaleKind, SortedColumns, blurred_range, learn_scale

# Of wide tables so many variables are kept for each row, half as many as there are rows outside a fold, but
# at least and at most so many.
_VARIABLES_PER_ROW = 0.4
_FEWEST_VARIABLES, _MOST_VARIABLES = 30, 200

# Up to so many cells scales are learnt anew without each fold: a single row of more hardly changes them.
_MOST_CELLS = 300_000


def with_ranks(scale_kinds: Iterable[ScaleKind]) -> list[ScaleKind]:
    """List kinds of scales once, and ranks, by which variables are selected."""
    return list(dict.fromkeys([*scale_kinds, "rank"]))


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """Rows on the scales of all kinds, which are learnt from all rows, since they do not look at labels."""

    data: LabelledRows  # the rows as they were given
    scales: Mapping[ScaleKind, Scale]  # by kind
    scaled: dict[ScaleKind, Floats]  # (n_rows, n_features) by kind
    # (n_rows,) their order by content, so that random choices depend on neither the order of rows and columns
    # nor the names of classes
    rank: Integers
    # how many variables a member may have. The number is the same in every fold as for all rows, so that log
    # densities of rows left out compare with log densities of new rows.
    most_variables: int

    @classmethod
    def learn(
        cls, data: LabelledRows, scale_kinds: Iterable[ScaleKind], max_knots: int | None = None
    ) -> ScaledRows:
        """Learn scales of some kinds, and ranks, by which variables are selected.

        If `max_knots` is given, it limits the values at which ranks are known, so that a scale reveals no row
        unless values are missing or categories.
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
        """Bring rows to scales that were learnt, perhaps from more rows than these."""
        scaled = {kind: scale.transform(data.X) for kind, scale in scales.items()}
        most_variables = int(np.clip(_VARIABLES_PER_ROW * data.n, _FEWEST_VARIABLES, _MOST_VARIABLES))
        return cls(data, scales, scaled, data.content_order(), most_variables)

    def take(self, positions: Integers) -> ScaledRows:
        """Keep some of the rows, and the scales."""
        scaled = {kind: rows[positions] for kind, rows in self.scaled.items()}
        return replace(self, data=self.data.take(positions), scaled=scaled, rank=self.rank[positions])

    def without(
        self, left_out: Bools, scale_kinds: Iterable[ScaleKind]
    ) -> tuple[ScaledRows, Mapping[ScaleKind, Floats]]:
        """Leave rows out; the others, and all rows (n_rows, n_features) on their scales, by kind.

        Scales are learnt from the others alone, unless there are very many cells. So the rows that are left
        out lie as far out on these scales as new rows lie on the scales of all rows.
        """
        positions = np.flatnonzero(~left_out)
        others = self.take(positions)
        if self.data.X.size > _MOST_CELLS:
            return others, self.scaled
        data, is_category = others.data, self.data.category_counts > 0
        # Ranks and scores among the others are read from columns that are sorted once for all folds.
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
