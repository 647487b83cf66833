"""Requests of a service: when each arrives at the router, how long its prompt and its answer are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topology.errors import Fault, InputError


@dataclass(frozen=True)
class Requests:
    """Requests in order of arrival: `arrival_ns` from the start of the window, lengths in tokens (int64 arrays, equally long).

    Arrivals do not fall (equal times keep their order); prompts and answers have at least one token.
    """

    arrival_ns: NDArray[np.int64]
    input_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Check lengths, order and signs; raise InputError naming the first request that is wrong."""
        sizes = {self.arrival_ns.size, self.input_tokens.size, self.output_tokens.size}
        if len(sizes) != 1:
            raise InputError(Fault("requests", "arrivals and lengths differ in number", "give one of each per request"))
        checks = (
            (self.arrival_ns < 0, "arrives before the window starts", "count arrivals from the start"),
            (
                np.diff(self.arrival_ns, prepend=self.arrival_ns[:1]) < 0,
                "arrives before the one ahead",
                "sort by arrival",
            ),
            (self.input_tokens < 1, "has an empty prompt", "leave it out"),
            (self.output_tokens < 1, "has an empty answer (a failed request)", "leave it out"),
        )
        faults = [Fault(f"request {int(np.argmax(bad))}", what, write) for bad, what, write in checks if np.any(bad)]
        if faults:
            raise InputError(faults)

    @property
    def count(self) -> int:
        """Number of requests."""
        return int(self.arrival_ns.size)

    def first(self, count: int) -> Requests:
        """The first `count` requests."""
        return Requests(self.arrival_ns[:count], self.input_tokens[:count], self.output_tokens[:count])
