"""The slow reference for speculative decoding: drafts are accepted by the draw of (request, tokens sent)."""

from __future__ import annotations

from tests.serving.naive import Costs, Naive, Pass, Request, Rows
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

    rows = (len(large.decode) - 1) // (drafts + 1) + 1
    return Costs(
        decode=Rows(large.decode.table[:: drafts + 1][:rows] + drafts * small.decode.table[:rows]),
        prefill=Rows(large.prefill.table + small.prefill.table),
        kv=[ours + drafts * theirs for ours, theirs in zip(large.kv, small.kv, strict=True)],
        pair=large.pair + small.pair,
        cached=large.cached + small.cached,
    )
