"""Names and compositions."""

import pytest

import nysboost as nb
from nysboost.boosting.algorithm import RULES, SELECTORS, parse_variant
from nysboost.boosting.rules import ExponentialWeights, RidgeWeights, UniformWeights


def name_of(variant):
    letters = {rule: letter for letter, rule in RULES.items()}
    words = {selector: word for word, selector in SELECTORS.items()}
    return f"{letters[variant.boosting]}{letters[variant.final]}B-{words[variant.selector]}"


def test_there_are_27_different_names():
    assert len(set(nb.VARIANTS)) == 27


@pytest.mark.parametrize("name", nb.VARIANTS)
def test_parsing_a_name_and_naming_the_result_is_the_identity(name):
    assert name_of(parse_variant(name)) == name


def test_the_letters_mean_uniform_exponential_and_ridge():
    variant = parse_variant("URB-mean")
    assert variant.boosting == UniformWeights()
    assert variant.final == RidgeWeights()
    assert parse_variant("EUB-SF").boosting == ExponentialWeights(0.01)


def test_rules_can_be_replaced_without_touching_the_defaults():
    tuned = {"E": ExponentialWeights("tune")}
    assert parse_variant("UEB-med", tuned).final == ExponentialWeights("tune")
    assert parse_variant("UEB-med").final == ExponentialWeights(0.01)
    assert tuned == {"E": ExponentialWeights("tune")}
