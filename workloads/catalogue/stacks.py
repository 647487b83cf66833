"""The one table of stacks, in which every number bears its source and mark."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from topology.errors import refuse
from workloads.catalogue.chip import Chip
from workloads.catalogue.model import Model
from workloads.catalogue.stack import StackConstants
from workloads.provenance import Mark, Source

_BOOK = "JAX scaling book, chapter on TPUs"
_POPE_FIT = "fitted on every second row of Pope et al., TPU v4 (batch 4 left out)"
_FT_FIT = "fitted on every second row of each table of FasterTransformer, A100-80GB, tensor-parallel"
_LMDEPLOY_FIT = (
    "fitted on every second row of each table of lmdeploy 0.1.0a1, A100-80GB (those past its memory left out)"
)
_VIDUR = "Vidur profiles of A100-80GB servers"


def _each(fields: str, mark: Mark, text: str) -> tuple[Source, ...]:
    return tuple(Source(field, mark, text) for field in fields.split())


TPU_JAX = StackConstants(
    family="tpu",
    stack="jax_partitioned",
    matmul_efficiency=0.81,
    network_efficiency=0.82,
    hbm_efficiency=0.90,
    attention_efficiency=0.81,
    kv_efficiency=0.90,
    layer_fixed_s=0.0,
    step_s=4.0e-6,
    knee=2.0,
    all_logits=True,
    sources=(
        *_each("matmul_efficiency step_s", Mark.FITTED, _POPE_FIT),
        Source("layer_fixed_s", Mark.FITTED, "of these layer_fixed_s comes out as none: steps hold launches and all"),
        Source("attention_efficiency", Mark.ASSUMED, "as other products, as FlashAttention-2 does on an A100"),
        Source("network_efficiency", Mark.VERIFIED, _BOOK + ": measured all-gather at 0.82 of the link speed (v5e)"),
        Source("hbm_efficiency", Mark.DERIVED, "weights stream at 0.91 of the peak on a TPU v6e (LLMServingSim)"),
        Source("kv_efficiency", Mark.ASSUMED, "as weights"),
        Source("knee", Mark.ASSUMED, "2-norm: fits decode better than a sharp maximum"),
        *_each("collective_fixed_s pass_fixed_s sequence_fixed_s", Mark.ASSUMED, "none beside hops and steps"),
        *_each("prompt_layer_fixed_s shared_kv_reads tiled_attention", Mark.ASSUMED, "one compiled program"),
        Source("elementwise_passes", Mark.ASSUMED, "none: the compiler fuses them into their neighbours"),
        Source("all_logits", Mark.VERIFIED, "google-research/scaling_transformer_inference_efficiency"),
        Source("micro_batch_tokens", Mark.ASSUMED, "no pipeline was measured"),
    ),
)

_MEASURED_A100 = (
    Source("matmul_efficiency", Mark.DERIVED, _VIDUR + ": products of 4,096 tokens reach 0.71 to 0.82 of the peak"),
    Source("network_efficiency", Mark.DERIVED, _VIDUR + ": 191 of 300 GB/s from 16 to 64 MB, all-reduce over eight"),
    Source("hbm_efficiency", Mark.DERIVED, _VIDUR + ": weights of a layer stream at 0.75 of the peak"),
    Source("layer_fixed_s", Mark.DERIVED, _VIDUR + ": norms, rotation, activation and sum of 1 token take 24 us"),
    Source("elementwise_passes", Mark.ASSUMED, "norms, sums, biases and transposes of a layer, three kernels of four"),
    Source("kv_efficiency", Mark.ASSUMED, "long contiguous reads, a little better than weights"),
    Source("knee", Mark.DERIVED, _VIDUR + ": products of 64 to 256 tokens follow a 3-norm"),
    Source("step_s", Mark.ASSUMED, "none: what a step through the switch takes is the chip's"),
    Source("prompt_layer_fixed_s", Mark.ASSUMED, "none beside that of a layer"),
    Source("all_logits", Mark.ASSUMED, "logits for the last token alone"),
    Source("shared_kv_reads", Mark.ASSUMED, "each query head reads K and V, from L2, in decode kernels of 2023"),
    Source(
        "micro_batch_tokens",
        Mark.VERIFIED,
        "FasterTransformer, nccl_utils.cc: local batches are halved down to 2,048 tokens (later to 1,024)",
    ),
)

A100_FASTERTRANSFORMER = StackConstants(
    family="a100",
    stack="fastertransformer",
    models=("mt_nlg_530b", "gpt_20b", "gpt_6_7b"),
    matmul_efficiency=0.72,
    network_efficiency=0.64,
    hbm_efficiency=0.755,
    attention_efficiency=0.045,
    kv_efficiency=0.85,
    layer_fixed_s=2.0e-5,
    collective_fixed_s=1.2e-5,
    pass_fixed_s=1.66e-3,
    sequence_fixed_s=3.9e-5,
    elementwise_passes=10.0,
    knee=3.0,
    shared_kv_reads=False,
    tiled_attention=False,
    micro_batch_tokens=2048,
    sources=(
        *_MEASURED_A100,
        *_each("collective_fixed_s pass_fixed_s sequence_fixed_s", Mark.FITTED, _FT_FIT),
        Source("attention_efficiency", Mark.DERIVED, "GPT-6.7B: 512 tokens of prompt against 128 at equal tokens"),
        Source("tiled_attention", Mark.ASSUMED, "products and softmax of a prompt as kernels of their own"),
    ),
)


def _megatron_sources() -> tuple[Source, ...]:
    own = {field: Source(field, Mark.FITTED, _FT_FIT) for field in ("pass_fixed_s", "prompt_layer_fixed_s")}
    same = {
        field: Source(field, Mark.ASSUMED, "as in the other tables")
        for field in ("collective_fixed_s", "sequence_fixed_s")
    }
    changed = {**own, **same}
    return tuple(changed.get(source.field, source) for source in A100_FASTERTRANSFORMER.sources)


A100_MEGATRON_TABLES = replace(
    A100_FASTERTRANSFORMER,
    stack="fastertransformer_megatron_tables",
    models=("gpt3_175b", "gpt_89b"),
    pass_fixed_s=3.1e-3,
    prompt_layer_fixed_s=1.53e-3,
    sources=_megatron_sources(),
)
"""The tables of GPT-175B and GPT-89B hold some two passes per request more than the same guide's tables of 530B, 20B
and 6.7B, whatever the batch: they were measured otherwise, so they have a stack of their own."""

A100_LMDEPLOY = replace(
    A100_FASTERTRANSFORMER,
    stack="lmdeploy",
    models=("llama2_7b", "llama2_13b", "llama2_70b"),
    attention_efficiency=0.5,
    collective_fixed_s=0.95e-5,
    pass_fixed_s=4.1e-4,
    sequence_fixed_s=0.0,
    tiled_attention=True,
    sources=(
        *_MEASURED_A100,
        *_each("collective_fixed_s pass_fixed_s", Mark.FITTED, _LMDEPLOY_FIT),
        Source("sequence_fixed_s", Mark.ASSUMED, "none: greedy choice"),
        Source("attention_efficiency", Mark.SECONDARY, "FlashAttention: 0.25 to 0.73 of the peak"),
        Source("tiled_attention", Mark.ASSUMED, "fused attention in the prompt"),
    ),
)


_VLLM_FIT = "fitted on 150 requests that vLLM 0.19 served on an RTX 4090: times to first and to later tokens"

RTX_4090_VLLM = StackConstants(
    family="rtx_4090",
    stack="vllm",
    models=("llama3_1_8b",),
    matmul_efficiency=0.80,
    network_efficiency=0.64,
    hbm_efficiency=0.845,
    attention_efficiency=0.80,
    kv_efficiency=0.845,
    layer_fixed_s=0.0,
    knee=2.0,
    sources=(
        *_each("matmul_efficiency hbm_efficiency", Mark.FITTED, _VLLM_FIT),
        *_each("attention_efficiency kv_efficiency", Mark.ASSUMED, "as other products, as weights"),
        Source("layer_fixed_s", Mark.FITTED, _VLLM_FIT + "; at its bound"),
        *_each("network_efficiency micro_batch_tokens", Mark.ASSUMED, "as on the A100"),
        Source("knee", Mark.ASSUMED, "2-norm"),
        *_each(
            "collective_fixed_s step_s pass_fixed_s sequence_fixed_s prompt_layer_fixed_s elementwise_passes "
            "all_logits",
            Mark.ASSUMED,
            "none: in the shares",
        ),
        *_each("shared_kv_reads tiled_attention", Mark.ASSUMED, "kernels of 2025"),
    ),
)

_H100_FITTED = {
    "matmul_efficiency": "fitted on prompts of 1,024 to 8,192 tokens, batch 1, of Llama-2 70B on two H100s (Splitwise)",
    "hbm_efficiency": "as on the A100; steps of Llama-2 70B on two GPUs bear it out: 33.8 of 54.9 ms on A100s, 20.6 of "
    "37.2 ms on H100s are weights at the peak, and at this share both leave 10 ms to the software (Splitwise)",
}
_H100_MARKS = {"matmul_efficiency": Mark.FITTED, "hbm_efficiency": Mark.DERIVED}

H100_SPLITWISE = replace(
    A100_LMDEPLOY,
    family="h100",
    stack="splitwise",
    models=(),
    matmul_efficiency=0.54,
    shared_kv_reads=True,
    sources=tuple(
        Source(
            source.field,
            _H100_MARKS.get(source.field, Mark.ASSUMED),
            _H100_FITTED.get(source.field, "as on the A100"),
        )
        for source in A100_LMDEPLOY.sources
    ),
)
"""Products as measured on two H100s; all else is the A100's, until something is measured."""

