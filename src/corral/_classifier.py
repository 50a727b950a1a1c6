"""RodeoClassifier: algorithms 1 to 3."""

from __future__ import annotations

import inspect
import warnings
from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from corral._classes import Classes, LabelledRows
from corral._explain import Explanation, explain_sample
from corral._lazy import by_rows
from corral._path import RodeoPath, density_path
from corral._rodeo import Integers, estimates
from corral._scale import learn_scale
from corral._validation import (
    check_choice,
    check_integer,
    check_n_jobs,
    check_number,
    check_one_row,
    check_priors,
    check_rodeo,
    check_sample_weight,
    feature_names,
    unchanged_by_errors,
)

Floats = NDArray[np.float64]


# A warning looks past these packages, to the line that called them: a pipeline fits on behalf of its user.
_LOOKED_PAST = ("corral", "joblib", "sklearn")


class EmptySelectionWarning(UserWarning):
    """No variable was found to describe a class."""


def warn_of_empty_selections(fitted: RodeoClassifier, advice: str) -> None:
    """Warn, at the line of the user, of classes without relevant variables where such were asked for."""
    without = fitted.classes_[(fitted.class_count_ > 0.0) & ~fitted.relevant_.any(axis=1)]
    if not without.size or (fitted.features != "selected" and fitted.rule != "shadow"):
        return
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _LOOKED_PAST:
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"no variable was found to describe the classes {without.tolist()} by rule={fitted.rule!r} in "
        f"scale={fitted.scale!r}{advice}.",
        EmptySelectionWarning,
        stacklevel=level,
    )


