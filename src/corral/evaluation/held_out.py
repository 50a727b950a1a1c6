"""What classifiers say of rows that they have not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.metrics import confusion_matrix
from sklearn.utils.validation import has_fit_parameter

from corral.array_types import Bools, Floats, Integers
from corral.estimators.encoding import is_frame
from corral.estimators.tables import UnknownLevelsWarning, read_table
from corral.estimators.warned import ShiftedTableWarning
from corral.evaluation.intervals import Sampling
from corral.evaluation.ranking import THRESHOLDS, Threshold, curve, thresholds
from corral.evaluation.scores import (
    RELIABILITY_ENDS,
    FrequencyComparison,
    Recall,
    Reliability,
    Scores,
    compare_with_frequencies,
    score_predictions,
)
from corral.evaluation.splits import RowGroups, Split, counts_by_class, split_rows


@dataclass(frozen=True, eq=False)
class HeldOutPart:
    """A fitted classifier and rows of a table that it has not seen.

    Attributes
    ----------
    estimator : the fitted classifier.
    rows : positions in the table of the rows that it has not seen.
    learnt_from : positions in the table of the rows that it was fitted to; None if these are of another one.
    """

    estimator: Any
    rows: Integers
    learnt_from: Integers | None = None


OF_NEW_GROUPS = "of groups that took no part in fitting"
EQUAL_TO_NONE = "equal to no training row"


def claim_of_folds(n_folds: int, *, grouped: bool) -> str:
    """What is known of rows that were held out in turn: no row took part in the fit that predicted it."""
    return f"that were held out in {n_folds} folds, " + (_WITH_THEIR_GROUPS if grouped else "each once")


_WITH_THEIR_GROUPS = "each once and together with its group"


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What a classifier said of rows that it had not seen when it said it.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels, sorted.
    truth : ndarray of shape (n_rows,)
        The right labels.
    proba : ndarray of shape (n_rows, n_classes)
        Probability of each class.
    claim : str, default="that took no part in fitting"
        What is known of the rows, as it follows their number in the report; "of groups that took no part in
        fitting" also says that accuracies are those of new groups. `of_folds` says how many folds there are.
    groups : ndarray of shape (n_rows,), default=None
        What rows belong to, such as patients, if they do: its rows may be right or wrong together.
    parts : sequence of HeldOutPart, default=()
        Which rows of a table these are, one part after the other, and the classifiers that have not seen
        them: a report shows these rows, explained by these classifiers. `of_folds` makes them.
    baselines : mapping of str to HeldOut, default=None
        What other classifiers said of the same rows, by name: a report shows their scores beside.

    See Also
    --------
    corral.write_report : Shows it.

    Examples
    --------
    >>> from corral import HeldOut, CorralClassifier
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(30, groups=(4, 5), random_state=0)
    >>> held_out = HeldOut.of_folds(CorralClassifier(random_state=0), X, y, cv=3, random_state=0)
    >>> len(held_out.parts), sorted(held_out.positions.tolist()) == list(range(60))
    (3, True)
    """

    classes: NDArray[Any]
    truth: NDArray[Any]
    proba: Floats
    claim: str = "that took no part in fitting"
    groups: NDArray[Any] | None = None
    parts: Sequence[HeldOutPart] = ()
    baselines: Mapping[str, HeldOut] | None = None

    @classmethod
    def of_folds(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        cv: int = 5,
        groups: ArrayLike | None = None,
        random_state: int = 0,
    ) -> HeldOut:
        """Predict each row of a table by a clone that was fitted without its fold.

        Parameters
        ----------
        estimator : classifier
            Its clones are fitted.
        X : DataFrame or array-like of shape (n_samples, n_features)
            Rows. Copies of a row share a fold, and the first is predicted.
        y : array-like of shape (n_samples,)
            Their classes.
        cv : int, default=5
            How many folds there are.
        groups : array-like of shape (n_samples,), default=None
            Rows that share one share a fold.
        random_state : int, default=0
            Draws the folds.

        Returns
        -------
        held_out : HeldOut
        """
        table = X if hasattr(X, "shape") else np.asarray(X)
        labels = np.asarray(y)
        row_groups = RowGroups.of(table, labels, None if groups is None else np.asarray(groups))
        splits = split_rows(labels, row_groups, test_size=0.5, cv=cv, seed=random_state)
        return held_out_predictions({"": estimator}, table, labels, row_groups, splits, lambda title: None)[
            ""
        ]

    @property
    def positions(self) -> Integers | None:
        """Positions (n_rows,) of the rows in a table, or None if it is not known which rows these are."""
        return np.concatenate([part.rows for part in self.parts]) if self.parts else None

    @property
    def n_groups(self) -> int | None:
        """How many groups the rows belong to; None if rows have no groups."""
        return None if self.groups is None else int(np.unique(self.groups).size)

    @property
    def groups_are_new(self) -> bool:
        """Whether it is known that no row of these groups took part in fitting, as `claim` says."""
        return self.claim == OF_NEW_GROUPS or self.claim.endswith(_WITH_THEIR_GROUPS)

    @property
    def labels(self) -> NDArray[Any]:
        """The most probable class of each row."""
        labels: NDArray[Any] = self.classes[self.proba.argmax(axis=1)]
        return labels

    def most_frequent_share(self) -> float:
        """Share of the rows that are of their most frequent class."""
        return float(np.unique(self.truth, return_counts=True)[1].max() / len(self.truth))

    def frequencies(self) -> HeldOut:
        """The same rows, each predicted by the frequencies of the classes, which need no variable."""
        shares = np.bincount(self._codes, minlength=self.classes.size) / len(self.truth)
        return HeldOut(
            self.classes, self.truth, np.tile(shares, (len(self.truth), 1)), self.claim, self.groups
        )

    def share_right(self, chosen: Bools) -> tuple[float, tuple[float, float] | None]:
        """Share of some rows that get the right label, and its 95 % interval.

        The interval is by Wilson, for rows drawn at random, or groups of rows if they have some; it is None
        where all chosen rows are of one group.
        """
        hits = self.labels == self.truth
        return float(hits[chosen].mean()), self._sampling.interval_of_hits(hits, chosen)

    def recalls(self) -> dict[Any, Recall]:
        """How well each class is recognised, by label; classes without rows are left out."""
        recalls, labels = {}, self.classes.tolist()
        for a, counts in enumerate(self.confusion()):
            n_right, n_rows = int(counts[a]), int(counts.sum())
            if n_rows:
                counts[a] = 0
                most = int(counts.argmax())
                interval = self.share_right(self.truth == self.classes[a])[1]
                mistaken_for = labels[most] if counts[most] else None
                recalls[labels[a]] = Recall(n_right, n_rows, interval, mistaken_for, int(counts[most]))
        return recalls

    def confusion(self) -> Integers:
        """Numbers of rows (n_classes, n_classes) by their class and the label that they get."""
        counts: Integers = confusion_matrix(self.truth, self.labels, labels=self.classes)
        return counts

    def reliability(self) -> list[Reliability]:
        """How often labels are right, for each interval of their probability that has rows."""
        confidence = self.proba.max(axis=1)
        bins = np.searchsorted(RELIABILITY_ENDS[1:-1], confidence, side="right")
        points = []
        for b in np.unique(bins).tolist():
            inside = bins == b
            low, high = RELIABILITY_ENDS[b], RELIABILITY_ENDS[b + 1]
            mean = float(confidence[inside].mean())
            points.append(Reliability(int(inside.sum()), low, high, mean, *self.share_right(inside)))
        return points

    def scores(self) -> Scores:
        """How good it was, with 95 % intervals."""
        names = [str(label) for label in self.classes.tolist()]
        return score_predictions(self.proba, self._codes, names, self._sampling)

    def against_frequencies(self) -> FrequencyComparison:
        """Compare it with the most frequent class and with the frequencies of the classes."""
        return compare_with_frequencies(self.proba, self._codes, self._sampling)

    @property
    def rarer_class(self) -> Any:
        """The one of two classes that has fewer rows, which a threshold is set for; None of more classes."""
        if self.classes.size != 2:
            return None
        n_rows = [int((self.truth == label).sum()) for label in self.classes]
        return self.classes.tolist()[int(n_rows[1] <= n_rows[0])]

    def thresholds(self, label: Any) -> list[Threshold]:
        """What comes of calling every row `label` whose probability of it is at least a threshold."""
        return thresholds(*self._ranked(label), np.array(THRESHOLDS))

    def ranking_curve(self, label: Any, most: int = 100) -> list[Threshold]:
        """Points of the ROC and precision-recall curves of a class, at most so many, that has rows."""
        return curve(*self._ranked(label), most)

    def _ranked(self, label: Any) -> tuple[Floats, Bools]:
        """The probability of a class at each row, and whether the row is of the class."""
        return self.proba[:, self.classes.tolist().index(label)], self.truth == label

    @property
    def _codes(self) -> Integers:
        return np.searchsorted(self.classes, self.truth)

    @property
    def _sampling(self) -> Sampling:
        return Sampling(self.groups)


