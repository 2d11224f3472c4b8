import os
import signal
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

import nysboost as nb
from nysboost.numerics.progress import report_progress
from nysboost.paper import presets, runner
from nysboost.paper.replicate import METHODS
from nysboost.user_error import UserError
from paper.helpers import tiny

SOME = ("URB-mean", "RRB-SF", "ensemble-ridge")
SQUARE = presets.Reading("square", "columns")
TWO = {"validation_shapes": ("columns",)}
"""Both readings of V, and one of V1 and V2."""


def plan(methods=SOME, seed=0, code="this", **changes):
    return runner.RunPlan(tiny(**TWO | changes), methods, seed, code=code)


def only_file(folder):
    (path,) = folder.glob("*.jsonl")
    return path


def test_a_run_goes_on_where_it_was_and_ends_with_the_same_bytes(tmp_path):
    made = runner.run(plan(replicates=3), tmp_path / "whole", 1)
    runner.run(plan(replicates=1), tmp_path / "parts", 1)
    with report_progress("a test", listen=lambda _: None) as work:
        again = runner.run(plan(replicates=3), tmp_path / "parts", 1)
    assert (work.before, work.done, work.total) == (2, 6, 6)
    for reading, method in product(made.values, SOME):
        np.testing.assert_array_equal(made.values[reading][method], again.values[reading][method])
    assert only_file(tmp_path / "whole").read_bytes() == only_file(tmp_path / "parts").read_bytes()


@pytest.mark.parametrize("damage", [b"", b'{"replicate":0', b"\x00\xff\n", b"{}\n{}\n"])
def test_a_damaged_file_is_a_sentence(tmp_path, damage):
    runner.run(plan(), tmp_path, 1)
    only_file(tmp_path).write_bytes(damage)
    with pytest.raises(UserError, match="is not a file of records, or is damaged"):
        runner.run(plan(), tmp_path, 1)


def test_runs_of_other_settings_or_code_never_mix(tmp_path):
    plans = [
        plan(), plan(seed=1), plan(n_columns=5, rank=4), plan(n_learners=2), plan(METHODS[:3]),
        plan(code="other"),
    ]  # fmt: skip
    for each in plans:
        found = runner.run(each, tmp_path, 1)
        assert found.made_with == (f"{nb.__version__} ({each.code})",)
    assert len(list(tmp_path.glob("*.jsonl"))) == len(plans)


def test_more_replicates_and_one_reading_less_use_the_same_records(tmp_path):
    both = runner.run(plan(), tmp_path, 1)
    square = plan(residual_shapes=("square",))
    one = runner.run(square, tmp_path, 1)
    assert (one.values[SQUARE]["URB-mean"] == both.values[SQUARE]["URB-mean"]).all()
    assert len(list(tmp_path.glob("*.jsonl"))) == 1


SCRIPT = """
import sys
sys.path.insert(0, {here!r})
from pathlib import Path
from helpers import tiny
from nysboost.numerics.progress import report_progress
from nysboost.paper import presets, runner
if __name__ == "__main__":
    preset = tiny(replicates=6, validation_shapes=("columns",))
    plan = runner.RunPlan(preset, {methods!r}, 0)
    with report_progress("a test", listen=lambda work: print(work.done, flush=True)):
        runner.run(plan, Path({out!r}), {jobs})
"""


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a run, which Ctrl-C reaches and the tests' own does not."""

    def started(jobs):
        here, path, out = os.path.dirname(__file__), tmp_path / "run.py", str(tmp_path / "stopped")
        path.write_text(SCRIPT.format(here=here, methods=SOME, out=out, jobs=jobs))
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        # whoever runs the tests in the background has Ctrl-C ignored
        heed = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731
        words = [sys.executable, str(path)]
        return subprocess.Popen(words, start_new_session=True, preexec_fn=heed, **pipes)

    return started


