"""How well classifiers predict rows that they have not seen, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

Floats = NDArray[np.float64]

_N_BINS = 10


@dataclass(frozen=True)
class Scores:
    """Of one classifier on held-out rows.

    Attributes
    ----------
    accuracy : share of rows with the right label.
    log_loss : mean of minus the logarithm of the right class's probability.
    calibration_error : mean distance between the probability of the label and how often it is right.
    accuracy_by_class : share of the rows of each class that get its label.
    """

    accuracy: float
    log_loss: float
    calibration_error: float
    accuracy_by_class: dict[str, float]


def splitter(y: NDArray[Any], *, test_size: float, cv: int | None, seed: int) -> Any:
    """One part held out, or each of `cv` parts in turn; in all of them classes as in the whole."""
    classes, counts = np.unique(y, return_counts=True)
    if classes.size < 2:
        raise ValueError(
            f"the target must hold at least two classes, got one class: {classes.tolist()[0]!r}."
        )
    needed = cv or 2
    if counts.min() < needed:
        label = classes.tolist()[int(counts.argmin())]
        raise ValueError(
            f"class {label!r} has {counts.min()} rows, fewer than the {needed} needed to hold some out."
        )
    if cv is not None:
        return StratifiedKFold(cv, shuffle=True, random_state=seed)
    return StratifiedShuffleSplit(1, test_size=test_size, random_state=seed)


@dataclass(frozen=True)
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
    """

    classes: NDArray[Any]
    truth: NDArray[Any]
    proba: Floats

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
            float(log_loss(self.truth, self.proba, labels=self.classes)),
            calibration_error(self.proba, np.searchsorted(self.classes, self.truth)),
            {
                str(label): float(np.mean(found[self.truth == label] == label))
                for label in np.unique(self.truth).tolist()
            },
        )


def held_out_predictions(
    classifiers: Mapping[str, Any], X: Any, y: NDArray[Any], split: Any, advance: Callable[[int], None]
) -> dict[str, HeldOut]:
    """Fit clones to the training part of every split and predict its held-out rows, by classifier.

    `advance` is called after each fit.
    """
    parts: dict[str, list[Floats]] = {name: [] for name in classifiers}
    right: list[NDArray[Any]] = []
    for train, test in split.split(np.empty(len(y)), y):
        right.append(y[test])
        for name, classifier in classifiers.items():
            fitted = clone(classifier).fit(X.iloc[train], y[train])
            parts[name].append(fitted.predict_proba(X.iloc[test]))
            advance(1)
    truth = np.concatenate(right)
    return {
        name: HeldOut(np.unique(y), truth, np.concatenate(of_splits)) for name, of_splits in parts.items()
    }


def calibration_error(proba: Floats, codes: NDArray[np.int64]) -> float:
    """Mean distance of confidence and accuracy over ten equal intervals of the label's probability."""
    confidence = proba.max(axis=1)
    hits = proba.argmax(axis=1) == codes
    bins = np.minimum((confidence * _N_BINS).astype(np.int64), _N_BINS - 1)
    gaps = np.bincount(bins, hits - confidence, minlength=_N_BINS)
    return float(np.abs(gaps).sum() / len(proba))
