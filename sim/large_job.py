"""One very large job on flat servers, on its own clock: the setting of AIReSim (arXiv 2603.07041).

Servers fail only while the job computes, so the job's clock of work drives the failures and the clock on the wall the
repairs. Nothing else shares the servers: no queue, no slices, no light. That is why this needs no event loop beside two
heaps, and plays ten thousand failures in a fraction of a second. Everything that has to do with a pod in operation is
played by `sim.processes.operations` instead.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from sim.repair_policies import DAY_S, TwoStage, check_above_zero, check_counts, check_delays, check_shares
from sim.streams import Streams
from topology.units import ClosedShare, PerSecond, PositiveSeconds, Seconds


@dataclass(frozen=True, kw_only=True)
class LargeJob:
    """The job, its servers and its delays; defaults: AIReSim, default table.

    The job computes on `hosts`, has `standbys` warm ones beside them, and may select others from a `pool` (which counts
    both) and, when that is used up, from `spares`. Every server fails at `failure_rate` of computing; a share
    `bad_share` is bad and has systematic failures at `bad_factor` times that rate besides (so read because 10,457 and
    689 failures are published: the first is what all servers do at the plain rate). A failure costs `recovery`; when no
    standby is left, a `selection` fills them up again from the pool, or, where that is used up, all of them from the
    spares; each spare taken costs `take_spare` (so read because 13.9 spares are published, and the published total time
    is work, 11,145.6 recoveries, 42.9 selections and 13.9 times that, to the last digit). A mended server goes back
    to the job while standbys are missing, else to the pool. A bad server that manual repair has seen stays bad in
    `manual_leaves_bad` of cases, one that it has not seen in `automated_leaves_bad`.
    """

    hosts: int = 4096
    standbys: int = 16
    pool: int = 4160
    spares: int = 200
    work: PositiveSeconds = 256 * DAY_S
    failure_rate: PerSecond = 0.01 / DAY_S
    bad_share: ClosedShare = 0.15
    bad_factor: float = 5.0
    recovery: Seconds = 1200.0
    selection: Seconds = 180.0
    take_spare: Seconds = 1200.0
    repair: TwoStage = field(default_factory=TwoStage)

    def __post_init__(self) -> None:
        """Refuse what is no number, time, rate or share, and a pool that is too small for the job."""
        check_counts(self, 1, "hosts", "pool")
        check_counts(self, 0, "standbys", "spares")
        check_above_zero(self, "work", "failure_rate")
        check_shares(self, "bad_share")
        check_delays(self, "bad_factor", "recovery", "selection", "take_spare")
        if self.hosts + self.standbys > self.pool:
            least = self.hosts + self.standbys
            raise ValueError(f"a pool of {self.pool} servers: write at least hosts + standbys, {least}")


@dataclass(frozen=True, kw_only=True)
class LargeJobRun:
    """What one run gives. `random` and `systematic` failures; the time is `work_s` and the rest, by what it went to."""

    work_s: float
    recovery_s: float
    selection_s: float
    spares_s: float
    waiting_s: float
    random: int
    systematic: int
    manual_repairs: int
    selections: int
    spares_taken: int

    @property
    def failures(self) -> int:
        """All failures; each has one automated repair."""
        return self.random + self.systematic

    @property
    def total_s(self) -> float:
        """From start to end."""
        return self.work_s + self.recovery_s + self.selection_s + self.spares_s + self.waiting_s

    @property
    def productive_share(self) -> float:
        """Share of the time in which the job computes."""
        return self.work_s / self.total_s


class _Draws:
    """Draw k of every server: its life in seconds of computing were it good, what ends it, how it is mended.

    Block 6k + i of the stream `large_job`; the share of bad servers is drawn from `large_job.bad`.
    """

    def __init__(self, job: LargeJob, streams: Streams, servers: int) -> None:
        self._job, self._streams, self._servers = job, streams, servers
        self.bad: list[bool] = (streams.uniforms("large_job.bad", 0, servers) < job.bad_share).tolist()
        self.life_s: list[list[float]] = []
        self.is_systematic: list[list[bool]] = []
        self.out_s: list[list[float]] = []
        self.is_manual: list[list[bool]] = []
        self.stays_bad: list[list[bool]] = []

    def upto(self, k: int) -> None:
        """Make sure that draw k is there."""
        job, repair = self._job, self._job.repair
        while len(self.life_s) <= k:
            first = 6 * len(self.life_s)
            u = [self._streams.uniforms("large_job", first + i, self._servers) for i in range(6)]
            manual = u[3] < repair.manual_share
            self.life_s.append((-np.log1p(-u[0]) / job.failure_rate).tolist())
            self.is_systematic.append((u[1] < job.bad_factor / (1.0 + job.bad_factor)).tolist())
            out_s = repair.automated.quantile_s(u[2]) + np.where(manual, repair.manual.quantile_s(u[4]), 0.0)
            self.out_s.append(out_s.tolist())
            self.is_manual.append(manual.tolist())
            left_bad = np.where(manual, repair.manual_leaves_bad, repair.automated_leaves_bad)
            self.stays_bad.append((u[5] < left_bad).tolist())


class _Play:
    """One run. `worked_s` is the clock of work, `now_s` that on the wall."""

    def __init__(self, job: LargeJob, streams: Streams) -> None:
        self.job = job
        servers = job.pool + job.spares
        self.draws = _Draws(job, streams, servers)
        self.bad = self.draws.bad
        self.times = [0] * servers
        self.failing: list[tuple[float, int]] = []
        self.mending: list[tuple[float, int]] = []
        self.worked_s = self.now_s = 0.0
        self.standbys = deque(range(job.hosts, job.hosts + job.standbys))
        self.pool = deque(range(job.hosts + job.standbys, job.pool))
        self.spares = deque(range(job.pool, servers))
        self.random = self.systematic = self.manual = self.selections = self.spares_taken = 0
        self.waiting_s = 0.0
        self.draws.upto(0)
        for server in range(job.hosts):
            self.compute_on(server)

    def compute_on(self, server: int) -> None:
        """A server joins the computing ones: its life goes on the clock of work."""
        k = self.times[server]
        self.draws.upto(k)
        life_s = self.draws.life_s[k][server]
        if self.bad[server]:
            life_s /= 1.0 + self.job.bad_factor
        heappush(self.failing, (self.worked_s + life_s, server))

    def play(self) -> None:
        """Until the work is done."""
        job = self.job
        while self.failing[0][0] < job.work:
            at_s, server = heappop(self.failing)
            self.now_s += at_s - self.worked_s
            self.worked_s = at_s
            self.take_out(server)
            self.take_back()
            if not self.standbys:
                self.select()
            self.compute_on(self.standbys.popleft())
            self.now_s += job.recovery
        self.now_s += job.work - self.worked_s

    def take_out(self, server: int) -> None:
        """A server fails and is mended: automated repair, and manual where need be."""
        k, draws = self.times[server], self.draws
        if self.bad[server] and draws.is_systematic[k][server]:
            self.systematic += 1
        else:
            self.random += 1
        self.manual += draws.is_manual[k][server]
        self.bad[server] = self.bad[server] and draws.stays_bad[k][server]
        self.times[server] = k + 1
        heappush(self.mending, (self.now_s + draws.out_s[k][server], server))

    def take_back(self) -> None:
        """Servers that are mended by now go to the job while it lacks standbys, else to the pool."""
        while self.mending and self.mending[0][0] <= self.now_s:
            _, server = heappop(self.mending)
            (self.standbys if len(self.standbys) < self.job.standbys else self.pool).append(server)

    def select(self) -> None:
        """Fill the standbys from the pool; if it is empty from the spares, or wait for a repair if there are none."""
        self.selections += 1
        self.now_s += self.job.selection
        wanted = max(1, self.job.standbys)
        while self.pool and len(self.standbys) < wanted:
            self.standbys.append(self.pool.popleft())
        if not self.standbys:
            taken = min(wanted, len(self.spares))
            self.spares_taken += taken
            self.now_s += taken * self.job.take_spare
            self.standbys.extend(self.spares.popleft() for _ in range(taken))
        if not self.standbys:
            until_s = max(self.now_s, self.mending[0][0])
            self.waiting_s += until_s - self.now_s
            self.now_s = until_s
            self.take_back()


def play_large_job(job: LargeJob, streams: Streams) -> LargeJobRun:
    """One run of the job from start to end; draw k of server c is the same whatever the policy is."""
    run = _Play(job, streams)
    run.play()
    return LargeJobRun(
        work_s=job.work,
        recovery_s=job.recovery * (run.random + run.systematic),
        selection_s=job.selection * run.selections,
        spares_s=job.take_spare * run.spares_taken,
        waiting_s=run.waiting_s,
        random=run.random,
        systematic=run.systematic,
        manual_repairs=run.manual,
        selections=run.selections,
        spares_taken=run.spares_taken,
    )
