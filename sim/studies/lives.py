"""One request of a steady window followed token by token: the window again, this time pass by pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sim.scenario import Scenario
from sim.studies.windows import WindowTask, steady_parts
from workloads.serving.life import TokenStory, life_of
from workloads.serving.service import Service


@dataclass(frozen=True, kw_only=True)
class RequestLife:
    """A request by its number in the window, its lengths, its arrival, and its tokens in order."""

    request: int
    arrival_ns: int
    input_tokens: int
    output_tokens: int
    tokens: tuple[TokenStory, ...]


def request_of_longest_gap(token_ns: Sequence[Sequence[int]]) -> int | None:
    """The request with the longest gap between two of its tokens (the first of equals); None without any gap."""
    longest = [max((after - before for before, after in pairwise(times)), default=-1) for times in token_ns]
    return longest.index(max(longest)) if longest and max(longest) >= 0 else None


def request_life(scenario: Scenario, task: WindowTask, request: int) -> RequestLife:
    """Follow request number `request` of the steady window with all replicas up (a task)."""
    config, requests, streams = steady_parts(scenario, task)
    service = Service(replace(config, record_requests=request + 1), requests, streams.uniforms)
    service.advance(int(requests.arrival_ns[request]))
    return RequestLife(
        request=request,
        arrival_ns=int(requests.arrival_ns[request]),
        input_tokens=int(requests.input_tokens[request]),
        output_tokens=int(requests.output_tokens[request]),
        tokens=life_of(service, request),
    )
