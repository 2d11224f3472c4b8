"""Weights from all rows, and what the judge makes of what was found."""

import numpy as np
import pytest
from racing import run, shrink, table

from nysboost.numerics.progress import Work
from nysboost.target import many, race
from nysboost.target.candidates import MATERN12, MATERN32, Candidate


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    shrink(monkeypatch)


def test_progress_is_reported():
    lines = []
    run(*table(500), work=Work(lines.append))
    assert any("held-out error" in line for line in lines)
    assert lines[-1] == "Weights from all rows, about 0 s left"


def test_the_simplest_model_is_weighed_only_where_it_could_win(monkeypatch):
    X, Y = table(1000)
    weighed, plain = [], many._finished

    def finished(drawn, found, *last, **rest):
        weighed.append(found.name)
        return plain(drawn, found, *last, **rest)

    monkeypatch.setattr(many, "_finished", finished)
    run(X, Y)
    assert weighed == ["Matérn 1.5, a scale per feature"]
    weighed.clear()
    noise = np.random.default_rng(1).normal(size=(1000, 1))
    run(X, noise)
    assert weighed[:-1] == ["Gaussian, uniform landmarks"]


def test_where_the_simplest_model_is_not_clearly_behind_the_judge_mixes(monkeypatch):
    X, _ = table(1000)
    Y = np.sin(2 * X).sum(axis=1, keepdims=True)  # of which ten landmarks know little
    finished, plain = [], many._finished
    monkeypatch.setattr(
        many, "_finished", lambda *a, **k: finished.append(plain(*a, **k)) or finished[-1]
    )
    monkeypatch.setattr(many, "CLEAR", 0.0)
    monkeypatch.setattr(race, "FIRST_STEPS", 1)
    monkeypatch.setattr(race, "LATER_STEPS", 1)
    judged = run(X, Y, candidates=(Candidate(MATERN32, "one"),))
    assert len(judged.models) == len(finished) == 2
    assert judged.shares.sum() == pytest.approx(1)
    assert judged.models == [one.model for one in finished]
    means = [one.held_out.predict(one.features) for one in finished]
    mixed = sum(share * mean for share, mean in zip(judged.shares, means, strict=True))
    np.testing.assert_allclose(judged.mean, mixed)
    missed = [np.mean((mean - judged.truth) ** 2) for mean in (judged.mean, *means)]
    assert missed[0] < min(missed[1:])


def test_where_rows_are_few_for_each_landmark_all_go_on(monkeypatch):
    X, Y = table(240)  # 24 rows for each landmark
    weighed, plain = [], many._finished
    monkeypatch.setattr(
        many, "_finished", lambda *a, **k: weighed.append(a[1].name) or plain(*a, **k)
    )
    both = tuple(Candidate(kernel, "full") for kernel in (MATERN12, MATERN32))
    monkeypatch.setattr(race, "LATER_STEPS", 5)
    judged = run(X, Y, candidates=both)
    assert len(weighed) == len(judged.models) == 1
    weighed.clear()
    monkeypatch.setattr(race, "FEW_EACH", 25)
    judged = run(X, Y, candidates=both)
    settled = {name.removesuffix(", settled"): e for name, e in judged.notes if "settled" in name}
    assert settled.keys() == {"Matérn 0.5, full metric", "Matérn 1.5, full metric"}
    assert weighed == sorted(settled, key=settled.get)  # the best first, which wins ties
