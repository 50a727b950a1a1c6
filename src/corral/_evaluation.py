"""How well classifiers predict rows that they have not seen, side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from corral._core.copies import number_copies
from corral._core.novelty import agreeing_rows
from corral._core.settings import Floats, Integers

_N_BINS = 10
# So many values, most of them in one row only, are measurements.
_MANY = 20


@dataclass(frozen=True)
class Scores:
    """Scores of one classifier on rows that took no part in fitting.

    Attributes
    ----------
    accuracy : share of rows with the right label.
    accuracy_interval : its 95 % interval by Wilson, for rows drawn at random; the choice of training rows
        is not counted.
    log_loss : mean of minus the logarithm of the right class's probability.
    calibration_error : mean distance between the probability of the label and how often it is right.
    accuracy_by_class : share of the rows of each class that get its label.
    """

    accuracy: float
    accuracy_interval: tuple[float, float]
    log_loss: float
    calibration_error: float
    accuracy_by_class: dict[str, float]


def number_rows(X: Any) -> Integers:
    """Number the rows of a frame so that copies, and only they, share a number."""
    copies = number_copies(X.to_numpy(np.float64))
    return np.arange(len(X)) if copies is None else copies


def splitter(y: NDArray[Any], units: Integers, *, test_size: float, cv: int | None, seed: int) -> Any:
    """One part held out, or each of `cv` parts in turn; in all of them classes as in the whole.

    Rows that share a number of `units` are copies, and count as one.
    """
    y = y[np.unique(units, return_index=True)[1]]
    classes, counts = np.unique(y, return_counts=True)
    if classes.size < 2:
        raise ValueError(
            f"the target must hold at least two classes, got one class: {classes.tolist()[0]!r}."
        )
    if classes.size > max(_MANY, 0.5 * y.size):
        raise ValueError(
            f"the target has {classes.size} different values in {y.size} rows: these are no classes."
        )
    needed = cv or 2
    least = int(counts.min())
    if least < needed:
        label = classes.tolist()[int(counts.argmin())]
        raise ValueError(
            f"class {label!r} has {least} row{'s' * (least > 1)}, fewer than the {needed} needed to hold "
            "some out."
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


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What a classifier said of rows that it had not seen when it said it.

    Two of them are equal if all that they hold is.

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
    """

    classes: NDArray[Any]
    truth: NDArray[Any]
    proba: Floats
    claim: str = "that took no part in fitting"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HeldOut):
            return NotImplemented
        pairs = ((self.classes, other.classes), (self.truth, other.truth), (self.proba, other.proba))
        return self.claim == other.claim and all(np.array_equal(*pair) for pair in pairs)

    __hash__ = None  # type: ignore[assignment]  # as arrays have none

    @property
    def labels(self) -> NDArray[Any]:
        """The most probable class of each row."""
        labels: NDArray[Any] = self.classes[self.proba.argmax(axis=1)]
        return labels

    def scores(self) -> Scores:
        """How good it was."""
        found = self.labels
        return Scores(
            float(accuracy_score(self.truth, found)),
            wilson_interval(found == self.truth),
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
    units: Integers,
    split: Any,
    on_step: Callable[[str], None],
) -> dict[str, HeldOut]:
    """Fit clones to the training part of every split and predict its held-out rows, by classifier.

    Rows that share a number of `units` are copies: they are held out together, and the first is predicted.
    `on_step` is called with a title before each fit begins.
    """
    _, first, unit = np.unique(units, return_index=True, return_inverse=True)
    parts: dict[str, list[Floats]] = {name: [] for name in classifiers}
    right: list[NDArray[Any]] = []
    for k, (kept, held_out) in enumerate(split.split(first, y[first]), start=1):
        train, test = np.flatnonzero(np.isin(unit, kept)), first[held_out]
        right.append(y[test])
        for name, classifier in classifiers.items():
            on_step(f"{name} without held-out rows, {k} of {split.get_n_splits()}")
            fitted = clone(classifier).fit(X.iloc[train], y[train])
            parts[name].append(fitted.predict_proba(X.iloc[test]))
    truth = np.concatenate(right)
    return {
        name: HeldOut(np.unique(y), truth, np.concatenate(of_splits)) for name, of_splits in parts.items()
    }


def unseen_predictions(fitted: Any, X: Any, y: NDArray[Any]) -> HeldOut | None:
    """Predictions of the rows that are equal to no training row, even when rounded; None if none is.

    None is known to be, either, where a classifier does not keep its training rows.
    """
    if not hasattr(fitted, "model_"):
        return None
    new = ~agreeing_rows(X.to_numpy(np.float64), fitted.model_.training.X)
    if not new.any():
        return None
    claim = "equal to no training row, even when rounded"
    return HeldOut(fitted.classes_, y[new], fitted.predict_proba(X[new]), claim)


def wilson_interval(hits: NDArray[np.bool_]) -> tuple[float, float]:
    """The 95 % interval of a share by Wilson, which is sensible for few rows and for shares of 0 and 1."""
    interval = binomtest(int(hits.sum()), hits.size).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def calibration_error(proba: Floats, codes: Integers) -> float:
    """Mean distance of confidence and accuracy over ten equal intervals of the label's probability."""
    confidence = proba.max(axis=1)
    hits = proba.argmax(axis=1) == codes
    gaps = np.bincount(confidence_bins(confidence), hits - confidence, minlength=_N_BINS)
    return float(np.abs(gaps).sum() / len(proba))


def confidence_bins(confidence: Floats) -> Integers:
    """Which of ten equal intervals each probability lies in."""
    return np.minimum((confidence * _N_BINS).astype(np.int64), _N_BINS - 1)