def held_out_predictions(
    classifiers: Mapping[str, Any],
    X: Any,
    y: NDArray[Any],
    row_groups: RowGroups,
    splits: Sequence[Split],
    on_step: Callable[[str], None],
) -> dict[str, HeldOut]:
    """Fit clones to the training part of every split and predict its held-out rows, by classifier.

    Copies are held out together, and the first is predicted. `on_step` is called with a title before each fit
    begins.
    """
    proba: dict[str, list[Floats]] = {name: [] for name in classifiers}
    parts: dict[str, list[HeldOutPart]] = {name: [] for name in classifiers}
    for k, (train, test) in enumerate(splits, start=1):
        _check_classes_left(y, train, row_groups)
        for name, classifier in classifiers.items():
            on_step(f"{name} without held-out rows, {k} of {len(splits)}")
            fitted = fit_by_groups(clone(classifier), take_rows(X, train), y[train], row_groups, train)
            parts[name].append(HeldOutPart(fitted, test, train))
            with warnings.catch_warnings():  # of what only held-out rows have, as new rows may, too
                warnings.simplefilter("ignore", UnknownLevelsWarning)
                warnings.simplefilter("ignore", ShiftedTableWarning)
                proba[name].append(fitted.predict_proba(take_rows(X, test)))
    rows = np.concatenate([test for _, test in splits])
    if len(splits) > 1:
        claim = claim_of_folds(len(splits), grouped=row_groups.groups is not None)
    else:
        claim = "that took no part in fitting" if row_groups.groups is None else OF_NEW_GROUPS
    groups = None if row_groups.groups is None else row_groups.groups[rows]
    return {
        name: HeldOut(np.unique(y), y[rows], np.concatenate(proba[name]), claim, groups, parts[name])
        for name in classifiers
    }


