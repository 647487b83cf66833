"""The ladder of memories and links below the arithmetic of a replica: names, sizes, rates at their peak.

Nearest first: SM > L2 > HBM > NVLink > network > PCIe on GPUs, VMEM > CMEM > HBM > ICI > PCIe on TPUs.
"""

from __future__ import annotations

from dataclasses import dataclass

from workloads.catalogue.chip import Interconnect
from workloads.collectives import gather_bytes_per_s, nodes
from workloads.costs.replica import ReplicaCosts


@dataclass(frozen=True, kw_only=True)
class Level:
    """One rung: its key in traffic, bytes of one chip's (None: not a memory), rate of one chip (None: not known).

    Links: what the worst-placed chip can take in, over the axes that its slice has.
    """

    name: str
    bytes: float | None
    bytes_per_s: float | None


def ladder_of(replica: ReplicaCosts) -> tuple[Level, ...]:
    """The levels of a replica's chips, nearest to the arithmetic first; links where there are several chips."""
    chip, network = replica.chip, replica.network
    on_chip = [Level(name=each.name.lower(), bytes=each.bytes, bytes_per_s=each.bytes_per_s) for each in chip.on_chip]
    hbm = Level(name="hbm", bytes=chip.hbm_bytes, bytes_per_s=chip.hbm_bytes_per_s)
    links: list[Level] = []
    if replica.chips > 1:
        torus = chip.interconnect is Interconnect.TORUS
        rate = gather_bytes_per_s(chip, network) if torus else chip.link_bytes_per_s
        links.append(Level(name="ici" if torus else "nvlink", bytes=None, bytes_per_s=rate))
        if nodes(chip, network) > 1:
            links.append(Level(name="network", bytes=None, bytes_per_s=chip.network_bytes_per_s))
    host = Level(name="host_link", bytes=None, bytes_per_s=chip.host_link_bytes_per_s)
    return (*on_chip, hbm, *links, host)
