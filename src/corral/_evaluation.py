"""How well classifiers predict rows that they have not seen, side by side."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest, norm, t
from sklearn.base import clone
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils.validation import has_fit_parameter

from corral._core.copies import effective_number, number_copies
from corral._core.novelty import agreeing_rows
from corral._core.rows import joined_units
from corral._core.settings import Bools, Floats, Integers
from corral._estimators.encoding import encoded
from corral._estimators.tables import UnknownLevelsWarning, read_table

_N_BINS = 10
# So many values, most of them in one row only, are measurements.
_MANY = 20


@dataclass(frozen=True)
class Scores:
    """Scores of one classifier on rows that took no part in fitting.

    Attributes
    ----------
    accuracy : share of rows with the right label.
    accuracy_interval : its 95 % interval by Wilson, for rows drawn at random, or groups of rows if they have
        some; the choice of training rows is not counted. None where all rows are of one group.
    log_loss : mean of minus the logarithm of the right class's probability.
    calibration_error : mean distance between the probability of the label and how often it is right.
    accuracy_by_class : share of the rows of each class that get its label.
    """

    accuracy: float
    accuracy_interval: tuple[float, float] | None
    log_loss: float
    calibration_error: float
    accuracy_by_class: dict[str, float]


class Recall(NamedTuple):
    """How many rows of a class get its label.

    Attributes
    ----------
    n_right, n_rows : rows with the right label, and all of the class.
    interval : 95 % interval of the share by Wilson, for groups of rows if they have some; None where all rows
        of the class are of one group.
    mistaken_for : the class that its other rows are most often taken for, None if all are right.
    n_mistaken : how many are taken for that.
    """

    n_right: int
    n_rows: int
    interval: tuple[float, float] | None
    mistaken_for: Any
    n_mistaken: int

    @property
    def share(self) -> float:
        """Share of the rows that get the right label."""
        return self.n_right / self.n_rows


@dataclass(frozen=True, eq=False)
class Units:
    """Which rows of a table are held out together.

    Attributes
    ----------
    copies : (n_rows,) numbers that copies of a row, and only they, share; they count as one row.
    groups : (n_rows,) numbers that rows of a group share, and all rows that share one with a copy of any;
        None if rows have no groups.
    """

    copies: Integers
    groups: Integers | None = None

    @classmethod
    def of(cls, X: Any, groups: NDArray[Any] | None = None) -> Units:
        """Number the rows of a frame, which may have gaps and columns of levels."""
        copies = number_copies(encoded(X))
        copies = np.arange(len(X)) if copies is None else copies
        if groups is None:
            return cls(copies)
        return cls(copies, joined_units(copies, np.unique(groups, return_inverse=True)[1]))


def splitter(y: NDArray[Any], units: Units, *, test_size: float, cv: int | None, seed: int) -> Any:
    """One part held out, or each of `cv` parts in turn; in all of them classes as in the whole.

    Groups are held out whole, so that classes are as in the whole only as far as groups allow it.
    """
    first = np.unique(units.copies, return_index=True)[1]
    y = y[first]
    _check_classes(y)
    needed, of = cv or 2, "row"
    classes, counts = np.unique(y, return_counts=True)
    if units.groups is not None:
        groups, of = units.groups[first], "group"
        counts = np.array([np.unique(groups[y == label]).size for label in classes])
    least = int(counts.min())
    if least < needed:
        label = classes.tolist()[int(counts.argmin())]
        raise ValueError(
            f"class {label!r} has {least} {of}{'s' * (least > 1)}, fewer than the {needed} needed to hold "
            "some out."
        )
    if units.groups is not None:
        return (
            StratifiedGroupKFold(cv, shuffle=True, random_state=seed)
            if cv
            else GroupsHeldOut(test_size, seed)
        )
    if cv is not None:
        return StratifiedKFold(cv, shuffle=True, random_state=seed)
    n_test = math.ceil(test_size * y.size)
    if not classes.size <= n_test <= y.size - classes.size:
        raise ValueError(
            f"a share of {test_size:g} held out is {n_test} of {y.size} rows; both parts need a row of each "
            f"of the {classes.size} classes."
        )
    return StratifiedShuffleSplit(1, test_size=test_size, random_state=seed)


def _check_classes(y: NDArray[Any]) -> None:
    """Refuse a target that holds one class only, or no classes."""
    classes = np.unique(y)
    if classes.size < 2:
        raise ValueError(
            f"the target must hold at least two classes, got one class: {classes.tolist()[0]!r}."
        )
    if classes.size > max(_MANY, 0.5 * y.size):
        raise ValueError(
            f"the target has {classes.size} different values in {y.size} rows: these are no classes."
        )


@dataclass(frozen=True)
class GroupsHeldOut:
    """Holds out whole groups with about a share of the rows of each class, as scikit-learn's splitters do.

    Groups are taken in random order; one is held out if this brings the numbers of held-out rows nearer to
    the share, and leaves rows of each class to learn from. If none is, it is the smallest that may be.

    Attributes
    ----------
    test_size : the share.
    seed : of the order.
    """

    test_size: float
    seed: int

    def get_n_splits(self) -> int:
        """Number of splits."""
        return 1

    def split(self, X: Any, y: NDArray[Any], groups: Integers) -> Iterator[tuple[Integers, Integers]]:
        """Give the positions of rows to learn from and of held-out rows."""
        _, group = np.unique(groups, return_inverse=True)
        _, code = np.unique(y, return_inverse=True)
        counts = np.zeros((group.max() + 1, code.max() + 1))
        np.add.at(counts, (group, code), 1.0)
        missing = self.test_size * counts.sum(axis=0)
        left = counts.sum(axis=0)
        held_out = np.zeros(len(counts), dtype=np.bool_)
        for g in np.random.RandomState(self.seed).permutation(len(counts)):
            nearer = np.abs(missing - counts[g]).sum() < np.abs(missing).sum()
            if nearer and (left > counts[g]).all():
                held_out[g] = True
                missing, left = missing - counts[g], left - counts[g]
        if not held_out.any():
            sizes = np.where((left > counts).all(axis=1), counts.sum(axis=1), np.inf)
            held_out[sizes.argmin()] = True
        yield np.flatnonzero(~held_out[group]), np.flatnonzero(held_out[group])


@dataclass(frozen=True, eq=False)
class HeldOutPart:
    """A classifier and rows of a table that it has not seen.

    Attributes
    ----------
    estimator : the fitted classifier.
    rows : positions in the table of the rows that it has not seen.
    learnt_from : positions in the table of the rows that it was fitted to; None if these are of another one.
    """

    estimator: Any
    rows: Integers
    learnt_from: Integers | None = None


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What a classifier said of rows that it had not seen when it said it.

    Two of them are equal if they say the same of the same number of rows, whoever says it.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels, sorted.
    truth : ndarray of shape (n_rows,)
        The right labels.
    proba : ndarray of shape (n_rows, n_classes)
        Probability of each class.
    claim : str, default="that took no part in fitting"
        What is known of the rows, as it follows their number in the report.
    groups : ndarray of shape (n_rows,), default=None
        What rows belong to, such as patients, if they do: its rows may be right or wrong together.
    parts : sequence of HeldOutPart, default=()
        Which rows of a table these are, one part after the other, and the classifiers that have not seen
        them: a report shows these rows, explained by these classifiers. `of_folds` makes them.

    See Also
    --------
    corral.write_report : Shows it.

    Examples
    --------
    >>> from corral import HeldOut, RodeoClassifierCV
    >>> from corral.datasets import make_shifted_groups
    >>> X, y = make_shifted_groups(30, groups=(4, 5), random_state=0)
    >>> held_out = HeldOut.of_folds(RodeoClassifierCV(random_state=0), X, y, cv=3, random_state=0)
    >>> len(held_out.parts), sorted(held_out.positions.tolist()) == list(range(60))
    (3, True)
    """

    classes: NDArray[Any]
    truth: NDArray[Any]
    proba: Floats
    claim: str = "that took no part in fitting"
    groups: NDArray[Any] | None = None
    parts: Sequence[HeldOutPart] = ()

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
        units = Units.of(table, None if groups is None else np.asarray(groups))
        split = splitter(labels, units, test_size=0.5, cv=cv, seed=random_state)
        return held_out_predictions({"": estimator}, table, labels, units, split, lambda title: None)[""]

    @property
    def positions(self) -> Integers | None:
        """Positions (n_rows,) of the rows in a table, or None if it is not known which rows these are."""
        return np.concatenate([part.rows for part in self.parts]) if self.parts else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HeldOut):
            return NotImplemented
        pairs = (
            (self.classes, other.classes),
            (self.truth, other.truth),
            (self.proba, other.proba),
            (self.groups, other.groups),
        )
        return self.claim == other.claim and all(np.array_equal(*pair) for pair in pairs)

    __hash__ = None  # type: ignore[assignment]  # as arrays have none

    @property
    def n_groups(self) -> int | None:
        """How many groups the rows belong to; None if rows have no groups."""
        return None if self.groups is None else int(np.unique(self.groups).size)

    @property
    def labels(self) -> NDArray[Any]:
        """The most probable class of each row."""
        labels: NDArray[Any] = self.classes[self.proba.argmax(axis=1)]
        return labels

    def most_frequent_share(self) -> float:
        """Share of the rows that are of the most frequent class: the accuracy of always naming it."""
        return float(np.unique(self.truth, return_counts=True)[1].max() / len(self.truth))

    def share_right(self, chosen: Bools) -> tuple[float, tuple[float, float] | None]:
        """Share of some rows that get the right label, and its 95 % interval.

        The interval is by Wilson, for rows drawn at random, or groups of rows if they have some; it is None
        where all chosen rows are of one group.
        """
        hits = (self.labels == self.truth)[chosen]
        if self.groups is None:
            return float(hits.mean()), wilson_interval(hits)
        return float(hits.mean()), grouped_interval(hits, self.groups[chosen])

    def recalls(self) -> dict[Any, Recall]:
        """How well each class is recognised, by label; classes without rows are left out."""
        found, recalls = self.labels, {}
        for label in np.unique(self.truth).tolist():
            of_class = self.truth == label
            labels = found[of_class]
            hits = labels == label
            others, counts = np.unique(labels[~hits], return_counts=True)
            most = int(counts.argmax()) if counts.size else 0
            recalls[label] = Recall(
                int(hits.sum()),
                labels.size,
                self.share_right(of_class)[1],
                others.tolist()[most] if counts.size else None,
                int(counts[most]) if counts.size else 0,
            )
        return recalls

    def scores(self) -> Scores:
        """How good it was."""
        found = self.labels
        hits = found == self.truth
        return Scores(
            float(accuracy_score(self.truth, found)),
            self.share_right(np.ones(hits.size, dtype=np.bool_))[1],
            float(log_loss(self.truth, self.proba, labels=self.classes)),
            calibration_error(self.proba, np.searchsorted(self.classes, self.truth)),
            {
                str(label): float(np.mean(found[self.truth == label] == label))
                for label in np.unique(self.truth).tolist()
            },
        )


