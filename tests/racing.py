"""A race of candidates on few rows, for the tests of learning from many."""

import numpy as np

from nysboost.data.recognise import rows_of
from nysboost.numerics.memory import Budget
from nysboost.numerics.progress import Work
from nysboost.target import race
from nysboost.target.candidates import MATERN32, Candidate
from nysboost.target.many import learn_many
from nysboost.target.plain import SIMPLEST
from nysboost.target.scale import each_alone

LANDMARKS = 10
ONE = (Candidate(MATERN32, "each"),)


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(n, 1))


def shrink(monkeypatch):
    """Make samples so small that a thousand rows are many."""
    for name in ("FIRST_ROWS", "BATCH_ROWS", "FIT_ROWS"):
        monkeypatch.setattr(race, name, (100, 2))
    monkeypatch.setattr(race, "JUDGE_ROWS", 80)


def run(X, Y, candidates=ONE, work=None):
    return learn_many(
        rows_of(X), Y, None, SIMPLEST, candidates, LANDMARKS, np.random.default_rng(0),
        scaling=each_alone, budget=Budget(), work=work or Work(),
    )  # fmt: skip
