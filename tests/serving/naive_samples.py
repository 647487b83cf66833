"""The slow reference for parallel samples: who refers to a tail is looked up among those that run."""

from __future__ import annotations

from collections import Counter

from tests.serving.naive import Naive, Replica, Request


class SampleNaive(Naive):
    """A sample right behind another of its prompt shares what that one computes; tails are copied in the next pass."""

    tails = 0
    routed: tuple[int, Replica | None] = (-1, None)

    def prompt_of(self, request: Request) -> int:
        """Number of its prompt."""
        return request.index // self.rules.samples

    def tails_in_common(self, replica: Replica) -> int:
        """All who refer to a tail, but one for each tail."""
        holders = Counter(request.tail for request in replica.running if request.tail)
        return sum(holders.values()) - len(holders)

    def copy_tails(self, replica: Replica) -> None:
        """From the pass that begins each has its own; those who only now come, later in it, keep theirs in common."""
        replica.copied = self.tails_in_common(replica)
        self.count["tail_copies"] += replica.copied
        for request in replica.running:
            request.tail = 0

    def joins(self, replica: Replica, request: Request, prompts: list[Request]) -> bool:
        """The one before it in the pass ends the same prompt, neither has a token, all whole pieces are there."""
        if not prompts or self.prompt_of(prompts[-1]) != self.prompt_of(request):
            return False
        other = prompts[-1]
        ends = other.kv + other.chunk == other.target
        fresh = other.sent == request.sent == 0 and request.host is not replica
        named = len(request.hashes) == request.prompt // 16
        return ends and fresh and named and all(self.finds(replica, number) for number in request.hashes)

    def join(self, request: Request, other: Request) -> None:
        """It has the prompt, and its last block where that is not full."""
        self.count["samples_joined"] += 1
        request.kv, request.blocks = request.target, -(-request.target // 16)
        if request.target % 16:
            if not other.tail:
                self.tails += 1
                other.tail = self.tails
            request.tail = other.tail

    def choose(self, request: Request) -> Replica | None:
        """Where another sample of its prompt went just before, while that is believed up."""
        prompt, replica = self.routed
        if prompt != self.prompt_of(request) or replica is None or not replica.believed:
            replica = super().choose(request)
        self.routed = (self.prompt_of(request), replica)
        return replica