def test_a_killed_run_of_two_processes_goes_on_and_ends_with_the_bytes_of_one(start, tmp_path):
    process = start(2)
    for _ in range(2):
        process.stdout.readline()
    process.kill()
    process.communicate(timeout=60)  # which waits for workers too: they hold the same pipes
    assert process.returncode != 0
    stopped = plan(replicates=6, code=runner.digest_code())
    with report_progress("a test", listen=lambda _: None) as work:
        runner.run(stopped, tmp_path / "stopped", 1)
    assert 2 <= work.before < 12
    runner.run(stopped, tmp_path / "whole", 1)
    found, whole = (only_file(tmp_path / name).read_bytes() for name in ("stopped", "whole"))
    assert found == whole


def test_a_run_that_ctrl_c_ends_keeps_its_records(tmp_path):
    def stop(work):
        if work.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), report_progress("a test", listen=stop):
        runner.run(plan(), tmp_path, 1)
    with report_progress("a test", listen=lambda _: None) as work:
        runner.run(plan(), tmp_path, 1)
    assert (work.before, work.done) == (2, 4)


@pytest.mark.parametrize("jobs", [1, 2])
def test_after_the_deadline_nothing_begins_and_the_same_command_goes_on(tmp_path, jobs):
    assert runner.run(plan(), tmp_path, jobs, deadline=0.0) is None
    made = runner.run(plan(), tmp_path, jobs)
    assert made.values[SQUARE]["URB-mean"].shape == (2, 3)


def test_what_no_reading_changes_has_a_record_of_its_own(tmp_path):
    pooled = plan((*SOME, "nystrom-k"), n_learners=5, n_points=200)
    made = runner.run(pooled, tmp_path, 1)
    assert len(pooled.keys) == 2 * (2 + 1)
    here, there = (made.values[reading]["nystrom-k"] for reading in pooled.preset.readings)
    assert np.array_equal(here, there, equal_nan=True)
    assert np.isfinite(here[:, 4]).all()
    assert np.isnan(here[:, 0]).all()


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks for processes in /proc")
def test_a_worker_that_is_killed_is_a_sentence(start):
    process = start(2)
    process.stdout.readline()
    for worker in children_of(process.pid):
        os.kill(worker, signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert "UserError: A worker process was killed" in said


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


def test_the_digest_of_code_changes_with_it_and_not_with_its_line_ends(tmp_path):
    digests = []
    for folder, text in (("a", b"x = 1\n"), ("b", b"x = 1\r\n"), ("c", b"x = 2\n")):
        (tmp_path / folder / "boosting").mkdir(parents=True)
        (tmp_path / folder / "boosting" / "rules.py").write_bytes(text)
        digests.append(runner.digest_code(tmp_path / folder))
    assert digests[0] == digests[1] != digests[2]
    assert all((runner.PACKAGE / part).exists() for part in runner.NUMBERS_COME_FROM)


def test_records_of_other_code_are_reported_where_that_is_asked_for(tmp_path):
    made = runner.run(plan(), tmp_path, 1)
    found = runner.gather(plan(code="other"), tmp_path)
    assert found.made_with == made.made_with
    for reading, methods in made.values.items():
        for method, errors in methods.items():
            assert np.array_equal(found.values[reading][method], errors)
    assert len(list(tmp_path.glob("*.jsonl"))) == 1


def test_a_report_alone_makes_no_records_and_mixes_none(tmp_path):
    runner.run(plan(replicates=1), tmp_path, 1)
    runner.run(plan(seed=1), tmp_path, 1)
    with pytest.raises(UserError, match="lacks 2 of 4 records"):
        runner.gather(plan(), tmp_path)
    with pytest.raises(UserError, match="0 files with records of simulation"):
        runner.gather(plan(seed=2), tmp_path)
    runner.run(plan(replicates=1, code="other"), tmp_path, 1)
    with pytest.raises(UserError, match="2 files with records of simulation"):
        runner.gather(plan(replicates=1), tmp_path)