def held_out_predictions(
    classifiers: Mapping[str, Any],
    X: Any,
    y: NDArray[Any],
    units: Units,
    split: Any,
    on_step: Callable[[str], None],
) -> dict[str, HeldOut]:
    """Fit clones to the training part of every split and predict its held-out rows, by classifier.

    Copies are held out together, and the first is predicted. `on_step` is called with a title before each fit
    begins.
    """
    _, first, unit = np.unique(units.copies, return_index=True, return_inverse=True)
    groups = None if units.groups is None else units.groups[first]
    proba: dict[str, list[Floats]] = {name: [] for name in classifiers}
    parts: dict[str, list[HeldOutPart]] = {name: [] for name in classifiers}
    right: list[NDArray[Any]] = []
    of_groups: list[Integers] = []
    for k, (kept, held_out) in enumerate(split.split(first, y[first], groups), start=1):
        train, test = np.flatnonzero(np.isin(unit, kept)), first[held_out]
        _check_classes_left(y, train, units)
        right.append(y[test])
        of_groups += [] if groups is None else [groups[held_out]]
        for name, classifier in classifiers.items():
            on_step(f"{name} without held-out rows, {k} of {split.get_n_splits()}")
            fitted = fit_by_groups(clone(classifier), take_rows(X, train), y[train], units, train)
            parts[name].append(HeldOutPart(fitted, test, train))
            with warnings.catch_warnings():  # of levels that only held-out rows have, as new rows may, too
                warnings.simplefilter("ignore", UnknownLevelsWarning)
                proba[name].append(fitted.predict_proba(take_rows(X, test)))
    truth = np.concatenate(right)
    claim = "that took no part in fitting" if groups is None else "of groups that took no part in fitting"
    held_out_groups = np.concatenate(of_groups) if of_groups else None
    return {
        name: HeldOut(np.unique(y), truth, np.concatenate(proba[name]), claim, held_out_groups, parts[name])
        for name in classifiers
    }


