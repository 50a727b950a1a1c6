"""DensityClassifier: the methods that `RodeoClassifier` and `CorralClassifier` share."""

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
    """Base class of classifiers by class densities; `model_` is everything that `fit` learns."""

    model_: LocalModel

    def __corral_validate__(self) -> None:
        """Raise ValueError if model and columns do not fit together; `load_model` calls this check."""
        self._validate_columns(self.model_.n_features, self.model_.data.n_categories)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Add training rows: `fit(A)` and then `partial_fit(B)` equals `fit` of A and B together.

        All rows are kept, so `partial_fit` needs as much memory and time as `fit`. The names of rows are not
        kept. New categories are added to their column; in a column of ordered categories they are an error.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Further training rows.
        y : array-like of shape (n_samples,)
            Labels of the rows. New classes are allowed; the labels of all calls must be of one kind: text,
            numbers or booleans.
        classes : array-like of shape (n_classes,), default=None
            Labels of all classes that later calls may add. A class without rows has density zero.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, on the same scale as the weights in earlier calls.
        groups : array-like of shape (n_samples,), default=None
            Group of each row. Pass groups in all calls or in none. Groups of different calls are different
            groups, even if their ids are equal. All rows of a class may be in one group.

        Returns
        -------
        self : DensityClassifier
            The fitted classifier.
        """
        with unchanged_by_errors(self):
            first = not hasattr(self, "model_")
            if not first and not self.model_.has_all_rows:
                raise ValueError(
                    f"partial_fit needs all {self.model_.n_rows} training rows, but the model keeps only "
                    f"{len(self.model_.training.X)} of them: fit all rows together."
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
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Predicted labels.
        """
        log_proba = self.predict_log_proba(X)  # before classes_, so that an unfitted estimator is an error
        labels: NDArray[Any] = self.classes_[log_proba.argmax(axis=1)]
        return labels

    @by_rows("classes")
    def predict_proba(self, X: ArrayLike) -> Floats:
        """Compute the probability of each class for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Probabilities, with classes in the order of `classes_`. Each row sums to 1.
        """
        return np.exp(self.predict_log_proba(X))

    @by_rows("classes")
    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Compute the logarithm of the probability of each class for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        log_proba : ndarray of shape (n_samples, n_classes)
            Natural logarithms of `predict_proba`.
        """
        log_density = self.log_density(X)
        return self.model_.posterior(log_density)

    @by_rows("classes")
    def predict_joint_log_proba(self, X: ArrayLike) -> Floats:
        """Compute the logarithm of prior times calibrated density of each class for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        log_joint : ndarray of shape (n_samples, n_classes)
            Natural logarithms, with classes in the order of `classes_`; -inf if density or prior is 0.
        """
        log_density = self.log_density(X)
        return self.model_.joint(log_density)

    def decision_function(self, X: ArrayLike) -> Floats:
        """Compute log odds if there are two classes, otherwise log probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, the log odds of the second class in `classes_` against the first; they are above
            0 if `predict` returns the second class. With more classes, `predict_log_proba`.
        """
        log_proba = self.predict_log_proba(X)
        return log_proba[:, 1] - log_proba[:, 0] if self.classes_.size == 2 else log_proba

    @by_rows("classes")
    def log_density(self, X: ArrayLike) -> Floats:
        """Compute the logarithm of each class density at each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows at which the densities are evaluated.

        Returns
        -------
        log_density : ndarray of shape (n_samples, n_classes)
            Natural logarithms of the densities of the scaled variables, with classes in the order of
            `classes_`.
        """
        samples = self._check_samples(X)
        warn_of_shift(self.model_, samples, feature_names(self))
        return self.model_.log_densities(samples, self._computation())

    @by_rows(dtype=object)
    def decide(
        self, X: ArrayLike, costs: ArrayLike | Mapping[Any, Any], reject_cost: float | None = None
    ) -> NDArray[Any]:
        """Choose the label of least expected cost for each row.

        The expected cost of a label is the sum, over the classes, of the probability that the class is the
        true one times the cost of the label if it is. It is right if probabilities are calibrated and the
        frequencies of the classes are `class_prior_`. `CorralClassifier` calibrates its probabilities. The
        probabilities of `RodeoClassifier` are often too close to 0 and 1, and its priors are uniform by
        default.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to label.
        costs : array-like of shape (n_classes, n_classes), DataFrame or dict
            Costs by true class (rows) and chosen label (columns). An array has both in the order of
            `classes_`; a frame has labels as index and as columns; a dict is ``{true: {chosen: cost}}``, in
            which right labels that are left out cost 0. Gains are negative costs.
        reject_cost : float, default=None
            Cost of choosing no label. If it is None, a label is always chosen.

        Returns
        -------
        labels : ndarray of shape (n_samples,), object
            Chosen labels; None if the expected cost of every label exceeds `reject_cost`.

        Examples
        --------
        >>> from corral import CorralClassifier
        >>> from corral.datasets import make_shifted_groups
        >>> X, y = make_shifted_groups(100, groups=(1, 2), random_state=0)
        >>> classifier = CorralClassifier(random_state=0).fit(X, y)
        >>> costs = {1: {2: 10.0}, 2: {1: 1.0}}  # label 2 for a row of class 1 costs 10
        >>> bool((classifier.decide(X, costs) == 1).sum() > 1.3 * (classifier.predict(X) == 1).sum())
        True
        """
        matrix = check_costs(costs, self.classes_)
        if reject_cost is not None:
            check_reject_cost("reject_cost", reject_cost)
        return least_costly(self.predict_proba(X), matrix, self.classes_, reject_cost)

    @by_rows("classes")
    def typicality(self, X: ArrayLike) -> Floats:
        """Compute how typical each row is of each class, as a p-value.

        The typicality of a row is a share: of the training rows of the class and the row itself, the share
        that is at most as typical of the class as the row. A row from the same source as the training rows of
        the class has a typicality of at most 0.05 in about 5 of 100 cases. This holds only *about*, since the
        density at a new row is made of all training rows, but at a training row of the other training rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows. The typicality of training rows is too high, since the densities are made of them.

        Returns
        -------
        typicality : ndarray of shape (n_samples, n_classes)
            P-values, at least 1 / (n + 1) for a class of n rows. If a class has a single row, new rows are
            compared with the training rows of all classes.

        Notes
        -----
        Rows are compared by a score, the log density of the class. The score of a training row is computed
        without the row, its duplicates and its group. A value that is more than three standard deviations
        from every value of its column in the class lowers the score. The guide has the details. In
        `CorralClassifier` everything that the score of a training row uses is learnt without its fold. In
        `RodeoClassifier` scales and bandwidths are learnt with it: with few rows, many variables or long
        tails, more than 5 of 100 new rows may have a typicality below 0.05.

        Examples
        --------
        >>> from corral import CorralClassifier
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = CorralClassifier(random_state=0).fit(X[1:], y[1:])
        >>> classifier.typicality(X[:1]).round(2)
        array([[0.94, 0.02, 0.02]])
        >>> classifier.typicality(10 * X[:1]).round(2)  # in millimeters instead of centimeters
        array([[0.02, 0.02, 0.02]])
        """
        return evaluate_rows(self, X).judgement.typicality

    @by_rows(dtype=np.bool_)
    def is_novel(self, X: ArrayLike, level: float = NOVELTY_LEVEL) -> Bools:
        """Test whether each row is novel: less typical than almost all training rows.

        Novel rows are also called outliers or anomalies. A row of an unknown class is not novel if it lies
        close to a class of the training rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.
        level : float, default=0.01
            Significance level. A row is novel if its `novelty` (see `Assessment`) is at most this level: of
            the training rows, each left out, at most about this share is at most as typical of its nearest
            class as the row is of its nearest class. With fewer than 1 / `level` training rows, a novel row
            must be less typical than all training rows by a margin. The fewer training rows there are, the
            larger is the margin.

        Returns
        -------
        novel : ndarray of shape (n_samples,), bool
            True for novel rows. Of new rows from the source of the training rows, about the share `level` is
            novel, too.

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
        """Find the labels that each row may have: a set that holds the right label with a given frequency.

        With ``coverage=0.95``, the set of about 95 in 100 new rows of each class, rare or frequent, holds the
        right label. This requires that the new rows come from the same source as the training rows of the
        class (that they are *exchangeable*) or, with groups, that new groups come from the same source.

        A label is left out of the set of a row if, of the training rows of this class and the row itself, at
        most the share 1 - `coverage` has log odds of this label that are no higher than the log odds at the
        row. The coverage holds only *about*, as in all methods that leave out one row at a time [1]_: the
        densities at a new row are made of all training rows, the densities at a training row of the other
        training rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.
        coverage : float, default=0.9
            Share of new rows whose set shall hold the right label. The label of a class of n rows can be left
            out of sets only if 1 - `coverage` is at least 1 / (n + 1): 0.95 needs 19 rows. With fewer rows
            the label is in all sets that are not empty. For a class of one row, the training rows of all
            classes are used.

        Returns
        -------
        sets : ndarray of shape (n_samples, n_classes), bool
            True for labels in the set of a row: one label if the row is easy to classify, several if it is
            hard. The set is empty if the row is clearly less typical than every training row (its `novelty`
            is at most 0.5 / (n + 1), where n is the number of all training rows); this lowers the coverage by
            at most 1 / (n + 1). Any other set that would be empty holds the label that `predict` returns. A
            set of other labels may lack this label, if its log odds are too low for its class.

        Notes
        -----
        For given training rows, the coverage of a class of n rows differs from `coverage` by chance. The
        standard deviation is about sqrt(coverage * (1 - coverage) / (n + 2)): 0.06 for `coverage` 0.9 and 20
        rows.

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
        """Compute probabilities, typicality, novelty and prediction sets of each row.

        The densities are evaluated once for all four, so this is faster than four calls.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.
        coverage : float, default=0.9
            Coverage of the prediction sets; see `predict_set`.

        Returns
        -------
        assessment : Assessment
            Arrays with one entry per row. `print` shows the first rows, and `Assessment.to_frame` makes a
            pandas frame.

        Warns
        -----
        ShiftedTableWarning
            If `X` has ten or more rows, and most of them lie outside the range of the training rows in a
            variable.
        """
        wanted = check_number("coverage", coverage, 0.0, 1.0, inclusive=True)
        rows = evaluate_rows(self, X)
        warn_of_shift(self.model_, rows.X, feature_names(self))
        return rows.assessment(wanted, X.index if hasattr(X, "iloc") else None)

    def explain(self, X: ArrayLike, *, against: ArrayLike | None = None, n_rows: int = 5) -> Explanation:
        """Explain why each row gets its label rather than another label, its rival.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to explain.
        against : label or array-like of shape (n_samples,), default=None
            The rival, one for all rows or one for each row. If it is None or the predicted label of the row,
            the rival is the class with the highest prior times density after the predicted class.
        n_rows : int, default=5
            Number of supporting training rows to list for each row.

        Returns
        -------
        explanation : Explanation
            For each row, the evidence of each variable for the label, the training rows that support the
            label, and whether the row is novel, by which variables.
        """
        n_listed = check_integer("n_rows", n_rows)
        return evaluate_rows(self, X, bandwidths=True).explanation(against, n_listed)

    def describe(self) -> Description:
        """Describe each class by its markers, the variables in which it differs from its background.

        Markers come from tests on ranks of the training rows and do not depend on the class densities. The
        mean evidence of each variable comes from the class densities. It is computed once, from at most 50
        rows of each class and, with more than ten variables, from 4 pairs of random orders of the variables.

        Returns
        -------
        description : Description
            Markers and numbers of all classes. `print` shows a line per class, and `Description.to_frame`
            makes a pandas frame.
        """
        check_is_fitted(self)
        model = self.model_
        evidence = evidence_of_classes(model, self._computation())
        return class_description(self, model.contrast, model.comparison, model.missing_contrast, evidence)

    @property
    def feature_importances_(self) -> Floats:
        """Share (n_features,) of each variable in the mean evidence; the shares sum to 1.

        It is the evidence of `describe`, averaged over the classes. Negative means count as 0. All shares are
        0 if no mean is positive.
        """
        check_is_fitted(self)
        evidence = evidence_of_classes(self.model_, self._computation())
        means: Floats = np.maximum(evidence[self.class_count_ > 0.0].mean(axis=0), 0.0)
        return means / means.sum() if means.any() else means

    def selection_frequency(
        self, n_resamples: int = 20, random_state: int | np.random.RandomState | None = None
    ) -> Floats:
        """Compute how often each variable is selected in random halves of the training rows.

        The selected variables are the relevant ones of a `RodeoClassifier` or the markers of a
        `CorralClassifier`. A classifier with compressed classes that was loaded from a file cannot do this:
        the file does not contain all training rows.

        Parameters
        ----------
        n_resamples : int, default=20
            Number of halves. Each contains half of the rows of each class, without replacement.
        random_state : int, RandomState or None, default=None
            Picks the halves.

        Returns
        -------
        frequency : ndarray of shape (n_classes, n_features)
            Share of the halves in which the variable was selected for the class. It is near 0 or 1 if the
            selection is stable.
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
        """Class labels (n_classes,), sorted."""
        return self.model_.labels

    @property
    def class_count_(self) -> Floats:
        """Sum (n_classes,) of the weights of the training rows of each class."""
        return self.model_.data.counts

    @property
    def class_prior_(self) -> Floats:
        """Prior probability (n_classes,) of each class, with class weights; the priors sum to 1."""
        return self.model_.prior

    @property
    def n_duplicates_(self) -> int:
        """Number of training rows that are duplicates of other training rows."""
        return self.model_.n_duplicates

    def _selected_in(self, data: LabelledRows, random: np.random.RandomState) -> Bools:
        """Find the markers (n_classes, n_features) of each class in a part of the training rows."""
        return learn_contrast(data, self.model_.min_effect).markers

    def _learn_at_once(self, training: TrainingRows) -> Self:
        """Set `model_` from the validated rows of a `fit`, where rows cannot be added later."""
        data = sort_rows(training)
        refuse_groups_of_whole_classes(training, data)
        return self._learn(training, data)

    @abstractmethod
    def _learn(self, training: TrainingRows, data: LabelledRows) -> Self:
        """Set `model_` from validated rows; `data` has them sorted by class. A class may have no rows."""

    def _name_rows(self, X: Any) -> None:
        """Store the names of the training rows, if `X` has any; remove the names of an earlier fit."""
        for name in ("row_names_in_", "row_names_column_"):
            self.__dict__.pop(name, None)
        names, column = row_names(X), index_name(X)
        if names is not None:
            self.row_names_in_ = names
        if names is not None or column is not None:
            self.row_names_column_ = column
