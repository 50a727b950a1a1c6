"""What marks each class: descriptions, evidence for classes, and the words for both."""

import functools
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.feature_selection import SelectFromModel

import paper_oracle
from corral import (
    CorralClassifier,
    Description,
    EmptySelectionWarning,
    MarkerSelector,
    RodeoClassifier,
    load_model,
    save_model,
)
from corral.datasets import make_shifted_groups, make_ten_groups
from corral.markers.contrast import contrast
from corral.sentences.numbers import different_texts, exact_text, number_text, percent_texts, range_texts
from evidence import evidence_oracle

HEADS = ["class", "variable", "marker", "direction", "effect", "pvalue", "evidence"]
NUMBERS = ["lower_quartile", "upper_quartile", "share"]
HEADS += ["typical", "others", "background", "background_classes", *NUMBERS]
HEADS += [f"{sample}_{name}" for sample in ("others", "background") for name in NUMBERS]
QUICK = {"random_state": 0}


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, load_iris().target_names[y]


@pytest.fixture(scope="module")
def fitted(iris):
    return CorralClassifier(**QUICK).fit(*iris)


def signs(n=60, seed=0):
    """Two signs coded 0 to 3, a flag and noise; the first class has the first sign, the second the flag."""
    random = np.random.default_rng(seed)
    y = np.repeat(["lichen", "rosea", "other", "rest"], n)
    X = pd.DataFrame({"saw_tooth": random.choice(4, 4 * n, p=[0.9, 0.08, 0.01, 0.01]).astype(float)})
    X.loc[y == "lichen", "saw_tooth"] = random.choice([1, 2, 3], n, p=[0.1, 0.6, 0.3])
    X["patch"] = (random.random(4 * n) < np.where(y == "rosea", 0.8, 0.05)).astype(float)
    X["age"] = random.normal(40, 10, 4 * n).round()
    return X, y


# What is described


