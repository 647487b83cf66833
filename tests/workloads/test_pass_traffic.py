"""What a pass moves: nearer memories carry at least what farther ones do, nodes and their network, latent attention."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topology.errors import InputError
from workloads.catalogue.chips import CHIPS
from workloads.catalogue.gpus import A100_80GB, H100, RTX_4090
from workloads.catalogue.model import Experts
from workloads.catalogue.models import MODELS
from workloads.catalogue.tpus import TPU_V4, TPU_V5P, TPU_V6E
from workloads.collectives import SliceNetwork, all_to_all_terms_s
from workloads.costs.asking import replica_on
from workloads.costs.layouts import Attention, Layout
from workloads.costs.passes import Phase, pass_cost
from workloads.costs.traffic import TILE, prompt_attention_bytes
from workloads.costs.transfers import Move

SHAPES = {"switch": ("1", "3", "8", "8x3", "4x4", "2x6"), 1: ("1", "4"), 2: ("1", "2x4", "16x16"),
          3: ("1x1x1", "2x2x4", "4x4x8_twisted", "8x8x8")}  # fmt: skip


@settings(deadline=None, max_examples=80)
@given(
    model=st.sampled_from(sorted(MODELS)),
    chip=st.sampled_from(sorted(CHIPS)),
    rung=st.integers(0, 23),
    phase=st.sampled_from(list(Phase)),
    layout=st.sampled_from(list(Layout)),
    attention=st.sampled_from(list(Attention)),
    batch=st.integers(1, 600),
    context=st.integers(1, 5000),
)
def test_nearer_memories_carry_at_least_what_farther_ones_do(
    model: str, chip: str, rung: int, phase: Phase, layout: Layout, attention: Attention, batch: int, context: int
) -> None:
    """Goal: what HBM gives goes through the memories before it, kind by kind; bounds hold on pipelines and twisted
    slices too. Method: random passes over catalogues and shapes; shapes whose network nobody knows are refused."""
    unit = CHIPS[chip]
    shapes = SHAPES[unit.axes if unit.interconnect.value == "torus" else "switch"]
    shape = shapes[rung % len(shapes)]
    try:
        replica, stages = replica_on(MODELS[model], unit, shape, attention=attention)
    except InputError:
        assert (chip, shape) in {("rtx_4090", each) for each in ("8x3", "4x4", "2x6")}
        return
    cost = pass_cost(replica, phase, batch, context, layout, stages)
    assert cost.lower_bound_s <= cost.seconds * (1 + 1e-12)
    assert cost.seconds <= cost.upper_bound_s * (1 + 1e-12)
    known = [each.name.lower() for each in unit.on_chip if each.name.lower() in cost.bytes]
    for near, far in pairwise([*known, "hbm"]):
        for kind, carried in cost.bytes[far].items():
            assert cost.bytes[near][kind] >= carried * (1 - 1e-12), (near, far, kind)


def test_chosen_experts_go_through_the_sm() -> None:
    """Goal: what each expert has of the rows decides how often its weights come near, not what the batch has. Method:
    DeepSeek-V3 on 64 H100s, 64 sequences: one tile for each of the 222 experts chosen of 256; 20,000 sequences:
    each expert 625 rows, five tiles."""
    replica, _ = replica_on(MODELS["deepseek_v3"], H100, "64")
    small, large = (pass_cost(replica, Phase.DECODE, batch, 0).bytes for batch in (64, 20_000))
    assert small["sm"]["weights"] == pytest.approx(float(small["hbm"]["weights"]))
    experts = 2 * 58 * 256 * 3 * 7168 * 2048
    rest = float(large["hbm"]["weights"]) - experts
    assert large["sm"]["weights"] == pytest.approx(5 * experts + np.ceil(20_000 / TILE) * rest, rel=1e-6)


def test_a_prompt_reads_its_keys_and_values_once() -> None:
    """Goal: reads of K and V count under the cache alone. Method: Llama-3 8B on one A100, 4,096 tokens: per block of
    192 rows (192 KiB / 4 / 128 / 2 bytes) Q read, O read and written, of each head and layer."""
    replica, _ = replica_on(MODELS["llama3_8b"], A100_80GB, "1")
    one, tokens = np.array([1]), np.array([4096])
    strip = 2 * 4096 * 128 * 32 * 32
    assert prompt_attention_bytes(replica, one, tokens) == pytest.approx(3 * -(-4096 // 192) * strip)
    plain = replace(replica, constants=replace(replica.constants, tiled_attention=False))
    assert prompt_attention_bytes(plain, one, tokens) == pytest.approx((4 * 4096 / 128 + 2) * strip)
    bare, _ = replica_on(MODELS["llama3_8b"], TPU_V6E, "1")
    assert prompt_attention_bytes(bare, one, tokens) == pytest.approx(2 * strip)
    assert pass_cost(replica, Phase.PREFILL, 1, 4096).bytes["hbm"]["kv_read"] == 131_072 * 4096


@pytest.mark.parametrize(("chips", "nodes"), [(16, [8, 8]), (64, [8] * 8), (20, [8, 8, 4])])
def test_all_to_alls_between_nodes(chips: int, nodes: list[int]) -> None:
    """Goal: only what goes to other nodes takes their network. Method: H100s (450 GB/s in a node, 50 GB/s out of one),
    the chip of the smallest node by hand; bytes of a decode sharded by batch, pair by pair."""
    network = SliceNetwork((chips,), (False,))
    total = 1e12
    bandwidth, _ = all_to_all_terms_s(H100, network, np.array([total]))
    assert bandwidth[0] == pytest.approx(total / chips**2 * (chips - min(nodes)) / 50e9)
    replica, _ = replica_on(MODELS["palm_8b"], H100, str(chips), attention=Attention.BATCH)
    moved = replica.transfers(Layout.WEIGHT_STATIONARY_1D, np.array([512]), prompt=False)
    gathers, exchanges = (
        sum(float(each.times * each.total_bytes[0]) for each in moved if each.move is move and each.network == network)
        for move in Move
    )
    pairs = sum(own * (chips - own) for own in nodes)
    ring = gathers * (chips - 1) / chips * len(nodes)
    found = pass_cost(replica, Phase.DECODE, 512, 100, Layout.WEIGHT_STATIONARY_1D).bytes
    assert found["network"]["activations"] == pytest.approx(exchanges / chips**2 * pairs + ring)
    both = found["network"]["activations"] + found["nvlink"]["activations"]
    assert both == pytest.approx(exchanges * (chips - 1) / chips + gathers * (chips - 1))


def test_published_bound_of_expert_parallel_decode() -> None:
    """Goal: DeepSeek-V3's bound of a decode (its paper on hardware, V2): 32 tokens per chip, 9 copies of 7,000 values,
    1 byte to the experts and 2 back, over 400 Gb/s: 120.96 us per layer; two micro-batches and 61 layers: 14.76 ms.
    Method: that arithmetic, and our two all-to-alls of bf16 to 8 routed experts of 7,168, on 256 H100s."""
    published = (1 + 2) * 32 * 9 * 7000 / 50e9
    assert published == pytest.approx(120.96e-6)
    assert 61 * 2 * published == pytest.approx(14.76e-3, rel=1e-3)
    replica, _ = replica_on(MODELS["deepseek_v3"], H100, "256")
    moved = replica.transfers(Layout.WEIGHT_STATIONARY_1D, np.array([32 * 256]), prompt=False)
    routed = next(each for each in moved if each.times == 2 * 58 and each.move is Move.ALL_TO_ALL)
    formats, copies, width, crossing = (2 + 2) / (1 + 2), 8 / 9, 7168 / 7000, (256 - 8) / 256
    assert routed.bandwidth_s(H100)[0] / 58 == pytest.approx(published * formats * copies * width * crossing)


def test_stages_of_one_node_send_within_it() -> None:
    """Goal: sends cross the network only where stages lie on several nodes. Method: 4x4 A100s are two stages per node:
    one of three sends crosses; by hand with 4 micro-batches of 16, of which all but the first wait for the slowest."""
    replica, stages = replica_on(MODELS["llama3_8b"], A100_80GB, "4x4")
    cost = pass_cost(replica, Phase.DECODE, 64, 100, stages=stages)
    assert cost.bytes["network"]["activations"] == 2 * 64 * 4096
    within, _ = replica_on(MODELS["llama3_8b"], A100_80GB, "4")
    links = pass_cost(within, Phase.DECODE, 64, 100).bytes["nvlink"]["activations"]
    assert cost.bytes["nvlink"]["activations"] == pytest.approx(links + 2 * 2 * 64 * 4096)
    share = 2 * 16 * 4096 / 4
    near, far = share / (300e9 * 0.64) + 5e-6, share / (25e9 * 0.64) + 24e-6
    assert cost.breakdown_s["sends"] == pytest.approx(2 * near + far + 3 * far)


@pytest.mark.parametrize("shape", ["16", "8x3", "4x4", "3x3"])
def test_nodes_without_a_known_network_are_refused(shape: str) -> None:
    """Goal: no rate is made up. Method: RTX 4090s, whose network no source tells, beyond eight: tensor and pipeline."""
    with pytest.raises(InputError, match="its network is unknown"):
        pass_cost(replica_on(MODELS["llama3_8b"], RTX_4090, shape)[0], Phase.DECODE, 1, 1)
    assert replica_on(MODELS["llama3_8b"], RTX_4090, "2x4")[1] == 4


@pytest.mark.parametrize(
    ("attention", "chips_at_work", "kv_held"),
    [(Attention.HEADS, 64, 64), (Attention.BATCH, 16, 4), (Attention.CONTEXT, 64, 1), (Attention.HEADS_X_BATCH, 16, 4)],
)
def test_latent_attention_computes_longer_than_it_reads(attention: Attention, chips_at_work: int, kv_held: int) -> None:
    """Goal: all heads of DeepSeek-V3 share one latent vector: 2 x 128 x (2 x 512 + 64) FLOPs on each 1,152 bytes, 242
    per byte, more than the 166 of a v5p: its arithmetic binds where no chip reads more than its share. Method: 64 v5p,
    batch 16, by hand; multi-head models read as long as before."""
    replica, _ = replica_on(MODELS["deepseek_v3"], TPU_V5P, "4x4x4", attention=attention)
    flops, held = 2 * 128 * (2 * 512 + 64) * 61, 70_272
    compute = flops / (chips_at_work * 459e12)
    read = held / 64 * kv_held / 2765e9
    constants = replica.constants
    expected = max(compute / constants.matmul_efficiency, read / constants.kv_efficiency)
    assert replica.kv_read_s_per_token(np.array([16]))[0] == pytest.approx(expected)
    assert (expected > read / constants.kv_efficiency) is (attention is not Attention.HEADS)
    bound = pass_cost(replica, Phase.DECODE, 16, 10**6).lower_bound_s
    assert bound == pytest.approx(16e6 * max(compute, read), rel=0.03)
    llama, _ = replica_on(MODELS["llama3_70b"], TPU_V4, "4x4x4", attention=attention)
    kept = llama.kv_bytes_per_chip(np.array([16])) / (1.2e12 * llama.constants.kv_efficiency)
    assert np.array_equal(llama.kv_read_s_per_token(np.array([16])), kept)


@pytest.mark.parametrize("shared", [0, 1])
def test_experts_in_parallel_blocks_keep_their_attention(shared: int) -> None:
    """Goal: experts on chips of their own take none of the collectives of attention away. Method: a mixture with
    parallel blocks of one's own: its pair is as wide as attention and what is shared."""
    experts = Experts(count=64, active=2, d_ff=1024, shared=shared)
    model = replace(MODELS["palm_8b"], experts=experts)
    replica, _ = replica_on(model, TPU_V4, "4x4x4")
    assert replica.spread.experts_apart
    moved = replica.transfers(Layout.WEIGHT_STATIONARY_2D, np.array([64]), prompt=True)
    inner = [float(each.total_bytes[0]) for each in moved if each.move is Move.GATHER][1:3]
    yz = 64 // replica.shares(Layout.WEIGHT_STATIONARY_2D)[0]
    attention = (16 * 256 + 2 * 256, 16 * 256)
    assert inner == [2 * 64 * (attention[0] + 2 * shared * 1024) / yz, 2 * 64 * (attention[1] + shared * 1024) / yz]
