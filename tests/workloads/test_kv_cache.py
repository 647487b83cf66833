"""Memory of keys and values: the formula of the blocks, published maxima, refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topology.errors import InputError
from workloads.catalogue.gpus import A100_80GB
from workloads.catalogue.model_table import LLAMA3_1_405B, LLAMA3_70B, PALM_540B
from workloads.catalogue.tpus import TPU_V4
from workloads.collectives import SliceNetwork, circuit_slice
from workloads.costs.layouts import Attention, kv_replication
from workloads.kv_cache import (
    SLICE_LADDER,
    Contiguous,
    MemorySettings,
    Paged,
    blocks_for,
    kv_memory,
    require_fit,
    smallest_slice_that_fits,
)


def test_blocks_follow_the_formula() -> None:
    """Goal: floor((n HBM u - weights - reserve) / (16 kv r)). Method: Llama-3 70B on one cube, by hand."""
    hbm = 64 * 32 * 2**30
    expected = int((0.9 * hbm - 2 * 70.55e9 - 0.05 * hbm) // (16 * 327_680))
    memory = kv_memory(LLAMA3_70B, TPU_V4, circuit_slice((4, 4, 4)))
    assert memory.blocks == expected
    assert memory.tokens == 16 * expected
    heads = kv_memory(LLAMA3_70B, TPU_V4, circuit_slice((4, 4, 4)), MemorySettings(attention=Attention.HEADS))
    assert heads.blocks == pytest.approx(expected / 8, abs=1)
    eight_bit = kv_memory(LLAMA3_70B, TPU_V4, circuit_slice((4, 4, 4)), MemorySettings(kv="int8"))
    assert eight_bit.blocks == pytest.approx(2 * expected, abs=1)


def test_maximum_contexts_of_pope_et_al() -> None:
    """Goal: 30 % of HBM for KV, 64 chips, batch 128 / 512: 1320/330 (multi-head), 660/165 (multi-query by heads),
    43,000/10,700 (by batch); V2. Method: context = bytes / (batch x kv x r), within 2 %."""
    room = 0.3 * 64 * TPU_V4.hbm_bytes
    multi_head = replace(PALM_540B, heads=64, kv_heads=64, head_dim=128)
    cases = [
        (multi_head, Attention.HEADS, 1320, 330),
        (PALM_540B, Attention.HEADS, 660, 165),
        (PALM_540B, Attention.BATCH, 43_000, 10_700),
    ]
    for model, attention, at_128, at_512 in cases:
        held = model.kv_bytes_per_token() * kv_replication(model, 64, attention)
        assert room / (128 * held) == pytest.approx(at_128, rel=0.02)
        assert room / (512 * held) == pytest.approx(at_512, rel=0.02)


def test_multi_head_cache_of_a_500b_model_is_three_terabytes() -> None:
    """Goal: batch 512, context 2048, 48 heads of 128: 3 TB (V2). Method: direct."""
    model = replace(PALM_540B, kv_heads=48, head_dim=128)
    assert 512 * 2048 * model.kv_bytes_per_token() == pytest.approx(3e12, rel=0.05)


def test_smallest_slices() -> None:
    """Goal: the ladder from one chip to the pod. Method: weights alone and long requests."""
    assert smallest_slice_that_fits(LLAMA3_70B, TPU_V4, 1) == (2, 2, 2)
    assert smallest_slice_that_fits(LLAMA3_1_405B, TPU_V4, 131_071) == (2, 4, 4)
    assert smallest_slice_that_fits(LLAMA3_1_405B, TPU_V4, 10**6) == (4, 4, 4)
    assert smallest_slice_that_fits(LLAMA3_1_405B, TPU_V4, 10**9) is None
    assert [a * b * c for a, b, c in SLICE_LADDER] == sorted(a * b * c for a, b, c in SLICE_LADDER)


def test_what_does_not_fit_is_refused_with_the_smallest_slice() -> None:
    """Goal: a model on too few chips is refused, with what to write. Method: 405B on 8 chips, long requests."""
    with pytest.raises(InputError, match=r"services\.0\.slice.*write 2x4x4 or larger"):
        require_fit(LLAMA3_1_405B, TPU_V4, circuit_slice((2, 2, 2)), 131_071, where="services.0.slice")
    with pytest.raises(InputError, match="shorter request"):
        require_fit(LLAMA3_1_405B, TPU_V4, circuit_slice((2, 2, 2)), 10**9)
    fits = require_fit(LLAMA3_1_405B, TPU_V4, circuit_slice((8, 8, 16)), 131_071)
    assert fits == kv_memory(LLAMA3_1_405B, TPU_V4, circuit_slice((8, 8, 16)))
    assert kv_memory(LLAMA3_1_405B, A100_80GB, SliceNetwork((8,), (False,))).blocks == 0


def test_settings_that_leave_nothing_are_refused() -> None:
    """Goal: shares are checked. Method: reserve above utilisation; an unknown number format."""
    with pytest.raises(ValueError, match="activation_reserve"):
        MemorySettings(utilisation=0.5, activation_reserve=0.6)
    with pytest.raises(InputError, match="int8"):
        kv_memory(LLAMA3_70B, TPU_V4, circuit_slice((4, 4, 4)), MemorySettings(kv="fp3"))


def test_reserves_of_a_contiguous_cache() -> None:
    """Goal: the three reserves. Method: a request of 100 + 50: cache of 149 tokens at its end."""
    assert Contiguous(reserve="oracle").reserved_tokens(100, 50) == 160
    assert Contiguous(reserve="power_of_two").reserved_tokens(100, 50) == 256
    assert Contiguous(reserve="max_model_len", max_model_len=2048).reserved_tokens(100, 50) == 2048
    assert Paged().reserved_tokens(100, 50) == 112
    with pytest.raises(ValueError, match="max_model_len"):
        Contiguous(max_model_len=3)


@settings(deadline=None, max_examples=100)
@given(prompt=st.integers(1, 10**6), answer=st.integers(1, 10**5))
def test_reserves_are_ordered_and_hold_the_request(prompt: int, answer: int) -> None:
    """Goal: paged <= oracle <= power of two; whole blocks that hold the cache. Method: random requests."""
    final = prompt + answer - 1
    oracle, power = (Contiguous(reserve=name).reserved_tokens(prompt, answer) for name in ("oracle", "power_of_two"))
    assert final <= oracle <= power < 2 * max(final, 16)
    assert oracle - final < 16
    assert oracle % 16 == power % 16 == 0
    assert prompt <= Paged().reserved_tokens(prompt, answer) <= oracle
    assert blocks_for(final) * 16 == oracle
