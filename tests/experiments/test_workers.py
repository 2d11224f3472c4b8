"""Work shared out among processes: every answer once, and nobody left behind."""

import multiprocessing
import os
import signal
import time

import pytest

from experiments.helpers import started
from nysboost.experiments.user_error import UserError
from nysboost.experiments.workers import in_processes


def squared(number):
    return number * number, os.getpid()


def refused(number):
    if number == 2:
        msg = f"The number {number} is refused."
        raise UserError(msg)
    return number


def ended(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return number


@pytest.mark.parametrize(("count", "jobs"), [(0, 2), (1, 3), (7, 2)])
def test_every_item_is_answered_once_by_other_processes(count, jobs):
    answers = list(in_processes(squared, range(count), jobs))
    assert sorted(value for value, _ in answers) == [number**2 for number in range(count)]
    processes = {process for _, process in answers}
    assert os.getpid() not in processes
    assert len(processes) <= min(jobs, count)
    assert multiprocessing.active_children() == []


def test_an_exception_comes_over_with_its_traceback_and_ends_the_others():
    with pytest.raises(UserError, match="The number 2 is refused") as raised:
        list(in_processes(refused, range(9), 2))
    assert "in refused" in "".join(raised.value.__notes__)
    assert multiprocessing.active_children() == []


def test_a_worker_that_is_killed_is_a_sentence():
    with pytest.raises(UserError, match="ended from outside"):
        list(in_processes(ended, range(4), 2))
    assert multiprocessing.active_children() == []


def test_answers_that_nobody_asks_for_any_more_end_the_workers():
    answers = in_processes(squared, range(9), 2)
    next(answers)
    assert multiprocessing.active_children()
    answers.close()
    assert multiprocessing.active_children() == []


SCRIPT = """
    import sys, time
    from nysboost.experiments.workers import in_processes
    if __name__ == "__main__":
        for answer in in_processes(time.sleep, [0.0] * 2 + [600.0] * 2, 2):
            print(answer, flush=True)
"""


@pytest.mark.parametrize("when", [0, 1, 2])
def test_an_interrupt_ends_a_run_whose_workers_are_starting_or_busy(tmp_path, when):
    process = started(tmp_path, SCRIPT)
    time.sleep(0.5 if when == 0 else 0.0)
    for _ in range(when):
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in said or when == 0
