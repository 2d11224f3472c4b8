"""Work shared out among processes that a Ctrl-C ends at any moment.

Each worker has a pipe of its own. The standard library's executors have a thread in the parent
that shares locks with it: an interrupt between taking and releasing one leaves that thread, and
with it the end of the program, waiting for ever.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import connection
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from nysboost.experiments.user_error import UserError

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def in_processes(
    function: Callable[[Item], Answer], items: Sequence[Item], jobs: int
) -> Iterator[Answer]:
    """Yield function(item) for all items, each as soon as it is there.

    Parameters
    ----------
    function : callable
        Can be pickled, as items and answers can. An exception of its is raised here.
    items : sequence
        Handed out one at a time, so that an end leaves little behind.
    jobs : int
        How many processes; each has one BLAS thread.
    """
    context, waiting = multiprocessing.get_context("spawn"), iter(items)
    workers: dict[Any, Any] = {}  # the pipe of each process
    try:
        for item in itertools.islice(waiting, jobs):
            here, there = context.Pipe()
            worker = context.Process(target=_serve, args=(function, there), daemon=True)
            worker.start()
            there.close()  # so that the worker's end closes with the worker
            workers[here] = worker
            here.send(item)
        busy = set(workers)
        while busy:
            ready: list[Any] = connection.wait(list(busy))
            for pipe in ready:
                yield _received(pipe)
                for item in itertools.islice(waiting, 1):
                    pipe.send(item)
                    break
                else:
                    busy.remove(pipe)
    except (EOFError, ConnectionError) as error:
        message = (
            "A worker process was ended from outside (often for want of memory). The records "
            "made so far are kept: the same command goes on; --jobs 1 needs least memory."
        )
        raise UserError(message) from error
    finally:
        for worker in workers.values():
            worker.terminate()
        for pipe, worker in workers.items():
            worker.join()
            pipe.close()


def _received(pipe: Any) -> Any:
    """Return the answer of a worker, or raise its exception."""
    answer = pipe.recv()
    if isinstance(answer, Exception):
        raise answer
    return answer


def _serve(function: Callable[[Any], Any], pipe: Any) -> None:
    """Answer items until the other end closes; die at once with Ctrl-C, and with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_follow_parent, daemon=True).start()
    with threadpool_limits(1), suppress(EOFError, BrokenPipeError):
        while True:
            pipe.send(_answer(function, pipe.recv()))


def _answer(function: Callable[[Any], Any], item: Any) -> Any:
    """Return the function's value, or its exception."""
    try:
        return function(item)
    except Exception as error:  # whatever it is, the parent raises it: here nobody would see it
        error.add_note(traceback.format_exc())  # a traceback itself does not travel
        return error


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
