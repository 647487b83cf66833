"""The slow reference for static batching: padded batches, formed when a replica is empty. It shares no code with the
kernel."""

from __future__ import annotations

from tests.serving.naive import Naive, Pass, Replica, Request


class StaticNaive(Naive):
    """A batch is an empty replica's choice from its queue; its members keep their places until the last one ends."""

    def blocks_of_member(self, batch: list[Request]) -> int:
        """Blocks of each member: the longest prompt and the longest rest of the answers, to the end."""
        prompt = max(request.prompt + request.sent for request in batch)
        rest = max(request.output - request.sent for request in batch)
        return self.blocks_for_life(prompt, rest)

    def decoding_now(self, replica: Replica) -> tuple[int, int]:
        """Every place decodes."""
        if not replica.running or not replica.running[0].decoding:
            return 0, 0
        return replica.places, replica.places * (replica.prompt + replica.steps)

    def steps_to_place(self, replica: Replica) -> int | None:
        """Places of a batch are not looked at."""
        return None

    def unfinished_prompts(self, replica: Replica) -> int:
        """Padded prompts in flight are not counted."""
        return 0

    def decide(self, replica: Replica, t: int) -> None:
        """Go on with the batch, or form the next one."""
        replica.boundary = None
        self.book_queue(replica, t)
        if replica.running:
            places, step = replica.places, replica.prompt + replica.steps
            self.start_padded(replica, t, list(replica.running), [], places, places * step)
            return
        queue, rules = self.queue_of(replica), self.rules
        most = rules.max_batch or 0
        replica.blocked = False
        if not queue:
            return
        ready = queue[0].arrival + rules.batch_wait
        if len(queue) < most and t < ready:
            replica.boundary = ready
            return
        batch: list[Request] = []
        while len(batch) < min(most, len(queue)):
            wider = queue[: len(batch) + 1]
            if len(wider) * self.blocks_of_member(wider) > rules.blocks:
                replica.blocked = True
                break
            batch = wider
        del queue[: len(batch)]
        replica.running = list(batch)
        replica.places, replica.steps = len(batch), 0
        replica.prompt = max(request.prompt + request.sent for request in batch)
        for request in batch:
            request.chunk = replica.prompt
            request.kv = 0
        self.start_padded(replica, t, [], batch, len(batch), 0)

    def start_padded(
        self, replica: Replica, t: int, decodes: list[Request], prompts: list[Request], places: int, context: int
    ) -> None:
        """The length of the pass counts every place."""
        costs = self.rules.costs
        if prompts:
            pairs = places * sum(range(1, replica.prompt + 1))
            healthy = sum(costs.prefill[places * replica.prompt]) + costs.pair * pairs
        else:
            healthy = sum(costs.decode[places]) + costs.kv[places] * context
        replica.flight = Pass(t, t + self.stretched(replica, healthy), healthy, decodes, prompts, context)

    def end_pass(self, replica: Replica, flight: Pass) -> None:
        """Members get their tokens; places of those that ended get padding."""
        t, places = flight.end, replica.places
        tokens, pairs = places * replica.prompt, places * sum(range(1, replica.prompt + 1))
        for request in flight.prompts:
            self.split_prompt(request, request, flight, tokens, 0, pairs, 0)
            self.count["recomputed_tokens"] += request.redo
            self.count["prompt_tokens"] += request.prompt + request.sent
            self.count["padded_tokens"] += replica.prompt - request.prompt - request.sent
            request.kv, request.chunk, request.redo = request.prompt + request.sent, 0, 0
            request.decoding = True
        for request in flight.decodes:
            self.split_padded(request, replica, flight)
            request.kv += 1
        if flight.decodes:
            replica.steps += 1
            self.count["padded_tokens"] += places - len(flight.decodes)
        for request in [*flight.prompts, *flight.decodes]:
            self.emit(request, t)
        self.count["steps"] += 1
        replica.running = [request for request in replica.running if request.finish < 0]
        replica.flight, replica.boundary = None, t

    def split_padded(self, request: Request, replica: Replica, flight: Pass) -> None:
        """Ledger of one member for one decode step: its own reads are those of a padded sequence."""
        costs, ledger, places = self.rules.costs, request.ledger, replica.places
        own = costs.kv[places] * (replica.prompt + replica.steps)
        ledger["own_kv_reads"] += own
        ledger["others_kv_reads"] += (places - 1) * own
        ledger["degraded"] += flight.end - flight.start - flight.healthy
        for name, part in zip(("decode_compute", "weights", "collectives", "fixed"), costs.decode[places], strict=True):
            ledger[name] += part
