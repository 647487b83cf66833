"""What a job's profile changes of the policies of recovery and of checkpoints: its own delays stand in for theirs."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from sim.job_policies import CheckpointPolicy, NoCheckpoints
from sim.policies import RecoveryPolicy
from topology.pod import HOSTS_PER_CUBE
from workloads.jobs.job import Job
from workloads.jobs.profiles import PROFILES


@lru_cache(maxsize=256)
def recovery_in(recovery: RecoveryPolicy, profile: str) -> RecoveryPolicy:
    """The policy of recovery for jobs of a profile; as it is where the profile says nothing, or is not known."""
    own = PROFILES.get(profile)
    if own is None:
        return recovery
    return replace(
        recovery,
        preflight=recovery.preflight if own.preflight is None else own.preflight,
        restore=recovery.restore if own.restore is None else own.restore,
    )


@lru_cache(maxsize=256)
def checkpoint_in(checkpoint: CheckpointPolicy, profile: str) -> CheckpointPolicy:
    """The policy of checkpoints for jobs of a profile: its save; an asynchronous one stalls no longer than that."""
    own = PROFILES.get(profile)
    if own is None or own.checkpoint_save is None or isinstance(checkpoint, NoCheckpoints):
        return checkpoint
    return replace(checkpoint, save=own.checkpoint_save, stall=min(checkpoint.stall, own.checkpoint_save))


def start_s(recovery: RecoveryPolicy, job: Job) -> float:
    """Seconds from getting a slice to running on it, with circuits."""
    own = recovery_in(recovery, job.profile)
    return own.circuits + own.preflight + own.restore


def move_s(recovery: RecoveryPolicy, checkpoint: CheckpointPolicy, job: Job, *, light: bool) -> float:
    """Seconds for which a job does not run when it is moved as planned: save, evict, and the stages of a start.

    Circuits are made for whole cubes on a pod with switches (`light`).
    """
    circuits_s = 0.0 if light and job.hosts >= HOSTS_PER_CUBE else recovery.circuits
    return checkpoint_in(checkpoint, job.profile).save_s + recovery.evict + start_s(recovery, job) - circuits_s
