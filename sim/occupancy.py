"""Who is where: the free chips of every host, and which jobs hold something of which cube."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.holdings import Holding
from topology.pod import CHIPS_PER_HOST, HOSTS_PER_CUBE, AnyPod


class Occupancy:
    """The holdings of all jobs of a pod. Raises AssertionError where a chip would be held twice."""

    def __init__(self, pod: AnyPod, cubes: int) -> None:
        """All is free. `cubes`: of a flat pod its runs of 16 hosts."""
        self.holdings: dict[int, Holding] = {}
        self.jobs_in: list[dict[int, Holding]] = [{} for _ in range(cubes)]
        self.free_chips: NDArray[np.uint8] = np.full(pod.hosts, CHIPS_PER_HOST, dtype=np.uint8)

    def take(self, holding: Holding) -> None:
        """A job gets what it is to hold."""
        placed = holding.placed
        free = self.free_chips[holding.index]
        assert (free >= placed.chips_per_host).all(), f"a host of {placed.hosts} is taken"
        self.free_chips[holding.index] = free - placed.chips_per_host
        for cube in holding.cubes:
            self.jobs_in[cube][placed.job] = holding
        self.holdings[placed.job] = holding

    def give_back(self, job: int) -> Holding:
        """A job gives all back; what that was."""
        holding = self.holdings.pop(job)
        self.free_chips[holding.index] += holding.placed.chips_per_host
        for cube in holding.cubes:
            del self.jobs_in[cube][job]
        return holding

    def check(self) -> None:
        """Assert that the chips held and free add up to the pod, counted anew from the holdings."""
        free = [CHIPS_PER_HOST] * len(self.free_chips)
        jobs_in: list[dict[int, Holding]] = [{} for _ in self.jobs_in]
        for job, holding in self.holdings.items():
            assert holding.placed.job == job, "a placement belongs to its job"
            for host in holding.placed.hosts:
                free[host] -= holding.placed.chips_per_host
                jobs_in[host // HOSTS_PER_CUBE][job] = holding
        assert free == self.free_chips.tolist(), "chips held and free add up to the pod"
        assert min(free) >= 0, "no chip is held twice"
        assert jobs_in == self.jobs_in, "who is in which cube"
