"""RodeoClassifierCV: the classifier with units, bandwidths and variables chosen by leave-one-out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from corral._classes import Classes, LabelledRows
from corral._classifier import DensityClassifier, RodeoClassifier, warn_of_empty_selections
from corral._explain import Explanation
from corral._path import RodeoPath
from corral._rodeo import (
    ClassDensity,
    ClassRows,
    Floats,
    Integers,
    leave_one_out_densities,
    progress,
)
from corral._scale import Scale, learn_scale
from corral._validation import check_choice, check_priors

# The search reads at most so many rows, and asks at most so many of them to leave themselves out.
SEARCH_ROWS = 20_000
SEARCH_POINTS = 2000

# Bandwidths are averaged over at most so many rows of a class while searching, and shadows drawn only at so
# many combinations of units and c0.
_ROUGH_POINTS = 200
_SHADOW_PLACES = 3

_TEMPERATURES = 2.0 ** np.arange(-3.0, 8.5, 0.5)
_N_FOLDS = 5


class RodeoClassifierCV(DensityClassifier):
    r"""Classify by class densities whose units, bandwidths and variables are chosen by leave-one-out.

    Candidates are all combinations of units (`scales`), constants of the initial bandwidth (`c0s`) and
    ways to estimate the density of a class (`features`): with the initial bandwidth for all variables,
    with the bandwidths that the Rodeo finds for the class, with these as a product of one-dimensional
    densities, or over the variables that one of the `rules` finds relevant. For each candidate every
    training row is predicted from all others, which needs no refit: a kernel sum leaves its own term
    out. The candidate with the smallest log loss wins, after one temperature :math:`T` has been fitted
    to it, so that probabilities are calibrated:

    .. math::

        P(y \mid x) = (1 - \varepsilon)
            \frac{\pi_y \hat p_y(x)^{1/T}}{\sum_{y'} \pi_{y'} \hat p_{y'}(x)^{1/T}}
            + \varepsilon \pi_y, \qquad \varepsilon = \frac 1 {n + 2}.

    :math:`\log T` has a standard normal prior, and :math:`\varepsilon`, Laplace's rule of succession
    for an error that n rows have not shown, keeps a few rows from making the model certain.

    Parameters
    ----------
    scales : sequence of {"range", "standard", "rank", "whiten", None}
        Units to try, by default ("range", "standard", "rank"); see `RodeoClassifier`. Where variables are
        correlated within classes, "whiten" may do better; with it only "all" `features` are tried.
    c0s : sequence of float, default=(0.125, 0.25, 0.5, 1.0, 2.0)
        Constants of the initial bandwidth to try.
    features : sequence of {"all", "selected", "separate"}, default=("all", "selected", "separate")
        Which variables to try, and how: "all" jointly, with initial and with class bandwidths; those
        "selected" by each of the rules, the others uniform; all of them "separate", as in naive Bayes.
    rules : sequence of {"zscore", "shadow"}, default=("zscore", "shadow")
        Rules that select variables.
    update, beta, cutpoint, priors, min_bandwidth, n_jobs, verbose, random_state
        As in `RodeoClassifier`. With uniform priors all classes weigh alike in the search, too.

    Attributes
    ----------
    best_estimator_ : RodeoClassifier
        The winner, with its temperature, fitted to all rows.
    best_params_ : dict
        What distinguishes it from other candidates.
    best_score_ : float
        Leave-one-out accuracy to expect: for each fifth of the rows, of the candidate and temperature that
        the other four fifths choose. So it does not profit from having chosen the best of many. Classes
        weigh as the priors say: with uniform ones and unequal classes it is the mean of their accuracies.
    best_log_loss_ : float
        Log loss, likewise.
    temperature_ : float
        :math:`T` of the winner.
    cv_results_ : dict of arrays
        One entry per candidate: "params", "param_scale", ..., and by leave-one-out "log_loss", "accuracy",
        "temperature" and "rank". Made for `pandas.DataFrame`.
    classes_, class_count_, class_prior_, initial_bandwidth_, bandwidths_, zscores_, relevant_
        Those of `best_estimator_`.
    n_features_in_ : int
        Number of variables seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if `X` had any.

    See Also
    --------
    RodeoClassifier : What the winner is. By default it chooses bandwidths at each sample, as the paper does;
        no candidate here does.

    Notes
    -----
    Above 20,000 rows the search uses a random choice of them, in proportion to the classes, and above 2000 it
    leaves out only a random choice, in equal parts from all classes. The winner is fitted to all rows.

    Not quite all combinations are tried. Shadows, which cost most, are drawn only for the three choices of
    units and constant in which other candidates do best, and a rule that finds no variable for any class
    adds no candidate.

    Examples
    --------
    >>> from corral import RodeoClassifierCV
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(100, groups=(1, 2, 3), random_state=0)
    >>> X_test, y_test = make_shifted_groups(100, groups=(1, 2, 3), random_state=1)
    >>> classifier = RodeoClassifierCV(random_state=0).fit(X, y)
    >>> classifier.score(X_test, y_test) > 0.75
    True
    >>> sorted(classifier.best_params_)
    ['bandwidth', 'c0', 'features', 'rule', 'scale']
    """

    def __init__(
        self,
        *,
        scales: Sequence[Literal["range", "standard", "rank", "whiten"] | None] = (
            "range",
            "standard",
            "rank",
        ),
        c0s: Sequence[float] = (0.125, 0.25, 0.5, 1.0, 2.0),
        features: Sequence[Literal["all", "selected", "separate"]] = ("all", "selected", "separate"),
        rules: Sequence[Literal["zscore", "shadow"]] = ("zscore", "shadow"),
        update: Literal["simultaneous", "sequential"] = "simultaneous",
        beta: float = 0.9,
        cutpoint: float = -1.0,
        priors: Literal["uniform", "empirical"] | ArrayLike = "uniform",
        min_bandwidth: float | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.scales = scales
        self.c0s = c0s
        self.features = features
        self.rules = rules
        self.update = update
        self.beta = beta
        self.cutpoint = cutpoint
        self.priors = priors
        self.min_bandwidth = min_bandwidth
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Logarithm of `predict_proba`; see `RodeoClassifier.predict_log_proba`."""
        return self._best().predict_log_proba(X)

    def predict_joint_log_proba(self, X: ArrayLike) -> Floats:
        """Logarithm of prior times tempered density; see `RodeoClassifier.predict_joint_log_proba`."""
        return self._best().predict_joint_log_proba(X)

    def log_density(self, X: ArrayLike) -> Floats:
        """Logarithm of each class's density; see `RodeoClassifier.log_density`."""
        return self._best().log_density(X)

    def local_bandwidths(self, X: ArrayLike) -> Floats:
        """Bandwidths at each row of `X` in each class; see `RodeoClassifier.local_bandwidths`."""
        return self._best().local_bandwidths(X)

    def bandwidth_path(self, X: ArrayLike, label: Any) -> RodeoPath:
        """The Rodeo at one sample in one class, sweep by sweep; see `RodeoClassifier.bandwidth_path`."""
        return self._best().bandwidth_path(X, label)

    def explain(self, X: ArrayLike, *, against: ArrayLike | None = None, n_rows: int = 5) -> Explanation:
        """Why each row of `X` gets its label and not another one; see `RodeoClassifier.explain`."""
        return self._best().explain(X, against=against, n_rows=n_rows)

    def selection_frequency(
        self, n_resamples: int = 20, random_state: int | np.random.RandomState | None = None
    ) -> Floats:
        """How often each variable is relevant in halves; see `RodeoClassifier.selection_frequency`."""
        return self._best().selection_frequency(n_resamples, random_state)

    def _best(self) -> RodeoClassifier:
        check_is_fitted(self)
        return self.best_estimator_

    def _learn(
        self, X: Floats, y: NDArray[Any], weights: Floats | None, *, classes: NDArray[Any] | None
    ) -> Self:
        self._check_choices()
        data = LabelledRows.sort(X, y, weights, classes)
        prior = check_priors(self.priors, data.counts)
        random = check_random_state(self.random_state)
        some = data.take(_choose(data, _shares(data, SEARCH_ROWS), random))
        points = _choose(some, np.full(prior.size, max(SEARCH_POINTS // prior.size, 1)), random)
        lapse = 1.0 / (data.counts.sum() + 2.0)
        trial = Trial.prepare(some, points, prior, lapse, random)
        candidates = self._evaluate(trial, random)

        best = min(candidates, key=lambda candidate: candidate.objective.min())
        temperature = trial.best_temperature(best)
        winner = self._classifier(**best.params, temperature=temperature, lapse=lapse)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(winner, name, getattr(self, name))
        winner._learn(X, y, weights, classes=classes)
        self._training = X, y, weights
        self.best_score_, self.best_log_loss_ = trial.cross_fitted(candidates)
        self.best_params_ = best.params
        self.best_estimator_ = winner
        self.temperature_ = temperature
        self.cv_results_ = _table(candidates, trial)
        for name in _SHARED:
            setattr(self, name, getattr(winner, name))
        return self

    def _warn_of_empty_selections(self) -> None:
        advice = ", which predict best; to look for variables rather than labels, use RodeoSelector"
        warn_of_empty_selections(self.best_estimator_, advice)

    def _check_choices(self) -> None:
        """Refuse a bad parameter before any work."""
        _check_sequence("scales", self.scales, ("range", "standard", "rank", "whiten", None))
        _check_sequence("features", self.features, ("all", "selected", "separate"))
        if "selected" in self.features:
            _check_sequence("rules", self.rules, ("zscore", "shadow"))
        if "whiten" in self.scales and "all" not in self.features:
            raise ValueError(f"scale 'whiten' needs features with 'all', got {self.features!r}.")
        if np.ndim(self.c0s) != 1 or not len(self.c0s):
            raise ValueError(f"c0s must be a sequence of numbers and not empty, got {self.c0s!r}.")
        for c0 in self.c0s:
            self._classifier(c0=c0)._check_parameters()

    def _classifier(self, **parameters: Any) -> RodeoClassifier:
        """A RodeoClassifier with all parameters that candidates share."""
        return RodeoClassifier(**{name: getattr(self, name) for name in _COMMON}, **parameters)

    def _kinds(self) -> list[dict[str, Any]]:
        """Ways to estimate a density with given units and c0, plain ones first: they win ties."""
        kinds: list[dict[str, Any]] = []
        if "all" in self.features:
            kinds += [{"bandwidth": "initial", "features": "all"}, {"bandwidth": "class", "features": "all"}]
        if "separate" in self.features:
            kinds += [{"bandwidth": "class", "features": "separate"}]
        if "selected" in self.features:
            kinds += [{"bandwidth": "class", "features": "selected", "rule": rule} for rule in self.rules]
        return kinds

    def _evaluate(self, trial: Trial, random: np.random.RandomState) -> list[Candidate]:
        """Judge all candidates; those with shadows, which cost most, only where others did best."""
        quick = [kind for kind in self._kinds() if kind.get("rule") != "shadow"]
        slow = [kind for kind in self._kinds() if kind.get("rule") == "shadow"]
        n_quick = len(self.scales) * len(self.c0s) if quick else 0
        places = [(scale, c0) for scale in self.scales for c0 in self.c0s if slow and scale != "whiten"]
        n_slow = min(_SHADOW_PLACES, len(places))
        candidates: list[Candidate] = []
        with progress(n_quick + n_slow, "Search", self.verbose) as advance:
            for scale in self.scales if quick else ():
                candidates += self._judge(trial, scale, self.c0s, quick, random, advance)
            ranked = sorted(candidates, key=lambda candidate: candidate.objective.min())
            best = [(candidate.params["scale"], candidate.params["c0"]) for candidate in ranked]
            ordered = [place for place in dict.fromkeys([*best, *places]) if place in places]
            for scale, c0 in ordered[:n_slow]:
                candidates += self._judge(trial, scale, [c0], slow, random, advance)
        return candidates

    def _judge(
        self,
        trial: Trial,
        scale: Any,
        c0s: Sequence[float],
        kinds: Sequence[dict[str, Any]],
        random: np.random.RandomState,
        advance: Callable[[int], None],
    ) -> list[Candidate]:
        """Judge candidates with the same units.

        What describes a class is learnt without the fold that it is tried on: a row must not choose the
        bandwidths and variables that then speak for it.
        """
        parts = trial.parts()
        if scale == "whiten":  # which looks at the labels, too
            kinds = [kind for kind in kinds if kind["features"] == "all"]
            units = [learn_scale(part.X, part.weights, scale, part.codes) for part in parts]
        else:
            units = [learn_scale(trial.data.X, trial.data.weights, scale)] * len(parts)
        computation = {"n_jobs": self.n_jobs, "verbose": self.verbose - 1}
        params: list[dict[str, Any]] = []
        densities: list[list[list[ClassDensity]]] = []  # by candidate, fold and class
        for c0 in c0s:
            settings, cutpoint = self._classifier(scale=scale, c0=c0)._check_parameters()
            learnt = [
                Classes.learn(
                    part,
                    of_part,
                    settings=settings,
                    shadows=kinds[0].get("rule") == "shadow",
                    random=random,
                    computation={"update": self.update, **computation},
                    n_points=_ROUGH_POINTS,
                )
                for part, of_part in zip(parts, units, strict=True)
            ]
            for kind in kinds:
                relevant = [part.relevant(kind.get("rule", "zscore"), cutpoint) for part in learnt]
                if kind["features"] == "selected" and "all" in self.features and not np.any(relevant):
                    continue  # the same as all variables
                params.append({"scale": scale, "c0": float(c0), **kind})
                densities.append(
                    [
                        part.densities(kind["bandwidth"], kind["features"], chosen)
                        for part, chosen in zip(learnt, relevant, strict=True)
                    ]
                )
            advance(1)
        log_density = trial.log_densities(units, settings, densities, computation)
        return [trial.judge(*each) for each in zip(params, log_density, strict=True)]


_COMMON = ("update", "beta", "cutpoint", "priors", "min_bandwidth", "n_jobs", "verbose", "random_state")
_SHARED = (
    "classes_",
    "class_count_",
    "class_prior_",
    "initial_bandwidth_",
    "bandwidths_",
    "zscores_",
    "relevant_",
)


@dataclass(frozen=True, eq=False)
class Candidate:
    """Leave-one-out results of one candidate.

    Attributes
    ----------
    params : of `RodeoClassifier`.
    log_density : (n_points, n_classes)
    losses : (n_temperatures, n_points) negative log probabilities of the right class.
    hits : (n_temperatures, n_points) whether it was the most probable one.
    objective : (n_temperatures,) weighted mean loss and the prior of the temperature.
    """

    params: dict[str, Any]
    log_density: Floats
    losses: Floats
    hits: NDArray[np.bool_]
    objective: Floats


@dataclass(frozen=True, eq=False)
class Trial:
    """What candidates are judged by.

    Attributes
    ----------
    data : the rows of the search.
    points : (n_points,) which of them are predicted from all others.
    folds : (n_rows,) which fifth each row belongs to; copies of a row to the same.
    weights : (n_points,) that sum to 1, in each class to its prior.
    count : how many points there are, copies counted.
    prior : (n_classes,)
    lapse : share of probabilities given to the prior.
    """

    data: LabelledRows
    points: Integers
    folds: Integers
    weights: Floats
    count: float
    prior: Floats
    lapse: float

    @classmethod
    def prepare(
        cls,
        data: LabelledRows,
        points: Integers,
        prior: Floats,
        lapse: float,
        random: np.random.RandomState,
    ) -> Trial:
        """Divide rows into fifths of each class, and weigh points as the priors weigh their classes."""
        folds = np.empty(len(data.X), dtype=np.int64)
        for members in data.members():
            distinct, which = np.unique(data.X[members], axis=0, return_inverse=True)
            folds[members] = (random.permutation(len(distinct)) % _N_FOLDS)[which]
        codes = data.codes[points]
        weights = np.ones(points.size) if data.weights is None else data.weights[points].copy()
        count = float(weights.sum())
        weights *= (prior / np.maximum(np.bincount(codes, weights, minlength=prior.size), 1e-300))[codes]
        weights /= max(weights.sum(), 1e-300)  # no weight at all if only classes without rows have a prior
        return cls(data, points, folds, weights, count, prior, lapse)

    @property
    def codes(self) -> Integers:
        """The right classes of the points."""
        return self.data.codes[self.points]

    def parts(self) -> list[LabelledRows]:
        """The rows without each of the folds; all of them where one fold has them all."""
        others = [np.flatnonzero(self.folds != fold) for fold in range(_N_FOLDS)]
        return [self.data.take(which) if which.size else self.data for which in others]

    def log_densities(
        self,
        units: Sequence[Scale],
        settings: dict[str, Any],
        densities: Sequence[Sequence[Sequence[ClassDensity]]],
        computation: dict[str, Any],
    ) -> Floats:
        """Log densities (n_candidates, n_points, n_classes) of the points, each leaving itself out.

        `units` are those of each fold.
        """
        members = self.data.members()
        weights = self.data.weights
        log_density = np.empty((len(densities), self.points.size, len(members)))
        for fold in range(_N_FOLDS):
            inside = self.folds[self.points] == fold
            at = self.points[inside]
            scaled = units[fold].transform(self.data.X)
            rows = [
                ClassRows.arrange(scaled[which], None if weights is None else weights[which], **settings)
                for which in members
            ]
            own = [
                np.where(self.data.codes[at] == a, np.searchsorted(which, at), -1)
                for a, which in enumerate(members)
            ]
            for apart in (False, True):
                chosen = [
                    k for k, of_candidate in enumerate(densities) if of_candidate[0][0].separate == apart
                ]
                if not chosen or not at.size:
                    continue
                h, outside = _vectors([densities[k][fold] for k in chosen], scaled.shape[1])
                found = leave_one_out_densities(rows, scaled[at], own, h, separate=apart, **computation)
                log_density[np.ix_(chosen, inside)] = found + outside[:, np.newaxis]
        return log_density

    def judge(self, params: dict[str, Any], log_density: Floats) -> Candidate:
        """Try all temperatures."""
        tried = [self._losses(log_density, temperature) for temperature in _TEMPERATURES]
        losses = np.array([loss for loss, _ in tried])
        hits = np.array([hit for _, hit in tried])
        objective = losses @ self.weights + self._penalty(_TEMPERATURES)
        return Candidate(params, log_density, losses, hits, objective)

    def best_temperature(self, candidate: Candidate) -> float:
        """The best temperature between the neighbours of the best one tried."""
        k = int(candidate.objective.argmin())
        bounds = np.log(_TEMPERATURES[[max(k - 1, 0), min(k + 1, _TEMPERATURES.size - 1)]])

        def objective(log_temperature: float) -> float:
            temperature = np.exp(log_temperature)
            loss, _ = self._losses(candidate.log_density, temperature)
            return float(loss @ self.weights + self._penalty(temperature))

        found = minimize_scalar(objective, bounds=bounds, method="bounded", options={"xatol": 1e-6})
        return float(np.exp(found.x))

    def cross_fitted(self, candidates: Sequence[Candidate]) -> tuple[float, float]:
        """Accuracy and log loss where each fold is judged by the choice of the others."""
        hits, losses = np.zeros(self.points.size), np.zeros(self.points.size)
        folds = self.folds[self.points]
        for fold in np.unique(folds):
            inside = folds == fold
            others = np.where(inside, 0.0, self.weights)
            others /= max(others.sum(), 1e-300)
            objectives = [
                candidate.losses @ others + self._penalty(_TEMPERATURES) for candidate in candidates
            ]
            best, k = divmod(int(np.argmin(objectives)), _TEMPERATURES.size)
            hits[inside] = candidates[best].hits[k, inside]
            losses[inside] = candidates[best].losses[k, inside]
        return self.share(hits), float(losses @ self.weights)

    def share(self, hits: NDArray[Any]) -> float:
        """Weighted share of the points that were hit, at most 1: the weights sum to it but for rounding."""
        return min(float(hits @ self.weights), 1.0)

    def _losses(self, log_density: Floats, temperature: float) -> tuple[Floats, NDArray[np.bool_]]:
        """Minus the log probability of the right class, and whether it is the most probable one.

        The probabilities are those of `RodeoClassifier.predict_proba`, with fewer logarithms.
        """
        with np.errstate(divide="ignore"):
            joint = log_density / temperature + np.log(self.prior)
        most = joint.max(axis=1, keepdims=True)
        odds = np.where(np.isneginf(most), self.prior, np.exp(joint - np.where(np.isneginf(most), 0.0, most)))
        proba = (1.0 - self.lapse) * odds / odds.sum(axis=1, keepdims=True) + self.lapse * self.prior
        right = proba[np.arange(self.points.size), self.codes]
        # Without weight where the prior forbids the class.
        return -np.log(np.where(self.weights > 0.0, right, 1.0)), proba.argmax(axis=1) == self.codes

    def _penalty(self, temperature: Any) -> Any:
        """Minus the logarithm of a standard normal prior of log T, per point."""
        return 0.5 * np.log(temperature) ** 2 / self.count


def _shares(data: LabelledRows, most: int) -> Integers:
    """How many rows each class may have so that there are about `most`, and few classes are cut short."""
    sizes = np.bincount(data.codes, minlength=data.labels.size)  # rows, not their weights, take the time
    shares: Integers = np.maximum(np.ceil(sizes / sizes.sum() * most), 50).astype(np.int64)
    return shares


def _choose(data: LabelledRows, most: Integers, random: np.random.RandomState) -> Integers:
    """Positions of at most so many rows of each class, in order."""
    chosen = [
        members if members.size <= limit else random.choice(members, limit, replace=False)
        for members, limit in zip(data.members(), most, strict=True)
    ]
    return np.sort(np.concatenate(chosen))


def _vectors(candidates: Sequence[Sequence[ClassDensity]], d: int) -> tuple[Floats, Floats]:
    """Bandwidths (n_candidates, n_classes, d), infinite where unused, and the rest of the log densities."""
    h = np.full((len(candidates), len(candidates[0]), d), np.inf)
    for of_candidate, densities in zip(h, candidates, strict=True):
        for of_class, density in zip(of_candidate, densities, strict=True):
            of_class[density.variables] = density.fixed
    return h, np.array([[density.outside for density in densities] for densities in candidates])


def _table(candidates: Sequence[Candidate], trial: Trial) -> dict[str, Any]:
    best = [int(candidate.objective.argmin()) for candidate in candidates]
    objective = np.array([candidate.objective.min() for candidate in candidates])
    names = ("scale", "c0", "bandwidth", "features", "rule")
    params = {name: [candidate.params.get(name) for candidate in candidates] for name in names}
    return {
        "params": [candidate.params for candidate in candidates],
        **{f"param_{name}": np.array(values, dtype=object) for name, values in params.items()},
        "log_loss": np.array(
            [candidate.losses[k] @ trial.weights for candidate, k in zip(candidates, best, strict=True)]
        ),
        "accuracy": np.array(
            [trial.share(candidate.hits[k]) for candidate, k in zip(candidates, best, strict=True)]
        ),
        "temperature": _TEMPERATURES[best],
        "rank": np.argsort(np.argsort(objective, kind="stable"), kind="stable") + 1,
    }


def _check_sequence(name: str, values: Any, choices: Sequence[Any]) -> None:
    if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
        raise ValueError(f"{name} must be a sequence and not empty, got {values!r}.")
    for value in values:
        check_choice(name, value, choices)
