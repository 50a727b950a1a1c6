"""LSPClassifier: class probabilities by least squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import pairwise_distances_chunked
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from corral import _kernels
from corral._scale import learn_scale
from corral._validation import (
    check_choice,
    check_classes,
    check_integer,
    check_n_jobs,
    check_numbers,
    check_sample_weight,
    unchanged_by_errors,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# The reference implementation's widths and regularisers.
_SIGMAS = (0.1, 0.2, 0.5, 2 / 3, 1.0, 1.5, 2.0, 5.0, 10.0)
_ALPHAS = tuple(np.logspace(-2, 0, 9).tolist())
# Outputs estimate probabilities: what differs by less is rounding, at widths that reach no other row.
_ROUNDING = 1e-10
# Weights beyond these change nothing that can be told apart, and the products of two are still numbers.
_WEIGHTS = (1e-100, 1e100)


class LSPClassifier(ClassifierMixin, BaseEstimator):
    r"""Least-squares probabilistic classifier [1]_, with which the paper [2]_ compares.

    The probability of class :math:`y` is modelled by Gaussian functions around training rows,

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
        Widths :math:`\sigma` to choose from, in units of :math:`\sqrt d` scaled units, where :math:`d` is the
        number of variables.
    alphas : array-like, default=tuple(np.logspace(-2, 0, 9))
        Regularisers :math:`\lambda` to choose from.
    centers : {"class", "all"}, default="class"
        Where the functions of a class are centred: at its own training rows, or at those of all
        classes (the general form of section 2.1 of [2]_, whose cost grows with the cube of the number
        of classes).
    max_centers : int, default=500
        How many rows of each class are centres at most; in larger classes they are drawn at random. All
        rows take part in the least squares. Up to there time grows with the cube of the number of rows,
        from there on in proportion to it.
    cv : int, cross-validation splitter, iterable of splits or "loo", default=5
        How width and regulariser are chosen, always by the share of rows classified right. A number of
        folds, a splitter and an iterable mean what they do in scikit-learn; a row held out is no centre.
        "loo" leaves out one row at a time with its centre, in closed form, which is faster. Not
        read if there is one width and one regulariser.
    scale : {"range", "standard", "rank"} or None, default=None
        Units of the distances, learnt on the training rows as in `RodeoClassifier`. None keeps those of the
        columns and comes closest to the paper's figures; "standard" is what the reference
        implementation does, and the choice for columns in different units.
    n_jobs : int, default=None
        Number of threads, which share out the widths; None means 1 unless in a `joblib.parallel_config`
        context, -1 all cores. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Draws the centres in classes of more than `max_centers` rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_count_ : ndarray of shape (n_classes,)
        Number of training rows of each class, weights counted.
    best_params_ : dict
        The width and the regulariser chosen, ``"sigma"`` and ``"alpha"``.
    best_index_ : int
        Their position in `cv_results_`; like that, only set where there was something to choose.
    best_score_ : float
        Their mean score.
    cv_results_ : dict of arrays
        As in `sklearn.model_selection.GridSearchCV`: ``"params"``, ``"param_sigma"``,
        ``"param_alpha"``, ``"mean_test_score"``, ``"std_test_score"``, ``"rank_test_score"`` and for
        each split ``"split0_test_score"`` and so on. Leave-one-out counts as one split.
    centers_ : ndarray of shape (n_centers, n_features)
        The centres, in scaled units.
    dual_coef_ : ndarray of shape (n_centers, n_classes)
        The coefficients :math:`\alpha`; with ``centers="class"``, zero at the centres of other classes.
    n_features_in_ : int
        Number of variables seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if `X` had any.

    See Also
    --------
    RodeoClassifier : Kernel densities with a bandwidth of its own for each variable.

    Notes
    -----
    Where the outputs of all classes are negative or zero, the class with the largest output gets
    probability 1: the limit of raising all outputs alike until one of them is positive. All outputs at a
    sample share a factor that does not change the probabilities; it is taken from the nearest centre, so
    that the answer is defined at any distance from the training rows.

    In selection a row counts as right only if its class's output exceeds every other by more than
    1e-10: at widths so narrow that no row reaches another, outputs are rounding errors. Of equal scores the
    first one listed is chosen. The columns are scaled once, on all rows.

    One eigendecomposition of :math:`\hat H_y` for each class, width and fold serves all regularisers.
    Distances are computed once and kept during `fit`: an array of `n_samples` times the number of centres.

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
    >>> classifier = LSPClassifier(cv="loo").fit(X, y)
    >>> classifier.best_params_
    {'sigma': 0.2, 'alpha': 0.01}
    >>> classifier.score(X_test, y_test) > 0.85
    True
    """

    def __init__(
        self,
        *,
        sigmas: ArrayLike = _SIGMAS,
        alphas: ArrayLike = _ALPHAS,
        centers: Literal["class", "all"] = "class",
        max_centers: int = 500,
        cv: Any = 5,
        scale: Literal["range", "standard", "rank"] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.sigmas = sigmas
        self.alphas = alphas
        self.centers = centers
        self.max_centers = max_centers
        self.cv = cv
        self.scale = scale
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose a width and a regulariser and solve for the coefficients.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Their classes; at least two.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts, in the least squares, as a centre and in selection: weight k
            equals k copies, weight 0 removal. Folds, and centres in large classes, are chosen among
            rows, however often they count.

        Returns
        -------
        self : LSPClassifier
        """
        with unchanged_by_errors(self):
            return self._learn(X, y, sample_weight)

    def _learn(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Self:
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        weights = check_sample_weight(sample_weight, len(rows))
        sigmas, alphas, max_centers = self._check_parameters()
        kept = np.arange(len(rows)) if weights is None else np.flatnonzero(weights)
        classes, codes = check_classes(labels[kept])
        counts = np.ones(kept.size) if weights is None else np.clip(weights[kept], *_WEIGHTS)
        scale = learn_scale(rows[kept], None if weights is None else counts, self.scale)
        random = check_random_state(self.random_state)
        members = [np.flatnonzero(codes == a) for a in range(classes.size)]
        chosen = [
            m if m.size <= max_centers else np.sort(random.choice(m, max_centers, replace=False))
            for m in members
        ]
        problem = _LeastSquares.arrange(
            scale.transform(rows[kept]), codes, counts, chosen, shared=self.centers == "all"
        )

        results = None
        best = 0
        # One thread per width instead of BLAS's own, which do little for matrices of this size, wait for
        # each other where cores are busy, and change the last bits.
        with threadpool_limits(1, user_api="blas"):
            if sigmas.size * alphas.size > 1:
                splits = _splits(self.cv, rows, labels, kept)
                of_sigmas = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
                    delayed(problem.scores)(sigma, alphas, splits) for sigma in sigmas
                )
                results = _tabulate(sigmas, alphas, np.concatenate(of_sigmas))
                best = int(results["rank_test_score"].argmin())
            sigma, alpha = float(sigmas[best // alphas.size]), float(alphas[best % alphas.size])
            centers, dual_coef = problem.solve(sigma, alpha)

        self.centers_ = centers
        self.dual_coef_ = dual_coef
        self.best_params_ = {"sigma": sigma, "alpha": alpha}
        if results is not None:
            self.cv_results_ = results
            self.best_index_ = best
            self.best_score_ = float(results["mean_test_score"][best])
        else:
            for of_selection in ("cv_results_", "best_index_", "best_score_"):
                self.__dict__.pop(of_selection, None)  # of an earlier fit
        self.classes_ = classes
        self.class_count_ = np.bincount(codes, counts).astype(np.float64, copy=False)
        self._scale = scale
        return self

    def _check_parameters(self) -> tuple[Floats, Floats, int]:
        """Refuse bad parameters; return widths, regularisers and the number of centres."""
        check_choice("centers", self.centers, ("class", "all"))
        check_choice("scale", self.scale, ("range", "standard", "rank", None))
        check_n_jobs(self.n_jobs)
        return (
            check_numbers("sigmas", self.sigmas, 1e-10, 1e10),
            check_numbers("alphas", self.alphas, 1e-10, 1e10),
            check_integer("max_centers", self.max_centers),
        )

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples to classify.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        outputs = self._outputs(X)
        labels: NDArray[Any] = self.classes_[outputs.argmax(axis=1)]
        return labels

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probability of each class for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples to classify.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        outputs = self._outputs(X)
        largest = outputs.max(axis=1, keepdims=True)
        clipped = largest <= 0.0
        # Over the largest output first: all of them may be so small that their sum has few digits.
        proba = np.maximum(outputs, 0.0) / np.where(clipped, 1.0, largest)
        only = np.arange(proba.shape[1]) == outputs.argmax(axis=1)[:, np.newaxis]
        proba = np.where(clipped, only, proba)
        normalised: Floats = proba / proba.sum(axis=1, keepdims=True)
        return normalised

    def _outputs(self, X: ArrayLike) -> Floats:
        """Outputs of all classes, times a positive factor that the classes of a row share."""
        check_is_fitted(self)
        queries: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        sigma = self.best_params_["sigma"]

        def outputs(squares: Floats, _: int) -> Floats:
            squares -= squares.min(axis=1, keepdims=True)
            functions = _gaussian(squares, sigma, self.n_features_in_)
            of_classes: Floats = _kernels.product_by_rows(functions, self.dual_coef_)
            return of_classes

        scaled = self._scale.transform(queries)
        chunks = pairwise_distances_chunked(scaled, self.centers_, reduce_func=outputs, metric="sqeuclidean")
        return np.concatenate(list(chunks))


class _Split(NamedTuple):
    """Rows to train with, as a mask, and the positions of the rows held out."""

    train: NDArray[np.bool_]
    test: Integers


def _splits(cv: Any, X: Floats, y: NDArray[Any], kept: Integers) -> list[_Split] | None:
    """Splits of the rows that are kept; None for leave-one-out."""
    if isinstance(cv, str):
        check_choice("cv", cv, ("loo",))
        return None
    splitter = check_cv(cv, y[kept], classifier=True)
    position = np.arange(kept.size)
    if cv is None or isinstance(cv, Integral) or hasattr(cv, "split"):
        pairs = splitter.split(X[kept], y[kept])
    else:  # given splits number all rows, those of weight zero included
        pairs = splitter.split()
        position = np.full(len(X), -1)
        position[kept] = np.arange(kept.size)
    splits = []
    for number, pair in enumerate(pairs):
        train, test = (position[part] for part in pair)
        mask = np.zeros(kept.size, dtype=np.bool_)
        mask[train[train >= 0]] = True
        test = test[test >= 0]
        if not (mask.any() and test.size):
            raise ValueError(f"cv must leave rows to train and to test, but its split {number} does not.")
        splits.append(_Split(mask, test))
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


def _gaussian(squares: Floats, sigma: float, d: int) -> Floats:
    return np.exp(squares * (-0.5 / (sigma**2 * d)))


class _Basis(NamedTuple):
    """The functions that some classes are fitted with.

    Attributes
    ----------
    centers : positions of the centres among the rows.
    classes : the classes, as a slice.
    squares : (n_samples, n_centers) squared distances.
    targets : (n_samples, n of these classes) which rows belong to each of them.
    """

    centers: Integers
    classes: slice
    squares: Floats
    targets: Floats


@dataclass(frozen=True, eq=False)
class _LeastSquares:
    r"""The fit on arrays.

    A row that counts k times is k centres. Their coefficients are equal, so they are one centre with the
    function :math:`\psi = \sqrt k K`, whose coefficient has the penalty of all k.

    Attributes
    ----------
    rows : (n_samples, n_features) in scaled units.
    codes : (n_samples,) number of each row's class.
    counts : (n_samples,) how often each row counts.
    bases : one for each class, or one for all.
    """

    rows: Floats
    codes: Integers
    counts: Floats
    bases: Sequence[_Basis]

    @classmethod
    def arrange(
        cls, rows: Floats, codes: Integers, counts: Floats, centers: Sequence[Integers], *, shared: bool
    ) -> Self:
        """Compute distances to the centres of each class, which all classes may share."""
        groups = [(c, slice(a, a + 1)) for a, c in enumerate(centers)]
        if shared:
            groups = [(np.concatenate(centers), slice(0, len(centers)))]
        targets = (codes[:, np.newaxis] == np.arange(len(centers))).astype(np.float64)
        bases = [
            _Basis(c, classes, cdist(rows, rows[c], "sqeuclidean"), targets[:, classes])
            for c, classes in groups
        ]
        return cls(rows, codes, counts, bases)

    def solve(self, sigma: float, alpha: float) -> tuple[Floats, Floats]:
        """Centres and coefficients."""
        n_classes = self.bases[-1].classes.stop
        blocks = []
        for basis in self.bases:
            spectrum, h = self._normal_equations(basis, self._functions(basis, sigma))
            beta = spectrum.solve(h, np.array([alpha]))[:, 0]
            block = np.zeros((basis.centers.size, n_classes))
            block[:, basis.classes] = np.sqrt(self.counts[basis.centers])[:, np.newaxis] * beta
            blocks.append(block)
        centers = np.concatenate([basis.centers for basis in self.bases])
        return self.rows[centers], np.concatenate(blocks)

    def scores(self, sigma: float, alphas: Floats, splits: Sequence[_Split] | None) -> Floats:
        """Share of the rows held out that are classified right, (n_alphas, n_splits)."""
        if splits is None:
            tests = [np.arange(len(self.rows))]
            of_bases = [[self._left_out(basis, sigma, alphas)] for basis in self.bases]
        else:
            tests = [split.test for split in splits]
            of_bases = [self._held_out(basis, sigma, alphas, splits) for basis in self.bases]
        right = []
        for test, *outputs in zip(tests, *of_bases, strict=True):
            margin = _margin(np.concatenate(outputs, axis=2), self.codes[test])
            right.append(np.average(margin > _ROUNDING, axis=0, weights=self.counts[test]))
        return np.stack(right, axis=1)

    def _held_out(
        self, basis: _Basis, sigma: float, alphas: Floats, splits: Sequence[_Split]
    ) -> list[Floats]:
        """Per split the outputs at the rows held out, (n_test, n_alphas, n_classes of the basis).

        Only rows to train with are centres.
        """
        psi = self._functions(basis, sigma)
        shares = self.counts / self.counts.sum()
        weighted = np.sqrt(shares)[:, np.newaxis] * psi
        H_all = weighted.T @ weighted
        found = []
        for train, test in splits:
            share = shares[train].sum()
            few = share < 0.5
            part = weighted[train if few else ~train]
            # Mostly few rows are held out, so that it is cheaper to take them away.
            H = part.T @ part if few else H_all - part.T @ part
            h = psi.T @ ((train * shares)[:, np.newaxis] * basis.targets)
            used = train[basis.centers]
            beta = _Spectrum.of(H[np.ix_(used, used)] / share).solve(h[used] / share, alphas)
            found.append(np.tensordot(psi[np.ix_(test, used)], beta, axes=1))
        return found

    def _left_out(self, basis: _Basis, sigma: float, alphas: Floats) -> Floats:
        """Outputs at each row, fitted without it, (n_samples, n_alphas, n_classes of the basis).

        One copy of the row is taken out of the least squares and one copy of its centre out of the basis,
        or all of it if it counts less than once. Either changes P = (H + lambda I)^-1 by rank one. H stays
        a mean over n rows, of which one is now zero, so that lambda weighs as much as for all rows.
        """
        psi, c = self._functions(basis, sigma), basis.centers
        spectrum, h = self._normal_equations(basis, psi)
        s, V = spectrum
        inverse = 1.0 / (s[:, np.newaxis] + alphas)
        U = psi @ V
        copies = np.minimum(self.counts, 1.0)
        share = (copies / self.counts.sum())[:, np.newaxis, np.newaxis]
        beta = spectrum.solve(h, alphas)
        # Without the row: its residual grows by 1 / (1 - share psi'P psi).
        grows = 1.0 / np.maximum(1.0 - share * (U**2 @ inverse)[..., np.newaxis], np.finfo(np.float64).eps)
        targets = basis.targets[:, np.newaxis]
        residual = grows * (np.tensordot(psi, beta, axes=1) - targets)
        outputs: Floats = targets + residual
        # Without its centre, where it is one: e is the unit vector of the centre's coefficient.
        psi_P_e = ((U[c] * V) @ inverse)[..., np.newaxis]
        e_P_e = (V**2 @ inverse)[..., np.newaxis]
        coefficient = beta + share[c] * psi_P_e * residual[c]
        remaining = ((self.counts - copies) / copies)[c, np.newaxis, np.newaxis] / alphas[:, np.newaxis]
        pivot = remaining + e_P_e + share[c] * grows[c] * psi_P_e**2
        outputs[c] -= grows[c] * psi_P_e * coefficient / pivot
        return outputs

    def _functions(self, basis: _Basis, sigma: float) -> Floats:
        """The functions of a basis at all rows, (n_samples, n_centers)."""
        values = _gaussian(basis.squares, sigma, self.rows.shape[1])
        values *= np.sqrt(self.counts[basis.centers])
        return values

    def _normal_equations(self, basis: _Basis, psi: Floats) -> tuple[_Spectrum, Floats]:
        """H = mean of psi psi', decomposed, and h = mean of psi times target."""
        root = np.sqrt(self.counts / self.counts.sum())[:, np.newaxis]
        weighted = root * psi
        return _Spectrum.of(weighted.T @ weighted), weighted.T @ (root * basis.targets)


def _margin(outputs: Floats, codes: Integers) -> Floats:
    """By how much the output of a row's own class exceeds all others, (n_samples, n_alphas)."""
    own = codes[:, np.newaxis, np.newaxis]
    margin: Floats = np.take_along_axis(outputs, own, axis=2)[..., 0]
    margin -= np.where(np.arange(outputs.shape[2]) == own, -np.inf, outputs).max(axis=2)
    return margin


class _Spectrum(NamedTuple):
    """H = V diag(s) V', from which (H + lambda I)^-1 = V diag(1 / (s + lambda)) V' for every lambda."""

    s: Floats
    V: Floats

    @classmethod
    def of(cls, H: Floats) -> Self:
        """Decompose H, whose eigenvalues are negative by rounding only."""
        s, V = np.linalg.eigh(H)
        return cls(np.maximum(s, 0.0), V)

    def solve(self, h: Floats, alphas: Floats) -> Floats:
        """(H + lambda I)^-1 h for all lambdas, (n_centers, n_alphas, n_classes)."""
        shifted = self.s[:, np.newaxis, np.newaxis] + alphas[:, np.newaxis]
        return np.tensordot(self.V, (self.V.T @ h)[:, np.newaxis] / shifted, axes=1)
