"""Learning curves: what more rows would bring, extrapolated from fewer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from corral.array_types import Floats, Integers
from corral.estimators.corral_classifier import CorralClassifier
from corral.estimators.html import html_lines, html_table
from corral.estimators.validation import check_number, is_empirical
from corral.parallel import Computation
from corral.planning.bound import in_rows
from corral.planning.pool_losses import Curve, learn_curve
from corral.planning.power_law import LEVEL, Estimate, PowerLaw

if TYPE_CHECKING:
    import pandas as pd

# What is shown: so many times the rows there are.
TIMES = (2, 4)

# Beyond so many times the rows there are no number is told: four sizes do not know it.
FARTHEST = 100


class Needed(NamedTuple):
    """Rows that a goal takes.

    Attributes
    ----------
    label : the class whose recall is meant, or None for the accuracy of all classes.
    rows : `value`, `low` and `high` of the rows of all classes together, in today's proportions; infinite
        where no number will do.
    class_rows : (n_classes,) `rows.value` shared out among the classes.
    probability : that some number of rows will do.
    """

    label: Any
    rows: Estimate
    class_rows: Floats
    probability: float

    def outcome(self, n_rows: int) -> Literal["enough", "never", "far", "more"]:
        """Tell what the goal takes: the rows there are, no number of them, too many to tell, or some more."""
        if self.rows.value <= n_rows:
            return "enough"
        if math.isinf(self.rows.value):
            return "never"
        return "far" if self.rows.value > FARTHEST * n_rows else "more"

    @property
    def chance_in_words(self) -> str:
        """The probability that some number of rows will do."""
        return f"the chance that some number does is {self.probability:.0%}"


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve:
    """What more rows would bring, as returned by `estimate_sample_sizes` with ``method="curve"``.

    Rows of all classes are meant, in the proportions that they have now. All estimates come with 90 %
    intervals, which know neither of classes nor of kinds of rows that are still missing.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels.
    sizes : ndarray of shape (n_classes,)
        Rows of each class that there are, copies counted once.
    goal : float or None
        Wanted accuracy, and recall of each class.
    measured : Curve
        What was measured by leave-one-out with all rows, halves, quarters and eighths of them.
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
    >>> curve = estimate_sample_sizes(X, y, method="curve", goal=0.8, random_state=0)
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
    def _accuracy(self) -> PowerLaw:
        return self.measured.accuracy_law()

    @cached_property
    def _log_loss(self) -> PowerLaw:
        return self.measured.log_loss_law()

    @cached_property
    def _recalls(self) -> list[PowerLaw | None]:
        return [self.measured.recall_law(y) for y in range(self.classes.size)]

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
            Fitted; its weights, groups and columns of levels count as in its fit. It must have all rows of
            the fit, of which a file does not keep those of classes that are thinned.
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
            empirical=is_empirical(estimator.priors),
        )
        sizes = np.bincount(rows.codes, minlength=model.labels.size)
        return cls(model.labels, sizes, goal, curve)

    @property
    def n_rows(self) -> int:
        """Number of rows that there are."""
        return int(self.sizes.sum())

    def accuracy(self, n_rows: float) -> Estimate:
        """Estimate the accuracy with so many rows of all classes; `math.inf` asks for the limit."""
        return _turned(self._accuracy.loss(self._times(n_rows)))

    def log_loss(self, n_rows: float) -> Estimate:
        """Estimate the log loss with so many rows of all classes; `math.inf` asks for the limit."""
        return self._log_loss.loss(self._times(n_rows))

    def recall(self, label: Any, n_rows: float) -> Estimate:
        """Estimate the share of a class that gets its label, with so many rows of all classes."""
        labels = self.classes.tolist()
        if label not in labels:
            raise ValueError(f"label must be one of {labels}, got {label!r}.")
        law = self._recalls[labels.index(label)]
        if law is None:
            raise ValueError(f"class {label!r} has no rows to learn from.")
        return _turned(law.loss(self._times(n_rows)))

    def _times(self, n_rows: float) -> float:
        n_rows = check_number("n_rows", n_rows, 0.0, math.inf, inclusive=True)
        if n_rows < 1.0:
            raise ValueError(f"n_rows must be at least 1, got {n_rows:g}.")
        return n_rows / self.measured.n_rows

    @property
    def needed(self) -> list[Needed]:
        """Rows that the goal takes (`Needed`): for the accuracy, then for the recall of each class."""
        if self.goal is None:
            return []
        laws = [(None, self._accuracy), *zip(self.classes.tolist(), self._recalls, strict=True)]
        needed = []
        for label, law in laws:
            if law is not None:
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
        import pandas as pd

        whole: dict[tuple[str, Any], Any] = {
            ("rows", ""): self.measured.rows,
            ("accuracy", ""): self.measured.accuracies,
            ("log_loss", ""): self.measured.mean_log_losses,
        }
        for label, recalls in zip(self.classes.tolist(), self.measured.recalls.T, strict=True):
            whole["recall", label] = recalls
        return pd.DataFrame(whole)

    def __repr__(self) -> str:
        begins = "where the curve begins" if self.measured.n_rows == self.n_rows else "not measured"
        lines = [
            f"LearningCurve: accuracy {self.measured.accuracies[0]:.3f} by leave-one-out with "
            f"{in_rows(self.measured.n_rows)} rows",
            *(
                f"  with {in_rows(times * self.n_rows)} rows ({known}): accuracy "
                f"{number_in_words(self.accuracy(times * self.n_rows))}, "
                f"log loss {number_in_words(self.log_loss(times * self.n_rows))}"
                for times, known in (
                    (1, begins),
                    *((more, "not measured") for more in (*TIMES, math.inf)),
                )
            ),
            *self._describe_classes(),
            *(f"  {sentence}" for sentence in self.needs_in_words()),
        ]
        return "\n".join(lines)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Write what more rows would bring as a table.

        Returns
        -------
        heads : list of str
        lines : list of list of str
            Accuracy, log loss and recalls, measured by leave-one-out with the rows there are, else
            extrapolated, with 90 % intervals.
        """
        sizes = [times * self.n_rows for times in (*TIMES, math.inf)]
        heads = ["", f"{in_rows(self.measured.n_rows)} rows", *(f"{in_rows(n)} rows" for n in sizes)]
        scores: list[tuple[str, Floats, Callable[[float], Estimate]]] = [
            ("accuracy", self.measured.accuracies, self.accuracy),
            ("log loss", self.measured.mean_log_losses, self.log_loss),
        ]
        for label, law, recalls in zip(
            self.classes.tolist(), self._recalls, self.measured.recalls.T, strict=True
        ):
            if law is not None:
                scores.append((f"recall of {label}", recalls, partial(self.recall, label)))
        lines = [
            [name, f"{measured[0]:.3f}", *(number_in_words(estimate(n)) for n in sizes)]
            for name, measured, estimate in scores
        ]
        return heads, lines

    def _repr_html_(self) -> str:
        """Show in notebooks what more rows would bring, as a table, and what the goal takes."""
        said = "Measured by leave-one-out with the rows there are, else extrapolated, with 90 % intervals."
        return html_table(*self.table()) + html_lines([said, *self.needs_in_words()])

    def _describe_classes(self) -> Iterator[str]:
        for label, size, law in zip(self.classes.tolist(), self.sizes, self._recalls, strict=True):
            if law is None:
                yield f"  class {label!r}: no rows"
                continue
            recalls = [
                f"{number_in_words(self.recall(label, n))} with {in_rows(n)}"
                for n in (times * self.n_rows for times in (*TIMES, math.inf))
            ]
            yield f"  class {label!r}, {in_rows(size)} rows: recall {', '.join(recalls)} rows in all"

    def needs_in_words(self) -> list[str]:
        """Say how many rows the goal takes.

        Returns
        -------
        sentences : list of str
            One for the accuracy and one for the recall of each class; none without a goal.
        """
        return [f"{self._goal_in_words(need)}: {self._need_in_words(need)}" for need in self.needed]

    def _goal_in_words(self, need: Needed) -> str:
        return (
            f"accuracy {self.goal:g}"
            if need.label is None
            else f"recall {self.goal:g} of class {need.label!r}"
        )

    def _need_in_words(self, need: Needed) -> str:
        match need.outcome(self.n_rows):
            case "enough":
                return "the rows there are probably suffice"
            case "never":
                return f"probably no number of rows will do; {need.chance_in_words}"
            case "far":
                return f"more than {in_rows(FARTHEST * self.n_rows)} rows, if any number will do"
        parts = ", ".join(
            f"{name!r} {in_rows(n)}" for name, n in zip(self.classes.tolist(), need.class_rows, strict=True)
        )
        low, high = (in_rows(max(end, self.n_rows)) for end in (need.rows.low, need.rows.high))
        more = in_rows(need.rows.value - self.n_rows)
        return (
            f"about {in_rows(need.rows.value)} rows in all ({parts}), {more} more than now, {LEVEL:.0%} "
            f"interval {low} to {high}"
        )


def _turned(loss: Estimate) -> Estimate:
    """What is right, from what is wrong."""
    return Estimate(1.0 - loss.value, 1.0 - loss.high, 1.0 - loss.low)


def number_in_words(found: Estimate) -> str:
    """A number and its interval."""
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
