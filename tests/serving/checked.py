"""Indices of the kernel's arrays, checked in plain Python: compiled code takes them as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from workloads.serving import kernel
from workloads.serving.fields import State

PINNED = kernel.pinned.__name__


class CheckedTable(np.ndarray[Any, Any]):
    """A view of an array that refuses what compiled code would read beside it."""

    def __getitem__(self, index: Any) -> Any:
        """One element."""
        self._check(index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        """One element."""
        self._check(index)
        super().__setitem__(index, value)

    def _check(self, index: Any) -> None:
        parts = index if isinstance(index, tuple) else (index,)
        assert len(parts) == self.ndim, f"{parts} of {self.ndim} axes"
        assert all(0 <= part < size for part, size in zip(parts, self.shape, strict=True)), f"{parts} of {self.shape}"


def check_indices() -> None:
    """From now on the kernel, in plain Python, raises AssertionError at an index below 0 or beyond the end."""
    setattr(kernel, PINNED, lambda state: State(*(table.view(CheckedTable) for table in state)))
