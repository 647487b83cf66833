"""The slow reference for speculative decoding: drafts are accepted by the draw of (request, tokens sent)."""

from __future__ import annotations

from tests.serving.naive import Costs, Naive, Pass, Request
from tests.serving.naive_clients import draw


class DraftNaive(Naive):
    """Passes without prompts give each decode one token and what is accepted of its drafts."""

    def tokens_of(self, request: Request, flight: Pass) -> int:
        """One more than are accepted, at most what is left."""
        if flight.prompts:
            return 1
        luck, chance, accepted = draw(request.seed, 17 + request.sent) / 2**32, self.rules.acceptance, 0
        while accepted < self.rules.drafts and luck < chance:
            accepted, chance = accepted + 1, chance * self.rules.acceptance
        self.count["drafted"] += self.rules.drafts
        self.count["accepted"] += accepted
        return min(1 + accepted, request.output - request.sent)


def drafted_costs(large: Costs, small: Costs, drafts: int) -> Costs:
    """What passes take: so many drafts one after the other, then all checked at once."""

    def both(ours: list[int], theirs: list[int], times: int) -> list[int]:
        return [one + times * other for one, other in zip(ours, theirs, strict=True)]

    rows = (len(large.decode) - 1) // (drafts + 1)
    return Costs(
        decode=[both(large.decode[n * (drafts + 1)], small.decode[n], drafts) for n in range(rows + 1)],
        prefill=[both(ours, theirs, 1) for ours, theirs in zip(large.prefill, small.prefill, strict=True)],
        kv=both(large.kv, small.kv, drafts),
        pair=large.pair + small.pair,
        cached=large.cached + small.cached,
    )
