"""What a service delivered: counts, histograms and the waiting ledger of a window, mergeable by addition.

Definitions: measures page, sections 3 and 4. Percentiles come from histograms with bins narrower than 1 % (error at
most 0.5 %). Times of the ledger are whole nanoseconds and their sum is the time of all requests, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from workloads.serving import fields as f
from workloads.serving.logbins import mean_s, percentile_s

LEDGER_CATEGORIES = f.LEDGER
"""Categories of the waiting ledger of a request, in order."""
WAITING = ("no_replica_up", "undetected_dead_replica", "router_queue", "kv_blocked")
"""Categories in which a request waits and nothing is computed for it."""
NOISE_REQUESTS = 10
"""A queue of up to this many requests at the end is never called a backlog: at low load its time mean is near zero."""


class QueueVerdict(StrEnum):
    """State of the queue over a window."""

    STABLE = "stable"
    BACKLOGGED = "backlogged"
    OVERLOADED = "overloaded"


SEVERITY = (QueueVerdict.STABLE, QueueVerdict.BACKLOGGED, QueueVerdict.OVERLOADED)


@dataclass(frozen=True, kw_only=True)
class RequestRecord:
    """Per-request arrays of a small window, row by request in their order (times in ns; -1: did not happen).

    `status`: 0 still in the system, or (a turn of a session) not come yet, 1 completed, 2 unfinished at the horizon, 3
    refused (it can never run), 4 failed row (no prompt or no answer), 5 rejected by a limit of admission, 6 timed out,
    7 cancelled; the last of its `attempts` counts. `caught`: a loss found it on the replica, or it came to a dead one.
    `ledger_ns` (n, categories) sums to finish - arrival in each row.
    """

    arrival_ns: NDArray[np.int64]
    first_token_ns: NDArray[np.int64]
    finish_ns: NDArray[np.int64]
    tokens: NDArray[np.int64]
    replica: NDArray[np.int64]
    status: NDArray[np.int64]
    caught: NDArray[np.bool_]
    evictions: NDArray[np.int64]
    attempts: NDArray[np.int64]
    ledger_ns: NDArray[np.int64]

    @property
    def ttft_ns(self) -> NDArray[np.int64]:
        """Arrival to first token; -1 where no token came."""
        return np.where(self.first_token_ns >= 0, self.first_token_ns - self.arrival_ns, -1)


@dataclass(frozen=True, kw_only=True)
class ServiceMeasures:
    """Measures of one window, or of several after `+` (their sums and merged histograms).

    `totals` are the kernel's counts by name; `ttft`, `tpot`, `itl`, `end_to_end` are histograms (see `logbins`).
    `kv_bytes_per_token`: of a token in the cache, all copies; `piece_tokens`: of a shared piece of a prompt (0: none).
    `window_ns` is measured time, `replica_up_ns` the replicas' time up in it, `queue_end` requests waiting at its end.
    """

    totals: dict[str, int]
    histograms: NDArray[np.int64]
    ledger_ns: tuple[int, ...]
    caught_ledger_ns: tuple[int, ...]
    window_ns: int
    replica_up_ns: int
    kv_tokens_of_replica: int
    queue_end: int
    never_empty: bool
    saturated_requests_per_s: float | None
    kv_bytes_per_token: float = 0.0
    piece_tokens: int = 0
    verdicts: tuple[QueueVerdict, ...] = ()
    record: RequestRecord | None = field(default=None, repr=False)

    def __add__(self, other: ServiceMeasures) -> ServiceMeasures:
        """Measures of both windows together (per-request records are dropped)."""
        totals = {name: self.totals[name] + other.totals[name] for name in self.totals}
        for name in ("most_decodes", "most_blocks"):
            totals[name] = max(self.totals[name], other.totals[name])
        return replace(
            self,
            totals=totals,
            histograms=self.histograms + other.histograms,
            ledger_ns=tuple(a + b for a, b in zip(self.ledger_ns, other.ledger_ns, strict=True)),
            caught_ledger_ns=tuple(a + b for a, b in zip(self.caught_ledger_ns, other.caught_ledger_ns, strict=True)),
            window_ns=self.window_ns + other.window_ns,
            replica_up_ns=self.replica_up_ns + other.replica_up_ns,
            queue_end=self.queue_end + other.queue_end,
            never_empty=self.never_empty or other.never_empty,
            verdicts=self._verdicts() + other._verdicts(),
            record=None,
        )

    # Counts.

    def count(self, name: str) -> int:
        """A total by name: offered, completed, unfinished, refused, rejected, timed_out, cancelled, failed_rows, ...

        Offered requests end in exactly one of the first six ways. `attempts` counts what clients sent, of these
        `attempts_rejected` and `attempts_timed_out` ended so; tokens of attempts that were sent again are
        `discarded_tokens`. `answered` counts completed requests that came before the window too.
        """
        return self.totals[name]

    @property
    def offered(self) -> int:
        """Requests that arrived in the window (failed rows left out)."""
        return self.totals["offered"]

    @property
    def attainment(self) -> float:
        """Share of offered requests within both limits (refused and unfinished ones are missed); nan without any."""
        return _share(self.totals["in_time"], self.offered)

    @property
    def tokens_in_time(self) -> float:
        """Tokens of requests in time as a share of the tokens offered."""
        return _share(self.totals["in_time_tokens"], self.totals["offered_tokens"])

    @property
    def tokens_per_s(self) -> float:
        """Tokens delivered per second of the window."""
        return _share(self.totals["tokens"], self.window_ns) * 1e9

    @property
    def requests_per_s(self) -> float:
        """Answers completed per second of the window, those of requests that came before it too."""
        return _share(self.totals["answered"], self.window_ns) * 1e9

    # Latencies, in seconds.

    def ttft_s(self, share: float) -> float:
        """Time to first token that a share of offered, unrefused requests meets; censored ones count as infinite."""
        return percentile_s(self.histograms[f.H_TTFT], share, self.totals["censored_ttft"])

    def tpot_s(self, share: float) -> float:
        """Mean time per later token, over completed requests of two tokens or more."""
        return percentile_s(self.histograms[f.H_TPOT], share)

    def itl_s(self, share: float) -> float:
        """Gap between two deliveries of a request, over tokens, stalls included."""
        return percentile_s(self.histograms[f.H_ITL], share)

    def end_to_end_s(self, share: float) -> float:
        """Arrival to last token, over completed requests."""
        return percentile_s(self.histograms[f.H_END_TO_END], share)

    @property
    def ttft_mean_s(self) -> float:
        """Mean time to first token of those that got one."""
        return mean_s(self.histograms[f.H_TTFT])

    # Occupancy.

    @property
    def batch_mean(self) -> float:
        """Mean number of sequences in a pass, over busy time."""
        return _share(self.totals["batch_ms"] * 1_000_000, self.totals["busy_ns"])

    @property
    def busy_share(self) -> float:
        """Share of the replicas' time up in which a pass ran."""
        return _share(self.totals["busy_ns"], self.replica_up_ns)

    @property
    def kv_occupancy(self) -> float:
        """Mean share of the KV cache that holds tokens, over the replicas' time up.

        Tokens that requests share count for each of them: it can pass 1.
        """
        return _share(self.totals["kv_token_ms"] * 1_000_000, self.kv_tokens_of_replica * self.replica_up_ns)

    @property
    def kv_waste(self) -> dict[str, float]:
        """Shares of the KV memory taken over decode steps, adding up to 1: `used`, `reserved`, `internal`, `external`.

        Used holds a token; reserved waits for one that will come; internal is held by a request that never fills it;
        external is free and of no use to the request that waits for more. nan without `measure_waste`.
        """
        held, used = self.totals["kv_held_token_steps"], self.totals["kv_used_token_steps"]
        reserved, external = self.totals["kv_reserved_token_steps"], self.totals["kv_external_token_steps"]
        parts = {"used": used, "reserved": reserved, "internal": held - used - reserved, "external": external}
        return {name: _share(part, held + external) for name, part in parts.items()}

    @property
    def prefix_hit_share(self) -> float:
        """Of the whole pieces that admitted prompts looked for in the cache, the share found; nan without any."""
        return _share(self.totals["prefix_hits"], self.totals["prefix_looked_for"])

    def lower_hit_share(self, tier: str) -> float:
        """The share of them found in the tier `host` or `remote` (a part of `prefix_hit_share`)."""
        return _share(self.totals[f"{tier}_hits"], self.totals["prefix_looked_for"])

    @property
    def host_link_bytes_per_token(self) -> float:
        """Bytes of KV over the host links, both ways, per token delivered: swap, and prefixes that move down or up."""
        blocks = self.totals["swap_blocks_out"] + self.totals["swap_blocks_in"]
        pieces = sum(self.totals[name] for name in ("pieces_to_host", "host_hits", "remote_hits"))
        tokens = f.BLOCK_TOKENS * blocks + self.piece_tokens * pieces
        return _share(tokens, self.totals["tokens"]) * self.kv_bytes_per_token

    @property
    def remote_bytes_per_token(self) -> float:
        """Bytes of KV to and from the remote store, per token delivered."""
        pieces = self.totals["pieces_to_remote"] + self.totals["remote_hits"]
        return _share(self.piece_tokens * pieces, self.totals["tokens"]) * self.kv_bytes_per_token

    @property
    def drafts_accepted_share(self) -> float:
        """Of the tokens that were drafted, the share that was accepted; nan without any."""
        return _share(self.totals["accepted"], self.totals["drafted"])

    @property
    def samples_joined_share(self) -> float:
        """Of the requests offered, the share that computed nothing: another sample did, in the same pass."""
        return _share(self.totals["samples_joined"], self.offered)

    @property
    def copied_blocks_per_request(self) -> float:
        """Blocks copied where samples of a prompt part, per request offered."""
        return _share(self.totals["tail_copies"], self.offered)

    @property
    def host_full_share(self) -> float:
        """Of the evictions with KV to write to the host, the share that found it full; nan without any."""
        full = self.totals["host_full"]
        return _share(full, full + self.totals["swaps_out"])

    @property
    def replicas_up_mean(self) -> float:
        """Mean number of replicas up."""
        return _share(self.replica_up_ns, self.window_ns)

    @property
    def requests_in_system_mean(self) -> float:
        """Mean number of requests in the system, kept as an integral over time (Little's law is checked against it)."""
        return _share(self.totals["in_system_ns"], self.window_ns)

    # Ledger.

    @property
    def requests_in_ledger(self) -> int:
        """Requests whose time the ledger holds: all but those refused."""
        return self.offered - self.totals["refused"]

    def ledger_s_per_request(self, *, caught: bool = False) -> dict[str, float]:
        """Mean seconds of a request by category; `caught`: of those that a loss caught (nan without any)."""
        times = self.caught_ledger_ns if caught else self.ledger_ns
        requests = self.totals["caught"] if caught else self.requests_in_ledger
        return {name: _share(ns, requests) * 1e-9 for name, ns in zip(f.LEDGER, times, strict=True)}

    # Queue.

    @property
    def queue_mean(self) -> float:
        """Time mean of the number of requests that wait (for a pass, for blocks, for a replica)."""
        waiting = sum(ns for name, ns in zip(f.LEDGER, self.ledger_ns, strict=True) if name in WAITING)
        return _share(waiting, self.window_ns)

    @property
    def verdict(self) -> QueueVerdict:
        """The worst verdict among the windows."""
        return max(self._verdicts(), key=SEVERITY.index)

    def _verdicts(self) -> tuple[QueueVerdict, ...]:
        return self.verdicts or (self._own_verdict(),)

    def _own_verdict(self) -> QueueVerdict:
        arrivals_per_s = _share(self.offered, self.window_ns) * 1e9
        if self.saturated_requests_per_s is not None:
            if arrivals_per_s > self.saturated_requests_per_s * self.replicas_up_mean:
                return QueueVerdict.OVERLOADED
        elif self.never_empty and self.queue_end > max(self.offered // 5, NOISE_REQUESTS):
            return QueueVerdict.OVERLOADED
        if self.never_empty or self.queue_end > max(2 * self.queue_mean, NOISE_REQUESTS):
            return QueueVerdict.BACKLOGGED
        return QueueVerdict.STABLE


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
