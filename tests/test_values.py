"""What every value of the rooms below the estimators is: frozen, and safe to compare."""

import importlib
import pkgutil
import re
from dataclasses import fields, is_dataclass

import pytest

ROOMS = (
    "numerics", "rows", "kernels", "gram", "features",
    "boosting", "joint", "methods", "certificates", "learn.search",
)  # fmt: skip
GROWING = {"Ground", "Progress"}
"""Values that grow while an algorithm runs."""


def values():
    for room in ROOMS:
        package = importlib.import_module(f"nysboost.{room}")
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if "dask" in found.name or "fused" in found.name:
                continue  # extras that need not be installed
            for value in vars(importlib.import_module(found.name)).values():
                own = isinstance(value, type) and value.__module__ == found.name
                if own and is_dataclass(value):
                    yield value


VALUES = list(values())
each_value = pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{v.__module__}.{v.__name__}")


@each_value
def test_a_value_is_frozen(value):
    assert value.__dataclass_params__.frozen is (value.__name__ not in GROWING)


@each_value
def test_a_value_that_holds_arrays_is_compared_by_identity(value):
    """Arrays compare entry by entry: two such values would be neither equal nor unequal."""
    holders = "Array|Floats|Indices|Sample|Landmarks|FeatureMap|State|Trajectory"
    if any(re.match(rf"({holders})\b", str(field.type)) for field in fields(value)):
        assert value.__eq__ is object.__eq__


def test_there_are_values_to_look_at():
    assert len(VALUES) > 50
