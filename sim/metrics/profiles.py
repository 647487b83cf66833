"""Jobs by profile: how long they wait, how much of their time is productive, and what a loss costs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sim.metrics.jobs import losses
from sim.metrics.ledger import JobLedger
from sim.metrics.uses import Use
from sim.trace import Stage, Trace
from workloads.jobs.job import Job

US_PER_S = 1_000_000
NO_PROFILE = "none"


class ProfileCounts(NamedTuple):
    """Jobs of one profile in one replication: counts, and sums over them (chip-microseconds in `useful` and `wall`)."""

    arrived: int = 0
    finished: int = 0
    wait_us: int = 0
    useful: int = 0
    wall: int = 0
    losses: int = 0
    lost_us: int = 0
    back_us: int = 0


def profile_counts(
    jobs: Sequence[Job], ledgers: Sequence[JobLedger], trace: Trace, warmup_us: int
) -> dict[str, ProfileCounts]:
    """By profile, in order of name, of the jobs that arrived after the warm-up; nothing where no job has a profile."""
    profile_of = {job.id: job.profile or NO_PROFILE for job in jobs}
    if all(profile == NO_PROFILE for profile in profile_of.values()):
        return {}
    back_us: Counter[int] = Counter()
    for loss in losses(trace):
        back_us[loss.job] += sum(us for stage, us in loss.stage_us.items() if stage is not Stage.WAITING)
    found: dict[str, ProfileCounts] = {}
    for ledger in ledgers:
        if ledger.arrived_us >= warmup_us and not ledger.rejected:
            profile = profile_of[ledger.job]
            own = found.get(profile, ProfileCounts())
            found[profile] = ProfileCounts(*map(sum, zip(own, _counts(ledger, back_us[ledger.job]), strict=True)))
    return dict(sorted(found.items()))


def _counts(ledger: JobLedger, back_us: int) -> ProfileCounts:
    """The counts of one job that needs so long to come back from all its losses, queueing aside."""
    return ProfileCounts(
        arrived=1,
        finished=int(ledger.finished_us is not None),
        wait_us=ledger.waited_us,
        useful=ledger.chips * ledger.us[Use.USEFUL],
        wall=ledger.chips * ledger.trained_us,
        losses=ledger.losses,
        lost_us=ledger.us[Use.LOST],
        back_us=back_us,
    )


def profile_rows(samples: Sequence[Mapping[str, ProfileCounts]]) -> list[dict[str, Any]]:
    """Rows of the table `job_profiles`: counts are means over replications, the rest is over all jobs of a profile."""
    rows = []
    for profile in sorted({profile: None for sample in samples for profile in sample}):
        own = [sample[profile] for sample in samples if profile in sample]
        total = ProfileCounts(*map(sum, zip(*own, strict=True)))
        rows.append(
            {
                "profile": profile,
                "arrived": total.arrived / len(samples),
                "finished": total.finished / len(samples),
                "wait_mean_s": total.wait_us / US_PER_S / total.arrived if total.arrived else None,
                "ettr": total.useful / total.wall if total.wall else None,
                "losses": total.losses / len(samples),
                "lost_s_per_loss": total.lost_us / US_PER_S / total.losses if total.losses else None,
                "back_s_per_loss": total.back_us / US_PER_S / total.losses if total.losses else None,
            }
        )
    return rows
