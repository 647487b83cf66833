"""Cost and power of the optics as a share of the machine, every figure with its mark.

Published is only the outcome: modules, fibre and switches are less than 5 % of the capital cost and less than 3 % of
the power (V: Jouppi et al., ISCA 2023, 2.10), less than 6 % of the cost in another paper of the same makers (V2). What
one part costs or draws is mostly our assumption; so the functions also say what the published limits leave per end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from topology.pod import CHIPS_PER_HOST, OPTICAL_ENDS_PER_CUBE, SWITCHES_PER_POD, Pod
from topology.provenance import Mark, Source

PUBLISHED_COST_SHARE_MAX = 0.05
PUBLISHED_POWER_SHARE_MAX = 0.03
PUBLISHED_SOURCE = Source("shares", Mark.VERIFIED, "Jouppi et al., TPU v4, ISCA 2023, 2.10")


@dataclass(frozen=True, kw_only=True, slots=True)
class OpticsFigures:
    """Power in watts, and cost in units of one chip with its share of host, rack and copper."""

    chip_w: float = 170.0
    host_w: float = 400.0
    switch_w: float = 108.0
    optical_end_w: float = 4.0
    switch_cost: float = 2.0
    optical_end_cost: float = 0.012
    fibre_cost: float = 0.001


FIGURE_SOURCES = (
    Source("chip_w", Mark.VERIFIED, "mean of TPU v4: ISCA 2023, Table 4 (idle 90, max 192)"),
    Source("host_w", Mark.ASSUMED, "a server with its share of fans and losses; four chips each"),
    Source("switch_w", Mark.SECONDARY, "about 108 W, trade press"),
    Source("optical_end_w", Mark.ASSUMED, "transceiver of one link end; the published 3 % leaves at most 4.7 W (D)"),
    Source("switch_cost", Mark.ASSUMED, "two chips"),
    Source("optical_end_cost", Mark.ASSUMED, "transceiver and circulator, 1.2 % of a chip"),
    Source("fibre_cost", Mark.ASSUMED, "one strand, 0.1 % of a chip"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpticsShare:
    """The optics of one pod: watts, cost (in chips), and the share of each in the whole machine."""

    power_w: float
    machine_power_w: float
    cost: float
    machine_cost: float

    @property
    def power_share(self) -> float:
        """Share of the machine's power."""
        return self.power_w / self.machine_power_w

    @property
    def cost_share(self) -> float:
        """Share of the machine's cost."""
        return self.cost / self.machine_cost


def optics_share(pod: Pod, figures: OpticsFigures | None = None) -> OpticsShare:
    """Cost and power of a pod's switches, optical ends and fibres beside chips and hosts."""
    of = figures or OpticsFigures()
    ends = pod.cubes * OPTICAL_ENDS_PER_CUBE
    power = SWITCHES_PER_POD * of.switch_w + ends * of.optical_end_w
    cost = SWITCHES_PER_POD * of.switch_cost + ends * (of.optical_end_cost + of.fibre_cost)
    return OpticsShare(
        power_w=power,
        machine_power_w=power + pod.chips * (of.chip_w + of.host_w / CHIPS_PER_HOST),
        cost=cost,
        machine_cost=cost + pod.chips,
    )


def end_watts_left(pod: Pod, figures: OpticsFigures | None = None, share: float = PUBLISHED_POWER_SHARE_MAX) -> float:
    """Watts that a limit on the share of power leaves for each optical end (D)."""
    of = replace(figures or OpticsFigures(), optical_end_w=0.0)
    bare = optics_share(pod, of)
    others = bare.machine_power_w - bare.power_w
    return (share * others / (1 - share) - bare.power_w) / (pod.cubes * OPTICAL_ENDS_PER_CUBE)


def end_cost_left(pod: Pod, figures: OpticsFigures | None = None, share: float = PUBLISHED_COST_SHARE_MAX) -> float:
    """Cost, in chips, that a limit on the share of cost leaves for each optical end with its fibre (D)."""
    of = replace(figures or OpticsFigures(), optical_end_cost=0.0, fibre_cost=0.0)
    bare = optics_share(pod, of)
    others = bare.machine_cost - bare.cost
    return (share * others / (1 - share) - bare.cost) / (pod.cubes * OPTICAL_ENDS_PER_CUBE)
