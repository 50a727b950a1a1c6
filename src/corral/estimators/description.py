"""Description: what `describe` returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Bools, Floats, Integers
from corral.estimators.encoding import with_names_of_levels
from corral.estimators.html import html_table
from corral.estimators.validation import feature_names, import_pandas
from corral.markers.contrast import FEW_VALUES, Contrast
from corral.sentences.classes import NO_MARKER, class_lines, difference, often_missing
from corral.sentences.numbers import exact_text, value_text
from corral.sentences.rows import NO_EVIDENCE

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Description:
    """What marks each class, as returned by `describe`.

    A class is compared, variable by variable, with its *background*: the rows of those other classes that
    cannot be told from each other in the variable, if they are more than half of the classes, else all other
    rows. Arrays have the shape (n_classes, n_features) unless another one is given.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels.
    feature_names : list of str
        Names of the variables.
    markers : ndarray of bool
        Which variables mark the class.
    direction : ndarray of str
        "high" or "low"; "narrow" or "wide" where the values of the class lie closer together or further
        apart; "shape" where they differ otherwise, as by two modes, or where medians or quartiles contradict
        the other words; a value and "more often", as in ``"= 1 more often"``, where a variable has few values
        and the middle ones are equal, or two values only; a level in quotes and "more often" or "less often";
        "" where nothing is known.
    effect : ndarray
        From -1 to 1: for "high" and "low" Cliff's delta, P(class > background) - P(class < background); for
        other directions its counterpart, negative for "narrow".
    pvalue : ndarray
        Probability of a difference like this by chance, times the number of variables. There is no adjustment
        for the number of classes.
    typical, background : ndarray
        Medians in the class and in its background, or numbers of the most frequent levels; NaN for a class
        without rows.
    evidence : ndarray or None
        Mean leave-one-out evidence for the class at its own rows, over the most probable other class (natural
        logarithms, as in `Explanation`): what the labels rest on. It adds up to the mean log odds, but for
        the priors. None where there is no model that predicts.
    order : ndarray of int
        Numbers of the variables, markers first, then by the size of the effect.
    typical_range, background_range : ndarray of shape (2, n_classes, n_features)
        Lower and upper quartiles.
    value : ndarray
        The value whose share in the class exceeds that in the background by most.
    shares : ndarray of shape (2, n_classes, n_features)
        These two shares.
    levels : sequence
        For each variable its levels, or None for measurements.
    often_missing : ndarray of bool
        Whether the class lacks a value more or less often than its background, by the same test and at the
        same level.
    missing_shares : ndarray of shape (2, n_classes, n_features)
        How often the class lacks one, and how often its background.

    See Also
    --------
    corral.CorralClassifier.describe : Makes it.
    corral.RelevanceDisplay : Draws it.

    Examples
    --------
    >>> from corral import MarkerSelector
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> description = MarkerSelector().fit(X, y).describe()
    >>> description.to_frame().loc[0, ["variable", "direction"]].tolist()
    ['petal length (cm)', 'low']
    """

    classes: NDArray[Any]
    feature_names: list[str]
    markers: Bools
    direction: NDArray[np.object_]
    effect: Floats
    pvalue: Floats
    typical: Floats
    background: Floats
    evidence: Floats | None
    order: Integers
    typical_range: Floats
    background_range: Floats
    value: Floats
    shares: Floats
    levels: Sequence[list[Any] | None]
    often_missing: Bools
    missing_shares: Floats

    def value_text(self, variable: int, value: float) -> str:
        """Write a value of a variable: a number, or the name of a level."""
        levels = self.levels[variable]
        if levels is None or np.isnan(value):
            return value_text(value)
        return str(levels[int(value)])

    def phrase(self, label_number: int, variable: int) -> str:
        """Say how a class differs in a variable, as in "petal length low (1.5; others 4.9)".

        Of a level it says ``island = "Dream" more often (55%; others 34%)``.
        """
        a, j = label_number, variable
        return difference(
            self.feature_names[j],
            self.direction[a, j],
            (self.typical[a, j], self.background[a, j]),
            (self.typical_range[:, a, j].tolist(), self.background_range[:, a, j].tolist()),
            self.value[a, j],
            self.shares[:, a, j].tolist(),
        )

    def also_rests_on(self, label_number: int) -> list[int]:
        """List variables that do not mark a class by themselves, but that its labels rest on.

        These are variables that tell the class from one of many others, or only together with others: not
        markers, but with an evidence of at least 0.5, and of at least a quarter of the largest.

        Parameters
        ----------
        label_number : int
            Position of the class in `classes`.

        Returns
        -------
        variables : list of int
            At most three, strongest first.
        """
        if self.evidence is None:
            return []
        evidence = self.evidence[label_number]
        enough = (evidence >= max(0.5, 0.25 * evidence.max())) & ~self.markers[label_number]
        strongest = np.argsort(-evidence, kind="stable")
        return [int(j) for j in strongest[enough[strongest]][:3]]

    def adds_nothing(self) -> list[int]:
        """List variables that describe no class and carry no evidence on average over the rows of any.

        Their mean evidence is below 0.05 in each class. In single rows they may still count, since evidence
        depends on the other values.

        Returns
        -------
        variables : list of int
            In the order of the columns; empty where there is no model that predicts.
        """
        if self.evidence is None:
            return []
        used = self.markers | self.often_missing | (np.abs(self.evidence) >= NO_EVIDENCE)
        return np.flatnonzero(~used.any(axis=0)).tolist()

    def missing_phrases(self, label_number: int) -> list[str]:
        """Say which variables a class lacks more or less often than its background."""
        return [
            often_missing(self.feature_names[j], *self.missing_shares[:, label_number, j])
            for j in np.flatnonzero(self.often_missing[label_number])
        ]

    def markers_of(self, label_number: int) -> list[int]:
        """List the variables that mark a class, the strongest first."""
        n_markers = int(self.markers[label_number].sum())
        return [int(j) for j in self.order[label_number, :n_markers]]

    def lines(self, label_number: int) -> list[str]:
        """Say what marks a class: its first markers, values that it lacks, what its labels also rest on."""
        return class_lines(
            [self.phrase(label_number, j) for j in self.markers_of(label_number)],
            self.missing_phrases(label_number),
            [self.feature_names[j] for j in self.also_rests_on(label_number)],
        )

    def to_frame(self) -> pd.DataFrame:
        """One line per class and variable, strongest first within a class (needs pandas).

        Where values are missing, `missing` and `background_missing` are the shares of rows that lack one, and
        `often_missing` tells whether they differ by more than chance and not negligibly.
        """
        pd = import_pandas()

        d = len(self.feature_names)
        columns = ("direction", "effect", "pvalue", "typical", "background", "evidence")
        named: dict[str, Any] = {"marker": self.markers}
        named |= {name: getattr(self, name) for name in columns if getattr(self, name) is not None}
        for name in ("typical", "background"):
            named[name] = with_names_of_levels(named[name], self.levels)
        if self.missing_shares.any():
            named["missing"], named["background_missing"] = self.missing_shares
            named["often_missing"] = self.often_missing
        return pd.DataFrame(
            {
                "class": np.repeat(self.classes, d),
                "variable": np.array(self.feature_names, dtype=object)[self.order].ravel(),
                **{name: np.take_along_axis(of, self.order, axis=1).ravel() for name, of in named.items()},
            }
        )

    def __repr__(self) -> str:
        return "\n".join(
            f"{label}: {', '.join(self.lines(a))}" for a, label in enumerate(self.classes.tolist())
        )

    def _repr_html_(self) -> str:
        """Show a table of the markers in notebooks."""
        lines = []
        for a, label in enumerate(self.classes.tolist()):
            markers = self.markers_of(a)
            numbers = [(f"{self.effect[a, j]:+.2f}", f"{self.pvalue[a, j]:.1g}") for j in markers]
            marked = [(self.phrase(a, j), *each) for j, each in zip(markers, numbers, strict=True)]
            lines += [(str(label), *each) for each in marked or [(NO_MARKER, "", "")]]
        return html_table(("class", "what marks it", "effect", "p-value"), lines)


def kind_of_direction(direction: str) -> str:
    """What gives a difference its colour and mark: a word, or "more often" for all other differences."""
    if direction in ("", "high", "low", "wide", "narrow"):
        return direction
    return "less often" if direction.endswith(" less often") else "more often"


def class_description(
    estimator: Any, contrast: Contrast, missing: Contrast | None, evidence: Floats | None = None
) -> Description:
    """Put together how classes differ, also in what is missing, and what their labels rest on."""
    markers, levels = contrast.markers, estimator.encoding_.names_of_levels()
    return Description(
        classes=estimator.classes_,
        feature_names=feature_names(estimator),
        markers=markers,
        direction=_directions(contrast, levels),
        effect=contrast.effect,
        pvalue=contrast.pvalue,
        typical=contrast.typical,
        background=contrast.background_typical,
        evidence=evidence,
        # Equal effects, as of variables that separate classes, are put in order by significance.
        order=np.lexsort((-np.abs(contrast.statistic), -np.abs(contrast.effect), ~markers), axis=1),
        typical_range=contrast.quartiles,
        background_range=contrast.background_quartiles,
        value=contrast.value,
        shares=np.stack([contrast.share, contrast.background_share]),
        levels=levels,
        often_missing=np.zeros_like(markers) if missing is None else missing.markers,
        missing_shares=np.zeros((2, *markers.shape)) if missing is None else missing.shares_of_ones(),
    )


def _directions(contrast: Contrast, levels: Sequence[list[Any] | None]) -> NDArray[np.object_]:
    """Directions in words, or which value is more frequent where there are few values."""
    direction: NDArray[np.object_] = contrast.direction.astype(object)
    same_middle = contrast.typical == contrast.background_typical
    few = contrast.n_values <= FEW_VALUES
    by_value = (contrast.n_values == 2) | (few & (same_middle | (contrast.direction == "shape")))
    by_value |= np.array([of_column is not None for of_column in levels])
    for a, j in np.argwhere(by_value & (contrast.direction != "")).tolist():
        of_column = levels[j]
        if of_column is None:
            direction[a, j] = f"= {exact_text(contrast.value[a, j])} more often"
        else:
            often = "more" if contrast.effect[a, j] > 0.0 else "less"
            direction[a, j] = f'= "{of_column[int(contrast.value[a, j])]}" {often} often'
    return direction
