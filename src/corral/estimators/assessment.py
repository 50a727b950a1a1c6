"""Assessment: the result of `assess`, which stores and prints the numbers of each row."""

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

# Largest number of rows that are shown, in a terminal and in a notebook.
_MOST_PRINTED = 5
_MOST_IN_NOTEBOOKS = 20


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """Probabilities, typicality, novelty and prediction sets of new rows, the samples.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels, sorted.
    proba : ndarray of shape (n_samples, n_classes)
        Probabilities of the classes; see `predict_proba`.
    scores : ndarray of shape (n_samples, n_classes)
        Scores whose p-values are the typicality: about 0 at a typical row of a class, lower at other rows.
        The class with the highest score is the *nearest class* of a sample.
    typicality : ndarray of shape (n_samples, n_classes)
        P-values of the scores in each class; see `RodeoClassifier.typicality`.
    novelty : ndarray of shape (n_samples,)
        P-values of the scores of the nearest classes: the share of the training rows of all classes and the
        sample whose score in their nearest class is at most as high as the score of the sample. The share is
        interpolated between scores of training rows. If a sample has a lower score than all training rows,
        it depends on the difference.
    is_novel : ndarray of shape (n_samples,), bool
        Whether `novelty` is at most 0.01, the default level of `RodeoClassifier.is_novel`.
    sets : ndarray of shape (n_samples, n_classes), bool
        Which labels are in the prediction sets; see `RodeoClassifier.predict_set`.
    coverage : float
        Coverage of the prediction sets.
    index : Index or None
        Index of `X` if it is a pandas frame; None if the samples are identified by their positions.

    See Also
    --------
    corral.CorralClassifier.assess : Returns an Assessment.

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
        """Label (n_samples,) of the most probable class of each sample."""
        labels: NDArray[Any] = self.classes[self.proba.argmax(axis=1)]
        return labels

    @property
    def nearest_typicality(self) -> Floats:
        """Typicality (n_samples,) of each sample in its nearest class."""
        nearest: Floats = self.typicality[range(len(self)), self.scores.argmax(axis=1)]
        return nearest

    def to_frame(self) -> pd.DataFrame:
        """Make a pandas frame with one row per sample.

        Returns
        -------
        frame : DataFrame
            The columns are "label", "p_CLASS" for each class (its probability), "typicality" (in the nearest
            class), "novelty", "novel", and "set" (a tuple of labels). The index is the index of the samples.
        """
        import pandas as pd

        columns: dict[str, Any] = probability_columns(self.classes, self.proba)
        columns["typicality"] = self.nearest_typicality
        columns |= {"novelty": self.novelty, "novel": self.is_novel}
        frame = pd.DataFrame(columns, index=range(len(self)) if self.index is None else self.index)
        frame["set"] = [tuple(labels) for labels in self._sets(len(self))]
        return frame

    def _sets(self, n_rows: int) -> list[list[Any]]:
        """List the labels in the prediction sets of the first `n_rows` samples."""
        return [self.classes[labels].tolist() for labels in self.sets[:n_rows]]

    def __repr__(self) -> str:
        lines = [f"  {assessed_row(name, *cells)}" for name, *cells in self._cells(_MOST_PRINTED)]
        return "\n".join([self._heading(), *lines, *self._more(_MOST_PRINTED)])

    def _repr_html_(self) -> str:
        """Make the HTML table of the first samples that notebooks show."""
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
        """List name, label, its probability, typicality, novelty test and set of the first samples."""
        names = [str(name) for name in (range(len(self)) if self.index is None else self.index[:most])]
        columns = (self.label, self.proba.max(axis=1), self.nearest_typicality, self.is_novel)
        cells = (column[:most].tolist() for column in columns)
        return list(zip(names[:most], *cells, self._sets(most), strict=True))

    def _more(self, shown: int) -> list[str]:
        """Write how many samples are not shown; an empty list if all are shown."""
        return [f"... and {counted(len(self) - shown, 'more row')}"] if shown < len(self) else []


def probability_columns(classes: NDArray[Any], proba: Floats) -> dict[str, Any]:
    """Make the columns "label" and "p_CLASS" for each class from probabilities (n_rows, n_classes)."""
    columns = {f"p_{label}": column for label, column in zip(classes.tolist(), proba.T, strict=True)}
    return {"label": classes[proba.argmax(axis=1)], **columns}
