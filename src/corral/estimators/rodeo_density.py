"""RodeoDensity: algorithm 1 of the paper, the Rodeo, as a density estimator."""

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
    r"""Kernel density estimate whose bandwidths are chosen at each sample, variable by variable.

    At a sample :math:`x` the estimate is

    .. math::

        \hat p(x) = \frac 1 n \sum_{i=1}^n \prod_{j=1}^d \frac 1 {h_j(x)}
            \varphi\Big(\frac{x_j - x_{ij}}{h_j(x)}\Big)

    with the standard normal density :math:`\varphi`. The Rodeo [1]_ starts from one wide bandwidth
    :math:`h_0 = c_0 / \log\log \max(n, 16)` for all variables. It multiplies :math:`h_j` by `beta` as long as
    the derivative of the estimate with respect to :math:`h_j` is larger than its noise. If a bandwidth
    shrinks, the density varies in this variable near :math:`x`; if it stays wide, the density is flat.

    Parameters
    ----------
    update : {"simultaneous", "sequential"}, default="simultaneous"
        "simultaneous" changes all bandwidths after each sweep over the variables, so that the order of the
        columns does not matter. "sequential" changes each bandwidth within the sweep, as algorithm 1 of [2]_
        is printed.
    scale : {"range", "standard"} or None, default="range"
        Scale on which bandwidths are chosen. "range" divides each column by its range, "standard" by its
        standard deviation, and None changes nothing. There is no "rank", since ranks are always uniform.
    beta : float, default=0.9
        Factor by which a bandwidth shrinks, between 0 and 1.
    c0 : float, default=1.0
        Constant of the initial bandwidth.
    min_bandwidth, categorical_features, n_jobs, verbose
        As in `RodeoClassifier`.

    Attributes
    ----------
    density_ : DensityModel
        Everything that `fit` learns: the rows, their scale, and the settings of the Rodeo.
    initial_bandwidth_ : float
        Bandwidth of the scaled variables from which the Rodeo starts.
    n_duplicates_ : int
        Number of rows that are duplicates of other rows; see the notes of `RodeoClassifier`.
    n_features_in_, feature_names_in_ : int, ndarray of shape (`n_features_in_`,)
        Number of variables seen in `fit`, and their names if `X` had any.

    See Also
    --------
    RodeoClassifier : Classifies by one such density per class.
    sklearn.neighbors.KernelDensity : Uses one bandwidth for all samples and variables.

    Notes
    -----
    Since the bandwidths depend on :math:`x`, the integral of the estimate is only about 1.

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
        """Scale and store the rows whose density is estimated.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, of any type that `RodeoClassifier.fit` accepts.
        y : object, default=None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. A common factor changes nothing, and a row of weight 0 is ignored.

        Returns
        -------
        self : RodeoDensity
            The fitted estimator.
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
        """Raise ValueError if model, columns and parameters disagree; `load_model` calls this check."""
        self._validate_columns(self.density_.scale.center.size, self.density_.data.n_categories)
        if check_rodeo(self, _SCALES) != self.density_.settings:
            raise ValueError("the settings of the model differ from the parameters")

    def score_samples(self, X: ArrayLike) -> Floats:
        """Compute the logarithm of the density at each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which the density is evaluated.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Natural logarithms of the density of the variables as they are in `X`, not scaled.
        """
        samples = self._check_samples(X)
        log_density, _ = self._estimate(samples)
        return log_density[:, 0] - ~np.isnan(samples) @ self.density_.scale.log_widths

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Compute the log-likelihood of all rows together, the sum of `score_samples`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which the density is evaluated.
        y : object, default=None
            Ignored.

        Returns
        -------
        log_likelihood : float
            Sum of the log densities.
        """
        return float(self.score_samples(X).sum())

    def local_bandwidths(self, X: ArrayLike) -> Floats:
        """Compute the bandwidths that the Rodeo chooses at each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which the density is evaluated.

        Returns
        -------
        bandwidths : ndarray of shape (n_samples, n_features)
            Bandwidths of the scaled variables.
        """
        _, h = self._estimate(self._check_samples(X), bandwidths=True)
        return h[:, 0]

    def bandwidth_path(self, X: ArrayLike) -> RodeoPath:
        """Run the Rodeo at one row, and record each sweep over the variables.

        The last bandwidths equal `local_bandwidths`.

        Parameters
        ----------
        X : array-like of shape (1, n_features)
            The row. It counts as a new row, even if it is a training row.

        Returns
        -------
        path : RodeoPath
            Bandwidths after each sweep, and the tests that shrink them.
        """
        samples = self._check_samples(X)
        x = check_one_row(self.density_.scale.transform(samples))
        return density_path(self.density_.density, x, self.density_.settings.update)

    def sample(self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None) -> Floats:
        """Generate new rows: random training rows plus normal noise.

        The standard deviations of the noise are the bandwidths at the training row, chosen with this row left
        out. A missing value of a training row is replaced by a value from the density of the variable. A
        category comes from the kernel around the category of the training row; if that is missing, it comes
        from the frequencies of the categories.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows to generate.
        random_state : int, RandomState or None, default=None
            Picks the training rows and generates the noise.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            New rows, with categories as their positions in `encoding_`.
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
        """Number of rows that are duplicates of other rows."""
        return self.density_.data.n_duplicates

    @property
    def initial_bandwidth_(self) -> float:
        """Bandwidth of the scaled variables from which the Rodeo starts."""
        return float(self.density_.density.grid[0])

    def _estimate(self, samples: Floats, *, bandwidths: bool = False) -> tuple[Floats, Floats]:
        """Compute log densities (n_samples, 1) of the scaled variables; if `bandwidths`, also bandwidths.

        The bandwidths have the shape (n_samples, 1, n_features).
        """
        model, scaled = self.density_, self.density_.scale.transform(samples)
        return class_log_densities(
            [model.density], scaled, model.settings.update, self._computation(), bandwidths=bandwidths
        )
