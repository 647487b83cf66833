"""A second, slow token simulator: lists, one pass at a time, whole numbers. It shares no code with the kernel.

It reads like the rules: at each boundary completions, then changes of speed and arrivals, then reservations with
evictions, then admissions, then the pass. Costs are whole nanoseconds. Gaps between tokens are kept as a plain list.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

FAR = 1 << 61


@dataclass
class Rows:
    """Whole ns by tokens, row 0 for none; a row is a list of plain numbers."""

    table: NDArray[np.int64]

    def __getitem__(self, tokens: int) -> list[int]:
        """One row."""
        row: list[int] = self.table[tokens].tolist()
        return row

    def __len__(self) -> int:
        """Rows."""
        return len(self.table)


@dataclass
class Costs:
    """Whole ns: parts (compute, weights, collectives, fixed) by tokens, reads by decodes, pairs, cached tokens."""

    decode: Rows
    prefill: Rows
    kv: list[int]
    pair: int
    cached: int


@dataclass
class Rules:
    """The service under test."""

    costs: Costs
    blocks: int
    replicas: int
    max_batch: int | None
    budget: int | None
    router: str
    reserve: str | None
    reserve_tokens: int
    watermark: float
    ttft_limit_ns: int
    tpot_limit_ns: int
    batch_wait: int = 0
    hash_tokens: int = 0
    affine_guard: int = 0
    clients: bool = False
    patience: int = FAR
    until: str = "first_token"
    attempts: int = 1
    backoff: int = 0
    jitter: int = 0
    max_queue: int = FAR
    max_outstanding: int = FAR
    max_ttft: int = FAR
    host_blocks: int = 0
    block_ns: int = 0
    drafts: int = 0
    acceptance: float = 0.0
    host_pieces: int = 0
    remote_pieces: int = 0
    host_piece_ns: int = 0
    remote_piece_ns: int = 0
    samples: int = 1


@dataclass(eq=False)
class Request:
    """One request and everything that ever happened to it."""

    index: int
    arrival: int
    prompt: int
    output: int
    luck: int
    hashes: tuple[int, ...] = ()
    shared: int = 0
    sent: int = 0
    first: int = -1
    last: int = -1
    finish: int = -1
    kv: int = 0
    redo: int = 0
    target: int = 0
    chunk: int = 0
    blocks: int = 0
    own_steps: int = 0
    decoding: bool = False
    caught: bool = False
    evictions: int = 0
    status: int = 0
    since: int = 0
    priority: int = 0
    cancel: int = FAR
    seed: int = 0
    attempt: int = 0
    deadline: int = FAR
    event: int = FAR
    leaving: int = 0
    away: bool = False
    order: int = 0
    turn_after: Request | None = None
    think: int = 0
    thinking: bool = False
    host: object = None
    host_kv: int = 0
    tail: int = 0
    ledger: Counter[str] = field(default_factory=Counter)

    def book(self, category: str, until: int) -> None:
        """The time since the last booking belongs to `category`."""
        self.ledger[category] += until - self.since
        self.since = until


@dataclass
class Pass:
    """A pass in flight."""

    start: int
    end: int
    healthy: int
    decodes: list[Request]
    prompts: list[Request]
    context: int
    extra: int = 0


@dataclass(eq=False)
class Replica:
    """One replica: who runs (in order of admission), who waits."""

    running: list[Request] = field(default_factory=list)
    queue: list[Request] = field(default_factory=list)
    flight: Pass | None = None
    boundary: int | None = None
    dead: bool = False
    believed: bool = True
    speed: Fraction = Fraction(1)
    blocked: bool = False
    places: int = 0
    prompt: int = 0
    steps: int = 0
    references: dict[int, int] = field(default_factory=dict)
    unused: list[int] = field(default_factory=list)
    extra: int = 0
    copied: int = 0
    host_pieces: list[int] = field(default_factory=list)
    remote_pieces: list[int] = field(default_factory=list)


class Naive:
    """The service, one boundary at a time."""

    acts = False
    """Whether users do something beside sending requests that are known."""

    def __init__(
        self, rules: Rules, requests: list[tuple[int, int, int, int]], hashes: list[tuple[int, ...]] | None = None
    ) -> None:
        self.rules = rules
        self.requests = [Request(k, *row) for k, row in enumerate(requests)]
        for request, numbers in zip(self.requests, hashes or [], strict=bool(hashes)):
            request.hashes = numbers[: request.prompt // rules.hash_tokens]
        self.ahead = list(self.requests)
        self.replicas = [Replica() for _ in range(rules.replicas)]
        self.room: list[Request] = []
        self.turn = -1
        self.now = self.arrived = 0
        self.last_arrival = requests[-1][0]
        self.gaps: Counter[int] = Counter()
        self.count: Counter[str] = Counter()

    # Blocks.

    def most_blocks(self, request: Request) -> int:
        """Blocks at the end, or all that a contiguous cache reserves."""
        return self.blocks_for_life(request.prompt, request.output)

    def blocks_for_life(self, prompt: int, output: int) -> int:
        """The same by lengths."""
        tokens = prompt + output - 1
        if self.rules.reserve == "max_model_len":
            tokens = max(tokens, self.rules.reserve_tokens)
        elif self.rules.reserve == "power_of_two":
            tokens = max(16, 1 << (tokens - 1).bit_length())
        return -(-tokens // 16)

    def free(self, replica: Replica) -> int:
        """Blocks that nobody holds: a piece that several refer to is held once."""
        unit = self.rules.hash_tokens // 16
        own = sum(request.blocks - unit * request.shared for request in replica.running)
        return (
            self.rules.blocks
            + self.tails_in_common(replica)
            - own
            - unit * sum(1 for count in replica.references.values() if count)
        )

    def tails_in_common(self, replica: Replica) -> int:
        """Blocks to copy before all who refer to one may write to it: only with samples."""
        return 0

    def copy_tails(self, replica: Replica) -> None:
        """From the pass that begins each has its own."""

    def joins(self, replica: Replica, request: Request, prompts: list[Request]) -> bool:
        """Whether the next request is a sample of a prompt that ends in the pass that begins."""
        return False

    def join(self, request: Request, other: Request) -> None:
        """It computes nothing, and shares the last block of the prompt."""
        raise AssertionError

    # Shared prefixes: numbers in the cache with how many refer to them, and those that nobody refers to, oldest first.

    def take_unused(self, replica: Replica) -> None:
        """Blocks that are held now are cached no more."""
        while replica.unused and self.rules.hash_tokens // 16 * len(replica.unused) > self.free(replica):
            number = replica.unused.pop(0)
            del replica.references[number]
            self.count["prefix_taken"] += 1
            self.demote(replica, number)

    def demote(self, replica: Replica, number: int) -> None:
        """Where a piece goes whose blocks are taken: only with tiers."""

    def finds(self, replica: Replica, number: int) -> bool:
        """Whether a piece is in the cache."""
        return number in replica.references

    def leading_run(self, replica: Replica, request: Request, target: int) -> list[int]:
        """The longest leading run in the cache; the last token is left to compute."""
        run: list[int] = []
        for number in request.hashes:
            if not self.finds(replica, number) or (len(run) + 1) * self.rules.hash_tokens > target - 1:
                break
            run.append(number)
        return run

    def reuse(self, replica: Replica, request: Request, run: list[int]) -> None:
        """Refer to a run at admission."""
        self.fetch(replica, run)
        for number in run:
            if replica.references[number] == 0 and number in replica.unused:
                replica.unused.remove(number)
            replica.references[number] += 1
        request.shared = len(run)
        request.kv = len(run) * self.rules.hash_tokens
        self.count["prefix_hits"] += len(run)
        self.count["prefix_hit_tokens"] += request.kv
        most = (request.target - 1) // self.rules.hash_tokens
        self.count["prefix_looked_for"] += max(len(run), min(len(request.hashes), most))

    def fetch(self, replica: Replica, run: list[int]) -> None:
        """Pieces of a run that lie below the cache come up: only with tiers."""

    def store(self, replica: Replica, request: Request) -> None:
        """Whole pieces at the end of the pass that begins can be found by others."""
        while request.shared < min(len(request.hashes), (request.kv + request.chunk) // self.rules.hash_tokens):
            number = request.hashes[request.shared]
            if number in replica.references:
                return
            replica.references[number] = 1
            request.shared += 1
            self.count["prefix_stored"] += 1

    def leave_prefix(self, replica: Replica, request: Request) -> None:
        """Refer to it no more, the last piece first."""
        for number in reversed(request.hashes[: request.shared]):
            replica.references[number] -= 1
            if replica.references[number] == 0:
                replica.unused.append(number)
        request.shared = 0

    # Time.

    def advance(self, until: int) -> None:
        """All boundaries and arrivals before `until`, in order of time; ends at `until` are committed."""
        while True:
            ends = [r.flight.end for r in self.replicas if r.flight is not None]
            opens = [r.boundary for r in self.replicas if r.boundary is not None]
            arrival = self.ahead[0].arrival if self.ahead else FAR
            end, start = min(ends, default=FAR), min(opens, default=FAR)
            acting = self.next_client()
            act = acting.event if acting is not None else FAR
            at = min(end, act, arrival, start)
            if at > until or (at == until and end != until) or at == FAR:
                break
            if end == at:
                for replica in self.replicas:
                    if replica.flight is not None and replica.flight.end == at:
                        self.end_pass(replica, replica.flight)
            elif acting is not None and act == at:
                self.client_acts(acting, at)
            elif arrival == at:
                self.arrive(self.ahead.pop(0))
            else:
                self.decide(next(replica for replica in self.replicas if replica.boundary == at), at)
        self.now = until

    def next_client(self) -> Request | None:
        """Whose client does something next; of one instant the first that arrived."""
        return min(
            (request for request in self.requests if self.acts and request.event < FAR),
            key=lambda request: (request.event, request.order),
            default=None,
        )

    def client_acts(self, request: Request, t: int) -> None:
        """A user has thought and sends the next turn."""
        assert request.thinking
        request.thinking, request.event = False, FAR
        if request.cancel < FAR:
            request.cancel += t - request.arrival
        request.arrival = t
        self.arrive(request)

    def end_turn(self, request: Request, t: int) -> None:
        """The request has left: its user thinks, and comes again while the window of arrivals is open."""
        turn = request.turn_after
        if turn is not None and t + turn.think <= self.last_arrival:
            turn.thinking, turn.event, turn.order = True, t + turn.think, request.order

    # Routing.

    def outstanding(self, replica: Replica) -> int:
        """Routed and unfinished."""
        return len(replica.running) + len(replica.queue)

    @property
    def central(self) -> bool:
        """Whether all replicas pull from one queue, the room."""
        return self.rules.router == "central"

    def queue_of(self, replica: Replica) -> list[Request]:
        """Where it takes its requests from."""
        return self.room if self.central else replica.queue

    def choose(self, request: Request) -> Replica | None:
        """By the router's rule, among replicas believed up."""
        if self.central:
            return None
        up = [k for k, replica in enumerate(self.replicas) if replica.believed]
        if not up:
            return None
        if self.rules.router == "random":
            return self.replicas[up[(request.luck * len(up)) >> 40]]
        if self.rules.router == "prefix_affine":
            fewest = min(self.outstanding(self.replicas[k]) for k in up)
            near = [k for k in up if self.outstanding(self.replicas[k]) <= fewest + self.rules.affine_guard]
            target = request.prompt + request.sent
            found = {k: len(self.leading_run(self.replicas[k], request, target)) for k in near}
            return self.replicas[min(near, key=lambda k: (-found[k], self.outstanding(self.replicas[k]), k))]
        if self.rules.router == "slo_aware":
            tokens = request.prompt + request.sent
            return min((self.replicas[k] for k in up), key=lambda replica: self.predicted(replica, tokens))
        if self.rules.router == "least_outstanding":
            return self.replicas[min(up, key=lambda k: (self.outstanding(self.replicas[k]), k))]
        self.turn = min(up, key=lambda k: (k - self.turn - 1) % len(self.replicas))
        return self.replicas[self.turn]

    def arrive(self, request: Request) -> None:
        """Refuse what can never run, route the rest."""
        request.order = self.arrived
        self.arrived += 1
        if request.prompt < 1 or request.output < 1:
            request.status = 4
            self.count["failed_rows"] += 1
            self.end_turn(request, request.arrival)
            return
        self.count["offered"] += 1
        request.since = request.arrival
        longest = self.rules.reserve_tokens if self.rules.reserve == "max_model_len" else float("inf")
        if request.prompt + request.output - 1 > longest or self.most_blocks(request) > self.rules.blocks:
            request.status = 3
            self.count["refused"] += 1
            self.end_turn(request, request.arrival)
            return
        self.send(request, request.arrival)

    def send(self, request: Request, t: int) -> None:
        """Route it."""
        self.wait_at(self.choose(request), request, t, by_age=False)

    def wait_at(self, replica: Replica | None, request: Request, t: int, by_age: bool) -> None:
        """Join a queue: at the end of its priority, or ahead of the first younger one there."""
        queue = self.room if replica is None else replica.queue
        later = [
            other.priority > request.priority
            or (by_age and other.priority == request.priority and other.order > request.order)
            for other in queue
        ]
        queue.insert([*later, True].index(True), request)
        if replica is None and self.central:
            request.caught = request.caught or all(each.dead for each in self.replicas)
            self.wake_idle(t)
        elif replica is None or replica.dead:
            request.caught = True
        elif replica.flight is None and (replica.boundary is None or replica.boundary > t):
            replica.boundary = t

    def wake_idle(self, t: int) -> None:
        """What waits in the central queue brings every idle replica to a boundary."""
        for each in self.replicas:
            if self.central and not each.dead and each.flight is None and (each.boundary is None or each.boundary > t):
                each.boundary = t

    def book_queue(self, replica: Replica, t: int) -> None:
        """Close the waits of a queue up to t."""
        if self.central:
            self.book_room(t)
        for request in replica.queue:
            request.book("kv_blocked" if replica.blocked else "router_queue", t)

    def book_room(self, t: int) -> None:
        """Close the waits in the router's room, or in the central queue."""
        alive = [replica for replica in self.replicas if not replica.dead]
        category = "no_replica_up"
        if self.central and alive:
            category = "kv_blocked" if any(replica.blocked for replica in alive) else "router_queue"
        for request in self.room:
            request.book(category, t)

    # A prediction.

    def decoding_now(self, replica: Replica) -> tuple[int, int]:
        """How many sequences decode, and the tokens that they read."""
        decodes = [request for request in replica.running if request.decoding]
        return len(decodes), sum(request.kv for request in decodes)

    def unfinished_prompts(self, replica: Replica) -> int:
        """Prompt tokens of those admitted that no pass has computed yet."""
        return sum(request.target - request.kv for request in replica.running if not request.decoding)

    def predicted(self, replica: Replica | None, prompt: int) -> int:
        """Time to first token in ns: passes with all that waits there, the last one not full."""
        if replica is None:
            return FAR
        costs, (decodes, context) = self.rules.costs, self.decoding_now(replica)
        total = 0
        steps = self.steps_to_place(replica)
        if steps is not None:
            decodes = max(1, decodes)
            step = sum(costs.decode[decodes]) + costs.kv[decodes] * context
            total = steps * step + costs.kv[decodes] * decodes * (steps * (steps - 1) // 2)
            context = context * (decodes - 1) // decodes
            decodes -= 1
        work = prompt + sum(request.prompt + request.sent for request in replica.queue)
        work += self.unfinished_prompts(replica)
        while work > 0:
            tokens = min(work, (self.rules.budget or FAR) - decodes)
            work -= tokens
            total += self.prefill_total(decodes + tokens) + costs.kv[decodes] * context
        return total

    def steps_to_place(self, replica: Replica) -> int | None:
        """Decode steps until there is one for a newcomer; None where there is."""
        places = min(self.rules.max_batch or FAR, self.rules.blocks * self.rules.samples)
        if len(replica.running) + len(replica.queue) < places:
            return None
        free = [request.output - request.sent - (not request.decoding) for request in replica.running]
        gone = 0
        for request in replica.queue:
            start = 0
            if len(free) == places:
                gone += 1
                if gone == 64:
                    return min(free) * (len(replica.running) + len(replica.queue) + 1 - places) // 64
                start = min(free)
                free.remove(start)
            free.append(start + request.output - request.sent - 1)
        return min(free)

    def prefill_total(self, tokens: int) -> int:
        """All parts of a pass; beyond the table in a straight line."""
        table = self.rules.costs.prefill
        last = len(table) - 1
        if tokens <= last:
            return sum(table[tokens])
        return sum(table[last]) + (tokens - last) * (sum(table[last]) - sum(table[last - 1]))

    # A boundary.

    def decide(self, replica: Replica, t: int) -> None:
        """Reserve, evict or admit, start."""
        rules = self.rules
        replica.boundary = None
        replica.extra = 0
        self.book_queue(replica, t)
        decodes = [request for request in replica.running if request.decoding]
        evicted = False
        while rules.reserve is None:
            need = sum(self.blocks_ahead(request, request.kv) - request.blocks for request in decodes)
            if need + self.tails_in_common(replica) <= self.free(replica):
                break
            victim = max(enumerate(replica.running), key=lambda each: (each[1].priority, each[0]))[1]
            replica.running.remove(victim)
            if not victim.decoding:
                victim.book("kv_blocked", t)
            else:
                decodes.remove(victim)
            self.leave_prefix(replica, victim)
            self.preempt(replica, victim)
            victim.evictions += 1
            self.count["evictions"] += 1
            queue = self.queue_of(replica)
            queue.insert([*(other.priority >= victim.priority for other in queue), True].index(True), victim)
            evicted = True
        self.copy_tails(replica)
        if rules.reserve is None:
            for request in decodes:
                request.blocks = self.blocks_ahead(request, request.kv)
        self.take_unused(replica)
        replica.blocked = evicted
        prompts = [] if evicted else self.admit(replica, t, len(decodes))
        decodes = [request for request in replica.running if request.decoding]
        if not decodes and not prompts:
            return
        self.start_pass(replica, t, decodes, prompts)
        if evicted:
            self.wake_idle(t)

    def blocks_ahead(self, request: Request, kv: int) -> int:
        """Blocks for all tokens that the next pass may add to `kv` tokens."""
        return -(-min(kv + 1 + self.rules.drafts, request.prompt + request.output - 1) // 16)

    def tokens_of(self, request: Request, flight: Pass) -> int:
        """Tokens of a decode in a pass: one without speculation."""
        return 1

    def preempt(self, replica: Replica, request: Request) -> None:
        """What becomes of the KV of the evicted."""
        self.drop(request)

    def is_held_back(self, replica: Replica, request: Request) -> bool:
        """Whether it may not be admitted with its prompt, though it heads the queue: only with swap."""
        return False

    def resume(self, replica: Replica, request: Request) -> None:
        """It is admitted with its prompt; with swap some of it may come back."""

    def drop(self, request: Request) -> None:
        """Its KV is gone."""
        request.redo = max(request.redo, request.kv)
        request.kv = request.chunk = request.blocks = request.tail = 0
        request.decoding = False

    def admit(self, replica: Replica, t: int, decodes: int) -> list[Request]:
        """The partial prompt first, then strict first come, first served."""
        rules = self.rules
        room = (rules.budget if rules.budget is not None else FAR) - decodes
        slots = rules.max_batch if rules.max_batch is not None else FAR
        prompts = []
        if replica.running and not replica.running[-1].decoding:
            partial = replica.running[-1]
            partial.book("kv_blocked", t)
            partial.chunk = min(room, partial.target - partial.kv)
            if rules.hash_tokens:
                self.store(replica, partial)
            room -= partial.chunk
            prompts.append(partial)
        queue = self.queue_of(replica)
        while queue and len(replica.running) < slots:
            request = queue[0]
            joins = self.joins(replica, request, prompts)
            if (room <= 0 and not joins) or self.is_held_back(replica, request):
                break
            target = request.prompt + request.sent
            blocks = -(-target // 16) if rules.reserve is None else self.most_blocks(request)
            shares = rules.hash_tokens > 0 and request.host is not replica
            run = self.leading_run(replica, request, target) if shares else []
            if joins:
                run, blocks = list(request.hashes), target // 16
            held = sum(1 for number in run if replica.references.get(number, 0))
            needed = blocks - held * (rules.hash_tokens // 16)
            spare = self.free(replica) - needed
            short = spare < 0 or (replica.running and spare < int(rules.watermark * rules.blocks))
            if needed and short:
                replica.blocked = True
                break
            queue.pop(0)
            replica.running.append(request)
            request.target, request.blocks, request.kv, request.tail = target, blocks, 0, 0
            if shares:
                self.reuse(replica, request, run)
            self.take_unused(replica)
            self.resume(replica, request)
            if joins:
                self.join(request, prompts[-1])
                prompts.append(request)
                continue
            request.chunk = min(room, target - request.kv)
            if rules.hash_tokens:
                self.store(replica, request)
            room -= request.chunk
            prompts.append(request)
        return prompts

    def start_pass(self, replica: Replica, t: int, decodes: list[Request], prompts: list[Request]) -> None:
        """The length of the pass."""
        costs = self.rules.costs
        tokens = len(decodes) + sum(request.chunk for request in prompts)
        parts = (costs.prefill if prompts else costs.decode)[tokens]
        context = sum(request.kv for request in decodes) + 32 * replica.copied
        healthy = sum(parts) + costs.kv[len(decodes)] * context
        computing = [request for request in prompts if request.chunk]
        healthy += sum(costs.pair * self.pairs(request) + costs.cached * request.kv for request in computing)
        end = t + self.stretched(replica, healthy) + replica.extra
        replica.flight = Pass(t, end, healthy, decodes, prompts, context, replica.extra)

    @staticmethod
    def stretched(replica: Replica, healthy: int) -> int:
        """A pass at the replica's speed, in whole ns."""
        duration = Fraction(healthy) / replica.speed
        assert duration.denominator == 1
        return int(duration)

    @staticmethod
    def pairs(request: Request) -> int:
        """(prompt token, earlier or same token) pairs of the chunk."""
        return sum(request.kv + k for k in range(1, request.chunk + 1))

    # The end of a pass.

    def end_pass(self, replica: Replica, flight: Pass) -> None:
        """Tokens appear; those that are complete leave."""
        costs, t = self.rules.costs, flight.end
        tokens = len(flight.decodes) + sum(request.chunk for request in flight.prompts)
        reads = costs.kv[len(flight.decodes)] * flight.context
        for request in flight.decodes:
            self.split_decode(request, flight, reads)
        pairs = sum(self.pairs(request) for request in flight.prompts)
        cached = sum(request.kv for request in flight.prompts if request.chunk)
        computing = None
        for request in flight.prompts:
            computing = request if request.chunk else computing
            assert computing is not None
            self.split_prompt(request, computing, flight, tokens, reads, pairs, cached)
        for request in sorted(flight.decodes, key=lambda request: request.order):
            for _ in range(self.tokens_of(request, flight)):
                request.kv += 1
                self.emit(request, t)
            if self.rules.drafts and self.rules.reserve is None and request.finish < 0:
                request.blocks = -(-request.kv // 16)
            if request.finish >= 0:
                self.leave_prefix(replica, request)
        for request in flight.prompts:
            self.count["recomputed_tokens"] += max(0, min(request.kv + request.chunk, request.redo) - request.kv)
            request.kv += request.chunk
            self.count["prompt_tokens"] += request.chunk
            request.chunk = 0
            request.since = t
            if request.kv == request.target:
                request.decoding = True
                request.redo = 0
                self.emit(request, t)
                if request.finish >= 0:
                    self.leave_prefix(replica, request)
        self.count["steps"] += 1
        replica.running = [request for request in replica.running if request.finish < 0]
        replica.flight = None
        replica.boundary = t

    def emit(self, request: Request, t: int) -> None:
        """One more token at t."""
        self.count["tokens"] += 1
        request.sent += 1
        request.since = t
        if request.first < 0:
            request.first = t
        else:
            self.gaps[t - request.last] += 1
        request.last = t
        if request.sent == request.output:
            request.finish, request.status, request.event = t, 1, FAR
            request.blocks = 0
            self.count["completed"] += 1
            self.end_turn(request, t)

    def split_decode(self, request: Request, flight: Pass, reads: int) -> None:
        """Ledger of one decode for one pass."""
        decodes, ledger = len(flight.decodes), request.ledger
        own = self.rules.costs.kv[decodes] * request.kv
        ledger["own_kv_reads"] += own
        ledger["others_kv_reads"] += reads - own
        ledger["swap"] += flight.extra
        ledger["degraded"] += flight.end - flight.start - flight.healthy - flight.extra
        parts = self.rules.costs.decode[decodes]
        alone = sum(parts) + reads
        if flight.prompts and flight.healthy < alone:
            left = flight.healthy - reads
            shorter = [int(left / (alone - reads) * part) for part in parts[:3]]
            parts, alone = [*shorter, left - sum(shorter)], flight.healthy
        for name, part in zip(("decode_compute", "weights", "collectives", "fixed"), parts, strict=True):
            ledger[name] += part
        ledger["interference"] += flight.healthy - alone

    def split_prompt(
        self, waiting: Request, request: Request, flight: Pass, tokens: int, reads: int, pairs: int, cached: int
    ) -> None:
        """Ledger of one who waits for one prompt (its own, but for samples) for one pass."""
        costs, ledger = self.rules.costs, waiting.ledger
        ledger["swap"] += flight.extra
        ledger["degraded"] += flight.end - flight.start - flight.healthy - flight.extra
        if request.kv < request.redo:
            ledger["recompute"] += flight.healthy
            return
        compute, weights, collectives, _ = costs.prefill[tokens]
        split = {
            "prefill_compute": compute * request.chunk // tokens + costs.pair * self.pairs(request),
            "weights": weights,
            "collectives": collectives,
            "own_kv_reads": costs.cached * request.kv,
            "others_kv_reads": reads + costs.cached * (cached - request.kv),
            "interference": compute * (tokens - request.chunk) // tokens + costs.pair * (pairs - self.pairs(request)),
        }
        split["fixed"] = flight.healthy - sum(split.values())
        ledger.update(split)

    # The machine.

    def lose(self, number: int, t: int) -> None:
        """The pass in flight is not delivered; requests stay."""
        self.advance(t)
        replica = self.replicas[number]
        if replica.dead:
            return
        self.count["losses"] += 1
        self.book_queue(replica, t)
        for request in replica.running:
            computed = request.decoding or request.chunk > 0 or request.kv == request.target
            in_flight = replica.flight is not None and computed
            request.book("recompute" if in_flight else "kv_blocked", t)
            self.count["kv_tokens_lost"] += request.kv
            request.shared = 0
            self.drop(request)
        replica.references, replica.unused = {}, []
        replica.queue = sorted(replica.running + replica.queue, key=lambda request: request.priority)
        for request in replica.queue:
            request.caught = True
        for request in [request for request in replica.queue if request.leaving]:
            replica.queue.remove(request)
            self.end_attempt(request, t, request.leaving)
        replica.running, replica.flight, replica.boundary = [], None, None
        replica.dead, replica.blocked = True, False

    def end_attempt(self, request: Request, t: int, reason: int) -> None:
        """Only with clients."""
        raise AssertionError

    def detect(self, number: int, t: int) -> None:
        """All return, in order of arrival."""
        self.advance(t)
        replica = self.replicas[number]
        replica.believed = False
        returned, replica.queue = sorted(replica.queue, key=lambda request: request.order), []
        for request in returned:
            request.book("undetected_dead_replica", t)
            self.wait_again(request, t)

    def wait_again(self, request: Request, t: int) -> None:
        """Routed anew: waits that were open where it goes are closed first, so that categories do not mix."""
        replica = self.choose(request)
        if self.central:
            self.book_room(t)
        elif replica is not None and not replica.dead:
            self.book_queue(replica, t)
        self.wait_at(replica, request, t, by_age=True)

    def up(self, number: int, t: int) -> None:
        """Back, empty, at full speed."""
        self.advance(t)
        replica = self.replicas[number]
        if not replica.dead:
            return
        if replica.believed:
            self.detect(number, t)
        self.book_room(t)
        replica.dead, replica.believed, replica.speed = False, True, Fraction(1)
        if self.central:
            self.wake_idle(t)
            return
        returned, self.room = sorted(self.room, key=lambda request: request.order), []
        for request in returned:
            request.book("no_replica_up", t)
            self.wait_again(request, t)

    def set_speed(self, number: int, speed: float, t: int) -> None:
        """From the first boundary at or after t."""
        self.advance(t)
        if not self.replicas[number].dead:
            self.replicas[number].speed = Fraction(speed)

    def finish(self, t: int) -> None:
        """Close what is open; the split of a pass that the horizon cuts is left to the kernel."""
        self.advance(t)
        self.book_room(t)
        for replica in self.replicas:
            if replica.dead:
                for request in replica.queue:
                    request.book("undetected_dead_replica", t)
            else:
                self.book_queue(replica, t)
        open_ones = [*self.room, *(request for r in self.replicas for request in [*r.queue, *r.running])]
        for request in open_ones:
            request.finish, request.status = t, 2
