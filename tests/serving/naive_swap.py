"""The slow reference for preemption by swap: blocks of the evicted lie at the host of a replica until it reads them."""

from __future__ import annotations

from tests.serving.naive import FAR, Naive, Replica, Request


class SwapNaive(Naive):
    """Evicted KV is written out while there is room, and read back when its request is next."""

    def host_used(self, replica: Replica) -> int:
        """Blocks that the host of a replica holds."""
        return sum(-(-request.host_kv // 16) for request in self.requests if request.host is replica)

    def move(self, replica: Replica, blocks: int, name: str) -> None:
        """Blocks go over the host link in the pass that begins."""
        taken = max(1, blocks * self.rules.block_ns)
        replica.extra += taken
        self.count["swap_ns"] += taken
        self.count[f"swaps_{name}"] += 1
        self.count[f"swap_blocks_{name}"] += blocks

    def preempt(self, replica: Replica, request: Request) -> None:
        """Write its blocks out; where the host is full it is computed again."""
        blocks, redo, kv = -(-request.kv // 16), request.redo, request.kv
        self.drop(request)
        if blocks and self.host_used(replica) + blocks <= self.rules.host_blocks:
            request.host, request.host_kv, request.redo = replica, kv, redo
            self.move(replica, blocks, "out")
        elif blocks:
            self.count["host_full"] += 1

    def is_answer(self, replica: Replica, request: Request) -> bool:
        """Whether the host of this replica has all that it needs to decode."""
        return request.host is replica and request.sent > 0 and request.host_kv == request.prompt + request.sent - 1

    def is_held_back(self, replica: Replica, request: Request) -> bool:
        """An answer is read back in a pass without prompts."""
        return self.is_answer(replica, request)

    def read(self, replica: Replica, request: Request) -> None:
        """All that the host has of it."""
        request.kv, request.host = request.host_kv, None
        self.move(replica, -(-request.kv // 16), "in")

    def resume(self, replica: Replica, request: Request) -> None:
        """A prompt goes on from where it was, on the replica where it was."""
        if request.host is replica:
            self.read(replica, request)
        elif request.host is not None:
            self.forget(request)

    @staticmethod
    def forget(request: Request) -> None:
        """Computed again."""
        request.redo, request.host = max(request.redo, request.host_kv), None

    def admit(self, replica: Replica, t: int, decodes: int) -> list[Request]:
        """Read answers back, or admit prompts."""
        rules, queue = self.rules, self.queue_of(replica)
        partial = replica.running and not replica.running[-1].decoding
        if partial or not queue or not self.is_answer(replica, queue[0]):
            return super().admit(replica, t, decodes)
        room = (rules.budget if rules.budget is not None else FAR) - decodes
        slots = rules.max_batch if rules.max_batch is not None else FAR
        while room > 0 and queue and len(replica.running) < slots and self.is_answer(replica, queue[0]):
            request = queue[0]
            blocks = self.blocks_ahead(request, request.host_kv)
            spare = self.free(replica) - blocks
            if spare < 0 or (replica.running and spare < int(rules.watermark * rules.blocks)):
                replica.blocked = True
                break
            queue.pop(0)
            replica.running.append(request)
            request.blocks, request.decoding = blocks, True
            self.take_unused(replica)
            self.read(replica, request)
            room -= 1
        return []

    def lose(self, number: int, t: int) -> None:
        """The host dies with the replica."""
        self.advance(t)
        replica = self.replicas[number]
        if not replica.dead:
            for request in self.queue_of(replica):
                if request.host is replica:
                    self.count["kv_tokens_lost"] += request.host_kv
                    request.caught = True
                    self.forget(request)
        super().lose(number, t)
