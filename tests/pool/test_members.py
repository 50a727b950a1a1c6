"""The member protocol: a kind of member that is written here takes part in everything."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t

from corral import CorralClassifier, load_model, save_model
from corral.array_types import Floats, Integers, check_array
from corral.pool import kernel_members
from corral.pool.densities import MemberDensity
from corral.pool.member_kind import MemberKind
from corral.pool.members import MEMBER_KINDS, by_shared_fit, kind_of

# ------------------------------------------------------------------- the toy: all that a new member needs


@dataclass(frozen=True, eq=False)
class StudentDensity(MemberDensity):
    """Independent Student densities with four degrees of freedom."""

    center: Floats
    width: Floats
    weights: Floats

    row_weights = property(lambda self: self.weights)
    used = property(lambda self: np.flatnonzero(np.isfinite(self.width)))
    size = property(lambda self: max(self.center.size, 1))

    def validate(self):
        check_array("center", self.center, (None,))
        check_array("width", self.width, (self.center.size,), 1e-100)
        check_array("weights", self.weights, (None,), 0.0)

    def validate_for(self, n_categories: Integers):
        if n_categories.any() or n_categories.size != self.center.size:
            raise ValueError("columns have other categories")

    def log_density(self, scaled):
        return np.nan_to_num(t.logpdf(scaled, 4, self.center, self.width)).sum(axis=1)

    def without_rows(self):
        return replace(self, weights=np.empty(0))

    def on_rows(self, scaled, weights):
        return replace(self, weights=np.ones(len(scaled)) if weights is None else weights)


class StudentMember(MemberKind[Sequence[tuple]]):
    """Medians and mean deviations of each class."""

    identifier = "toy_student"
    title = "a toy of Student densities, standard scale"
    scale = "standard"

    def learn(self, rows, prior, seed):
        by_class = [rows.scaled["standard"][positions] for positions in rows.data.members()]
        centers = [np.median(x, axis=0) for x in by_class]
        return [(c, np.abs(x - c).mean(axis=0) + 0.1) for c, x in zip(centers, by_class, strict=True)]

    def build(self, learnt, data, scaled, bandwidth, shrinkage):
        sizes = [positions.size for positions in data.members()]
        return [StudentDensity(*each, np.ones(size)) for each, size in zip(learnt, sizes, strict=True)]


# --------------------------------------------------------------------------------------------- the tests


@pytest.fixture
def toy():
    """Register the toy for a test."""
    kind, others = StudentMember(), MEMBER_KINDS.copy()
    MEMBER_KINDS.append(kind)
    yield kind
    MEMBER_KINDS[:] = others


@pytest.fixture
def table():
    """Heavy tails, for which the toy is the right model."""
    y = np.arange(240) % 2
    return 1.2 * y[:, np.newaxis] + t.rvs(4, size=(240, 4), random_state=0), np.array(["a", "b"])[y]


def test_a_registered_member_takes_part_in_everything(toy, table, tmp_path):
    X, y = table
    model = CorralClassifier(random_state=0).fit(X, y)
    assert toy.title in model.member_scores_["member"]
    (member,) = (member for member in model.members_ if member.name == toy.title)
    explanation, description = model.explain(X[:5]), model.describe()
    odds = model.predict_log_proba(X[:5])
    expected = np.abs(odds[:, 0] - odds[:, 1])
    assert_allclose(explanation.evidence.sum(axis=1) + explanation.base, expected, rtol=1e-8)
    alone = member.explain(X[:5])
    odds = member.predict_log_proba(X[:5])
    assert_allclose(alone.evidence.sum(axis=1) + alone.base, np.abs(odds[:, 0] - odds[:, 1]), rtol=1e-8)
    assert np.isfinite(model.typicality(X[:5])).all()
    save_model(model, tmp_path / "model.corral")
    again = load_model(tmp_path / "model.corral")
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert_array_equal(again.explain(X[:5]).evidence, explanation.evidence)
    assert str(again.describe()) == str(description)


def test_a_member_that_there_is_not_is_refused(toy, table, tmp_path):
    save_model(CorralClassifier(random_state=0).fit(*table), tmp_path / "model.corral")
    MEMBER_KINDS.remove(toy)
    with pytest.raises(ValueError, match="no kind of member has the identifier 'toy_student'"):
        load_model(tmp_path / "model.corral")


def test_titles_may_change_and_files_stay_readable(table, tmp_path, monkeypatch):
    X, y = table
    model = CorralClassifier(random_state=0).fit(X, y)
    save_model(model, tmp_path / "model.corral")
    titles = [member.name for member in model.members_]
    scales = {scale: f"scale {scale}" for scale in ("score", "standard", "rank", "range")}
    monkeypatch.setattr(kernel_members, "_SCALES", scales)
    again = load_model(tmp_path / "model.corral")
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert all(", scale " in member.name for member in again.members_)
    assert not set(titles) & set(again.member_scores_["member"])


def test_identifiers_are_unique_and_known():
    identifiers = [kind.identifier for kind in MEMBER_KINDS]
    assert len(set(identifiers)) == len(identifiers)
    assert all(kind_of(identifier).identifier == identifier for identifier in identifiers)


def test_kinds_with_the_same_transform_are_tried_together():
    together = [[kind.identifier for kind in kinds] for kinds in by_shared_fit(MEMBER_KINDS)]
    assert together[:2] == [["own_kernels", "own_normal"], ["shared_kernels", "shared_normal"]]
    assert all(len(kinds) == 1 for kinds in together[2:])
