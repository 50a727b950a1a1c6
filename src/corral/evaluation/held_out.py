"""Predictions of held-out rows by classifiers that were not fitted to these rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.metrics import confusion_matrix
from sklearn.utils.validation import has_fit_parameter

from corral.array_types import Bools, Floats, Integers
from corral.estimators.encoding import are_missing, is_frame
from corral.estimators.tables import UnknownCategoriesWarning, read_table
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
    """A fitted classifier and rows of a table that it was not fitted to.

    Attributes
    ----------
    estimator : the fitted classifier.
    rows : (n_rows,) positions of the held-out rows in the table.
    learnt_from : (n_training,) positions in the table of the rows that the estimator was fitted to; None if
        it was fitted to another table.
    """

    estimator: Any
    rows: Integers
    learnt_from: Integers | None = None


NEW_GROUPS = "of groups that took no part in fitting"
EQUAL_TO_NONE = "equal to no training row"


def claim_of_folds(n_folds: int, *, grouped: bool) -> str:
    """Return the `claim` for cross-validation, where no row took part in the fit that predicted the row."""
    return f"that were held out in {n_folds} folds, " + (_WITH_THEIR_GROUPS if grouped else "each once")


_WITH_THEIR_GROUPS = "each once and together with its group"


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions of rows by a classifier that was not fitted to them.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels, sorted.
    truth : ndarray of shape (n_rows,)
        Classes of the rows.
    proba : ndarray of shape (n_rows, n_classes)
        Probability of each class.
    claim : str, default="that took no part in fitting"
        How the rows were held out. In a report the claim follows the number of rows. With "of groups that
        took no part in fitting", scores are stated for new groups.
    groups : ndarray of shape (n_rows,), default=None
        Groups of the rows, such as patients: the labels of a group may be right or wrong together. None if
        rows have no groups.
    parts : sequence of HeldOutPart, default=()
        Classifiers, each with the positions of the rows that it predicts and was not fitted to. A report
        shows these rows, explained by these classifiers. `of_folds` makes the parts.
    baselines : mapping of str to HeldOut, default=None
        Predictions of the same rows by other classifiers, by name. A report shows the scores of these
        classifiers as well.

    See Also
    --------
    corral.write_report : Shows the scores and the rows.

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
            Classifier whose clones are fitted.
        X : DataFrame or array-like of shape (n_samples, n_features)
            Rows. Duplicates are in the same fold, and only the first of them is predicted.
        y : array-like of shape (n_samples,)
            Classes of the rows.
        cv : int, default=5
            Number of folds.
        groups : array-like of shape (n_samples,), default=None
            Groups of the rows. The rows of a group are in the same fold.
        random_state : int, default=0
            Seed of the folds.

        Returns
        -------
        held_out : HeldOut
            Predictions of all rows but duplicates, fold by fold.
        """
        table = X if hasattr(X, "shape") else np.asarray(X)
        labels = np.asarray(y)
        row_groups = RowGroups.from_table(table, labels, None if groups is None else np.asarray(groups))
        splits = split_rows(labels, row_groups, test_size=0.5, cv=cv, seed=random_state)
        predictions = held_out_predictions(
            {"": estimator}, table, labels, row_groups, splits, lambda title: None
        )
        return predictions[""]

    @property
    def positions(self) -> Integers | None:
        """Positions (n_rows,) of the rows in a table, or None if there are no parts."""
        return np.concatenate([part.rows for part in self.parts]) if self.parts else None

    @property
    def n_groups(self) -> int | None:
        """Number of groups of the rows; None if rows have no groups."""
        return None if self.groups is None else int(np.unique(self.groups).size)

    @property
    def groups_are_new(self) -> bool:
        """Whether `claim` says that no row of these groups took part in fitting."""
        return self.claim == NEW_GROUPS or self.claim.endswith(_WITH_THEIR_GROUPS)

    @property
    def labels(self) -> NDArray[Any]:
        """The most probable class of each row."""
        labels: NDArray[Any] = self.classes[self.proba.argmax(axis=1)]
        return labels

    def most_frequent_share(self) -> float:
        """Return the share of the most frequent class among the rows."""
        return float(np.unique(self.truth, return_counts=True)[1].max() / len(self.truth))

    def frequencies(self) -> HeldOut:
        """Return predictions of the same rows, where each probability is the share of the class."""
        shares = np.bincount(self._codes, minlength=self.classes.size) / len(self.truth)
        proba = np.tile(shares, (len(self.truth), 1))
        return HeldOut(self.classes, self.truth, proba, self.claim, self.groups)

    def share_right(self, chosen: Bools) -> tuple[float, tuple[float, float] | None]:
        """Return the share of the chosen rows that get the right label, and its 95% interval.

        The interval is Wilson's interval for a random sample of rows, or of groups if rows have groups. The
        interval is None if all chosen rows are of one group.
        """
        hits = self.labels == self.truth
        return float(hits[chosen].mean()), self._sampling.interval_of_hits(hits, chosen)

    def recalls(self) -> dict[Any, Recall]:
        """Return recall and most frequent error of each class that has rows, by label."""
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
        """Return the numbers of rows (n_classes, n_classes) by class (first axis) and label."""
        counts: Integers = confusion_matrix(self.truth, self.labels, labels=self.classes)
        return counts

    def reliability(self) -> list[Reliability]:
        """Return the share of right labels in each interval of the label's probability that has rows."""
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
        """Return scores with 95% intervals."""
        return self._scores

    @cached_property
    def _scores(self) -> Scores:  # a report needs scores in many places
        names = [str(label) for label in self.classes.tolist()]
        return score_predictions(self.proba, self._codes, names, self._sampling)

    def against_frequencies(self) -> FrequencyComparison:
        """Compare the predictions with the most frequent class and with the class frequencies."""
        return compare_with_frequencies(self.proba, self._codes, self._sampling)

    @property
    def rarer_class(self) -> Any:
        """The class with fewer rows, for which a threshold is chosen; None if there are not two classes."""
        if self.classes.size != 2:
            return None
        n_rows = [int((self.truth == label).sum()) for label in self.classes]
        return self.classes.tolist()[int(n_rows[1] <= n_rows[0])]

    def thresholds(self, label: Any) -> list[Threshold]:
        """Return the consequences of calling rows `label` from each threshold of its probability on."""
        return thresholds(*self._ranked(label), np.array(THRESHOLDS))

    def ranking_curve(self, label: Any, most: int = 100) -> list[Threshold]:
        """Return at most `most` points of the ROC and precision-recall curves of a class that has rows."""
        return curve(*self._ranked(label), most)

    def _ranked(self, label: Any) -> tuple[Floats, Bools]:
        """Return the probability of a class at each row (n_rows,), and whether the row is of the class."""
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
    """Fit clones to the training rows of each split and predict the held-out rows of the split.

    Returns the predictions of each classifier, by its name in `classifiers`. `on_step` is called with a title
    before each fit.
    """
    proba: dict[str, list[Floats]] = {name: [] for name in classifiers}
    parts: dict[str, list[HeldOutPart]] = {name: [] for name in classifiers}
    for k, (train, test) in enumerate(splits, start=1):
        _check_classes_left(y, train, row_groups)
        for name, classifier in classifiers.items():
            on_step(f"{name} without held-out rows, {k} of {len(splits)}")
            fitted = fit_by_groups(clone(classifier), take_rows(X, train), y[train], row_groups, train)
            parts[name].append(HeldOutPart(fitted, test, train))
            with warnings.catch_warnings():  # categories and ranges of held-out rows may be new
                warnings.simplefilter("ignore", UnknownCategoriesWarning)
                warnings.simplefilter("ignore", ShiftedTableWarning)
                proba[name].append(fitted.predict_proba(take_rows(X, test)))
    rows = np.concatenate([test for _, test in splits])
    if len(splits) > 1:
        claim = claim_of_folds(len(splits), grouped=row_groups.groups is not None)
    else:
        claim = "that took no part in fitting" if row_groups.groups is None else NEW_GROUPS
    groups = None if row_groups.groups is None else row_groups.groups[rows]
    return {
        name: HeldOut(np.unique(y), y[rows], np.concatenate(proba[name]), claim, groups, parts[name])
        for name in classifiers
    }


