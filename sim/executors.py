"""Tasks on any `concurrent.futures.Executor`, results in the order of the tasks whoever finishes first."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from topology.errors import EnvironmentFault, refuse

R = TypeVar("R")


WORKERS_PER_CORE_MAX = 16
"""More processes than this for each core only take memory."""


def worker_count(workers: int | None) -> int:
    """Number of worker processes: as asked, else one per core this process may use; refuses what no core could feed."""
    cores = len(os.sched_getaffinity(0))
    if workers is None:
        return cores
    if not 1 <= workers <= WORKERS_PER_CORE_MAX * cores:
        what = f"{workers} worker processes on {cores} cores"
        raise refuse("--workers", what, f"write a number from 1 to {WORKERS_PER_CORE_MAX * cores}")
    return workers


@contextmanager
def open_executor(workers: int | None, given: Executor | None = None) -> Iterator[Executor | None]:
    """The executor that is `given`, which stays open; else a pool of processes, one per core by default.

    None for one worker, which means in this process.

    On Linux with Python 3.11 workers are forked, which costs 0.04 s instead of some seconds of imports; from 3.12 on,
    where forking beside threads warns, they come from a fork server.
    """
    if given is not None:
        yield given
        return
    count = worker_count(workers)
    if count == 1:
        yield None
        return
    with _pool(count) as pool:
        yield pool


@contextmanager
def open_helper(workers: int | None, module: str, function: str, shared: str) -> Iterator[Executor | None]:
    """A process that imports `module` and calls its `function` while this one goes on, ready for tasks that need it.

    Open it before anything large is imported here, so that it starts at once and both cores are busy from then on;
    `shared` is what both need, imported once before they part. None for one worker, and where matplotlib is here
    already: then there is nothing to gain.
    """
    if worker_count(workers) == 1 or "matplotlib" in sys.modules:
        yield None
        return
    importlib.import_module(shared)
    with _pool(1) as pool:
        pool.submit(_get_ready, module, function)
        yield pool


def _get_ready(module: str, function: str) -> None:
    getattr(importlib.import_module(module), function)()


@contextmanager
def _pool(count: int) -> Iterator[Executor]:
    fork = sys.platform == "linux" and sys.version_info < (3, 12)
    context = multiprocessing.get_context("fork" if fork else "forkserver")
    read_end, write_end = context.Pipe(duplex=False)
    with read_end, write_end:
        pool = ProcessPoolExecutor(count, mp_context=context, initializer=_become_worker, initargs=(read_end,))
        try:
            yield pool
        except BaseException:
            write_end.send_bytes(b"end")  # never read: every worker sees that it is there
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()


def _become_worker(end: Connection) -> None:
    """Leave Ctrl-C to the parent, and end when it is gone or has no use for the results of this worker any more.

    Nobody else would end a worker that waits for tasks, or is in the midst of one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(os.getppid(), end), daemon=True).start()


def _end_with(parent: int, end: Connection) -> None:
    while os.getppid() == parent and not end.poll(0.5):
        pass
    os._exit(1)


def map_tasks(executor: Executor | None, task: Callable[..., R], arguments: Sequence[tuple[Any, ...]]) -> Iterator[R]:
    """`task(*arguments[i])` for every i, in order; raises EnvironmentFault where a worker is lost."""
    if executor is None:
        for given in arguments:
            yield task(*given)
        return
    futures: list[Future[R]] = []
    try:
        futures += [executor.submit(task, *given) for given in arguments]
        for future in futures:
            yield future.result()
    except BrokenExecutor as error:
        raise _worker_lost() from error
    finally:
        for future in futures:
            future.cancel()


def start_task(executor: Executor | None, task: Callable[..., R], *given: Any) -> Callable[[], R]:
    """Start `task(*given)`; the returned function gives its result (without an executor, it runs the task).

    Both raise EnvironmentFault where the worker is lost.
    """
    if executor is None:
        return partial(task, *given)
    try:
        future = executor.submit(task, *given)
    except BrokenExecutor as error:
        raise _worker_lost() from error

    def result() -> R:
        try:
            return future.result()
        except BrokenExecutor as error:
            raise _worker_lost() from error

    return result


def _worker_lost() -> EnvironmentFault:
    return EnvironmentFault("a worker process was lost (killed, or out of memory): run again with --resume")
