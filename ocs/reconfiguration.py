"""How long a reconfiguration takes: mirrors, then links, then routes.

Mirrors of different switches move at the same time. Then the links come up, and the slice waits for its slowest. Then
links are discovered and routing tables loaded. About 10 s in all for a slice of 1,024 chips.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtri

from ocs.circuits import ReconfigurationPlan
from topology.units import PositiveSeconds, Seconds

Z_99 = float(ndtri(0.99))
"""The 99 % quantile of the standard normal law."""


@dataclass(frozen=True, kw_only=True)
class ReconfigurationTiming:
    """Times of the parts of a reconfiguration.

    `mirrors` and `mirrors_per_circuit`: of one switch (MixNet, SIGCOMM 2025, appendix C: 41.4, 42.4, 46.8 ms for 1,
    4, 16 pairs). `link_up_mean`, `link_up_p99`: of one link, lognormal (there: 5.67 s, 6.33 s). `discovery`: links
    and routing tables (assumption, chosen so that 1,024 chips take about the 10 s that are told of TPU v4).
    """

    mirrors: Seconds = 0.041
    mirrors_per_circuit: Seconds = 0.00036
    link_up_mean: PositiveSeconds = 5.67
    link_up_p99: PositiveSeconds = 6.33
    discovery: Seconds = 3.3

    def __post_init__(self) -> None:
        """Check that a lognormal law has these two figures."""
        if not 1 <= self.link_up_p99 / self.link_up_mean <= math.exp(Z_99**2 / 2):
            raise ValueError(
                f"link_up_p99 must lie between link_up_mean and {math.exp(Z_99**2 / 2):.4g} times it, "
                f"not {self.link_up_p99:g} s for a mean of {self.link_up_mean:g} s"
            )

    @property
    def link_up_sigma(self) -> float:
        """Spread of the logarithm of one link's time: p99 / mean = exp(z sigma - sigma^2 / 2), solved for sigma."""
        return Z_99 - math.sqrt(max(0.0, Z_99**2 - 2 * math.log(self.link_up_p99 / self.link_up_mean)))

    def slowest_link_s(self, links: int, u: float) -> float:
        """Quantile `u` in [0, 1) of the time, in seconds, of the slowest of `links` independent links; 0 for none."""
        if links == 0:
            return 0.0
        if self.link_up_sigma == 0.0:
            return self.link_up_mean
        one = u ** (1 / links)
        return self.link_up_mean * math.exp(self.link_up_sigma * float(ndtri(one)) - self.link_up_sigma**2 / 2)

    def mirrors_s(self, plan: ReconfigurationPlan) -> float:
        """Time, in seconds, until the mirrors of all switches have moved: that of the switch with most to change."""
        most = int(plan.changes_per_switch.max())
        return self.mirrors + self.mirrors_per_circuit * most if most else 0.0

    def time_s(self, plan: ReconfigurationPlan, u: float) -> float:
        """Time, in seconds, of a whole plan at quantile `u` in [0, 1); 0 for a plan that changes nothing."""
        mirrors_s = self.mirrors_s(plan)
        if not len(plan.make):
            return mirrors_s
        return mirrors_s + self.slowest_link_s(len(plan.make), u) + self.discovery
