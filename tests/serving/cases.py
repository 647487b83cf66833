"""Random workloads for the token kernel: small, hostile, and the same for every way of running them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tests.serving.naive import FAR, Costs, Naive, Rows, Rules
from tests.serving.naive_clients import ClientNaive
from tests.serving.naive_drafts import DraftNaive, drafted_costs
from tests.serving.naive_samples import SampleNaive
from tests.serving.naive_static import StaticNaive
from tests.serving.naive_swap import SwapNaive
from tests.serving.naive_tiers import TierNaive
from workloads.kv_cache import Contiguous, Paged, PrefixSharing
from workloads.pass_costs import PassCosts
from workloads.requests import Requests
from workloads.serving.batching import ChunkedPrefill, ContinuousBatching, StaticBatching
from workloads.serving.clients import Admission, Cancellations, Clients, Patience, Retries
from workloads.serving.measures import ServiceMeasures
from workloads.serving.preemption import Swap, Tiers
from workloads.serving.router import CentralQueue, LeastOutstanding, PrefixAffine, RandomRouter, RoundRobin, SloAware
from workloads.serving.service import Service, ServiceConfig

TOKENS = 6000
NaiveKind = TypeVar("NaiveKind", bound=Naive)
ROUTERS = (RandomRouter(), RoundRobin(), LeastOutstanding())
RESERVES = (None, None, None, "max_model_len", "power_of_two", "oracle")


@dataclass(frozen=True)
class Case:
    """One workload: the service, its requests, what the machine does (verb, replica, instant, speed), the horizon."""

    config: ServiceConfig
    requests: Requests
    events: tuple[tuple[str, int, int, float], ...]
    horizon_ns: int
    whole_costs: Costs
    draft_costs: Costs | None = None

    def uniforms(self, name: str, block: int, count: int) -> NDArray[np.float64]:
        """Luck of the random router."""
        return np.random.Generator(np.random.PCG64([block, len(name)])).random(count)


def draw_case(seed: int, *, whole: bool = True) -> Case:
    """Workload number `seed`; `whole`: costs are whole nanoseconds (else anything)."""
    rng = np.random.default_rng(seed)
    fixed, per_token = int(rng.integers(50, 2000)), int(rng.integers(0, 20))
    noise = rng.integers(0, 40, size=(TOKENS, 4, 2))
    tokens = np.arange(1, TOKENS + 1)
    decode = noise[:, :, 0] + np.stack(
        [per_token * tokens, fixed + 0 * tokens, tokens // 3, fixed // 2 + 0 * tokens], axis=1
    )
    prefill = (
        decode
        + noise[:, :, 1] * int(rng.integers(0, 4))
        - int(rng.integers(0, 2)) * fixed // 4 * np.eye(4, dtype=np.int64)[1]
    )
    kv = rng.integers(0, 4, size=int(rng.integers(3, 40))) * int(rng.integers(0, 3))
    pair, cached = int(rng.integers(0, 2)), int(rng.integers(0, 3))
    stretch = 1.0 if whole else float(rng.uniform(0.2, 3.0))
    costs = PassCosts(
        grid_tokens=tokens.astype(np.int64),
        decode_parts_s=decode * (1e-9 * stretch),
        prefill_parts_s=prefill * (1e-9 * stretch),
        kv_read_s_per_token=kv * (1e-9 * stretch),
        prefill_pair_s=pair * 1e-9 * stretch,
        prefill_context_s_per_token=cached * 1e-9 * stretch,
    )
    count = int(rng.integers(1, 60))
    prompts = rng.integers(1, int(rng.integers(2, 90)), size=count)
    outputs = rng.integers(1, int(rng.integers(2, 70)), size=count)
    gap = float(rng.choice([0.02, 0.1, 0.4, 2.0])) * fixed * int(rng.integers(1, 20))
    arrivals = np.cumsum(rng.exponential(gap, size=count).astype(np.int64) * rng.integers(0, 2, size=count))
    batch = None if rng.random() < 0.3 else int(rng.integers(1, 12))
    chunked = rng.random() < 0.5
    if chunked:
        batch = batch or 12
    reserve = RESERVES[rng.integers(len(RESERVES))]
    longest = int((prompts + outputs).max())
    tight = float(rng.choice([0.8, 1.0, 1.2, 1.6, 3.0]))
    config = ServiceConfig(
        costs=costs,
        blocks=max(1, int(tight * longest / 16) + int(rng.integers(0, 4))),
        replicas=int(rng.integers(1, 4)),
        batching=ChunkedPrefill(budget=batch + int(rng.integers(1, 40)), max_batch=batch)
        if chunked and batch is not None
        else ContinuousBatching(max_batch=batch),
        router=ROUTERS[rng.integers(3)],
        kv=Paged() if reserve is None else Contiguous(reserve=reserve, max_model_len=max(16, longest - count % 8)),
        watermark=float(rng.choice([0.0, 0.01, 0.01, 0.3])),
        ttft_limit_s=float(rng.integers(1, 40) * fixed) * 1e-9,
        tpot_limit_s=float(rng.integers(1, 8) * fixed) * 1e-9,
        record_requests=1000,
    )
    span = int(arrivals[-1]) + count * fixed
    events = draw_events(rng, config.replicas, span)
    horizon = int(span * rng.choice([0.5, 1.0, 3.0, 60.0])) + 1
    order = np.asarray(arrivals, dtype=np.int64)
    requests = Requests(order, prompts.astype(np.int64), outputs.astype(np.int64))
    nothing = np.zeros((1, 4), dtype=np.int64)
    whole_costs = Costs(
        decode=Rows(np.concatenate([nothing, decode])),
        prefill=Rows(np.concatenate([nothing, prefill])),
        kv=kv[np.minimum(np.arange(2000), kv.size - 1)].tolist(),
        pair=pair,
        cached=cached,
    )
    return Case(config, requests, events, horizon, whole_costs)


def draw_static_case(seed: int, *, whole: bool = True) -> Case:
    """Workload number `seed` under static batching, some with a wait for a full batch."""
    case, rng = draw_case(seed, whole=whole), np.random.default_rng([seed, 1])
    wait_s = int(rng.integers(0, 2)) * float(rng.integers(1, 20_000)) * 1e-9
    batching = StaticBatching(max_batch=int(rng.integers(1, 12)), wait_s=wait_s)
    return replace(case, config=replace(case.config, batching=batching))


def draw_central_case(seed: int, *, whole: bool = True) -> Case:
    """Workload number `seed` with one queue for up to five replicas, a fifth of them under static batching."""
    draw = draw_static_case if seed % 5 == 4 else draw_case
    case, rng = draw(seed, whole=whole), np.random.default_rng([seed, 2])
    replicas = int(rng.integers(2, 6))
    span = int(case.requests.arrival_ns[-1]) + case.requests.count * 500
    config = replace(case.config, router=CentralQueue(), replicas=replicas)
    return replace(case, config=config, events=draw_events(rng, replicas, span))


def draw_slo_aware_case(seed: int, *, whole: bool = True) -> Case:
    """Workload number `seed` with the SLO-aware router."""
    case, rng = draw_case(seed, whole=whole), np.random.default_rng([seed, 4])
    replicas = int(rng.integers(2, 6))
    span = int(case.requests.arrival_ns[-1]) + case.requests.count * 500
    config = replace(case.config, router=SloAware(), replicas=replicas)
    return replace(case, config=config, events=draw_events(rng, replicas, span))


def draw_clients_case(seed: int, *, whole: bool = True) -> Case:
    """Workload number `seed` with impatient clients who come back, cancel, and meet limits; with priorities in half.

    The kinds of batching and of routing are mixed.
    """
    draws = (draw_case, draw_case, draw_static_case, draw_central_case, draw_slo_aware_case)
    case, rng = draws[seed % 5](seed, whole=whole), np.random.default_rng([seed, 3])
    scale_s = float(case.config.costs.prefill_parts_s[0].sum()) * float(rng.choice([2.0, 10.0, 40.0]))
    untils = ("admission", "first_token", "answer")
    clients = Clients(
        patience=Patience(limit_s=scale_s, until=untils[rng.integers(3)]) if rng.random() < 0.8 else None,
        retries=Retries(
            attempts=int(rng.integers(1, 5)),
            backoff_s=float(rng.choice([0.1, 1.0])) * scale_s,
            jitter=float(rng.choice([0.0, 0.5, 1.0])),
        ),
        cancellations=Cancellations(share=float(rng.random()), mean_s=scale_s) if rng.random() < 0.5 else None,
    )
    central = isinstance(case.config.router, CentralQueue)
    admission = Admission(
        max_queue=int(rng.integers(1, 8)) if rng.random() < 0.3 else None,
        max_outstanding=int(rng.integers(1, 20)) if rng.random() < 0.3 else None,
        max_predicted_ttft_s=scale_s if rng.random() < 0.3 and not central else None,
    )
    shares = ((), (), (0.2, 0.8), (0.25, 0.25, 0.5))[rng.integers(4)]
    return replace(case, config=replace(case.config, clients=clients, admission=admission, priorities=shares))


def draw_events(rng: np.random.Generator, replicas: int, span: int) -> tuple[tuple[str, int, int, float], ...]:
    """Losses, detections, returns, changes of speed in order of time; some losses are never detected or mended."""
    events: list[tuple[str, int, int, float]] = []
    for replica in range(replicas):
        at = int(rng.exponential(span))
        while at < span:
            kind = rng.random()
            if kind < 0.4:
                events.append(("set_speed", replica, at, float(rng.choice([1.0, 0.5, 0.25]))))
            else:
                events.append(("lose", replica, at, 1.0))
                at += int(rng.exponential(span / 20)) * int(rng.integers(0, 2))
                if rng.random() < 0.9:
                    events.append(("detect", replica, at, 1.0))
                at += int(rng.exponential(span / 10))
                if rng.random() < 0.1:
                    break
                events.append(("up", replica, at, 1.0))
            at += int(rng.exponential(span / 3))
    return tuple(sorted(events, key=lambda event: event[2]))


def no_check(service: Service) -> None:
    """Nothing is asked of a service on the way."""


def run_kernel_on(
    case: Case, *, looks: int = 0, step_by_step: bool = False, check: Callable[[Service], None] = no_check
) -> ServiceMeasures:
    """Run a workload on the kernel, looked at `looks` times on the way, with a `check` at each look."""
    config = replace(case.config, step_by_step=step_by_step)
    service = Service(config, case.requests, case.uniforms)
    ahead = [event for event in case.events if event[2] < case.horizon_ns]
    instants = [int(t) for t in case.requests.arrival_ns[: looks // 3]]
    instants += [case.horizon_ns * k // looks for k in range(1, looks - len(instants) + 1)]
    marks = sorted([*((event[2], 0, k) for k, event in enumerate(ahead)), *((t, 1, k) for k, t in enumerate(instants))])
    for at, is_look, place in marks:
        if is_look:
            if service.now_ns <= at <= case.horizon_ns:
                service.advance(at)
                check(service)
            continue
        verb, replica, _, speed = ahead[place]
        if verb == "set_speed":
            service.set_speed(replica, speed, at)
        else:
            getattr(service, verb)(replica, at)
    return service.finish(case.horizon_ns)


def hashes_of(requests: Requests) -> list[tuple[int, ...]] | None:
    """Numbers of the pieces of each prompt; None without any."""
    if requests.hash_ids is None or requests.hash_offsets is None:
        return None
    return [tuple(part.tolist()) for part in np.split(requests.hash_ids, requests.hash_offsets[1:-1])]


def tells_clients(config: ServiceConfig, rules: Rules) -> bool:
    """Tell the reference what clients do, in whole ns; False when they do nothing."""
    patience, retries, admission = config.clients.patience, config.clients.retries, config.admission
    if patience is not None:
        rules.patience, rules.until = round(patience.limit_s * 1e9), patience.until
    rules.attempts, rules.backoff = retries.attempts, round(retries.backoff_s * 1e9)
    rules.jitter = round(retries.jitter * 2**32)
    rules.max_queue, rules.max_outstanding = admission.max_queue or FAR, admission.max_outstanding or FAR
    if admission.max_predicted_ttft_s is not None:
        rules.max_ttft = round(admission.max_predicted_ttft_s * 1e9)
    return config.clients != Clients() or admission != Admission()


def tell_turns(naive: Naive, requests: Requests) -> None:
    """Who follows whom in sessions, and after how long."""
    if requests.previous is None:
        return
    naive.acts = True
    for request, previous in zip(naive.requests, requests.previous.tolist(), strict=True):
        if previous >= 0:
            before = naive.requests[previous]
            before.turn_after, request.think = request, request.arrival - before.arrival
            naive.ahead.remove(request)


def tell_requests(naive: Naive, case: Case) -> None:
    """Classes, cancellations and seeds of the requests, from the same uniforms; and their sessions."""
    tell_turns(naive, case.requests)
    config, count = case.config, case.requests.count
    classes = case.uniforms("serving.priorities", 0, count)
    cancels = case.uniforms("serving.cancellations", 0, count)
    seeds = case.uniforms("serving.retries", 0, count)
    for request in naive.requests:
        k, prompt = request.index, request.index // case.requests.samples
        request.priority = sum(bool(classes[prompt] >= bound) for bound in np.cumsum(config.priorities)[:-1])
        request.seed = int(seeds[k] * 2**53) if config.needs_seeds else 0
        if config.clients.cancellations is not None:
            after = int(config.clients.cancellations.after_ns(cancels[prompt : prompt + 1], FAR)[0])
            request.cancel = min(FAR, request.arrival + after)


def rows_of(case: Case) -> list[tuple[int, ...]]:
    """Arrival, prompt, answer and luck of each request."""
    luck = (case.uniforms("serving.router", 0, case.requests.count) * float(1 << 40)).astype(np.int64)
    luck = np.repeat(luck, case.requests.samples)[: case.requests.count]
    columns = (case.requests.arrival_ns, case.requests.input_tokens, case.requests.output_tokens, luck)
    return [tuple(int(v) for v in row) for row in zip(*columns, strict=True)]


def rules_of(case: Case) -> Rules:
    """The service of a workload, for the reference."""
    config = case.config
    return Rules(
        costs=case.whole_costs,
        blocks=config.blocks,
        replicas=config.replicas,
        max_batch=config.batching.max_batch,
        budget=config.batching.budget if isinstance(config.batching, ChunkedPrefill) else None,
        router=config.router.kind,
        reserve=config.kv.reserve if isinstance(config.kv, Contiguous) else None,
        reserve_tokens=config.kv.max_model_len if isinstance(config.kv, Contiguous) else 0,
        watermark=config.watermark,
        ttft_limit_ns=round((config.ttft_limit_s or 0) * 1e9),
        tpot_limit_ns=round((config.tpot_limit_s or 0) * 1e9),
        affine_guard=config.router.guard if isinstance(config.router, PrefixAffine) else 0,
        hash_tokens=(case.requests.hash_block_tokens or 0) if isinstance(config.kv, PrefixSharing) else 0,
        samples=case.requests.samples,
    )


def tell_tiers(rules: Rules, tiers: Tiers) -> None:
    """Tell the reference of memory below the cache, in pieces and whole ns."""
    unit = rules.hash_tokens // 16
    rules.host_pieces, rules.remote_pieces = tiers.host_blocks // unit, tiers.remote_blocks // unit
    rules.host_piece_ns = unit * round(tiers.host_s_per_block * 1e9)
    rules.remote_piece_ns = unit * round(tiers.remote_s_per_block * 1e9)


def run_naive_on(case: Case) -> Naive:
    """Run a workload with whole costs on the reference."""
    rules, batching = rules_of(case), case.config.batching
    static, waits = isinstance(batching, StaticBatching), tells_clients(case.config, rules)
    if isinstance(batching, StaticBatching):
        rules.batch_wait = round(batching.wait_s * 1e9)
    kinds: list[type[Naive]] = [StaticNaive] if static else []
    if isinstance(case.config.preemption, Swap):
        rules.host_blocks = case.config.preemption.host_blocks
        rules.block_ns = round(case.config.preemption.s_per_block * 1e9)
        kinds.append(SwapNaive)
    if case.config.speculation is not None and case.draft_costs is not None:
        rules.drafts, rules.acceptance = case.config.speculation.length, case.config.speculation.acceptance
        rules.costs = drafted_costs(rules.costs, case.draft_costs, rules.drafts)
        kinds.append(DraftNaive)
    if rules.samples > 1:
        kinds.insert(0, SampleNaive)
    if case.config.tiers is not None:
        tell_tiers(rules, case.config.tiers)
        kinds.append(TierNaive)
    if waits:
        kinds.insert(0, ClientNaive)
    kind = type("Mixed", (*kinds, Naive), {})
    naive = kind(rules, rows_of(case), hashes_of(case.requests))
    tell_requests(naive, case)
    return run_verbs(naive, case)


def run_verbs(naive: NaiveKind, case: Case) -> NaiveKind:
    """Do to a reference what the machine does, and finish."""
    for verb, replica, at, speed in case.events:
        if at < case.horizon_ns:
            if verb == "set_speed":
                naive.set_speed(replica, speed, at)
            else:
                getattr(naive, verb)(replica, at)
    naive.finish(case.horizon_ns)
    return naive
