"""What becomes of a component that failed: the parts of its outage, whether it comes back bad, its next life."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.histories import ComponentKind
from sim.histories import to_us as lengths_us
from sim.other_failures import BadHosts
from sim.policies import HealthPolicy, RepairPolicy
from sim.processes.health import OutageParts, outage_parts, to_us
from sim.processes.repair import Workshop
from sim.repair_policies import TwoStage
from sim.streams import Streams

HOST = ComponentKind.HOST


class TwoStageDraws:
    """Lengths and outcomes of the two-stage repair k of every host, drawn round by round when first asked for.

    Block 4k + i of the stream `repair.host`: length of the automated repair, whether manual follows, its length,
    whether a bad host stays bad.
    """

    def __init__(self, policy: TwoStage, streams: Streams, count: int) -> None:
        """Nothing is drawn yet."""
        self._policy, self._streams, self._count = policy, streams, count
        self.automated_us: list[list[int]] = []
        self.manual_us: list[list[int]] = []
        self.stays_bad: list[list[bool]] = []

    def upto(self, k: int) -> None:
        """Draw all rounds up to repair k."""
        policy = self._policy
        for round_number in range(len(self.automated_us), k + 1):
            u = [self._streams.uniforms("repair.host", 4 * round_number + i, self._count) for i in range(4)]
            manual = np.array([policy.is_manual(x) for x in u[1].tolist()])
            self.automated_us.append(lengths_us(policy.automated.quantile_s(u[0])).tolist())
            self.manual_us.append(np.where(manual, lengths_us(policy.manual.quantile_s(u[2])), 0).tolist())
            self.stays_bad.append(
                [policy.stays_bad(x, manual=m) for x, m in zip(u[3].tolist(), manual.tolist(), strict=True)]
            )


class Mending:
    """Repairs that take crews, parts or two stages, and hosts that are good or bad. Knows which hosts are bad now."""

    def __init__(
        self,
        workshop: Workshop,
        health: HealthPolicy,
        repair: RepairPolicy,
        bad: BadHosts | None,
        streams: Streams | None,
    ) -> None:
        """Raise ValueError where something is to be drawn and there are no streams."""
        if streams is None and (repair.two_stage is not None or bad is not None):
            raise ValueError("two-stage repair and bad hosts are drawn: give streams")
        self.workshop = workshop
        self.repair = repair
        self._health = health
        self._bad_policy = bad
        self._streams = streams
        self._hosts = 0
        self._is_bad: list[bool] = []
        self._of_badness: list[list[bool]] = []
        self._two_stage: TwoStageDraws | None = None

    def start_hosts(self, count: int, first_us: NDArray[np.int64], down: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Draw which of `count` hosts are bad; return the first phases, those of bad hosts that are up cut short."""
        self._hosts = count
        if self.repair.two_stage is not None and self._streams is not None:
            self._two_stage = TwoStageDraws(self.repair.two_stage, self._streams, count)
        if self._bad_policy is None:
            return first_us
        bad = self._draw_bad(0)
        self._is_bad = bad.tolist()
        shorter = np.maximum(np.rint(first_us / self._bad_policy.factor).astype(np.int64), 1)
        return np.where(bad & ~down, shorter, first_us)

    def is_bad(self, kind: ComponentKind, component: int) -> bool:
        """Whether a component fails more often than the others."""
        return kind is HOST and bool(self._is_bad) and self._is_bad[component]

    def cause(self, kind: ComponentKind, component: int, k: int) -> str:
        """The cause of failure k of a component: `systematic` where it fails because it is bad."""
        if self._bad_policy is None or not self.is_bad(kind, component):
            return ""
        assert self._streams is not None
        while len(self._of_badness) <= k:
            u = self._streams.uniforms("failures.systematic", len(self._of_badness), self._hosts)
            self._of_badness.append([self._bad_policy.is_systematic(x) for x in u.tolist()])
        return "systematic" if self._of_badness[k][component] else ""

    def parts(self, kind: ComponentKind, component: int, k: int, outage_us: int, failed_us: int) -> OutageParts:
        """How outage k of a component divides; two stages take the place of the drawn outage."""
        if kind is not HOST or self._two_stage is None:
            return outage_parts(kind, outage_us, self._health, failed_us)
        self._two_stage.upto(k)
        return OutageParts(
            self._health.detected_after_us(kind, failed_us),
            to_us(self._health.diagnosis),
            self._two_stage.manual_us[k][component],
            to_us(self._health.burn_in),
            self._two_stage.automated_us[k][component],
        )

    def mended(self, kind: ComponentKind, component: int, k: int) -> None:
        """Repair k is done: a bad host may be good now."""
        if self.is_bad(kind, component) and self._two_stage is not None:
            self._is_bad[component] = self._two_stage.stays_bad[k][component]

    def replaced(self, kind: ComponentKind, component: int, k: int) -> None:
        """A new component stands in the place of the one that failed for the k-th time: it is bad as often as any."""
        if kind is HOST and self._is_bad:
            self._is_bad[component] = bool(self._draw_bad(k + 1)[component])

    def life_us(self, kind: ComponentKind, component: int, life_us: int) -> int:
        """The drawn life, cut short where the component is bad."""
        if self._bad_policy is None or not self.is_bad(kind, component):
            return life_us
        return max(1, round(life_us / self._bad_policy.factor))

    def _draw_bad(self, block: int) -> NDArray[np.bool_]:
        assert self._streams is not None
        assert self._bad_policy is not None
        return self._streams.uniforms("failures.bad_hosts", block, self._hosts) < self._bad_policy.share
