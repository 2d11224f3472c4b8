"""What is said when a name is not known."""

from nysboost.numerics.checks import unknown


def test_the_nearest_names_come_first_in_their_own_spelling():
    assert "Did you mean 'URB-mean'" in unknown("variant", "urb-meen", ["UUB-SF", "URB-mean"])


def test_where_nothing_is_near_all_names_are_listed():
    sentence = unknown("kernel", "zzzzzz", ["rbf", "linear"])
    assert "Did you mean" not in sentence
    assert sentence.endswith("Known are rbf, linear.")


def test_what_is_no_string_can_be_unknown_too():
    assert "no kernel 3.5" in unknown("kernel", 3.5, ["rbf"])
