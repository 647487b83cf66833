"""What a service's clients do and what its door lets in: the sections `clients` and `admission` of a service."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from sim.scenario_parts import Count, Section
from topology.units import ClosedShare, PositiveSeconds, Share
from workloads.serving.clients import MOST_ATTEMPTS, Admission, Cancellations, Clients, Patience, Retries


class ClientsSection(Section):
    """What clients do when an answer is late: they leave, come back, or cancel."""

    patience: PositiveSeconds | None = None
    """A client leaves when its attempt has not reached `until` after this time; left out: it waits for ever."""
    until: Literal["admission", "first_token", "answer"] = "first_token"
    """What a client waits for: its admission to a batch, its first token, or its whole answer."""
    attempts: Annotated[int, Field(ge=1, le=MOST_ATTEMPTS)] = 1
    """How often a client sends its request at most, when it timed out or was rejected."""
    backoff: PositiveSeconds = 1.0
    """Time from the end of the first attempt to the second; it doubles with each attempt."""
    jitter: ClosedShare = 0.5
    """Greatest share by which a drawn luck shortens a backoff."""
    cancel_share: ClosedShare = 0.0
    """Share of the users who cancel."""
    cancel_after: PositiveSeconds = 60.0
    """Mean time from the first arrival to a cancellation (exponential)."""

    def rule(self) -> Clients:
        """The same for the token kernel; ValueError where the longest backoff is out of reach."""
        cancels = Cancellations(share=self.cancel_share, mean_s=self.cancel_after) if self.cancel_share else None
        return Clients(
            patience=None if self.patience is None else Patience(limit_s=self.patience, until=self.until),
            retries=Retries(attempts=self.attempts, backoff_s=self.backoff, jitter=self.jitter),
            cancellations=cancels,
        )


class DisturbanceSection(Section):
    """All replicas run slowly for a while: who gets an answer before, in and after it, with the clients there are."""

    speed: Share = 0.2
    """Speed of all replicas meanwhile, as a share of the healthy one."""
    start: PositiveSeconds = 20.0
    """When it begins, from the first arrivals."""
    length: PositiveSeconds = 10.0
    """How long it lasts."""
    horizon: PositiveSeconds = 160.0
    """Requests that arrive until then are told."""
    step: PositiveSeconds = 10.0
    """Requests are told by their arrival, in steps of this length."""

    @property
    def steps(self) -> int:
        """Whole steps up to the horizon."""
        return int(self.horizon / self.step + 1e-9)

    @property
    def first_after(self) -> int:
        """The first step that begins at least one step after the end."""
        return math.ceil((self.start + self.length) / self.step - 1e-9) + 1


class AdmissionSection(Section):
    """Limits at the door of a replica; a request that meets one is rejected."""

    max_queue: Count | None = None
    """Most requests that wait at a replica."""
    max_outstanding: Count | None = None
    """Most requests that wait or run at a replica."""
    predicted_ttft: PositiveSeconds | None = None
    """Early rejection: the longest predicted time to first token."""
    within_capacity: bool = False
    """Whether the service lets in no more requests per second than those of its replicas that are up can serve within
    the limits, whatever the batching; the others are turned away, and missed. Else all come in, and queues grow."""

    def rule(self) -> Admission:
        """The same for the token kernel."""
        return Admission(
            max_queue=self.max_queue,
            max_outstanding=self.max_outstanding,
            max_predicted_ttft_s=self.predicted_ttft,
        )
