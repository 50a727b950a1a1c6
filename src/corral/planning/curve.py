"""Learning curves: scores with more rows, extrapolated from scores with fewer rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from corral.array_types import Floats, Integers
from corral.estimators.corral_classifier import CorralClassifier
from corral.estimators.html import html_lines, html_table
from corral.estimators.priors import are_empirical
from corral.estimators.validation import check_number, import_pandas
from corral.parallel import Computation
from corral.planning.bound import in_rows
from corral.planning.pool_losses import Curve, learn_curve
from corral.planning.power_law import INTERVAL, Estimate, PowerLaw

if TYPE_CHECKING:
    import pandas as pd

# Multiples of the current rows that are shown.
TIMES = (2, 4)

# No number of rows beyond this multiple is printed: four sizes cannot support it.
_FARTHEST = 100


class Needed(NamedTuple):
    """Rows that a goal takes.

    Attributes
    ----------
    label : the class whose recall is meant, or None for the accuracy of all classes.
    rows : `value`, `low` and `high` of the rows of all classes together, in the current proportions; infinite
        if no number suffices.
    class_rows : (n_classes,) `rows.value` divided among the classes.
    probability : probability that some number of rows suffices.
    """

    label: Any
    rows: Estimate
    class_rows: Floats
    probability: float


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve:
    """Scores with more rows, as returned by `estimate_sample_sizes` with ``method="curve"``.

    Numbers of rows include all classes, in the current proportions. All estimates have 90 % intervals.
    They assume that new rows resemble the current ones: no new class, and no new kind of row.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels.
    sizes : ndarray of shape (n_classes,)
        Current rows of each class, duplicates counted once.
    goal : float or None
        Wanted accuracy, and recall of each class.
    measured : Curve
        Leave-one-out results with all rows, and with halves, quarters and eighths of them.
    history : DataFrame
        The same as a table.

    See Also
    --------
    SampleSizeDisplay : Draws it.

    Examples
    --------
    >>> from corral import estimate_sample_sizes
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(20, groups=(1, 2), random_state=0)
    >>> curve = estimate_sample_sizes(X, y, goal=0.8, random_state=0)
    >>> now, more = curve.accuracy(40), curve.accuracy(160)
    >>> now.value < more.value < more.high
    True
    >>> [need.label for need in curve.needed]  # first the accuracy, then the recall of each class
    [None, 1, 2]
    """

    classes: NDArray[Any]
    sizes: Integers
    goal: float | None
    measured: Curve

    @cached_property
    def _log_loss(self) -> PowerLaw:
        return self.measured.log_loss_law()

    @cached_property
    def _laws(self) -> dict[Any, PowerLaw]:
        """Power laws of the error of all rows (None), and of each class that has rows."""
        recalls = {label: self.measured.recall_law(y) for y, label in enumerate(self.classes.tolist())}
        with_rows = {label: law for label, law in recalls.items() if law is not None}
        return {None: self.measured.accuracy_law(), **with_rows}

    @classmethod
    def from_estimator(
        cls,
        estimator: CorralClassifier,
        *,
        goal: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> Self:
        """Measure the learning curve of a fitted classifier on its own training rows.

        Parameters
        ----------
        estimator : CorralClassifier
            Fitted; its weights, groups and categories count as in its fit. It must have all rows of the fit,
            which a model from a file does not have if classes were compressed.
        goal : float, default=None
            Wanted accuracy, and recall of each class, between 0 and 1.
        random_state : int, RandomState or None, default=None
            Divides the rows.

        Returns
        -------
        curve : LearningCurve
        """
        goal = None if goal is None else check_number("goal", goal, 0.0, 1.0, inclusive=False)
        if not isinstance(estimator, CorralClassifier):
            raise ValueError(f"estimator must be a CorralClassifier, got {estimator!r}.")
        check_is_fitted(estimator, "model_")
        model = estimator.model_
        rows = model.all_rows
        curve = learn_curve(
            rows,
            model.prior,
            check_random_state(random_state),
            Computation(estimator.n_jobs, estimator.verbose),
            empirical=are_empirical(estimator),
        )
        sizes = np.bincount(rows.codes, minlength=model.labels.size)
        return cls(model.labels, sizes, goal, curve)

    @property
    def n_rows(self) -> int:
        """Current number of rows."""
        return int(self.sizes.sum())

    def accuracy(self, n_rows: float) -> Estimate:
        """Estimate the accuracy with a number of rows of all classes; `math.inf` stands for the limit."""
        return self._laws[None].loss(self._times(n_rows)).complement

    def log_loss(self, n_rows: float) -> Estimate:
        """Estimate the log loss with a number of rows of all classes; `math.inf` stands for the limit."""
        return self._log_loss.loss(self._times(n_rows))

    def recall(self, label: Any, n_rows: float) -> Estimate:
        """Estimate the recall of a class with a number of rows of all classes."""
        labels = self.classes.tolist()
        if label not in labels:
            raise ValueError(f"label must be one of {labels}, got {label!r}.")
        if label not in self._laws:
            raise ValueError(f"class {label!r} has no rows to learn from.")
        return self._laws[label].loss(self._times(n_rows)).complement

    def _times(self, n_rows: float) -> float:
        return check_number("n_rows", n_rows, 1.0, math.inf, inclusive=True) / self.measured.n_rows

    @property
    def needed(self) -> list[Needed]:
        """Rows that the goal takes (`Needed`): for the accuracy, then for the recall of each class."""
        if self.goal is None:
            return []
        needed = []
        for label, law in self._laws.items():
            times, probability = law.times_needed(1.0 - self.goal)
            rows = Estimate(*(self.measured.n_rows * each for each in times))
            class_rows = np.zeros(self.sizes.size)  # a class without rows stays without
            class_rows[self.sizes > 0] = self.sizes[self.sizes > 0] / self.n_rows * rows.value
            needed.append(Needed(label, rows, class_rows, probability))
        return needed

    @property
    def history(self) -> pd.DataFrame:
        """One line per size that was measured (needs pandas).

        Columns rows, accuracy and log_loss; and recall with one column per class, NaN without rows.
        """
        pd = import_pandas()
        columns: dict[tuple[str, Any], Any] = {
            ("rows", ""): self.measured.rows,
            ("accuracy", ""): self.measured.accuracies,
            ("log_loss", ""): self.measured.mean_log_losses,
        }
        for label, recalls in zip(self.classes.tolist(), self.measured.recalls.T, strict=True):
            columns["recall", label] = recalls
        return pd.DataFrame(columns)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Tabulate the scores with more rows.

        Returns
        -------
        heads : list of str
        lines : list of list of str
            Accuracy, log loss and recalls by the curve, with the current rows and with more, with 90 %
            intervals. Measured scores are in `history`.
        """
        sizes = [times * self.n_rows for times in (1, *TIMES, math.inf)]
        scores: dict[str, Callable[[float], Estimate]] = {
            "accuracy": self.accuracy,
            "log loss": self.log_loss,
        }
        for label in self.classes.tolist():
            if label in self._laws:
                scores[f"recall of {label}"] = partial(self.recall, label)
        heads = ["", *(f"{in_rows(n)} rows" for n in sizes)]
        return heads, [[name, *(str(estimate(n)) for n in sizes)] for name, estimate in scores.items()]

    def __repr__(self) -> str:
        heads, lines = self.table()
        n_measured = self.measured.n_rows
        rows = f" of a subsample of {in_rows(n_measured)}" if n_measured < self.n_rows else ""
        text = [
            f"LearningCurve: accuracy {self.accuracy(self.n_rows)} with the {in_rows(self.n_rows)} rows "
            f"there are, estimated by leave-one-out{rows}; more rows are extrapolated, with {INTERVAL:.0%} "
            "intervals"
        ]
        for name, *estimates in lines:
            by_size = zip(estimates, heads[1:], strict=True)
            text.append(f"  {name}: " + ", ".join(f"{each} with {rows}" for each, rows in by_size))
        return "\n".join([*text, *(f"  {sentence}" for sentence in self.needs_in_words())])

    def _repr_html_(self) -> str:
        """Show the table and the rows that the goal needs in notebooks."""
        method = f"Estimated by leave-one-out, and extrapolated to more rows, with {INTERVAL:.0%} intervals."
        return html_table(*self.table()) + html_lines([method, *self.needs_in_words()])

    def needs_in_words(self) -> list[str]:
        """Say how many rows the goal takes.

        Returns
        -------
        sentences : list of str
            One for the accuracy and one for the recall of each class; none without a goal.
        """
        return [
            f"accuracy {self.goal:g}: {self._need_in_words(need)}"
            if need.label is None
            else f"recall {self.goal:g} of class {need.label!r}: {self._need_in_words(need)}"
            for need in self.needed
        ]

    def _need_in_words(self, need: Needed) -> str:
        if need.rows.value <= self.n_rows:
            return "the current rows are probably enough"
        if math.isinf(need.rows.value):
            chance = f"the chance that some number does is {need.probability:.0%}"
            return f"probably no number of rows will do; {chance}"
        if need.rows.value > _FARTHEST * self.n_rows:
            return f"more than {in_rows(_FARTHEST * self.n_rows)} rows, if any number will do"
        parts = ", ".join(
            f"{name!r} {in_rows(n)}" for name, n in zip(self.classes.tolist(), need.class_rows, strict=True)
        )
        low, high = (in_rows(max(end, self.n_rows)) for end in (need.rows.low, need.rows.high))
        return (
            f"about {in_rows(need.rows.value)} rows in all ({parts}), "
            f"{in_rows(need.rows.value - self.n_rows)} more than now, {INTERVAL:.0%} interval {low} to {high}"
        )
