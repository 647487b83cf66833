"""Catalogues: numbers equal their references, and every number says where it comes from."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from topology.errors import InputError
from workloads.catalogue.chip import Chip, Interconnect
from workloads.catalogue.chips import CHIPS, chip_by_key
from workloads.catalogue.model import Model
from workloads.catalogue.model_table import PALM_540B
from workloads.catalogue.models import MODELS, model_by_key
from workloads.catalogue.stack import StackConstants
from workloads.catalogue.stacks import CONSTANTS, constants_of
from workloads.catalogue.tpus import TPU_V4
from workloads.provenance import Mark

KV_BYTES = {
    "palm_8b": 32_768,
    "palm_62b": 65_536,
    "palm_540b": 120_832,
    "mt_nlg_530b": 8_601_600,
    "gpt3_175b": 4_718_592,
    "gpt_89b": 4_718_592 // 2,
    "gpt_20b": 2 * 6144 * 44 * 2,
    "gpt_6_7b": 524_288,
    "llama2_7b": 524_288,
    "llama2_13b": 819_200,
    "llama2_70b": 327_680,
    "llama3_8b": 131_072,
    "llama3_1_8b": 131_072,
    "llama3_70b": 327_680,
    "llama3_1_405b": 516_096,
    "mixtral_8x7b": 131_072,
    "deepseek_v3": 70_272,
    "gemma_2b": 18_432,
    "gemma_7b": 458_752,
    "gemma2_9b": 344_064,
    "gemma2_27b": 376_832,
    "gemma3_27b": 507_904,
}
"""The reference table (the last three: at most); GPT-89B, 20B and 6.7B by 2 E L times 2 bytes."""


@pytest.mark.parametrize("key", list(MODELS))
def test_kv_bytes_per_token_equal_the_reference_table(key: str) -> None:
    """Goal: the cache of a token is the published one (516.096 KB for 405B). Method: bf16, all layers, exact."""
    assert MODELS[key].kv_bytes_per_token() == KV_BYTES[key]
    assert MODELS[key].kv_bytes_per_token(1.0) == KV_BYTES[key] / 2


@pytest.mark.parametrize("key", list(MODELS))
def test_parameters_follow_from_the_shape(key: str) -> None:
    """Goal: shape and parameter count belong together. Method: all matrices and the embeddings; within 0.1 %, or
    half of the last printed digit (Gemma 2B: 2.51e9)."""
    model = replace(MODELS[key], padded_heads=MODELS[key].heads)
    embeddings = (1 if model.tied_embeddings else 2) * model.vocabulary * model.d_model
    assert model.layers * model.layer_parameters + embeddings == pytest.approx(model.parameters, rel=1e-3, abs=5e6)


def test_active_parameters_of_mixtures() -> None:
    """Goal: a token of Mixtral meets 12.9e9 of 46.7e9 parameters (V), of DeepSeek-V3 about 37e9 (R); the touched
    layers alone are dense models otherwise. Method: direct."""
    assert MODELS["mixtral_8x7b"].active_parameters == pytest.approx(12.9e9, rel=3e-3)
    assert MODELS["deepseek_v3"].active_parameters == pytest.approx(37e9, rel=0.02)
    assert PALM_540B.active_parameters == PALM_540B.executed_parameters


def test_a_sliding_window_forgets() -> None:
    """Goal: local layers see at most their window, short contexts whole. Method: Gemma-3 27B, 52 of 62 layers, 1024."""
    gemma = MODELS["gemma3_27b"]
    assert gemma.attended_tokens(1000) == 1000
    assert gemma.attended_tokens(100_000) == pytest.approx((10 * 100_000 + 52 * 1024) / 62)
    assert PALM_540B.attended_tokens(100_000) == 100_000


def test_padding_of_palm_adds_eighteen_billion_parameters() -> None:
    """Goal: 48 heads padded to 64 add 18e9 parameters (Pope et al., V2), 558e9 in all. Method: direct."""
    assert PALM_540B.executed_parameters - PALM_540B.parameters == pytest.approx(18e9, rel=0.02)
    assert PALM_540B.executed_parameters == pytest.approx(558e9, rel=1e-3)


Entry = Model | Chip | StackConstants


def _numbers(entry: Entry) -> set[str]:
    skipped = {"key", "name", "family", "stack", "models", "sources"}
    named = {item.name for item in fields(entry) if item.name not in skipped}
    return {name for name in named if getattr(entry, name) not in (None, ())}


@pytest.mark.parametrize("entry", [*MODELS.values(), *CHIPS.values(), *CONSTANTS.values()])
def test_every_number_has_one_source(entry: Entry) -> None:
    """Goal: no number without source and mark, no source without a number. Method: compare the fields
    that have a value with the listed sources."""
    listed = [source.field for source in entry.sources]
    assert sorted(listed) == sorted(_numbers(entry))


@pytest.mark.parametrize("entry", list(CONSTANTS.values()))
def test_at_most_three_constants_are_fitted(entry: Entry) -> None:
    """Goal: no over-fitting. Method: count the marks."""
    assert sum(source.mark is Mark.FITTED for source in entry.sources) <= 3


def test_critical_tokens_of_the_reference() -> None:
    """Goal: 229 FLOP per byte on v4, 153 on an A100-80 (reference, D). Method: peak over memory rate."""
    assert CHIPS["tpu_v4"].critical_tokens == pytest.approx(229, abs=0.5)
    assert CHIPS["a100_80gb"].critical_tokens == pytest.approx(153, abs=0.5)
    assert 6 * TPU_V4.link_bytes_per_s == 270e9
    assert TPU_V4.interconnect is Interconnect.TORUS


def test_unknown_keys_are_refused_with_the_known_ones() -> None:
    """Goal: a mistyped key names what there is. Method: look for a known key in the message."""
    with pytest.raises(InputError, match="llama3_70b"):
        model_by_key("llama4")
    with pytest.raises(InputError, match="tpu_v4"):
        chip_by_key("tpu_v9")
    with pytest.raises(InputError, match="jax_partitioned"):
        constants_of(TPU_V4, "cuda")
    assert model_by_key("palm_540b") is PALM_540B
    assert constants_of(chip_by_key("a100_80gb")).family == "a100"


def test_impossible_models_and_constants_are_refused() -> None:
    """Goal: shapes that no transformer has are refused. Method: one bad field each."""
    with pytest.raises(ValueError, match="multiple of kv_heads"):
        replace(PALM_540B, kv_heads=7)
    with pytest.raises(ValueError, match="at least 1"):
        replace(PALM_540B, layers=0)
    entry = constants_of(TPU_V4)
    with pytest.raises(ValueError, match="efficiencies"):
        replace(entry, matmul_efficiency=1.2)
    with pytest.raises(ValueError, match="knee"):
        replace(entry, knee=0.5)
    assert isinstance(PALM_540B, Model)
