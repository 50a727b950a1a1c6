"""Description: what `describe` returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corral.array_types import Bools, Floats, Integers
from corral.estimators.encoding import with_category_names
from corral.estimators.html import html_lines, html_table
from corral.estimators.validation import feature_names, import_pandas
from corral.markers.comparison import Comparison, background_sizes
from corral.markers.contrast import Contrast
from corral.sentences.classes import (
    LEAST_PART,
    MOST_PHRASES,
    RANKING,
    class_lines,
    difference,
    frequency_words,
    mirrored_lines,
    often_missing,
)
from corral.sentences.numbers import value_text
from corral.sentences.rows import NO_EVIDENCE

if TYPE_CHECKING:
    import pandas as pd

_OPPOSITES = {"high": "low", "narrow": "wide", "more": "less"}
_OPPOSITES |= {other: word for word, other in _OPPOSITES.items()}


@dataclass(frozen=True, eq=False, repr=False)
class Description:
    """What marks each class, as returned by `describe`.

    A test against the *background* decides which variables mark a class. The background is the rows of the
    other classes that do not differ significantly in the variable, if they are more than half of the classes,
    else all other rows. Numbers of a class are compared with the numbers of all other rows, and of the
    background where it is not all of them: medians and quartiles as in numpy and pandas, and shares of rows,
    weighted if `fit` was given sample weights. Missing values do not count. Arrays have the shape (n_classes,
    n_features) unless another one is given.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels.
    feature_names : list of str
        Names of the variables.
    markers : ndarray of bool
        Which variables mark the class.
    direction : ndarray of str
        How the class differs from all other rows: "high" or "low"; "narrow" or "wide" where its values lie
        closer together or further apart; a value, a category in quotes, or a range of values, and "more
        often" or "less often", as in ``"= 1 more often"``; "" where there is no clear difference.
    effect : ndarray
        How well the variable separates the class from all other rows, from -1 to 1. For "high" and "low" it
        is Cliff's delta, P(class > others) - P(class < others), which is twice the area under the ROC curve
        less 1; for "narrow" (negative) and "wide" Cliff's delta of the distances from the median of all rows,
        in ranks; for "more often" and "less often" the difference of the shares.
    pvalue : ndarray
        Probability of such a difference from the background by chance, times the number of variables. There
        is no adjustment for the number of classes.
    typical, others, background : ndarray
        Medians in the class, in all other rows and in the background, or numbers of the most frequent
        categories; NaN for a class without rows.
    evidence : ndarray or None
        Mean leave-one-out evidence for the class at its own rows, over the most probable other class (natural
        logarithms, as in `Explanation`). With the log odds of the priors it adds up to the mean log odds.
        None for a `MarkerSelector`, which does not predict.
    order : ndarray of int
        Numbers of the variables, markers first, then by the size of the effect.
    typical_range, others_range, background_range : ndarray of shape (2, n_classes, n_features)
        Lower and upper quartiles; NaN for categories.
    shares : ndarray of shape (3, n_classes, n_features)
        Shares of the value, category or range that `direction` names, in the class, in all other rows and in
        the background; NaN for other directions.
    background_classes : ndarray of int
        How many other classes are the background; 0 where all of them are.
    categories : sequence
        For each variable its categories, or None for measurements.
    often_missing : ndarray of bool
        Whether values of the class are missing more or less often than in its background, by the same test.
    missing_shares : ndarray of shape (3, n_classes, n_features)
        How often a value is missing in the class, in all other rows and in the background.
    missing_background_classes : ndarray of int
        As `background_classes`, for missing values.

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
    others: Floats
    background: Floats
    evidence: Floats | None
    order: Integers
    typical_range: Floats
    others_range: Floats
    background_range: Floats
    shares: Floats
    background_classes: Integers
    categories: Sequence[list[Any] | None]
    often_missing: Bools
    missing_shares: Floats
    missing_background_classes: Integers

    def value_text(self, variable: int, value: float) -> str:
        """Write a value of a variable: a number, or the name of a category."""
        categories = self.categories[variable]
        if categories is None or np.isnan(value):
            return value_text(value)
        return str(categories[int(value)])

    def phrase(self, label_number: int, variable: int) -> str:
        """Say how a class differs in a variable, as in "petal length low (1.5; others 4.9)".

        For a category: ``island = "Dream" more often (55%; others 34%)``. Others are all other rows.
        """
        a, j = label_number, variable
        ranges = (self.typical_range, self.others_range, self.background_range)
        return difference(
            self.feature_names[j],
            self.direction[a, j],
            [each[a, j] for each in (self.typical, self.others, self.background)],
            [each[:, a, j].tolist() for each in ranges],
            self.shares[:, a, j].tolist(),
            int(self.background_classes[a, j]),
            self._n_others,
        )

    @property
    def _n_others(self) -> int:
        """Number of other classes that have rows."""
        return int(np.isfinite(self.typical).any(axis=1).sum()) - 1

    def also_rests_on(self, label_number: int) -> list[int]:
        """List variables that do not mark a class by themselves, but that its labels rest on.

        These are at most three variables, the strongest first. They are not markers, but have an evidence of
        at least 0.5 and of at least a quarter of the largest: they separate the class from one of many
        others, or only together with other variables.
        """
        if self.evidence is None:
            return []
        evidence = self.evidence[label_number]
        enough = (evidence >= max(0.5, 0.25 * evidence.max())) & ~self.markers[label_number]
        strongest = np.argsort(-evidence, kind="stable")
        return [int(j) for j in strongest[enough[strongest]][:3]]

    @property
    def has_values(self) -> Bools:
        """Which variables (n_features,) have a value in some training row; the others are ignored."""
        has_values: Bools = np.asarray(np.isfinite(self.typical).any(axis=0))
        return has_values

    def adds_nothing(self) -> list[int]:
        """List variables that mark no class and have a mean evidence below 0.05 in each class.

        In single rows they may still matter, since evidence depends on the other values. The list is empty
        for a `MarkerSelector`.
        """
        if self.evidence is None:
            return []
        used = self.markers | self.often_missing | (np.abs(self.evidence) >= NO_EVIDENCE)
        return np.flatnonzero(~used.any(axis=0) & self.has_values).tolist()

    def missing_phrases(self, label_number: int) -> list[str]:
        """Say which variables are missing more or less often in a class, the largest difference first."""
        a, shares = label_number, self.missing_shares[:, label_number]
        order = np.argsort(-np.abs(shares[0] - shares[1]), kind="stable")
        return [
            often_missing(
                self.feature_names[j],
                shares[:, j].tolist(),
                int(self.missing_background_classes[a, j]),
                self._n_others,
            )
            for j in order[self.often_missing[a, order]]
        ]

    def markers_of(self, label_number: int) -> list[int]:
        """List the variables that mark a class, the strongest first."""
        n_markers = int(self.markers[label_number].sum())
        return [int(j) for j in self.order[label_number, :n_markers]]

    def leading_markers(self, label_number: int) -> list[int]:
        """List at most four markers, strongest first, with an effect of at least a third of the largest."""
        sizes = np.abs(self.effect[label_number])
        markers = self.markers_of(label_number)[:MOST_PHRASES]
        return [j for j in markers if sizes[j] >= LEAST_PART * sizes[markers[0]]]

    def lines(self, label_number: int) -> list[str]:
        """Say what marks a class: leading markers, missing values, variables that its labels also rest on."""
        leading = self.leading_markers(label_number)
        return class_lines(
            [self.phrase(label_number, j) for j in leading],
            int(self.markers[label_number].sum()) - len(leading),
            self.missing_phrases(label_number),
            self._also_named(label_number),
        )

    def lines_beside_others(self, label_number: int) -> list[str]:
        """As `lines`, where all classes are shown; the first of two classes does not repeat the second."""
        if label_number or not self._is_mirrored():
            return self.lines(label_number)
        return mirrored_lines(str(self.classes[1]), self._also_named(0))

    def _also_named(self, label_number: int) -> list[str]:
        return [self.feature_names[j] for j in self.also_rests_on(label_number)]

    def _is_mirrored(self) -> bool:
        """Whether there are two classes with the same markers in opposite directions."""
        if len(self.classes) != 2:
            return False
        pairs = (self.markers, self.often_missing)
        same = all(np.array_equal(first, second) for first, second in pairs)
        markers = self.markers_of(0)
        return same and bool(markers) and all(self._is_mirrored_in(j) for j in markers)

    def _is_mirrored_in(self, variable: int) -> bool:
        """Whether two classes differ in opposite directions, or have one of two values each."""
        own, other = self.direction[:, variable].tolist()
        in_class, in_others = self.shares[:2, :, variable]  # NaN where nothing is more or less often
        return opposite_direction(own) == other or np.allclose(in_class + in_others[::-1], 1.0)

    def to_frame(self) -> pd.DataFrame:
        """One line per class and variable, strongest first within a class (needs pandas).

        It has the numbers of the sentences. `typical`, `others` and `background` are medians or the most
        frequent categories of the class, of all other rows and of the background, which is
        `background_classes` other classes (0: all of them). `lower_quartile`, `upper_quartile` and `share`
        (of the value, category or range in `direction`) belong to the class; with the prefixes `others_` and
        `background_`, to the other two. If values are missing, `missing` with the same prefixes is the share
        of missing values, and `often_missing` says whether the class differs significantly and not
        negligibly.
        """
        pd = import_pandas()

        d = len(self.feature_names)
        named = {name: values for name, values in self._columns().items() if values is not None}
        return pd.DataFrame(
            {
                "class": np.repeat(self.classes, d),
                "variable": np.array(self.feature_names, dtype=object)[self.order].ravel(),
                **{
                    name: np.take_along_axis(each, self.order, axis=1).ravel() for name, each in named.items()
                },
            }
        )

    def _columns(self) -> dict[str, NDArray[Any] | None]:
        """Columns of the frame (n_classes, n_features)."""
        columns: dict[str, NDArray[Any] | None] = {
            "marker": self.markers,
            "direction": self.direction,
            "effect": self.effect,
            "pvalue": self.pvalue,
            "evidence": self.evidence,
        }
        names = ("typical", "others", "background")
        columns |= {name: with_category_names(getattr(self, name), self.categories) for name in names}
        columns["background_classes"] = self.background_classes
        for i, prefix in enumerate(("", "others_", "background_")):
            lower, upper = (self.typical_range, self.others_range, self.background_range)[i]
            columns |= {f"{prefix}lower_quartile": lower, f"{prefix}upper_quartile": upper}
            columns[f"{prefix}share"] = self.shares[i]
            if self.missing_shares.any():
                columns[f"{prefix}missing"] = self.missing_shares[i]
        return columns | ({"often_missing": self.often_missing} if self.missing_shares.any() else {})

    def __repr__(self) -> str:
        return "\n".join(
            f"{label}: {', '.join(self.lines_beside_others(a))}"
            for a, label in enumerate(self.classes.tolist())
        )

    def _repr_html_(self) -> str:
        """Show a table of the leading markers in notebooks."""
        lines = []
        for a, label in enumerate(self.classes.tolist()):
            texts = self.lines_beside_others(a)
            leading = self.leading_markers(a) if texts == self.lines(a) else []
            numbers = [(f"{self.effect[a, j]:+.2f}", f"{self.pvalue[a, j]:.1g}") for j in leading]
            pairs = zip_longest(texts, numbers, fillvalue=("", ""))
            lines += [(str(label), str(text), *each) for text, each in pairs]
        return html_table(("class", "what marks it", "effect", "p-value"), lines) + html_lines([RANKING])


