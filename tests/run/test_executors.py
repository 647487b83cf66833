"""Worker processes end with those who need them."""

from __future__ import annotations

import multiprocessing
import time
from typing import Any

import pytest

from sim.executors import open_executor, open_helper


@pytest.mark.parametrize(
    "opened",
    [pytest.param(lambda: open_executor(2), id="executor"), pytest.param(lambda: open_helper(2, "this"), id="helper")],
)
def test_workers_of_a_failed_block_end_in_the_midst_of_a_task(opened: Any) -> None:
    """Goal: bad input leaves no process behind. Method: fail while a worker sleeps a minute; it is gone in seconds."""
    before = {child.pid for child in multiprocessing.active_children()}
    with pytest.raises(ValueError, match="bad input"), opened() as pool:
        pool.submit(time.sleep, 60.0)
        assert {child.pid for child in multiprocessing.active_children()} > before
        raise ValueError("bad input")
    deadline = time.monotonic() + 20.0
    while left := {child.pid for child in multiprocessing.active_children()} - before:
        assert time.monotonic() < deadline, f"{len(left)} workers are still there"
        time.sleep(0.05)
