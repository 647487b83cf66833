"""The slow reference for disaggregated serving: prefill replicas, decode replicas, one link each.

It shares no code with the kernel.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor

from tests.serving.naive import FAR, Naive, Pass, Replica, Request, Rules
from tests.serving.naive_clients import ClientNaive


class PoolNaive(Naive):
    """The first `prefills` replicas compute prompts; the others decode what has been moved to them."""

    def __init__(
        self,
        rules: Rules,
        requests: list[tuple[int, int, int, int]],
        hashes: list[tuple[int, ...]] | None,
        *,
        prefills: int,
        decode_blocks: int,
        per_token: Fraction,
        layers: int,
    ) -> None:
        super().__init__(rules, requests, hashes)
        self.prefills, self.decode_blocks = prefills, decode_blocks
        self.per_token, self.layers = per_token, layers
        self.source: dict[int, tuple[Replica, int]] = {}
        """By request: the prefill replica that holds its KV, and how many blocks."""
        self.began: dict[int, int] = {}
        """By request: when its prompt was admitted."""
        self.waited: set[int] = set()
        """Those handed over that had no place at some boundary since."""
        self.coming: dict[int, list[Request]] = {k: [] for k in range(rules.replicas)}
        self.join_at: dict[int, int] = {}
        self.idle = [[(0, FAR)] for _ in range(rules.replicas)]
        """By link: when it carries nothing, the last piece before what was taken last and all time after that."""
        self.carried: list[list[tuple[int, int]]] = [[] for _ in range(rules.replicas)]
        """By link: from when to when it carried something, piece by piece."""

    def number(self, replica: Replica) -> int:
        """Which replica it is."""
        return next(k for k, other in enumerate(self.replicas) if other is replica)

    def decodes(self, replica: Replica) -> bool:
        """Whether it is of the decode pool."""
        return self.number(replica) >= self.prefills

    def free(self, replica: Replica) -> int:
        """Blocks that nobody holds or has reserved."""
        if self.decodes(replica):
            held = [*replica.running, *self.coming[self.number(replica)]]
            return self.decode_blocks - sum(request.blocks for request in held)
        unit = self.rules.hash_tokens // 16
        held_for_others = sum(
            blocks - unit * self.requests[index].shared
            for index, (where, blocks) in self.source.items()
            if where is replica
        )
        return super().free(replica) - held_for_others

    def outstanding(self, replica: Replica) -> int:
        """Those on their way count where they go."""
        return super().outstanding(replica) + len(self.coming[self.number(replica)])

    def choose(self, request: Request) -> Replica | None:
        """The router knows the prefill replicas."""
        everyone, self.replicas = self.replicas, self.replicas[: self.prefills]
        chosen = super().choose(request)
        self.replicas = everyone
        return chosen

    def arrive(self, request: Request) -> None:
        """A request must fit both kinds of replica."""
        blocks, self.rules.blocks = self.rules.blocks, min(self.rules.blocks, self.decode_blocks)
        super().arrive(request)
        self.rules.blocks = blocks

    # Time.

    def steps_to_place(self, replica: Replica) -> int | None:
        """Places of prefill replicas are free when prompts are computed."""
        return None

    def advance(self, until: int) -> None:
        """Ends of passes, ends of transfers, arrivals, boundaries."""
        while True:
            ends = [r.flight.end for r in self.replicas if r.flight is not None]
            moves = [self.join_at[q.index] for each in self.coming.values() for q in each if q.index in self.source]
            opens = [r.boundary for r in self.replicas if r.boundary is not None]
            arrival = self.ahead[0].arrival if self.ahead else FAR
            end, start = min([*ends, *moves], default=FAR), min(opens, default=FAR)
            acting = self.next_client()
            act = acting.event if acting is not None else FAR
            at = min(end, act, arrival, start)
            if at > until or (at == until and end != until) or at == FAR:
                break
            if end == at:
                for replica in self.replicas:
                    if replica.flight is not None and replica.flight.end == at:
                        self.end_pass(replica, replica.flight)
                for k, each in self.coming.items():
                    for request in each:
                        if request.index in self.source and self.join_at[request.index] == at:
                            self.release(request, at)
                            self.call(self.replicas[k], at)
            elif acting is not None and act == at:
                self.client_acts(acting, at)
            elif arrival == at:
                self.arrive(self.ahead.pop(0))
            else:
                self.decide(next(replica for replica in self.replicas if replica.boundary == at), at)
        self.now = until

    @staticmethod
    def call(replica: Replica, t: int) -> None:
        """An idle replica looks at t; others look at their next boundary anyway."""
        if not replica.dead and replica.flight is None and replica.boundary is None:
            replica.boundary = t

    def release(self, request: Request, t: int) -> None:
        """Its blocks at the source are free."""
        replica, _ = self.source.pop(request.index)
        self.leave_prefix(replica, request)
        if replica.queue:
            self.call(replica, t)

    def give_up(self, request: Request, t: int) -> None:
        """What was computed is of no use any more."""
        self.count["kv_tokens_lost"] += request.kv
        self.drop(request)
        if request.index in self.source:
            self.release(request, t)

    # Prefill replicas.

    def admit(self, replica: Replica, t: int, decodes: int) -> list[Request]:
        """As ever; the prefill time counts from here."""
        before = set(map(id, replica.running))
        prompts = super().admit(replica, t, decodes)
        for request in replica.running:
            if id(request) not in before:
                self.began[request.index] = t
        return prompts

    def end_pass(self, replica: Replica, flight: Pass) -> None:
        """Prompts that are computed are handed over."""
        super().end_pass(replica, flight)
        if self.decodes(replica):
            return
        for request in [each for each in replica.running if each.decoding]:
            replica.running.remove(request)
            request.decoding = False
            self.source[request.index] = (replica, request.blocks)
            request.blocks = 0
            self.waited.discard(request.index)
            up = [k for k in range(self.prefills, len(self.replicas)) if self.replicas[k].believed]
            if not up:
                self.give_up(request, flight.end)
                self.wait_at(None, request, flight.end, by_age=False)
                continue
            target = self.replicas[min(up, key=lambda k: (self.outstanding(self.replicas[k]), k))]
            if not target.dead:
                self.book_queue(target, flight.end)
            self.wait_at(target, request, flight.end, by_age=False)

    # Decode replicas.

    def decide(self, replica: Replica, t: int) -> None:
        """Join, reserve, send back or begin transfers, go on."""
        if not self.decodes(replica):
            super().decide(replica, t)
            return
        number = self.number(replica)
        replica.boundary = None
        self.book_queue(replica, t)
        for request in [each for each in self.coming[number] if each.index not in self.source]:
            self.coming[number].remove(request)
            request.book("kv_transfer", t)
            request.decoding = True
            replica.running.append(request)
        replica.blocked = False
        while sum(1 for request in replica.running if request.kv % 16 == 0) > self.free(replica):
            victim = max(enumerate(replica.running), key=lambda each: (each[1].priority, each[0]))[1]
            replica.running.remove(victim)
            self.drop(victim)
            victim.evictions += 1
            self.count["evictions"] += 1
            replica.blocked = True
            self.wait_again(victim, t)
        for request in replica.running:
            request.blocks += request.kv % 16 == 0
        if not replica.blocked or not replica.running:
            replica.blocked = False
            self.begin_transfers(replica, number, t)
        self.waited |= {request.index for request in replica.queue}
        if replica.running:
            self.start_pass(replica, t, list(replica.running), [])

    def begin_transfers(self, replica: Replica, number: int, t: int) -> None:
        """Blocks first, then the links of both sides."""
        rules = self.rules
        slots = rules.max_batch if rules.max_batch is not None else FAR
        while replica.queue and len(replica.running) + len(self.coming[number]) < slots:
            request = replica.queue[0]
            blocks = -(-request.kv // 16)
            spare = self.free(replica) - blocks
            alone = not replica.running and not self.coming[number]
            if spare < 0 or (not alone and spare < int(rules.watermark * self.decode_blocks)):
                replica.blocked = True
                return
            replica.queue.pop(0)
            request.blocks = blocks
            links = (self.number(self.source[request.index][0]), number)
            self.join_at[request.index] = max(t + 1, self.carry(request, links, t))
            self.coming[number].append(request)

    def carry(self, request: Request, links: tuple[int, int], t: int) -> int:
        """Idle time of the prefill first, then all else when both links are free; return the end."""
        whole = floor(self.per_token * request.kv + Fraction(1, 2))
        last_layer = floor(self.per_token * request.kv / self.layers + Fraction(1, 2))
        since, until = (t, t) if request.index in self.waited else (self.began[request.index], request.last)
        pieces = [[(max(a, since), min(b, until)) for a, b in self.idle[k]] for k in links]
        idle = [sum(max(0, b - a) for a, b in each) for each in pieces]
        streamed = min(whole - last_layer, *idle)
        start = max(until, *(self.idle[k][-1][0] for k in links))
        end = start + whole - streamed
        for k, each in zip(links, pieces, strict=True):
            left = streamed
            for place, (a, b) in enumerate(each):
                taken = min(left, max(0, b - a))
                left -= taken
                if taken:
                    self.idle[k][place] = (a + taken, self.idle[k][place][1])
                    self.carried[k].append((a, a + taken))
            free = self.idle[k].pop()[0]
            self.idle[k] += [(free, start)] if free < start else []
            self.idle[k] = [*self.idle[k][-1:], (end, FAR)]
            self.carried[k].append((start, end))
        self.count["kv_transfers"] += 1
        self.count["kv_transfer_tokens"] += request.kv
        self.count["kv_transfer_ns"] += whole
        return end

    # The machine.

    def lose(self, number: int, t: int) -> None:
        """KV at either end is gone."""
        self.advance(t)
        replica = self.replicas[number]
        if replica.dead:
            return
        super().lose(number, t)
        self.carried[number] = [(a, min(b, t)) for a, b in self.carried[number] if a < t]
        if number >= self.prefills:
            self.give_up_waiting(replica, t)
            for request in self.coming[number]:
                request.book("kv_transfer", t)
                self.give_up(request, t)
                request.caught = True
            replica.queue += self.coming[number]
            self.coming[number] = []
            return
        for k in range(self.prefills, len(self.replicas)):
            other = self.replicas[k]
            stranded = [q for q in other.queue if self.source.get(q.index, (None, 0))[0] is replica]
            moving = [q for q in self.coming[k] if self.source.get(q.index, (None, 0))[0] is replica]
            if not other.dead:
                self.book_queue(other, t)
            for request in stranded:
                request.book("undetected_dead_replica", t)
            for request in moving:
                request.book("kv_transfer", t)
            for request in [*stranded, *moving]:
                del self.source[request.index]
                request.shared = 0
                self.give_up(request, t)
                request.caught = True
            replica.queue += [*stranded, *moving]
            other.queue = [q for q in other.queue if q not in stranded]
            self.coming[k] = [q for q in self.coming[k] if q not in moving]
            if other.queue:
                self.call(other, t)

    def up(self, number: int, t: int) -> None:
        """Its link is free from now on."""
        if self.replicas[number].dead:
            self.idle[number] = [(t, FAR)]
        super().up(number, t)

    def give_up_waiting(self, replica: Replica, t: int) -> None:
        """KV at the sources of those that wait here is given up."""
        for request in replica.queue:
            if request.index in self.source:
                self.give_up(request, t)

    def detect(self, number: int, t: int) -> None:
        """What was handed over to a dead replica is computed again too."""
        self.advance(t)
        if number >= self.prefills:
            self.give_up_waiting(self.replicas[number], t)
        super().detect(number, t)

    def finish(self, t: int) -> None:
        """Those on their way are open too."""
        self.advance(t)
        for request in [q for each in self.coming.values() for q in each]:
            request.book("kv_transfer", t)
            request.finish, request.status = t, 2
        super().finish(t)


class ClientPoolNaive(PoolNaive, ClientNaive):
    """With clients, who leave queues and links at once."""

    def quit(self, request: Request, t: int, reason: int) -> None:
        """What is on its way gives up both ends; what waits with KV at its source gives that up."""
        for number, coming in self.coming.items():
            if request in coming:
                coming.remove(request)
                request.book("kv_transfer", t)
                if request.index in self.source:
                    self.release(request, t)
                self.call(self.replicas[number], t)
                self.end_attempt(request, t, reason)
                return
        if request.index in self.source:
            self.release(request, t)
        waited_at = next((replica for replica in self.replicas if request in replica.queue), None)
        super().quit(request, t, reason)
        if waited_at is not None:
            self.call(waited_at, t)

    def stop(self, request: Request, t: int) -> None:
        """A prompt that was computed in its last pass waits elsewhere by now."""
        if any(request in replica.running for replica in self.replicas):
            super().stop(request, t)
            return
        reason, request.leaving = request.leaving, 0
        self.quit(request, t, reason)
