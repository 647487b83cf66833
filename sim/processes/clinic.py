"""The clinic: false alarms, common causes, hidden faults and who finds them, flapping links.

What it finds it takes out of service, with the cause in the log: `false_alarm`, `power_domain`, `pod`, `slow`,
`corruption`, `flapping`. Jobs learn of it as of any other loss.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from simpy.core import Environment
from simpy.events import Event

from sim.condition import KINDS
from sim.histories import US_PER_S, ComponentKind
from sim.machine import Machine
from sim.other_failures import FlappingLinks, HiddenFault, OtherFailures, PodEvents
from sim.policies import HealthPolicy
from sim.processes.health import OutageParts, to_us
from sim.processes.onsets import Onset, draw_onsets
from sim.processes.order import Order, Timer, priority
from sim.processes.reasons import Components
from sim.processes.repair import Workshop
from sim.streams import Streams
from sim.trace import FULL_SPEED_PPM
from topology.pod import HOSTS_PER_CUBE

HOST, RACK = ComponentKind.HOST, ComponentKind.RACK
LINK, END = ComponentKind.IN_RACK_LINK, ComponentKind.OPTICAL_END
Case = Generator[Event, None, None]

CHECK_S = 600.0
"""Time of a check that finds nothing, where the policy of false alarms does not say (assumption)."""


class Clinic:
    """Owner of all that fails beside the renewals of single components, and of the tests that find it."""

    def __init__(
        self,
        env: Environment,
        machine: Machine,
        front: Components,
        workshop: Workshop,
        health: HealthPolicy,
        others: OtherFailures,
        streams: Streams | None,
    ) -> None:
        """Raise ValueError where something is to be drawn and there are no streams."""
        tests = health.gives_false_alarms or not others.is_off
        if streams is None and tests:
            raise ValueError("false alarms and failures beside the renewals are drawn: give streams")
        self._env, self._machine, self._front, self._workshop = env, machine, front, workshop
        self._health, self._others, self._streams = health, others, streams
        self._hosts = len(machine.up.up[HOST])
        self._cases: dict[int, tuple[HiddenFault, str, float]] = {}
        self._starts: dict[int, int] = {}

    def start(self) -> None:
        """Start the processes of everything that is named."""
        env, others = self._env, self._others
        rate = self._false_alarm_rate_per_s()
        if rate > 0:
            env.process(self._false_alarms(self._draws("health.false_alarms", rate, self._hosts)))
        if others.power_domain is not None:
            groups = self._groups(others.power_domain.racks)
            env.process(self._common_cause("power_domain", others.power_domain, groups))
        if others.pod is not None:
            env.process(self._common_cause("pod", others.pod, self._groups(None)))
        if others.slow_hosts is not None:
            env.process(self._hidden_faults("slow", others.slow_hosts, round(others.slow_hosts.speed * FULL_SPEED_PPM)))
        if others.corruption is not None:
            env.process(self._hidden_faults("corruption", others.corruption, FULL_SPEED_PPM))
        for kind, flapping in ((LINK, others.flapping_in_rack_links), (END, others.flapping_optical_ends)):
            if flapping is not None and self._machine.up.up[kind]:
                env.process(self._flapping_links(kind, flapping))

    def _draws(self, name: str, rate_per_s: float, count: int) -> Iterator[Onset]:
        assert self._streams is not None
        return draw_onsets(self._streams, name, rate_per_s, count)

    # Tests ------------------------------------------------------------------------------------------------------

    def preflight(self, job: int) -> None:
        """Test the slice of a job at the end of its preflight: what is found, or suspected, is taken out.

        The job then loses the attempt like after any failure. Test k of job j draws block k of the stream
        `health.preflight.j`: whether a good slice is refused, which of its hosts is blamed, then one uniform for each
        hidden fault in order of its host.
        """
        policy = self._health.preflight
        if policy is None or (policy.false_alarms == 0 and not self._others.has_hidden) or self._streams is None:
            return
        attempt = self._starts.get(job, 0)
        self._starts[job] = attempt + 1
        holding, hidden = self._machine.holdings[job], self._machine.flaws.hidden
        ill = sorted(host for host in self._cases if host in hidden and host in holding.hosts)
        u = self._streams.uniforms(f"health.preflight.{job}", attempt, 2 + len(ill)).tolist()
        found = [host for host, x in zip(ill, u[2:], strict=True) if policy.finds(x)]
        for host in found:
            self._find(host, mend=True)
        if not found and policy.refuses(u[0]):
            self._suspect(holding.placed.hosts[int(u[1] * len(holding.placed.hosts))])

    def _false_alarm_rate_per_s(self) -> float:
        """False alarms per host and second, by polling and by screening."""
        alarms, screening = self._health.false_alarms, self._health.screening
        by_screening = 0.0 if screening is None else screening.false_alarms / screening.every
        return by_screening + (0.0 if alarms is None else alarms.rate)

    def _false_alarms(self, draws: Iterator[Onset]) -> Case:
        for onset in draws:
            yield Timer(self._env, onset.gap_us, priority(Order.FAILURE, KINDS.index(HOST), onset.component))
            if self._machine.up.host_is_up(onset.component):
                self._suspect(onset.component)

    def _suspect(self, host: int) -> None:
        """Take out a host that is in order, for a check."""
        alarms = self._health.false_alarms
        check_us = to_us(CHECK_S if alarms is None else alarms.check)
        self._take_out(HOST, host, "false_alarm", OutageParts(0, 0, 0, 0, automated_us=max(1, check_us)))

    def _take_out(self, kind: ComponentKind, component: int, cause: str, parts: OutageParts) -> None:
        """Out now, known within the instant (after jobs have stopped), back when it is mended."""
        self._front.fail(kind, component, cause)
        self._env.process(self._mend(kind, component, parts))

    def _mend(self, kind: ComponentKind, component: int, parts: OutageParts) -> Case:
        yield Timer(self._env, 0, priority(Order.DETECTION, KINDS.index(kind), component))
        self._front.detect(kind, component)
        yield from self._workshop.mend(kind, component, parts)
        self._front.repair(kind, component)

    def _repair_parts(self, fault: HiddenFault | FlappingLinks, u: float) -> OutageParts:
        """Diagnosis, the drawn repair, burn-in."""
        work_us = max(1, to_us(float(fault.repair.quantile_s(u))))
        return OutageParts(0, to_us(self._health.diagnosis), work_us, to_us(self._health.burn_in))

    # Hidden faults ----------------------------------------------------------------------------------------------

    def _hidden_faults(self, cause: str, fault: HiddenFault, speed_ppm: int) -> Case:
        """Onsets on hosts that are up and in order; each is found by the first of what may find it."""
        env, machine = self._env, self._machine
        for onset in self._draws(f"failures.{cause}", fault.rate, self._hosts):
            host = onset.component
            yield Timer(env, onset.gap_us, priority(Order.FAILURE, KINDS.index(HOST), host))
            if not machine.up.host_is_up(host) or not machine.flaws.is_clear(HOST, host):
                continue
            machine.onset(host, cause, speed_ppm)
            self._cases[host] = (fault, cause, onset.uniforms[2])
            after_us = self._found_after_us(fault, host, onset)
            if after_us is not None:
                env.process(self._find_later(host, after_us))

    def _found_after_us(self, fault: HiddenFault, host: int, onset: Onset) -> int | None:
        """Microseconds until somebody notices or screening finds the fault, whichever is first; None is never."""
        times = []
        if fault.noticed_after is not None:
            times.append(to_us(float(fault.noticed_after.quantile_s(onset.uniforms[0]))))
        if self._health.screening is not None:
            phase = host / self._hosts
            found_us = self._health.screening.found_after_us(int(self._env.now), phase, onset.uniforms[1])
            times += [] if found_us is None else [found_us]
        return min(times, default=None)

    def _find_later(self, host: int, after_us: int) -> Case:
        since_us = self._env.now
        yield Timer(self._env, after_us, priority(Order.DETECTION, KINDS.index(HOST), host))
        hidden = self._machine.flaws.hidden.get(host)
        if hidden is not None and hidden.since_us == since_us and host in self._cases:
            self._find(host, mend=self._cases[host][0].when_found == "mend")

    def _find(self, host: int, *, mend: bool) -> None:
        """A hidden fault is found: the host is taken out and mended, or stays and is known to be degraded."""
        fault, cause, u = self._cases[host]
        if not mend:
            self._machine.degrade(HOST, host, cause)
            return
        del self._cases[host]
        if cause == "corruption":
            self._machine.expose(host)
        self._take_out(HOST, host, cause, self._repair_parts(fault, u))

    # Links that flap --------------------------------------------------------------------------------------------

    def _flapping_links(self, kind: ComponentKind, policy: FlappingLinks) -> Case:
        flapping: set[int] = set()
        for onset in self._draws(f"failures.flapping.{kind}", policy.rate, len(self._machine.up.up[kind])):
            yield Timer(self._env, onset.gap_us, priority(Order.FAILURE, KINDS.index(kind), onset.component))
            if onset.component not in flapping and self._machine.up.up[kind][onset.component]:
                flapping.add(onset.component)
                self._env.process(self._flap(kind, onset, policy, flapping))

    def _flap(self, kind: ComponentKind, onset: Onset, policy: FlappingLinks, flapping: set[int]) -> Case:
        """Down and up again until it is known that the link flaps; then it is mended."""
        env, front, link = self._env, self._front, onset.component
        fails, detected, repaired = (
            priority(order, KINDS.index(kind), link) for order in (Order.FAILURE, Order.DETECTION, Order.REPAIR)
        )
        length_us, every_us = to_us(policy.length), to_us(policy.every)
        for flap in range(policy.tolerated):
            front.fail(kind, link, "flapping")
            known_us = min(self._health.detected_after_us(kind, int(env.now)), length_us)
            yield Timer(env, known_us, detected)
            front.detect(kind, link)
            yield Timer(env, length_us - known_us, repaired)
            if flap < policy.tolerated - 1:
                front.repair(kind, link)
                yield Timer(env, every_us - length_us, fails)
        self._machine.degrade(kind, link, "flapping")
        yield from self._workshop.mend(kind, link, self._repair_parts(policy, onset.uniforms[0]))
        front.repair(kind, link)
        flapping.remove(link)

    # Common causes ----------------------------------------------------------------------------------------------

    def _groups(self, racks: int | None) -> list[list[tuple[ComponentKind, int]]]:
        """What goes down together: the racks of a domain (all: None); where a pod has no racks, hosts, 16 to a rack."""
        has_racks = bool(self._machine.up.up[RACK])
        kind, count = (RACK, len(self._machine.up.up[RACK])) if has_racks else (HOST, self._hosts)
        size = count if racks is None else racks * (1 if has_racks else HOSTS_PER_CUBE)
        return [[(kind, c) for c in range(first, min(first + size, count))] for first in range(0, count, size)]

    def _common_cause(self, cause: str, policy: PodEvents, groups: list[list[tuple[ComponentKind, int]]]) -> Case:
        """Groups of components that go down at one instant, and come back together."""
        until_us = [0] * len(groups)
        for onset in self._draws(f"failures.{cause}", policy.rate, len(groups)):
            group = onset.component
            yield Timer(self._env, onset.gap_us, priority(Order.FAILURE, KINDS.index(RACK), groups[group][0][1]))
            if self._env.now >= until_us[group]:
                length_us = max(1, round(float(policy.outage.quantile_s(onset.uniforms[0])) * US_PER_S))
                until_us[group] = int(self._env.now) + length_us
                self._env.process(self._group_outage(cause, groups[group], length_us))

    def _group_outage(self, cause: str, members: list[tuple[ComponentKind, int]], length_us: int) -> Case:
        env, front = self._env, self._front
        kind, first = members[0]
        number = KINDS.index(kind)
        for _, component in members:
            front.fail(kind, component, cause)
        known_us = min(self._health.detected_after_us(kind, int(env.now)), length_us)
        yield Timer(env, known_us, priority(Order.DETECTION, number, first))
        for _, component in members:
            front.detect(kind, component)
        yield Timer(env, length_us - known_us, priority(Order.REPAIR, number, first))
        for _, component in members:
            front.repair(kind, component)
