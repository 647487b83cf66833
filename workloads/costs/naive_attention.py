"""What attention costs a pass when its scores go through memory: kernels of their own for products and softmax.

Naive attention computes all N x N scores of a prompt, not the causal half, and moves them four times (written and
read, before and after the softmax; `attention_io`). Both grow with the (query, key) pairs of the prompt, so a pass
stays affine in what it reads. A decode step moves a score of each query head beside each cached token.
"""

from __future__ import annotations

from workloads.catalogue.model import BF16_BYTES
from workloads.costs.attention_io import NAIVE_INFERENCE
from workloads.costs.layouts import Attention
from workloads.costs.replica import ReplicaCosts, Tokens
from workloads.costs.transfers import Floats


def score_bytes_per_pair(replica: ReplicaCosts) -> float:
    """Bytes that all chips move of one (query, key) pair, over all heads and layers."""
    return NAIVE_INFERENCE * BF16_BYTES * replica.model.padded_heads * replica.model.layers


def naive_prefill_pair_s(replica: ReplicaCosts) -> float:
    """Seconds per causal pair of a whole prompt (an upper bound for later chunks of one): computed, then moved.

    Twice as many scores as causal pairs; kernels one after the other overlap nothing.
    """
    moved_s = score_bytes_per_pair(replica) / (replica.chips * replica.chip.hbm_bytes_per_s)
    return 2.0 * (replica.prefill_pair_s() + moved_s / replica.constants.hbm_efficiency)


def naive_read_s_per_token(replica: ReplicaCosts, batch: Tokens) -> Floats:
    """Seconds per context token of a decode of `batch` sequences: keys and values, and the scores beside them.

    Scores are spread over chips as the cache is, but never replicated.
    """
    held = replica.model.kv_bytes_per_token(replica.kv_value_bytes)
    copies = replica.kv_replication if replica.attention is Attention.HEADS else 1.0
    scores = replica.kv_bytes_per_chip(batch) / (held * copies) * score_bytes_per_pair(replica)
    rate = replica.chip.hbm_bytes_per_s * replica.constants.hbm_efficiency
    return replica.kv_read_s_per_token(batch) + scores / rate
