"""What machines cost: the section `prices` of a scenario, and the cost of a pod by fabric.

Published are shares only (optics under 5 % of capital and 3 % of power, optical links over 10 times the cost of
electrical ones: Jouppi et al., ISCA 2023). Every price in money is an assumption of ours: that of a chip, times what
`ocs.economics` has for the others (an optical end is 1.2 % of a chip, a switch two chips); powers are from there too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from ocs.economics import OpticsFigures
from sim.scenario_parts import Section
from topology.fabric import Fabric
from topology.pod import CHIPS_PER_HOST, OPTICAL_ENDS_PER_CUBE, SWITCHES_PER_POD, AnyPod, FlatPod
from topology.provenance import Mark, Source
from topology.units import PositiveSeconds, Unit, Watts

Usd = Annotated[float, Unit("USD")]
UsdPerKwh = Annotated[float, Unit("USD/kWh")]
UsdPerYear = Annotated[float, Unit("USD/year")]

HOURS_PER_YEAR = 8_760.0
S_PER_YEAR = 3600.0 * HOURS_PER_YEAR
_OPTICS = OpticsFigures()
_CHIP_USD = 10_000.0
STATIC = (Fabric.STATIC_ALIGNED, Fabric.STATIC_CONTIGUOUS)


class PricesSection(Section):
    """Prices of parts, power and people; capital is spread evenly over the life of the machine."""

    chip: Usd = _CHIP_USD
    """A chip with its share of host, rack and copper."""
    switch: Usd = _CHIP_USD * _OPTICS.switch_cost
    """An optical circuit switch."""
    optical_end: Usd = _CHIP_USD * _OPTICS.optical_end_cost
    """Transceiver and circulator of one end of an optical link."""
    fibre: Usd = _CHIP_USD * _OPTICS.fibre_cost
    """One strand of fibre, one for each optical end."""
    electrical_end: Usd = _CHIP_USD * _OPTICS.optical_end_cost / 10
    """The same end of a cabled link between cubes, on static fabrics."""
    chip_power: Watts = _OPTICS.chip_w
    """Mean power of a chip."""
    host_power: Watts = _OPTICS.host_w
    """Power of a host of four chips, with its fans and losses."""
    switch_power: Watts = _OPTICS.switch_w
    """Power of a switch."""
    optical_end_power: Watts = _OPTICS.optical_end_w
    """Power of one end of an optical link."""
    electrical_end_power: Watts = 0.0
    """Power of one end of a cabled link between cubes."""
    power_overhead: Annotated[float, Field(ge=1.0, le=10.0)] = 1.1
    """Power of the whole hall over that of the machine."""
    electricity: UsdPerKwh = 0.08
    """Price of electricity."""
    life: PositiveSeconds = 5 * S_PER_YEAR
    """Life of the machine, over which its capital is spread."""
    crew: UsdPerYear = 300_000.0
    """One repair crew, where `repair.crews` limits them; without a limit crews are not counted."""


PRICE_SOURCES = (
    Source("chip", Mark.ASSUMED, "no price is published; shares of it count more than its height"),
    Source("switch", Mark.ASSUMED, "two chips"),
    Source("optical_end", Mark.ASSUMED, "1.2 % of a chip: optics come to 4.1 % of capital, published is under 5 %"),
    Source("fibre", Mark.ASSUMED, "0.1 % of a chip"),
    Source("electrical_end", Mark.ASSUMED, "a tenth: optical links cost over 10 times as much, ISCA 2023, 2 (V)"),
    Source("chip_power", Mark.VERIFIED, "mean of TPU v4, ISCA 2023, Table 4"),
    Source("host_power", Mark.ASSUMED, "a server with its share of fans and losses"),
    Source("switch_power", Mark.SECONDARY, "about 108 W, trade press"),
    Source("optical_end_power", Mark.ASSUMED, "the published 3 % of power leaves at most 4.7 W"),
    Source("electrical_end_power", Mark.ASSUMED, "passive cable"),
    Source("power_overhead", Mark.ASSUMED, "a large, well cooled hall"),
    Source("electricity", Mark.ASSUMED, "an industrial contract"),
    Source("life", Mark.ASSUMED, "five years, evenly"),
    Source("crew", Mark.ASSUMED, "two people around the clock in part"),
)
PRICE_UNITS = {
    "chip": "USD", "switch": "USD", "optical_end": "USD", "fibre": "USD", "electrical_end": "USD", "chip_power": "W",
    "host_power": "W", "switch_power": "W", "optical_end_power": "W", "electrical_end_power": "W",
    "power_overhead": "1", "electricity": "USD/kWh", "life": "s", "crew": "USD/year",
}  # fmt: skip
PRICE_ASSUMPTIONS = tuple(f"PricesSection.{each.field}" for each in PRICE_SOURCES if each.mark is Mark.ASSUMED)
"""Keys whose default is a guess of this project."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineCost:
    """Cost of one pod: capital in USD and power in W, each with the part of what joins its cubes; crews in USD/year.

    `links_usd`, `links_w`: switches, ends and fibres of light, or cabled ends of static wiring.
    """

    chips: int
    capital_usd: float
    links_usd: float
    power_w: float
    links_w: float
    capital_usd_per_year: float
    energy_usd_per_year: float
    crews_usd_per_year: float

    @property
    def links_share(self) -> float:
        """Share of the capital that joins the cubes: the optics' share where they are joined by light."""
        return self.links_usd / self.capital_usd if self.capital_usd else 0.0

    @property
    def links_power_share(self) -> float:
        """The same of power."""
        return self.links_w / self.power_w if self.power_w else 0.0

    @property
    def usd_per_year(self) -> float:
        """All that a year costs."""
        return self.capital_usd_per_year + self.energy_usd_per_year + self.crews_usd_per_year

    @property
    def usd_per_chip_hour(self) -> float:
        """The same over all chip-hours, used or not."""
        return self.usd_per_year / (self.chips * HOURS_PER_YEAR)


def machine_cost(prices: PricesSection, pod: AnyPod, fabric: Fabric, crews: int | None = None) -> MachineCost:
    """Cost of a pod; its cubes are joined by light unless the fabric is static, a flat pod's hosts by nothing."""
    ends = 0 if isinstance(pod, FlatPod) else pod.cubes * OPTICAL_ENDS_PER_CUBE
    switches = SWITCHES_PER_POD if ends else 0
    if fabric in STATIC:
        links_usd, links_w = ends * prices.electrical_end, ends * prices.electrical_end_power
    else:
        links_usd = switches * prices.switch + ends * (prices.optical_end + prices.fibre)
        links_w = switches * prices.switch_power + ends * prices.optical_end_power
    capital = links_usd + pod.chips * prices.chip
    power = links_w + pod.chips * (prices.chip_power + prices.host_power / CHIPS_PER_HOST)
    return MachineCost(
        chips=pod.chips,
        capital_usd=capital,
        links_usd=links_usd,
        power_w=power,
        links_w=links_w,
        capital_usd_per_year=capital * S_PER_YEAR / prices.life,
        energy_usd_per_year=power / 1e3 * prices.power_overhead * HOURS_PER_YEAR * prices.electricity,
        crews_usd_per_year=(crews or 0) * prices.crew,
    )
