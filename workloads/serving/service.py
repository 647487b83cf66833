"""A service of several replicas that eats requests and delivers tokens: the face of the token kernel.

The clock is int64 nanoseconds. Whoever owns the machine calls `advance`, `lose`, `detect`, `up`, `set_speed` in order
of time; arrivals and routing live inside. At one instant, machine events come before arrivals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain

import numba
import numpy as np
from numpy.typing import NDArray

from workloads.kv_cache import Contiguous, Paged, PrefixSharing
from workloads.pass_costs import PassCosts
from workloads.requests import Requests
from workloads.serving import fields as f
from workloads.serving.batching import Batching, ContinuousBatching
from workloads.serving.clients import Admission, Clients, check_shares
from workloads.serving.conservation import require_conserved
from workloads.serving.drafts import Speculation, speculative_costs
from workloads.serving.kernel import run_kernel
from workloads.serving.measures import RequestRecord, ServiceMeasures
from workloads.serving.pieces import in_pieces, piece_tokens
from workloads.serving.preemption import Preemption, Recompute, Tiers
from workloads.serving.prefix_state import hashes_of_next_chunk
from workloads.serving.router import RandomRouter, RoundRobin, Router
from workloads.serving.state import limit_ns, new_state, with_more_slots
from workloads.serving.together import check_numbers, check_together

Uniforms = Callable[[str, int, int], NDArray[np.float64]]
"""(stream name, block, count) -> uniforms in [0, 1), as `Streams.uniforms` gives them."""

CHUNK = 1 << 16
"""Requests that the kernel sees at once."""
WORK_COMPILED, WORK_PLAIN = 100_000, 2_000
"""Decisions and arrivals of one call: well below half a second of wall time, compiled and in plain Python."""
ROUTER_STREAM, PRIORITY_STREAM = "serving.router", "serving.priorities"
RETRY_STREAM, CANCEL_STREAM = "serving.retries", "serving.cancellations"
TOTAL_NAMES = (
    "offered", "offered_tokens", "failed_rows", "refused", "completed", "unfinished", "censored_ttft", "in_time",
    "in_time_tokens", "tokens", "prompt_tokens", "recomputed_tokens", "evictions", "losses", "caught", "kv_tokens_lost",
    "steps", "segments", "busy_ns", "batch_ms", "kv_token_ms", "most_decodes", "most_blocks", "in_system_ns", "time_ns",
    "caught_time_ns", "padded_tokens", "prefix_looked_for", "prefix_hits", "prefix_hit_tokens", "prefix_stored",
    "prefix_taken", "rejected", "timed_out", "cancelled", "attempts", "attempts_rejected",
    "attempts_timed_out", "discarded_tokens",
    "kv_transfers", "kv_transfer_tokens", "kv_transfer_ns", "kv_held_token_steps",
    "kv_used_token_steps", "kv_reserved_token_steps", "kv_external_token_steps",
    "swaps_out", "swaps_in", "swap_blocks_out", "swap_blocks_in", "swap_ns", "host_full",
    "host_hits", "remote_hits", "pieces_to_host", "pieces_to_remote", "pieces_dropped", "tier_ns",
    "drafted", "accepted", "answered", "sent_tokens", "carried_ns", "samples_joined", "tail_copies",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ServiceConfig:
    """One service: what a pass costs, KV blocks of a replica, how many replicas, and the policies.

    `ttft_limit_s`, `tpot_limit_s`: the SLO (None: no limit). `watermark`: share of blocks kept free at admission,
    unless the replica is empty. `measures`: off leaves only counts of requests and tokens. `measure_waste`: count KV
    memory that holds no tokens, by reason (see `waste`). `record_requests`: arrays
    by request for the first so many. `saturated_requests_per_s`: of one replica, for the queue verdict.
    `clients`: their patience, retries, cancellations; `admission`: limits at the door of a replica; `priorities`:
    shares of the requests in classes 0 (the highest), 1, ...: strict first come, first served within a class, a higher
    one first; the lowest is evicted first. `preemption`: what becomes of the KV of the evicted. `tiers`:
    memory below the cache to which shared prefixes move down. `speculation`: several tokens per step.
    """

    costs: PassCosts
    blocks: int
    replicas: int = 1
    batching: Batching = field(default_factory=ContinuousBatching)
    router: Router = field(default_factory=RoundRobin)
    kv: Paged | Contiguous | PrefixSharing = field(default_factory=Paged)
    watermark: float = 0.01
    ttft_limit_s: float | None = None
    tpot_limit_s: float | None = None
    step_by_step: bool = False
    measures: bool = True
    measure_waste: bool = False
    record_requests: int = 0
    saturated_requests_per_s: float | None = None
    clients: Clients = field(default_factory=Clients)
    admission: Admission = field(default_factory=Admission)
    priorities: tuple[float, ...] = ()
    preemption: Preemption = field(default_factory=Recompute)
    tiers: Tiers | None = None
    speculation: Speculation | None = None

    def __post_init__(self) -> None:
        """Refuse what can not run."""
        check_numbers(self)
        check_together(self)
        shortest_s = min(self.costs.decode_parts_s.sum(axis=1).min(), self.costs.prefill_parts_s.sum(axis=1).min())
        if shortest_s < 1e-9:
            raise ValueError("every pass must take at least 1 ns")
        check_shares(self.priorities)

    @property
    def needs_uniforms(self) -> bool:
        """Whether anything about its requests is drawn inside: luck, priorities, jitter, cancellations."""
        drawn = len(self.priorities) > 1 or self.needs_seeds or self.clients.cancellations is not None
        return drawn or isinstance(self.router, RandomRouter)

    @property
    def needs_seeds(self) -> bool:
        """Whether requests have draws of their own: jitter of retries, drafts that are accepted."""
        return self.clients.retries.attempts > 1 or self.speculation is not None

    @property
    def pass_costs(self) -> PassCosts:
        """What a pass costs, drafts and their check included."""
        return self.costs if self.speculation is None else speculative_costs(self.costs, self.speculation)


class Service:
    """Replicas at work. `requests` is one `Requests` or an iterable of them in order of arrival (for long runs).

    `uniforms` is needed by the random router only. All replicas start up, idle and empty at instant 0.
    """

    def __init__(
        self, config: ServiceConfig, requests: Requests | Iterable[Requests], uniforms: Uniforms | None = None
    ) -> None:
        if config.needs_uniforms and uniforms is None:
            raise ValueError("a random router, priorities, retries, cancellations and speculation need uniforms")
        self.config = config
        self.now_ns = 0
        self._uniforms = uniforms
        parts = iter([requests] if isinstance(requests, Requests) else requests)
        first = next(parts, None)
        hash_tokens = 0 if first is None or not isinstance(config.kv, PrefixSharing) else piece_tokens(first)
        self._samples = 1 if first is None else first.samples
        self._chunks = in_pieces(chain([] if first is None else [first], parts), hash_tokens, CHUNK)
        self._ahead = next(self._chunks, None)
        self._state = new_state(
            costs=config.pass_costs,
            blocks=config.blocks,
            replicas=config.replicas,
            batching=config.batching,
            router=config.router,
            kv=config.kv,
            hash_tokens=hash_tokens,
            samples=self._samples,
            watermark=config.watermark,
            ttft_limit_ns=limit_ns(config.ttft_limit_s),
            tpot_limit_ns=limit_ns(config.tpot_limit_s),
            step_by_step=config.step_by_step,
            measures=config.measures,
            clients=config.clients,
            admission=config.admission,
            priorities=config.priorities,
            waste=config.measure_waste,
            preemption=config.preemption,
            tiers=config.tiers,
            speculation=config.speculation,
        )
        self._totals = [0] * f.COMMON_SIZE
        self._blocks: dict[str, tuple[int, NDArray[np.float64]]] = {}
        self._start_ns = 0
        self._warmup = dict.fromkeys(TOTAL_NAMES, 0)
        self._up = [True] * config.replicas
        self._up_since_ns = [0] * config.replicas
        self._up_ns = 0
        self._finished = False
        self._load_chunk()

    # What the machine does, in order of time.

    def advance(self, until_ns: int) -> None:
        """Run to `until_ns`: passes that end by then are delivered; passes and arrivals from it on are not begun."""
        if until_ns < self.now_ns:
            raise ValueError(f"the service is at {self.now_ns} ns already, it can not go back to {until_ns} ns")
        if self._finished:
            raise ValueError("the service is finished")
        common = self._state.common
        work = WORK_COMPILED if isinstance(run_kernel, numba.core.registry.CPUDispatcher) else WORK_PLAIN
        while True:
            common[f.C_WORK] = work
            answer = run_kernel(self._state, f.V_RUN, 0, until_ns, 1.0)
            self._drain()
            if answer == f.NEED_REQUESTS:
                self._load_chunk()
            elif answer == f.NEED_ROOM:
                self._state = with_more_slots(self._state)
                common = self._state.common
            elif answer == f.DONE:
                break
        self.now_ns = until_ns

    def lose(self, replica: int, at_ns: int) -> None:
        """The replica dies: its pass in flight is not delivered, its requests stay with it until `detect` (or `up`)."""
        self._go_to(replica, at_ns)
        if self._up[replica]:
            run_kernel(self._state, f.V_LOSE, replica, at_ns, 1.0)
            self._up[replica] = False
            self._up_ns += at_ns - self._up_since_ns[replica]

    def detect(self, replica: int, at_ns: int) -> None:
        """The loss is noticed: all requests of the dead replica return and are routed to replicas believed up."""
        self._go_to(replica, at_ns)
        if self._up[replica]:
            raise ValueError(f"replica {replica} is up: there is no loss to detect")
        run_kernel(self._state, f.V_DETECT, replica, at_ns, 1.0)

    def up(self, replica: int, at_ns: int) -> None:
        """The replica is back, empty and at full speed (an undetected loss is noticed now)."""
        self._go_to(replica, at_ns)
        if not self._up[replica]:
            run_kernel(self._state, f.V_UP, replica, at_ns, 1.0)
            self._up[replica] = True
            self._up_since_ns[replica] = at_ns

    def set_speed(self, replica: int, speed: float, at_ns: int) -> None:
        """The replica runs at `speed` in (0, 1], 1 being healthy, from its first boundary at or after `at_ns`."""
        if not 0 < speed <= 1:
            raise ValueError(f"a speed lies in (0, 1], not {speed:g}")
        self._go_to(replica, at_ns)
        if self._up[replica]:
            run_kernel(self._state, f.V_SPEED, replica, self.now_ns, speed)

    def measure_from(self, at_ns: int) -> None:
        """End a warm-up: counts start again, and only requests that arrive from `at_ns` on count as offered."""
        self.advance(at_ns)
        self._state.common[f.C_MEASURE_FROM] = at_ns
        self._state.replica[:, f.R_AREA_AT] = at_ns
        self._state.histogram[:] = 0
        self._warmup = self._named_totals()
        self._totals = [0] * f.COMMON_SIZE
        self._start_ns = at_ns
        self._up_ns = 0
        self._up_since_ns = [at_ns] * self.config.replicas

    def finish(self, horizon_ns: int | None = None) -> ServiceMeasures:
        """Run to the horizon, censor what is open and return the measures.

        Without a horizon: until all requests are done (ValueError when some never can be, for want of a replica).
        What a run conserves is checked (see `conservation`).
        """
        self.advance(f.FOREVER if horizon_ns is None else horizon_ns)
        replica = self._state.replica
        if horizon_ns is None:
            if replica[:, f.R_OUTSTANDING].any():
                raise ValueError("requests wait for a replica that never comes back: give a horizon")
            horizon_ns = self.now_ns = int(max(replica[:, f.R_AT].max(), self._start_ns))
        window_ns = horizon_ns - self._start_ns
        queues = replica[:, f.R_QUEUE]
        since = np.where(queues > 0, replica[:, f.R_QUEUE_SINCE], horizon_ns)
        never_empty = bool(np.any(since < horizon_ns - window_ns // 10))
        queue_end, cut = int(queues.sum()), bool(replica[:, f.R_OUTSTANDING].any())
        run_kernel(self._state, f.V_CLOSE, 0, horizon_ns, 1.0)
        self._drain()
        self._finished = True
        up_ns = self._up_ns + sum(
            horizon_ns - since for is_up, since in zip(self._up, self._up_since_ns, strict=True) if is_up
        )
        ledger, caught = f.N_LEDGER, f.N_CAUGHT_LEDGER
        measures = ServiceMeasures(
            totals=self._named_totals(),
            histograms=self._state.histogram.copy(),
            ledger_ns=tuple(self._totals[ledger : ledger + f.LEDGER_SIZE]),
            caught_ledger_ns=tuple(self._totals[caught : caught + f.LEDGER_SIZE]),
            window_ns=window_ns,
            replica_up_ns=up_ns,
            kv_tokens_of_replica=self.config.blocks * f.BLOCK_TOKENS,
            kv_bytes_per_token=self.config.costs.kv_bytes_per_token * self.config.costs.kv_replication,
            piece_tokens=int(self._state.common[f.C_HASH_TOKENS]),
            queue_end=queue_end,
            never_empty=never_empty,
            saturated_requests_per_s=self.config.saturated_requests_per_s,
            record=self._record(),
        )
        require_conserved(measures, self._state, self._warmup, cut=cut)
        return measures

    # What can be read at any time.

    @property
    def tokens_delivered(self) -> int:
        """Tokens delivered since the start (or since `measure_from`)."""
        return self._totals[f.N_TOKENS]

    def total(self, name: str) -> int:
        """A count so far, by name (see `TOTAL_NAMES`)."""
        return self._totals[f.SETTINGS + TOTAL_NAMES.index(name)]

    @property
    def outstanding(self) -> int:
        """Requests in the system: routed or waiting in the router, and unfinished."""
        return int(self._state.replica[:, f.R_OUTSTANDING].sum())

    @property
    def replicas_up(self) -> int:
        """Replicas that are up."""
        return sum(self._up)

    # Inside.

    def _named_totals(self) -> dict[str, int]:
        return dict(zip(TOTAL_NAMES, self._totals[f.SETTINGS :], strict=False))

    def _go_to(self, replica: int, at_ns: int) -> None:
        if not 0 <= replica < self.config.replicas:
            raise ValueError(f"there are {self.config.replicas} replicas, numbered from 0; there is no {replica}")
        self.advance(at_ns)

    def _drain(self) -> None:
        """Move the kernel's counts into integers without bound."""
        common = self._state.common
        for place, value in enumerate(common[f.SETTINGS :].tolist(), f.SETTINGS):
            if value:
                so_far = self._totals[place]
                self._totals[place] = max(so_far, value) if place in f.MAXIMA else so_far + value
        common[f.SETTINGS :] = 0

    def _load_chunk(self) -> None:
        """Hand the next piece of requests to the kernel."""
        common, piece = self._state.common, self._ahead
        assert piece is not None
        common[f.C_FIRST_ID] += self._state.request.shape[0]
        common[f.C_NEXT] = 0
        self._ahead = next(self._chunks, None)
        common[f.C_LAST_CHUNK] = self._ahead is None
        first = int(common[f.C_FIRST_ID])
        rows, count = piece.rows, piece.rows.shape[0]
        self._draw(rows, first)
        common[f.C_TURNS] = bool(rows[:, f.Q_FOLLOWS].any())
        if first and common[f.C_TURNS]:
            raise ValueError("sessions whose turns follow each other must be the only requests of a service")
        if self._ahead is not None and count and self._ahead.rows[0, f.Q_ARRIVAL] < rows[-1, f.Q_ARRIVAL]:
            raise ValueError("requests must come in order of arrival")
        if common[f.C_UNIT]:
            hashes, start = hashes_of_next_chunk(self._state, piece.hashes)
            rows[:, f.Q_HASH_AT] += start
            self._state = self._state._replace(hashes=hashes)
        self._state = self._state._replace(request=rows, record=self._more_records(first + count))

    def _draw(self, piece: NDArray[np.int64], first: int) -> None:
        """Fill in what is drawn about the requests `first`, `first` + 1, ...: luck, class, cancellation, seed.

        Samples of a prompt have luck, class and cancellation in common.
        """
        config, count = self.config, piece.shape[0]
        if isinstance(config.router, RandomRouter):
            piece[:, f.Q_LUCK] = self._by_prompt(ROUTER_STREAM, first, count) * float(1 << f.LUCK_BITS)
        if len(config.priorities) > 1:
            bounds = np.cumsum(config.priorities)[:-1]
            piece[:, f.Q_CLASS] = np.searchsorted(bounds, self._by_prompt(PRIORITY_STREAM, first, count), "right")
        if config.needs_seeds:
            piece[:, f.Q_SEED] = self._by_request(RETRY_STREAM, first, count) * float(1 << f.SEED_BITS)
        piece[:, f.Q_CANCEL] = f.FOREVER
        if config.clients.cancellations is not None:
            luck = self._by_prompt(CANCEL_STREAM, first, count)
            piece[:, f.Q_CANCEL] = config.clients.cancellations.after_ns(luck, f.FOREVER)

    def _by_request(self, stream: str, first: int, count: int) -> NDArray[np.float64]:
        """Uniforms of requests `first` to `first + count`: by request, whatever the pieces."""
        assert self._uniforms is not None
        parts, place = [np.zeros(0)], first
        while place < first + count:
            block, offset = divmod(place, CHUNK)
            if self._blocks.get(stream, (-1,))[0] != block:
                self._blocks[stream] = (block, self._uniforms(stream, block, CHUNK))
            end = min(CHUNK, offset + first + count - place)
            parts.append(self._blocks[stream][1][offset:end])
            place += end - offset
        return np.concatenate(parts)

    def _by_prompt(self, stream: str, first: int, count: int) -> NDArray[np.float64]:
        """Uniforms by prompt: draw j belongs to all samples of prompt j."""
        n = self._samples
        return np.repeat(self._by_request(stream, first // n, -(-count // n)), n)[:count]

    def _more_records(self, requests: int) -> NDArray[np.int64]:
        """Rows for the requests loaded so far, at most as many as are to be recorded."""
        rows = min(requests, self.config.record_requests)
        record = np.zeros((rows, f.RECORD_SIZE), dtype=np.int64)
        record[:, [f.X_ARRIVAL, f.X_FIRST, f.X_FINISH, f.X_REPLICA]] = f.NO_SLOT
        record[: self._state.record.shape[0]] = self._state.record
        self._state.common[f.C_RECORD_ROWS] = rows
        return record

    def _record(self) -> RequestRecord | None:
        if self.config.record_requests == 0:
            return None
        common, rows = self._state.common, self._state.record
        if not common[f.C_TURNS]:
            rows = rows[: int(common[f.C_FIRST_ID] + common[f.C_NEXT])]
        return RequestRecord(
            arrival_ns=rows[:, f.X_ARRIVAL],
            first_token_ns=rows[:, f.X_FIRST],
            finish_ns=rows[:, f.X_FINISH],
            tokens=rows[:, f.X_TOKENS],
            replica=rows[:, f.X_REPLICA],
            status=rows[:, f.X_STATUS],
            caught=rows[:, f.X_CAUGHT].astype(bool),
            evictions=rows[:, f.X_EVICTIONS],
            attempts=rows[:, f.X_ATTEMPTS],
            ledger_ns=rows[:, f.X_LEDGER :],
        )
