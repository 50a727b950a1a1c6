"""Tests of model files that an earlier version has written: they load, and predict the same numbers."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from corral import RodeoClassifierCV, load_model
from earlier_models import ANSWERS, ESTIMATORS, HERE, answers

FILES = sorted(HERE.glob("models_*/*.corral"))


def test_every_estimator_is_there():
    found = {type(load_model(file)) for file in FILES if file.parent.name == "models_0_1_0"}
    assert found == {type(estimator) for estimator in ESTIMATORS.values()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_an_earlier_file_predicts_the_same_numbers(file):
    model = load_model(file)
    with np.load(file.parent / ANSWERS) as kept:
        queries = kept["queries"]
        expected = {
            name.partition("/")[2]: kept[name] for name in kept if name.partition("/")[0] == file.stem
        }
    names = getattr(model, "feature_names_in_", None)
    found = answers(model, queries if names is None else pd.DataFrame(queries, columns=names))
    if isinstance(model, RodeoClassifierCV):  # which had the bandwidths and variables of the winner
        (winner,) = model.members_
        of_winner = answers(winner, queries if names is None else pd.DataFrame(queries, columns=names))
        found = of_winner | found | {"relevant_": of_winner["relevant_"]}
    assert expected.keys() <= found.keys()
    for name, value in expected.items():
        if value.dtype.kind == "f":
            assert_allclose(found[name], value, rtol=1e-12, atol=0.0, err_msg=name)
        else:
            assert_array_equal(found[name], value, err_msg=name)
