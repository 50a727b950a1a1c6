"""LSPClassifier: class probabilities by least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import block_diag
from scipy.spatial.distance import cdist
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import pairwise_distances_chunked
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from corral.array_types import (
    LARGEST_COORDINATE,
    Bools,
    Floats,
    Integers,
    check_array,
    check_labels,
    check_shape,
)
from corral.data.scaling import Scale, learn_scale
from corral.data.subsample import random_rows
from corral.estimators.tables import read_numbers, validate_columns
from corral.estimators.validation import (
    check_choice,
    check_integer,
    check_n_jobs,
    check_number,
    check_numbers,
    check_position,
    check_two_classes,
    unchanged_by_errors,
)
from corral.parallel import on_threads, one_blas_thread

# Smaller differences of outputs are rounding errors, as at widths that reach no other row.
_ROUNDING = 1e-10

# Within them no sum of products of coefficients and kernels overflows.
_COEFFICIENT_BOUNDS = (-1e150, 1e150)


@dataclass(kw_only=True, eq=False, repr=False)
class LSPClassifier(ClassifierMixin, BaseEstimator):
    r"""Least-squares probabilistic classifier, the rival in the paper's comparisons.

    The probability of class :math:`y` is modelled by Gaussian functions around training rows [1]_, as in the
    comparisons of [2]_:

    .. math::

        q_y(x) = \sum_{j=1}^{b_y} \alpha^y_j K(x, c^y_j), \qquad
        K(x, c) = \exp\Big(-\frac{\|x - c\|^2}{2 \sigma^2 d}\Big),

    and fitted to :math:`P(y \mid x)` by least squares over all :math:`n` training rows with the penalty
    :math:`\lambda \|\alpha^y\|^2`. The coefficients have a closed form,

    .. math::

        \alpha^y = (\hat H_y + \lambda I)^{-1} \hat h_y, \qquad
        \hat H_y = \frac 1 n \sum_{i=1}^n \phi_y(x_i) \phi_y(x_i)^\top, \qquad
        \hat h_y = \frac 1 n \sum_{i : y_i = y} \phi_y(x_i),

    where :math:`\phi_y(x)` holds the values :math:`K(x, c^y_j)`. Negative outputs are set to zero and the
    others divided by their sum: :math:`P(y \mid x) = \max(q_y(x), 0) / \sum_{y'} \max(q_{y'}(x), 0)`.
    The width :math:`\sigma` and the regulariser :math:`\lambda` are chosen by cross-validation.

    Parameters
    ----------
    sigmas : array-like, default=(0.1, 0.2, 0.5, 2/3, 1.0, 1.5, 2.0, 5.0, 10.0)
        Widths :math:`\sigma` to choose from, for scaled distances divided by :math:`\sqrt d`, where :math:`d`
        is the number of variables.
    alphas : array-like, default=tuple(np.logspace(-2, 0, 9))
        Regularisers :math:`\lambda` to choose from.
    max_centers : int, default=500
        How many rows of each class are centres at most, picked at random in larger classes. All rows take
        part in the least squares. Time grows with the cube of the number of centres, and in proportion to the
        number of rows.
    cv : int, cross-validation splitter or iterable of splits, default=5
        Splits by which width and regulariser are chosen, as in scikit-learn, by the accuracy; a row held out
        is no centre. Not used if there is one width and one regulariser.
    scale : {"range", "standard", "rank"} or None, default=None
        Scale of the distances, learnt on the training rows as in `RodeoClassifier`. None takes the columns as
        they are and comes closest to the paper's figures; "standard" is the scale of the reference
        implementation, and the choice for columns with different units of measurement.
    n_jobs : int, default=None
        Number of threads that work on the widths; see `RodeoClassifier`.
    random_state : int, RandomState or None, default=None
        Picks the centres in classes of more than `max_centers` rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_count_ : ndarray of shape (n_classes,)
        Number of training rows of each class.
    best_params_ : dict
        The width and the regulariser chosen, ``"sigma"`` and ``"alpha"``.
    best_index_ : int
        Their position in `cv_results_`. Both are set only if there is something to choose.
    best_score_ : float
        Their mean score.
    cv_results_ : dict of arrays
        As in `sklearn.model_selection.GridSearchCV`: parameters, and test scores with their means, deviations
        and ranks; no times.
    centers_ : ndarray of shape (n_centers, n_features)
        The scaled centres.
    dual_coef_ : ndarray of shape (n_centers, n_classes)
        The coefficients :math:`\alpha`, zero at the centres of other classes.
    n_features_in_, feature_names_in_ : int, ndarray of shape (`n_features_in_`,)
        Number of variables seen in `fit`, and their names if `X` had any.

    See Also
    --------
    RodeoClassifier : Kernel densities with a bandwidth of its own for each variable.

    Notes
    -----
    Where the outputs of all classes are negative or zero, the class with the largest output gets
    probability 1: the limit of raising all outputs alike until one of them is positive. All outputs at a
    sample share a factor that does not change the probabilities; it is taken from the nearest centre, so
    that the answer is defined at any distance from the training rows.

    In selection a row counts as right only if its class's output exceeds every other by more than 1e-10: at
    very narrow widths, outputs are rounding errors. The first of equal scores is chosen. `fit` keeps an array
    of distances between all rows and all centres.

    References
    ----------
    .. [1] M. Sugiyama. Superfast-trainable multi-class probabilistic classifier by least-squares posterior
       fitting. IEICE Transactions on Information and Systems E93-D, 2690-2701, 2010.
    .. [2] W.-P. N. Chen, Y.-c. I. Chang. Fast multi-class probabilistic classifier by sparse
       non-parametric density estimation.

    Examples
    --------
    >>> from corral import LSPClassifier
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(100, groups=(1, 4, 5), random_state=0)
    >>> X_test, y_test = make_shifted_groups(100, groups=(1, 4, 5), random_state=1)
    >>> classifier = LSPClassifier().fit(X, y)
    >>> classifier.best_params_
    {'sigma': 0.2, 'alpha': 0.01}
    >>> classifier.score(X_test, y_test) > 0.85
    True
    """

    # The reference implementation's widths and regularisers.
    sigmas: ArrayLike = (0.1, 0.2, 0.5, 2 / 3, 1.0, 1.5, 2.0, 5.0, 10.0)
    alphas: ArrayLike = tuple(np.logspace(-2, 0, 9).tolist())
    max_centers: int = 500
    cv: Any = 5
    scale: Literal["range", "standard", "rank"] | None = None
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None

    n_features_in_: int = field(init=False)
    classes_: NDArray[Any] = field(init=False)
    class_count_: Floats = field(init=False)
    centers_: Floats = field(init=False)
    dual_coef_: Floats = field(init=False)
    scale_: Scale = field(init=False)
    best_params_: dict[str, float] = field(init=False)
    best_index_: int = field(init=False)
    best_score_: float = field(init=False)
    cv_results_: dict[str, Any] = field(init=False)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Choose a width and a regulariser, and solve for the coefficients; `y` holds two classes or more."""
        with unchanged_by_errors(self):
            return self._learn(X, y)

    def _learn(self, X: ArrayLike, y: ArrayLike) -> Self:
        rows, labels = read_numbers(self, X, y, reset=True)
        check_classification_targets(labels)
        sigmas, alphas, max_centers = self._check_parameters()
        self.classes_, codes = np.unique(labels, return_inverse=True)
        check_two_classes(self.classes_)
        self.class_count_ = np.bincount(codes).astype(np.float64)
        self.scale_ = learn_scale(rows, None, self.scale)
        scaled = self.scale_.transform(rows)
        random = check_random_state(self.random_state)
        problem = []
        for a in range(self.classes_.size):
            rows_of_class = np.flatnonzero(codes == a)
            centers = rows_of_class[random_rows(rows_of_class.size, max_centers, random)]
            squares = cdist(scaled, scaled[centers], "sqeuclidean") / scaled.shape[1]
            problem.append(_OneClass(centers, squares, codes == a))

        for name in ("cv_results_", "best_index_", "best_score_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        best = 0
        # One thread per width instead of BLAS's own, which do little for matrices of this size, wait for
        # each other where cores are busy, and change the last bits.
        with one_blas_thread():
            if sigmas.size * alphas.size > 1:
                splits = _splits(self.cv, rows, labels)
                tasks = [partial(_scores, problem, sigma, alphas, codes, splits) for sigma in sigmas]
                scores = np.concatenate(list(on_threads(tasks, self.n_jobs)))
                self.cv_results_ = _tabulate(sigmas, alphas, scores)
                self.best_index_ = best = int(self.cv_results_["rank_test_score"].argmin())
                self.best_score_ = float(self.cv_results_["mean_test_score"][best])
            sigma, alpha = float(sigmas[best // alphas.size]), float(alphas[best % alphas.size])
            self.dual_coef_ = block_diag(*(each.solve(sigma, alpha) for each in problem))
        self.centers_ = scaled[np.concatenate([each.centers for each in problem])]
        self.best_params_ = {"sigma": sigma, "alpha": alpha}
        return self

    def __corral_validate__(self) -> None:
        """Refuse parameters and arrays that no fit could have left; `load_model` calls it."""
        self._check_parameters()
        n_classes, (n_centers, d) = self.classes_.size, self.centers_.shape
        validate_columns(self, d)
        check_labels("classes_", self.classes_)
        check_array("class_count_", self.class_count_, (n_classes,), 0.0)
        check_array("centers_", self.centers_, (None, d), -LARGEST_COORDINATE, LARGEST_COORDINATE)
        check_array("dual_coef_", self.dual_coef_, (n_centers, n_classes), *_COEFFICIENT_BOUNDS)
        check_shape("center", self.scale_.center, (d,))
        for name in ("sigma", "alpha"):
            check_number(name, self.best_params_[name], 1e-10, 1e10, inclusive=True)
        if not n_centers:
            raise ValueError("centers_ are missing")
        if hasattr(self, "cv_results_"):
            lengths = {len(column) for column in self.cv_results_.values()}
            if len(lengths) != 1:
                raise ValueError("cv_results_ has columns of different lengths")
            check_position("best_index_", self.best_index_, lengths.pop())
            check_number("best_score_", self.best_score_, 0.0, 1.0, inclusive=True)

    def _check_parameters(self) -> tuple[Floats, Floats, int]:
        """Refuse bad parameters; return widths, regularisers and the number of centres."""
        check_choice("scale", self.scale, ("range", "standard", "rank", None))
        check_n_jobs(self.n_jobs)
        return (
            check_numbers("sigmas", self.sigmas, 1e-10, 1e10),
            check_numbers("alphas", self.alphas, 1e-10, 1e10),
            check_integer("max_centers", self.max_centers),
        )

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most probable class (n_samples,) of each row of `X`."""
        outputs = self._outputs(X)  # first: it refuses an estimator without classes
        labels: NDArray[Any] = self.classes_[outputs.argmax(axis=1)]
        return labels

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probabilities (n_samples, n_classes) of each row of `X`, in the order of `classes_`."""
        outputs = self._outputs(X)
        largest = outputs.max(axis=1, keepdims=True)
        clipped = largest <= 0.0
        # Over the largest output first: all of them may be so small that their sum has few digits.
        proba = np.maximum(outputs, 0.0) / np.where(clipped, 1.0, largest)
        only = np.arange(proba.shape[1]) == outputs.argmax(axis=1)[:, np.newaxis]
        proba = np.where(clipped, only, proba)
        proba /= proba.sum(axis=1, keepdims=True)
        return proba

    def _outputs(self, X: ArrayLike) -> Floats:
        """Outputs of all classes, times a positive factor that the classes of a row share."""
        check_is_fitted(self)
        samples, _ = read_numbers(self, X, reset=False)
        sigma = self.best_params_["sigma"]

        def outputs(squares: Floats, _: int) -> Floats:
            squares -= squares.min(axis=1, keepdims=True)
            products: Floats = _gaussian(squares / self.n_features_in_, sigma) @ self.dual_coef_
            return products

        scaled = self.scale_.transform(samples)
        chunks = pairwise_distances_chunked(scaled, self.centers_, reduce_func=outputs, metric="sqeuclidean")
        return np.concatenate(list(chunks))


def _splits(cv: Any, X: Floats, y: NDArray[Any]) -> list[tuple[Bools, Integers]]:
    """Split rows as scikit-learn would: a mask of rows to train with, and positions of rows held out."""
    splits = []
    for number, (train, test) in enumerate(check_cv(cv, y, classifier=True).split(X, y)):
        mask = np.zeros(len(y), dtype=np.bool_)
        mask[train] = True
        if not (mask.any() and len(test)):
            raise ValueError(f"cv must leave rows to train and to test, but its split {number} does not.")
        splits.append((mask, test))
    return splits


def _tabulate(sigmas: Floats, alphas: Floats, scores: Floats) -> dict[str, Any]:
    """Scores of shape (n_sigmas * n_alphas, n_splits) as `cv_results_`."""
    mean = scores.mean(axis=1)
    return {
        "params": [{"sigma": float(sigma), "alpha": float(alpha)} for sigma in sigmas for alpha in alphas],
        "param_sigma": np.repeat(sigmas, alphas.size),
        "param_alpha": np.tile(alphas, sigmas.size),
        **{f"split{k}_test_score": scores[:, k] for k in range(scores.shape[1])},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=1),
        # The same scores in another order of folds may have a mean that differs in its last bit.
        "rank_test_score": rankdata(-mean.round(12), method="min").astype(np.int32),
    }


@dataclass(frozen=True, eq=False)
class _OneClass:
    """The least squares of one class."""

    centers: Integers  # positions of its centres among the rows
    squares: Floats  # (n_samples, n_centers) squared distances to its centres, over the number of variables
    is_own: Bools  # (n_samples,) which rows are of the class

    def solve(self, sigma: float, alpha: float) -> Floats:
        """The coefficients (n_centers, 1) of all rows."""
        psi = _gaussian(self.squares, sigma)
        return _ridge(psi.T @ psi / len(psi), psi.T @ self.is_own / len(psi), np.array([alpha]))

    def held_out(
        self, sigma: float, alphas: Floats, splits: Sequence[tuple[Bools, Integers]]
    ) -> list[Floats]:
        """Per split the outputs (n_test, n_alphas); rows that are held out are no centres."""
        psi = _gaussian(self.squares, sigma)
        H_all = psi.T @ psi
        outputs = []
        for train, test in splits:
            few = train.mean() < 0.5
            part = psi[train if few else ~train]
            # To subtract the rows held out is cheaper if they are fewer.
            H = part.T @ part if few else H_all - part.T @ part
            h = psi.T @ (train & self.is_own)
            used = train[self.centers]
            n = train.sum()
            beta = _ridge(H[np.ix_(used, used)] / n, h[used] / n, alphas)
            outputs.append(psi[np.ix_(test, used)] @ beta)
        return outputs


def _scores(
    problem: Sequence[_OneClass],
    sigma: float,
    alphas: Floats,
    codes: Integers,
    splits: Sequence[tuple[Bools, Integers]],
) -> Floats:
    """Share of held-out rows classified right, (n_alphas, n_splits)."""
    by_class = [each.held_out(sigma, alphas, splits) for each in problem]
    right = [
        np.mean(_margin(np.stack(outputs, axis=2), codes[test]) > _ROUNDING, axis=0)
        for (_, test), *outputs in zip(splits, *by_class, strict=True)
    ]
    return np.stack(right, axis=1)


def _gaussian(squares: Floats, sigma: float) -> Floats:
    return np.exp(squares * (-0.5 / sigma**2))


def _margin(outputs: Floats, codes: Integers) -> Floats:
    """By how much the output of a row's own class exceeds all others, (n_samples, n_alphas)."""
    own = codes[:, np.newaxis, np.newaxis]
    margin: Floats = np.take_along_axis(outputs, own, axis=2)[..., 0]
    margin -= np.where(np.arange(outputs.shape[2]) == own, -np.inf, outputs).max(axis=2)
    return margin


def _ridge(H: Floats, h: Floats, alphas: Floats) -> Floats:
    """(H + lambda I)^-1 h for all lambdas, (n_centers, n_alphas), from one eigendecomposition of H."""
    s, V = np.linalg.eigh(H)
    shifted = np.maximum(s, 0.0)[:, np.newaxis] + alphas  # eigenvalues are negative by rounding only
    coefficients: Floats = V @ ((V.T @ h)[:, np.newaxis] / shifted)
    return coefficients
