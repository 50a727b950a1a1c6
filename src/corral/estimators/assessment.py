"""Assessment: what `assess` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from corral.array_types import Bools, Floats
from corral.estimators.html import html_lines, html_table
from corral.sentences.numbers import counted
from corral.sentences.rows import assessed_row, set_text
from corral.sentences.tables import number_of_novel_rows

if TYPE_CHECKING:
    import pandas as pd

# Rows that are shown, in a terminal and in a notebook.
_MOST_PRINTED = 5
_MOST_IN_NOTEBOOKS = 20


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """Probabilities, typicality, novelty and prediction sets of samples.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels.
    proba : ndarray of shape (n_samples, n_classes)
        Probabilities, as `predict_proba` returns them.
    scores : ndarray of shape (n_samples, n_classes)
        Scores whose p-value is the typicality: about 0 at a typical row of a class, lower at other rows. The
        nearest class has the highest score; novelty is the p-value of this score.
    typicality : ndarray of shape (n_samples, n_classes)
        As `typicality` returns it.
    novelty : ndarray of shape (n_samples,)
        Share of the training rows that are at most as typical at their best class, the sample counted among
        them. It is interpolated between scores of these rows, and depends on the margin below the lowest.
    is_novel : ndarray of shape (n_samples,), bool
        As `is_novel` returns it, at the default level: whether `novelty` is at most 0.01.
    sets : ndarray of shape (n_samples, n_classes), bool
        As `predict_set` returns them.
    coverage : float
        Coverage of the sets.
    index : Index or None
        Index of a pandas frame; None numbers the samples.

    See Also
    --------
    corral.CorralClassifier.assess : Makes it.

    Examples
    --------
    >>> from corral import CorralClassifier
    >>> from sklearn.datasets import load_iris
    >>> iris = load_iris(as_frame=True)
    >>> X, y = iris.data, iris.target_names[iris.target]
    >>> assessment = CorralClassifier(random_state=0).fit(X[::2], y[::2]).assess(X[1::2])
    >>> assessment.to_frame().loc[[1, 119], ["label", "p_virginica", "novel", "set"]].round(2)
              label  p_virginica  novel                      set
    1        setosa         0.00  False                (setosa,)
    119  versicolor         0.22  False  (versicolor, virginica)
    """

    classes: NDArray[Any]
    proba: Floats
    scores: Floats
    typicality: Floats
    novelty: Floats
    is_novel: Bools
    sets: Bools
    coverage: float
    index: Any

    def __len__(self) -> int:
        return len(self.proba)

    @property
    def label(self) -> NDArray[Any]:
        """Most probable class (n_samples,) of each sample."""
        labels: NDArray[Any] = self.classes[self.proba.argmax(axis=1)]
        return labels

    @property
    def nearest_typicality(self) -> Floats:
        """Typicality (n_samples,) of the class nearest to each sample, the one with the highest score."""
        nearest: Floats = self.typicality[range(len(self)), self.scores.argmax(axis=1)]
        return nearest

    def to_frame(self) -> pd.DataFrame:
        """One line per sample (needs pandas), with the index of the samples.

        The columns are "label", "p_CLASS" for each class, "typicality" (of the nearest class), "novelty",
        "novel", and "set" (a tuple of labels).
        """
        import pandas as pd

        columns: dict[str, Any] = probability_columns(self.classes, self.proba)
        columns["typicality"] = self.nearest_typicality
        columns |= {"novelty": self.novelty, "novel": self.is_novel}
        frame = pd.DataFrame(columns, index=range(len(self)) if self.index is None else self.index)
        frame["set"] = [tuple(labels) for labels in self._sets(len(self))]
        return frame

    def _sets(self, n_rows: int) -> list[list[Any]]:
        """Labels in the sets of the first samples."""
        return [self.classes[labels].tolist() for labels in self.sets[:n_rows]]

    def __repr__(self) -> str:
        lines = [f"  {assessed_row(name, *cells)}" for name, *cells in self._cells(_MOST_PRINTED)]
        return "\n".join([self._heading(), *lines, *self._more(_MOST_PRINTED)])

    def _repr_html_(self) -> str:
        """Show a table of the first samples in notebooks."""
        heads = ("row", "label", "probability", "typicality", "novel", f"set with coverage {self.coverage:g}")
        lines = [
            (name, str(label), f"{probability:.2f}", f"{typicality:.2f}", "novel" * novel, set_text(labels))
            for name, label, probability, typicality, novel, labels in self._cells(_MOST_IN_NOTEBOOKS)
        ]
        return (
            html_lines([self._heading()])
            + html_table(heads, lines)
            + html_lines(self._more(_MOST_IN_NOTEBOOKS))
        )

    def _heading(self) -> str:
        return f"Assessment of {counted(len(self), 'row')}: {number_of_novel_rows(int(self.is_novel.sum()))}"

    def _cells(self, most: int) -> list[tuple[str, Any, float, float, bool, list[Any]]]:
        """Name, label, its probability, typicality, novelty and set of the first samples."""
        names = [str(name) for name in (range(len(self)) if self.index is None else self.index[:most])]
        columns = (self.label, self.proba.max(axis=1), self.nearest_typicality, self.is_novel)
        cells = (column[:most].tolist() for column in columns)
        return list(zip(names[:most], *cells, self._sets(most), strict=True))

    def _more(self, shown: int) -> list[str]:
        """Say how many samples are not shown."""
        return [f"... and {counted(len(self) - shown, 'more row')}"] if shown < len(self) else []


def probability_columns(classes: NDArray[Any], proba: Floats) -> dict[str, Any]:
    """Columns of a table: the label of each row, and the probabilities (n_rows, n_classes) of the classes."""
    columns = {f"p_{label}": column for label, column in zip(classes.tolist(), proba.T, strict=True)}
    return {"label": classes[proba.argmax(axis=1)], **columns}
