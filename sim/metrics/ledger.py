"""The ledger of jobs, from the log alone: every microsecond of every job is in exactly one use, none is left over.

A job's account runs from its arrival, or from the end of the warm-up where that is later, to its end, or to the
horizon. Its uses are those of chip-hours (design: measures, 2 and 4): the stages, with running divided into `useful`,
`slowed` and `lost`. All whole microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sim.metrics.uses import RUN_USES, USE_OF_STAGE, Use
from sim.trace import FULL_SPEED_PPM, Placed, Row, Stage, Trace, Verb


@dataclass(frozen=True, kw_only=True)
class JobLedger:
    """The account of one job, opened at `from_us`: its arrival, or the end of the warm-up where that is later.

    `held_us` is the instant of its first slice, `running_us` that of its first running, whenever they were. A job that
    ended within the warm-up has an empty account.
    """

    job: int
    chips: int
    arrived_us: int
    from_us: int
    held_us: int | None
    running_us: int | None
    finished_us: int | None
    until_us: int
    work_us: int | None
    rejected: str
    losses: int
    preemptions: int
    us: dict[Use, int]

    @property
    def total_us(self) -> int:
        """From arrival to the end, or to the horizon."""
        return self.until_us - self.arrived_us

    @property
    def unaccounted_us(self) -> int:
        """What the uses leave over: 0."""
        return max(0, self.until_us - self.from_us) - sum(self.us.values())

    @property
    def trained_us(self) -> int:
        """Time of the account since the first running."""
        return 0 if self.running_us is None else max(0, self.until_us - max(self.running_us, self.from_us))

    @property
    def wait_us(self) -> int | None:
        """From arrival to the first slice; None for a job that never got one."""
        return None if self.held_us is None else self.held_us - self.arrived_us

    @property
    def waited_us(self) -> int:
        """From arrival to the first slice; for a job that never got one to the horizon, the least that it waits."""
        return (self.until_us if self.held_us is None else self.held_us) - self.arrived_us

    @property
    def slowdown(self) -> float | None:
        """Time from arrival to the end over the work at full speed, for a job that has finished."""
        return self.total_us / self.work_us if self.finished_us is not None and self.work_us else None

    @property
    def ettr(self) -> float | None:
        """Effective training time ratio: productive time over the time since the first running; None before that."""
        return self.us[Use.USEFUL] / self.trained_us if self.trained_us else None


@dataclass(slots=True)
class _Account:
    """The books of a job while the log is read. Time slowed is kept in millionths of a microsecond."""

    chips: int
    arrived_us: int
    from_us: int
    work_us: int | None = None
    held_us: int | None = None
    running_us: int | None = None
    finished_us: int | None = None
    left_us: int | None = None
    rejected: str = ""
    losses: int = 0
    preemptions: int = 0
    stage: str = Stage.WAITING.value
    since_us: int = 0
    speed_ppm: int = 0
    us: dict[Use, int] = field(default_factory=lambda: dict.fromkeys((*RUN_USES, *USE_OF_STAGE.values()), 0))
    slowed_ppm_us: int = 0
    stretches: list[tuple[int, int]] = field(default_factory=list)

    def close(self, now_us: int) -> None:
        """Book the time since the last entry."""
        passed_us, self.since_us = now_us - max(self.since_us, self.from_us), now_us
        if passed_us <= 0:
            return
        self.us[USE_OF_STAGE[self.stage]] += passed_us
        if self.stage == Stage.RUNNING:
            self.slowed_ppm_us += passed_us * (FULL_SPEED_PPM - self.speed_ppm)
            self.stretches.append((passed_us, self.speed_ppm))

    def lose(self, undone_us: int) -> None:
        """Book the last running as lost; what lies before the account was opened is not counted."""
        while undone_us and self.stretches:
            passed_us, speed_ppm = self.stretches.pop()
            lost_us = min(undone_us, passed_us)
            undone_us -= lost_us
            self.us[Use.LOST] += lost_us
            self.us[Use.USEFUL] -= lost_us
            self.slowed_ppm_us -= lost_us * (FULL_SPEED_PPM - speed_ppm)
            if lost_us < passed_us:
                self.stretches.append((passed_us - lost_us, speed_ppm))


_LOSABLE = (Stage.RUNNING.value, Stage.CHECKPOINTING.value)


def job_ledgers(trace: Trace, warmup_us: int = 0) -> list[JobLedger]:
    """The account of every job that has arrived, in order of number, of the time after the warm-up.

    A log without arrivals starts them at time 0.
    """
    accounts: dict[int, _Account] = {}
    for row in trace.rows:
        if row[4] >= 0:
            _book(accounts, row, trace.placements, warmup_us)
    return list(_ledgers(accounts, trace.horizon_us))


def _book(accounts: dict[int, _Account], row: Row, placements: list[Placed], warmup_us: int) -> None:
    now_us, verb, _, component, job, stage, value = row
    if job not in accounts:
        submitted = verb == Verb.SUBMIT
        accounts[job] = _Account(component if submitted else 0, now_us, max(now_us, warmup_us), since_us=now_us)
        if submitted:
            accounts[job].work_us = None if value < 0 else value
    account = accounts[job]
    if verb == Verb.STAGE:
        account.close(now_us)
        if stage == Stage.DETECTING and account.stage in _LOSABLE:
            account.losses += 1
        if stage == Stage.RUNNING and account.running_us is None:
            account.running_us = now_us
        account.stage, account.speed_ppm = stage, value
    elif verb == Verb.SPEED:
        account.close(now_us)
        account.speed_ppm = value
    elif verb == Verb.LOSE:
        account.close(now_us)
        account.lose(value)
    elif verb == Verb.OCCUPY:
        placed = placements[value]
        account.chips = len(placed.hosts) * placed.chips_per_host
        account.held_us = now_us if account.held_us is None else account.held_us
    elif verb == Verb.PREEMPT:
        account.preemptions += 1
    elif verb == Verb.FINISH:
        account.close(now_us)
        account.finished_us = now_us
    elif verb == Verb.LEAVE:
        account.close(now_us)
        account.left_us = now_us
    elif verb == Verb.REJECT:
        account.close(now_us)
        account.rejected, account.finished_us = stage, now_us


def _ledgers(accounts: dict[int, _Account], horizon_us: int) -> Iterator[JobLedger]:
    for job, account in sorted(accounts.items()):
        ended_us = account.left_us if account.finished_us is None else account.finished_us
        until_us = horizon_us if ended_us is None else ended_us
        account.close(until_us)
        slowed_us = account.slowed_ppm_us // FULL_SPEED_PPM
        account.us[Use.SLOWED] += slowed_us
        account.us[Use.USEFUL] -= slowed_us
        yield JobLedger(
            job=job,
            chips=account.chips,
            arrived_us=account.arrived_us,
            from_us=account.from_us,
            held_us=account.held_us,
            running_us=account.running_us,
            finished_us=None if account.rejected else account.finished_us,
            until_us=until_us,
            work_us=account.work_us,
            rejected=account.rejected,
            losses=account.losses,
            preemptions=account.preemptions,
            us=account.us,
        )
