"""Moves under way: running jobs that leave for other places, so that one that waits gets the place that it needs.

A plan is begun by telling its jobs to leave, as before a drain: each saves its state (`checkpointing`), is evicted and
then stands by on its old slice (`migrating`) until all are ready. What the plan needs of free chips is kept from others
meanwhile. Then all go at one instant, the waiting job starts, and the moved ones go through the stages of a start, all
of them `migrating`. A plan of which anything fails (a job is lost or preempted before it is ready, a place is no longer
to be had) is given up: its jobs start again where they are. One plan at a time.
"""

from __future__ import annotations

import numpy as np

from sim.machine import Machine
from sim.trace import Stage
from topology.pod import CHIPS_PER_HOST
from workloads.jobs.defragmentation import Defragmentation, DefragmentationPlan, MakeRoom, MoveTime
from workloads.jobs.fitting import Fitting, Mask
from workloads.jobs.job import Job
from workloads.jobs.queueing import QueueView, Running, Waiting

US_PER_S = 1_000_000


class Moves:
    """The policy of defragmentation and the plan that is being carried out, if any."""

    def __init__(self, policy: Defragmentation, move_us: MoveTime) -> None:
        """Nothing moves. `move_us`: for how long a moved job does not run."""
        self._policy = policy if isinstance(policy, MakeRoom) else None
        self._least_wait_us = 0 if self._policy is None else round(self._policy.least_wait * US_PER_S)
        self._move_us = move_us
        self._plan: DefragmentationPlan | None = None
        self._kept: Mask | None = None
        self._standing_by: set[int] = set()
        self._broken = False
        self._not_before_us = 0

    @property
    def is_idle(self) -> bool:
        """Whether room may be made: there is a policy, and no plan is under way."""
        return self._policy is not None and self._plan is None

    @property
    def plan(self) -> DefragmentationPlan | None:
        """The plan under way."""
        return self._plan

    @property
    def is_over(self) -> bool:
        """Whether the plan under way is ready to be carried out, or can not be any more."""
        return self._plan is not None and (self._broken or len(self._standing_by) == len(self._plan.moves))

    def kept_from(self, room: Fitting) -> Fitting:
        """The picture without what the plan under way needs."""
        return room if self._kept is None else room.without(self._kept)

    def kept_free_chips(self, room: Fitting) -> int:
        """Chips that the plan under way keeps free, in a picture from which nothing is kept."""
        if self._kept is None:
            return 0
        return int((CHIPS_PER_HOST - room.held_chips[self._kept & room.usable_hosts].astype(np.int64)).sum())

    def concerns(self, job: int) -> bool:
        """Whether the plan under way moves this job."""
        return self._plan is not None and any(move.job.id == job for move in self._plan.moves)

    def due_us(self, waiting: Waiting) -> int:
        """From when on room may be made for a waiting job."""
        return max(self._not_before_us, waiting.asked_us + self._least_wait_us)

    def begin(self, view: QueueView, waiting: Waiting, machine: Machine) -> None:
        """Tell jobs to leave, if a plan for a waiting job is worth it."""
        assert self._policy is not None, "somebody asked for no moves"
        movable = [one for one in view.running if _may_move(one, machine)]
        plan = self._policy.plan(view, waiting, movable, self._move_us)
        if plan is None or not plan.moves:
            return
        self._plan, self._broken = plan, False
        kept: Mask = np.zeros(view.room.pod.hosts, dtype=np.bool_)
        for spot in (plan.spot, *(move.to for move in plan.moves)):
            kept[list(spot.hosts)] = True
        self._kept = kept
        for move in plan.moves:
            machine.ask_to_move(move.job.id, plan.job.id, move.job.chips * self._move_us(move.job))

    def stand_by(self, job: int) -> None:
        """A job of the plan is ready to leave."""
        self._standing_by.add(job)

    def break_off(self) -> None:
        """Give the plan under way up."""
        self._broken = True

    def end(self, now_us: int) -> None:
        """The plan is carried out or given up; after the latter the next one has to wait as a job does."""
        if self._broken:
            self._not_before_us = now_us + self._least_wait_us
        self._plan = self._kept = None
        self._standing_by.clear()

    def is_possible(self, room: Fitting) -> bool:
        """Whether the plan can still be carried out in a picture from which nothing is kept for it."""
        if self._broken or self._plan is None:
            return False
        after = room.after_end([move.job.id for move in self._plan.moves])
        starts: list[tuple[Job, tuple[int, ...]]] = [(self._plan.job, self._plan.spot.hosts)]
        starts += [(move.job, move.to.hosts) for move in self._plan.moves]
        return all(not after.is_barred(job) and after.masks(job)[0][list(hosts)].all() for job, hosts in starts)


def _may_move(one: Running, machine: Machine) -> bool:
    """Whether a job runs and nothing is wrong with its slice."""
    job = one.job.id
    return machine.holdings[job].stage is Stage.RUNNING and not (machine.is_hurt(job) or machine.trouble(job).hardware)