class DensityClassifier(ClassifierMixin, BaseEstimator):
    """What classifiers by class densities share.

    They learn rows at once or in parts, and derive all predictions from log probabilities.
    """

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
        self : estimator
        """
        with unchanged_by_errors(self):
            self._learn(*self._check_rows(X, y, sample_weight, reset=True), classes=None)
            self._warn_of_empty_selections()
        return self

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
        self : estimator
        """
        with unchanged_by_errors(self):
            self._learn_more(*self._check_rows(X, y, sample_weight, reset=self._is_new()), classes=classes)
            self._warn_of_empty_selections()
        return self

    def _is_new(self) -> bool:
        """Whether no rows have been learnt so far."""
        return not hasattr(self, "_training")

    def _learn_more(
        self, rows: Floats, labels: NDArray[Any], weights: Floats | None, *, classes: ArrayLike | None
    ) -> None:
        """Fit validated rows together with those learnt before."""
        first = self._is_new()
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
        self._learn(rows, labels, weights, classes=known)

    @by_rows()
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most probable class of each row of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        log_proba = self.predict_log_proba(X)
        labels: NDArray[Any] = self.classes_[log_proba.argmax(axis=1)]
        return labels

    @by_rows("classes")
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

    def _check_rows(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, *, reset: bool
    ) -> tuple[Floats, NDArray[Any], Floats | None]:
        """Validate training rows."""
        rows, labels = validate_data(self, X, y, dtype=np.float64, reset=reset)
        check_classification_targets(labels)
        return rows, labels, check_sample_weight(sample_weight, len(rows))

    @abstractmethod
    def _learn(
        self, X: Floats, y: NDArray[Any], weights: Floats | None, *, classes: NDArray[Any] | None
    ) -> Self:
        """Fit validated rows and keep them as `_training`; `classes` may name some without rows."""

    @abstractmethod
    def _warn_of_empty_selections(self) -> None:
        """Warn of classes without relevant variables."""

    @abstractmethod
    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Logarithm of the probability of each class, from which all predictions derive."""


def joint_log_probability(log_density: Floats, prior: Floats, temperature: float) -> Floats:
    """Logarithm of prior times density^(1 / temperature)."""
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    joint: Floats = log_density / temperature + log_prior
    # Only classes without rows may be left with a positive prior: then nothing is known but it.
    return np.where(np.isneginf(joint).all(axis=1, keepdims=True), log_prior, joint)


def log_probability(joint: Floats, prior: Floats, lapse: float) -> Floats:
    """Logarithm of the posterior, a share `lapse` of which is given to the prior instead.

    Not before it sums to 1: far away, logarithms of densities are so large that the share would vanish in
    their last digit.
    """
    log_proba: Floats = log_softmax(joint, axis=1)
    if lapse > 0.0:
        with np.errstate(divide="ignore"):
            log_proba = np.logaddexp(np.log1p(-lapse) + log_proba, np.log(lapse) + np.log(prior))
    return log_proba


class RodeoClassifier(DensityClassifier):
    r"""Classify by kernel densities, one per class, whose bandwidths are chosen at each sample.

    For a sample :math:`x` and each class :math:`y`, the Rodeo chooses bandwidths
    :math:`h^y_1, \dots, h^y_d` (algorithm 1 of [1]_; see `RodeoDensity`), and the class densities

    .. math::

        \hat p_y(x) = \frac 1 {n_y} \sum_{i=1}^{n_y} \prod_{j=1}^d \frac 1 {h^y_j}
            \varphi\Big(\frac{x_j - x^y_{ij}}{h^y_j}\Big)

    are compared: :math:`P(y \mid x) = \pi_y \hat p_y(x) / \sum_{y'} \pi_{y'} \hat p_{y'}(x)` (algorithm
    3). A bandwidth that shrinks at the class's own rows marks a variable that describes the class
    (algorithm 2); `rule` says how much it must shrink.

    Parameters
    ----------
    bandwidth : {"local", "class", "initial"}, default="local"
        "local" runs the Rodeo at each sample, as the paper does. "class" uses one vector per class, the
        mean of the bandwidths at the class's own rows (`bandwidths_`): prediction is then a plain
        kernel sum, much faster, and more accurate where most variables are noise for a class. "initial"
        keeps the bandwidth that the Rodeo starts from: a plain kernel density estimate.
    features : {"all", "selected", "separate"}, default="all"
        "selected" estimates the density of each class over its relevant variables alone and takes the
        others as uniform over their range in the training rows, so that classes with different
        variables compare fairly. A class without relevant variables keeps them all. "separate" takes
        all variables as independent within a class, so that its density is a product of
        one-dimensional ones, as in naive Bayes; not with ``bandwidth="local"``.
    update : {"simultaneous", "sequential"}, default="simultaneous"
        Whether bandwidths change after each sweep over the variables, so that the order of columns
        does not matter, or inside it, as algorithm 1 is printed.
    scale : {"range", "standard", "rank", "whiten"} or None, default="range"
        Units in which bandwidths are chosen, learnt on the training rows of all classes together: each
        column's range, its standard deviation, its rank (the share of training rows below, counting
        ties half), or its own units. "whiten" mixes the standardised variables so that they are
        uncorrelated within classes, on average over these, for densities of all variables
        (``features="all"``). Relevance is still that of the original variables, in range units, and so
        is the evidence of `explain`; only the bandwidths of `local_bandwidths` are of the mixed ones.
    beta : float, default=0.9
        Factor by which a bandwidth shrinks, between 0 and 1.
    c0 : float, default=1.0
        Constant of the initial bandwidth, :math:`h_0 = c_0 / \log\log \max(n_y, 16)`.
    rule : {"zscore", "shadow"}, default="zscore"
        Which variables are relevant for a class. "zscore" (the paper's): those whose mean bandwidth,
        standardised over the variables of the class, is at most `cutpoint`. "shadow" needs no cut
        point: those whose mean bandwidth is smaller than that of a *shadow*, a column drawn from the
        values of the variable in all classes, by so many standard errors that among the variables of a
        class noise is selected with probability 0.01 at most. See Notes.
    cutpoint : float, default=-1.0
        Largest z-score of a relevant variable; read by ``rule="zscore"`` only.
    priors : {"uniform", "empirical"} or array-like of shape (n_classes,), default="uniform"
        Class probabilities :math:`\pi_y`: all alike (algorithm 3), the share of training rows
        (theorem 1), or given ones in the order of `classes_`.
    temperature : float, default=1.0
        Densities are raised to the power of its inverse before they are compared. Values above 1 flatten
        the probabilities. Correlated variables usually need this, because the product kernel counts the
        same evidence several times.
    lapse : float, default=0.0
        Share of every probability that is given to the priors instead, for what the training rows
        cannot rule out.
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
        Draws the shadows, and chooses the rows over which bandwidths are averaged in a class of more
        than 1000 (for ``rule="shadow"``, of more than 200 for each shadow).

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
    shadow_scores_ : ndarray of shape (n_classes, n_features)
        With ``rule="shadow"``: mean bandwidth less that of the shadow, in standard errors.
    relevant_ : ndarray of shape (n_classes, n_features), bool
        Which variables describe each class; never one that is constant in all training rows. If there
        are none for some class, `fit` gives an `EmptySelectionWarning`, provided that they were asked
        for by ``features="selected"`` or ``rule="shadow"``.
    n_features_in_ : int
        Number of variables seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if `X` had any.

    See Also
    --------
    RodeoClassifierCV : Chooses units, bandwidths and variables.
    RodeoDensity : The density of one sample of rows.
    RodeoSelector : The relevant variables as a step of a pipeline.

    Notes
    -----
    What relevance means depends on the units and on the rule. By z-scores in range or standard units a
    relevant variable is one in which the class is *concentrated*, more than in its other variables;
    that may be so in every class alike. In rank units a column that is distributed in the class as in
    all classes together is uniform, so a relevant variable is one that *differs from the background*.
    Shadows are such background columns, so ``rule="shadow"`` means the latter in all units: the class is
    more concentrated in the variable than the training rows as a whole. Either rule needs bandwidths
    that shrink. In standard or raw units they may not (the initial bandwidth is then of the size of
    the distances between rows), which leaves a plain kernel density estimate and no relevant variables;
    `bandwidths_` beside `initial_bandwidth_` shows it.

    The methods that predict rows also take dask arrays and dataframes: lazily, block by block, keeping
    chunks and index.

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
    >>> print(classifier.explain(X_test[:1]))
    sample 0: 4 (0.84) rather than 5 (0.16)
      evidence: x0 +1.64, x6 +0.10, x2 +0.07, x7 -0.07
      closest:  row 41 (10%), row 157 (6%), row 172 (4%)

    Two meanings of relevance. Column 0 is sharp, but in both classes alike; column 1 only shifts:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["left", "right"], 200)
    >>> X = rng.uniform(size=(400, 8))
    >>> sharp = rng.uniform(size=400) < 0.9
    >>> X[sharp, 0] = rng.normal(0.5, 0.02, sharp.sum())
    >>> X[:, 1] = rng.normal(np.where(y == "left", 0.35, 0.65), 0.1)
    >>> def relevant(**parameters):
    ...     found = RodeoClassifier(**parameters).fit(X, y).relevant_
    ...     return [np.flatnonzero(of_class).tolist() for of_class in found]
    >>> relevant()  # in which variables is each class concentrated?
    [[0, 1], [0, 1]]
    >>> relevant(scale="rank")  # in which does it differ from the background?
    [[1], [1]]
    >>> relevant(rule="shadow", random_state=0)
    [[1], [1]]
    """

    # Those in which bandwidths shrink most.
    _shrinking_units: ClassVar[tuple[str, ...]] = ("range", "rank")

    def __init__(
        self,
        *,
        bandwidth: Literal["local", "class", "initial"] = "local",
        features: Literal["all", "selected", "separate"] = "all",
        update: Literal["simultaneous", "sequential"] = "simultaneous",
        scale: Literal["range", "standard", "rank", "whiten"] | None = "range",
        beta: float = 0.9,
        c0: float = 1.0,
        rule: Literal["zscore", "shadow"] = "zscore",
        cutpoint: float = -1.0,
        priors: Literal["uniform", "empirical"] | ArrayLike = "uniform",
        temperature: float = 1.0,
        lapse: float = 0.0,
        min_bandwidth: float | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.features = features
        self.update = update
        self.scale = scale
        self.beta = beta
        self.c0 = c0
        self.rule = rule
        self.cutpoint = cutpoint
        self.priors = priors
        self.temperature = temperature
        self.lapse = lapse
        self.min_bandwidth = min_bandwidth
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @by_rows("classes")
    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        log_P : ndarray of shape (n_samples, n_classes)
        """
        return log_probability(self.predict_joint_log_proba(X), self.class_prior_, self.lapse)

    @by_rows("classes")
    def predict_joint_log_proba(self, X: ArrayLike) -> Floats:
        """Logarithm of prior times density^(1 / `temperature`) of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        log_joint : ndarray of shape (n_samples, n_classes)
        """
        return joint_log_probability(self.log_density(X), self.class_prior_, self.temperature)

    @by_rows("classes")
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

    @by_rows("classes", "features")
    def local_bandwidths(self, X: ArrayLike) -> Floats:
        """Bandwidths at each row of `X` in each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        h : ndarray of shape (n_samples, n_classes, n_features)
            In scaled units, so that variables compare: those the Rodeo chooses at the row, or those of the
            class with ``bandwidth="class"``, or the initial one with "initial". With
            ``features="selected"`` a variable that is not relevant keeps the initial bandwidth.
        """
        _, h = self._estimate(X, bandwidths=True)
        return h

    def bandwidth_path(self, X: ArrayLike, label: Any) -> RodeoPath:
        """How the Rodeo chooses the bandwidths of one sample in one class, sweep by sweep.

        With ``bandwidth="local"`` it ends at those of `local_bandwidths`. With other bandwidths the model
        does not use it: it is what the Rodeo would do at this sample. As in `predict` the sample counts as
        a new one, even if it is one of the training rows.

        Parameters
        ----------
        X : array-like of shape (1, n_features)
            The sample.
        label : label
            One of `classes_`.

        Returns
        -------
        path : RodeoPath
            With ``features="selected"`` the sweeps leave out variables that are not relevant.
        """
        check_is_fitted(self)
        x = check_one_row(self._scale.transform(validate_data(self, X, dtype=np.float64, reset=False)))
        labels = self.classes_.tolist()
        if np.ndim(label) or label not in labels:
            raise ValueError(f"label must be one of classes_, got {label!r}.")
        return density_path(self._densities[labels.index(label)], x, self.update)

    def explain(self, X: ArrayLike, *, against: ArrayLike | None = None, n_rows: int = 5) -> Explanation:
        """Why each row of `X` gets its label and not another one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples to explain.
        against : label or array-like of shape (n_samples,), default=None
            The class to compare with the predicted one; by default the second most probable.
        n_rows : int, default=5
            How many of the training rows that support the label are listed.

        Returns
        -------
        explanation : Explanation
            Per sample and variable the bandwidths and the evidence for the label; per sample the
            training rows with the largest share of the label's density, numbered by their position
            in the `X` given to `fit`.
        """
        check_is_fitted(self)
        n_listed = check_integer("n_rows", n_rows)
        queries: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        scaled = self._scale.transform(queries)
        log_density, h = estimates(self._densities, scaled, bandwidths=True, **self._computation())
        joint = joint_log_probability(log_density, self.class_prior_, self.temperature)
        log_proba = log_probability(joint, self.class_prior_, self.lapse)
        label = log_proba.argmax(axis=1)
        rival = self._rivals(against, log_proba, label)
        samples = [
            explain_sample(
                x,
                h[i, a],
                self._densities[a],
                h[i, b],
                self._densities[b],
                self._widths,
                self._scale.mixing,
            )
            for i, (x, a, b) in enumerate(zip(scaled, label, rival, strict=True))
        ]
        return Explanation.collect(
            samples,
            classes=self.classes_,
            pair=(label, rival),
            proba=np.exp(log_proba),
            values=queries,
            bandwidths=h,
            feature_names=feature_names(self),
            training_rows=self._members,
            n_listed=n_listed,
        )

    def selection_frequency(
        self, n_resamples: int = 20, random_state: int | np.random.RandomState | None = None
    ) -> Floats:
        """How often each variable is relevant when the training rows are halved at random.

        Parameters
        ----------
        n_resamples : int, default=20
            Number of halves, each drawn without replacement within each class.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        frequency : ndarray of shape (n_classes, n_features)
            Share of the halves in which the variable was selected: near 1 or 0 where the selection is
            stable.
        """
        check_is_fitted(self)
        n = check_integer("n_resamples", n_resamples)
        random = check_random_state(random_state)
        X, y, weights = self._training
        frequency = np.zeros(self.relevant_.shape)
        for _ in range(n):
            halves = [random.permutation(rows)[: -(-rows.size // 2)] for rows in self._members]
            half = np.sort(np.concatenate(halves))
            fitted = clone(self).set_params(random_state=random.randint(2**31 - 1), features="all")
            part = None if weights is None else weights[half]
            fitted._learn(X[half], y[half], part, classes=self.classes_)
            frequency += fitted.relevant_ / n
        return frequency

    def _check_parameters(self) -> tuple[dict[str, Any], float]:
        """Check all but the priors; return what `ClassRows.arrange` takes, and the cut point."""
        check_choice("bandwidth", self.bandwidth, ("local", "class", "initial"))
        check_choice("features", self.features, ("all", "selected", "separate"))
        if self.features == "separate" and self.bandwidth == "local":
            raise ValueError("features='separate' needs bandwidth='class' or 'initial', got 'local'.")
        check_choice("rule", self.rule, ("zscore", "shadow"))
        check_choice("scale", self.scale, ("range", "standard", "rank", "whiten", None))
        if self.scale == "whiten" and self.features != "all":
            raise ValueError(
                f"scale='whiten' mixes variables and needs features='all', got {self.features!r}."
            )
        check_number("temperature", self.temperature, 1e-10, 1e10, inclusive=True)
        check_number("lapse", self.lapse, 0.0, 1.0, inclusive=True)
        check_n_jobs(self.n_jobs)
        cutpoint = check_number("cutpoint", self.cutpoint, -np.inf, np.inf, inclusive=True)
        return check_rodeo(self.update, self.beta, self.c0, self.min_bandwidth), cutpoint

    def _learn(
        self, X: Floats, y: NDArray[Any], weights: Floats | None, *, classes: NDArray[Any] | None
    ) -> Self:
        settings, cutpoint = self._check_parameters()
        data = LabelledRows.sort(X, y, weights, classes)
        prior = check_priors(self.priors, data.counts)
        learn = partial(
            Classes.learn,
            data,
            settings=settings,
            random=check_random_state(self.random_state),
            computation=self._computation(),
        )
        whitened = self.scale == "whiten"
        units = learn_scale(data.X, data.weights, "range" if whitened else self.scale)
        learnt = learn(units, shadows=self.rule == "shadow")
        relevant = learnt.relevant(self.rule, cutpoint)
        estimated = learnt
        if whitened:
            estimated = learn(learn_scale(data.X, data.weights, "whiten", data.codes), shadows=False)

        self._training = X, y, weights  # nothing is kept of a call that fails before here
        self._members = [data.numbers[which] for which in data.members()]
        self._keep(data.labels, data.counts, prior, learnt, relevant, estimated)
        return self

    def _keep(
        self,
        labels: NDArray[Any],
        counts: Floats,
        prior: Floats,
        learnt: Classes,
        relevant: NDArray[np.bool_],
        estimated: Classes,
    ) -> None:
        """Keep what was learnt of the classes: variables from `learnt`, densities from `estimated`."""
        self._widths = learnt.widths
        self._scale = estimated.scale
        self.classes_ = labels
        self.class_count_ = counts
        self.class_prior_ = prior
        self.initial_bandwidth_ = np.array([rows.h[0] for rows in learnt.rows])
        self.bandwidths_ = learnt.bandwidths
        self.zscores_ = learnt.zscores
        if learnt.shadow_scores is not None:
            self.shadow_scores_ = learnt.shadow_scores
        else:
            self.__dict__.pop("shadow_scores_", None)  # of an earlier fit
        self.relevant_ = relevant
        self._densities = estimated.densities(self.bandwidth, self.features, relevant)

    def _warn_of_empty_selections(self) -> None:
        used = "range" if self.scale == "whiten" else self.scale  # in which relevance was found
        others = " or ".join(repr(units) for units in self._shrinking_units if units != used)
        warn_of_empty_selections(
            self, f"; where bandwidths hardly shrink, try scale={others}" if others else ""
        )

    def _rivals(self, against: ArrayLike | None, log_proba: Floats, label: Integers) -> Integers:
        """Numbers of the classes to compare the predicted ones with."""
        if against is None:
            others = log_proba.copy()
            others[np.arange(len(label)), label] = -np.inf
            second: Integers = others.argmax(axis=1)
            # Where every other class has density zero, any of them is second.
            second[second == label] = (label[second == label] == 0).astype(np.int64)
            return second
        given = np.asarray(against)
        if given.shape not in ((), label.shape):
            raise ValueError(f"against must be one label or one for each sample, got shape {given.shape}.")
        named = np.broadcast_to(given, label.shape)
        unknown = np.setdiff1d(named, self.classes_)
        if unknown.size:
            raise ValueError(f"against names the class {unknown.tolist()[0]!r}, which is not in classes_.")
        return np.searchsorted(self.classes_, named)

    def _estimate(self, X: ArrayLike, *, bandwidths: bool = False) -> tuple[Floats, Floats]:
        check_is_fitted(self)
        queries: Floats = validate_data(self, X, dtype=np.float64, reset=False)
        return estimates(
            self._densities, self._scale.transform(queries), bandwidths=bandwidths, **self._computation()
        )

    def _computation(self) -> dict[str, Any]:
        return {"update": self.update, "n_jobs": self.n_jobs, "verbose": self.verbose}
