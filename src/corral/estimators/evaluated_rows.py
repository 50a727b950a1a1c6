"""Rows whose class densities are evaluated once, for probabilities, assessments and explanations together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corral.array_types import Bools, Floats, Integers
from corral.conformal.typicality import Estimates, Judgement, excess_pvalue
from corral.data.hashing import equality_keys
from corral.estimators.assessment import Assessment
from corral.estimators.encoding import are_missing
from corral.estimators.explanation import Explanation, unlike_values
from corral.estimators.validation import feature_names, row_names
from corral.evidence.explanations import explain_rows
from corral.evidence.log_odds import strongest_rivals
from corral.evidence.novelty import medians_where_unlike
from corral.model import LocalModel
from corral.parallel import Computation
from corral.sentences.tables import more_than_chance, novel_rows, why_novel

# Default significance level of novelty: about this share of new rows from the source of the training rows is
# novel.
NOVELTY_LEVEL = 0.01

# Default coverage of prediction sets: the share of new rows whose set holds the right label.
COVERAGE = 0.9


def evaluate_rows(estimator: Any, X: ArrayLike, *, bandwidths: bool = False) -> EvaluatedRows:
    """Check the rows `X` and evaluate their class densities.

    `bandwidths` asks for the bandwidths of the Rodeo as well, which explanations need.
    """
    table = estimator._check_table(X)  # noqa: SLF001 (a module of this package)
    computation = Computation(estimator.n_jobs, estimator.verbose)
    estimates = estimator.model_.estimates(table.X, computation, bandwidths=bandwidths)
    return EvaluatedRows(estimator, computation, table.X, table.unknown, estimates, row_names(X))


def novelty_sentences(
    estimator: Any,
    n_novel: int,
    n_rows: int,
    unlike: Callable[[], Sequence[Mapping[str, Any]]],
    *,
    at_random: bool = True,
    where: str = "",
) -> list[str]:
    """Write how many rows of a table are novel and, if they are more than expected by chance, why.

    Parameters
    ----------
    estimator : a fitted classifier by class densities.
    n_novel : number of novel rows.
    n_rows : number of rows of the table.
    unlike : a function that returns, for some or all novel rows, a dict of the values that make the row
        unlike the training rows, by variable.
    at_random : whether the rows are a random sample; otherwise the number of novel rows is not tested.
    where : text about the table, to append to the number of novel rows.
    """
    model: LocalModel = estimator.model_
    n_training = model.trust.reference(Computation(estimator.n_jobs)).best.n
    pvalue = excess_pvalue(n_novel, n_rows, NOVELTY_LEVEL, n_training) if at_random else None
    sentences = [novel_rows(n_novel, n_rows, pvalue, where)]
    if pvalue is None or not more_than_chance(pvalue):
        return sentences
    rows = unlike()
    counts = Counter(name for values in rows for name in values)
    training = dict(zip(feature_names(estimator), model.training.X.T, strict=True))
    medians = medians_where_unlike(rows, training)
    why = why_novel(n_novel, len(rows), counts, medians, all_training_rows=model.has_all_rows)
    return [*sentences, *([why] if why else [])]


@dataclass(frozen=True, eq=False)
class EvaluatedRows:
    """New rows of a classifier, with their class densities."""

    estimator: Any  # a fitted classifier by class densities
    computation: Computation
    X: Floats  # (n_rows, n_features) values as numbers
    # by position of the variable: (n_rows,) categories that no training row has, None in rows without them;
    # only variables with such categories
    unknown: dict[int, NDArray[Any]]
    estimates: Estimates
    names: NDArray[Any] | None = None  # (n_rows,) names of the rows from the index, if there are names

    @property
    def model(self) -> LocalModel:
        """The fitted model of the classifier."""
        model: LocalModel = self.estimator.model_
        return model

    def take(self, positions: Integers) -> EvaluatedRows:
        """Select the rows at these positions."""
        log_density, unscaled_score, h = self.estimates
        h = None if h is None else h[positions]
        estimates = Estimates(log_density[positions], unscaled_score[positions], h)
        names = None if self.names is None else self.names[positions]
        unknown = {j: values[positions] for j, values in self.unknown.items()}
        return replace(self, X=self.X[positions], unknown=unknown, estimates=estimates, names=names)

    @cached_property
    def proba(self) -> Floats:
        """Probabilities (n_rows, n_classes) of the classes."""
        return np.exp(self._log_proba)

    @cached_property
    def _log_proba(self) -> Floats:
        return self.model.posterior(self.estimates.log_density)

    @cached_property
    def judgement(self) -> Judgement:
        """Scores, typicality and novelty of the rows, from a comparison with training rows."""
        return self.model.trust.judge(self.X, self.estimates.unscaled_score, self.computation)

    def assessment(self, coverage: float = COVERAGE, index: Any = None) -> Assessment:
        """Make the result of `assess`; `index` is the index of the rows, or None."""
        each = self.judgement
        return Assessment(
            classes=self.model.labels,
            proba=self.proba,
            scores=each.scores,
            typicality=each.typicality,
            novelty=each.novelty,
            is_novel=each.is_novel(NOVELTY_LEVEL),
            sets=self.prediction_sets(coverage),
            coverage=coverage,
            index=index,
        )

    def prediction_sets(self, coverage: float) -> Bools:
        """Compute the prediction sets (n_rows, n_classes); see `CorralClassifier.predict_set`."""
        pvalues = self.model.trust.label_pvalues(self.X, self.estimates.log_density, self.computation)
        # The tolerance is for rounding errors: a p-value of 0.1 is not in a set of coverage 0.9, but
        # 1 - 0.9 is 0.09999999999999998.
        sets: Bools = pvalues > 1.0 - coverage + 1e-12
        label = self._log_proba.argmax(axis=1)
        empty = ~sets.any(axis=1)
        sets[empty, label[empty]] = True
        sets[self.judgement.is_beyond] = False
        return sets

    def explanation(self, against: ArrayLike | None = None, n_rows: int = 5) -> Explanation:
        """Make the result of `explain`; see `CorralClassifier.explain` for the parameters."""
        estimator, model, judgement = self.estimator, self.model, self.judgement
        label = self._log_proba.argmax(axis=1)
        rival = self._rivals(against, label)
        bandwidths, evidence, conditional, support, on_few, novelty_parts = explain_rows(
            model,
            self.X,
            self.estimates,
            judgement,
            label=label,
            rival=rival,
            n_listed=n_rows,
            computation=self.computation,
        )
        names = getattr(estimator, "row_names_in_", None)
        values, unknown = self._values()
        has_unknown: Bools = np.logical_or.reduce(unknown, axis=1)  # no training row has such a value
        support = support._replace(equal=support.equal & ~has_unknown[:, np.newaxis])
        typicality = judgement.typicality[np.arange(len(label)), judgement.nearest]
        in_training, typical_share = self._beside_training_rows(typicality)
        return Explanation(
            label=model.labels[label],
            rival=model.labels[rival],
            probability=np.take_along_axis(self.proba, np.stack([label, rival], axis=1), axis=1),
            feature_names=feature_names(estimator),
            values=values,
            unknown=unknown,
            bandwidths=bandwidths,
            base=evidence.base,
            evidence=evidence.evidence,
            evidence_error=evidence.error,
            conditional=conditional,
            **support._asdict(),
            rests_on_few=on_few,
            row_names=None if names is None else np.where(support.rows >= 0, names[support.rows], ""),
            nearest=model.labels[judgement.nearest],
            typicality=typicality,
            typical_share=typical_share,
            novel=judgement.is_novel(NOVELTY_LEVEL),
            in_training=in_training & ~has_unknown,
            novelty_parts=novelty_parts,
            nearest_range=self._nearest_ranges(),
            sample_names=self.names,
        )

    def unlike_values(self) -> list[dict[str, Any]]:
        """For each row, map the variables that make it unlike its nearest class to their values."""
        explanation = self.explanation(n_rows=1)
        return [unlike_values(explanation, i) for i in range(len(explanation))]

    def _values(self) -> tuple[NDArray[Any], Bools]:
        """Return values (n_rows, n_features) with names of categories, and which are unknown categories."""
        values: NDArray[Any] = self.estimator.encoding_.decode(self.X)
        unknown = np.zeros(values.shape, dtype=np.bool_)
        for j, column in self.unknown.items():
            unknown[:, j] = ~are_missing(column)
            values = values.astype(object)
            values[unknown[:, j], j] = column[unknown[:, j]]
        return values, unknown

    def _beside_training_rows(self, typicality: Floats) -> tuple[Bools, Floats]:
        """Compute whether each row (n_rows,) equals a training row, and `typical_share` of `Explanation`.

        Typicality is a share of n + 1 rows: the row and the n training rows of the class. A row that equals a
        training row of the class is counted twice. Here it is counted once.
        """
        rows, nearest = self.model.compared_rows, self.judgement.nearest
        keys, training_keys = equality_keys(self.X), equality_keys(rows.X)
        shares = typicality.copy()
        for a, reference in enumerate(self.model.trust.reference(self.computation).typical):
            training = training_keys[(rows.codes == a) & ~rows.is_alone]
            twice = (nearest == a) & np.isin(keys, training)
            n = max(reference.n, 1.0)
            shares[twice] = np.maximum((typicality[twice] * (n + 1.0) - 1.0) / n, 1.0 / n)
        return np.isin(keys, training_keys), shares

    def _nearest_ranges(self) -> Floats:
        """Return `nearest_range` (n_rows, 2, n_features) of `Explanation`."""
        ranges = self.model.class_ranges
        if ranges is None:
            return np.full((len(self.X), 2, self.model.n_features), np.nan)
        is_number = np.array([categories is None for categories in self.estimator.encoding_.categories])
        ranges = np.where(is_number | np.isinf(ranges), ranges, np.nan)
        nearest: Floats = ranges[self.judgement.nearest]
        return nearest

    def _rivals(self, against: ArrayLike | None, label: Integers) -> Integers:
        """Find the index (n_rows,) of the rival of each row, the class to compare with the predicted class.

        `label` (n_rows,) is the index of the predicted class, and `against` the parameter of `explain`. By
        default the rival has the second highest prior times density. The second highest probability is not
        used, since the prior mixing dominates probabilities far away from the training rows.
        """
        second = strongest_rivals(self.model.joint(self.estimates.log_density), label)
        if against is None:
            return second
        classes, given = self.model.labels, np.asarray(against)
        if given.shape not in ((), label.shape):
            raise ValueError(f"against must be a label, or a label for each row, got shape {given.shape}.")
        named = np.broadcast_to(given, label.shape)
        unknown = np.setdiff1d(named, classes)
        if unknown.size:
            raise ValueError(f"against holds the class {unknown.tolist()[0]!r}, which is not in classes_.")
        rival = np.searchsorted(classes, named)
        return np.where(rival == label, second, rival)
