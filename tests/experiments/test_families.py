"""Sixty methods in a table that can be read."""

import nysboost as nb
from nysboost.experiments import palette
from nysboost.experiments.compare import Outcome
from nysboost.experiments.families import FEW, by_family, family_of, leading
from nysboost.experiments.report import comparison, render


def outcomes(methods):
    """The earlier a method stands in the list, the larger its error."""
    last = len(methods)
    return [Outcome(m, 1.0 * (last - i), 0.1, 1.0, 2.0, ((4, 1.0),)) for i, m in enumerate(methods)]


def test_families_stand_in_the_order_of_their_best_and_so_do_their_methods():
    found = by_family(outcomes(["dpp", "greedy", "joint", "rpcholesky", "rls"]))
    assert [family.name for family in found] == [
        "sampling by importance",
        "pivoted Cholesky",
        "joint",
    ]
    assert [o.method for o in found[0].outcomes] == ["rls", "dpp"]
    assert found[1].best.method == "rpcholesky"


def test_a_few_methods_are_all_shown_and_of_many_the_best_of_each_family():
    few = outcomes(["dpp", "greedy", "rls"])
    assert {o.method for o in leading(few)} == {"dpp", "greedy", "rls"}
    everything = outcomes(nb.METHODS)
    assert len(everything) > FEW
    shown = leading(everything)
    assert len(shown) == len(nb.FAMILIES)
    assert {family_of(o.method) for o in shown} == set(nb.FAMILIES)


def test_the_report_folds_what_is_not_the_best_of_its_family():
    page = comparison.page(outcomes(nb.METHODS), [], {})
    first, *others = page.sections[0].tables
    assert len(first.rows) == len(nb.FAMILIES)
    assert not first.folded
    assert all(table.folded for table in others)
    listed = {row[1] for table in page.sections[0].tables for row in table.rows}
    assert listed == set(nb.METHODS)
    assert render(page).count("<details>") == 2 + len(others)


def test_a_family_is_named_once_in_a_row_of_its_methods():
    table = comparison.rows(leading(outcomes(["dpp", "greedy", "rls"])), set())
    assert [row[0] for row in table] == ["sampling by importance", "", "pivoted Cholesky"] or [
        row[0] for row in table
    ] == ["sampling by importance", "pivoted Cholesky", ""]


def test_every_method_has_a_look_of_its_own_family():
    for family in ("cluster centres", "pivoted Cholesky", "CUR", "random features"):
        looks = [palette.style(method) for method in nb.FAMILIES[family]]
        assert {look.family for look in looks} == {family}
        assert len({(look.mark, look.dash) for look in looks}) == len(looks)
    assert all(palette.style(method).family != "other" for method in nb.METHODS)
