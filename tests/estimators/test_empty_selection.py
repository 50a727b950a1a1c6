"""The warning of classes that no variable describes: the line it points at, and its advice."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from corral import (
    EmptySelectionWarning,
    RodeoClassifier,
    RodeoSelector,
    estimate_sample_sizes,
)
from corral.datasets import make_shifted_groups

X, Y = make_shifted_groups(20, groups=(4, 5), random_state=0)

# No z-score is so low.
NONE = {"cutpoint": -100.0, "beta": 0.5}
SELECTED = {**NONE, "features": "selected"}
SIZES = {"tolerance": 9.0, "initial_size": 5, "test_size": 5, "step": 2}

CALLS = {
    "fit": lambda: RodeoClassifier(**SELECTED).fit(X, Y),
    "partial_fit": lambda: RodeoClassifier(**SELECTED).partial_fit(X, Y),
    "transform": lambda: RodeoSelector(**NONE).fit_transform(X, Y),
    "selector in a pipeline": lambda: make_pipeline(RodeoSelector(**NONE), "passthrough").fit(X, Y),
    "grid": lambda: GridSearchCV(RodeoClassifier(**SELECTED), {"c0": [1.0]}, cv=2).fit(X, Y),
    "sample sizes": lambda: estimate_sample_sizes(X, Y, estimator=RodeoClassifier(**SELECTED), **SIZES),
}


@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")
@pytest.mark.parametrize("name", CALLS)
def test_points_at_the_line_of_the_user(name):
    with pytest.warns(EmptySelectionWarning, match=r"relevant for the classes \[4, 5\] in scale='") as caught:
        CALLS[name]()
    told = [each for each in caught if issubclass(each.category, EmptySelectionWarning)]
    place = CALLS[name].__code__
    assert {(each.filename, each.lineno) for each in told} == {(place.co_filename, place.co_firstlineno)}


@pytest.mark.parametrize(
    ("scale", "advice"),
    [
        ("range", "scale='range'; where bandwidths hardly shrink, try scale='rank'."),
        ("rank", "scale='rank'; where bandwidths hardly shrink, try scale='range'."),
        ("standard", "scale='standard'; where bandwidths hardly shrink, try scale='range' or 'rank'."),
        (None, "scale=None; where bandwidths hardly shrink, try scale='range' or 'rank'."),
    ],
)
def test_advises_other_units(scale, advice):
    model = RodeoClassifier(scale=scale, features="selected")
    with pytest.warns(EmptySelectionWarning) as caught:
        model.fit(np.ones_like(X), Y)
    assert str(caught[0].message).endswith(advice)


def test_halves_without_variables_are_counted_not_told():
    with pytest.warns(EmptySelectionWarning):
        model = RodeoClassifier(features="selected").fit(np.ones_like(X), Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not model.selection_frequency(2, random_state=0).any()


def test_a_warning_that_is_an_error_changes_nothing():
    model = RodeoClassifier(**SELECTED)
    before = dict(vars(model))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in ("fit", "partial_fit"):
            with pytest.raises(EmptySelectionWarning):
                getattr(model, method)(X, Y)
    assert vars(model) == before
