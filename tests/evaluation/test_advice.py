"""When labels are of little use, and what is advised."""

import numpy as np
import pytest

from corral import CorralClassifier, HeldOut, LSPClassifier, RodeoClassifier
from corral.evaluation.advice import advice_on_labels


def predictions(p_yes, truth):
    return HeldOut(np.array(["no", "yes"]), np.asarray(truth), np.column_stack([1 - p_yes, p_yes]))


@pytest.fixture
def noise():
    """Overconfident probabilities that know nothing of the truth; 70 % are yes."""
    rng = np.random.default_rng(0)
    return predictions(rng.beta(1.0, 1.0, 200), rng.permutation(np.repeat(["yes", "no"], [140, 60])))


@pytest.mark.parametrize(
    ("estimator", "advice"),
    [
        (RodeoClassifier(priors="empirical"), "do not rely on the labels, and try CorralClassifier"),
        (LSPClassifier(), "do not rely on the labels, and try CorralClassifier"),
        (CorralClassifier(), "these variables may not separate the classes"),
    ],
)
def test_labels_that_are_no_better_than_the_frequencies(estimator, advice, noise):
    [sentence] = advice_on_labels(estimator, noise)
    accuracy = (noise.labels == noise.truth).mean()
    assert sentence.startswith(
        f"the accuracy, {accuracy:.3f}, is not significantly above 0.700, the accuracy of"
    )
    assert advice in sentence


def test_a_better_log_loss_is_enough():
    """One row of 39 fewer is right than by the most frequent class, and probabilities are better."""
    truth = np.repeat(["yes", "no"], [31, 8])
    p_yes = np.repeat([0.95, 0.3, 0.4, 0.6], [27, 4, 3, 5])
    assert advice_on_labels(CorralClassifier(), predictions(p_yes, truth)) == []


def test_equal_priors_are_not_blamed_for_what_they_are_for(noise):
    balanced = CorralClassifier(priors="uniform")
    assert "and the AUC, " in advice_on_labels(balanced, noise)[0]
    rng = np.random.default_rng(0)
    own = np.arange(400) < 20  # a rare class that is found, at the price of many false ones
    held_out = predictions(np.clip(rng.normal(0.45 + 0.3 * own, 0.1), 0.01, 0.99), np.where(own, "yes", "no"))
    [sentence] = advice_on_labels(balanced, held_out)
    assert sentence.startswith("the accuracy, ")
    assert sentence.endswith("so look at the recall of each class.")


def test_rare_classes_that_are_ranked_well_get_advice():
    rng = np.random.default_rng(0)
    own = np.arange(1000) < 60
    held_out = predictions(
        np.clip(rng.normal(0.05 + 0.15 * own, 0.05), 0.001, 0.45), np.where(own, "yes", "no")
    )
    [sentence] = advice_on_labels(CorralClassifier(), held_out)
    auc = held_out.scores().by_class["yes"].auc
    assert sentence.startswith(
        "no row is called yes, although 60 rows are of yes and the probability of yes ranks rows of yes "
        f"above other rows (AUC {auc:.3f};"
    )
    for advice in ("priors='uniform'", "--priors uniform", "--costs", "a lower threshold than 0.5"):
        assert advice in sentence
    three = HeldOut(
        np.array(["no", "other", "yes"]), held_out.truth, np.insert(held_out.proba, 1, 0.0, axis=1)
    )
    assert "threshold" not in advice_on_labels(CorralClassifier(), three)[0]
    assert advice_on_labels(CorralClassifier(priors="uniform"), held_out) == []


def test_all_rare_classes_are_named_in_one_advice():
    rng = np.random.default_rng(0)
    truth = np.repeat(["no", "a", "b", "c"], [900, 50, 47, 3])
    rare = np.array([0.02, 0.05, 0.05]) + 0.15 * (truth[:, np.newaxis] == np.array(["c", "a", "b"]))
    rare[:, 0] = rng.uniform(0.0, 0.02, 1000)  # nothing is known of c
    rare += rng.uniform(0.0, 0.05, rare.shape)
    proba = np.column_stack([rare[:, 1], rare[:, 2], rare[:, 0], 1.0 - rare.sum(axis=1)])
    held_out = HeldOut(np.array(["a", "b", "c", "no"]), truth, proba)
    [sentence] = advice_on_labels(CorralClassifier(), held_out)
    aucs = {label: held_out.scores().by_class[label].auc for label in "ab"}
    assert sentence == (
        "2 classes are predicted too rarely, although their probabilities rank their rows above other rows "
        f"(chance is an AUC of 0.5): a (label of 0 rows, class of 50; AUC {aucs['a']:.3f}), b (label of 0 "
        f"rows, class of 47; AUC {aucs['b']:.3f}); no row of c gets the label of its class. To find more of "
        "these rows, with more false alarms, fit with priors='uniform' (--priors uniform) or state the "
        "costs of errors (decide, or corral predict --costs)."
    )
