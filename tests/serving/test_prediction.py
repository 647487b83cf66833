"""The predicted time to first token by hand: places in the batch, and what is left of it when they are free."""

from __future__ import annotations

import numpy as np
import pytest

from workloads.pass_costs import synthetic_pass_costs
from workloads.requests import Requests
from workloads.serving import fields as f
from workloads.serving.batching import ContinuousBatching
from workloads.serving.clients import Admission
from workloads.serving.measures import RequestRecord
from workloads.serving.service import Service, ServiceConfig

COSTS = synthetic_pass_costs(
    fixed_s=1e-6, weights_s=0.0, per_token_s=1e-7, collectives_s_per_token=0.0, kv_read_s_per_token=0.0
)


def pass_ns(tokens: int) -> int:
    """A pass of so many tokens, with prompts or without."""
    return 1000 + 100 * tokens


def at_the_door(max_batch: int, requests: list[tuple[int, int, int]], predicted_ns: int) -> RequestRecord:
    """Lives of requests (arrival, prompt, answer) of one replica; the last is rejected below `predicted_ns` alone."""
    columns = Requests(*(np.array(column) for column in zip(*requests, strict=True)))
    records = []
    for limit_ns in (predicted_ns - 1, predicted_ns):
        config = ServiceConfig(
            costs=COSTS,
            blocks=10_000,
            batching=ContinuousBatching(max_batch=max_batch),
            admission=Admission(max_predicted_ttft_s=limit_ns * 1e-9),
            record_requests=len(requests),
        )
        record = Service(config, columns).finish().record
        assert record is not None
        records.append(record)
    assert (records[0].status[:-1] == f.COMPLETED).all()
    assert records[0].status[-1] == f.REJECTED
    assert (records[1].status == f.COMPLETED).all()
    return records[1]


@pytest.mark.parametrize("gone", [0, 1, 40, 99])
def test_one_place_is_free_when_its_answer_ends(gone: int) -> None:
    """Goal: with one place the prediction is the truth. Method: an answer of 100 steps, of which some are gone when a
    prompt of 70 tokens comes: the rest of the steps and one pass, to the nanosecond, predicted and served."""
    predicted = (100 - gone) * pass_ns(1) + pass_ns(70)
    record = at_the_door(1, [(0, 30, 101), (pass_ns(30) + gone * pass_ns(1), 70, 5)], predicted)
    assert record.ttft_ns[1] == predicted


def test_a_place_goes_to_the_next_in_the_queue() -> None:
    """Goal: those ahead take places first, for as long as their answers take. Method: two places, free after 10 and 50
    steps; the one ahead takes the first until step 30, when it is the newcomer's. Both prompts are in one pass then,
    with the one that still decodes."""
    both = pass_ns(20)
    requests = [(0, 10, 11), (0, 10, 51), (both, 40, 21), (both, 70, 2)]
    at_the_door(2, requests, 30 * pass_ns(2) + pass_ns(1 + 40 + 70))


def test_a_burst_waits_for_places_too() -> None:
    """Goal: an idle replica with more to do than places is no idle one. Method: four at once, two places, nobody runs:
    they are free after 9 and 7 steps, the third takes the second, the fourth the first, at the pace of one sequence."""
    requests = [(0, 10, 10), (0, 20, 8), (0, 30, 8), (0, 40, 3)]
    at_the_door(2, requests, 9 * pass_ns(1) + pass_ns(10 + 20 + 30 + 40))


def test_a_long_queue_is_followed_in_part() -> None:
    """Goal: beyond the places that are followed the wait grows in proportion. Method: one place, 101 equal answers
    ahead: as many times their steps as there are."""
    requests = [*([(0, 10, 6)] * 101), (pass_ns(10), 10, 6)]
    at_the_door(1, requests, 101 * 5 * pass_ns(1) + pass_ns(101 * 10))


def test_free_places_cost_nothing() -> None:
    """Goal: with a place, what counts is prompts. Method: three places, two taken: one pass beside two decodes."""
    requests = [(0, 10, 11), (0, 10, 51), (pass_ns(20), 70, 2)]
    record = at_the_door(3, requests, pass_ns(2 + 70))
    assert record.ttft_ns[2] == pass_ns(2 + 70)
