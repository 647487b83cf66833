"""Rows of the tables about the load of a service: its single requests."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from sim.studies.serving import ServiceOutcome
from workloads.requests import Requests

Row = dict[str, Any]
STATUS = {0: "unfinished", 1: "completed", 2: "unfinished", 3: "refused"}
"""Of the kernel's numbers; whoever is still in the system at the end is unfinished."""


def rows_of_load(outcome: ServiceOutcome) -> dict[str, list[Row]]:
    """Rows of one service by table."""
    return {"requests": request_rows(outcome)}


def request_rows(outcome: ServiceOutcome) -> list[Row]:
    """Rows of the table `requests`; none where the scenario does not ask for records."""
    window = outcome.steady[-1][0]
    requests, record = window.recorded, window.measures.record
    if requests is None or record is None:
        return []
    prefixes = _prefix_texts(requests)
    count = min(requests.count, record.arrival_ns.size)
    return [
        {
            "service": outcome.section.name,
            "request": number,
            "arrival_ns": int(record.arrival_ns[number]),
            "input_tokens": int(requests.input_tokens[number]),
            "output_tokens": int(requests.output_tokens[number]),
            "first_token_ns": _known(int(record.first_token_ns[number])),
            "last_token_ns": _known(int(record.finish_ns[number])) if record.status[number] == 1 else None,
            "tokens": int(record.tokens[number]),
            "status": STATUS[int(record.status[number])],
            "replica": int(record.replica[number]),
            "evictions": int(record.evictions[number]),
            "prefix_blocks": prefixes[number],
            "prefix_block_tokens": requests.hash_block_tokens,
        }
        for number in range(count)
    ]


def _known(time_ns: int) -> int | None:
    return time_ns if time_ns >= 0 else None


def _prefix_texts(requests: Requests) -> list[str | None]:
    """Prefix hashes by request as text, numbered anew from 0 in order of their numbers."""
    if requests.hash_ids is None or requests.hash_offsets is None:
        return [None] * requests.count
    _, numbers = np.unique(requests.hash_ids, return_inverse=True)
    cuts = requests.hash_offsets.tolist()
    return [" ".join(map(str, numbers[start:end].tolist())) for start, end in pairwise(cuts)]