def _check_classes_left(y: NDArray[Any], train: Integers, row_groups: RowGroups) -> None:
    """Raise ValueError if training rows lack a class, or have only one group of each class."""
    lost = np.setdiff1d(y, y[train]).tolist()
    if lost:
        raise ValueError(
            f"holding out whole groups would hold out all rows of the class {lost[0]!r}: collect more groups "
            "of this class, or leave the class out."
        )
    if row_groups.groups is not None and max(counts_by_class(row_groups.groups[train], y[train])) < 2:
        raise ValueError(
            "holding out whole groups would leave only one group of each class to fit, but two groups of "
            "some class are needed: collect more groups."
        )


def fit_by_groups(
    classifier: Any, X: Any, y: NDArray[Any], row_groups: RowGroups, rows: Integers | None = None
) -> Any:
    """Fit a classifier to X and y, the `rows` of a table, with groups if its `fit` accepts groups."""
    if row_groups.groups is None or not has_fit_parameter(classifier, "groups"):
        return classifier.fit(X, y)
    return classifier.fit(X, y, groups=row_groups.groups if rows is None else row_groups.groups[rows])


def unseen_predictions(
    fitted: Any, X: Any, y: NDArray[Any], groups: NDArray[Any] | None = None
) -> HeldOut | None:
    """Return predictions of the rows that are equal to no training row, compared in every digit.

    Returns None if there are no such rows, or if the classifier does not keep all of its training rows.
    """
    if not hasattr(fitted, "model_") or not fitted.model_.has_all_rows:
        return None
    training, table = set(_rows_as_bytes(fitted.model_.training.X)), read_table(fitted, X, reset=False)
    new = np.array([row not in training for row in _rows_as_bytes(table.X)])
    for values in table.unknown.values():  # categories that no training row has are missing in `table.X`
        new |= ~are_missing(values)
    if not new.any():
        return None
    parts = [HeldOutPart(fitted, np.flatnonzero(new))]
    new_groups = None if groups is None else groups[new]
    return HeldOut(fitted.classes_, y[new], fitted.predict_proba(X[new]), EQUAL_TO_NONE, new_groups, parts)


def _rows_as_bytes(X: Floats) -> list[bytes]:
    """Return each row as bytes: equal bytes if all values of two rows are equal or missing."""
    unique = np.where(np.isnan(X), np.nan, X) + 0.0  # NaN and 0.0 have several representations
    return [row.tobytes() for row in unique]


def take_rows(X: Any, rows: Integers) -> Any:
    """Return rows of a frame or an array, by position."""
    return nw.from_native(X, eager_only=True)[rows].to_native() if is_frame(X) else X[rows]
