"""The public API is exactly what is listed here: names, parameters and defaults, methods and attributes.

A change of the API is a change of this list, so it cannot happen by accident. What estimators inherit from
scikit-learn is not listed; tests/estimators/test_sklearn.py asks scikit-learn about it.
"""

import importlib
import inspect
import pkgutil
import re
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import corral
import corral.dask
import corral.datasets
from corral.datasets import make_shifted_groups

# Parameters of a class, then methods and attributes of a fitted estimator or of a result, in any order.
# An attribute with the name of a parameter is not repeated.

CLASSIFIER = """
    assess(X, coverage=0.9), class_count_, class_prior_, classes_, decide(X, costs, reject_cost=None),
    decision_function(X), describe(), encoding_, explain(X, *, against=None, n_rows=5),
    feature_importances_, feature_names_in_,
    fit(X, y=None, sample_weight=None, groups=None), is_novel(X, level=0.01), log_density(X), model_,
    n_duplicates_, n_features_in_, predict(X), predict_joint_log_proba(X), predict_log_proba(X),
    predict_proba(X),
    predict_set(X, coverage=0.9), selection_frequency(n_resamples=20, random_state=None), typicality(X)
"""

POOL = """
    cv_accuracy_, cv_balanced_accuracy_, cv_log_loss_, cv_recall_, markers_, member_scores_, member_weights_,
    members_
"""

CLASSES = {
    "corral.Assessment": """
        classes, proba, scores, typicality, novelty, is_novel, sets, coverage, index,
        label, nearest_typicality, to_frame()
    """,
    "corral.BandwidthDisplay": """
        bandwidths, titles, feature_names, initial_bandwidths=None, relevant=None, units='scaled units',
        axes_, figure_, from_estimator(estimator, X, y=None, *, axes=None), plot(axes=None)
    """,
    "corral.Description": """
        classes, feature_names, markers, direction, effect, pvalue, typical, others, background, evidence,
        order, typical_range, others_range, background_range, shares, background_classes, categories,
        often_missing, missing_shares, missing_background_classes,
        adds_nothing(), also_rests_on(label_number), has_values, leading_markers(label_number),
        lines(label_number), lines_beside_others(label_number), markers_of(label_number),
        missing_phrases(label_number),
        phrase(label_number, variable), to_frame(),
        value_text(variable, value)
    """,
    "corral.Explanation": """
        label, rival, probability, feature_names, values, unknown, bandwidths, base, evidence,
        evidence_error, conditional, rows, shares, effective_rows, group_share, stands_out, n_tied,
        rests_on_few, row_names, nearest, typicality, typical_share, novel, in_training, novelty_parts, equal,
        stands_for, nearest_range, sample_names=None,
        aligned(names), caution(sample), log_odds, novelty(sample, description=None),
        plot(sample=0, *, max_variables=12, axes=None), renumbered(positions),
        sentences(sample, called=None, description=None), support_to_frame(), to_frame(), to_shap(label=None),
        unlike(sample)
    """,
    "corral.ExplanationDisplay": """
        label, rival, probability, feature_names, values, evidence, rows, shares, base=0.0, row_names=None,
        axes_, figure_,
        from_estimator(estimator, X, *, sample=0, against=None, n_rows=5, max_variables=12, axes=None),
        from_explanation(explanation, *, sample=0, max_variables=12, axes=None),
        plot(axes=None, *, max_variables=12)
    """,
    "corral.Finding": "kind, description, advice, columns=(), rows=(), values=()",
    "corral.HeldOut": """
        classes, truth, proba, claim='that took no part in fitting', groups=None, parts=(),
        baselines=None,
        against_frequencies(), confusion(), frequencies(), groups_are_new, labels, most_frequent_share(),
        n_groups, of_folds(estimator, X, y, *, cv=5, groups=None, random_state=0), positions,
        ranking_curve(label, most=100), rarer_class, recalls(), reliability(), scores(), share_right(chosen),
        thresholds(label)
    """,
    "corral.LSPClassifier": """
        sigmas=..., alphas=..., max_centers=500, cv=5, scale=None, n_jobs=None, random_state=None,
        best_index_, best_params_, best_score_, centers_, class_count_, classes_, cv_results_, dual_coef_,
        feature_names_in_, fit(X, y), n_features_in_, predict(X), predict_proba(X), scale_
    """,
    "corral.LearningCurve": """
        classes, sizes, goal, measured,
        accuracy(n_rows), from_estimator(estimator, *, goal=None, random_state=None), history,
        log_loss(n_rows), n_rows, needed, needs_in_words(), recall(label, n_rows), table()
    """,
    "corral.MarkerSelector": """
        min_effect=0.15, categorical_features='from_dtype',
        classes_, comparison_, contrast_, describe(), encoding_, feature_names_in_,
        fit(X, y=None, sample_weight=None, groups=None), missing_contrast_, markers_, n_features_in_,
        transform(X)
    """,
    "corral.RelevanceDisplay": """
        values, relevant, classes, feature_names, direction=None, quantity='effect',
        ax_, figure_, from_estimator(estimator, *, quantity='effect', ax=None), im_, plot(ax=None)
    """,
    "corral.RodeoClassifier": f"""
        bandwidth='local', features='all', update='simultaneous', scale='range', beta=0.9, c0=1.0,
        cutpoint=-1.0, min_effect=0.15, priors='uniform', class_weight=None, min_bandwidth='auto',
        categorical_features='from_dtype', n_jobs=None, verbose=0, random_state=None,
        bandwidth_path(X, label), bandwidths_, initial_bandwidth_, local_bandwidths(X),
        partial_fit(X, y, classes=None, sample_weight=None, groups=None), relevant_, row_names_column_,
        row_names_in_, zscores_,
        {CLASSIFIER}
    """,
    "corral.CorralClassifier": f"""
        priors='empirical', class_weight=None, min_effect=0.15, categorical_features='from_dtype',
        max_rows=3000, n_jobs=None, verbose=0, random_state=None,
        partial_fit(X, y, classes=None, sample_weight=None, groups=None), row_names_column_, row_names_in_,
        {CLASSIFIER}, {POOL}
    """,
    "corral.RodeoDensity": """
        update='simultaneous', scale='range', beta=0.9, c0=1.0, min_bandwidth='auto',
        categorical_features='from_dtype', n_jobs=None, verbose=0,
        bandwidth_path(X), density_, encoding_, feature_names_in_, fit(X, y=None, sample_weight=None),
        initial_bandwidth_, local_bandwidths(X), n_duplicates_, n_features_in_,
        sample(n_samples=1, random_state=None), score(X, y=None), score_samples(X)
    """,
    "corral.RodeoPath": """
        bandwidths, ratios, tested,
        at_floor, n_tests
    """,
    "corral.RodeoPathDisplay": """
        path, feature_names, title='', units='scaled units',
        axes_, figure_, from_estimator(estimator, X, *, sample=0, label=None, max_variables=6, axes=None),
        plot(axes=None, *, max_variables=6)
    """,
    "corral.RodeoSelector": """
        cutpoint=-1.0, update='simultaneous', scale='range', beta=0.9, c0=1.0, min_bandwidth='auto',
        categorical_features='from_dtype', n_jobs=None, verbose=0, random_state=None,
        bandwidths_, classes_, encoding_, feature_names_in_, fit(X, y=None, sample_weight=None, groups=None),
        n_features_in_, relevant_, transform(X), zscores_
    """,
    "corral.SampleSizeDisplay": """
        result,
        axes_, figure_, from_result(result, *, axes=None), plot(axes=None)
    """,
    "corral.SampleSizes": """
        classes, tolerance, converged, reason, steps, extrapolation,
        accuracy, caveats, epsilon, history, sizes
    """,
    "corral.dask.DaskCorralClassifier": f"""
        client=None, block_rows=100000, max_rows=3000, priors='empirical', class_weight=None, min_effect=0.15,
        categorical_features='from_dtype', n_jobs=None, verbose=0, random_state=None,
        client_, to_local(),
        {CLASSIFIER}, {POOL}
    """,
}

