"""What keeps the work of jobs safe: checkpoints by policy and rate of losses, and which starts fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sim.condition import component_counts
from sim.histories import US_PER_S, ComponentKind, Lives
from sim.job_policies import CheckpointPolicy, NoCheckpoints, SparesPolicy
from sim.processes.failures import Source
from sim.processes.progress import Progress
from sim.profile_delays import checkpoint_in
from sim.streams import Streams
from topology.pod import HOSTS_PER_CUBE, IN_RACK_LINKS_PER_CUBE, OPTICAL_ENDS_PER_CUBE, SWITCHES_PER_POD, AnyPod
from workloads.jobs.job import Job, JobKind


def loss_rate_per_s(sources: Sequence[Source], pod: AnyPod, job: Job, *, light: bool) -> float:
    """Losses per second of running of a job: what it needs of each kind x the rate of one such component.

    A job of n whole cubes needs 16 n hosts, n racks, 80 n in-rack links and, with switches (`light`), 96 n optical ends
    and all 48 switches; a smaller one its hosts, its rack and that rack's links.
    """
    whole = job.hosts >= HOSTS_PER_CUBE and component_counts(pod)[ComponentKind.RACK] > 0
    cubes = max(1, job.hosts // HOSTS_PER_CUBE)
    needed = {
        ComponentKind.HOST: job.hosts,
        ComponentKind.RACK: cubes,
        ComponentKind.IN_RACK_LINK: cubes * IN_RACK_LINKS_PER_CUBE,
        ComponentKind.OPTICAL_END: cubes * OPTICAL_ENDS_PER_CUBE if light and whole else 0,
        ComponentKind.OCS: SWITCHES_PER_POD if light and whole else 0,
    }
    rate = 0.0
    for source in sources:
        if isinstance(source, Lives):
            rate += needed[source.mode.kind] / source.mode.life.mean_s
        else:
            rate += needed[source.kind] * len(source) / (source.count * source.horizon_us / US_PER_S)
    return rate


class Upkeep:
    """How jobs save their work. Draw k of job j decides whether its start k fails, whatever else happens."""

    def __init__(
        self,
        checkpoint: CheckpointPolicy,
        loss_rate_per_s: Callable[[Job], float],
        *,
        start_failure: float = 0.0,
        streams: Streams | None = None,
        jobs: int = 0,
        stateful: bool = True,
        spares: SparesPolicy | None = None,
    ) -> None:
        """`start_failure` is the share of starts that fail, drawn for `jobs` jobs from `jobs.start_failure`."""
        self.spares = SparesPolicy() if spares is None else spares
        self._checkpoint = checkpoint
        self._loss_rate_per_s = loss_rate_per_s
        self._start_failure = start_failure
        self._streams = streams
        self._jobs = jobs
        self._stateful = stateful
        self._fails: list[Sequence[bool]] = []
        self._interval_us: dict[tuple[int, int, str], int | None] = {}

    def save_us(self, job: Job) -> int:
        """Microseconds until a checkpoint of a job is complete."""
        return round(checkpoint_in(self._checkpoint, job.profile).save_s * US_PER_S)

    def stall_us(self, job: Job) -> int:
        """Microseconds for which a checkpoint stops a job."""
        return round(checkpoint_in(self._checkpoint, job.profile).stall_s * US_PER_S)

    def progress_of(self, job: Job) -> Progress | None:
        """The progress of a job that is to be kept; a serving job has no state to lose."""
        if not self._stateful:
            return None
        return Progress(job.work_us, loses=job.kind is not JobKind.SERVING)

    def interval_us(self, job: Job) -> int | None:
        """Running time between checkpoints of a job, None where it saves nothing."""
        if job.kind is JobKind.SERVING:
            return None
        key = (job.chips, job.hosts, job.profile)
        if key not in self._interval_us:
            rate = self._loss_rate_per_s(job)
            checkpoint = checkpoint_in(self._checkpoint, job.profile)
            interval_s = checkpoint.interval_s(1.0 / rate if rate > 0 else float("inf"))
            self._interval_us[key] = None if interval_s is None else max(1, round(interval_s * US_PER_S))
        return self._interval_us[key]

    def start_fails(self, job: int, start: int) -> bool:
        """Whether start number `start` of a job fails at its end."""
        if not self._start_failure:
            return False
        assert self._streams is not None
        while len(self._fails) <= start:
            drawn = self._streams.uniforms("jobs.start_failure", len(self._fails), self._jobs)
            self._fails.append((drawn < self._start_failure).tolist())
        return self._fails[start][job]


NO_UPKEEP = Upkeep(NoCheckpoints(), lambda _: 0.0, stateful=False)