def _check_classes_left(y: NDArray[Any], train: Integers, units: Units) -> None:
    """Refuse to hold out all rows of a class, as large groups may ask for, or all groups but one of each."""
    lost = np.setdiff1d(y, y[train]).tolist()
    if lost:
        raise ValueError(
            f"to hold out whole groups would hold out all rows of the class {lost[0]!r}: collect more groups "
            "of it, or leave it out."
        )
    if units.groups is not None:
        counts = [np.unique(units.groups[train][y[train] == label]).size for label in np.unique(y)]
        if max(counts) < 2:
            raise ValueError(
                "to hold out whole groups would leave one group of each class to fit, and two of some class "
                "are needed: collect more groups."
            )


def fit_by_groups(
    classifier: Any, X: Any, y: NDArray[Any], units: Units, rows: Integers | None = None
) -> Any:
    """Fit some rows, `rows` of all; a classifier that knows of groups leaves them out together."""
    if units.groups is None or not has_fit_parameter(classifier, "groups"):
        return classifier.fit(X, y)
    return classifier.fit(X, y, groups=units.groups if rows is None else units.groups[rows])


def unseen_predictions(
    fitted: Any, X: Any, y: NDArray[Any], groups: NDArray[Any] | None = None
) -> HeldOut | None:
    """Predictions of the rows that are equal to no training row, even when rounded; None if none is.

    None is known to be, either, where a classifier does not keep its training rows, or not all of them. Rows
    that share one of the groups, if there are some, may be right or wrong together.
    """
    if not hasattr(fitted, "model_") or not fitted.model_.has_all_rows:
        return None
    numbers = read_table(fitted, X, reset=False).X
    is_level = np.array([levels is not None for levels in fitted.encoding_.levels])
    new = ~agreeing_rows(numbers, fitted.model_.training.X, is_level)
    if not new.any():
        return None
    claim = "equal to no training row, even when rounded"
    parts = [HeldOutPart(fitted, np.flatnonzero(new))]
    of_new = None if groups is None else groups[new]
    return HeldOut(fitted.classes_, y[new], fitted.predict_proba(X[new]), claim, of_new, parts)


