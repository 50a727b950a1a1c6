"""What classifiers by class densities share: rows at once or in parts, and all predictions from one model."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from corral.array_types import Bools, Floats
from corral.data.dataset import LabelledRows, TrainingRows
from corral.data.subsample import random_rows
from corral.estimators.collections import by_rows
from corral.estimators.decisions import Decisions
from corral.estimators.description import Description, class_description
from corral.estimators.encoding import Encoding
from corral.estimators.evaluated_rows import evaluate_rows
from corral.estimators.explanation import Explanation
from corral.estimators.tables import TableEstimator
from corral.estimators.typicality import Trustworthiness
from corral.estimators.validation import (
    check_integer,
    check_kind_of_labels,
    feature_names,
    refuse_groups_of_whole_classes,
    row_names,
    sort_rows,
    unchanged_by_errors,
)
from corral.estimators.warned import warn_of_unknown_columns
from corral.evidence.explanations import evidence_of_classes
from corral.markers.contrast import learn_contrast
from corral.model import LocalModel
from corral.rodeo.model import FittedModel


class ModelPredictions(Decisions, ClassifierMixin, TableEstimator):
    """Predictions and attributes of classifiers that keep what they have learnt in `model_`."""

    model_: LocalModel

    @by_rows()
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most probable class of each row of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        log_proba = self.predict_log_proba(X)
        labels: NDArray[Any] = self.classes_[log_proba.argmax(axis=1)]
        return labels

    @by_rows("classes")
    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probability of each class for each row of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        P : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; rows sum to 1.
        """
        return np.exp(self.predict_log_proba(X))

    @by_rows("classes")
    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        log_P : ndarray of shape (n_samples, n_classes)
        """
        log_density = self.log_density(X)
        return self.model_.posterior(log_density)

    @by_rows("classes")
    def predict_joint_log_proba(self, X: ArrayLike) -> Floats:
        """Logarithm of prior times density of each class, the density to the power that calibrates it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        log_joint : ndarray of shape (n_samples, n_classes)
        """
        log_density = self.log_density(X)
        return self.model_.joint(log_density)

    @by_rows("classes")
    def log_density(self, X: ArrayLike) -> Floats:
        """Logarithm of each class's density, in scaled units.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        log_density : ndarray of shape (n_samples, n_classes)
        """
        samples = self._check_samples(X)
        return self.model_.log_densities(samples, self._computation())

    # What has been learnt is in model_, and read from there under scikit-learn's names.

    @property
    def classes_(self) -> NDArray[Any]:
        """Class labels."""
        return self.model_.labels

    @property
    def class_count_(self) -> Floats:
        """Number of training rows of each class, weights counted."""
        return self.model_.counts

    @property
    def class_prior_(self) -> Floats:
        """Probability of each class before a sample is seen."""
        return self.model_.prior

    @property
    def n_copies_(self) -> int:
        """Number of training rows that are copies of others."""
        return self.model_.n_copies

    def _check_samples(self, X: ArrayLike) -> Floats:
        """Validate samples of a fitted classifier, and warn of values that it cannot judge."""
        samples = super()._check_samples(X)
        warn_of_unknown_columns(self.model_, samples, feature_names(self))
        return samples


class BandwidthsOfClasses(ModelPredictions):
    """Bandwidths of classifiers whose densities the Rodeo chooses."""

    model_: FittedModel

    @by_rows("classes", "features")
    def local_bandwidths(self, X: ArrayLike) -> Floats:
        """Bandwidths at each row of `X` in each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        h : ndarray of shape (n_samples, n_classes, n_features)
            In scaled units, so that variables compare: those the Rodeo chooses at the row, or those of the
            class with ``bandwidth="class"``. With ``features="selected"`` a variable that is not relevant
            keeps the initial bandwidth.
        """
        samples = self._check_samples(X)
        _, h = self.model_.estimate(samples, self._computation(), bandwidths=True)
        return h

    @property
    def initial_bandwidth_(self) -> Floats:
        """Bandwidth that every variable of a class starts from."""
        return self.model_.bandwidths.initial

    @property
    def bandwidths_(self) -> Floats:
        """Mean bandwidth at the class's own rows, each row leaving itself out."""
        return self.model_.bandwidths.means

    @property
    def zscores_(self) -> Floats:
        """Mean bandwidths standardised over the variables of a class."""
        return self.model_.bandwidths.zscores

    @property
    def relevant_(self) -> Bools:
        """Which variables are relevant for each class, by algorithm 2."""
        return self.model_.relevant


