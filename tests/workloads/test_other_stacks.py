"""Measured points that nothing was fitted on, of other software on the same chips: how far off costs are, and why."""

from __future__ import annotations

import pytest

from workloads.catalogue.gpus import A100_80GB
from workloads.catalogue.models import MODELS
from workloads.catalogue.tpus import TPU_V5E
from workloads.costs.asking import replica_on
from workloads.costs.passes import Phase, pass_seconds

JETSTREAM = [
    ("llama2_7b", "bf16", 96, 3663),
    ("llama2_7b", "int8", 96, 4783),
    ("llama2_13b", "bf16", 48, 2056),
    ("llama2_13b", "int8", 96, 3458),
    ("gemma_7b", "bf16", 96, 3236),
    ("gemma_7b", "int8", 128, 4695),
]
"""Output tokens per second on 8 TPU v5e, cache of 2,048 tokens per slot, ShareGPT-like (V)."""


@pytest.mark.parametrize(("model", "formats", "batch", "measured"), JETSTREAM)
def test_jetstream_on_eight_v5e_lies_between_two_readings(
    model: str, formats: str, batch: int, measured: float
) -> None:
    """Goal: constants of v4 foretell v5e. Method: decode of the whole static cache (2,048 tokens) and of a mean context
    (600), each with a prompt of 256 per 200 output tokens: the measured rate lies between, and the slower reading is
    within 21 % of it."""
    replica, _ = replica_on(MODELS[model], TPU_V5E, "2x4", weights=formats, kv=formats)
    prompt = float(pass_seconds(replica, Phase.PREFILL, 1, 256)) / 200
    slow, fast = (1 / (float(pass_seconds(replica, Phase.DECODE, batch, n)) / batch + prompt) for n in (2048, 600))
    assert slow <= 1.01 * measured <= 1.01 * fast
    assert slow >= 0.79 * measured


@pytest.mark.parametrize(("formats", "batch", "measured"), [("bf16", 128, 8249), ("int8", 256, 10873)])
def test_jetstream_with_grouped_heads_is_faster_than_foretold(formats: str, batch: int, measured: float) -> None:
    """Goal: Llama-3 8B on 8 v5e is served faster than computed, even at a short context: 78 us per layer were fitted on
    layers of 18,432, which is too much for small ones. Method: 0.7 to 0.85 of the measured rate."""
    replica, _ = replica_on(MODELS["llama3_8b"], TPU_V5E, "2x4", weights=formats, kv=formats)
    prompt = float(pass_seconds(replica, Phase.PREFILL, 1, 256)) / 200
    rate = 1 / (float(pass_seconds(replica, Phase.DECODE, batch, 600)) / batch + prompt)
    assert 0.70 < rate / measured < 0.85


@pytest.mark.parametrize(
    ("model", "gpus", "weights", "measured", "low", "high"),
    [
        ("llama2_7b", "1", "bf16", 104.9, 0.95, 1.05),
        ("llama2_70b", "2", "bf16", 21.3, 0.88, 0.95),
        ("mixtral_8x7b", "2", "bf16", 96.7, 0.88, 0.96),
        ("llama2_70b", "4", "bf16", 38.0, 0.82, 0.90),
        ("mixtral_8x7b", "4", "bf16", 155.4, 0.80, 0.88),
        ("llama2_70b", "8", "bf16", 62.5, 0.72, 0.80),
        ("llama2_7b", "8", "bf16", 328.4, 0.54, 0.62),
        ("llama2_70b", "1", "int8", 19.1, 1.08, 1.16),
    ],
)
def test_gpt_fast_at_batch_one(model: str, gpus: str, weights: str, measured: float, low: float, high: float) -> None:
    """Goal: tokens per second of gpt-fast on A100-80GB (V): one GPU within 5 %; more GPUs are foretold slower the more
    there are, since its compiled all-reduces are faster than those of 2022, and int8 faster, since it dequantises at
    0.65 of the memory's rate. Method: stated bands of computed over measured."""
    replica, _ = replica_on(MODELS[model], A100_80GB, gpus, weights=weights)
    rate = 1 / float(pass_seconds(replica, Phase.DECODE, 1, 100))
    assert low < rate / measured < high


@pytest.mark.parametrize(
    ("model", "gpus", "tokens", "milliseconds", "error"),
    [("llama2_7b", "1", 2048, 133, 0.05), ("llama2_70b", "4", 2048, 377, 0.07), ("llama2_7b", "1", 128, 16, 0.30),
     ("llama2_70b", "4", 128, 47, 0.20)],
)  # fmt: skip
def test_first_tokens_of_tensorrt(model: str, gpus: str, tokens: int, milliseconds: float, error: float) -> None:
    """Goal: first token at batch 1 of TensorRT-LLM 0.6.1 (V): long prompts within 5 to 7 %, short ones 20 to 30 % too
    early (times of starting a request are not counted). Method: one prefill."""
    replica, _ = replica_on(MODELS[model], A100_80GB, gpus)
    seconds = float(pass_seconds(replica, Phase.PREFILL, 1, tokens))
    assert seconds * 1e3 == pytest.approx(milliseconds, rel=error)
