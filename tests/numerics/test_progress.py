"""How far a computation is, for people, logs and callbacks."""

import os
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import nysboost as nb
from nysboost.numerics.progress import Progress, current, report_progress, track


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_the_time_left_is_in_proportion_to_the_work_that_is_left():
    lines, clock = [], Clock()
    work = Progress(lines.append, clock=clock)
    clock.now += 50  # before the work begins
    work.begin(10.0)
    clock.now += 6
    work.step(2.0, "First")
    assert (work.share, work.left, work.rest) == (0.2, 24, "about 24 s left")
    clock.now += 6
    work.step(8.0, "Last")
    assert lines == ["First, about 24 s left", "Last"]


def test_work_without_results_is_told_after_a_while():
    lines, clock = [], Clock()
    work = Progress(lines.append, clock=clock)
    work.begin(400.0)
    for _ in range(20):
        clock.now += 1
        work.step(10.0)
    assert lines == [
        "25% of the work is done, about 30 s left",
        "50% of the work is done, about 20 s left",
    ]


def test_work_of_unknown_size_says_what_came_of_it_alone():
    lines, clock = [], Clock()
    work = Progress(lines.append, clock=clock)
    work.step(0, "Found")
    work.begin(1.0)
    work.step(0, "Nothing yet")
    assert lines == ["Found", "Nothing yet"]
    assert (work.share, work.rest) == (0, "")
    Progress().step(1.0, "to nobody")


def test_a_bar_is_worth_it_once_two_seconds_have_passed_or_are_foreseen():
    clock = Clock()
    short, long = Progress(clock=clock), Progress(clock=clock)
    short.begin(10.0)
    long.begin(10.0)
    clock.now += 1
    short.step(9.0)
    long.step(1.0)
    assert (short.is_long, long.is_long) == (False, True)
    clock.now += 1
    assert short.is_long


def test_lines_go_to_standard_error_if_asked_for_and_the_outer_computation_counts(capsys):
    with report_progress("outer", 1), report_progress("inner", 1):
        assert list(track("abc", "letter")) == ["a", "b", "c"]
        assert list(track([1, 2], "part of it")) == [1, 2]
    told = capsys.readouterr()
    lines = told.err.splitlines()
    assert [line.split("s  ")[1] for line in lines] == [
        *(f"letter {number} of 3" for number in (1, 2, 3)),
        "done",
    ]
    assert all(line.startswith("outer ") for line in lines)
    for verbose in (0, None):  # None: no terminal, no bar
        with report_progress("outer", verbose):
            list(track([1, 2], "number"))
    assert capsys.readouterr() == ("", "")
    assert current().total == 0


def test_a_computation_that_fails_is_not_called_done(capsys):
    def fail():
        with report_progress("fit", 1) as work:
            work.step(1.0, "First")
            raise ValueError("no reason")

    with pytest.raises(ValueError, match="no reason"):
        fail()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("First")


def on_a_terminal(code):
    """Return what a program writes to standard error where that is a terminal."""
    ours, theirs = os.openpty()
    program = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(program, stderr=theirs, stdout=subprocess.PIPE) as process:
        os.close(theirs)
        told = b""
        try:
            while part := os.read(ours, 4096):
                told += part
        except OSError:  # the other end is closed
            pass
        assert process.stdout.read() == b""
        assert process.wait() == 0
    return told.decode()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals to open")
def test_a_terminal_shows_a_bar_of_long_work_that_is_gone_at_the_end():
    told = on_a_terminal("""
        import time
        from nysboost.numerics.progress import report_progress, track
        for name, verbose, steps in (("short", None, 2), ("silent", 0, 40), ("fit", None, 40)):
            with report_progress(name, verbose):
                for step in track(range(steps)):
                    time.sleep(0.06)
                    if step == 15:  # enough to foresee more than two seconds
                        break
        """)
    assert "short" not in told
    assert "silent" not in told
    assert re.search(r"fit .* \d+%.* about \d+ s left", re.sub(r"\033\[[\d;]*m", "", told))
    assert re.search(r"\033\[2K$", told)  # the line is erased


class Recorder:
    """A callback of scikit-learn's that writes down what it is told."""

    def __init__(self):
        self.begun, self.ended, self.fitted = [], [], None

    def setup(self, estimator, context):
        self.begun.append("setup")

    def teardown(self, estimator, context):
        self.begun.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.ended.append(context.task_name)
        self.fitted = fitted_estimator


X = np.random.default_rng(0).normal(size=(90, 3))
Y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    "estimator",
    [
        nb.BoostedNystroem("URB-mean", n_learners=4, n_columns=5, random_state=0),
        nb.NystroemRegressor(8, metric="one", kernel="gaussian", random_state=0),
        nb.NystroemClassifier(8, metric="one", kernel="gaussian", random_state=0),
        nb.KernelPCA(2, n_landmarks=10, random_state=0),
        nb.GaussianProcessClassifier(n_landmarks=10, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_callbacks_of_scikit_learn_see_every_fit(estimator):
    pytest.importorskip("sklearn.callback")
    recorder = Recorder()
    estimator.set_callbacks(recorder).fit(X, Y)
    assert recorder.begun[:2] == ["setup", "fit"]
    assert recorder.begun[-1] == "teardown"
    assert recorder.ended[-1] == "fit"
    assert len(recorder.ended) <= 101
    use = "predict" if hasattr(estimator, "predict") else "transform"
    np.testing.assert_array_equal(
        getattr(recorder.fitted, use)(X[:5]), getattr(estimator, use)(X[:5])
    )


def test_progress_bar_and_scoring_monitor_of_scikit_learn_work():
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    monitor = callback.ScoringMonitor(scoring="r2")
    model = nb.NystroemRegressor(8, metric="one", kernel="gaussian", random_state=0)
    model.set_callbacks(callback.ProgressBar(), monitor).fit(X, X[:, 0])
    logged = monitor.get_logs().data[-1]
    assert logged["r2"] == model.score(X, X[:, 0])
