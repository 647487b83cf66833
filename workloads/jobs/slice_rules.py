"""From processors of a logged machine to slices of a pod: stated rules, one of which a scenario chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from topology.pod import CHIPS_PER_CUBE, AnyPod, FlatPod
from topology.shape import SUB_CUBE_SHAPES

SUB_CUBE_SIZES = tuple(x * y * z for x, y, z in SUB_CUBE_SHAPES)


def slice_size_of(chips: int, pod: AnyPod) -> int:
    """The smallest size of a slice of at least `chips` chips: 1, 2, 4, 8, 16, 32 or whole cubes (flat: as asked)."""
    if isinstance(pod, FlatPod):
        return chips
    return next((size for size in SUB_CUBE_SIZES if size >= chips), -(-chips // CHIPS_PER_CUBE) * CHIPS_PER_CUBE)


@dataclass(frozen=True, kw_only=True)
class RoundUp:
    """`chips_per_processor` chips for each processor, then the next size of a slice: no job gets less than it had.

    With `powers_of_two` slices of several cubes are rounded up to a power of two of cubes as well.
    """

    kind: Literal["round_up"] = "round_up"
    chips_per_processor: int = 1
    powers_of_two: bool = False

    def __post_init__(self) -> None:
        """Refuse less than a chip."""
        if self.chips_per_processor < 1:
            raise ValueError(f"chips_per_processor of {self.chips_per_processor}: write a whole number of at least 1")

    def slice_chips(self, processors: int, machine_processors: int | None, pod: AnyPod) -> int | None:
        """Chips of the slice for a job of so many processors; None where the rule has none for it."""
        size = slice_size_of(processors * self.chips_per_processor, pod)
        return 1 << (size - 1).bit_length() if self.powers_of_two else size


@dataclass(frozen=True, kw_only=True)
class Exact:
    """Only jobs whose chips are a size of a slice as they are; all others are rejected."""

    kind: Literal["exact"] = "exact"
    chips_per_processor: int = 1

    def __post_init__(self) -> None:
        """Refuse less than a chip."""
        if self.chips_per_processor < 1:
            raise ValueError(f"chips_per_processor of {self.chips_per_processor}: write a whole number of at least 1")

    def slice_chips(self, processors: int, machine_processors: int | None, pod: AnyPod) -> int | None:
        """Chips of the slice for a job of so many processors; None where the rule has none for it."""
        chips = processors * self.chips_per_processor
        return chips if slice_size_of(chips, pod) == chips else None


@dataclass(frozen=True, kw_only=True)
class ShareOfMachine:
    """The same share of the pod as of the logged machine, then the next size of a slice.

    `machine_processors` 0: as the log says; a log that does not say gives no slices.
    """

    kind: Literal["share_of_machine"] = "share_of_machine"
    machine_processors: int = 0

    def __post_init__(self) -> None:
        """Refuse less than no processor."""
        if self.machine_processors < 0:
            raise ValueError(f"machine_processors of {self.machine_processors}: write a whole number of at least 1")

    def slice_chips(self, processors: int, machine_processors: int | None, pod: AnyPod) -> int | None:
        """Chips of the slice for a job of so many processors; None where the rule has none for it."""
        whole = self.machine_processors or machine_processors
        return None if whole is None else slice_size_of(-(-processors * pod.chips // whole), pod)


SliceRule: TypeAlias = RoundUp | Exact | ShareOfMachine
"""The rules that a scenario can name (`kind` tells them apart)."""
