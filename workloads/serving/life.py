"""The life of one request, token by token: when each token came, in what company, and where the time before it went."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workloads.serving import fields as f
from workloads.serving.pass_log import EndedPass, ended_passes, ledger_now_ns
from workloads.serving.service import Service

REASONS = (
    ("replica lost", (f.L_NO_REPLICA, f.L_DEAD)),
    ("sent again", (f.L_BACKOFF,)),
    ("computed again", (f.L_RECOMPUTE,)),
    ("cache swapped", (f.L_SWAP,)),
    ("no room for its cache", (f.L_KV_BLOCKED,)),
    ("queue", (f.L_QUEUE,)),
    ("cache moved", (f.L_TRANSFER,)),
    ("prompts of others", (f.L_INTERFERENCE,)),
    ("slow replica", (f.L_DEGRADED,)),
)
"""Why a token took longer than a plain step, by categories of the ledger; the one with most time is told."""
PLAIN_STEP, PROMPT = "step", "prompt"


@dataclass(frozen=True, kw_only=True)
class TokenStory:
    """One token of a request, or its end without one (`number` None). Times in ns, `at_ns` since its arrival.

    `sequences` decoded in the pass that made it, beside `prompt_tokens` of prompts (its own for the first token).
    `ledger_ns` (categories,) adds up to the time since the token before it, or since its arrival.
    """

    number: int | None
    at_ns: int
    gap_ns: int
    replica: int
    sequences: int
    prompt_tokens: int
    ledger_ns: NDArray[np.int64]

    @property
    def reason(self) -> str:
        """What made it late, `prompt` for a first token that nothing delayed, `step` for a plain step."""
        times_ns = {words: int(self.ledger_ns[list(categories)].sum()) for words, categories in REASONS}
        longest = max(times_ns, key=times_ns.__getitem__)
        if times_ns[longest] > 0:
            return longest
        return PROMPT if self.number == 1 else PLAIN_STEP


def life_of(service: Service, request: int) -> tuple[TokenStory, ...]:
    """Run a fresh service until its request number `request` has left, and tell its tokens.

    The request must be among those recorded; of one that never leaves, or that never entered, nothing is told.
    """
    if request >= service.config.record_requests:
        raise ValueError(f"request {request} is not among the {service.config.record_requests} that are recorded")
    told: list[TokenStory] = []
    spent = np.zeros(f.LEDGER_SIZE, dtype=np.int64)
    for ended in ended_passes(service, f.FOREVER):
        row = _row(service, request)
        place = np.flatnonzero(ended.requests == request)
        for k in place.tolist():  # several tokens of a pass: the first one's gap has all the time
            gone = row[f.X_STATUS] != 0
            ledger = row[f.X_LEDGER :] if gone else ledger_now_ns(service._state, ended.replica, int(ended.slots[k]))
            told.append(_token(ended, int(ended.numbers[k]), int(row[f.X_ARRIVAL]), ledger - spent, told))
            spent = ledger.copy()
        if row[f.X_STATUS]:
            break
    row = _row(service, request)
    if row[f.X_STATUS] not in (0, f.COMPLETED, f.REFUSED, f.FAILED_ROW):
        told.append(_end(row, spent, told))
    return tuple(told)


def _row(service: Service, request: int) -> NDArray[np.int64]:
    """What is recorded of the request; zeros before it is known."""
    record = service._state.record
    return record[request] if request < record.shape[0] else np.zeros(f.RECORD_SIZE, dtype=np.int64)


def _token(
    ended: EndedPass, number: int, arrival_ns: int, ledger_ns: NDArray[np.int64], told: list[TokenStory]
) -> TokenStory:
    at_ns = ended.end_ns - arrival_ns
    return TokenStory(
        number=number,
        at_ns=at_ns,
        gap_ns=at_ns - (told[-1].at_ns if told else 0),
        replica=ended.replica,
        sequences=ended.decodes,
        prompt_tokens=ended.prompt_tokens,
        ledger_ns=ledger_ns,
    )


def _end(row: NDArray[np.int64], spent: NDArray[np.int64], told: list[TokenStory]) -> TokenStory:
    """A request leaves without its last token."""
    at_ns = int(row[f.X_FINISH] - row[f.X_ARRIVAL])
    return TokenStory(
        number=None,
        at_ns=at_ns,
        gap_ns=at_ns - (told[-1].at_ns if told else 0),
        replica=int(row[f.X_REPLICA]),
        sequences=0,
        prompt_tokens=0,
        ledger_ns=row[f.X_LEDGER :] - spent,
    )
