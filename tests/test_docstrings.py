"""Every public name has an example, and every example runs."""

import doctest
import importlib
import pkgutil

import pytest

import nysboost as nb

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(nb.__path__, "nysboost.")
    if not module.name.startswith(("nysboost.paper", "nysboost.compare", "nysboost.cli"))
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name):
    if name == "nysboost.features.fused":
        pytest.importorskip("triton")
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0


@pytest.mark.parametrize("name", [n for n in nb.__all__ if callable(getattr(nb, n))])
def test_a_public_name_has_an_example(name):
    assert ">>>" in (getattr(nb, name).__doc__ or "")
