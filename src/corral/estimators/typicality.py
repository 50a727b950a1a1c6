"""What classifiers by class densities say of how far their labels can be trusted."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from corral.array_types import Bools, Floats
from corral.estimators.collections import by_rows
from corral.estimators.evaluated_rows import LEVEL, Assessment, evaluate_rows
from corral.estimators.validation import check_number


class Trustworthiness:
    """Typicality, novelty and sets of labels, of classifiers whose training rows are at hand."""

    @by_rows("classes")
    def typicality(self, X: ArrayLike) -> Floats:
        """How typical each row of `X` is of each class, as a p-value.

        It is the share of training rows of the class that are at most as typical of it as the row. A row that
        comes from the same source as the training rows of the class has a typicality of at most 0.05 in about
        5 of 100 cases. *About*, since training rows are drawn by chance as well, and since a new row is
        compared with all of them, but a training row with the others alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows. Training rows are in the density that judges them, and seem more typical than they are.

        Returns
        -------
        typicality : ndarray of shape (n_samples, n_classes)
            At least 1 / (n + 1) for a class of n rows. A class with a single row has no other to compare
            with, and is judged by the rows of all classes.

        See Also
        --------
        is_novel : Whether a row is like no class at all.
        predict_set : Which labels a row may have.

        Notes
        -----
        Rows are compared by the log density of the class, each training row being left out with its copies
        and its group. Of a class with more than 2000 / n_classes rows only so many are compared: in pools
        those that the search has left out, in `RodeoClassifier` only if all classes together have more than
        2000. Members of a pool count by how well they would tell rows of each class from the others if the
        class were not known, each in units of the spread of its log densities. How far each value lies from
        the nearest one of its column in the class counts as well: beyond three standard deviations that
        speaks against a row, so that a value outside the training range is far in all units, and in columns
        that the density makes no use of. So does a value more than seven of them from the median of its
        column, if few training rows lie as far out, and a value of a column that was the same in all training
        rows.

        A row with missing values is compared with what rows of the class have on average if the same values
        are missing, which is learnt once, from 1,000 training rows of which values are removed at random.

        In pools everything that the score uses is learnt without the fold of a training row. In
        `RodeoClassifier` only its kernel is left out: units and bandwidths have seen the row, so that with
        few rows, many variables or long tails more than 5 of 100 rows may have a typicality of 0.05.

        Examples
        --------
        >>> from corral import CorralClassifier
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = CorralClassifier(random_state=0).fit(X[1:], y[1:])
        >>> classifier.typicality(X[:1]).round(2)
        array([[0.94, 0.02, 0.02]])
        >>> classifier.typicality(10 * X[:1]).round(2)  # in millimetres, by mistake
        array([[0.02, 0.02, 0.02]])
        """
        return evaluate_rows(self, X).judgement.typicality

    @by_rows(dtype=np.bool_)
    def is_novel(self, X: ArrayLike, level: float = LEVEL) -> Bools:
        """Whether each row of `X` is unlike all training rows: "none of these".

        Such rows are also called outliers or anomalies. A new kind of row that lies close to a known class is
        not found.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.
        level : float, default=0.01
            A row is novel if, at its best class, it is less typical than all but this share of the training
            rows of all classes together, each left out. With fewer than 1 / level rows it must be less
            typical than every one of them by a margin, which makes up for the rows that are missing.

        Returns
        -------
        novel : ndarray of shape (n_samples,), bool
            About a share `level` of rows that are like the training rows is novel, too.

        See Also
        --------
        typicality : The same by class, as a p-value.

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
    def predict_set(self, X: ArrayLike, coverage: float = 0.9) -> Bools:
        """Labels that each row of `X` may have: sets that hold the right one about as often as asked.

        With ``coverage=0.95``, about 95 in 100 new rows of each class get a set that holds their class, rare
        classes like frequent ones, if new rows come from the same source as the training rows of the class
        (if they are *exchangeable* with them). With groups, new groups must come from the same source.

        A label is left out of the set if it is less probable for the row than for nearly all training rows
        that do have it: all but a share 1 - `coverage`. A training row is judged without itself, a new row by
        all training rows. That is nearly the same, but not quite, so that coverage is *about* what is asked
        for, as of all methods that leave out one row at a time [1]_.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.
        coverage : float, default=0.9
            How often a set shall hold the right label. A class of n rows can be left out of sets only if
            1 - coverage is at least 1 / (n + 1): for 0.95 it needs 19 rows, and with fewer it is in all sets
            that are not empty. A class of one row is judged by the rows of all classes.

        Returns
        -------
        sets : ndarray of shape (n_samples, n_classes), bool
            Which labels are in the set: one if the row is easy, several if it is hard. The set is empty if
            the row is clearly less typical than every training row (`is_novel` at any level), which lowers
            the coverage by 1 / (n + 1) at most, where n is the number of all rows. Any other set that would
            be empty holds the label that `predict` returns, so that classes that are nearly always told right
            are covered more often than asked for. A set may lack that label, where it is less probable than
            it usually is for rows of its class, and hold another, as of a class with few rows.

        See Also
        --------
        is_novel : Whether a row is like no class at all.
        decide : The label of least expected cost.

        Notes
        -----
        Given the training rows, the coverage of a class of n rows varies around the one asked for with a
        standard deviation of about sqrt(coverage * (1 - coverage) / (n + 2)): by 0.06 at 0.9 with 20 rows.
        On average over training rows it is the one asked for, rounded up to a multiple of 1 / (n + 1). Lots
        would avoid the rounding; but a set should not depend on them.

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
        >>> float(sets[range(75), y[1::2]].mean().round(2))  # three flowers are like none in training
        0.95
        >>> float(sets.sum(axis=1).mean().round(2))  # labels in a set
        1.01
        """
        wanted = check_number("coverage", coverage, 0.0, 1.0, inclusive=True)
        return evaluate_rows(self, X).prediction_sets(wanted)

    def assess(self, X: ArrayLike) -> Assessment:
        """Probabilities, typicality and novelty of each row of `X`, in the time of one of them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New rows.

        Returns
        -------
        assessment : Assessment
            With `proba`, `scores`, `typicality`, `novelty` and `is_novel`.

        See Also
        --------
        predict_proba : Probabilities alone.
        typicality : Typicality alone.
        """
        return evaluate_rows(self, X).assessment()
