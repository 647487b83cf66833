"""The public check of policies: ours pass, broken ones are found out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import pytest

import opticube
from topology.fabric import Fabric
from topology.placement import Placement, place
from topology.pod import Pod
from topology.policies import AnyPlacementPolicy, BestFit, FirstFit, Folding
from topology.shape import Shape
from workloads.jobs.fitting import Mask
from workloads.jobs.queue_policies import AnyQueuePolicy, Easy, FairShare, Fifo, Priority, ShortestFirst
from workloads.jobs.queueing import Decision, Preempt, QueueView, Start


@pytest.mark.parametrize(
    "policy",
    [Fifo(), Easy(), Easy(order="shortest"), ShortestFirst(), ShortestFirst(overtake=True), FairShare(), Priority(),
     Priority(overtake=True)],
)  # fmt: skip
def test_our_queue_policies_conform(policy: AnyQueuePolicy) -> None:
    """Goal: what we ask of others holds for us. Method: the check itself."""
    assert opticube.check_queue_policy(policy, views=40) == ()


@pytest.mark.parametrize("policy", [FirstFit(), BestFit(), Folding(), Folding(then=BestFit(), least_bisection=0.0)])
def test_our_placement_policies_conform(policy: AnyPlacementPolicy) -> None:
    """Goal: what we ask of others holds for us. Method: the check itself."""
    assert opticube.check_placement_policy(policy) == ()


@dataclass(frozen=True, kw_only=True)
class Mine:
    """A user's queue policy with a chosen fault."""

    kind: Literal["mine"] = "mine"
    fault: str = ""

    def decide(self, view: QueueView) -> Sequence[Decision]:
        """Decide as the fault has it."""
        waiting = [one.job for one in view.waiting]
        if self.fault == "everything":
            return [Start(job=job) for job in waiting]
        if self.fault == "stranger":
            return [Start(job=view.running[0].job)] if view.running else []
        if self.fault == "idle":
            return [Preempt(job=waiting[0])] if waiting else []
        if self.fault == "words":
            return cast("list[Decision]", ["start"] if waiting else [])
        return [Start(job=view.running[0].job)] if not waiting and view.running else []


@pytest.mark.parametrize(
    ("fault", "said"),
    [("everything", "which does not fit"), ("stranger", "does not wait"), ("idle", "does not run"),
     ("words", "neither Start nor Preempt")],
)  # fmt: skip
def test_broken_queue_policies_are_found_out(fault: str, said: str) -> None:
    """Goal: a fault is named, with the view that shows it. Method: one fault at a time; without one all is well."""
    faults = opticube.check_queue_policy(Mine(fault=fault), views=20)
    assert any(said in text for text in faults)
    assert all(text.startswith("view ") for text in faults)
    assert opticube.check_queue_policy(Mine(), views=20) == ()


def test_a_policy_that_forgets_nothing_is_found_out() -> None:
    """Goal: purity. Method: a plain class that decides otherwise the second time."""

    class Moody:
        calls = 0

        def decide(self, view: QueueView) -> Sequence[Decision]:
            self.calls += 1
            return Fifo().decide(view) if self.calls % 2 else []

    faults = opticube.check_queue_policy(Moody(), views=20)
    assert "not a dataclass" in faults[0]
    assert any("the second time" in text for text in faults)


@dataclass(frozen=True, kw_only=True)
class MyPlace:
    """A user's placement policy with a chosen fault."""

    kind: Literal["my_place"] = "my_place"
    fault: str

    def choose(
        self,
        fabric: Fabric,
        pod: Pod,
        shape: Shape,
        free_hosts: Mask,
        avoid_cubes: Mask | None = None,
    ) -> Placement | None:
        """Choose as the fault has it."""
        found = place(fabric, pod, shape, free_hosts, avoid_cubes)
        if found is None:
            return None
        if self.fault == "writes":
            free_hosts[:] = False
        if self.fault == "taken":
            hosts = tuple(range(pod.hosts - shape.hosts, pod.hosts))
            return replace(found, hosts=hosts, cubes=tuple(sorted({host // 16 for host in hosts})))
        if self.fault == "few":
            return replace(found, hosts=found.hosts[:-1])
        if self.fault == "anywhere" and found.cubes:
            return place(Fabric.RECONFIGURABLE, pod, shape, free_hosts)
        return found


@pytest.mark.parametrize(
    ("fault", "said"),
    [("writes", "masks are changed"), ("taken", "not free"), ("few", "hosts for a slice"),
     ("anywhere", "can not be joined")],
)  # fmt: skip
def test_broken_placement_policies_are_found_out(fault: str, said: str) -> None:
    """Goal: a fault is named. Method: one fault at a time."""
    assert any(said in text for text in opticube.check_placement_policy(MyPlace(fault=fault)))
