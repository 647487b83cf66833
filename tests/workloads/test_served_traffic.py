"""Bytes of a stretch of serving, pass by pass: what passes carry, conserved; the ladder of memories; the floor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workloads.test_passes import shape_for
from workloads.catalogue.chips import CHIPS
from workloads.catalogue.models import MODELS
from workloads.costs.asking import replica_on
from workloads.costs.floors import step_floor_s, step_parts_s
from workloads.costs.layouts import Attention, Layout
from workloads.costs.levels import ladder_of
from workloads.costs.passes import Phase, pass_cost
from workloads.costs.replica import ReplicaCosts
from workloads.serving.pass_log import EndedPass
from workloads.serving.served_traffic import traffic_of_passes

FLAT = Layout.WEIGHT_STATIONARY_2D


def a_pass(decodes: int, context: int, chunks: tuple[int, ...] = (), cached: int = 0, copied: int = 0) -> EndedPass:
    """A pass of a millisecond; every decode, and every prompt, gets a token."""
    tokens = np.arange(decodes + len(chunks))
    return EndedPass(
        replica=0, begin_ns=0, end_ns=10**6, decodes=decodes, context_tokens=context, cached_tokens=cached,
        copied_blocks=copied, chunks=chunks, requests=tokens, numbers=tokens, slots=tokens,
    )  # fmt: skip


def replica_of(model: str, chip: str, attention: Attention = Attention.HEADS_X_BATCH) -> ReplicaCosts:
    return replica_on(MODELS[model], CHIPS[chip], shape_for(chip), attention=attention)[0]


@settings(deadline=None, max_examples=40)
@given(
    model=st.sampled_from(sorted(MODELS)),
    chip=st.sampled_from(sorted(CHIPS)),
    batch=st.integers(1, 300),
    context=st.integers(1, 3000),
)
def test_a_plain_pass_moves_what_its_cost_says(model: str, chip: str, batch: int, context: int) -> None:
    """Goal: two routes to the bytes of a pass agree, by level and kind. Method: random models without sliding windows
    (the kernel reads whole contexts); a step and a whole prompt, told as passes, against `pass_cost`."""
    replica = replica_of(model, chip)
    if replica.model.window is not None:
        return
    for told, phase, sequences in (
        (a_pass(batch, batch * context), Phase.DECODE, batch),
        (a_pass(0, 0, (context,)), Phase.PREFILL, 1),
    ):
        cost = pass_cost(replica, phase, sequences, context, FLAT)
        found = traffic_of_passes(replica, FLAT, FLAT, [told, told])
        assert found.tokens == 2 * told.requests.size
        assert set(found.bytes) == set(cost.bytes)
        for level, kinds in cost.bytes.items():
            assert found.bytes[level] == pytest.approx({kind: 2 * float(moved) for kind, moved in kinds.items()})


def test_a_stretch_conserves_bytes() -> None:
    """Goal: nothing is lost between passes and totals. Method: a dense model; a stretch of plain and mixed passes is
    the sum of its passes; weights once a pass; written: each token computed; read: contexts, chunks, cached."""
    replica = replica_of("llama3_70b", "tpu_v4")
    passes = [a_pass(8, 9_000), a_pass(5, 4_000, (300, 40)), a_pass(0, 0, (512,), 1024), a_pass(7, 7_777)]
    whole = traffic_of_passes(replica, FLAT, None, passes)
    singles = [traffic_of_passes(replica, FLAT, None, [each]) for each in passes]
    for level, kinds in whole.bytes.items():
        for kind, moved in kinds.items():
            assert moved == pytest.approx(sum(each.bytes[level][kind] for each in singles))
    kv_bytes = replica.model.kv_bytes_per_token()
    hbm = whole.bytes["hbm"]
    assert hbm["weights"] == pytest.approx(4 * sum(matrix.parameters for matrix in replica.model.matrices) * 2)
    assert hbm["kv_written"] == pytest.approx(kv_bytes * (8 + 5 + 340 + 512 + 7))
    assert hbm["kv_read"] == pytest.approx(kv_bytes * (9_000 + 4_000 + 340 + 512 + 1024 + 7_777))
    assert (whole.passes, whole.sequence_steps, whole.context_tokens) == (4, 20, 20_777)
    assert whole.bytes_per_token("hbm") == pytest.approx(sum(hbm.values()) / whole.tokens)
    naive = traffic_of_passes(replica, FLAT, None, passes, naive_attention=True)
    assert naive.bytes["hbm"]["activations"] > hbm["activations"]
    assert naive.bytes["hbm"]["kv_read"] == hbm["kv_read"]


@pytest.mark.parametrize("chip", sorted(CHIPS))
@pytest.mark.parametrize("phase", list(Phase))
def test_no_level_is_busier_than_the_pass(chip: str, phase: Phase) -> None:
    """Goal: at their full rates no memory and no link needs longer than the pass takes. Method: every chip, a step and
    a prompt of a model with grouped heads; levels come nearest first, HBM between on-chip memories and links."""
    replica = replica_of("llama2_13b", chip)
    cost = pass_cost(replica, phase, 16, 1500, FLAT)
    ladder = ladder_of(replica)
    names = [level.name for level in ladder]
    assert names == list(dict.fromkeys(names))
    assert names.index("hbm") == len(replica.chip.on_chip)
    assert names[-1] == "host_link"
    for level in ladder:
        if level.bytes_per_s is not None and level.name in cost.bytes:
            moved = sum(float(value) for value in cost.bytes[level.name].values())
            assert moved / (replica.chips * level.bytes_per_s) <= float(cost.seconds)


@settings(deadline=None, max_examples=60)
@given(
    model=st.sampled_from(sorted(MODELS)),
    chip=st.sampled_from(["tpu_v4", "tpu_v5e", "a100_80gb", "h100"]),
    attention=st.sampled_from(list(Attention)),
    batch=st.integers(1, 300),
    context=st.integers(1, 5000),
)
def test_the_floor_is_what_infinite_rates_leave(
    model: str, chip: str, attention: Attention, batch: int, context: int
) -> None:
    """Goal: the floor is what can not be made parallel. Method: the same step with memory, arithmetic and links
    infinitely fast takes the floor, reads of the cache aside; each part's floor is at most the part."""
    replica = replica_of(model, chip, attention)
    parts, floor = step_parts_s(replica, batch, context, FLAT), step_floor_s(replica, batch, context, FLAT)
    assert all(0 <= floor[part] <= parts[part] * (1 + 1e-9) + 1e-15 for part in parts)
    on_chip = tuple(replace(each, bytes_per_s=None) for each in replica.chip.on_chip)
    endless = replace(
        replica.chip, peak_flops_per_s=1e30, hbm_bytes_per_s=1e30, link_bytes_per_s=1e30, on_chip=on_chip,
        network_bytes_per_s=None if replica.chip.network_bytes_per_s is None else 1e30,
    )  # fmt: skip
    fastest = step_parts_s(replace(replica, chip=endless), batch, context, FLAT)
    assert sum(fastest.values()) == pytest.approx(sum(floor.values()) - floor["kv_read"], rel=1e-6)


