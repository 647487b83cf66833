"""One pass in full: seconds by part, the bounds around them, what binds, MFU, bytes by level and kind.

Decode: one step of `batch` sequences that each read `context` tokens. Prefill: the whole prompt of `context` tokens of
each of `batch` sequences. All functions broadcast over batch and context.

A pipeline of s stages sends m micro-batches through: (m + s - 1) / s passes of a micro-batch, and as many sends less
one. Micro-batches follow FasterTransformer (nccl_utils.cc): a batch that s divides is split s ways, then halved while a
part carries more tokens than the stack's limit and is even. So a batch that s does not divide may go through whole, one
stage after the other, and take longer than a larger one that it does.

Prompts where weights are gathered. A batch is split by tokens (attention then moves them to the chips of their heads
and back) or by prompts, as Pope et al. do (attention sharded over batch): a prompt stays with one copy of the weights,
and a batch that the copies do not divide leaves some of them idle. The faster of both counts.

Bounds. Lower: all parts overlapped, every chip at the catalogue's peaks, collectives at full rate and the chip's own
time of a hop. Upper: all parts one after the other, at the stack's shares. MFU as Pope et al. define it: 2 N tokens /
(time x chips x peak), N the nominal parameters that a token meets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workloads.catalogue.model import BF16_BYTES, Part
from workloads.collectives import network_rate, sends_between_nodes
from workloads.costs.layouts import Layout
from workloads.costs.replica import PassPart, ReplicaCosts, Tokens
from workloads.costs.traffic import Bytes, times, traffic_of_pass
from workloads.costs.transfers import Floats, hops_of


class Phase(StrEnum):
    """Which kind of pass."""

    PREFILL = "prefill"
    DECODE = "decode"


PARTS_OF_PASS = (*(part.value for part in PassPart), "kv_read", "attention", "sends")
"""Keys of the breakdown: parts of the tokens, reads of the cache, attention over prompts, sends between stages."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PassCost:
    """Cost of passes; every array has the common shape of batch and context.

    `mfu` counts two operations per parameter and token, all parameters, as Pope et al. define it: embeddings too, which
    no prompt is multiplied with but for its last token (for a model that is mostly embeddings it can pass 1 for that).
    `bytes`: by level (`hbm`, `ici` or `nvlink`, `network`, `host_link`, on-chip memories by name) and kind (`weights`,
    `kv_read`, `kv_written`, `activations`), over all chips of the replica.
    """

    seconds: Floats
    lower_bound_s: Floats
    upper_bound_s: Floats
    binds: NDArray[np.str_]
    mfu: Floats
    breakdown_s: dict[str, Floats]
    bytes: Bytes


class MicroBatches(NamedTuple):
    """Sequences of a micro-batch, how many of them, and how many passes of one the whole pass takes."""

    sequences: Tokens
    parts: Tokens
    passes: Floats


def pass_cost(
    replica: ReplicaCosts,
    phase: Phase,
    batch: ArrayLike,
    context: ArrayLike,
    layout: Layout = Layout.WEIGHT_STATIONARY_2D,
    stages: int = 1,
) -> PassCost:
    """Cost of one pass of `batch` sequences at `context` tokens each (arrays broadcast) on a replica of stages."""
    found = _pass_cost(replica, phase, batch, context, layout, stages)
    if not _may_stay_whole(phase, layout):
        return found
    whole, padded = _whole(replica, batch, layout)
    idle = _pass_cost(whole, phase, padded, context, layout, stages)
    own = _pass_cost(whole, phase, batch, context, layout, stages)
    working = np.asarray(batch) / padded
    least = np.minimum(own.lower_bound_s, idle.lower_bound_s)  # stages may cut the two into other micro-batches
    by_prompt = replace(idle, lower_bound_s=least, mfu=idle.mfu * working, bytes=own.bytes)
    return _either(by_prompt.seconds < found.seconds, by_prompt, found)


