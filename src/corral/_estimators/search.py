"""RodeoClassifierCV: the classifier with units, bandwidths and variables chosen by leave-one-out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from corral._core.model import learn_contrast, learn_model
from corral._core.parallel import progress
from corral._core.rows import LabelledRows, TrainingRows
from corral._core.settings import MIN_EFFECT, Bools, Integers
from corral._core.trial import Candidate, Kind, Trial, UnitRows
from corral._estimators.base import DensityClassifier, warn_of_copies, warn_of_empty_selections
from corral._estimators.classifier import RULES, RodeoClassifier
from corral._estimators.validation import check_choice, check_priors, sort_rows

# The search reads at most so many rows, and asks at most so many of them to leave themselves out.
SEARCH_ROWS = 20_000
SEARCH_POINTS = 2000

# Shadows are drawn only at so many combinations of units and c0.
_SHADOW_PLACES = 3

_COMMON = (
    "update",
    "beta",
    "cutpoint",
    "min_effect",
    "priors",
    "min_bandwidth",
    "n_jobs",
    "verbose",
    "random_state",
)


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
    rules : sequence of {"zscore", "shadow", "contrast"}, default=("contrast",)
        Rules that select variables for candidates; `relevant_` is by contrast whatever predicts best.
    update, beta, cutpoint, min_effect, priors, min_bandwidth, n_jobs, verbose, random_state
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
    relevant_ : ndarray of shape (n_classes, n_features), bool
        Which variables describe each class, by ``rule="contrast"`` of `RodeoClassifier`: the variables that a
        candidate selects, if any, help it to predict; these say how the class differs from others.
    feature_importances_ : ndarray of shape (n_features,)
        Mean evidence of each variable for the classes at their own rows, 0 where it is negative.
    model_, classes_, class_count_, class_prior_, n_copies_
        Those of `best_estimator_`.
    initial_bandwidth_, bandwidths_, zscores_
        Likewise.
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

    Not quite all combinations are tried. Shadows, which cost most, are drawn (if `rules` ask for them) only
    for the three choices of units and constant in which other candidates do best, and a rule that finds no
    variable for any class adds no candidate.

    Examples
    --------
    >>> from corral import RodeoClassifierCV
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(100, groups=(1, 2, 3), random_state=0)
    >>> X_test, y_test = make_shifted_groups(100, groups=(1, 2, 3), random_state=1)
    >>> classifier = RodeoClassifierCV(random_state=0).fit(X, y)
    >>> classifier.score(X_test, y_test) > 0.75
    True
    >>> print(classifier.describe())
    1: x0 narrow (-0.05652 to 0.0634; others -0.2506 to 0.1591), x1 low (-0.01653; others 0.1698)
    2: x0 high (0.1591; others -0.137)
    3: x0 low (-0.2506; others 0.07095)
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
        rules: Sequence[Literal["zscore", "shadow", "contrast"]] = ("contrast",),
        update: Literal["simultaneous", "sequential"] = "simultaneous",
        beta: float = 0.9,
        cutpoint: float = -1.0,
        min_effect: float = MIN_EFFECT,
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
        self.min_effect = min_effect
        self.priors = priors
        self.min_bandwidth = min_bandwidth
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Refuse a bad parameter before any work."""
        _check_sequence("scales", self.scales, ("range", "standard", "rank", "whiten", None))
        _check_sequence("features", self.features, ("all", "selected", "separate"))
        if "selected" in self.features:
            _check_sequence("rules", self.rules, RULES)
        if "whiten" in self.scales and "all" not in self.features:
            raise ValueError(f"scale 'whiten' needs features with 'all', got {self.features!r}.")
        if np.ndim(self.c0s) != 1 or not len(self.c0s):
            raise ValueError(f"c0s must be a sequence of numbers and not empty, got {self.c0s!r}.")
        for c0 in self.c0s:
            self._classifier(c0=c0).model_settings()

    def _learn(self, training: TrainingRows, *, expected: NDArray[Any] | None) -> Self:
        self.check_parameters()
        data = sort_rows(training, expected)
        prior = check_priors(self.priors, data.counts)
        random = check_random_state(self.random_state)
        some = data.take(_choose(data, _shares(data, SEARCH_ROWS), random))
        points = _choose(some, np.full(prior.size, max(SEARCH_POINTS // prior.size, 1)), random)
        lapse = 1.0 / (data.n + 2.0)
        trial = Trial.prepare(some, points, prior, lapse, self.min_effect, random)
        candidates = self._evaluate(trial, random)

        best = min(candidates, key=lambda candidate: candidate.objective.min())
        temperature = trial.best_temperature(best)
        # A winner that selects no variables is described by contrast, as this estimator is.
        chosen = {"rule": "contrast", **best.params}
        winner = self._classifier(**chosen, temperature=temperature, lapse=lapse)
        winner.model_ = learn_model(
            training,
            data,
            prior,
            winner.model_settings(),
            check_random_state(self.random_state),
            self._computation(),
        )
        for name in ("n_features_in_", "feature_names_in_", "row_names_in_", "row_names_column_"):
            if hasattr(self, name):
                setattr(winner, name, getattr(self, name))
        self.model_ = winner.model_
        self.best_score_, self.best_log_loss_ = trial.cross_fitted(candidates)
        self.best_params_ = best.params
        self.best_estimator_ = winner
        self.temperature_ = temperature
        self.cv_results_ = trial.table(candidates)
        if winner.features == "selected":
            advice = ", which predict best; to look for variables rather than labels, use RodeoSelector"
            warn_of_empty_selections(self.model_, advice)
        warn_of_copies(data.n_copies, len(training.X))
        return self

    @property
    def relevant_(self) -> Bools:
        """Which variables describe each class, by contrast, whatever predicts best."""
        return self.model_.contrast.relevant

    def _relevant_in(self, data: LabelledRows, random: np.random.RandomState) -> Bools:
        return learn_contrast(data, self.min_effect).relevant

    def _classifier(self, **parameters: Any) -> RodeoClassifier:
        """Make a RodeoClassifier with all parameters that candidates share."""
        return RodeoClassifier(**{name: getattr(self, name) for name in _COMMON}, **parameters)

    def _kinds(self) -> list[Kind]:
        """List ways to estimate a density with given units and c0, plain ones first: they win ties."""
        kinds: list[Kind] = []
        if "all" in self.features:
            kinds += [Kind("initial", "all"), Kind("class", "all")]
        if "separate" in self.features:
            kinds += [Kind("class", "separate")]
        if "selected" in self.features:
            kinds += [Kind("class", "selected", rule) for rule in self.rules]
        return kinds

    def _evaluate(self, trial: Trial, random: np.random.RandomState) -> list[Candidate]:
        """Judge all candidates; those with shadows, which cost most, only where others did best."""
        quick = [kind for kind in self._kinds() if kind.rule != "shadow"]
        slow = [kind for kind in self._kinds() if kind.rule == "shadow"]
        n_quick = len(self.scales) * len(self.c0s) if quick else 0
        places = [(scale, c0) for scale in self.scales for c0 in self.c0s if slow and scale != "whiten"]
        n_slow = min(_SHADOW_PLACES, len(places))
        candidates: list[Candidate] = []
        units = {scale: trial.arrange(scale) for scale in self.scales}
        with progress(n_quick + n_slow, "Search", self.verbose) as advance:
            for scale in self.scales if quick else ():
                candidates += self._judge(trial, scale, units[scale], self.c0s, quick, random, advance)
            ranked = sorted(candidates, key=lambda candidate: candidate.objective.min())
            best = [(candidate.scale, candidate.c0) for candidate in ranked]
            ordered = [place for place in dict.fromkeys([*best, *places]) if place in places]
            for scale, c0 in ordered[:n_slow]:
                candidates += self._judge(trial, scale, units[scale], [c0], slow, random, advance)
        return candidates

    def _judge(
        self,
        trial: Trial,
        scale: Any,
        units: Sequence[UnitRows],
        c0s: Sequence[float],
        kinds: Sequence[Kind],
        random: np.random.RandomState,
        advance: Callable[[int], None],
    ) -> list[Candidate]:
        """Judge candidates with the same units."""
        if scale == "whiten":
            kinds = [kind for kind in kinds if kind.features == "all"]
        computation = self._computation().quieter()
        planned = []
        for c0 in c0s:
            settings = self._classifier(scale=scale, c0=c0).model_settings()
            found = trial.plan(units, settings.rodeo, kinds, settings.cutpoint, random, computation)
            if "all" in self.features:  # where nothing is selected, it is the same as all variables
                found = [of_kind for of_kind in found if of_kind.selects]
            planned += [(float(c0), of_kind) for of_kind in found]
            advance(1)
        log_density = trial.log_densities(units, [of_kind.plans for _, of_kind in planned], computation)
        return [
            trial.candidate(scale, c0, of_kind.kind, of_candidate)
            for (c0, of_kind), of_candidate in zip(planned, log_density, strict=True)
        ]


def _shares(data: LabelledRows, max_rows: int) -> Integers:
    """How many rows each class may have so that there are about `max_rows`, and few classes are cut short."""
    sizes = np.bincount(data.codes, minlength=data.labels.size)  # rows, not their weights, take the time
    shares: Integers = np.maximum(np.ceil(sizes / sizes.sum() * max_rows), 50).astype(np.int64)
    return shares


def _choose(data: LabelledRows, max_rows: Integers, random: np.random.RandomState) -> Integers:
    """Positions of at most so many rows of each class, in order."""
    chosen = [
        members if members.size <= limit else random.choice(members, limit, replace=False)
        for members, limit in zip(data.members(), max_rows, strict=True)
    ]
    return np.sort(np.concatenate(chosen))


def _check_sequence(name: str, values: Any, choices: Sequence[Any]) -> None:
    if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
        raise ValueError(f"{name} must be a sequence and not empty, got {values!r}.")
    for value in values:
        check_choice(name, value, choices)
