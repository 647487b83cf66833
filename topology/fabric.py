"""The four fabrics: which chips of a pod can be joined to one slice."""

from __future__ import annotations

from enum import StrEnum


class Fabric(StrEnum):
    """How cubes (or hosts) may be joined to slices.

    reconfigurable: any usable cubes, joined by circuits. static_aligned: fixed blocks of consecutive cubes.
    static_contiguous: any axis-aligned box of cubes on the torus of cubes. any_host: any hosts (an ideal fabric).
    """

    RECONFIGURABLE = "reconfigurable"
    STATIC_ALIGNED = "static_aligned"
    STATIC_CONTIGUOUS = "static_contiguous"
    ANY_HOST = "any_host"

    @property
    def has_light(self) -> bool:
        """Whether slices of this fabric pass through optical switches."""
        return self is Fabric.RECONFIGURABLE
