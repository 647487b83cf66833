"""Where the tests find real traces and logs: they live beside the checkout and are not part of the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared_file(name: str) -> Path:
    """Path of a shared data file; skips the test where it is absent, fails it there when CI is set."""
    path = SHARED_DATA / name
    if not path.exists():
        reason = f"real data file {name} is not beside this checkout"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path