def opposite_direction(direction: str) -> str:
    """The direction of the other one of two classes, such as "low" for "high"."""
    begin, _, word = direction.removesuffix(" often").rpartition(" ")
    ending = " often" if direction.endswith(" often") else ""
    return f"{begin}{' ' * bool(begin)}{_OPPOSITES.get(word, word)}{ending}"


def kind_of_direction(direction: str) -> str:
    """The kind of a direction, which sets its colour: a word, "more often" or "less often"."""
    if direction in ("", "high", "low", "wide", "narrow"):
        return direction
    return "less often" if direction.endswith(" less often") else "more often"


def class_description(
    estimator: Any,
    contrast: Contrast,
    comparison: Comparison,
    missing: Contrast | None,
    evidence: Floats | None = None,
) -> Description:
    """Make the description from the tests, the numbers and the evidence of the classes."""
    markers, categories = contrast.markers, estimator.encoding_.unordered_categories()
    effect, has_rows = comparison.effect, comparison.class_weights > 0.0
    typical, others, background = comparison.middles
    own_range, others_range, background_range = comparison.quartiles.swapaxes(0, 1)
    missing_background = np.ones_like(markers) if missing is None else missing.background
    return Description(
        classes=estimator.classes_,
        feature_names=feature_names(estimator),
        markers=markers,
        direction=_directions(comparison, categories),
        effect=effect,
        pvalue=contrast.pvalue,
        typical=typical,
        others=others,
        background=background,
        evidence=evidence,
        # Significance ranks equal effects, such as variables that separate classes completely.
        order=np.lexsort((-np.abs(contrast.statistic), -np.abs(effect), ~markers), axis=1),
        typical_range=own_range,
        others_range=others_range,
        background_range=background_range,
        shares=comparison.shares,
        background_classes=comparison.n_background,
        categories=categories,
        often_missing=np.zeros_like(markers) if missing is None else missing.markers,
        missing_shares=comparison.missing_shares(missing_background),
        missing_background_classes=background_sizes(missing_background, has_rows),
    )


def _directions(comparison: Comparison, categories: Sequence[list[Any] | None]) -> NDArray[np.object_]:
    """Directions (n_classes, n_features) in words, with the category or range that is more frequent."""
    direction: NDArray[np.object_] = comparison.direction.astype(object)
    for a, j in np.argwhere(np.char.endswith(comparison.direction, "often")).tolist():
        names, (low, high) = categories[j], comparison.bounds[:, a, j].tolist()
        category = None if names is None else str(names[int(low)])
        direction[a, j] = frequency_words(low, high, direction[a, j], category, int(comparison.n_alike[a, j]))
    return direction