def test_reads_of_the_cache_have_a_floor_of_their_own() -> None:
    """Goal: more chips than heads and sequences do not read faster. Method: one sequence of a model with eight K heads:
    on 64 chips its reads are at their floor, which is that of eight chips; four chips take twice as long."""
    model = MODELS["llama3_70b"]
    reads, floors = [], []
    for shape in ("1x2x2", "2x2x2", "4x4x4"):
        replica, _ = replica_on(model, CHIPS["tpu_v4"], shape)
        reads.append(step_parts_s(replica, 1, 4000, FLAT)["kv_read"])
        floors.append(step_floor_s(replica, 1, 4000, FLAT)["kv_read"])
    assert floors == pytest.approx([reads[1]] * 3)
    assert reads == pytest.approx([2 * reads[1], reads[1], reads[1]])


def test_a_copied_block_is_read_and_written() -> None:
    """Goal: where samples of a prompt part, each block that is copied passes through HBM twice. Method: a step with
    three copies against the same without; other kinds and levels stay."""
    replica = replica_of("llama3_8b", "tpu_v5e")
    plain = traffic_of_passes(replica, FLAT, None, [a_pass(4, 4000)]).bytes
    copying = traffic_of_passes(replica, FLAT, None, [a_pass(4, 4000, copied=3)]).bytes
    block = 16 * replica.model.kv_bytes_per_token(replica.kv_value_bytes) * replica.kv_replication
    for level, kinds in copying.items():
        for kind, value in kinds.items():
            moves = level in ("hbm", "vmem") and kind in ("kv_read", "kv_written")
            assert value - plain[level][kind] == pytest.approx(3 * block if moves else 0.0)
