"""DensityClassifier: the methods that all classifiers by class densities share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from corral.array_types import Bools, Floats
from corral.data.dataset import LabelledRows, TrainingRows
from corral.data.subsample import random_rows
from corral.estimators.assessment import Assessment
from corral.estimators.base import ClassEstimator
from corral.estimators.collections import by_rows
from corral.estimators.decisions import check_costs, check_reject_cost, least_costly
from corral.estimators.description import Description, class_description
from corral.estimators.evaluated_rows import COVERAGE, NOVELTY_LEVEL, evaluate_rows
from corral.estimators.explanation import Explanation
from corral.estimators.validation import (
    check_integer,
    check_kind_of_labels,
    check_number,
    feature_names,
    index_name,
    refuse_groups_of_whole_classes,
    row_names,
    sort_rows,
    unchanged_by_errors,
)
from corral.estimators.warned import warn_of_shift
from corral.evidence.explanations import evidence_of_classes
from corral.markers.contrast import learn_contrast
from corral.model import LocalModel


class DensityClassifier(ClassifierMixin, ClassEstimator):
    """A classifier by class densities. All that it has learnt is in `model_`."""

    model_: LocalModel

    def __corral_validate__(self) -> None:
        """Refuse a model of another table; `load_model` calls it."""
        self._validate_columns(self.model_.n_features, self.model_.data.n_categories)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Add rows; `fit(A)` and then `partial_fit(B)` is the same as `fit` of A and B together.

        The rows are all kept, so this saves no memory or time over `fit`; their names are not. New categories
        are learnt, but refused where their order counts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Further training rows.
        y : array-like of shape (n_samples,)
            Their classes, new ones allowed, but not of another kind: text, numbers or booleans.
        classes : array-like of shape (n_classes,), default=None
            All classes to expect. A class without rows so far has density zero.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row matters, compared with all rows so far.
        groups : array-like of shape (n_samples,), default=None
            Which rows belong together; given for all parts or for none. Groups of different parts are
            different, and each class may lie in a single one.

        Returns
        -------
        self : estimator
        """
        with unchanged_by_errors(self):
            first = not hasattr(self, "model_")
            if not first and not self.model_.has_all_rows:
                raise ValueError(
                    f"partial_fit needs the {self.model_.n_rows} rows of the fit, of which the model has "
                    f"{len(self.model_.training.X)}: fit all rows together."
                )
            before = None if first else self.encoding_
            rows = self._check_rows(X, y, sample_weight, groups, reset=first)
            self._name_rows(None)
            expected = None
            if classes is not None:
                expected = np.unique(classes)
                check_kind_of_labels(rows.y, expected, "`classes` holds")
                unknown = np.setdiff1d(rows.y, expected)
                if unknown.size:
                    raise ValueError(f"y holds the class {unknown.tolist()[0]!r}, which is not in classes.")
            if before is not None:
                training = self.model_.training
                if (groups is None) != (training.groups is None):
                    raise ValueError("groups must be given for all parts of the rows, or for none.")
                check_kind_of_labels(rows.y, self.classes_, "the classes so far are")
                expected = self.classes_ if expected is None else np.union1d(self.classes_, expected)
                recoded = before.recoded(training.X, self.encoding_)  # with the categories of the new rows
                rows = training._replace(X=recoded, n_categories=self.encoding_.counts).extended(rows)
            return self._learn(rows, sort_rows(rows, expected))

    @by_rows()
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most probable class (n_samples,) of each row of `X`."""
        log_proba = self.predict_log_proba(X)  # first: it refuses an estimator without classes
        labels: NDArray[Any] = self.classes_[log_proba.argmax(axis=1)]
        return labels

    @by_rows("classes")
    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probabilities (n_samples, n_classes) of each row of `X`, in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    @by_rows("classes")
    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Logarithms (n_samples, n_classes) of `predict_proba`."""
        log_density = self.log_density(X)
        return self.model_.posterior(log_density)

    @by_rows("classes")
    def predict_joint_log_proba(self, X: ArrayLike) -> Floats:
        """Logarithms (n_samples, n_classes) of prior times calibrated density."""
        log_density = self.log_density(X)
        return self.model_.joint(log_density)

    def decision_function(self, X: ArrayLike) -> Floats:
        """Log odds (n_samples,) of the second of two classes, or log probabilities (n_samples, n_classes)."""
        log_proba = self.predict_log_proba(X)
        return log_proba[:, 1] - log_proba[:, 0] if self.classes_.size == 2 else log_proba

    @by_rows("classes")
    def log_density(self, X: ArrayLike) -> Floats:
        """Logarithms (n_samples, n_classes) of the class densities of the scaled variables."""
        samples = self._check_samples(X)
        warn_of_shift(self.model_, samples, feature_names(self))
        return self.model_.log_densities(samples, self._computation())

    @by_rows(dtype=object)
    def decide(
        self, X: ArrayLike, costs: ArrayLike | Mapping[Any, Any], reject_cost: float | None = None
    ) -> NDArray[Any]:
        """Label of least expected cost for each row of `X`.

        The expected cost of a label is the sum over the true classes of their probabilities times the costs
        of the label. It is right if probabilities are calibrated and classes are as frequent as
        `class_prior_` says. `CorralClassifier` calibrates its probabilities; those that `RodeoClassifier`
        returns are often too certain, and its priors are uniform by default.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        costs : array-like of shape (n_classes, n_classes), DataFrame or dict
            What it costs to decide for the class of a column where that of a row is true: in the order of
            `classes_`, or with labels as the index and the columns of a frame, or as
            ``{true: {decided: cost}}``, where right decisions that are not named cost nothing. Gains are
            negative costs.
        reject_cost : float, default=None
            Cost of no decision. By default there is always a decision.

        Returns
        -------
        labels : ndarray of shape (n_samples,), object
            None, no decision, where each label is expected to cost more than `reject_cost`.

        Examples
        --------
        >>> from corral import CorralClassifier
        >>> from corral.datasets import make_shifted_groups
        >>> X, y = make_shifted_groups(100, groups=(1, 2), random_state=0)
        >>> classifier = CorralClassifier(random_state=0).fit(X, y)
        >>> costs = {1: {2: 10.0}, 2: {1: 1.0}}  # to overlook a 1 costs ten times as much
        >>> bool((classifier.decide(X, costs) == 1).sum() > 1.3 * (classifier.predict(X) == 1).sum())
        True
        """
        matrix = check_costs(costs, self.classes_)
        if reject_cost is not None:
            check_reject_cost("reject_cost", reject_cost)
        return least_costly(self.predict_proba(X), matrix, self.classes_, reject_cost)

    @by_rows("classes")
    def typicality(self, X: ArrayLike) -> Floats:
        """How typical each row of `X` is of each class, as a p-value.

        It is the share of training rows of the class, the row counted among them, that are at most as typical
        as the row. A row from the same source as the training rows of the class has a typicality of at most
        0.05 in about 5 of 100 cases. *About*, since a new row is compared with all training rows, but a
        training row only with the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows. Training rows seem more typical than they are, since the densities are made of them.

        Returns
        -------
        typicality : ndarray of shape (n_samples, n_classes)
            At least 1 / (n + 1) for a class of n rows. For a class with a single row, new rows are compared
            with the training rows of all classes.

        Notes
        -----
        Rows are compared by the log density of the class. Each training row is left out with its duplicates
        and its group. A value more than three standard deviations from every value of its column in the class
        lowers the score of a row. The guide has the details. In a pool everything that the score uses is
        learnt without the fold of the training row. In `RodeoClassifier` scales and bandwidths are not, so
        that with few rows, many variables or long tails more than 5 of 100 rows may have a typicality below
        0.05.

        Examples
        --------
        >>> from corral import CorralClassifier
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = CorralClassifier(random_state=0).fit(X[1:], y[1:])
        >>> classifier.typicality(X[:1]).round(2)
        array([[0.94, 0.02, 0.02]])
        >>> classifier.typicality(10 * X[:1]).round(2)  # in millimetres
        array([[0.02, 0.02, 0.02]])
        """
        return evaluate_rows(self, X).judgement.typicality

    @by_rows(dtype=np.bool_)
    def is_novel(self, X: ArrayLike, level: float = NOVELTY_LEVEL) -> Bools:
        """Whether each row of `X` is unlike all training rows: "none of these".

        Such rows are also called outliers or anomalies. Rows of a new kind that lie close to a class of the
        training rows are not novel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        level : float, default=0.01
            A row is novel if its `novelty` (see `assess`) is at most this level: if, at its best class, it is
            less typical than all but this share of the training rows of all classes together, each left out.
            With fewer than 1 / level rows it must be less typical than every one of them by a margin, which
            makes up for the rows that are missing.

        Returns
        -------
        novel : ndarray of shape (n_samples,), bool
            Of rows that are like the training rows, about the share `level` is novel, too.

        Examples
        --------
        >>> from corral import CorralClassifier
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = CorralClassifier(random_state=0).fit(X[:100], y[:100])  # setosa and versicolor
        >>> bool(classifier.is_novel(X[100:]).mean() > 0.3)  # virginica, which is next to versicolor
        True
        >>> classifier.is_novel(10 * X[:1])
        array([ True])
        """
        share = check_number("level", level, 0.0, 1.0, inclusive=True)
        return evaluate_rows(self, X).judgement.is_novel(share)

    @by_rows("classes", dtype=np.bool_)
    def predict_set(self, X: ArrayLike, coverage: float = COVERAGE) -> Bools:
        """Labels that each row of `X` may have: sets that hold the right one with a given frequency.

        With ``coverage=0.95``, about 95 in 100 new rows of each class, rare or frequent, get a set that holds
        their class, if they come from the same source as the training rows of the class (if they are
        *exchangeable* with them). With groups, new groups must come from the same source.

        A label is left out of the set if it is less probable for the row than for all but a share
        1 - `coverage` of the training rows of this class. The coverage holds only *about*, as in all methods
        that leave out one row at a time [1]_: the densities at a new row are made of all training rows, the
        densities at a training row of the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.
        coverage : float, default=0.9
            How often a set shall hold the right label. A class of n rows can be left out of sets only if
            1 - coverage is at least 1 / (n + 1): for 0.95 it needs 19 rows, and with fewer it is in all sets
            that are not empty. For a class of one row, the rows of all classes are used.

        Returns
        -------
        sets : ndarray of shape (n_samples, n_classes), bool
            Which labels are in the set: one if the row is easy, several if it is hard. The set is empty if
            the row is clearly less typical than every training row (`novelty` at most 0.5 / (n + 1)), which
            lowers the coverage by 1 / (n + 1) at most, where n is the number of all rows. Any other set that
            would be empty holds the label that `predict` returns. Another set may lack this label, if it is
            less probable for the row than for most training rows of its class.

        Notes
        -----
        Given the training rows, the coverage of a class of n rows varies around `coverage` with a standard
        deviation of about sqrt(coverage * (1 - coverage) / (n + 2)): by 0.06 at 0.9 with 20 rows.

        References
        ----------
        .. [1] R. F. Barber, E. J. Candes, A. Ramdas, R. J. Tibshirani. Predictive inference with the
           jackknife+. Annals of Statistics 49 (2021).

        Examples
        --------
        >>> from corral import CorralClassifier
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = CorralClassifier(random_state=0).fit(X[::2], y[::2])
        >>> sets = classifier.predict_set(X[1::2], coverage=0.95)
        >>> float(sets[range(75), y[1::2]].mean().round(2))
        0.95
        """
        wanted = check_number("coverage", coverage, 0.0, 1.0, inclusive=True)
        return evaluate_rows(self, X).prediction_sets(wanted)

    def assess(self, X: Any, coverage: float = COVERAGE) -> Assessment:
        """Probabilities, typicality, novelty and prediction sets of each row of `X`.

        All four are computed in the time of one. `coverage` is that of the prediction sets, see
        `predict_set`.

        Warns
        -----
        ShiftedTableWarning
            If most of ten or more rows lie outside the range of the training rows in a variable.
        """
        wanted = check_number("coverage", coverage, 0.0, 1.0, inclusive=True)
        rows = evaluate_rows(self, X)
        warn_of_shift(self.model_, rows.X, feature_names(self))
        return rows.assessment(wanted, X.index if hasattr(X, "iloc") else None)

    def explain(self, X: ArrayLike, *, against: ArrayLike | None = None, n_rows: int = 5) -> Explanation:
        """Why each row of `X` gets its label and not another one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples to explain.
        against : label or array-like of shape (n_samples,), default=None
            The class to compare with the predicted one; by default, and for samples that are predicted to be
            of this class, the one that comes next by prior times density.
        n_rows : int, default=5
            How many of the training rows that support the label are listed.

        Returns
        -------
        explanation : Explanation
            The evidence of each variable for the label, the training rows that support it, and whether the
            sample is novel.
        """
        n_listed = check_integer("n_rows", n_rows)
        return evaluate_rows(self, X, bandwidths=True).explanation(against, n_listed)

    def describe(self) -> Description:
        """What marks each class: the variables that tell it best from all other rows come first.

        Markers come from tests on ranks of the training rows, whatever the densities use. The evidence says
        what the labels rest on; it is computed once, from at most 50 rows of each class and, with more than
        ten variables, 4 pairs of random orders of the variables.

        """
        check_is_fitted(self)
        model = self.model_
        evidence = evidence_of_classes(model, self._computation())
        return class_description(self, model.contrast, model.comparison, model.missing_contrast, evidence)

    @property
    def feature_importances_(self) -> Floats:
        """Share of each variable in the mean evidence for the classes at their own rows; they sum to 1.

        The evidence is that of `describe`, and a negative mean counts as 0. All are 0 if no mean is positive.
        """
        check_is_fitted(self)
        evidence = evidence_of_classes(self.model_, self._computation())
        means: Floats = np.maximum(evidence[self.class_count_ > 0.0].mean(axis=0), 0.0)
        return means / means.sum() if means.any() else means

    def selection_frequency(
        self, n_resamples: int = 20, random_state: int | np.random.RandomState | None = None
    ) -> Floats:
        """How often each variable is selected when the training rows are halved at random.

        Selected are the relevant variables of a `RodeoClassifier`, and the markers of a `CorralClassifier`.
        Halves are taken without replacement within each class. The frequencies (n_classes, n_features) are
        near 1 or 0 where the selection is stable. A file of compressed classes does not keep the rows needed
        here.
        """
        check_is_fitted(self)
        n = check_integer("n_resamples", n_resamples)
        random = check_random_state(random_state)
        rows = self.model_.all_rows
        counts = np.zeros((rows.labels.size, rows.X.shape[1]))
        for _ in range(n):
            halves = [each[random_rows(each.size, -(-each.size // 2), random)] for each in rows.members()]
            half = rows.take(np.sort(np.concatenate(halves)))
            counts += self._selected_in(half, np.random.RandomState(random.randint(2**31 - 1)))
        return counts / n

    @property
    def classes_(self) -> NDArray[Any]:
        """Class labels."""
        return self.model_.labels

    @property
    def class_count_(self) -> Floats:
        """Number of training rows of each class, weights counted."""
        return self.model_.data.counts

    @property
    def class_prior_(self) -> Floats:
        """Probability of each class before a sample is seen: its prior, times its class weight."""
        return self.model_.prior

    @property
    def n_duplicates_(self) -> int:
        """Number of training rows that are duplicates of others."""
        return self.model_.n_duplicates

    def _selected_in(self, data: LabelledRows, random: np.random.RandomState) -> Bools:
        """Find the markers (n_classes, n_features) of each class in a part of the rows."""
        return learn_contrast(data, self.model_.min_effect).markers

    def _learn_at_once(self, training: TrainingRows) -> Self:
        """Fit validated rows and set `model_`; no further rows will follow."""
        data = sort_rows(training)
        refuse_groups_of_whole_classes(training, data)
        return self._learn(training, data)

    @abstractmethod
    def _learn(self, training: TrainingRows, data: LabelledRows) -> Self:
        """Fit validated rows and set `model_`. `data` has them by class; some classes may have no rows."""

    def _name_rows(self, X: Any) -> None:
        """Keep the names of the training rows, if they have any; remove the names of an earlier fit."""
        for name in ("row_names_in_", "row_names_column_"):
            self.__dict__.pop(name, None)
        names, column = row_names(X), index_name(X)
        if names is not None:
            self.row_names_in_ = names
        if names is not None or column is not None:
            self.row_names_column_ = column