class DensityClassifier(Trustworthiness, ModelPredictions):
    """What classifiers by class densities share: they learn rows at once or in parts, and explain samples."""

    def __corral_validate__(self) -> None:
        """Refuse a model of another table; `load_model` calls it."""
        self._validate_columns(self.model_.n_features, self.model_.data.levels)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Store the rows of each class and find the variables that describe it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows: numbers, and in frames also text, categories and booleans, all with gaps (NaN,
            None, pandas' NA, polars' null). If a pandas frame has an index that names rows, `explain` does,
            too: one that has a name, or does not hold whole numbers.
        y : array-like of shape (n_samples,)
            Their classes; at least two.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row matters, up to a common factor; weight 0 equals removal.
        groups : array-like of shape (n_samples,), default=None
            Which rows belong together, such as those of one patient: whatever leaves a row out leaves its
            group out. Two groups count as one if more than half of the different rows of the smaller one are
            copies of rows of the other, as those of a patient who was entered twice; else copies in several
            groups, such as blanks, are rows of each of them. Some class must have rows of two groups. The
            tests of `describe` count rows that are alike within groups as fewer.

        Returns
        -------
        self : estimator
        """
        with unchanged_by_errors(self):
            rows = self._check_rows(X, y, sample_weight, groups, reset=True)
            self._name_rows(X)
            return self._learn_at_once(rows)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Add rows; `fit(A)` and then `partial_fit(B)` is the same as `fit` of A and B together.

        The rows are all kept, so this saves no memory or time over `fit`. Names of rows are not. New levels
        are learnt, but for columns whose order counts (ordered categories), where they are refused.

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
            different. One group for each class is accepted, where `fit` refuses it: others may follow.

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
            encoding = None if first else self.encoding_
            rows = self._check_rows(X, y, sample_weight, groups, reset=first)
            if not first and (groups is None) != (self.model_.training.groups is None):
                raise ValueError("groups must be given for all parts of the rows, or for none.")
            self._name_rows(None)
            expected = None if first else self.classes_
            if expected is not None:
                check_kind_of_labels(rows.y, expected, "the classes so far are")
            if classes is not None:
                named = np.unique(classes)
                check_kind_of_labels(rows.y, named, "`classes` holds")
                unknown = np.setdiff1d(rows.y, named)
                if unknown.size:
                    raise ValueError(f"y holds the class {unknown.tolist()[0]!r}, which is not in classes.")
                expected = named if expected is None else np.union1d(expected, named)
            if encoding is not None:
                rows = self._training_recoded(encoding).extended(rows)
            return self._learn(rows, sort_rows(rows, expected))

    def explain(self, X: ArrayLike, *, against: ArrayLike | None = None, n_rows: int = 5) -> Explanation:
        """Why each row of `X` gets its label and not another one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples to explain.
        against : label or array-like of shape (n_samples,), default=None
            The class to compare with the predicted one; by default, and for samples that are predicted to be
            of this class, the second most probable.
        n_rows : int, default=5
            How many of the training rows that support the label are listed.

        Returns
        -------
        explanation : Explanation
            Per sample and variable the bandwidths and the evidence for the label, which adds up to the log
            odds; per sample the training rows with the largest share of the label's density, numbered by
            their position in the `X` given to `fit`; whether it is novel, and which variables make it unlike
            the class nearest to it.
        """
        n_listed = check_integer("n_rows", n_rows)
        return evaluate_rows(self, X, bandwidths=True).explanation(against, n_listed)

    def describe(self) -> Description:
        """What marks each class: variables in which it differs from its background, strongest first.

        Which variables these are is found from the training rows, by ranks and with error control, whatever
        the densities use. The evidence says what the labels rest on; it is computed once, from at most 50
        rows of each class and, with more than ten variables, 4 pairs of orders in which they become known.

        Returns
        -------
        description : Description
            Print it, or look at `Description.to_frame`.

        See Also
        --------
        explain : Why single rows got their labels.
        corral.RelevanceDisplay : Draws it.
        """
        check_is_fitted(self)
        model = self.model_
        return class_description(
            model.labels,
            feature_names(self),
            model.contrast,
            missing=model.gap_contrast,
            levels=self.encoding_.names_of_levels(),
            evidence=evidence_of_classes(model, self._computation()),
        )

    @property
    def feature_importances_(self) -> Floats:
        """Mean evidence of each variable for the classes at their own rows, 0 where it is negative.

        As in `describe`, each row is left out: what a variable adds to the log odds of the class and the most
        probable other one.
        """
        check_is_fitted(self)
        evidence = evidence_of_classes(self.model_, self._computation())
        importances: Floats = np.maximum(evidence[self.class_count_ > 0.0].mean(axis=0), 0.0)
        return importances

    def selection_frequency(
        self, n_resamples: int = 20, random_state: int | np.random.RandomState | None = None
    ) -> Floats:
        """How often each variable is selected when the training rows are halved at random.

        Selected are the relevant variables of a `RodeoClassifier`, and the markers of a `CorralClassifier`.
        It needs all training rows, of which a file does not keep those of classes that are thinned.

        Parameters
        ----------
        n_resamples : int, default=20
            Number of halves, each drawn without replacement within each class.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        frequency : ndarray of shape (n_classes, n_features)
            Share of the halves in which the variable was selected: near 1 or 0 where the selection is
            stable.
        """
        check_is_fitted(self)
        n = check_integer("n_resamples", n_resamples)
        random = check_random_state(random_state)
        rows = self.model_.all_rows
        counts = np.zeros((rows.labels.size, rows.X.shape[1]))
        for _ in range(n):
            halves = [
                of_class[random_rows(of_class.size, -(-of_class.size // 2), random)]
                for of_class in rows.members()
            ]
            half = rows.take(np.sort(np.concatenate(halves)))
            counts += self._selected_in(half, np.random.RandomState(random.randint(2**31 - 1)))
        return counts / n

    def _selected_in(self, data: LabelledRows, random: np.random.RandomState) -> Bools:
        """Find the markers of each class in some of the rows."""
        return learn_contrast(data, self.model_.min_effect).markers

    def _learn_at_once(self, training: TrainingRows) -> Self:
        """Fit validated rows that no others follow, and set `model_`."""
        data = sort_rows(training)
        refuse_groups_of_whole_classes(training, data)
        return self._learn(training, data)

    @abstractmethod
    def _learn(self, training: TrainingRows, data: LabelledRows) -> Self:
        """Fit validated rows, also given sorted by class, and set `model_`; some classes may have no rows."""

    def _training_recoded(self, encoding: Encoding) -> TrainingRows:
        """The training rows so far, whose levels an earlier encoding has numbered, by the present one."""
        training = self.model_.training
        return training._replace(X=encoding.recoded(training.X, self.encoding_), levels=self.encoding_.counts)

    def _name_rows(self, X: Any) -> None:
        """Keep the names of the training rows, if they have any, and forget others."""
        for name in ("row_names_in_", "row_names_column_"):
            if hasattr(self, name):
                delattr(self, name)
        named = row_names(X)
        if named is not None:
            self.row_names_in_, self.row_names_column_ = named