WARNINGS = [
    "corral.ColumnKindWarning",
    "corral.DuplicatesWarning",
    "corral.EmptySelectionWarning",
    "corral.NearDuplicatesWarning",
    "corral.ShiftedTableWarning",
    "corral.UnknownCategoriesWarning",
]

FUNCTIONS = {
    "corral.check_table": "frame, target=None, *, ids=(), group=None, categorical=()",
    "corral.describe": "estimator",
    "corral.estimate_sample_sizes": """
        X, y, *, method='curve', goal=None, groups=None, tolerance=None, initial_size=None,
        test_size=None, step=None, estimator=None, allocation=None, empty=None, max_steps=None,
        random_state=None
    """,
    "corral.explain": "estimator, X, *, against=None, n_rows=5",
    "corral.load_model": "path",
    "corral.save_model": "estimator, path",
    "corral.write_report": """
        estimator, X, y=None, path=None, *, held_out=None, sample_sizes=None, title=None, source=None,
        max_samples=2000, random_state=0
    """,
    "corral.datasets.load_anuran": "*, species='paper', data_home=None, return_X_y=False",
    "corral.datasets.load_optdigits": "*, subset='all', data_home=None, return_X_y=False",
    "corral.datasets.load_penguins": "*, return_X_y=False",
    "corral.datasets.load_waveform": "*, data_home=None, return_X_y=False",
    "corral.datasets.make_shifted_groups": """
        n_per_class=200, *, groups=(1, 2, 3, 4, 5), random_state=None
    """,
    "corral.datasets.make_ten_groups": "n_per_class=150, *, random_state=None",
    "corral.datasets.make_waveform": "n_per_class=100, *, noise_features=19, random_state=None",
}

# ----------------------------------------------------------------------------- an example of each class

