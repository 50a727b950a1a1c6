"""Description: the result of `describe`, which stores and prints what marks each class.

A marker is a variable in which a class differs significantly from its background, which is the other classes
that are alike in this variable. Evidence is a change of log odds; see `Explanation`.
"""

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

    The markers of a class are found by tests against its *background*: the rows of the other classes that do
    not differ significantly in the variable, usually more than half of the classes, or, if there are no such
    classes, all other rows. The numbers are computed for the class, for *all other rows* (of all other
    classes), and for the background. They are medians and quartiles as in numpy and pandas, and shares of
    rows, weighted if `fit` had sample weights. Missing values are left out. Arrays have the shape (n_classes,
    n_features) unless another shape is given.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels, sorted.
    feature_names : list of str
        Names of the variables.
    markers : ndarray of bool
        Which variables mark the class.
    direction : ndarray of str
        How the class differs from all other rows. "high" or "low": its values are higher or lower. "narrow"
        or "wide": its values lie closer together or further apart. A value, a range of values or a category
        in quotes, followed by "more often" or "less often", as in ``"= 1 more often"``: its share differs.
        "": there is no clear difference.
    effect : ndarray
        How well the variable separates the class from all other rows, from -1 to 1. For "high" and "low" it
        is Cliff's delta, P(class > others) - P(class < others), which equals 2 AUC - 1 with the area under
        the ROC curve AUC. For "narrow" (negative) and "wide" it is Cliff's delta of the distances from the
        median of all rows, in ranks. For "more often" and "less often" it is the difference of the shares.
    pvalue : ndarray
        P-value of the test against the background, multiplied by the number of variables. It is not adjusted
        for the number of classes.
    typical, others, background : ndarray
        Medians in the class, in all other rows and in the background. For categories the position in
        `categories` of the most frequent category. NaN for a class without rows.
    evidence : ndarray or None
        Mean leave-one-out evidence for the class at its own rows, against the most probable other class, in
        natural logarithms; see `Explanation`. Log odds of the priors and evidence of all variables add up to
        the mean log odds. None for a `MarkerSelector`, which does not predict.
    order : ndarray of int
        Positions of the variables: markers first, then other variables, each by decreasing size of the
        effect.
    typical_range, others_range, background_range : ndarray of shape (2, n_classes, n_features)
        Lower and upper quartiles in the class, in all other rows and in the background; NaN for categories.
    shares : ndarray of shape (3, n_classes, n_features)
        Share of rows with the value, range or category in `direction`, in the class, in all other rows and in
        the background; NaN if `direction` is not "more often" or "less often".
    background_classes : ndarray of int
        Number of other classes in the background; 0 if all other rows are the background.
    categories : sequence
        For each variable the list of its categories, or None for measurements.
    often_missing : ndarray of bool
        Whether values are missing more or less often in the class than in its background, significantly and
        not negligibly.
    missing_shares : ndarray of shape (3, n_classes, n_features)
        Share of missing values in the class, in all other rows and in the background.
    missing_background_classes : ndarray of int
        As `background_classes`, for the test of missing values.

    See Also
    --------
    corral.CorralClassifier.describe : Returns a Description.
    corral.RelevanceDisplay : Draws the markers.

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
        """Write a value of a variable as text.

        Parameters
        ----------
        variable : int
            Position of the variable.
        value : float
            A number or, for a variable with categories, the position of a category.

        Returns
        -------
        text : str
            The number, or the name of the category.
        """
        categories = self.categories[variable]
        if categories is None or np.isnan(value):
            return value_text(value)
        return str(categories[int(value)])

    def phrase(self, label_number: int, variable: int) -> str:
        """Write how a class differs from all other rows in a variable.

        Parameters
        ----------
        label_number : int
            Position of the class in `classes`.
        variable : int
            Position of the variable.

        Returns
        -------
        phrase : str
            For example ``petal length low (1.5; others 4.9)`` or, for a category,
            ``island = "Dream" more often (55%; others 34%)``. "others" are all other rows.
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
        """Number of classes with rows, less one: the class that is described."""
        return int(np.isfinite(self.typical).any(axis=1).sum()) - 1

    def also_rests_on(self, label_number: int) -> list[int]:
        """List variables that are not markers of a class, but have much evidence for it.

        Such a variable separates the class from one of many other classes, or only together with other
        variables.

        Parameters
        ----------
        label_number : int
            Position of the class in `classes`.

        Returns
        -------
        variables : list of int
            Positions of at most three variables, the largest mean evidence first. The mean evidence of each
            is at least 0.5, and at least a quarter of the largest mean evidence for the class. The list is
            empty for a `MarkerSelector`.
        """
        if self.evidence is None:
            return []
        evidence = self.evidence[label_number]
        enough = (evidence >= max(0.5, 0.25 * evidence.max())) & ~self.markers[label_number]
        strongest = np.argsort(-evidence, kind="stable")
        return [int(j) for j in strongest[enough[strongest]][:3]]

    @property
    def has_values(self) -> Bools:
        """Whether a variable (n_features,) has a value in any training row; if not, it is ignored."""
        has_values: Bools = np.asarray(np.isfinite(self.typical).any(axis=0))
        return has_values

    def adds_nothing(self) -> list[int]:
        """List variables that mark no class and have nearly no mean evidence for any class.

        Returns
        -------
        variables : list of int
            Positions of variables that have values, mark no class, also not by missing values, and whose mean
            evidence is between -0.05 and 0.05 for all classes. They may still have evidence in single rows.
            The list is empty for a `MarkerSelector`.
        """
        if self.evidence is None:
            return []
        used = self.markers | self.often_missing | (np.abs(self.evidence) >= NO_EVIDENCE)
        return np.flatnonzero(~used.any(axis=0) & self.has_values).tolist()

    def missing_phrases(self, label_number: int) -> list[str]:
        """Write which variables are missing more or less often in a class, the largest difference first.

        Parameters
        ----------
        label_number : int
            Position of the class in `classes`.

        Returns
        -------
        phrases : list of str
            One phrase per variable in `often_missing`.
        """
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
        """List the variables that mark a class.

        Parameters
        ----------
        label_number : int
            Position of the class in `classes`.

        Returns
        -------
        variables : list of int
            Positions of the variables, the largest effect first.
        """
        n_markers = int(self.markers[label_number].sum())
        return [int(j) for j in self.order[label_number, :n_markers]]

    def leading_markers(self, label_number: int) -> list[int]:
        """List the strongest markers of a class.

        Parameters
        ----------
        label_number : int
            Position of the class in `classes`.

        Returns
        -------
        variables : list of int
            Positions of at most four markers, the largest effect first. Each effect is at least a third of
            the largest.
        """
        sizes = np.abs(self.effect[label_number])
        markers = self.markers_of(label_number)[:MOST_PHRASES]
        return [j for j in markers if sizes[j] >= LEAST_PART * sizes[markers[0]]]

    def lines(self, label_number: int) -> list[str]:
        """Write what marks a class.

        Parameters
        ----------
        label_number : int
            Position of the class in `classes`.

        Returns
        -------
        lines : list of str
            Phrases about `leading_markers`, the number of other markers, missing values, and the variables in
            `also_rests_on`.
        """
        leading = self.leading_markers(label_number)
        return class_lines(
            [self.phrase(label_number, j) for j in leading],
            int(self.markers[label_number].sum()) - len(leading),
            self.missing_phrases(label_number),
            self._also_named(label_number),
        )

    def lines_beside_others(self, label_number: int) -> list[str]:
        """Write what marks a class, for a list of all classes.

        If there are two classes with the same markers in opposite directions, the first class refers to the
        second. Otherwise the result equals `lines`.

        Parameters
        ----------
        label_number : int
            Position of the class in `classes`.

        Returns
        -------
        lines : list of str
            Phrases about the class.
        """
        if label_number or not self._is_mirrored():
            return self.lines(label_number)
        return mirrored_lines(str(self.classes[1]), self._also_named(0))

    def _also_named(self, label_number: int) -> list[str]:
        return [self.feature_names[j] for j in self.also_rests_on(label_number)]

    def _is_mirrored(self) -> bool:
        """Test whether there are two classes with the same markers in opposite directions."""
        if len(self.classes) != 2:
            return False
        pairs = (self.markers, self.often_missing)
        same = all(np.array_equal(first, second) for first, second in pairs)
        markers = self.markers_of(0)
        return same and bool(markers) and all(self._is_mirrored_in(j) for j in markers)

    def _is_mirrored_in(self, variable: int) -> bool:
        """Test whether the directions of two classes are opposites.

        They also are if one value is more frequent in the first class, and all other values in the second.
        """
        own, other = self.direction[:, variable].tolist()
        in_class, in_others = self.shares[:2, :, variable]  # NaN unless "more often" or "less often"
        return opposite_direction(own) == other or np.allclose(in_class + in_others[::-1], 1.0)

    def to_frame(self) -> pd.DataFrame:
        """Make a pandas frame with one row per class and variable.

        Returns
        -------
        frame : DataFrame
            Within a class, variables are in the `order` of the attribute: markers first. The columns are
            attributes of the description. "typical", "others" and "background" are medians or the names of
            the most frequent categories. "lower_quartile", "upper_quartile" and "share" belong to the class;
            with the prefix ``others_`` they belong to all other rows, and with ``background_`` to the
            background. If any value is missing, "missing" with the same prefixes is the share of missing
            values, and there is a column "often_missing".
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
        """Make the columns of `to_frame`, each of the shape (n_classes, n_features)."""
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
        """Make the HTML table of the leading markers that notebooks show."""
        lines = []
        for a, label in enumerate(self.classes.tolist()):
            texts = self.lines_beside_others(a)
            leading = self.leading_markers(a) if texts == self.lines(a) else []
            numbers = [(f"{self.effect[a, j]:+.2f}", f"{self.pvalue[a, j]:.1g}") for j in leading]
            pairs = zip_longest(texts, numbers, fillvalue=("", ""))
            lines += [(str(label), str(text), *each) for text, each in pairs]
        return html_table(("class", "what marks it", "effect", "p-value"), lines) + html_lines([RANKING])


def opposite_direction(direction: str) -> str:
    """Return the opposite of a direction, such as "low" for "high"."""
    begin, _, word = direction.removesuffix(" often").rpartition(" ")
    ending = " often" if direction.endswith(" often") else ""
    return f"{begin}{' ' * bool(begin)}{_OPPOSITES.get(word, word)}{ending}"


def kind_of_direction(direction: str) -> str:
    """Return the kind of a direction, for its color: the direction without the value, range or category."""
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
    """Make the description of a fitted estimator.

    `contrast` has the tests of values, `missing` the tests of missing values (None if no value is missing),
    `comparison` the numbers, and `evidence` (n_classes, n_features) the mean evidence.
    """
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
        # Equal effects, for example of variables that separate classes completely, are in order of
        # significance.
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
    """Write the directions (n_classes, n_features), with the category or range if its share differs."""
    direction: NDArray[np.object_] = comparison.direction.astype(object)
    for a, j in np.argwhere(np.char.endswith(comparison.direction, "often")).tolist():
        names, (low, high) = categories[j], comparison.bounds[:, a, j].tolist()
        category = None if names is None else str(names[int(low)])
        direction[a, j] = frequency_words(low, high, direction[a, j], category, int(comparison.n_alike[a, j]))
    return direction