def _may_stay_whole(phase: Phase, layout: Layout) -> bool:
    return phase is Phase.PREFILL and layout.gathered_axes > 0


def _whole(replica: ReplicaCosts, batch: ArrayLike, layout: Layout) -> tuple[ReplicaCosts, Tokens]:
    """The replica with whole prompts, and the batch filled up to as many for each copy of the weights."""
    copies = replica.copies(layout)
    return replace(replica, whole_prompts=True), -(-np.asarray(batch, np.int64) // copies) * copies


def _either(choose: NDArray[np.bool_], first: PassCost, second: PassCost) -> PassCost:
    """The passes of `first` where chosen, else those of `second`."""

    def of(one: Floats, other: Floats) -> Floats:
        return np.where(choose, one, other)

    return PassCost(
        seconds=of(first.seconds, second.seconds),
        lower_bound_s=of(first.lower_bound_s, second.lower_bound_s),
        upper_bound_s=of(first.upper_bound_s, second.upper_bound_s),
        binds=np.where(choose, first.binds, second.binds),
        mfu=of(first.mfu, second.mfu),
        breakdown_s={part: of(first.breakdown_s[part], seconds) for part, seconds in second.breakdown_s.items()},
        bytes={
            level: {kind: of(first.bytes[level][kind], value) for kind, value in kinds.items()}
            for level, kinds in second.bytes.items()
        },
    )


def _pass_cost(
    replica: ReplicaCosts, phase: Phase, batch: ArrayLike, context: ArrayLike, layout: Layout, stages: int
) -> PassCost:
    sequences, length = _checked(phase, batch, context)
    micro = micro_batches(sequences, length if phase is Phase.PREFILL else np.ones_like(length), stages, replica)
    parts = _parts(replica, phase, micro, length, layout, stages)
    ideal, serial = _bounds(replica, phase, micro.sequences, length, layout)
    seconds = np.asarray(sum(parts.values()))
    names, stacked = np.array(list(parts)), np.stack(list(parts.values()))
    tokens = sequences * (length if phase is Phase.PREFILL else 1)
    model, chips = replica.model, replica.chips * stages
    idle = sum(each.parameters - each.active_parameters for each in model.matrices)
    flops = 2.0 * (model.parameters - idle) * tokens
    knees = parts[PassPart.COMPUTE] + parts[PassPart.WEIGHTS]
    return PassCost(
        seconds=seconds,
        lower_bound_s=ideal * micro.passes,
        upper_bound_s=seconds - knees + serial * micro.passes,
        binds=names[np.argmax(stacked, axis=0)],
        mfu=flops / (seconds * chips * replica.chip.peak_flops_per_s),
        breakdown_s=parts,
        bytes=_bytes(replica, phase, micro, length, layout, stages),
    )


def pass_seconds(
    replica: ReplicaCosts,
    phase: Phase,
    batch: ArrayLike,
    context: ArrayLike,
    layout: Layout = Layout.WEIGHT_STATIONARY_2D,
    stages: int = 1,
) -> Floats:
    """The seconds of `pass_cost` alone."""
    found = _pass_seconds(replica, phase, batch, context, layout, stages)
    if not _may_stay_whole(phase, layout):
        return found
    whole, padded = _whole(replica, batch, layout)
    return np.minimum(found, _pass_seconds(whole, phase, padded, context, layout, stages))


def _pass_seconds(
    replica: ReplicaCosts, phase: Phase, batch: ArrayLike, context: ArrayLike, layout: Layout, stages: int
) -> Floats:
    sequences, length = _checked(phase, batch, context)
    micro = micro_batches(sequences, length if phase is Phase.PREFILL else np.ones_like(length), stages, replica)
    return np.asarray(sum(_parts(replica, phase, micro, length, layout, stages).values()))


def _checked(phase: Phase, batch: ArrayLike, context: ArrayLike) -> tuple[Tokens, Tokens]:
    sequences, length = np.broadcast_arrays(np.asarray(batch, np.int64), np.asarray(context, np.int64))
    if sequences.size and (sequences.min() < 1 or length.min() < (1 if phase is Phase.PREFILL else 0)):
        raise ValueError("a pass needs at least 1 sequence, and a prefill at least 1 token")
    return sequences, length


def micro_batches(sequences: Tokens, tokens_each: Tokens, stages: int, replica: ReplicaCosts) -> MicroBatches:
    """How a batch goes through the stages; see the module's text."""
    if stages == 1:
        ones = np.ones_like(sequences)
        return MicroBatches(sequences, ones, ones.astype(np.float64))
    part = np.where(sequences % stages == 0, sequences // stages, sequences)
    limit = replica.constants.micro_batch_tokens
    while np.any(more := (part * tokens_each > limit) & (part % 2 == 0)):
        part = np.where(more, part // 2, part)
    count = sequences // part
    return MicroBatches(part, count, (count + stages - 1) / stages)


def _parts(
    replica: ReplicaCosts, phase: Phase, micro: MicroBatches, length: Tokens, layout: Layout, stages: int
) -> dict[str, Floats]:
    """Seconds by part of the whole pass."""
    prompt, sequences = phase is Phase.PREFILL, micro.sequences
    tokens = np.asarray(sequences * length if prompt else sequences)
    by_part = replica.breakdown_s(layout, tokens, prompt=prompt, sequences=sequences)
    parts = {part.value: seconds * micro.passes for part, seconds in by_part.items()}
    zero = np.zeros(tokens.shape)
    reads = replica.kv_read_s_per_token(tokens) * sequences * attended_tokens(replica, length)
    parts["kv_read"] = zero if prompt else reads * micro.passes
    pairs = sequences * prompt_pairs(replica, length) * micro.passes
    parts["attention"] = replica.prefill_pair_s() * pairs if prompt else zero
    parts["sends"] = _sends_s(replica, phase, micro, length, stages)
    return parts


def _bounds(
    replica: ReplicaCosts, phase: Phase, sequences: Tokens, length: Tokens, layout: Layout
) -> tuple[Floats, Floats]:
    """Of one pass through all layers: seconds with all overlapped at the peaks; computing, then reading weights."""
    prompt, constants, chip = phase is Phase.PREFILL, replica.constants, replica.chip
    tokens = np.asarray(sequences * length if prompt else sequences)
    logits = tokens if prompt and constants.all_logits else sequences
    compute, memory, serial = (np.zeros(tokens.shape) for _ in range(3))
    for matrix in replica.model.matrices:
        rows = logits if matrix.part is Part.EMBEDDING else tokens
        read = replica.read_s(matrix, rows)
        compute, memory = compute + replica.compute_s(matrix, rows), memory + read
        padded = replica.compute_s(matrix, replica.padded(layout, rows))
        serial = serial + padded / constants.matmul_efficiency + read / constants.hbm_efficiency
    if prompt:
        causal = prompt_pairs(replica, length)
        if not constants.tiled_attention:
            causal = causal * (length + 1) / (2 * length)
        compute = compute + replica.prefill_pair_s() * constants.attention_efficiency * sequences * causal
    else:
        read_tokens = sequences * attended_tokens(replica, length)
        memory = memory + replica.kv_bytes_per_chip(tokens) * read_tokens / chip.hbm_bytes_per_s
        compute = compute + replica.decode_pair_s(tokens) * read_tokens
    transfers = replica.transfers(layout, tokens, prompt=prompt)
    wire = compute * 0.0 + sum(each.bandwidth_s(chip) for each in transfers)
    hops_s = max((each.floor_s(chip) for each in transfers), default=0.0)
    return np.maximum.reduce([compute, memory, wire, np.full(tokens.shape, hops_s)]), serial


def attended_tokens(replica: ReplicaCosts, length: Tokens) -> Floats:
    """Tokens that the mean layer reads of a context of `length`: layers with a sliding window at most their window."""
    window = replica.model.window
    if window is None:
        return np.asarray(length, dtype=np.float64)
    local = window.layers / replica.model.layers
    return np.asarray((1.0 - local) * length + local * np.minimum(length, window.tokens))


def context_of_attended(replica: ReplicaCosts, attended: float) -> float:
    """The context whose mean layer reads `attended` tokens: `attended_tokens` backwards."""
    window = replica.model.window
    if window is None or attended <= window.tokens:
        return attended
    local = window.layers / replica.model.layers
    return (attended - local * window.tokens) / (1.0 - local) if local < 1.0 else np.inf


def prompt_pairs(replica: ReplicaCosts, length: Tokens) -> Floats:
    """(query, key) pairs of a prompt of `length` tokens, the mean over layers; all of them where attention is naive."""
    whole = np.asarray(length, dtype=np.float64)
    if not replica.constants.tiled_attention:
        return whole**2
    pairs = whole * (whole + 1) / 2
    window = replica.model.window
    if window is None:
        return pairs
    local, width = window.layers / replica.model.layers, np.minimum(whole, window.tokens)
    return np.asarray((1.0 - local) * pairs + local * (width * (width + 1) / 2 + (whole - width) * width))


def _sends_s(replica: ReplicaCosts, phase: Phase, micro: MicroBatches, length: Tokens, stages: int) -> Floats:
    """Seconds of sends between stages, each chip its share: of one micro-batch all, of each more the slowest."""
    sequences = micro.sequences
    if stages == 1:
        return np.zeros(sequences.shape)
    tokens = np.asarray(sequences * length if phase is Phase.PREFILL else sequences, dtype=np.float64)
    chip, share = replica.chip, BF16_BYTES * tokens * replica.model.d_model / replica.chips
    crossing = sends_between_nodes(replica.chip, replica.chips, stages)
    near = share / (chip.link_bytes_per_s * replica.constants.network_efficiency) + chip.hop_s
    if not crossing:
        return np.asarray(near * (micro.parts + stages - 2))
    rate = network_rate(chip, replica.chips * stages) * replica.constants.network_efficiency
    far = share / rate + (chip.network_hop_s or chip.hop_s)
    slowest = far if crossing == stages - 1 else np.maximum(near, far)
    return np.asarray(crossing * far + (stages - 1 - crossing) * near + (micro.parts - 1) * slowest)


def _bytes(
    replica: ReplicaCosts, phase: Phase, micro: MicroBatches, length: Tokens, layout: Layout, stages: int
) -> Bytes:
    """Bytes of a whole pass: those of a micro-batch, as often as there are some, and what goes between stages."""
    prompt = phase is Phase.PREFILL
    attended = np.zeros(length.shape) if prompt else attended_tokens(replica, length)
    one = traffic_of_pass(replica, layout, micro.sequences, length, attended, prompt=prompt)
    found = times(one, micro.parts.astype(np.float64))
    if stages > 1:
        tokens = micro.sequences * micro.parts * (length if prompt else 1)
        sent = BF16_BYTES * tokens * replica.model.d_model
        crossing = sends_between_nodes(replica.chip, replica.chips, stages)
        for level, sends in (("nvlink", stages - 1 - crossing), ("network", crossing)):
            found[level]["activations"] = found[level]["activations"] + sent * float(sends)
    return found


def latency_hops(replica: ReplicaCosts, phase: Phase, batch: int, context: int, layout: Layout) -> float:
    """Hops of all collectives of one pass, one after the other: what more chips can not make parallel."""
    tokens = np.array([batch * context if phase is Phase.PREFILL else batch], dtype=np.int64)
    return hops_of(replica.transfers(layout, tokens, prompt=phase is Phase.PREFILL), replica.chip)
