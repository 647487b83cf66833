"""The central queue as M/M/c, M/D/c and M/G/c: exact on every path, in the mean against exact values of theory."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import lil_matrix
from scipy.sparse.linalg import spsolve
from scipy.special import stdtrit
from scipy.stats import poisson

from sim.streams import Streams
from workloads.pass_costs import synthetic_pass_costs
from workloads.requests import Requests
from workloads.serving.batching import ContinuousBatching
from workloads.serving.router import CentralQueue, LeastOutstanding, RandomRouter
from workloads.serving.service import Service, ServiceConfig

CONFIDENCE = 0.9995
NS_PER_TOKEN = 1000
COUNT, REPLICATIONS = 100_000, 8
MIX = ((0.9, 5_000.0), (0.1, 55_000.0))
"""Share and mean tokens of two kinds of prompts, each exponential: a variation of 1.9."""
COSTS = synthetic_pass_costs(
    fixed_s=0.0, weights_s=0.0, per_token_s=NS_PER_TOKEN * 1e-9, collectives_s_per_token=0.0, kv_read_s_per_token=0.0
)


def config(replicas: int) -> ServiceConfig:
    """Replicas that serve one request at a time; a prompt takes a time in proportion to its tokens."""
    return ServiceConfig(
        costs=COSTS,
        blocks=100_000,
        replicas=replicas,
        batching=ContinuousBatching(max_batch=1),
        router=CentralQueue(),
        record_requests=COUNT,
    )


def sizes(law: str, u: NDArray[np.float64]) -> NDArray[np.int64]:
    """Prompts of about 10,000 tokens by inversion: all equal, exponential, of two lengths, or of two kinds."""
    if law == "D":
        return np.full(u.size, 10_000, dtype=np.int64)
    if law == "M":
        return np.ceil(-np.log1p(-u) * 10_000).astype(np.int64).clip(1)
    if law == "H":
        (many, short), (few, long) = MIX
        left = np.where(u < many, 1 - u / many, (1 - u) / few)
        tokens = -np.log(left) * np.where(u < many, short, long)
        return np.ceil(tokens).astype(np.int64).clip(1)
    return np.where(u < 0.9, 5_000, 55_000).astype(np.int64)


def draw(law: str, replicas: int, load: float, replication: int) -> Requests:
    """Poisson arrivals at `load` of what the replicas can serve."""
    streams = Streams(11, replication)
    prompts = sizes(law, streams.uniforms("sizes", 0, COUNT))
    mean_ns = {"D": 10_000, "M": 10_000.5, "G": 10_000, "H": 10_000.5}[law] * NS_PER_TOKEN
    gaps = -np.log1p(-streams.uniforms("gaps", 0, COUNT)) * mean_ns / (load * replicas)
    return Requests(np.cumsum(np.rint(gaps).astype(np.int64)), prompts, np.ones(COUNT, dtype=np.int64))


def starts_by_recursion(requests: Requests, replicas: int) -> NDArray[np.int64]:
    """Kiefer and Wolfowitz: each request starts when it has come and the first of the servers is free."""
    free, starts = [0] * replicas, []
    for arrival, prompt in zip(requests.arrival_ns.tolist(), requests.input_tokens.tolist(), strict=True):
        start = max(arrival, heapq.heappop(free))
        heapq.heappush(free, start + prompt * NS_PER_TOKEN)
        starts.append(start)
    return np.array(starts)


def erlang_c(replicas: int, load: float) -> float:
    """Probability that a request of an M/M/c queue waits (Erlang, 1917)."""
    offered = replicas * load
    terms = [offered**k / math.factorial(k) for k in range(replicas)]
    last = offered**replicas / math.factorial(replicas) / (1 - load)
    return last / (sum(terms) + last)


def waits_of_md_c(replicas: int, load: float) -> float:
    """Mean wait of an M/D/c queue in service times (Crommelin, 1932): what is in the system one service time later is
    what had to wait, and a Poisson number of arrivals; then Little's law."""
    size = 400
    new = poisson.pmf(np.arange(size), replicas * load)
    share = np.zeros(size)
    share[0] = 1.0
    for _ in range(4000):
        left = np.concatenate([[share[: replicas + 1].sum()], share[replicas + 1 :]])
        after = np.convolve(left, new)[:size]
        after /= after.sum()
        if np.abs(after - share).sum() < 1e-14:
            break
        share = after
    queue = float((np.maximum(np.arange(size) - replicas, 0) * share).sum())
    return queue / (replicas * load)


