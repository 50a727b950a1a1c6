"""LSPClassifier: class probabilities by least squares, a sum of Gaussian functions around training rows."""

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

# Smaller differences of outputs may be rounding errors: at narrow widths all outputs are nearly 0.
_ROUNDING = 1e-10

# Coefficients within these bounds cannot overflow in sums.
_COEFFICIENT_BOUNDS = (-1e150, 1e150)


@dataclass(kw_only=True, eq=False, repr=False)
class LSPClassifier(ClassifierMixin, BaseEstimator):
    r"""Least-squares probabilistic classifier, with which [2]_ compares its method.

    The probability of class :math:`y` is modeled by Gaussian functions around training rows
    :math:`c^y_j` of the class, its *centers* [1]_:

    .. math::

        q_y(x) = \sum_{j=1}^{b_y} \alpha^y_j K(x, c^y_j), \qquad
        K(x, c) = \exp\Big(-\frac{\|x - c\|^2}{2 \sigma^2 d}\Big),

    and fitted to :math:`P(y \mid x)` by least squares over all :math:`n` training rows with the penalty
    :math:`\lambda \|\alpha^y\|^2`. The coefficients have a closed form,

    .. math::

        \alpha^y = (\hat H_y + \lambda I)^{-1} \hat h_y, \qquad
        \hat H_y = \frac 1 n \sum_{i=1}^n \phi_y(x_i) \phi_y(x_i)^\top, \qquad
        \hat h_y = \frac 1 n \sum_{i : y_i = y} \phi_y(x_i),

    where :math:`\phi_y(x)` is the vector of the :math:`K(x, c^y_j)`. Negative outputs :math:`q_y(x)` are
    replaced by 0, and the outputs are divided by their sum:
    :math:`P(y \mid x) = \max(q_y(x), 0) / \sum_{y'} \max(q_{y'}(x), 0)`.
    The width :math:`\sigma` and the regularizer :math:`\lambda` are chosen by cross-validation.

    Parameters
    ----------
    sigmas : array-like, default=(0.1, 0.2, 0.5, 2/3, 1.0, 1.5, 2.0, 5.0, 10.0)
        Widths :math:`\sigma` to choose from. They are compared with distances of scaled rows divided by
        :math:`\sqrt d`, where :math:`d` is the number of variables.
    alphas : array-like, default=tuple(np.logspace(-2, 0, 9))
        Regularizers :math:`\lambda` to choose from.
    max_centers : int, default=500
        Largest number of centers of a class. In larger classes the centers are picked at random. The least
        squares use all rows. The time of `fit` is proportional to the number of rows and grows with the cube
        of the number of centers.
    cv : int, cross-validation splitter or iterable of splits, default=5
        Splits for the choice of width and regularizer by accuracy, as in scikit-learn. Rows that are held out
        are not centers. `cv` is not used if there is only one width and one regularizer.
    scale : {"range", "standard", "rank"} or None, default=None
        Scale of the distances, as in `RodeoClassifier`. None changes nothing and comes closest to the figures
        of the paper; "standard" is the scale of the reference implementation. Use "standard" if columns have
        different units of measurement.
    n_jobs : int, default=None
        Number of threads. Each thread works on one width at a time; see `RodeoClassifier`.
    random_state : int, RandomState or None, default=None
        Picks the centers in classes of more than `max_centers` rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    class_count_ : ndarray of shape (n_classes,)
        Number of training rows of each class.
    best_params_ : dict
        The chosen width, ``"sigma"``, and the chosen regularizer, ``"alpha"``.
    best_index_ : int
        Position of the chosen pair in `cv_results_`. This attribute, `best_score_` and `cv_results_` exist
        only if there are several widths or regularizers.
    best_score_ : float
        Mean accuracy of the chosen pair on held-out rows.
    cv_results_ : dict of arrays
        Results as in `sklearn.model_selection.GridSearchCV`: parameters, and test scores with their means,
        standard deviations and ranks, but without times.
    centers_ : ndarray of shape (n_centers, n_features)
        Scaled centers of all classes.
    dual_coef_ : ndarray of shape (n_centers, n_classes)
        Coefficients :math:`\alpha`; 0 at the centers of other classes.
    n_features_in_, feature_names_in_ : int, ndarray of shape (`n_features_in_`,)
        Number of variables seen in `fit`, and their names if `X` had any.

    See Also
    --------
    RodeoClassifier : Classifies by kernel densities with a bandwidth for each variable.

    Notes
    -----
    If no class has a positive output at a sample, the class with the largest output has probability 1. This
    is the limit if the same number is added to all outputs until one of them is positive. The outputs at a
    sample are computed relative to the kernel of the nearest center. This common factor does not change the
    probabilities, and prevents all kernels from being 0 at samples far from the training rows.

    In cross-validation, a held-out row is classified correctly only if the output of its class exceeds all
    other outputs by more than 1e-10, since at very narrow widths outputs are rounding errors. If several
    pairs of width and regularizer have the same score, the first is chosen. During `fit`, an array of
    distances between all rows and all centers is in memory.

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

    # The default widths and regularizers are the ones of the reference implementation.
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
        """Choose width and regularizer by cross-validation, and compute the coefficients.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows: numbers without missing values.
        y : array-like of shape (n_samples,)
            Labels of the rows, of at least two classes.

        Returns
        -------
        self : LSPClassifier
            The fitted classifier.
        """
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
            self.__dict__.pop(name, None)  # from an earlier fit
        best = 0
        # One thread per width instead of the threads of BLAS, which save little time for matrices of this
        # size, wait for each other if cores are busy, and change the last bits of results.
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
        """Raise ValueError for parameters or arrays that `fit` cannot set; `load_model` calls this check."""
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
        """Check the parameters; return widths, regularizers and the largest number of centers of a class."""
        check_choice("scale", self.scale, ("range", "standard", "rank", None))
        check_n_jobs(self.n_jobs)
        return (
            check_numbers("sigmas", self.sigmas, 1e-10, 1e10),
            check_numbers("alphas", self.alphas, 1e-10, 1e10),
            check_integer("max_centers", self.max_centers),
        )

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Predicted labels.
        """
        outputs = self._outputs(X)  # before classes_, so that an unfitted estimator is an error
        labels: NDArray[Any] = self.classes_[outputs.argmax(axis=1)]
        return labels

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Compute the probability of each class for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Probabilities, with classes in the order of `classes_`. Each row sums to 1.
        """
        outputs = self._outputs(X)
        largest = outputs.max(axis=1, keepdims=True)
        clipped = largest <= 0.0
        # Divided by the largest output first: all outputs may be so small that their sum has few digits.
        proba = np.maximum(outputs, 0.0) / np.where(clipped, 1.0, largest)
        only = np.arange(proba.shape[1]) == outputs.argmax(axis=1)[:, np.newaxis]
        proba = np.where(clipped, only, proba)
        proba /= proba.sum(axis=1, keepdims=True)
        return proba

    def _outputs(self, X: ArrayLike) -> Floats:
        """Compute outputs (n_samples, n_classes), divided by the kernel of the nearest center of each row."""
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
    """List the splits, as scikit-learn makes them: a mask of training rows and positions of test rows."""
    splits = []
    for number, (train, test) in enumerate(check_cv(cv, y, classifier=True).split(X, y)):
        mask = np.zeros(len(y), dtype=np.bool_)
        mask[train] = True
        if not (mask.any() and len(test)):
            raise ValueError(f"cv must leave rows for training and for testing, but split {number} does not.")
        splits.append((mask, test))
    return splits


def _tabulate(sigmas: Floats, alphas: Floats, scores: Floats) -> dict[str, Any]:
    """Make `cv_results_` from scores of shape (n_sigmas * n_alphas, n_splits)."""
    mean = scores.mean(axis=1)
    return {
        "params": [{"sigma": float(sigma), "alpha": float(alpha)} for sigma in sigmas for alpha in alphas],
        "param_sigma": np.repeat(sigmas, alphas.size),
        "param_alpha": np.tile(alphas, sigmas.size),
        **{f"split{k}_test_score": scores[:, k] for k in range(scores.shape[1])},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=1),
        # Rounded, since the last bit of a mean depends on the order of the splits.
        "rank_test_score": rankdata(-mean.round(12), method="min").astype(np.int32),
    }


@dataclass(frozen=True, eq=False)
class _OneClass:
    """The least-squares problem of one class."""

    centers: Integers  # (n_centers,) positions of the centers of the class among the rows
    squares: Floats  # (n_samples, n_centers) squared distances to the centers, divided by n_features
    is_own: Bools  # (n_samples,) whether the row belongs to the class

    def solve(self, sigma: float, alpha: float) -> Floats:
        """Compute the coefficients (n_centers, 1) from all rows."""
        psi = _gaussian(self.squares, sigma)
        return _ridge(psi.T @ psi / len(psi), psi.T @ self.is_own / len(psi), np.array([alpha]))

    def held_out(
        self, sigma: float, alphas: Floats, splits: Sequence[tuple[Bools, Integers]]
    ) -> list[Floats]:
        """Compute outputs (n_test, n_alphas) at the test rows of each split; test rows are not centers."""
        psi = _gaussian(self.squares, sigma)
        H_all = psi.T @ psi
        outputs = []
        for train, test in splits:
            few = train.mean() < 0.5
            part = psi[train if few else ~train]
            # The smaller part is multiplied: H of the training rows is H of all rows less H of the test rows.
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
    """Compute the share (n_alphas, n_splits) of test rows that are classified correctly."""
    by_class = [each.held_out(sigma, alphas, splits) for each in problem]
    right = [
        np.mean(_margin(np.stack(outputs, axis=2), codes[test]) > _ROUNDING, axis=0)
        for (_, test), *outputs in zip(splits, *by_class, strict=True)
    ]
    return np.stack(right, axis=1)


def _gaussian(squares: Floats, sigma: float) -> Floats:
    return np.exp(squares * (-0.5 / sigma**2))


def _margin(outputs: Floats, codes: Integers) -> Floats:
    """Compute the output of the right class less the largest other output, (n_samples, n_alphas)."""
    own = codes[:, np.newaxis, np.newaxis]
    margin: Floats = np.take_along_axis(outputs, own, axis=2)[..., 0]
    margin -= np.where(np.arange(outputs.shape[2]) == own, -np.inf, outputs).max(axis=2)
    return margin


def _ridge(H: Floats, h: Floats, alphas: Floats) -> Floats:
    """Compute (H + lambda I)^-1 h for all lambdas (n_centers, n_alphas) from one eigendecomposition of H."""
    s, V = np.linalg.eigh(H)
    shifted = np.maximum(s, 0.0)[:, np.newaxis] + alphas  # rounding may make eigenvalues of 0 negative
    coefficients: Floats = V @ ((V.T @ h)[:, np.newaxis] / shifted)
    return coefficients
