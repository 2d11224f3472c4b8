"""Threads: a task that shares the machine with others keeps to one core."""

import threading

import numpy as np
from threadpoolctl import threadpool_info

from nysboost.numerics.memory import Budget
from nysboost.numerics.threads import on_one_core, usable_threads


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def test_what_runs_on_one_core_has_one_thread_and_so_has_its_blas():
    before, elsewhere = blas_threads(), []
    with on_one_core():
        assert usable_threads(Budget(threads=8)) == 1
        assert blas_threads() == {1}
        with on_one_core():
            assert usable_threads(Budget()) == 1
        assert usable_threads(Budget()) == 1
        other = threading.Thread(target=lambda: elsewhere.append(usable_threads(Budget())))
        other.start()
        other.join()
    assert blas_threads() == before
    assert elsewhere == [usable_threads(Budget())]
    assert usable_threads(Budget(threads=1)) == 1