X, Y = make_shifted_groups(20, groups=(1, 4, 5), random_state=0)
FRAME = pd.DataFrame(X[:, :3], columns=["a", "b", "c"], index=[f"row {i}" for i in range(len(Y))])


@cache
def examples():
    """An object of each class."""
    pool = corral.CorralClassifier(random_state=0).fit(FRAME, Y)
    rodeo = corral.RodeoClassifier().fit(FRAME, Y)
    sizes = corral.estimate_sample_sizes(
        X[:, :3], Y, method="bound", tolerance=1.0, initial_size=8, test_size=5, step=3
    )
    return {
        "corral.Assessment": pool.assess(FRAME),
        "corral.BandwidthDisplay": corral.BandwidthDisplay.from_estimator(rodeo, FRAME[:1]),
        "corral.Description": pool.describe(),
        "corral.Explanation": pool.explain(FRAME[:2]),
        "corral.ExplanationDisplay": corral.ExplanationDisplay.from_estimator(pool, FRAME[:1]),
        "corral.Finding": corral.check_table(pd.DataFrame({"a": [1.0] * 20}))[0],
        "corral.HeldOut": corral.HeldOut(np.array([0, 1]), np.array([0, 1]), np.eye(2)),
        "corral.LSPClassifier": corral.LSPClassifier(random_state=0).fit(FRAME, Y),
        "corral.LearningCurve": corral.LearningCurve.from_estimator(pool, random_state=0),
        "corral.MarkerSelector": corral.MarkerSelector().fit(FRAME, Y),
        "corral.RelevanceDisplay": corral.RelevanceDisplay.from_estimator(pool),
        "corral.RodeoClassifier": rodeo,
        "corral.CorralClassifier": pool,
        "corral.RodeoDensity": corral.RodeoDensity().fit(FRAME),
        "corral.RodeoPath": rodeo.bandwidth_path(FRAME[:1], 1),
        "corral.RodeoPathDisplay": corral.RodeoPathDisplay.from_estimator(rodeo, FRAME[:1], label=1),
        "corral.RodeoSelector": corral.RodeoSelector(cutpoint=-0.5).fit(FRAME, Y),
        "corral.SampleSizeDisplay": corral.SampleSizeDisplay.from_result(sizes),
        "corral.SampleSizes": sizes,
        "corral.dask.DaskCorralClassifier": corral.dask.DaskCorralClassifier(random_state=0).fit(FRAME, Y),
    }


# ---------------------------------------------------------------------------------------- what there is


def find(name):
    """The object that a dotted name stands for."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def text_of(parameter):
    """A parameter with its default, if that is short."""
    default = repr(parameter.default)
    if parameter.default is parameter.empty:
        return parameter.name
    return f"{parameter.name}={default if len(default) <= 30 else '...'}"


def signature_of(function):
    """Parameters of a function without types, a star before those that have to be named."""
    texts, named = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not named:
            texts, named = [*texts, "*"], True
        texts.append(text_of(parameter))
    return ", ".join(texts)


def own_names(example):
    """Public names of an object, but for those that only a base class from elsewhere has."""
    ours = [cls for cls in type(example).__mro__ if cls.__module__.startswith("corral")]
    names = {name for cls in ours for name in vars(cls)} | set(getattr(example, "__dict__", ()))
    return {
        name
        for name in names
        if not name.startswith("_") and not name.endswith("_request") and hasattr(example, name)
    }


def lines_of(name):
    """The public names of a class, as they are listed above."""
    example = examples()[name]
    parameters = inspect.signature(find(name)).parameters
    lines = {text_of(parameter) for parameter in parameters.values()}
    for attribute in own_names(example) - set(parameters):
        value = getattr(example, attribute)
        lines.add(f"{attribute}({signature_of(value)})" if inspect.isroutine(value) else attribute)
    return lines


@pytest.fixture(autouse=True)
def no_window():
    """Draw into memory, and close what was drawn."""
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.mark.parametrize("module", [corral, corral.dask, corral.datasets], ids=lambda module: module.__name__)
def test_public_names_are_those_listed(module):
    listed = [name.rpartition(".") for name in (*CLASSES, *WARNINGS, *FUNCTIONS)]
    assert set(module.__all__) == {name for place, _, name in listed if place == module.__name__}


def test_no_package_hides_a_public_name():
    # Importing corral.x binds the module x to the attribute, whatever the lazy loader would return.
    packages = {module.name for module in pkgutil.iter_modules(corral.__path__)}
    assert packages & set(corral.__all__) == set()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_parameters_listed(name):
    assert signature_of(find(name)) == " ".join(FUNCTIONS[name].split())


def test_warnings_are_warnings_of_users():
    assert all(issubclass(find(name), UserWarning) for name in WARNINGS)


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_the_parameters_methods_and_attributes_listed(name):
    listed = re.split(r"\s*,\s*(?![^()]*\))", CLASSES[name].strip())  # at commas outside parentheses
    assert lines_of(name) == set(listed)
