"""RodeoDensity: algorithm 1 as a density estimator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from corral.array_types import Floats
from corral.data.dataset import LabelledRows, TrainingRows
from corral.data.scaling import learn_scale
from corral.estimators.base import Categorical, TableEstimator
from corral.estimators.tables import read_table
from corral.estimators.validation import (
    check_integer,
    check_one_row,
    check_rodeo,
    check_sample_weight,
    unchanged_by_errors,
)
from corral.estimators.warned import warn_about_duplicates
from corral.rodeo.density import class_log_densities
from corral.rodeo.factors import draw_kernels
from corral.rodeo.model import DensityModel
from corral.rodeo.path import RodeoPath, density_path
from corral.rodeo.relevance import leave_one_out_bandwidths

_SCALES = ("range", "standard", None)


@dataclass(kw_only=True, eq=False, repr=False)
class RodeoDensity(DensityMixin, TableEstimator):
    r"""Kernel density estimate whose bandwidths are chosen at each point, variable by variable.

    At a point :math:`x` the estimate is

    .. math::

        \hat p(x) = \frac 1 n \sum_{i=1}^n \prod_{j=1}^d \frac 1 {h_j(x)}
            \varphi\Big(\frac{x_j - x_{ij}}{h_j(x)}\Big)

    with the standard normal density :math:`\varphi`. The Rodeo [1]_ starts from one wide bandwidth
    :math:`h_0 = c_0 / \log\log \max(n, 16)` and multiplies :math:`h_j` by `beta` for as long as the
    derivative of the estimate with respect to :math:`h_j` stands out from its noise. A bandwidth that
    shrinks marks a variable in which the density varies at :math:`x`; one that stays wide marks a
    variable in which it is flat.

    Parameters
    ----------
    update : {"simultaneous", "sequential"}, default="simultaneous"
        Whether bandwidths change after each sweep over the variables, so that the order of columns
        does not matter, or inside it, as algorithm 1 of [2]_ is printed.
    scale : {"range", "standard"} or None, default="range"
        Scale on which bandwidths are chosen: each column is divided by its range or by its standard
        deviation, or taken as it is. (Ranks, as in `RodeoClassifier`, would make every column uniform here.)
    beta : float, default=0.9
        Factor by which a bandwidth shrinks, between 0 and 1.
    c0 : float, default=1.0
        Constant of the initial bandwidth.
    min_bandwidth, categorical_features, n_jobs, verbose
        As in `RodeoClassifier`.

    Attributes
    ----------
    density_ : DensityModel
        All that `fit` has learnt: the rows, their scale, and the settings of the Rodeo.
    initial_bandwidth_ : float
        Bandwidth that every scaled variable starts from.
    n_duplicates_ : int
        Number of rows that are duplicates of others; see the notes of `RodeoClassifier`.
    n_features_in_, feature_names_in_ : int, ndarray of shape (`n_features_in_`,)
        Number of variables seen in `fit`, and their names if `X` had any.

    See Also
    --------
    RodeoClassifier : Compares such estimates, one per class.
    sklearn.neighbors.KernelDensity : One bandwidth for all points and variables.

    Notes
    -----
    Because the bandwidths depend on :math:`x`, the estimate integrates to about 1 only.

    References
    ----------
    .. [1] H. Liu, J. Lafferty, L. Wasserman (2007). Sparse nonparametric density estimation in high
       dimensions using the rodeo. AISTATS.
    .. [2] W.-P. N. Chen, Y.-c. I. Chang. Fast multi-class probabilistic classifier by sparse
       non-parametric density estimation.

    Examples
    --------
    >>> import numpy as np
    >>> from corral import RodeoDensity
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(500, 2))
    >>> X[:450, 0] = rng.normal(0.5, 0.02, 450)
    >>> density = RodeoDensity().fit(X)
    >>> density.local_bandwidths([[0.5, 0.5]]).round(2)  # the density varies in the first variable
    array([[0.01, 0.21]])
    >>> density.score_samples([[0.5, 0.5], [0.6, 0.5]]).round(1)
    array([2.7, 0.8])
    """

    update: Literal["simultaneous", "sequential"] = "simultaneous"
    scale: Literal["range", "standard"] | None = "range"
    beta: float = 0.9
    c0: float = 1.0
    min_bandwidth: float | Literal["auto"] = "auto"
    categorical_features: Categorical = "from_dtype"
    n_jobs: int | None = None
    verbose: int = 0

    density_: DensityModel = field(init=False)

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Scale and store the rows `X` whose density is estimated.

        `sample_weight` (n_samples,) says how much each row matters, up to a common factor; weight 0 equals
        removal. `y` is ignored.
        """
        settings = check_rodeo(self, _SCALES)
        with unchanged_by_errors(self):
            rows = read_table(self, X, categorical=self.categorical_features, reset=True).X
            weights = check_sample_weight(sample_weight, len(rows))
        data = LabelledRows.sort(TrainingRows(rows, np.zeros(len(rows)), weights, self.encoding_.counts))
        warn_about_duplicates(data.n_duplicates, data.n_duplicates + len(data.X))
        scale = learn_scale(data.X, data.weights, self.scale, n_categories=data.n_categories)
        self.density_ = DensityModel(data, scale, settings)
        return self

    def __corral_validate__(self) -> None:
        """Refuse a model of another table or with other parameters; `load_model` calls it."""
        self._validate_columns(self.density_.scale.center.size, self.density_.data.n_categories)
        if check_rodeo(self, _SCALES) != self.density_.settings:
            raise ValueError("the settings of the model differ from the parameters")

    def score_samples(self, X: ArrayLike) -> Floats:
        """Logarithm (n_samples,) of the density of the unscaled variables at each row of `X`."""
        samples = self._check_samples(X)
        log_density, _ = self._estimate(samples)
        return log_density[:, 0] - ~np.isnan(samples) @ self.density_.scale.log_widths

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Sum of `score_samples` over the rows of `X`; `y` is ignored."""
        return float(self.score_samples(X).sum())

    def local_bandwidths(self, X: ArrayLike) -> Floats:
        """Bandwidths (n_samples, n_features) that the Rodeo chooses at each row, of the scaled variables."""
        _, h = self._estimate(self._check_samples(X), bandwidths=True)
        return h[:, 0]

    def bandwidth_path(self, X: ArrayLike) -> RodeoPath:
        """How the Rodeo chooses the bandwidths of one sample (1, n_features), sweep by sweep.

        The path ends at the values of `local_bandwidths`. The sample counts as a new row, even if it is a
        training row.
        """
        samples = self._check_samples(X)
        x = check_one_row(self.density_.scale.transform(samples))
        return density_path(self.density_.density, x, self.density_.settings.update)

    def sample(self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None) -> Floats:
        """Generate new rows: a random training row plus normal noise with the bandwidths at this row.

        The bandwidths at a training row come from the other rows (leave-one-out). A value that the row lacks
        comes from the density of the variable. A category comes from its kernel, or is picked by frequency if
        the row lacks it; it is returned as its position in `encoding_`.
        """
        check_is_fitted(self)
        n, random = check_integer("n_samples", n_samples), check_random_state(random_state)
        rows = self.density_.density.rows
        weights = rows.weight(np.arange(rows.n_rows))
        picked = random.choice(rows.n_rows, n, p=weights / weights.sum())
        positions, which = np.unique(picked, return_inverse=True)
        random.shuffle(which)
        (h,) = leave_one_out_bandwidths([rows], [positions], self.density_.settings, self._computation())
        noise = random.standard_normal((n, len(self.encoding_.categories)))
        centers = rows.take(positions)[which]
        return self.density_.scale.restore(draw_kernels(rows, centers, h[which], noise, random))

    @property
    def n_duplicates_(self) -> int:
        """Number of rows that are duplicates of others."""
        return self.density_.data.n_duplicates

    @property
    def initial_bandwidth_(self) -> float:
        """Bandwidth that every scaled variable starts from."""
        return float(self.density_.density.grid[0])

    def _estimate(self, samples: Floats, *, bandwidths: bool = False) -> tuple[Floats, Floats]:
        """Log densities (n_samples, 1) of the scaled variables and, with `bandwidths`, their bandwidths."""
        model, scaled = self.density_, self.density_.scale.transform(samples)
        return class_log_densities(
            [model.density], scaled, model.settings.update, self._computation(), bandwidths=bandwidths
        )