def waits_of_mh2_c(replicas: int, load: float) -> float:
    """Mean wait of an M/G/c queue in mean service times, services a mixture of two exponential ones: exactly.

    A Markov chain of the number in the system and how many of those in service are of the first kind; it is cut where
    the queue is not seen. Its stationary law is the solution of its balance equations; then Little's law.
    """
    size, (share, rates) = 600, (MIX[0][0], [1e4 / mean for _, mean in MIX])
    arrivals = replicas * load
    place = {(n, k): i for i, (n, k) in enumerate((n, k) for n in range(size) for k in range(min(n, replicas) + 1))}
    flow = lil_matrix((len(place), len(place)))

    def move(before: tuple[int, int], after: tuple[int, int], rate: float) -> None:
        if rate > 0 and after in place:
            flow[place[after], place[before]] += rate
            flow[place[before], place[before]] -= rate

    for n, k in place:
        if n < replicas:
            move((n, k), (n + 1, k + 1), arrivals * share)
            move((n, k), (n + 1, k), arrivals * (1 - share))
        else:
            move((n, k), (n + 1, k), arrivals)
        for ended, first in ((k, 1), (min(n, replicas) - k, 0)):
            rate = ended * rates[1 - first]
            if n <= replicas:
                move((n, k), (n - 1, k - first), rate)
            else:
                move((n, k), (n - 1, k - first + 1), rate * share)
                move((n, k), (n - 1, k - first), rate * (1 - share))
    flow[0, :] = 1.0
    sums = np.zeros(len(place))
    sums[0] = 1.0
    law = spsolve(flow.tocsc(), sums)
    assert law[[place[size - 1, k] for k in range(replicas + 1)]].sum() < 1e-9
    return float(sum(max(0, n - replicas) * law[i] for (n, _), i in place.items())) / arrivals


def mean_wait(law: str, replicas: int, load: float) -> tuple[float, float]:
    """Mean wait in mean service times over replications, and its half-width."""
    waits = []
    for replication in range(REPLICATIONS):
        measures = Service(config(replicas), draw(law, replicas, load, replication)).finish()
        waits.append(measures.ledger_s_per_request()["router_queue"] / (10_000 * NS_PER_TOKEN * 1e-9))
    half_width = float(stdtrit(REPLICATIONS - 1, CONFIDENCE)) * np.std(waits, ddof=1) / math.sqrt(REPLICATIONS)
    return float(np.mean(waits)), float(half_width)


@pytest.mark.parametrize("law", ["D", "M", "G"])
def test_every_wait_is_that_of_the_recursion(law: str) -> None:
    """Goal: the central queue is a first come, first served queue of c servers. Method: each start, to the nanosecond,
    against the recursion of Kiefer and Wolfowitz."""
    requests = draw(law, 3, 0.9, 0)
    record = Service(config(3), requests).finish().record
    assert record is not None
    starts = record.first_token_ns - requests.input_tokens * NS_PER_TOKEN
    assert np.array_equal(starts, starts_by_recursion(requests, 3))


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_mean_waits_of_mmc_and_mdc(load: float) -> None:
    """Goal: M/M/3 and M/D/3. Method: mean wait against Erlang's and Crommelin's exact values, eight replications of
    100,000 requests, t(0.9995)."""
    for law, exact in (("M", erlang_c(3, load) / (3 * (1 - load))), ("D", waits_of_md_c(3, load))):
        mean, half_width = mean_wait(law, 3, load)
        assert half_width < 0.12 * exact
        assert abs(mean - exact) <= half_width


def test_mean_wait_of_mgc() -> None:
    """Goal: M/G/3 lies where theory puts it. Method: Allen and Cunneen, the wait of M/M/c times (1 + cv^2) / 2, is
    within a tenth (services of two lengths, cv 1.5)."""
    load, cv2 = 0.8, (0.9 * 5.0**2 + 0.1 * 55.0**2) / 10.0**2 - 1
    mean, half_width = mean_wait("G", 3, load)
    expected = erlang_c(3, load) / (3 * (1 - load)) * (1 + cv2) / 2
    assert abs(mean - expected) <= 0.1 * expected + half_width


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_mean_wait_of_a_general_service_is_exact(load: float) -> None:
    """Goal: M/G/3 in the mean, without an approximation. Method: services of two kinds (variation 1.9), for which the
    balance equations of a Markov chain give the mean wait; eight replications of 100,000 requests, t(0.9995). With one
    server the equations give the value of Pollaczek and Khinchine."""
    exact, (mean, half_width) = waits_of_mh2_c(3, load), mean_wait("H", 3, load)
    assert half_width < 0.2 * exact
    assert abs(mean - exact) <= half_width
    second_moment = sum(share * 2 * (tokens / 1e4) ** 2 for share, tokens in MIX)
    assert waits_of_mh2_c(1, load) == pytest.approx(load * second_moment / (2 * (1 - load)), rel=1e-6)
    assert exact > 1.5 * erlang_c(3, load) / (3 * (1 - load))


def test_one_queue_beats_many() -> None:
    """Goal: why one queue. Method: the same requests at the same load; waits are shortest with the central queue, then
    least outstanding, then random."""
    requests = draw("G", 3, 0.8, 1)
    waits = []
    for router in (CentralQueue(), LeastOutstanding(), RandomRouter()):
        parts = {**vars(config(3)), "router": router}
        measures = Service(ServiceConfig(**parts), requests, Streams(1, 0).uniforms).finish()
        waits.append(measures.ledger_s_per_request()["router_queue"])
    assert waits[0] < waits[1] < waits[2]


def test_idle_replicas_go_by_index() -> None:
    """Goal: ties go to the lowest index. Method: requests far apart all go to replica 0; two at once take 0 and 1."""
    far = Requests(np.array([0, 10**9, 2 * 10**9, 2 * 10**9]), np.full(4, 100), np.full(4, 1))
    record = Service(config(3), far).finish().record
    assert record is not None
    assert record.replica.tolist() == [0, 0, 0, 1]