STACKS = (
    TPU_JAX,
    A100_LMDEPLOY,
    A100_FASTERTRANSFORMER,
    A100_MEGATRON_TABLES,
    H100_SPLITWISE,
    RTX_4090_VLLM,
)
"""The first of a family is its usual one."""

CONSTANTS = MappingProxyType({(entry.family, entry.stack): entry for entry in STACKS})
"""The same by (chip family, software stack)."""


def constants_of(chip: Chip, stack: str | None = None, model: Model | None = None) -> StackConstants:
    """The constants of `stack` on `chip`; InputError lists what is known.

    Without a stack: the one with which `model` was measured on such chips, else the family's usual one.
    """
    of_family = [entry for entry in STACKS if entry.family == chip.family]
    if stack is None and of_family:
        key = model.key if model is not None else None
        return next((entry for entry in of_family if key in entry.models), of_family[0])
    try:
        return CONSTANTS[chip.family, stack or ""]
    except KeyError:
        known = ", ".join(entry.stack for entry in of_family) or f"a chip of {', '.join(_families())}"
        raise refuse(
            "stack", f"{stack!r} is not known for chips of family {chip.family}", f"write one of {known}"
        ) from None


def _families() -> list[str]:
    return list(dict.fromkeys(entry.family for entry in STACKS))
