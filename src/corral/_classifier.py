"""RodeoClassifier: algorithms 1 to 3."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from corral._rodeo import ClassRows, leave_one_out_bandwidths, local_estimates, zscores
from corral._scale import learn_scale
from corral._validation import check_choice, check_number, check_rodeo, check_sample_weight

Floats = NDArray[np.float64]

# Leave-one-out bandwidths are averaged over at most this many rows of a class.
_MAX_POINTS = 1000


class RodeoClassifier(ClassifierMixin, BaseEstimator):
    r"""Classify by kernel densities, one per class, whose bandwidths are chosen at each sample.

    For a sample :math:`x` and each class :math:`y`, the Rodeo chooses bandwidths
    :math:`h^y_1, \dots, h^y_d` (algorithm 1 of [1]_; see `RodeoDensity`), and the class densities

    .. math::

        \hat p_y(x) = \frac 1 {n_y} \sum_{i=1}^{n_y} \prod_{j=1}^d \frac 1 {h^y_j}
            \varphi\Big(\frac{x_j - x^y_{ij}}{h^y_j}\Big)

    are compared: :math:`P(y \mid x) = \pi_y \hat p_y(x) / \sum_{y'} \pi_{y'} \hat p_{y'}(x)` (algorithm
    3). A bandwidth that shrinks at the class's own rows marks a variable that describes the class
    (algorithm 2): `zscores_` standardises the class's mean bandwidths over the variables, and those at
    or below `cutpoint` are `relevant_`.

    Parameters
    ----------
    update : {"simultaneous", "sequential"}, default="simultaneous"
        Whether bandwidths change after each sweep over the variables, so that the order of columns
        does not matter, or inside it, as algorithm 1 is printed.
    scale : {"range", "standard", "rank"} or None, default="range"
        Units in which bandwidths are chosen, learnt on the training rows of all classes together: each
        column's range, its standard deviation, its rank (the share of training rows below, counting
        ties half), or its own units.
    beta : float, default=0.9
        Factor by which a bandwidth shrinks, between 0 and 1.
    c0 : float, default=1.0
        Constant of the initial bandwidth, :math:`h_0 = c_0 / \log\log \max(n_y, 16)`.
    cutpoint : float, default=-1.0
        A variable is relevant for a class if its z-score is at most this.
    priors : {"uniform", "empirical"} or array-like of shape (n_classes,), default="uniform"
        Class probabilities :math:`\pi_y`: all alike (algorithm 3), the share of training rows
        (theorem 1), or given ones in the order of `classes_`.
    min_bandwidth : "auto" or float, default="auto"
        Floor under every bandwidth, in scaled units: a bandwidth that would fall below it stays. At a
        point mass (a constant, discrete or tied variable) the derivative never fades, and without a
        floor the loop would not end. "auto" is :math:`h_0 / n_y`: the theory requires
        :math:`n_y h \to \infty`, and below that a window holds less than about one row of a variable
        spread over its range. Bandwidths of continuous variables stop well above it.
    n_jobs : int, default=None
        Number of threads; None means 1 unless in a `joblib.parallel_config` context, -1 all cores.
        The result does not depend on it.
    verbose : int, default=0
        If positive, show a progress bar on the standard error stream.
    random_state : int, RandomState or None, default=None
        Chooses the rows over which the bandwidths of a class of more than 1000 are averaged.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_count_ : ndarray of shape (n_classes,)
        Number of training rows of each class, weights counted.
    class_prior_ : ndarray of shape (n_classes,)
        Probability of each class before a sample is seen.
    initial_bandwidth_ : ndarray of shape (n_classes,)
        Bandwidth that every variable starts from.
    bandwidths_ : ndarray of shape (n_classes, n_features)
        Mean bandwidth at the class's own rows, each row leaving itself out.
    zscores_ : ndarray of shape (n_classes, n_features)
        Mean bandwidths standardised over the variables of a class.
    relevant_ : ndarray of shape (n_classes, n_features), bool
        Which variables describe each class.
    n_features_in_ : int
        Number of variables seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if `X` had any.

    See Also
    --------
    RodeoDensity : The density of one sample of rows.

    References
    ----------
    .. [1] W.-P. N. Chen, Y.-c. I. Chang. Fast multi-class probabilistic classifier by sparse
       non-parametric density estimation.

    Examples
    --------
    >>> from corral import RodeoClassifier
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(200, groups=(4, 5), random_state=0)
    >>> X_test, y_test = make_shifted_groups(150, groups=(4, 5), random_state=1)
    >>> classifier = RodeoClassifier().fit(X, y)
    >>> classifier.score(X_test, y_test) > 0.98
    True
    >>> classifier.zscores_[0].argmin()  # the variable that describes the first class best
    0
    """

    def __init__(
        self,
        *,
        update: Literal["simultaneous", "sequential"] = "simultaneous",
        scale: Literal["range", "standard", "rank"] | None = "range",
        beta: float = 0.9,
        c0: float = 1.0,
        cutpoint: float = -1.0,
        priors: Literal["uniform", "empirical"] | ArrayLike = "uniform",
        min_bandwidth: float | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.update = update
        self.scale = scale
        self.beta = beta
        self.c0 = c0
        self.cutpoint = cutpoint
        self.priors = priors
        self.min_bandwidth = min_bandwidth
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Store the rows of each class and find the variables that describe it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Their classes; at least two.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts: weight k equals k copies, weight 0 removal.

        Returns
        -------
        self : RodeoClassifier
        """
        return self._learn(*self._check_rows(X, y, sample_weight, reset=True), classes=None)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows; `fit(A)` and then `partial_fit(B)` is the same as `fit` of A and B together.

        The rows are all kept, so this saves no memory or time over `fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Further training rows.
        y : array-like of shape (n_samples,)
            Their classes, new ones allowed.
        classes : array-like of shape (n_classes,), default=None
            All classes to expect. A class without rows so far has density zero.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self : RodeoClassifier
        """
        first = not hasattr(self, "_training")
        rows, labels, weights = self._check_rows(X, y, sample_weight, reset=first)
        if not first:
            old_rows, old_labels, old_weights = self._training
            if weights is not None or old_weights is not None:
                old = np.ones(len(old_rows)) if old_weights is None else old_weights
                new = np.ones(len(rows)) if weights is None else weights
                weights = np.concatenate([old, new])
            rows, labels = np.concatenate([old_rows, rows]), np.concatenate([old_labels, labels])
        known = None if first else self.classes_
        if classes is not None:
            expected = np.unique(classes)
            unknown = np.setdiff1d(labels, expected)
            if unknown.size:
                raise ValueError(f"y holds the class {unknown.tolist()[0]!r}, which is not in classes.")
            known = expected if known is None else np.union1d(known, expected)
        return self._learn(rows, labels, weights, classes=known)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most probable class of each row of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        joint = self.predict_joint_log_proba(X)
        labels: NDArray[Any] = self.classes_[joint.argmax(axis=1)]
        return labels

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probability of each class for each row of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        P : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; rows sum to 1.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        log_P : ndarray of shape (n_samples, n_classes)
        """
        log_proba: Floats = log_softmax(self.predict_joint_log_proba(X), axis=1)
        return log_proba

    def predict_joint_log_proba(self, X: ArrayLike) -> Floats:
        """Logarithm of prior times density of each class, from which all predictions derive.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        log_joint : ndarray of shape (n_samples, n_classes)
        """
        log_density = self.log_density(X)
        with np.errstate(divide="ignore"):
            joint: Floats = log_density + np.log(self.class_prior_)
        # Only classes without rows may be left with a positive prior: then nothing is known but it.
        return np.where(np.isneginf(joint).all(axis=1, keepdims=True), np.log(self.class_prior_), joint)

    def log_density(self, X: ArrayLike) -> Floats:
        """Logarithm of each class's density, in scaled units.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        log_density : ndarray of shape (n_samples, n_classes)
        """
        log_density, _ = self._estimate(X)
        return log_density

    def local_bandwidths(self, X: ArrayLike) -> Floats:
        """Bandwidths that the Rodeo chooses at each row of `X` in each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        h : ndarray of shape (n_samples, n_classes, n_features)
            In scaled units, so that variables compare.
        """
        _, h = self._estimate(X, bandwidths=True)
        return h

    def _check_rows(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, *, reset: bool
    ) -> tuple[Floats, NDArray[Any], Floats | None]:
        """Validate training rows; those of weight 0 are gone."""
        rows, labels = validate_data(self, X, y, dtype=np.float64, reset=reset)
        check_classification_targets(labels)
        weights = check_sample_weight(sample_weight, len(rows))
        if weights is not None:
            rows, labels, weights = rows[weights > 0.0], labels[weights > 0.0], weights[weights > 0.0]
        return rows, labels, weights

    def _learn(
        self, X: Floats, y: NDArray[Any], weights: Floats | None, *, classes: NDArray[Any] | None
    ) -> Self:
        check_choice("scale", self.scale, ("range", "standard", "rank", None))
        settings = check_rodeo(self.update, self.beta, self.c0, self.min_bandwidth)
        cutpoint = check_number("cutpoint", self.cutpoint, -np.inf, np.inf, inclusive=True)
        all_classes = np.unique(y) if classes is None else np.union1d(classes, y)
        if all_classes.size < 2:
            raise ValueError(f"y must hold at least two classes, got one class: {all_classes.tolist()[0]!r}.")
        counts = np.array([_count(y == label, weights) for label in all_classes])
        prior = _check_priors(self.priors, counts)

        scale = learn_scale(X, weights, self.scale)
        self._classes = [
            ClassRows.arrange(
                scale.transform(X[y == label]),
                None if weights is None else weights[y == label],
                **settings,
            )
            for label in all_classes
        ]
        self._scale = scale
        self._training = X, y, weights
        self.classes_ = all_classes
        self.class_count_ = counts
        self.class_prior_ = prior
        self.initial_bandwidth_ = np.array([rows.h[0] for rows in self._classes])
        self.bandwidths_ = self._mean_bandwidths()
        self.zscores_ = np.array([zscores(h) for h in self.bandwidths_])
        self.relevant_ = self.zscores_ <= cutpoint
        return self

    def _mean_bandwidths(self) -> Floats:
        """Mean leave-one-out bandwidths of each class; the initial one where a class has no rows."""
        random = check_random_state(self.random_state)
        points = [
            np.arange(rows.n_rows)
            if rows.n_rows <= _MAX_POINTS
            else np.sort(random.choice(rows.n_rows, _MAX_POINTS, replace=False))
            for rows in self._classes
        ]
        local = leave_one_out_bandwidths(self._classes, points, **self._computation())
        means = np.repeat(self.initial_bandwidth_[:, np.newaxis], self.n_features_in_, axis=1)
        for mean, rows, at, h in zip(means, self._classes, points, local, strict=True):
            if at.size:
                m = None if rows.multiplicity is None else rows.multiplicity[at]
                mean[:] = np.average(h, axis=0, weights=m)
        return means

    def _estimate(self, X: ArrayLike, *, bandwidths: bool = False) -> tuple[Floats, Floats]:
        check_is_fitted(self)
        queries: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        return local_estimates(
            self._classes, self._scale.transform(queries), bandwidths=bandwidths, **self._computation()
        )

    def _computation(self) -> dict[str, Any]:
        return {"update": self.update, "n_jobs": self.n_jobs, "verbose": self.verbose}


def _count(members: NDArray[np.bool_], weights: Floats | None) -> float:
    return float(members.sum() if weights is None else weights[members].sum())


def _check_priors(priors: Any, counts: Floats) -> Floats:
    """Class probabilities from the parameter `priors`."""
    if isinstance(priors, str):
        check_choice("priors", priors, ("uniform", "empirical"))
        return np.full(counts.size, 1.0 / counts.size) if priors == "uniform" else counts / counts.sum()
    given: Floats = np.asarray(priors, dtype=np.float64)
    if given.shape != counts.shape:
        raise ValueError(
            f"priors must hold one number for each of the {counts.size} classes, got {priors!r}."
        )
    if not np.all(given >= 0.0) or abs(given.sum() - 1.0) > 1e-8:
        raise ValueError(f"priors must not be negative and must sum to 1, got {priors!r}.")
    shares: Floats = given / given.sum()
    return shares
