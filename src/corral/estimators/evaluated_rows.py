"""Rows whose class densities are evaluated once: the basis of assessments and explanations."""

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

# A row is novel if it is less typical than all but this share of the training rows, by default.
NOVELTY_LEVEL = 0.01

# How often a prediction set shall hold the right label, by default.
COVERAGE = 0.9


def evaluate_rows(estimator: Any, X: ArrayLike, *, bandwidths: bool = False) -> EvaluatedRows:
    """Check rows and evaluate their densities, with the Rodeo's bandwidths if they are to be explained."""
    table = estimator._check_table(X)  # noqa: SLF001 (a function of the estimators)
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
    """Say how many rows are novel, and by which variables if these are more than chance makes.

    `unlike` computes, for novel rows or a part of them, the values that make them unlike the training rows.
    Only for rows chosen `at_random` is there a test of whether novel rows are more than by chance.
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
    """Rows with their class densities."""

    estimator: Any  # a fitted classifier by class densities
    computation: Computation
    X: Floats  # (n_rows, n_features) the rows as numbers
    # by position of the variable (n_rows,) categories that no training row has, None in all other rows
    unknown: dict[int, NDArray[Any]]
    estimates: Estimates
    names: NDArray[Any] | None = None  # (n_rows,) labels of the index, if it names rows

    @property
    def model(self) -> LocalModel:
        """What the classifier has learnt."""
        model: LocalModel = self.estimator.model_
        return model

    def take(self, positions: Integers) -> EvaluatedRows:
        """The rows at these positions."""
        log_density, unscaled_score, h = self.estimates
        h = None if h is None else h[positions]
        estimates = Estimates(log_density[positions], unscaled_score[positions], h)
        names = None if self.names is None else self.names[positions]
        unknown = {j: values[positions] for j, values in self.unknown.items()}
        return replace(self, X=self.X[positions], unknown=unknown, estimates=estimates, names=names)

    @cached_property
    def proba(self) -> Floats:
        """Probabilities (n_rows, n_classes)."""
        return np.exp(self._log_proba)

    @cached_property
    def _log_proba(self) -> Floats:
        return self.model.posterior(self.estimates.log_density)

    @cached_property
    def judgement(self) -> Judgement:
        """How the rows compare with training rows."""
        return self.model.trust.judge(self.X, self.estimates.unscaled_score, self.computation)

    def assessment(self, coverage: float = COVERAGE, index: Any = None) -> Assessment:
        """Probabilities, typicality, novelty and prediction sets; `index` names the rows."""
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
        """Labels (n_rows, n_classes) that the rows may have; see `CorralClassifier.predict_set`."""
        pvalues = self.model.trust.label_pvalues(self.X, self.estimates.log_density, self.computation)
        # Without rounding: 1 - 0.9 is a little more than 0.1 would be of ten rows.
        sets: Bools = pvalues > 1.0 - coverage + 1e-12
        label = self._log_proba.argmax(axis=1)
        empty = ~sets.any(axis=1)
        sets[empty, label[empty]] = True
        sets[self.judgement.is_beyond] = False
        return sets

    def explanation(self, against: ArrayLike | None = None, n_rows: int = 5) -> Explanation:
        """Why the rows get their labels; see `CorralClassifier.explain`."""
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
        has_unknown: Bools = np.logical_or.reduce(unknown, axis=1)  # such a row equals no training row
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
        """Values that make each row unlike the nearest class, by variable."""
        explanation = self.explanation(n_rows=1)
        return [unlike_values(explanation, i) for i in range(len(explanation))]

    def _values(self) -> tuple[NDArray[Any], Bools]:
        """The rows as their table has them (n_rows, n_features), and which values are unknown categories."""
        values: NDArray[Any] = self.estimator.encoding_.decode(self.X)
        unknown = np.zeros(values.shape, dtype=np.bool_)
        for j, column in self.unknown.items():
            unknown[:, j] = ~are_missing(column)
            values = values.astype(object)
            values[unknown[:, j], j] = column[unknown[:, j]]
        return values, unknown

    def _beside_training_rows(self, typicality: Floats) -> tuple[Bools, Floats]:
        """Whether rows (n_rows,) equal training rows, and `typical_share` of `Explanation`.

        A typicality counts the row besides the n training rows of the class. A row that is one of them is
        counted twice, and removed once here.
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
        """Ranges (n_rows, 2, n_features) of numbers in the nearest classes; see `Explanation`."""
        ranges = self.model.class_ranges
        if ranges is None:
            return np.full((len(self.X), 2, self.model.n_features), np.nan)
        is_number = np.array([categories is None for categories in self.estimator.encoding_.categories])
        ranges = np.where(is_number | np.isinf(ranges), ranges, np.nan)
        nearest: Floats = ranges[self.judgement.nearest]
        return nearest

    def _rivals(self, against: ArrayLike | None, label: Integers) -> Integers:
        """Numbers (n_rows,) of the classes to compare the predicted ones with: no class is its own rival.

        By default the rival has the second highest joint probability. Probabilities would not do: far from
        all training rows they are mostly the mixed-in priors.
        """
        second = strongest_rivals(self.model.joint(self.estimates.log_density), label)
        if against is None:
            return second
        classes, given = self.model.labels, np.asarray(against)
        if given.shape not in ((), label.shape):
            raise ValueError(f"against must be one label or one for each sample, got shape {given.shape}.")
        named = np.broadcast_to(given, label.shape)
        unknown = np.setdiff1d(named, classes)
        if unknown.size:
            raise ValueError(f"against names the class {unknown.tolist()[0]!r}, which is not in classes_.")
        rival = np.searchsorted(classes, named)
        return np.where(rival == label, second, rival)