def take_rows(X: Any, rows: Integers) -> Any:
    """Rows of a frame or an array, by position."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def wilson_interval(hits: Bools) -> tuple[float, float]:
    """The 95 % interval of a share by Wilson, which is sensible for few rows and for shares of 0 and 1."""
    interval = binomtest(int(hits.sum()), hits.size).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def grouped_interval(hits: Bools, groups: NDArray[Any]) -> tuple[float, float] | None:
    """The 95 % interval of a share by Wilson where rows of a group may be right or wrong together.

    The rows are worth fewer that are drawn one by one: their number over the design effect, which is how many
    times larger the variance of the share is between groups than between rows, and at least 1. As few groups
    tell little of it, the number is further reduced as Student's t asks for (Korn and Graubard, 1998). Where
    all rows are right, or none is, nothing is told of it, and each group counts as one row, weighted by its
    size. With fewer than two groups there is no interval.
    """
    _, group = np.unique(groups, return_inverse=True)
    sizes = np.bincount(group)
    n, n_groups, share = hits.size, sizes.size, float(hits.mean())
    if n_groups < 2:
        return None
    if share in (0.0, 1.0):
        return _wilson(share, effective_number(sizes.astype(np.float64)))
    sums = np.bincount(group, hits - share)
    between = n_groups / (n_groups - 1) * float(sums @ sums) / n**2
    design_effect = max(between / (share * (1.0 - share) / (n - 1)), 1.0)
    few_groups = (t.ppf(0.975, n - 1) / t.ppf(0.975, n_groups - 1)) ** 2
    return _wilson(share, n / design_effect * float(few_groups))


def _wilson(share: float, n: float) -> tuple[float, float]:
    """The interval for a number of rows that need not be whole."""
    z = float(norm.ppf(0.975))
    middle = share + z**2 / (2.0 * n)
    half = z * math.sqrt(share * (1.0 - share) / n + z**2 / (4.0 * n**2))
    low, high = (middle - half) / (1.0 + z**2 / n), (middle + half) / (1.0 + z**2 / n)
    return max(low, 0.0), min(high, 1.0)


def rows_to_halve_interval(share: float, n: int) -> int:
    """How many rows more than n would make Wilson's interval half as wide if the share stayed the same."""

    def width(n_rows: int) -> float:
        low, high = _wilson(share, n_rows)
        return high - low

    low, high = n, 2 * n
    while width(high) > width(n) / 2.0:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if width(middle) <= width(n) / 2.0 else (middle, high)
    return high - n


def calibration_error(proba: Floats, codes: Integers) -> float:
    """Mean distance of confidence and accuracy over ten equal intervals of the label's probability."""
    confidence = proba.max(axis=1)
    hits = proba.argmax(axis=1) == codes
    tenths = np.minimum((confidence * _N_BINS).astype(np.int64), _N_BINS - 1)
    gaps = np.bincount(tenths, hits - confidence, minlength=_N_BINS)
    return float(np.abs(gaps).sum() / len(proba))
