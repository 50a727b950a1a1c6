r"""Algorithm 4 of the paper: add training rows until a bound on the excess error reaches the tolerance.

The excess error is the error rate of the classifier minus that of the Bayes rule. Theorem 1 bounds the excess
error by the mean L1 error of the class densities. The L1 error of a kernel density estimate from :math:`n`
rows and :math:`r` relevant variables, with bandwidths :math:`h_j`, is bounded by the sum of a bias and a
noise term:

.. math::

    E \int |\hat f - f| \lesssim \frac \alpha 2 \int \Big|\sum_{j=1}^r h_j^2 f^{(jj)}\Big|
        + \beta \Big(n \prod_j h_j\Big)^{-1/2} \int \sqrt f
        = B n^{-2/(4+r)} \quad\text{with } h_j = k_j n^{-1/(4+r)}.

For the Gaussian kernel :math:`\alpha = \int u_j^2 K = 1` and
:math:`\beta = (\int K^2)^{1/2} = (4 \pi)^{-r/4}`, and with :math:`u_{ij} = (x_j - x_{ij}) / h_j`,
:math:`q_i = \sum_j u_{ij}^2`, :math:`S = \sum_i e^{-q_i / 2}` and :math:`w_i = e^{-q_i / 2} / S`

.. math::

    \hat f(x) = \frac{S}{n (2\pi)^{r/2} \prod_j h_j}, \qquad
    h_j^2 \frac{\hat f^{(jj)}(x)}{\hat f(x)} = \sum_i w_i (u_{ij}^2 - 1).

Each integral is estimated by a mean over samples from :math:`f`. At a sample, the integrands divided by
:math:`\hat f(x)` are

.. math::

    \frac 1 2 \Big|\sum_i w_i q_i - r\Big| \qquad\text{and}\qquad 2^{-r/4} S^{-1/2}.

Neither expression depends on the scales of the variables.

One step of the algorithm fits the classifier and predicts the test samples (E-step), then computes
:math:`A_y = n_y^{(2 + r_y) / (4 + r_y)}`, :math:`B_y` and the bound :math:`\epsilon = \sum_y A_y B_y / N`,
with :math:`N = \sum_y n_y` (R-step). If :math:`\epsilon` exceeds the tolerance, rows are added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import logsumexp, stdtrit
from sklearn.base import clone
from sklearn.utils import check_random_state

from corral.array_types import Floats, Integers
from corral.estimators.rodeo_classifier import RodeoClassifier
from corral.estimators.validation import check_choice, check_integer, check_number, import_pandas
from corral.planning.power_law import INTERVAL
from corral.planning.supply import Draw, Supply
from corral.sentences.numbers import counted, number_text

if TYPE_CHECKING:
    import pandas as pd

Allocation = Literal["proportional", "optimal"]
Empty = Literal["none", "all"]

# Larger multiples of the current rows are printed only as "more than".
_FARTHEST = 10_000

# Fewest steps for an extrapolation: a line through two points has no residuals to estimate an interval from.
_FEWEST_STEPS = 3


class Step(NamedTuple):
    """Result of one step of algorithm 4.

    Attributes
    ----------
    sizes : (n_classes,) numbers of training rows.
    r : (n_classes,) numbers of relevant variables.
    A, B : (n_classes,) values of equations A2 and B2 of the paper.
    epsilon : bound on the excess error, the sum of A * B divided by the sum of the sizes.
    accuracy : share of the test samples that are predicted correctly.
    """

    sizes: Integers
    r: Integers
    A: Floats
    B: Floats
    epsilon: float
    accuracy: float


@dataclass(frozen=True, eq=False)
class Extrapolation:
    """Estimated training rows at which epsilon would reach the tolerance, extrapolated from the steps.

    Attributes
    ----------
    total : estimated number of rows of all classes; infinite if epsilon does not fall from step to step.
    low, high : ends of the 90% interval of the total. `high` is infinite if epsilon does not clearly fall;
        `low` is at least the number of rows in the last step.
    sizes, sizes_low, sizes_high : (n_classes,) `total`, `low` and `high` divided among the classes.
    """

    total: float
    low: float
    high: float
    sizes: Floats
    sizes_low: Floats
    sizes_high: Floats


@dataclass(frozen=True, eq=False, repr=False)
class SampleSizes:
    """Training rows that each class needs, as returned by `estimate_sample_sizes` with ``method="bound"``.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels.
    sizes : ndarray of shape (n_classes,)
        Training rows of each class in the last step.
    epsilon : float
        Bound on the excess error in the last step: the error rate of the classifier minus that of the Bayes
        rule.
    accuracy : float
        Share of the test samples that are predicted correctly in the last step.
    tolerance : float
        Largest acceptable epsilon.
    converged : bool
        Whether epsilon is at most the tolerance, and every class has a relevant variable.
    reason : str
        Why the run ended.
    caveats : list of str
        Reasons why the bound of the last step is not informative; empty if there are none.
    steps : list of Step
        Result of each step.
    history : DataFrame
        Table of the steps (needs pandas), with the columns N (rows of all classes), epsilon and accuracy, and
        with size, r, A and B, which have one column per class: ``history["size"]`` is a table of its own.
    extrapolation : Extrapolation or None
        Sizes at which epsilon would reach the tolerance. They are extrapolated from the steps in which every
        class has the same number of relevant variables as in the last step. None if there are fewer than 3
        such steps, if the run converged, or if a class has no relevant variable.

    See Also
    --------
    corral.estimate_sample_sizes : Function that returns this object.
    corral.SampleSizeDisplay : Plot of this object.
    """

    classes: NDArray[Any]
    tolerance: float
    converged: bool
    reason: str
    steps: list[Step]
    extrapolation: Extrapolation | None

    @property
    def sizes(self) -> Integers:
        """Training rows of each class in the last step."""
        return self.steps[-1].sizes

    @property
    def epsilon(self) -> float:
        """Bound on the excess error in the last step."""
        return self.steps[-1].epsilon

    @property
    def accuracy(self) -> float:
        """Share of the test samples that are predicted correctly in the last step."""
        return self.steps[-1].accuracy

    @property
    def caveats(self) -> list[str]:
        """Reasons why the bound of the last step is not informative; empty if there are none."""
        caveats = []
        empty = self.classes[self.steps[-1].r == 0].tolist()
        if empty:
            named = ", ".join(repr(label) for label in empty)
            caveat = f"no variable is relevant for {named}, so epsilon does not bound the density errors"
            if self.epsilon <= self.tolerance:
                caveat += ", and the run does not converge, although epsilon is at most the tolerance"
            caveats.append(caveat)
        if self.epsilon >= 1.0:
            caveats.append("the bound is at least 1, which no excess error exceeds")
        return caveats

    @property
    def history(self) -> pd.DataFrame:
        """Table with one line per step (needs pandas); the class docstring lists the columns."""
        pd = import_pandas()
        columns: dict[tuple[str, Any], Any] = {
            ("N", ""): [int(step.sizes.sum()) for step in self.steps],
            ("epsilon", ""): [step.epsilon for step in self.steps],
            ("accuracy", ""): [step.accuracy for step in self.steps],
        }
        for name, field in (("size", "sizes"), ("r", "r"), ("A", "A"), ("B", "B")):
            for a, label in enumerate(self.classes.tolist()):
                columns[name, label] = [getattr(step, field)[a] for step in self.steps]
        return pd.DataFrame(columns).rename_axis(index="step")

    def __repr__(self) -> str:
        sign = "<=" if self.epsilon <= self.tolerance else ">"
        lines = [
            f"SampleSizes: {'converged' if self.converged else 'not converged'}, {self.reason}",
            f"  epsilon {self.epsilon:.4g} {sign} {self.tolerance:g} with {self.sizes.sum()} rows "
            f"after {counted(len(self.steps), 'step')}; accuracy {self.accuracy:.3f}",
        ]
        lines += [
            f"  class {label!r}: {size} rows, {r or 'no'} relevant variable" + "s" * (r != 1)
            for label, size, r in zip(
                self.classes.tolist(), self.sizes, self.steps[-1].r.tolist(), strict=True
            )
        ]
        lines += [f"  the bound is not informative: {caveat}" for caveat in self.caveats]
        if not self.converged and self.steps[-1].r.all():
            lines += self._describe_extrapolation()
        return "\n".join(lines)

    def _describe_extrapolation(self) -> list[str]:
        guess = self.extrapolation
        if guess is None:
            return [
                "  extrapolation: none, because fewer than three steps have as many relevant variables of "
                "each class as the last step"
            ]
        if math.isinf(guess.total):
            return ["  extrapolation: none, because epsilon does not fall from step to step"]
        if guess.total > _FARTHEST * self.sizes.sum():
            return [f"  extrapolation (not measured): more than {_FARTHEST} times the rows"]
        by_class = zip(self.classes.tolist(), guess.sizes, guess.sizes_low, guess.sizes_high, strict=True)
        return [
            f"  extrapolation (not measured): epsilon {self.tolerance:g} would need about "
            f"{in_rows(guess.total)} rows, {INTERVAL:.0%} interval "
            f"{in_rows(guess.low)} to {in_rows(guess.high)}",
            *(
                f"    class {label!r}: {in_rows(size)} ({in_rows(low)} to {in_rows(high)}), "
                f"{in_rows(max(size - n, 0.0))} more than now"
                for (label, size, low, high), n in zip(by_class, self.sizes, strict=True)
            ),
        ]


def in_rows(n: float) -> str:
    """Format an estimated number of rows, rounded to two significant digits from a million on."""
    return "unlimited" if math.isinf(n) else f"{n:.0f}" if n < 1e6 else number_text(float(f"{n:.1e}"))


def run_algorithm(
    X: ArrayLike | Draw,
    y: ArrayLike,
    *,
    tolerance: float,
    initial_size: int,
    test_size: int,
    step: int,
    estimator: RodeoClassifier | None,
    random_state: int | np.random.RandomState | None,
    allocation: Allocation = "proportional",
    empty: Empty = "none",
    max_steps: int = 100,
) -> SampleSizes:
    """Run algorithm 4 with the parameters of `estimate_sample_sizes`."""
    tolerance = check_number("tolerance", tolerance, 0.0, math.inf, inclusive=False)
    initial_size = check_integer("initial_size", initial_size)
    test_size = check_integer("test_size", test_size)
    step = check_integer("step", step)
    max_steps = check_integer("max_steps", max_steps)
    check_choice("allocation", allocation, ("proportional", "optimal"))
    check_choice("empty", empty, ("none", "all"))
    estimator = RodeoClassifier() if estimator is None else estimator
    if not isinstance(estimator, RodeoClassifier):
        raise ValueError(f"estimator must be a RodeoClassifier, got {estimator!r}.")
    random = check_random_state(random_state)
    supply = Supply(X, y, test_size, initial_size, random)
    classes = supply.classes
    if step < classes.size:
        raise ValueError(f"step must be at least the number of classes, {classes.size}, got {step}.")
    divide = partial(arrange, low=initial_size, allocation=allocation)

    steps: list[Step] = []
    sizes, converged = np.full(classes.size, initial_size), False
    try:
        while True:
            steps.append(_measure(estimator, supply, sizes, random, empty))
            _, r, _, B, epsilon, _ = steps[-1]
            converged = epsilon <= tolerance and bool(r.all())
            if converged:
                reason = "the tolerance is reached"
                break
            if len(steps) == max_steps:
                reason = f"the limit of {max_steps} steps is reached"
                break
            total = int(sizes.sum()) + step
            short = classes[(sizes == supply.most) & (divide(B, r, total, total) > sizes)].tolist()
            if short:
                pools, are = ("pools of classes", "are") if len(short) > 1 else ("pool of class", "is")
                reason = f"the {pools} {' and '.join(map(repr, short))} {are} used up"
                break
            sizes = supply.provide(partial(divide, B, r), total)
    except KeyboardInterrupt:
        if not steps:
            raise
        reason = "the run was interrupted"
    extrapolation = None
    if steps[-1].r.all() and not converged:
        extrapolation = extrapolate(steps, tolerance, initial_size, allocation)
    return SampleSizes(classes, tolerance, converged, reason, steps, extrapolation)


def _measure(
    estimator: RodeoClassifier,
    supply: Supply,
    sizes: Integers,
    random: np.random.RandomState,
    empty: Empty,
) -> Step:
    """Fit the classifier and predict the test samples (E-step), then compute A, B and epsilon (R-step)."""
    X, y = supply.training(sizes)
    fitted = clone(estimator).set_params(random_state=random.randint(2**31 - 1)).fit(X, y)
    label = fitted.predict(supply.X_test)
    h = fitted.local_bandwidths(supply.X_test)
    rows, x = fitted.model_.scale.transform(X), fitted.model_.scale.transform(supply.X_test)
    bounds = np.empty(sizes.size)
    relevant = fitted.relevant_
    if empty == "all":
        relevant = relevant | ~relevant.any(axis=1, keepdims=True)
    for a, used in enumerate(relevant):
        samples = label == supply.classes[a]
        if not samples.any():
            samples = supply.y_test == supply.classes[a]
        class_rows = rows[y == supply.classes[a]][:, used]
        bounds[a] = l1_bound(class_rows, x[samples][:, used], h[samples, a][:, used])
    r = relevant.sum(axis=1)
    A = sizes ** ((2.0 + r) / (4.0 + r))
    B = bounds * sizes ** (2.0 / (4.0 + r))
    return Step(sizes, r, A, B, float(A @ B / sizes.sum()), float(np.mean(label == supply.y_test)))


def l1_bound(rows: Floats, x: Floats, h: Floats) -> float:
    """Bound the L1 error of the kernel density estimate of a class: B n^(-2/(4+r)).

    `rows` (n, r) are the training rows of the class. The integrals are means over samples `x` (n_samples, r),
    with bandwidths `h` (n_samples, r). If r is 0, the bias is 0 and the noise is n^(-1/2).
    """
    r = rows.shape[1]
    bias, noise = np.empty(len(x)), np.empty(len(x))
    for i in range(len(x)):
        q = (((x[i] - rows) / h[i]) ** 2).sum(axis=1)
        log_S = logsumexp(-0.5 * q)
        bias[i] = 0.5 * abs(np.exp(-0.5 * q - log_S) @ q - r)
        # The limit keeps epsilon finite if a sample is so far from all rows that S underflows.
        noise[i] = math.exp(min(-0.5 * log_S, 300.0)) * 2.0 ** (-r / 4.0)
    return float(bias.mean() + noise.mean())


def arrange(
    B: Floats, r: Integers, total: int, high: ArrayLike, *, low: int, allocation: Allocation
) -> Integers:
    """Divide `total` rows among the classes, with at least `low` and at most `high` rows of each class."""
    most: Floats = np.broadcast_to(np.asarray(high, dtype=np.float64), B.shape)
    part = shares(B, r, total, most, low=low, allocation=allocation)
    sizes = np.clip(np.floor(part), low, most).astype(np.int64)
    # The rows that remain after rounding down are added to the classes with the largest fractions.
    fraction = np.where(sizes < most, part - sizes, -np.inf)
    sizes[np.argsort(-fraction, kind="stable")[: total - sizes.sum()]] += 1
    return sizes


def shares(B: Floats, r: Integers, total: float, high: Floats, *, low: int, allocation: Allocation) -> Floats:
    """Compute the rows (n_classes,) of each class before rounding.

    "proportional" makes A proportional to B: n_y = (t B_y)^((4 + r_y) / (2 + r_y)). "optimal" minimizes the
    sum of B_y n_y^(-2 / (4 + r_y)): n_y = (t B_y / (4 + r_y))^((4 + r_y) / (6 + r_y)). Each n_y is limited to
    the range from `low` to `high`; t is the same for all classes and makes the sum of the n_y equal to
    `total`.
    """
    if allocation == "proportional":
        power, log_b = (4.0 + r) / (2.0 + r), np.log(B)
    else:
        power, log_b = (4.0 + r) / (6.0 + r), np.log(B) - np.log(4.0 + r)
    log_low, log_high = math.log(low), np.log(high)

    def sizes(log_t: float) -> Floats:
        log_n: Floats = np.clip(power * (log_t + log_b), log_low, log_high)
        return np.exp(log_n)

    least, most = (log_low / power - log_b).min(), (log_high / power - log_b).max()
    if sizes(least).sum() >= total:  # every class has its lowest size, up to rounding errors
        return sizes(least)
    if sizes(most).sum() <= total:
        return sizes(most)
    return sizes(brentq(lambda log_t: sizes(log_t).sum() - total, least, most, xtol=1e-13))


def extrapolate(
    steps: list[Step], tolerance: float, low: int, allocation: Allocation
) -> Extrapolation | None:
    """Extrapolate the line of log epsilon against log N to the tolerance; None if there are too few steps.

    A step is used if every class has the same number of relevant variables as in the last step, because
    epsilon jumps when such a number changes. Log epsilon is not exactly linear, so the interval is the union
    of two: from all used steps and, if these are at least six, from their later half.
    """
    steps = [step for step in steps if np.array_equal(step.r, steps[-1].r)]
    if len(steps) < _FEWEST_STEPS:
        return None
    log_N = np.log([step.sizes.sum() for step in steps])
    height = np.log([step.epsilon for step in steps]) - math.log(tolerance)
    later = slice(len(steps) // 2, None) if len(steps) >= 2 * _FEWEST_STEPS else slice(None)
    log_total, *ends = _crossing(log_N, height)
    _, *ends_later = _crossing(log_N[later], height[later])
    totals = [
        # exp overflows above 709.
        max(math.exp(log_n), float(steps[-1].sizes.sum())) if log_n < 700.0 else math.inf
        for log_n in (log_total, min(ends[0], ends_later[0]), max(ends[1], ends_later[1]))
    ]
    B, r = steps[-1].B, steps[-1].r
    sizes = [
        np.full(B.shape, np.inf)
        if math.isinf(total)
        else shares(B, r, total, np.full(B.shape, total), low=low, allocation=allocation)
        for total in totals
    ]
    return Extrapolation(totals[0], totals[1], totals[2], sizes[0], sizes[1], sizes[2])


def _crossing(x: Floats, z: Floats) -> tuple[float, float, float]:
    """Return the zero of the regression line of z on x, and the interval in which its prediction band has 0.

    The slope is taken as positive for a falling line. The ends of the interval, u relative to the mean of x,
    solve (mean z - slope u)^2 = band (1 + 1 / n + u^2 / sum (x - mean x)^2). If the line does not fall, the
    zero and the upper end are infinite. If the slope is small relative to its error, the upper end is
    infinite.
    """
    n = len(x)
    center, x = float(x.mean()), x - x.mean()
    spread, mean = float(x @ x), float(z.mean())
    slope = -float(x @ z) / spread
    if slope <= 0.0:
        return math.inf, center, math.inf
    residual = z - mean + slope * x
    band = float(stdtrit(n - 2, 0.5 + 0.5 * INTERVAL)) ** 2 * float(residual @ residual) / (n - 2)
    square, constant = slope**2 - band / spread, mean**2 - band * (1.0 + 1.0 / n)
    root = math.sqrt(max((mean * slope) ** 2 - square * constant, 0.0))
    low = constant / (mean * slope + root) if constant > 0.0 else -math.inf
    high = (mean * slope + root) / square if square > 0.0 else math.inf
    return center + mean / slope, center + low, center + high
