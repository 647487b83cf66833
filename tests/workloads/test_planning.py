"""Plans: maximum contexts as published, fronts that nothing beats, limits, the smallest slice; the command `plan`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sim.cli import command_status
from sim.cli_cost import memory_share
from sim.report.plan_pictures import plan_picture
from workloads.catalogue.chips import CHIPS
from workloads.catalogue.gpus import A100_80GB, RTX_4090
from workloads.catalogue.model_table import LLAMA2_70B, PALM_62B, PALM_540B
from workloads.catalogue.models import MODELS
from workloads.catalogue.tpus import TPU_V4
from workloads.costs.asking import replica_on
from workloads.costs.layouts import Attention, Layout
from workloads.costs.passes import Phase
from workloads.planning import Workload, choices, front, maximum_context, shape_ladder, smallest_shape

PLAN = ["plan", "palm_62b", "tpu_v4", "--input", "512", "--output", "64"]


@pytest.mark.parametrize(
    ("heads", "attention", "contexts"),
    [
        ("multi-head", Attention.HEADS, (1320, 330)),
        ("multi-query", Attention.HEADS, (660, 165)),
        ("multi-query", Attention.BATCH, (43_000, 10_700)),
    ],
)
def test_maximum_contexts_of_pope_et_al(heads: str, attention: Attention, contexts: tuple[int, int]) -> None:
    """Goal: PaLM 540B on 64 chips, 30 % of memory for the cache, batch 128 and 512 (V2): multi-head with heads of 128,
    padded to 64; multi-query by heads and by batch. Method: within 2 %."""
    model = PALM_540B
    if heads == "multi-head":
        model = replace(PALM_540B, kv_heads=64, heads=64, head_dim=128)
    replica, _ = replica_on(model, TPU_V4, "4x4x4", attention=attention)
    for batch, published in zip((128, 512), contexts, strict=True):
        assert maximum_context(replica, batch, cache_share=0.3) == pytest.approx(published, rel=0.02)


def test_a_front_is_what_nothing_beats() -> None:
    """Goal: from the fastest to the cheapest, latency up, cost down; every choice is beaten or on it. Method: against a
    slow second route over all pairs."""
    found = choices(PALM_62B, TPU_V4, Workload(input_tokens=512, output_tokens=64), Phase.DECODE)
    best = front(found)
    assert np.all(np.diff([each.latency_s for each in best]) > 0)
    assert np.all(np.diff([each.cost_chip_s for each in best]) < 0)
    for each in found:
        assert any(one.latency_s <= each.latency_s and one.cost_chip_s <= each.cost_chip_s for one in best)
    for one in best:
        assert not any(each.latency_s <= one.latency_s and each.cost_chip_s < one.cost_chip_s for each in found)


def test_prompts_fill_what_their_cache_leaves() -> None:
    """Goal: the front of prompts ends where Pope et al. draw it: all weights gathered, the cache by batch. Method: PaLM
    540B on a cube, prompts of 2,048 tokens: by heads, where every chip holds all K and V, no more than 32 fit; the
    cheapest of all fills 1,024, at an MFU of 0.75 and more; in order of batch its latency and cost are monotone."""
    workload = Workload(input_tokens=2048, output_tokens=64)
    found = choices(PALM_540B, TPU_V4, workload, Phase.PREFILL, shapes=["4x4x4"])
    assert max(each.batch for each in found if each.attention is Attention.HEADS) == 32
    cheapest = front(found)[-1]
    assert (cheapest.batch, cheapest.attention) == (1024, Attention.BATCH)
    assert cheapest.layout is Layout.WEIGHT_GATHERED_XYZ
    assert cheapest.mfu > 0.75
    assert [each.batch for each in front(found)] == sorted(each.batch for each in front(found))


def test_limits_hold_on_the_front() -> None:
    """Goal: no slower and no larger than allowed. Method: limits that cut the front of Llama-2 70B on A100s."""
    found = choices(LLAMA2_70B, A100_80GB, Workload(input_tokens=512, output_tokens=128), Phase.DECODE)
    best = front(found, 0.030, 8)
    assert best
    assert max(each.latency_s for each in best) <= 0.030
    assert max(each.chips for each in best) <= 8
    assert not front(found, 1e-6)


def test_smallest_slices() -> None:
    """Goal: the first rung that holds weights and a request. Method: 70B in bf16 on four A100-80GB, in int8 on two;
    540B on a cube; none of the slices of RTX 4090 (eight at most) holds 540B."""
    short = Workload(input_tokens=512, output_tokens=128)
    assert smallest_shape(LLAMA2_70B, A100_80GB, short) == "4"
    assert smallest_shape(LLAMA2_70B, A100_80GB, replace(short, weights="int8")) == "2"
    assert smallest_shape(PALM_540B, TPU_V4, short) == "4x4x4"
    assert smallest_shape(PALM_540B, RTX_4090, short) is None


@pytest.mark.parametrize("key", list(CHIPS))
def test_every_chip_has_a_ladder_that_it_can_form(key: str) -> None:
    """Goal: all rungs are shapes of the chip, chips rising. Method: build a replica on each."""
    sizes = [replica_on(MODELS["llama3_8b"], CHIPS[key], shape)[0].chips for shape in shape_ladder(CHIPS[key])]
    assert sizes == sorted(sizes)
    assert sizes[0] == 1


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: JSON with both fronts, text for people. Method: PaLM 62B."""
    assert command_status([*PLAN, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["smallest_slice"] == "2x2x2"
    assert len(document["fronts"]["decode"]) > 3
    assert {"latency_s", "cost_chip_s", "shape", "batch", "layout"} <= set(document["fronts"]["prefill"][0])
    assert command_status([*PLAN, "--limit-token", "20 ms", "--limit-chips", "64"]) == 0
    assert "the smallest slice that fits is 2x2x2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "advice"),
    [
        (["--limit-token", "20"], "--limit-token: 20 has no unit"),
        (["--limit-chips", "0"], "write at least 1"),
        (["--weights", "int4"], "--weights: `int4` is not known"),
        (["--input", "0"], "--input: 0 tokens"),
        (["--picture", "plan.txt"], "--picture: `plan.txt` is no picture"),
    ],
)
def test_bad_words_are_refused_with_advice(more: list[str], advice: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: exit 2 and what to write. Method: one bad word each."""
    assert command_status([*PLAN, *more]) == 2
    assert advice in capsys.readouterr().err


def test_the_picture_shows_the_fronts(tmp_path: Path) -> None:
    """Goal: three panels: both fronts as computed, and passes under the roof of the chip. Method: read the lines back;
    both kinds of file are written."""
    workload = Workload(input_tokens=512, output_tokens=64)
    fronts = {phase: front(choices(PALM_62B, TPU_V4, workload, phase)) for phase in Phase}
    replica, stages = replica_on(PALM_62B, TPU_V4, "2x2x2")
    prefill, decode, roof = plan_picture(fronts, replica, stages, workload)
    for panel, phase in ((prefill, Phase.PREFILL), (decode, Phase.DECODE)):
        shown = panel.lines[0].get_xydata()
        assert shown == pytest.approx(
            np.array([(1e3 * each.latency_s, 1e3 * each.cost_chip_s) for each in fronts[phase]])
        )
    *passes, top = roof.lines
    for line in passes:
        intensity, rate = np.asarray(line.get_xydata(), dtype=float).T
        assert np.all(rate <= np.minimum(intensity * 1.2, 275.0) * 1.001)
    assert np.max(top.get_ydata()) == pytest.approx(275.0)
    for name in ("plan.png", "plan.svg"):
        assert command_status([*PLAN, "--picture", str(tmp_path / name), "--json"]) == 0
        assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.parametrize(
    ("attention", "batch", "chips_that_hold"),
    [
        (Attention.HEADS, 1, 1), (Attention.BATCH, 1, 1), (Attention.BATCH, 16, 16), (Attention.BATCH, 128, 64),
        (Attention.HEADS_X_BATCH, 4, 4), (Attention.CONTEXT, 1, 64),
    ],
)  # fmt: skip
def test_chips_hold_what_they_read(attention: Attention, batch: int, chips_that_hold: int) -> None:
    """Goal: a sequence whose cache is on one chip is no longer than one chip holds, however many stand beside it.
    Method: PaLM 540B (one head of K and V) on 64 chips, by hand: memory that weights leave, by the chips that share a
    cache; the command `cost` tells the same limit, and `plan` takes no way that is past it."""
    replica, _ = replica_on(PALM_540B, TPU_V4, "4x4x4", attention=attention)
    room = 0.85 * 64 * 32 * 2**30 - PALM_540B.weight_bytes()
    longest = maximum_context(replica, batch)
    assert longest == pytest.approx(room * chips_that_hold / 64 / (batch * 120_832))
    full = (64 * 32 * 2**30 - PALM_540B.weight_bytes()) * chips_that_hold / 64 / (batch * 120_832)
    assert memory_share(replica, 1, batch, int(full)) == pytest.approx(1.0, rel=1e-4)
    found = choices(PALM_540B, TPU_V4, Workload(input_tokens=int(longest) + 1, output_tokens=1), Phase.DECODE)
    assert not any((each.shape, each.attention, each.batch) == ("4x4x4", attention, batch) for each in found)


def test_a_plan_tells_contexts_of_an_even_split(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: what a slice holds at most, split by context. Method: DeepSeek-V3, whose latent vectors have no heads to be
    split by, on eight H200s: all memory that weights leave, for one sequence too."""
    line = ["plan", "deepseek_v3", "h200", "--input", "512", "--output", "64", "--weights", "fp8", "--json"]
    assert command_status(line) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["smallest_slice"] == "8"
    room = 0.85 * 8 * 141e9 - 671e9
    assert document["maximum_context"]["1"] == int(room / 70_272)
    assert document["maximum_context"]["64"] == int(room / 70_272 / 64)
