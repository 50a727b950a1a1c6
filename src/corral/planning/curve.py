"""Learning curves: accuracy, log loss and recalls with more training rows, extrapolated from fewer rows."""

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

# Multiples of the current number of rows in the printed table.
TIMES = (2, 4)

# Larger multiples of the current rows are printed only as "more than": four measured sizes cannot support
# them.
_FARTHEST = 100


class Needed(NamedTuple):
    """Estimated number of rows that a goal needs.

    Attributes
    ----------
    label : class whose recall should reach the goal, or None if the accuracy should reach the goal.
    rows : estimated total number of rows, if the proportions of the classes stay the same; infinite if no
        number of rows is enough.
    class_rows : (n_classes,) `rows.value` divided among the classes.
    probability : probability that some number of rows is enough.
    """

    label: Any
    rows: Estimate
    class_rows: Floats
    probability: float


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve:
    """Estimated scores with more training rows, as returned by `estimate_sample_sizes`.

    A number of rows is the total of all classes, in their current proportions. All estimates have 90%
    intervals. The estimates assume that more rows come from the same distribution as the current rows.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels.
    sizes : ndarray of shape (n_classes,)
        Current rows of each class, duplicates counted once.
    goal : float or None
        Wanted accuracy, and wanted recall of each class.
    measured : Curve
        Leave-one-out predictions from all rows, and from halves, quarters and eighths of the rows.
    history : DataFrame
        Table of the measured scores (needs pandas), with one line per measured size and the columns rows,
        accuracy and log_loss, and with recall, which has one column per class.
    needed : list of Needed
        Estimated numbers of rows that the goal needs.

    See Also
    --------
    SampleSizeDisplay : Plot of this object.

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
        """Power laws of the error rates of all rows (key None) and of each class with rows (key label)."""
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
        """Measure the learning curve of a fitted classifier with the training rows of the classifier.

        Parameters
        ----------
        estimator : CorralClassifier
            Fitted classifier, whose training rows are used with their weights, groups and categories. A
            classifier that was loaded from a file is not accepted if a class is compressed, because the file
            lacks some rows.
        goal : float, default=None
            Wanted accuracy, and wanted recall of each class, between 0 and 1.
        random_state : int, RandomState or None, default=None
            Seed of the random divisions of the rows.

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
        """Estimate the accuracy with more or fewer rows.

        Parameters
        ----------
        n_rows : float
            Total number of rows; `math.inf` for the limit.

        Returns
        -------
        accuracy : Estimate
        """
        return self._laws[None].loss(self._times(n_rows)).complement

    def log_loss(self, n_rows: float) -> Estimate:
        """Estimate the log loss with more or fewer rows.

        Parameters
        ----------
        n_rows : float
            Total number of rows; `math.inf` for the limit.

        Returns
        -------
        log_loss : Estimate
        """
        return self._log_loss.loss(self._times(n_rows))

    def recall(self, label: Any, n_rows: float) -> Estimate:
        """Estimate the recall of a class with more or fewer rows.

        Parameters
        ----------
        label : object
            Label of the class.
        n_rows : float
            Total number of rows of all classes; `math.inf` for the limit.

        Returns
        -------
        recall : Estimate
        """
        labels = self.classes.tolist()
        if label not in labels:
            raise ValueError(f"label must be one of {labels}, got {label!r}.")
        if label not in self._laws:
            raise ValueError(f"class {label!r} has no training rows.")
        return self._laws[label].loss(self._times(n_rows)).complement

    def _times(self, n_rows: float) -> float:
        return check_number("n_rows", n_rows, 1.0, math.inf, inclusive=True) / self.measured.n_rows

    @property
    def needed(self) -> list[Needed]:
        """Rows that the goal needs: first for the accuracy, then for the recall of each class."""
        if self.goal is None:
            return []
        needed = []
        for label, law in self._laws.items():
            times, probability = law.times_needed(1.0 - self.goal)
            rows = Estimate(*(self.measured.n_rows * each for each in times))
            class_rows = np.zeros(self.sizes.size)  # a class without rows needs none
            class_rows[self.sizes > 0] = self.sizes[self.sizes > 0] / self.n_rows * rows.value
            needed.append(Needed(label, rows, class_rows, probability))
        return needed

    @property
    def history(self) -> pd.DataFrame:
        """Table of the measured scores (needs pandas); the recall of a class without rows is NaN."""
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
        """Tabulate the estimated scores, with 90% intervals, for the current and for larger numbers of rows.

        Returns
        -------
        heads : list of str
            Heads of the columns: an empty string, then numbers of rows.
        lines : list of list of str
            One line for the accuracy, the log loss and the recall of each class: name, then one estimate for
            each number of rows.
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
            f"LearningCurve: accuracy {self.accuracy(self.n_rows)} with the current {in_rows(self.n_rows)} "
            f"rows, estimated by leave-one-out{rows}; scores with more rows are extrapolated; "
            f"{INTERVAL:.0%} intervals"
        ]
        for name, *estimates in lines:
            by_size = zip(estimates, heads[1:], strict=True)
            text.append(f"  {name}: " + ", ".join(f"{each} with {rows}" for each, rows in by_size))
        return "\n".join([*text, *(f"  {sentence}" for sentence in self.needs_in_words())])

    def _repr_html_(self) -> str:
        """Show the table and the rows that the goal needs in notebooks."""
        method = f"Estimated by leave-one-out, and extrapolated to more rows; {INTERVAL:.0%} intervals."
        return html_table(*self.table()) + html_lines([method, *self.needs_in_words()])

    def needs_in_words(self) -> list[str]:
        """Describe in sentences how many rows the goal needs.

        Returns
        -------
        sentences : list of str
            One sentence for the accuracy, and one for the recall of each class; empty if there is no goal.
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
            return (
                "probably no number of rows is enough; "
                f"the probability that some number is enough is {need.probability:.0%}"
            )
        if need.rows.value > _FARTHEST * self.n_rows:
            return f"more than {in_rows(_FARTHEST * self.n_rows)} rows, if any number is enough"
        parts = ", ".join(
            f"{label!r}: {in_rows(n)}"
            for label, n in zip(self.classes.tolist(), need.class_rows, strict=True)
        )
        low, high = (in_rows(max(end, self.n_rows)) for end in (need.rows.low, need.rows.high))
        return (
            f"about {in_rows(need.rows.value)} rows in total ({parts}), "
            f"{in_rows(need.rows.value - self.n_rows)} more than now, {INTERVAL:.0%} interval {low} to {high}"
        )
