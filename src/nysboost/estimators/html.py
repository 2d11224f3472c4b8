"""How an estimator is shown in a notebook: scikit-learn's diagram, the fit, and its parameters."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from html import escape

from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr


def show_estimator(estimator: BaseEstimator, summary: Sequence[str]) -> str:
    """Return scikit-learn's diagram, the lines of a summary, and what each parameter does."""
    diagram = estimator_html_repr(estimator)
    text = escape("\n".join(summary))
    found = f"<pre>{text}</pre>" if text else ""

    described = describe_parameters(type(estimator))
    rows = []
    for name, value in estimator.get_params(deep=False).items():
        cells = [name, repr(value), described.get(name, "")]
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    table = f"<table>{''.join(rows)}</table>"
    return f"{diagram}{found}<details><summary>What the parameters do</summary>{table}</details>"


def describe_parameters(kind: type) -> dict[str, str]:
    """Return what an estimator's docstring, or the one it refers to, says of each parameter."""
    docstring = inspect.getdoc(kind) or ""
    section = docstring.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    described: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", section):
        head, _, body = entry.partition("\n")
        text = " ".join(body.split())
        elsewhere = _described_elsewhere(text)
        for name in head.partition(" : ")[0].split(", "):
            described[name] = elsewhere.get(name, text)
    return described


def _described_elsewhere(text: str) -> dict[str, str]:
    """Return the parameters of the estimator or function that "As in `Name`" refers to."""
    reference = re.match(r"As in `(?:nysboost\.)?(\w+)`", text)
    if reference is None:
        return {}
    return describe_parameters(getattr(sys.modules["nysboost"], reference[1]))
