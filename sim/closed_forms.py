"""Numbers that need no simulation: availability of slices, promises, machine repair, checkpoints.

Symbols of the design: C cubes in the pod, n cubes per slice, h host availability, p cube availability, U usable cubes.
Hosts are independent; whether lives are exponential does not matter. Functions return None where no closed form exists.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from topology.fabric import Fabric
from topology.pod import CHIPS_PER_CUBE, CHIPS_PER_HOST, HOSTS_PER_CUBE, IN_RACK_LINKS_PER_CUBE

Floats = NDArray[np.float64]

MOST_CUBES = 1_000_000
"""Promises that would take more cubes than this count as not possible."""


@dataclass(frozen=True, kw_only=True)
class CubeOdds:
    """Long-run availability of what a usable cube needs: each host, its rack, each of its 80 in-rack links."""

    host: float
    rack: float = 1.0
    in_rack_link: float = 1.0

    @property
    def frame(self) -> float:
        """Rack and all in-rack links up."""
        return self.rack * float(self.in_rack_link**IN_RACK_LINKS_PER_CUBE)

    @property
    def cube(self) -> float:
        """The cube availability p = h^16 x rack x in-rack links."""
        return float(self.host**HOSTS_PER_CUBE) * self.frame

    def block(self, hosts: int) -> float:
        """An aligned block of `hosts` hosts of one cube can be used."""
        return float(self.host**hosts) * self.frame


def binomial_at_least(count: int, probability: float, least: int) -> float:
    """P(Bin(count, probability) >= least)."""
    if least <= 0:
        return 1.0
    if least > count:
        return 0.0
    return float(special.betainc(least, count - least + 1, probability))


def binomial_pmf(count: int, probability: float) -> Floats:
    """P(Bin(count, probability) = k) for k = 0 .. count."""
    if probability >= 1.0 or probability <= 0.0:
        return np.asarray(np.eye(count + 1)[count if probability >= 1.0 else 0], dtype=np.float64)
    k = np.arange(count + 1)
    ways = special.gammaln(count + 1) - special.gammaln(k + 1) - special.gammaln(count - k + 1)
    return np.asarray(np.exp(ways + k * math.log(probability) + (count - k) * math.log1p(-probability)))


def hosts_up_pmf(cubes: int, odds: CubeOdds) -> Floats:
    """P(k hosts can be used), k = 0 .. 16 C: hosts are independent given which racks are up."""
    if odds.frame == 1.0:
        return binomial_pmf(HOSTS_PER_CUBE * cubes, odds.host)
    total = np.zeros(HOSTS_PER_CUBE * cubes + 1)
    for standing, weight in enumerate(binomial_pmf(cubes, odds.frame)):
        total[: HOSTS_PER_CUBE * standing + 1] += weight * binomial_pmf(HOSTS_PER_CUBE * standing, odds.host)
    return total


def capacity_pmf(fabric: Fabric, cubes: int, slice_chips: int, odds: CubeOdds) -> Floats | None:
    """P(m slices of `slice_chips` chips can be formed), m = 0, 1, ...; None for `static_contiguous` above one cube."""
    most = cubes * CHIPS_PER_CUBE // slice_chips
    per_host = max(1, CHIPS_PER_HOST // slice_chips)  # slices of 1 and 2 chips share a host
    hosts = max(1, slice_chips // CHIPS_PER_HOST)
    if fabric is Fabric.ANY_HOST:
        slices = np.arange(HOSTS_PER_CUBE * cubes + 1) // hosts * per_host
        return _pooled(slices, hosts_up_pmf(cubes, odds), most)
    if slice_chips < CHIPS_PER_CUBE:
        blocks = _blocks_pmf(cubes, hosts, odds)
        return _pooled(np.arange(len(blocks)) * per_host, blocks, most)
    n = slice_chips // CHIPS_PER_CUBE
    if fabric is Fabric.RECONFIGURABLE or n == 1:
        return _pooled(np.arange(cubes + 1) // n, binomial_pmf(cubes, odds.cube), most)
    if fabric is Fabric.STATIC_ALIGNED:
        return binomial_pmf(most, odds.cube**n)
    return None


def _pooled(slices: NDArray[np.int64], pmf: Floats, most: int) -> Floats:
    """The law of a number of slices, from the slices that go with each outcome of `pmf`."""
    return np.asarray(np.bincount(slices, weights=pmf, minlength=most + 1), dtype=np.float64)


def _blocks_pmf(cubes: int, hosts: int, odds: CubeOdds) -> Floats:
    per_cube = HOSTS_PER_CUBE // hosts
    up = odds.host**hosts
    if odds.frame == 1.0:
        return binomial_pmf(per_cube * cubes, up)
    total = np.zeros(per_cube * cubes + 1)
    for standing, weight in enumerate(binomial_pmf(cubes, odds.frame)):
        total[: per_cube * standing + 1] += weight * binomial_pmf(per_cube * standing, up)
    return total


def expected_share(fabric: Fabric, cubes: int, slice_chips: int, odds: CubeOdds) -> float | None:
    """`expected`: reconfigurable (n/C) E[floor(U/n)], static aligned floor(C/n) (n/C) p^n, and so on."""
    pmf = capacity_pmf(fabric, cubes, slice_chips, odds)
    if pmf is None:
        return None
    return float(np.dot(np.arange(len(pmf)), pmf)) * slice_chips / (cubes * CHIPS_PER_CUBE)


def guaranteed_share(fabric: Fabric, cubes: int, slice_chips: int, odds: CubeOdds, time_share: float) -> float | None:
    """`guaranteed`: the largest share that capacity reaches with probability at least `time_share`."""
    pmf = capacity_pmf(fabric, cubes, slice_chips, odds)
    if pmf is None:
        return None
    at_least = 1.0 - np.concatenate(([0.0], np.cumsum(pmf)[:-1]))
    held = int(np.flatnonzero(at_least >= time_share)[-1])
    return held * slice_chips / (cubes * CHIPS_PER_CUBE)


def cubes_held(cubes: int, cube_availability: float, time_share: float) -> int:
    """The most cubes of a pod that are usable together for at least a share `time_share` of the time."""
    held = cubes
    while binomial_at_least(cubes, cube_availability, held) < time_share:
        held -= 1
    return held


def _least_count(per_slice: int, wanted: int, probability: float, time_share: float) -> int | None:
    """Smallest N <= MOST_CUBES / per_slice with P(Bin(N, probability) >= wanted) >= time_share, by halving."""
    low, high = wanted - 1, max(wanted, MOST_CUBES // per_slice)
    if binomial_at_least(high, probability, wanted) < time_share:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if binomial_at_least(middle, probability, wanted) >= time_share:
            high = middle
        else:
            low = middle
    return high


def cubes_for_promise(
    fabric: Fabric, slices: Mapping[int, int], odds: CubeOdds, time_share: float, *, most: int = MOST_CUBES
) -> int | None:
    """Cubes needed to hold all `slices` (chips -> how many) at once for a share `time_share` of the time.

    Reconfigurable: P(Bin(C, p) >= cubes of all slices). Static aligned: each size has blocks of its own, and the blocks
    of all sizes must hold together. Any host: P(enough hosts up). Slices under a cube are counted as the whole cubes
    that they fill, except under `any_host`. None: no closed form (`static_contiguous` of several cubes), or more than
    `most` cubes. Limits of switch ports are ignored.
    """
    hosts = sum(max(1, chips // CHIPS_PER_HOST) * count for chips, count in slices.items())
    cubes_of: dict[int, int] = {}
    for chips, count in sorted(slices.items()):
        size = max(1, chips // CHIPS_PER_CUBE)
        filled = count if chips >= CHIPS_PER_CUBE else -(-count * max(1, chips // CHIPS_PER_HOST) // HOSTS_PER_CUBE)
        cubes_of[size] = cubes_of.get(size, 0) + filled
    if fabric is Fabric.ANY_HOST:
        answer = _hosts_for_promise(hosts, odds, time_share)
    elif fabric is Fabric.RECONFIGURABLE or set(cubes_of) == {1}:
        answer = _least_count(1, sum(n * k for n, k in cubes_of.items()), odds.cube, time_share)
    elif fabric is Fabric.STATIC_ALIGNED:
        answer = _blocks_for_promise(cubes_of, odds.cube, time_share)
    else:
        answer = None
    return answer if answer is not None and answer <= most else None


def _hosts_for_promise(hosts: int, odds: CubeOdds, time_share: float) -> int | None:
    if odds.frame == 1.0:
        low, high = 0, MOST_CUBES
        while high - low > 1:
            middle = (low + high) // 2
            held = binomial_at_least(HOSTS_PER_CUBE * middle, odds.host, hosts) >= time_share
            low, high = (low, middle) if held else (middle, high)
        return high if high < MOST_CUBES else None
    cubes = -(-hosts // HOSTS_PER_CUBE)
    while cubes < 4096:  # racks couple the hosts: the sum over racks is exact but costs C^2
        if float(hosts_up_pmf(cubes, odds)[hosts:].sum()) >= time_share:
            return cubes
        cubes += 1
    return None


def _blocks_for_promise(blocks_of: Mapping[int, int], cube: float, time_share: float) -> int | None:
    """Cubes of the cheapest set of blocks found by adding, one by one, the block that helps most for its cubes."""
    if len(blocks_of) == 1:
        ((size, wanted),) = blocks_of.items()
        count = _least_count(size, wanted, cube**size, time_share)
        return None if count is None else count * size
    # every size alone must hold for the share: start there, where the odds of each are near 1
    counts: dict[int, int] = {}
    for size, wanted in sorted(blocks_of.items()):
        count = _least_count(size, wanted, cube**size, time_share)
        if count is None:
            return None
        counts[size] = count

    def log_odds(size: int, count: int) -> float:
        return math.log(binomial_at_least(count, cube**size, blocks_of[size]))

    while sum(log_odds(size, count) for size, count in counts.items()) < math.log(time_share):
        gains = {n: (log_odds(n, count + 1) - log_odds(n, count)) / n for n, count in counts.items()}
        best = max(sorted(gains), key=gains.__getitem__)
        counts[best] += 1
        if sum(size * count for size, count in counts.items()) > MOST_CUBES:
            return None
    return sum(size * count for size, count in counts.items())


def cliff_chips(expected_by_chips: Mapping[int, float], *, below: float = 0.5) -> int | None:
    """The smallest slice size (chips) whose `expected` is under 50 %; None where no size falls so low."""
    low = [chips for chips, value in sorted(expected_by_chips.items()) if value < below]
    return low[0] if low else None


def machine_repair_availability(components: int, mean_life_s: float, mean_repair_s: float, crews: int | None) -> float:
    """Share of N components up in the machine repair model M/M/R//N, `crews` R (None: unlimited).

    Birth and death: with j down, failures at (N - j) / life, repairs at min(j, R) / repair.
    """
    if crews is None:
        return mean_life_s / (mean_life_s + mean_repair_s)
    down = np.arange(components)
    repairs = np.minimum(down + 1, crews) / mean_repair_s
    steps = np.log((components - down) / mean_life_s) - np.log(repairs)
    weights = np.concatenate(([0.0], np.cumsum(steps)))
    weights = np.exp(weights - weights.max())
    return float(1.0 - np.dot(np.arange(components + 1), weights) / weights.sum() / components)


def young_interval_s(mean_between_losses_s: float, save_s: float) -> float:
    """Young's best time between checkpoints: sqrt(2 M C)."""
    return math.sqrt(2.0 * mean_between_losses_s * save_s)


def productive_share(interval_s: float, save_s: float, restart_s: float, losses_per_s: float) -> float:
    """ETTR of a job with blocking saves: dt / (e^(l u) (e^(l (dt + w)) - 1) / l) (design: measures, section 2)."""
    wall_s = math.exp(losses_per_s * restart_s) * math.expm1(losses_per_s * (interval_s + save_s)) / losses_per_s
    return interval_s / wall_s


def renewal_failures_per_s(components: int, mean_life_s: float, mean_outage_s: float) -> float:
    """Long-run failures per second of N components, whatever the shape of their laws: N / (life + outage)."""
    return components / (mean_life_s + mean_outage_s)
