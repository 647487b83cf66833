"""Bytes by memory level of a stretch of serving: summed over its passes, each with what it carried.

A pass with prompt tokens reads weights once, the context of its decodes, its chunks' own keys and values once, and what
earlier chunks left in the cache; attention within a chunk counts as over a prompt of its length. A block that is
copied, where samples of a prompt part, is read and written once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from workloads.costs.layouts import Layout
from workloads.costs.naive_attention import score_bytes_per_pair
from workloads.costs.replica import ReplicaCosts, Tokens
from workloads.costs.traffic import Work, prompt_attention_bytes, traffic_of_work
from workloads.serving.fields import BLOCK_TOKENS
from workloads.serving.pass_log import EndedPass

Totals = dict[str, dict[str, float]]
"""Bytes by level and kind, over all chips of a replica."""


@dataclass(frozen=True, kw_only=True)
class ServedTraffic:
    """A stretch of serving: its passes, the tokens that they made, the time that they took, bytes by level and kind.

    `sequence_steps` and `context_tokens` are sums over passes: sequences that decoded, tokens of cache that they read.
    """

    passes: int
    tokens: int
    busy_s: float
    sequence_steps: int
    context_tokens: int
    bytes: Totals

    @property
    def batch_mean(self) -> float:
        """Sequences that decode in a pass."""
        return self.sequence_steps / self.passes

    @property
    def context_mean(self) -> float:
        """Tokens of cache that a decoding sequence reads; nan without any."""
        return self.context_tokens / self.sequence_steps if self.sequence_steps else float("nan")

    def bytes_per_token(self, level: str) -> float:
        """Bytes of a level, of all kinds, per token that was made."""
        return sum(self.bytes.get(level, {}).values()) / self.tokens


def traffic_of_passes(
    replica: ReplicaCosts,
    layout: Layout,
    prefill_layout: Layout | None,
    passes: Sequence[EndedPass],
    *,
    naive_attention: bool = False,
) -> ServedTraffic:
    """Sum the traffic of passes; `prefill_layout` None: with prompts the fastest of each, as in the cost tables."""
    if naive_attention:
        replica = replace(replica, constants=replace(replica.constants, tiled_attention=False))
    total: Totals = {}
    plain = [each for each in passes if not each.chunks]
    mixed = [each for each in passes if each.chunks]
    if plain:
        _add(total, replica, layout, plain, prompt=False, naive=naive_attention)
    if mixed:
        tokens = np.array([each.decodes + each.prompt_tokens for each in mixed], dtype=np.int64)
        choices = tuple(Layout) if prefill_layout is None else (prefill_layout,)
        times = np.stack([replica.parts_s(choice, tokens, prompt=True).sum(axis=-1) for choice in choices])
        best = np.argmin(times, axis=0)
        for place, choice in enumerate(choices):
            chosen = [each for each, at in zip(mixed, best.tolist(), strict=True) if at == place]
            if chosen:
                _add(total, replica, choice, chosen, prompt=True, naive=naive_attention)
    return ServedTraffic(
        passes=len(passes),
        tokens=sum(each.requests.size for each in passes),
        busy_s=sum(each.end_ns - each.begin_ns for each in passes) * 1e-9,
        sequence_steps=sum(each.decodes for each in passes),
        context_tokens=sum(each.context_tokens for each in passes),
        bytes=total,
    )


def _add(
    total: Totals, replica: ReplicaCosts, layout: Layout, passes: Sequence[EndedPass], *, prompt: bool, naive: bool
) -> None:
    traffic = traffic_of_work(replica, layout, _work(replica, passes, prompt=prompt, naive=naive), prompt=prompt)
    for level, kinds in traffic.items():
        mine = total.setdefault(level, {})
        for kind, value in kinds.items():
            mine[kind] = mine.get(kind, 0.0) + float(value.sum())


def _work(replica: ReplicaCosts, passes: Sequence[EndedPass], *, prompt: bool, naive: bool) -> Work:
    """What the passes carry, one entry each."""
    tokens = _counts([each.decodes + each.prompt_tokens for each in passes])
    made = _counts([each.requests.size for each in passes])
    context = _counts([each.context_tokens for each in passes]).astype(np.float64)
    chunks = _counts([each.prompt_tokens + each.cached_tokens for each in passes]).astype(np.float64)
    copied = _counts([BLOCK_TOKENS * each.copied_blocks for each in passes]).astype(np.float64)
    scores = score_bytes_per_pair(replica) * context if naive else np.zeros(tokens.shape)
    return Work(
        tokens=tokens,
        logits=tokens if prompt and replica.constants.all_logits else made,
        sequences=made,
        cache_reads=context + chunks + copied,
        near_reads=context * replica.kv_reads_per_value + chunks + copied,
        copied=copied,
        attention_bytes=scores + np.array([_over_chunks(replica, each.chunks) for each in passes]),
    )


def _over_chunks(replica: ReplicaCosts, chunks: tuple[int, ...]) -> float:
    if not chunks:
        return 0.0
    lengths = np.array(chunks, dtype=np.int64)
    return float(prompt_attention_bytes(replica, np.ones_like(lengths), lengths).sum())


def _counts(values: list[int]) -> Tokens:
    return np.array(values, dtype=np.int64)