def _check_classes_left(y: NDArray[Any], train: Integers, row_groups: RowGroups) -> None:
    """Refuse to hold out all rows of a class, as large groups may ask for, or all groups but one of each."""
    lost = np.setdiff1d(y, y[train]).tolist()
    if lost:
        raise ValueError(
            f"to hold out whole groups would hold out all rows of the class {lost[0]!r}: collect more groups "
            "of it, or leave it out."
        )
    if row_groups.groups is not None and max(counts_by_class(row_groups.groups[train], y[train])) < 2:
        raise ValueError(
            "to hold out whole groups would leave one group of each class to fit, and two of some class are "
            "needed: collect more groups."
        )


def fit_by_groups(
    classifier: Any, X: Any, y: NDArray[Any], row_groups: RowGroups, rows: Integers | None = None
) -> Any:
    """Fit some rows, `rows` of all; a classifier that knows of groups leaves them out together."""
    if row_groups.groups is None or not has_fit_parameter(classifier, "groups"):
        return classifier.fit(X, y)
    return classifier.fit(X, y, groups=row_groups.groups if rows is None else row_groups.groups[rows])


def unseen_predictions(
    fitted: Any, X: Any, y: NDArray[Any], groups: NDArray[Any] | None = None
) -> HeldOut | None:
    """Predictions of the rows that are equal to no training row, in every digit.

    None if all rows are, or where a classifier does not keep all of its training rows. Rows that share one of
    the groups, if there are some, may be right or wrong together.
    """
    if not hasattr(fitted, "model_") or not fitted.model_.has_all_rows:
        return None
    training = set(_contents(fitted.model_.training.X))
    new = np.array([row not in training for row in _contents(read_table(fitted, X, reset=False).X)])
    if not new.any():
        return None
    parts = [HeldOutPart(fitted, np.flatnonzero(new))]
    of_new = None if groups is None else groups[new]
    return HeldOut(fitted.classes_, y[new], fitted.predict_proba(X[new]), EQUAL_TO_NONE, of_new, parts)


def _contents(X: Floats) -> list[bytes]:
    """Rows as bytes, which are equal if all their values are; missing values are equal to each other."""
    unique = np.where(np.isnan(X), np.nan, X) + 0.0  # there are several NaN, and -0.0
    return [row.tobytes() for row in unique]


def take_rows(X: Any, rows: Integers) -> Any:
    """Rows of a frame or an array, by position."""
    return nw.from_native(X, eager_only=True)[rows].to_native() if is_frame(X) else X[rows]
