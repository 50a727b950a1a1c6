r"""The kinds of members that a pool is made of, and rows in the units of all of them.

Each kind has its units and its frame (see `transforms`), in which the rows of a class are pulled towards
their mean by :math:`a = \sqrt{1 - h^2}` and blurred with the bandwidth h, which keeps the covariance of the
class (West, 1993): h = 1 is a normal density, a small h a kernel density of the rows. Normal densities along
covariances, of all classes or of each, make linear and quadratic discriminants; they are kinds of their own
beside the kernels, since few rows cannot tell which of them to do without. Two more kinds are kernel
densities of the rows as they are, with bandwidths refined by variable (see `bandwidths`), and one has the
same bandwidth for all variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from corral.array_types import Bools, Floats, Integers
from corral.data.dataset import LabelledRows
from corral.data.scaling import Scale, ScaleKind, SortedColumns, blurred_range, learn_scale
from corral.pool.fold_plan import N_FOLDS
from corral.pool.transforms import Covariance

# Bandwidths of pulled kernels, in units of the deviations of the class. The last makes a normal density.
_BANDWIDTHS = np.array([0.25, 0.4, 0.55, 0.7, 0.85, 1.0])

# Kinds of frames in which normal densities are kinds of their own.
_ALSO_NORMAL = ("own", "shared")

# Bandwidths of plain kernels, in units of the ranges of the variables, are powers of two with these
# exponents. From so many rows on there are smaller ones, down to the distance between neighbours if that is
# not below the least.
_FIRST_EXPONENT, _LAST_EXPONENT, _EXPONENT_STEP = -4.5, 0.5, 0.5
_LEAST_EXPONENT = -8.0
_ROWS_FOR_FINE_KERNELS = 2000

# Factors of refined bandwidths, which were fitted to fewer rows.
_FACTORS = 2.0 ** np.arange(-0.75, 0.5, 0.25)

# Refined bandwidths are fitted without one part of the folds in turn: fewer parts than folds, because each
# costs as much as all other members together.
_REFINE_PARTS = 3

# For the same reason they are fitted in one of so many divisions.
_DIVISIONS_PER_REFINED = 3

_NAMES = {
    "own": "kernels along the covariance of each class",
    "shared": "kernels along the shared covariance",
    "diagonal": "kernels along the variances of each class",
    "selected": "kernels on the variables of each class",
    "none": "plain kernels",
    None: "bandwidths refined by variable",
}


class Kind(NamedTuple):
    """A way to make a member.

    Attributes
    ----------
    scale : kind of units.
    covariance : kind of frame, or None for bandwidths refined by variable.
    normal : whether classes have normal densities, and no kernels.
    n_finer : how many smaller bandwidths plain kernels try than they do in small tables.
    """

    scale: ScaleKind
    covariance: Covariance | None = None
    normal: bool = False
    n_finer: int = 0

    @property
    def name(self) -> str:
        """Name in tables and progress bars."""
        units = "normal scores" if self.scale == "score" else f"{self.scale} units"
        name = _NAMES[self.covariance]
        if self.normal:
            name = name.replace("kernels", "normal densities")
        return f"{name}, {units}"

    @property
    def n_parts(self) -> int:
        """Into how many parts the rows are divided, each of which is predicted without its labels."""
        return _REFINE_PARTS if self.covariance is None else N_FOLDS

    def n_divisions(self, most: int) -> int:
        """How many of the divisions of a trial, at most so many, are worth their time."""
        return -(-most // _DIVISIONS_PER_REFINED) if self.covariance is None else most

    def for_rows(self, n_rows: int, n_columns: int) -> Kind:
        """Let plain kernels be as fine as so many rows can tell: few columns may hide many small patches."""
        if self.covariance != "none" or n_rows < _ROWS_FOR_FINE_KERNELS:
            return self
        neighbour = max(-np.log2(n_rows) / max(n_columns, 1), _LEAST_EXPONENT)
        return self._replace(n_finer=max(int((_FIRST_EXPONENT - neighbour) / _EXPONENT_STEP), 0))

    def kernels(self) -> tuple[Floats, Floats]:
        """Bandwidths and pulls to try."""
        if self.covariance is None:
            return _FACTORS, np.ones(_FACTORS.size)
        if self.covariance == "none":
            first = _FIRST_EXPONENT - self.n_finer * _EXPONENT_STEP
            bandwidths = 2.0 ** np.arange(first, _LAST_EXPONENT + _EXPONENT_STEP, _EXPONENT_STEP)
            return bandwidths, np.ones(bandwidths.size)
        bandwidths = _BANDWIDTHS
        if self.covariance in _ALSO_NORMAL:
            bandwidths = bandwidths[-1:] if self.normal else bandwidths[:-1]
        return bandwidths, np.sqrt(1.0 - bandwidths**2)


KINDS = (
    Kind("score", "own"),
    Kind("score", "own", normal=True),
    Kind("standard", "shared"),
    Kind("standard", "shared", normal=True),
    Kind("standard", "diagonal"),
    Kind("rank", "selected"),
    Kind("range", "none"),
    Kind("rank"),
    Kind("score"),
)

# Of wide tables so many variables are kept for each row, half as many as there are rows outside a fold, but
# at least and at most so many.
_VARIABLES_PER_ROW = 0.4
_FEWEST_VARIABLES, _MOST_VARIABLES = 30, 200

# Up to so many cells units are learnt anew without each fold: a single row of more hardly changes them.
_MOST_CELLS = 300_000

# In which units members are, by their names.
UNITS_OF_MEMBERS = {kind.name: kind.scale for kind in KINDS}


def by_frame(kinds: Sequence[Kind] = KINDS) -> list[list[Kind]]:
    """Put kinds together that see rows in the same frame: to try all of them takes as long as one."""
    together: dict[tuple[ScaleKind, Covariance | None], list[Kind]] = {}
    for kind in kinds:
        together.setdefault((kind.scale, kind.covariance), []).append(kind)
    return list(together.values())


def wanted_units(kinds: Sequence[Kind] = KINDS) -> list[ScaleKind]:
    """List the units of some kinds of members, and ranks, by which variables are selected."""
    return list(dict.fromkeys([*(kind.scale for kind in kinds), "rank"]))


@dataclass(frozen=True, eq=False)
class RowsInUnits:
    """Rows in the units of all kinds, which are learnt from all rows, since they do not look at labels.

    Attributes
    ----------
    data : the rows as they were given.
    scales : by kind.
    scaled : (n_rows, n_features) by kind.
    rank : (n_rows,) their order by content, so that random choices depend on neither the order of rows and
        columns nor the names of classes.
    mixed : whether values are missing or levels, also if not in these rows.
    most_variables : how many variables a member may have. It is that of all rows in every fold, so that log
        densities of rows left out have the level of those of new rows.
    """

    data: LabelledRows
    scales: Mapping[ScaleKind, Scale]
    scaled: dict[ScaleKind, Floats]
    rank: Integers
    mixed: bool
    most_variables: int

    @classmethod
    def learn(cls, data: LabelledRows, kinds: Sequence[Kind], max_knots: int | None = None) -> RowsInUnits:
        """Learn the units of some kinds of members, and ranks, by which variables are selected.

        If `max_knots` is given, it limits the values at which ranks are known, and units tell of no row
        unless values are missing or levels.
        """
        scales = {
            kind: learn_scale(data.X, data.weights, kind, levels=data.levels) for kind in wanted_units(kinds)
        }
        if max_knots is not None:
            scales = {kind: scale.with_fewer_knots(max_knots) for kind, scale in scales.items()}
            if not data.mixed:
                scales["range"] = blurred_range(data.X)
        return cls.in_units(data, scales)

    @classmethod
    def in_units(cls, data: LabelledRows, scales: Mapping[ScaleKind, Scale]) -> RowsInUnits:
        """Bring rows into units that are known, perhaps from more rows than these."""
        scaled = {kind: scale.transform(data.X) for kind, scale in scales.items()}
        most_variables = int(np.clip(_VARIABLES_PER_ROW * data.n, _FEWEST_VARIABLES, _MOST_VARIABLES))
        return cls(data, scales, scaled, data.content_order(), data.mixed, most_variables)

    def take(self, positions: Integers) -> RowsInUnits:
        """Keep some of the rows, and the units."""
        scaled = {kind: rows[positions] for kind, rows in self.scaled.items()}
        return replace(self, data=self.data.take(positions), scaled=scaled, rank=self.rank[positions])

    def without(
        self, left_out: Bools, kinds: Sequence[Kind]
    ) -> tuple[RowsInUnits, Mapping[ScaleKind, Floats]]:
        """Leave rows out; the others, and all rows (n_rows, n_features) by kind of units, in their units.

        Units are learnt from the others alone, unless there are very many cells. So the rows that are left
        out lie as far out in these units as new rows lie in those of all rows.
        """
        positions = np.flatnonzero(~left_out)
        others = self.take(positions)
        if self.data.X.size > _MOST_CELLS:
            return others, self.scaled
        data, is_level = others.data, self.data.level_counts > 0
        ranks, scores = self._sorted.among(~left_out)
        scaled: dict[ScaleKind, Floats] = {}
        for kind in wanted_units(kinds):
            if kind in ("rank", "score"):
                scaled[kind] = np.where(is_level, self.data.X, ranks if kind == "rank" else scores)
            else:
                scale = learn_scale(data.X, data.weights, kind, levels=data.levels)
                scaled[kind] = scale.transform(self.data.X)
        in_units = {kind: rows[positions] for kind, rows in scaled.items()}
        return replace(others, scaled=in_units), scaled

    @cached_property
    def _sorted(self) -> SortedColumns:
        return SortedColumns(self.data.X, self.data.weights)
