"""Spares: what the queue may not take, so that it is there for jobs that have lost something.

Which cubes are spare is not fixed, since any free cube will do: they are the last usable ones that nobody holds.
"""

from __future__ import annotations

import numpy as np

from topology.pod import HOSTS_PER_CUBE, AnyPod
from workloads.jobs.fitting import Fitting, Mask


class Spares:
    """How many cubes are kept (on a flat pod 16 hosts for each), and which queued jobs may take them all the same."""

    def __init__(self, pod: AnyPod, cubes: int, *, by_host: bool = False) -> None:
        """`by_host`: hosts join singly (`any_host`), so any free ones are spare. ValueError when nothing is left."""
        self._hosts = cubes * HOSTS_PER_CUBE
        self._unit = 1 if by_host else HOSTS_PER_CUBE
        self.entitled: set[int] = set()
        if self._hosts >= pod.hosts:
            raise ValueError(f"{cubes} spare cubes leave nothing of a pod of {pod.hosts} hosts: keep fewer")

    def entitle(self, job: int) -> None:
        """A job lost its slice and queues: it may take spares."""
        if self._hosts:
            self.entitled.add(job)

    def disentitle(self, job: int) -> None:
        """The job has a slice again."""
        self.entitled.discard(job)

    def hosts_among(self, free: Mask) -> Mask:
        """Of the hosts that are free (H,), those that are spare."""
        spare: Mask = np.zeros(len(free), dtype=np.bool_)
        if self._hosts:
            free_units = np.flatnonzero(free.reshape(-1, self._unit).all(axis=1))[-(self._hosts // self._unit) :]
            spare.reshape(-1, self._unit)[free_units] = True
        return spare

    def kept_from(self, room: Fitting) -> Fitting:
        """The picture without the spares."""
        return room.without(self.hosts_among(room.free_hosts())) if self._hosts else room
