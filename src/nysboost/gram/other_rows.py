"""The same kernel on other rows."""

from __future__ import annotations

from typing import Any

from nysboost.data.recognise import as_rows
from nysboost.gram.gram import Gram, KernelGram


def on_other_rows(gram: Gram, X: Any) -> Gram:
    """Return the Gram matrix of the rows of X under the kernel of `gram`.

    Parameters
    ----------
    gram : Gram
        Of a kernel: a precomputed matrix knows no values between other rows.
    X : array-like of shape (n, d)
        Rows of as many columns.
    """
    if not isinstance(gram, KernelGram):
        msg = (
            "A precomputed kernel matrix has no kernel values between new rows. Leave X out for "
            "the rows of the fit, or fit on points with a kernel."
        )
        raise ValueError(msg)
    rows = as_rows(X)
    if rows.n_features != gram.rows.n_features:
        msg = f"X has {rows.n_features} columns, but the fit had {gram.rows.n_features}."
        raise ValueError(msg)
    return KernelGram(rows, gram.kernel, gram.budget, gram.tally)
