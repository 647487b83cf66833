"""Worker processes end with those who need them."""

from __future__ import annotations

import multiprocessing
import time

import pytest

from sim.executors import open_executor


def _fail_while_a_worker_sleeps(seen: set[int | None]) -> None:
    with open_executor(2) as pool:
        assert pool is not None
        pool.submit(time.sleep, 60.0)
        seen |= {child.pid for child in multiprocessing.active_children()}
        raise ValueError("bad input")


def test_workers_of_a_failed_block_end_in_the_midst_of_a_task() -> None:
    """Goal: bad input leaves no process behind. Method: fail while a worker sleeps a minute; it is gone in seconds."""
    before = {child.pid for child in multiprocessing.active_children()}
    seen: set[int | None] = set()
    with pytest.raises(ValueError, match="bad input"):
        _fail_while_a_worker_sleeps(seen)
    assert seen > before
    deadline = time.monotonic() + 20.0
    while left := {child.pid for child in multiprocessing.active_children()} - before:
        assert time.monotonic() < deadline, f"{len(left)} workers are still there"
        time.sleep(0.05)
