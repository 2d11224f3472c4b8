"""What all tests share: hypothesis without deadlines, and the same examples each time."""

import os
import shutil
import signal
import sys

os.environ["SCIPY_ARRAY_API"] = "1"  # before SciPy is imported: scikit-learn's checks ask for it
# Small matrices are slower on several threads, and round differently from machine to machine.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["TRITON_INTERPRET"] = "1"  # read when kernels are defined: they run on the processor

import numpy as np
import pytest
import sklearn
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

threadpool_limits(1)  # a plugin may have imported NumPy before this file
settings.register_profile(
    "nysboost",
    deadline=None,
    derandomize=True,
    max_examples=12,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("fuzz", parent=settings.get_profile("nysboost"), derandomize=False,
                          max_examples=int(os.environ.get("NYSBOOST_FUZZ_EXAMPLES", "10000")),
                          print_blob=True)  # fmt: skip
settings.load_profile(os.environ.get("NYSBOOST_PROFILE", "nysboost"))

if os.environ.get("NYSBOOST_MEMORY"):  # bytes, beyond which a law that takes too many fails
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (int(os.environ["NYSBOOST_MEMORY"]),) * 2)


SKIPPED = "nysboost/skipped"
"""Where pytest's cache has the tests that the last run skipped."""


def pytest_addoption(parser):
    parser.addoption(
        "--skipped-before",
        action="store_true",
        help="run what the last run skipped, after PyTorch, a browser or the site have come; "
        "without a last run all tests",
    )


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--skipped-before"):
        return
    skipped = config.cache.get(SKIPPED, None)
    if skipped is None:
        return
    chosen = [item for item in items if item.nodeid in skipped or item.location[0] in skipped]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


def pytest_terminal_summary(terminalreporter, config):
    """Keep what was skipped. With xdist the controller calls this, with all workers' reports."""
    reports = terminalreporter.stats.get("skipped", [])
    if hasattr(config, "cache") and not config.getoption("--skipped-before"):
        config.cache.set(SKIPPED, sorted({report.nodeid for report in reports}))


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not binary or not driver:
        pytest.skip("no Chromium with chromedriver is installed")
    options = selenium.ChromeOptions()
    options.binary_location = binary
    profile = tmp_path_factory.mktemp("profile")
    for flag in (
        "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1200,1000",
        "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
        "--disable-sync", f"--user-data-dir={profile}",
    ):  # fmt: skip
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = selenium.ChromeService(executable_path=driver)
    browser = selenium.Chrome(options=options, service=service)
    yield browser
    browser.quit()


def process_state():
    """What a test could leave behind for those that follow it in the same process."""
    dask = sys.modules.get("dask.config")
    return {
        "folder": os.getcwd(),
        "Dask's scheduler": dask and dask.get("scheduler", None),
        "scikit-learn's settings": sklearn.get_config(),
        "NumPy's errors": np.geterr(),
        "alarm": signal.getsignal(signal.SIGALRM),
    }


@pytest.fixture(autouse=True)
def _the_process_is_left_as_it_was():
    before = process_state()
    yield
    assert process_state() == before


@pytest.fixture
def _in_this_thread():
    """Dask's tasks run one after the other, in the thread of the test."""
    import dask

    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture
def chunks_are_read(monkeypatch):
    """Dask's rows stay where they are, as if there were too many to hold."""
    monkeypatch.setattr("nysboost.rows.dask_survey.HELD_BYTES", 0)


@pytest.fixture
def command(capsys):
    """Run ``nysboost`` in this process; return its exit status, output and errors."""
    from nysboost import cli

    def call(*arguments):
        status = 0
        try:
            cli.main(list(map(str, arguments)))
        except SystemExit as ended:
            status = ended.code or 0
        return status, *capsys.readouterr()

    return call