@pytest.mark.parametrize(
    "estimator",
    [
        RodeoClassifier(),
        RodeoClassifier(bandwidth="class", features="selected"),
        CorralClassifier(**QUICK),
        MarkerSelector(),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")
def test_the_frame_has_a_line_for_each_class_and_variable(iris, estimator):
    X, y = iris
    model = estimator.fit(X, y)
    description = model.describe()
    assert isinstance(description, Description)
    frame = description.to_frame()
    selects = isinstance(model, MarkerSelector)
    assert frame.columns.tolist() == [name for name in HEADS if name != "evidence" or not selects]
    assert frame["class"].tolist() == np.repeat(model.classes_, 4).tolist()
    contrasts = contrast(X.to_numpy(), np.searchsorted(model.classes_, y), 3)
    for label, class_lines in frame.groupby("class"):
        a = model.classes_.tolist().index(label)
        j = [X.columns.tolist().index(name) for name in class_lines["variable"]]
        assert sorted(j) == [0, 1, 2, 3]
        assert_array_equal(class_lines["marker"], contrasts.markers[a, j])
        assert_array_equal(class_lines["pvalue"], contrasts.pvalue[a, j])
        assert_allclose(class_lines["typical"], X[y == label].median().iloc[j])
        assert_allclose(class_lines["others"], X[y != label].median().iloc[j])
        # Relevant variables first, and strong ones before weak ones.
        order = list(zip(~class_lines["marker"], -class_lines["effect"].abs(), strict=True))
        assert order == sorted(order)


def test_the_groups_of_the_paper_have_their_variables():
    X, y = make_ten_groups(100, random_state=1)
    markers = CorralClassifier(**QUICK).fit(X, y).markers_
    assert [np.flatnonzero(row).tolist() for row in markers] == [list(range(g, g + 6)) for g in range(10)]
    X, y = make_shifted_groups(200, random_state=1)
    assert_array_equal(MarkerSelector().fit(X, y).markers_, np.tile(np.arange(10) < 2, (5, 1)))


# What labels rest on


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bandwidth", ["local", "class"])
def test_evidence_agrees_with_the_plain_loops(bandwidth, weighted):
    random = np.random.RandomState(3)
    y = np.repeat([0, 1, 2], [4, 6, 5])
    X = random.uniform(size=(15, 3))
    X[y == 1, 0] = random.normal(0.5, 0.05, 6)
    X[y == 2, 1] += 1.0
    weights = random.uniform(0.5, 2.0, 15) if weighted else None
    model = RodeoClassifier(bandwidth=bandwidth, scale=None, priors="empirical").fit(X, y, weights)

    @functools.cache  # the loops ask for the same ones again for every set of variables
    def bandwidths(a, row, x):
        is_own = y == a
        w = None if weights is None else weights[is_own].copy()
        if bandwidth == "class":
            return model.bandwidths_[a].tolist()
        h0 = model.initial_bandwidth_[a]
        floor = h0 / paper_oracle.effective_number(X[is_own], w)
        if row is None:
            return paper_oracle.rodeo(X[is_own], x, h0=h0, floor=floor, weights=w)[0]
        position = int(np.flatnonzero(is_own).tolist().index(row))
        return paper_oracle.leave_one_out(X[is_own], position, h0=h0, floor=floor, weights=w)[0]

    expected = evidence_oracle.mean_evidence(X, y, bandwidths, model.class_prior_, weights)
    assert_allclose(model.describe().evidence, expected, rtol=1e-9, atol=1e-9)
    means = np.maximum(np.mean(expected, axis=0), 0.0)
    assert_allclose(model.feature_importances_, means / means.sum(), atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("estimator", [RodeoClassifier(bandwidth="class"), CorralClassifier(random_state=0)])
def test_the_order_of_rows_changes_no_evidence(estimator, weighted):
    X, y = make_shifted_groups(70, groups=(1, 2), random_state=0)
    X, weights = X[:, :3], np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    order = np.random.default_rng(1).permutation(len(y))
    expected = estimator.fit(X, y, weights)
    evidence, importances = expected.describe().evidence, expected.feature_importances_
    shuffled = estimator.fit(X[order], y[order], None if weights is None else weights[order])
    assert_allclose(shuffled.describe().evidence, evidence, rtol=1e-9, atol=1e-12)
    assert_allclose(shuffled.feature_importances_, importances, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::corral.DuplicatesWarning")
def test_duplicates_are_left_out_of_evidence():
    X, y = make_shifted_groups(30, groups=(4, 5), random_state=0)
    model = RodeoClassifier(bandwidth="class")
    once = model.fit(X, y).describe().evidence
    twice = model.fit(np.vstack([X, X]), np.concatenate([y, y])).describe().evidence
    assert_allclose(twice, once, rtol=1e-9)


def test_a_class_of_one_row_does_not_speak_for_itself():
    X = np.random.default_rng(0).normal(size=(61, 3))
    X[60] += 5.0
    y = np.repeat([0, 1, 2], [30, 30, 1])
    model = CorralClassifier(**QUICK).fit(X, y)
    assert (model.describe().evidence[2] < 0.5).all()


def test_variables_that_act_only_jointly_have_evidence():
    random = np.random.default_rng(0)
    X = random.choice([-1.0, 1.0], (400, 2)) + random.normal(0, 0.3, (400, 2))
    X = np.column_stack([X, random.normal(size=400)])
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    model = CorralClassifier(**QUICK).fit(X, y)
    description = model.describe()
    assert not description.markers.any()  # no single variable separates them
    assert (description.evidence[:, :2] > 1.0).all()
    assert (description.evidence[:, :2] > 3.0 * np.abs(description.evidence[:, 2:])).all()
    for line in repr(description).splitlines():
        assert "not describe the class, but" in line
        assert [f"x{j}" in line for j in range(3)] == [True, True, False]
    assert SelectFromModel(model, prefit=True).get_support().tolist() == [True, True, False]


def test_a_class_without_rows_has_no_evidence():
    X, y = make_shifted_groups(20, groups=(4, 5), random_state=0)
    model = RodeoClassifier().partial_fit(X, y, classes=[3, 4, 5])
    description = model.describe()
    assert_array_equal(description.evidence[0], 0.0)
    assert not description.markers[0].any()
    assert np.isnan(description.typical[0]).all()
    assert np.isfinite(model.feature_importances_).all()
    assert repr(description).startswith("3: no variable found\n")


# Words


def test_directions_are_in_words(iris):
    text = repr(MarkerSelector().fit(*iris).describe())
    assert text.splitlines()[0] == (
        "setosa: petal length (cm) low (1.5; others 4.9), petal width (cm) low (0.2; others 1.6), "
        "sepal length (cm) low (5; others 6.3), sepal width (cm) high (3.4; others 2.9)"
    )
    assert "petal width (cm) narrow (1.2 to 1.5; others 0.2 to 2)" in text.splitlines()[1]


@pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")
def test_few_values_are_named():
    X, y = signs()
    lines = dict(line.split(": ", 1) for line in repr(MarkerSelector().fit(X, y).describe()).splitlines())
    assert lines["lichen"] == "saw_tooth high (2; others 0)"
    share, others = X["patch"][y == "rosea"].mean(), X["patch"][y != "rosea"].mean()
    assert lines["rosea"] == f"patch = 1 more often ({share:.0%}; others {others:.0%})"
    assert lines["other"] == "no variable found"


def test_numbers_in_words():
    values = [38.7, 47.654, 560.0, -0.0, 1e-4, 1.23456e-5, 9999.97, 24730.5, 35971.8, -123456.0]
    texts = ["38.7", "47.65", "560", "0", "0.0001", "1.235e-05", "10000", "24730", "35972", "-123456"]
    values += [20231231.0, 999999999999999.0, 1e15, np.nan, -np.inf]
    texts += ["20231231", "999999999999999", "1e+15", "nan", "-inf"]
    assert [number_text(value) for value in values] == texts


def test_numbers_that_are_compared_look_different():
    assert different_texts([52.3712, 52.3748]) == ["52.371", "52.375"]
    assert different_texts([101325.25, 101325.38, 7.0]) == ["101325.2", "101325.4", "7"]
    assert different_texts([0.1 + 0.2, 0.3]) == ["0.3", "0.3"]
    assert different_texts([np.nan, 1.0]) == ["nan", "1"]


def test_a_wider_range_looks_wider():
    assert range_texts([10012.4, 10015.6], [10011.6, 10015.4]) == ["10012.4 to 10015.6", "10011.6 to 10015.4"]
    assert range_texts([0.0, 0.0], [0.0, 1 / 3]) == ["0 to 0", "0 to 0.3333"]
    assert range_texts([1.0, 2.0], [1.0, 2.0]) == ["1 to 2", "1 to 2"]
    assert range_texts([np.nan, np.nan], [1.0, 2.0]) == ["nan to nan", "1 to 2"]


def test_values_of_many_rows_are_written_as_the_table_has_them():
    message = [exact_text(value) for value in (1013.25, 123456.0, 0.1 + 0.2, 2 / 3, np.float32(0.1))]
    assert message == ["1013.25", "123456", "0.3", "0.6667", "0.1"]


def test_mostly_zeros_are_told_by_ranges_or_shares():
    random = np.random.default_rng(0)
    y = np.repeat(["plain", "rich"], 200)
    half = np.where(random.random(400) < np.where(y == "rich", 0.4, 0.05), random.exponential(5, 400), 0.0)
    few = np.where(random.random(400) < np.where(y == "rich", 0.2, 0.0), random.exponential(5, 400), 0.0)
    description = MarkerSelector().fit(np.column_stack([half, few]), y).describe()
    upper, share = np.quantile(half[y == "rich"], 0.75), (few[y == "rich"] == 0.0).mean()
    assert description.phrase(0, 0) == f"x0 low (0 to 0; others 0 to {upper:.4g})"
    assert description.phrase(0, 1) == f"x1 = 0 more often (100%; others {share:.0%})"
    least = few[few > 0.0].min()
    assert description.phrase(1, 1).startswith("x1 at least 0.")
    assert float(description.phrase(1, 1).split()[3]) == pytest.approx(least, rel=1e-3)


def test_many_variables_are_counted():
    X, y = load_breast_cancer(return_X_y=True)
    description = MarkerSelector().fit(X, y).describe()
    n = int(description.markers[1].sum())
    assert repr(description).splitlines()[1].endswith(f", and {n - 4} more")


# Beside all other rows


def five_places(n=60, seed=0):
    """Five classes: "a" is high where three others are low and one is high as well; it has a color of two."""
    random = np.random.default_rng(seed)
    y = np.repeat(list("abcde"), [n, n, n, n, 3 * n])
    high = np.isin(y, ["a", "e"])
    X = pd.DataFrame({"length": random.normal(np.where(high, 6.0, 0.0), 1.0).round(2)})
    X["color"] = pd.Categorical(np.where(high, "red", random.choice(["blue", "green"], y.size)))
    X["width"] = random.normal(np.where(y == "a", 2.0, 0.0), 1.0).round(2)
    return X, y


@pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")
def test_others_are_all_other_rows_and_the_background_is_named():
    X, y = five_places()
    description = MarkerSelector().fit(X, y).describe()
    own, others, three = y == "a", y != "a", np.isin(y, ["b", "c", "d"])
    shares = [(X["color"][rows] == "red").mean() for rows in (own, three, others)]
    assert shares == [1.0, 0.0, 0.5]
    assert (
        description.phrase(0, 1)
        == 'color = "red" more often (100%; 0% in 3 of 4 other classes; 50% of all other rows)'
    )
    medians = [f"{X['length'][rows].median():.4g}" for rows in (own, three, others)]
    assert description.phrase(0, 0) == (
        "length high ({}; {} in 3 of 4 other classes; {} in all other rows)".format(*medians)
    )
    assert (
        description.phrase(0, 2)
        == f"width high ({X['width'][own].median():.4g}; others {X['width'][others].median():.4g})"
    )


@pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")
def test_markers_are_ranked_by_all_other_rows_and_few_are_shown():
    X, y = five_places()
    weak = np.random.default_rng(1).normal(np.where(y == "a", 0.7, 0.0), 1.0)
    description = MarkerSelector().fit(X.assign(weak=weak, shifted=weak + 20.0 * (y == "a")), y).describe()
    assert description.markers[0].all()
    names = [description.feature_names[j] for j in description.markers_of(0)]
    assert names == ["shifted", "width", "length", "color", "weak"]
    assert np.all(np.diff(np.abs(description.effect[0, description.order[0]])) <= 0.0)
    assert [description.feature_names[j] for j in description.leading_markers(0)] == names[:4]
    assert description.lines(0)[-1] == "and 1 more"
    # A variable that marks half of the classes separates none of them from all other rows.
    assert description.effect[0, description.feature_names.index("color")] == 0.5


@pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")
def test_the_frame_has_the_numbers_of_the_sentences():
    X, y = five_places()
    X.loc[::9, "width"] = np.nan
    frame = MarkerSelector().fit(X, y).describe().to_frame()
    for _, line in frame.iterrows():
        x, own = X[line["variable"]], y == line["class"]
        for prefix, rows in (("", own), ("others_", ~own)):
            assert line[f"{prefix}missing"] == pytest.approx(x[rows].isna().mean())
            if line["variable"] == "color":
                category = line["direction"].split('"')[1]
                assert line[f"{prefix}share"] == pytest.approx((x[rows] == category).mean())
                continue
            lower, median, upper = x[rows].quantile([0.25, 0.5, 0.75])
            assert line[["typical", "others"][rows is not own]] == pytest.approx(median)
            assert line[f"{prefix}lower_quartile"] == pytest.approx(lower)
            assert line[f"{prefix}upper_quartile"] == pytest.approx(upper)
    red = frame[(frame["class"] == "a") & (frame["variable"] == "color")].iloc[0]
    assert (red["typical"], red["background_share"], red["background_classes"]) == ("red", 0.0, 3)


@pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")
def test_groups_change_no_number_of_a_sentence():
    X, y = five_places()
    groups = np.arange(len(y)) // 6
    X["length"] += np.repeat(np.random.default_rng(2).normal(0.0, 3.0, groups.max() + 1), 6)
    plain, grouped = (MarkerSelector().fit(X, y, groups=each).describe() for each in (None, groups))
    for name in ("typical", "others", "typical_range", "others_range"):
        assert_array_equal(getattr(grouped, name), getattr(plain, name), err_msg=name)


@pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")
def test_where_nothing_is_missing_no_share_says_so():
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [40, 60, 80])
    X = pd.DataFrame({"complete": random.normal(size=180), "often": random.normal(size=180)})
    X.loc[(y == 1) & (random.random(180) < 0.7), "often"] = np.nan
    description = MarkerSelector().fit(X.assign(far=10.0 * y), y, groups=np.arange(180) // 2).describe()
    assert not description.missing_shares[:, :, 0].any()
    frame = description.to_frame().set_index(["class", "variable"])
    for name in ("missing", "others_missing", "background_missing"):
        assert (frame.loc[(slice(None), "complete"), name] == 0.0).all()
    share = X["often"][y == 1].isna().mean()
    assert description.missing_phrases(1) == [f"often missing more often ({share:.0%}; others 0%)"]


@pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")
def test_sample_weights_count():
    X, y = five_places()
    weights = np.random.default_rng(3).integers(0, 4, len(y))
    description = MarkerSelector().fit(X, y, sample_weight=weights).describe()
    rows = np.repeat(np.arange(len(y)), weights)
    share = (X["color"].to_numpy()[rows][y[rows] != "a"] == "red").mean()
    assert description.shares[1, 0, 1] == pytest.approx(share)
    widths = np.repeat(X["width"], weights)[np.repeat(y, weights) != "a"]
    assert description.others[0, 2] == pytest.approx(np.quantile(widths, 0.5, method="averaged_inverted_cdf"))


def test_compressed_classes_are_described_by_all_rows(tmp_path):
    X, y = five_places(150)
    X.loc[(y == "b") & (np.arange(y.size) % 3 > 0), "width"] = np.nan
    fitted = CorralClassifier(max_rows=40, **QUICK).fit(X, y)
    assert len(fitted.model_.data.X) == 5 * 40
    save_model(fitted, tmp_path / "m.corral")
    for model in (fitted, load_model(tmp_path / "m.corral")):
        description = model.describe()
        for a, label in enumerate("abcde"):
            own, others = X[y == label], X[y != label]
            assert_allclose(description.typical[a, [0, 2]], own[["length", "width"]].median())
            assert_allclose(description.others[a, [0, 2]], others[["length", "width"]].median())
            assert_allclose(
                description.missing_shares[:2, a, 2], [each["width"].isna().mean() for each in (own, others)]
            )
        assert description.phrase(0, 1).endswith("(100%; 0% in 3 of 4 other classes; 50% of all other rows)")


def test_two_classes_are_described_once():
    X, y = load_breast_cancer(return_X_y=True)
    description = MarkerSelector().fit(X, y).describe()
    first, second = repr(description).splitlines()
    assert first == "0: the same variables as for 1, in the opposite direction"
    assert second == f"1: {', '.join(description.lines(1))}"
    assert description.lines(0)[0] != description.lines(1)[0]
    assert "in the opposite direction" in description._repr_html_()


def test_two_classes_of_other_categories_are_both_described():
    """Where each class has another category more often, neither is the mirror image of the other."""
    y = np.repeat(["u", "v"], 100)
    size = np.random.default_rng(0).normal(size=200) + 2.0 * (y == "v")
    letter = np.r_[np.resize([*"aaaaaaaabc"], 100), np.resize([*"bbbbbbbbac"], 100)]
    X = pd.DataFrame({"size": size, "mark": letter})
    first, second = repr(MarkerSelector().fit(X, y).describe()).splitlines()
    assert 'mark = "a" more often' in first
    assert 'mark = "b" more often' in second
    X = X.replace({"mark": {"c": "b"}})
    description = MarkerSelector().fit(X, y).describe()
    assert description.direction[:, 1].tolist() == ['= "a" more often', '= "b" more often']  # of two
    assert repr(description).startswith("u: the same variables as for v, in the opposite direction\n")


@pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")
def test_categories_that_are_equally_frequent_share_a_sentence():
    y = np.repeat(["Europe", "Africa", "Asia"], [120, 240, 240])
    country = [*np.repeat(list("ABCDEFGHIJ"), 12), *np.tile(list("UVWXYZ"), 80)]
    description = MarkerSelector().fit(pd.DataFrame({"country": pd.Categorical(country)}), y).describe()
    assert description.phrase(2, 0) == 'country = "A" or 9 other categories more often (100%; others 0%)'


def test_small_shares_look_different():
    assert percent_texts([0.004, 0.001]) == ["0.4%", "0.1%"]
    assert percent_texts([1.0, 0.9996, 0.5]) == ["100.00%", "99.96%", "50.00%"]
    assert percent_texts([0.25, 0.25]) == ["25%", "25%"]


class Cells(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.texts, self.tags = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")
def test_notebooks_show_a_table(fitted):
    X, y = signs()
    X = X.rename(columns={"patch": "<script>alert(1)</script>"})
    cells = Cells(MarkerSelector().fit(X, y).describe()._repr_html_())
    assert "script" not in cells.tags
    assert any(text.startswith("<script>alert(1)</script> = 1 more often") for text in cells.texts)
    assert "no variable found" in cells.texts
    description = fitted.describe()
    n_lines = sum(len(description.lines(a)) for a in range(3))
    cells = Cells(description._repr_html_())
    assert cells.tags.count("tr") == 1 + n_lines
    assert {f"{effect:+.2f}" for effect in description.effect[0, description.leading_markers(0)]} < set(
        cells.texts
    )
    assert any("best from all other rows" in text for text in cells.texts)


@pytest.mark.filterwarnings("ignore::corral.EmptySelectionWarning")
def test_notebooks_show_explanations(iris):
    X, y = iris
    X = X.rename(columns={"petal width (cm)": "<b>width</b>"})
    fitted = RodeoClassifier(bandwidth="class").fit(X, y)
    contrasts = fitted.explain(X[::6])
    cells = Cells(contrasts._repr_html_())
    assert cells.tags.count("tr") == 1 + 20
    assert "b" not in cells.tags
    assert "... and 5 more samples" in cells.texts
    assert f"{contrasts.label[3]} ({contrasts.probability[3, 0]:.2f})" in cells.texts
    assert f"{contrasts.rival[3]} ({contrasts.probability[3, 1]:.2f})" in cells.texts
    strongest = contrasts.feature_names[int(np.abs(contrasts.evidence[0]).argmax())]
    assert any(text.startswith(strongest) for text in cells.texts)
    assert "more samples" not in fitted.explain(X[:1])._repr_html_()


# Files, errors and warnings


def test_a_selector_that_finds_nothing_says_so():
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.warns(EmptySelectionWarning, match=r"the classes \[0, 1\] have no markers: they may"):
        selector = MarkerSelector().fit(X, np.repeat([0, 1], 30))
    assert repr(selector.describe()) == "0: no variable found\n1: no variable found"
