"""How far a long computation has come."""

import pytest

from nysboost.numerics import progress
from nysboost.numerics.progress import Work, shown, track


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def test_the_time_left_is_in_proportion_to_the_work_that_is_left(clock):
    lines = []
    work = Work(lines.append)
    clock[0] += 50  # before the work begins
    work.begin(10.0)
    clock[0] += 6
    work.step(2.0, "First")
    clock[0] += 6
    work.step(8.0, "Last")
    assert lines == ["First, about 24 s left", "Last, about 0 s left"]


def test_work_without_results_speaks_after_a_while(clock):
    lines = []
    work = Work(lines.append)
    work.begin(100.0)
    for _ in range(20):
        clock[0] += 1
        work.step(5.0)
    assert lines == [
        "25% of the work is done, about 15 s left",
        "50% of the work is done, about 10 s left",
        "75% of the work is done, about 5 s left",
        "100% of the work is done, about 0 s left",
    ]


def test_work_of_unknown_size_says_what_came_of_it_alone():
    lines = []
    work = Work(lines.append)
    work.step(0, "Found")
    work.begin(1.0)
    work.step(0, "Nothing yet")
    assert lines == ["Found", "Nothing yet"]
    Work().step(1.0, "to nobody")


def test_steps_are_counted_where_it_was_asked_for(capsys, clock):
    assert list(track("ab", "letter")) == ["a", "b"]
    assert capsys.readouterr().err == ""
    with shown(True):
        for _ in track([1, 2], "number"):
            clock[0] += 3
        list(track(iter([1]), "end"))
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "nysboost: number 1 of 2, 3.0 s, about 3.0 s left",
        "nysboost: number 2 of 2, 6.0 s, about 0.0 s left",
        "nysboost: end 1, 0.0 s",
    ]
