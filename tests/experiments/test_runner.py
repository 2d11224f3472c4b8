import os
import signal
import time

import numpy as np
import pytest

from experiments.helpers import started, tiny
from nysboost.experiments import runner
from nysboost.experiments.replicate import METHODS
from nysboost.experiments.user_error import UserError

SOME = ("URB-mean", "RRB-SF", "ensemble-ridge")


def plan(methods=SOME, seed=0, **changes):
    return runner.Plan(tiny(**changes), methods, seed)


def only_file(folder):
    (path,) = folder.glob("*.jsonl")
    return path


def test_the_records_do_not_depend_on_the_number_of_processes(tmp_path):
    for jobs in (1, 2):
        runner.run(plan(METHODS), tmp_path / str(jobs), jobs)
    assert only_file(tmp_path / "1").read_bytes() == only_file(tmp_path / "2").read_bytes()


def test_a_run_goes_on_where_it_was_and_ends_with_the_same_bytes(tmp_path):
    runner.run(plan(replicates=3), tmp_path / "whole", 1)
    runner.run(plan(replicates=1), tmp_path / "parts", 1)
    made = []
    runner.run(plan(replicates=3), tmp_path / "parts", 1, lambda done, _: made.append(done))
    assert made == [2, 3, 4, 5, 6]
    assert only_file(tmp_path / "whole").read_bytes() == only_file(tmp_path / "parts").read_bytes()


@pytest.mark.parametrize("damage", [b"", b'{"checksum":"0', b"\x00\xff\n"])
def test_a_damaged_end_is_made_again(tmp_path, damage):
    runner.run(plan(), tmp_path, 1)
    path = only_file(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-40] + damage)
    runner.run(plan(), tmp_path, 1)
    assert path.read_bytes() == whole


def test_runs_of_other_settings_never_mix(tmp_path):
    plans = [
        plan(), plan(seed=1), plan(n_columns=5, rank=4), plan(n_learners=2), plan(METHODS[:3]),
    ]  # fmt: skip
    for each in plans:
        runner.run(each, tmp_path, 1)
    assert len(list(tmp_path.glob("*.jsonl"))) == len(plans)


def test_more_replicates_and_one_reading_less_use_the_same_records(tmp_path):
    both = runner.run(plan(), tmp_path, 1)
    one = runner.run(plan(readings=("square",)), tmp_path, 1)
    assert (one.values["square"]["URB-mean"] == both.values["square"]["URB-mean"]).all()
    assert len(list(tmp_path.glob("*.jsonl"))) == 1


SCRIPT = """
    import sys
    sys.path.insert(0, {here!r})
    from pathlib import Path
    from helpers import tiny
    from nysboost.experiments import runner
    if __name__ == "__main__":
        def progress(done, total):
            print(done, flush=True)
        plan = runner.Plan(tiny(replicates=6), {methods!r}, 0)
        runner.run(plan, Path({out!r}), {jobs}, progress)
"""


def run_of(tmp_path, out, jobs):
    here = os.path.dirname(__file__)
    return started(tmp_path, SCRIPT.format(here=here, methods=METHODS, out=str(out), jobs=jobs))


@pytest.mark.parametrize(
    ("how", "jobs"), [(signal.SIGKILL, 1), (signal.SIGKILL, 2), (signal.SIGINT, 2)]
)
def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(tmp_path, how, jobs):
    process = run_of(tmp_path, tmp_path / "killed", jobs)
    for _ in range(3):
        process.stdout.readline()
    process.send_signal(how)
    process.communicate(timeout=60)
    assert process.returncode != 0
    killed = runner.Plan(tiny(replicates=6), METHODS, 0)
    made = []
    runner.run(killed, tmp_path / "killed", 1, lambda done, _: made.append(done))
    assert 2 <= made[0] < 12
    runner.run(killed, tmp_path / "whole", 1)
    assert only_file(tmp_path / "killed").read_bytes() == only_file(tmp_path / "whole").read_bytes()


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks for processes in /proc")
def test_workers_end_when_the_parent_is_killed(tmp_path):
    process = run_of(tmp_path, tmp_path / "out", 2)
    process.stdout.readline()
    process.stdout.readline()
    workers = children_of(process.pid)
    assert workers
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 30
    while any(os.path.isdir(f"/proc/{pid}") for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def children_of(parent):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == parent:
                    found.append(int(pid))
        except OSError:
            continue
    return found


def test_every_record_says_which_code_made_it_and_other_code_begins_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "made_with", lambda: "0.9 (abc)")
    found = runner.run(plan(), tmp_path, 1)
    assert found.made_with == ("0.9 (abc)",)
    monkeypatch.setattr(runner, "code_digest", lambda: "other")
    monkeypatch.setattr(runner, "made_with", lambda: "0.9 (def)")
    assert runner.run(plan(), tmp_path, 1).made_with == ("0.9 (def)",)
    assert len(list(tmp_path.glob("*.jsonl"))) == 2


def test_records_of_other_code_and_libraries_are_reported_where_that_is_asked_for(
    tmp_path, monkeypatch
):
    made = runner.run(plan(), tmp_path, 1)
    monkeypatch.setattr(runner, "code_digest", lambda: "other")
    monkeypatch.setattr(runner, "version", lambda _: "0.0")
    found = runner.gathered(plan(), tmp_path)
    assert found.made_with == made.made_with
    for reading, methods in made.values.items():
        for method, errors in methods.items():
            assert np.array_equal(found.values[reading][method], errors)
    assert len(list(tmp_path.glob("*.jsonl"))) == 1


def test_a_report_alone_makes_no_records_and_mixes_none(tmp_path, monkeypatch):
    runner.run(plan(replicates=1), tmp_path, 1)
    runner.run(plan(seed=1), tmp_path, 1)
    with pytest.raises(UserError, match="lacks 2 of 4 records"):
        runner.gathered(plan(), tmp_path)
    with pytest.raises(UserError, match="0 files with records of simulation"):
        runner.gathered(plan(seed=2), tmp_path)
    monkeypatch.setattr(runner, "code_digest", lambda: "other")
    runner.run(plan(replicates=1), tmp_path, 1)
    with pytest.raises(UserError, match="2 files with records of simulation"):
        runner.gathered(plan(replicates=1), tmp_path)
