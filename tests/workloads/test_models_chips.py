"""Catalogues: numbers equal their references, and every number says where it comes from."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from topology.errors import InputError
from workloads.chips import CHIPS, CONSTANTS, TPU_V4, Interconnect, chip_by_key, constants_of
from workloads.models import MODELS, PALM_540B, Model, model_by_key
from workloads.provenance import Mark

KV_BYTES = {"palm_540b": 120_832, "llama3_70b": 327_680, "llama3_1_405b": 516_096}
TIED = {"palm_540b": 1, "llama3_70b": 2, "llama3_1_405b": 2}


@pytest.mark.parametrize("key", sorted(MODELS))
def test_kv_bytes_per_token_equal_the_reference_table(key: str) -> None:
    """Goal: the cache of a token is the published one (516.096 KB for 405B). Method: bf16, all layers, exact."""
    assert MODELS[key].kv_bytes_per_token() == KV_BYTES[key]
    assert MODELS[key].kv_bytes_per_token(1.0) == KV_BYTES[key] / 2


@pytest.mark.parametrize("key", sorted(MODELS))
def test_parameters_follow_from_the_shape(key: str) -> None:
    """Goal: shape and parameter count belong together. Method: layers plus embeddings, within 0.1 %."""
    model = replace(MODELS[key], padded_heads=MODELS[key].heads)
    embeddings = TIED[key] * model.vocabulary * model.d_model
    assert model.layers * model.layer_parameters + embeddings == pytest.approx(model.parameters, rel=1e-3)


def test_padding_of_palm_adds_eighteen_billion_parameters() -> None:
    """Goal: 48 heads padded to 64 add 18e9 parameters (Pope et al., V2), 558e9 in all. Method: direct."""
    assert PALM_540B.executed_parameters - PALM_540B.parameters == pytest.approx(18e9, rel=0.02)
    assert PALM_540B.executed_parameters == pytest.approx(558e9, rel=1e-3)


def _numbers(entry: object) -> set[str]:
    skipped = {"key", "name", "family", "stack", "sources"}
    return {item.name for item in fields(entry) if item.name not in skipped}  # type: ignore[arg-type]


@pytest.mark.parametrize("entry", [*MODELS.values(), *CHIPS.values(), *CONSTANTS.values()])
def test_every_number_has_one_source(entry: object) -> None:
    """Goal: no number without source and mark. Method: compare the fields with the listed sources."""
    listed = [source.field for source in entry.sources]  # type: ignore[attr-defined]
    assert sorted(listed) == sorted(_numbers(entry))


@pytest.mark.parametrize("entry", list(CONSTANTS.values()))
def test_at_most_three_constants_are_fitted(entry: object) -> None:
    """Goal: no over-fitting. Method: count the marks."""
    assert sum(source.mark is Mark.FITTED for source in entry.sources) <= 3  # type: ignore[attr-defined]


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
