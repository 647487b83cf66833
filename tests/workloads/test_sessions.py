"""Sessions: users who come back with their history, open loop, and the prefixes that a cache could share."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sim.streams import Streams
from workloads.load.laws import DiurnalRequests, GammaRequests, PoissonRequests, draw_requests
from workloads.load.lengths import FixedLengths, LognormalLengths
from workloads.load.sessions import MOST_TURNS, Sessions
from workloads.requests import Requests

IN = LognormalLengths(mean=300, cv=1, min=20, max=2000)
OUT = LognormalLengths(mean=200, cv=0.7, min=2, max=1000)
RATE = 5.0
COUNT = 20_000


def drawn(sessions: Sessions, count: int = COUNT, replication: int = 0) -> Requests:
    """Requests of users who come back."""
    law = PoissonRequests(input=IN, output=OUT, sessions=sessions)
    return draw_requests(law, RATE, count, Streams(3, replication).uniforms)


def blocks(requests: Requests, place: int) -> NDArray[np.int64]:
    """Hashes of one request."""
    assert requests.hash_ids is not None
    assert requests.hash_offsets is not None
    return requests.hash_ids[requests.hash_offsets[place] : requests.hash_offsets[place + 1]]


def by_user(requests: Requests) -> dict[int, list[int]]:
    """Places of the requests of each user with a block of their own, in order of arrival."""
    found: dict[int, list[int]] = {}
    for place in range(requests.count):
        own = blocks(requests, place)
        if own.size and own[-1] >> 30:
            found.setdefault(int(own[-1]) >> 30, []).append(place)
    return found


def think_times_ns(requests: Requests) -> dict[tuple[int, int], int]:
    """Think times of a closed loop by (user, length of the prompt)."""
    assert requests.previous is not None
    later = np.flatnonzero(requests.previous >= 0)
    waits = requests.arrival_ns[later] - requests.arrival_ns[requests.previous[later]]
    users = [int(blocks(requests, place)[-1]) >> 30 for place in later.tolist()]
    return dict(zip(zip(users, requests.input_tokens[later].tolist(), strict=True), waits.tolist(), strict=True))


def test_rate_and_turns_and_returns() -> None:
    """Goal: requests at the rate of the service, from the start; users with the stated turns and times. Method: mean
    rate of 20,000 requests, and of the first 1,000 over 20 runs, within 4 standard errors of a compound Poisson
    process; times between turns of users seen from their first to their last, by the mean of their logarithm."""
    sessions = Sessions(turns=4, return_mean=30.0, return_cv=1.0, max_context=10**6, block_tokens=16)
    requests = drawn(sessions)
    spread = (2 * 4 - 1) ** 0.5  # E N^2 / E N of a geometric number of mean 4
    assert requests.rate_per_s == pytest.approx(RATE, rel=4 * spread / COUNT**0.5)
    early = [1000 / (drawn(sessions, 1000, run).arrival_ns[-1] * 1e-9) for run in range(20)]
    assert np.mean(early) == pytest.approx(RATE, rel=4 * spread / 20_000**0.5)
    users = by_user(requests)
    gaps = np.concatenate([np.diff(requests.arrival_ns[places]) for places in users.values()]) * 1e-9
    assert np.log(gaps).mean() == pytest.approx(np.log(30) - np.log(2) / 2, abs=0.05)
    middle = [len(places) for user, places in users.items() if user < max(users) // 2 and user > 500]
    assert np.mean(middle) == pytest.approx(sessions.mean_turns, rel=0.06)


def test_prompts_hold_all_that_was_said() -> None:
    """Goal: each prompt is the history and something new; its blocks begin with all full blocks of the turn before.
    Method: every pair of neighbouring turns of every user."""
    requests = drawn(Sessions(turns=5, return_mean=20.0, max_context=10**6, block_tokens=64))
    pairs = 0
    for places in by_user(requests).values():
        for before, after in pairwise(places):
            said = int(requests.input_tokens[before] + requests.output_tokens[before])
            assert requests.input_tokens[after] > said
            shared = blocks(requests, before)
            assert shared.size == requests.input_tokens[before] // 64
            assert np.array_equal(blocks(requests, after)[: shared.size], shared)
            pairs += 1
    assert pairs > 10_000


def test_histories_that_outgrow_the_context_are_forgotten() -> None:
    """Goal: no request needs more than max_context, and a new history shares nothing with the old. Method: short
    context: prompts fall again; blocks of a user after that are new."""
    sessions = Sessions(turns=10, return_mean=5.0, max_context=4000, block_tokens=64)
    requests = drawn(sessions)
    longest = int((requests.input_tokens + requests.output_tokens).max()) - 1
    assert longest <= 4000
    assert PoissonRequests(input=IN, output=OUT, sessions=sessions).longest_tokens == 4000
    falls = 0
    for places in by_user(requests).values():
        for before, after in pairwise(places):
            if requests.input_tokens[after] < requests.input_tokens[before]:
                falls += 1
                assert not set(blocks(requests, before).tolist()) & set(blocks(requests, after).tolist())
    assert falls > 500


def test_the_system_prompt_is_shared_by_all() -> None:
    """Goal: the first blocks of all users are the same, the block where the prompt ends is nobody's else. Method: 1,000
    tokens in blocks of 64: 15 full ones."""
    requests = drawn(Sessions(turns=2, return_mean=60.0, max_context=8192, system_prompt=1000, block_tokens=64), 500)
    for place in range(requests.count):
        assert blocks(requests, place)[:15].tolist() == list(range(15))
        assert np.all(blocks(requests, place)[15:] > 1 << 24)
    assert int(requests.input_tokens.min()) > 1000


def test_turns_that_wait_for_answers_are_the_same_turns() -> None:
    """Goal: closed loop changes nothing but who waits for whom: same turns, lengths, prefixes; think times are the
    drawn returns, by session and turn. Method: both kinds of the same draws, more of them, and at another rate."""
    law = Sessions(turns=4, return_mean=30.0, max_context=10**6, block_tokens=16)
    answered = replace(law, return_after="answer")
    opened, closed = drawn(law, 3000), drawn(answered, 3000)
    assert closed.previous is not None
    for name in ("arrival_ns", "input_tokens", "output_tokens", "hash_ids"):
        assert np.array_equal(getattr(opened, name), getattr(closed, name))
    found = by_user(closed)
    for places in found.values():
        assert closed.previous[places].tolist() == [-1, *places[:-1]]
    assert (closed.previous >= 0).sum() > 1500
    more = drawn(answered, 4000)
    assert more.previous is not None
    assert np.array_equal(more.previous[:3000], closed.previous)
    fast = draw_requests(
        PoissonRequests(input=IN, output=OUT, sessions=answered), 2 * RATE, 4000, Streams(3, 0).uniforms
    )
    slow_times, fast_times = think_times_ns(more), think_times_ns(fast)
    both = slow_times.keys() & fast_times.keys()
    assert len(both) > 200
    assert max(abs(slow_times[each] - fast_times[each]) for each in both) <= 1


def test_turns_end() -> None:
    """Goal: one turn is no session; 64 are the most. Method: luck at both ends."""
    one = Sessions(turns=1, return_mean=1.0, max_context=10_000)
    assert one.mean_turns == 1
    assert one.numbers(np.array([0.0, 0.5, 1 - 2**-53])).tolist() == [1, 1, 1]
    many = Sessions(turns=16, return_mean=1.0, max_context=10_000)
    assert many.numbers(np.array([0.0, 1 - 2**-53])).tolist() == [1, MOST_TURNS]
    drawn_turns = many.numbers(Streams(1, 0).uniforms("t", 0, 100_000))
    assert drawn_turns.mean() == pytest.approx(many.mean_turns, rel=0.01)
    plain = draw_requests(PoissonRequests(input=IN, output=OUT), RATE, 500, Streams(3, 0).uniforms)
    assert np.array_equal(drawn(one, 500).output_tokens[:100], plain.output_tokens[:100])


def test_other_arrivals_have_sessions_too() -> None:
    """Goal: any law of arrivals starts sessions. Method: gamma and diurnal, mean rate within 10 %."""
    sessions = Sessions(turns=3, return_mean=10.0, max_context=20_000)
    for law in (
        GammaRequests(cv=2, input=IN, output=OUT, sessions=sessions),
        DiurnalRequests(swing=0.5, period=60.0, peak=20.0, input=IN, output=OUT, sessions=sessions),
    ):
        requests = draw_requests(law, RATE, 5000, Streams(3, 0).uniforms)
        assert requests.rate_per_s == pytest.approx(RATE, rel=0.1)
        assert not law.scales


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"turns": 0.5}, "turns of 0.5"),
        ({"turns": 40}, "turns of 40"),
        ({"return_mean": 0.0}, "return_mean"),
        ({"return_cv": 0.0}, "return_cv"),
        ({"max_context": 0}, "max_context"),
        ({"system_prompt": 10_000}, "system_prompt"),
        ({"block_tokens": 0}, "block_tokens"),
        ({"return_mean": 2e9}, "return_mean of 2e.09 s"),
        ({"max_context": 2**40, "block_tokens": 16}, "max_context"),
        ({"return_after": "never"}, "return_after"),
    ],
)
def test_impossible_sessions_are_refused(changed: dict[str, Any], what: str) -> None:
    """Goal: helpful texts. Method: one bad value each."""
    good: dict[str, Any] = {"turns": 3, "return_mean": 10.0, "max_context": 10_000}
    with pytest.raises(ValueError, match=rf"{what}.*: write"):
        Sessions(**(good | changed))


def test_fixed_lengths_add_up() -> None:
    """Goal: turn j has j + 1 prompts and j answers in it. Method: fixed lengths, all sizes that occur."""
    law = PoissonRequests(
        input=FixedLengths(tokens=10),
        output=FixedLengths(tokens=5),
        sessions=Sessions(turns=3, return_mean=1.0, max_context=10_000),
    )
    found = draw_requests(law, RATE, 2000, Streams(3, 0).uniforms).input_tokens
    assert np.all((found - 10) % 15 == 0)
    assert int(found.max()) > 100
