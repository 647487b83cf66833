"""The shapes of the catalogue's models, each with its source."""

from __future__ import annotations

from dataclasses import fields

from workloads.catalogue.model import Experts, LatentAttention, Model, SlidingWindow
from workloads.provenance import Mark, Source

_MAXTEXT = "MaxText model configurations (AI-Hypercomputer/maxtext)"
_POPE_CODE = "google-research/scaling_transformer_inference_efficiency, model shapes"
_GUIDE = "NVIDIA FasterTransformer docs/gpt_guide.md"
_SAID = ("key", "name", "parameters", "padded_heads", "tied_embeddings", "parallel_block", "sources")


def _model(
    key: str,
    name: str,
    sizes: tuple[int, int, int, int, int, int, int],
    parameters: float,
    source: str,
    *,
    mark: Mark = Mark.VERIFIED,
    gated: bool = True,
    tied: bool = False,
    parallel: bool = False,
    padded_heads: int | None = None,
    latent: LatentAttention | None = None,
    experts: Experts | None = None,
    window: SlidingWindow | None = None,
    more: tuple[Source, ...] = (),
) -> Model:
    """A model; `sizes` are layers, d_model, heads, kv_heads, head_dim, d_ff, vocabulary. `more` replaces sources."""
    layers, d_model, heads, kv_heads, head_dim, d_ff, vocabulary = sizes
    optional = {"latent": latent, "experts": experts, "window": window}
    shape_fields = [item.name for item in fields(Model) if item.name not in _SAID]
    listed = {field: Source(field, mark, source) for field in shape_fields if optional.get(field, True) is not None}
    listed |= {
        "parallel_block": Source("parallel_block", mark, source),
        "tied_embeddings": Source("tied_embeddings", Mark.DERIVED, "so that shape and parameter count agree"),
        "parameters": Source("parameters", Mark.DERIVED, "from the shape"),
        "padded_heads": Source("padded_heads", Mark.ASSUMED, "heads divide the slice: no padding"),
    }
    listed |= {each.field: each for each in more}
    return Model(
        key=key,
        name=name,
        layers=layers,
        d_model=d_model,
        heads=heads,
        padded_heads=padded_heads or heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        d_ff=d_ff,
        gated=gated,
        vocabulary=vocabulary,
        parallel_block=parallel,
        tied_embeddings=tied,
        parameters=parameters,
        latent=latent,
        experts=experts,
        window=window,
        sources=tuple(listed.values()),
    )


PALM_8B = _model(
    "palm_8b", "PaLM 8B", (32, 4096, 16, 1, 256, 16384, 256128), 8.63e9, _POPE_CODE, tied=True, parallel=True
)
PALM_62B = _model(
    "palm_62b", "PaLM 62B", (64, 8192, 32, 1, 256, 32768, 256128), 62.5e9, _POPE_CODE, tied=True, parallel=True
)
PALM_540B = _model(
    "palm_540b",
    "PaLM 540B",
    (118, 18432, 48, 1, 256, 73728, 256128),
    540.3e9,
    _POPE_CODE,
    tied=True,
    parallel=True,
    padded_heads=64,
    more=(
        Source("parameters", Mark.DERIVED, "from the shape (nominal 540e9)"),
        Source(
            "padded_heads", Mark.SECONDARY, "Pope et al., arXiv:2211.05102: 48 heads padded to 64, +18e9 parameters"
        ),
    ),
)
MT_NLG_530B = _model(
    "mt_nlg_530b",
    "MT-NLG 530B",
    (105, 20480, 128, 128, 160, 81920, 51200),
    529.5e9,
    _GUIDE,
    gated=False,
    tied=True,
)
GPT3_175B = _model(
    "gpt3_175b",
    "GPT-3 175B",
    (96, 12288, 96, 96, 128, 49152, 50304),
    174.6e9,
    _GUIDE + " and MaxText: vocabulary 50,257 padded to 50,304",
    gated=False,
    tied=True,
)
_GPT_VOCABULARY = (Source("vocabulary", Mark.ASSUMED, "as of MT-NLG in the same guide"),)
GPT_89B = _model(
    "gpt_89b",
    "GPT-89B",
    (48, 12288, 96, 96, 128, 49152, 51200),
    87.6e9,
    _GUIDE + ": GPT-175B with 48 layers",
    gated=False,
    tied=True,
    more=_GPT_VOCABULARY,
)
GPT_20B = _model(
    "gpt_20b",
    "GPT-20B",
    (44, 6144, 48, 48, 128, 24576, 51200),
    20.25e9,
    _GUIDE,
    gated=False,
    tied=True,
    more=_GPT_VOCABULARY,
)
GPT_6_7B = _model(
    "gpt_6_7b",
    "GPT-6.7B",
    (32, 4096, 32, 32, 128, 16384, 51200),
    6.652e9,
    _GUIDE,
    gated=False,
    tied=True,
    more=_GPT_VOCABULARY,
)

LLAMA2_7B = _model("llama2_7b", "Llama-2 7B", (32, 4096, 32, 32, 128, 11008, 32000), 6.74e9, _MAXTEXT)
LLAMA2_13B = _model("llama2_13b", "Llama-2 13B", (40, 5120, 40, 40, 128, 13824, 32000), 13.02e9, _MAXTEXT)
LLAMA2_70B = _model("llama2_70b", "Llama-2 70B", (80, 8192, 64, 8, 128, 28672, 32000), 68.98e9, _MAXTEXT)
LLAMA3_8B = _model("llama3_8b", "Llama-3 8B", (32, 4096, 32, 8, 128, 14336, 128256), 8.03e9, _MAXTEXT)
LLAMA3_1_8B = _model("llama3_1_8b", "Llama-3.1 8B", (32, 4096, 32, 8, 128, 14336, 128256), 8.03e9, _MAXTEXT)
LLAMA3_70B = _model("llama3_70b", "Llama-3 70B", (80, 8192, 64, 8, 128, 28672, 128256), 70.55e9, _MAXTEXT)
LLAMA3_1_405B = _model("llama3_1_405b", "Llama-3.1 405B", (126, 16384, 128, 8, 128, 53248, 128256), 405.9e9, _MAXTEXT)

MIXTRAL_8X7B = _model(
    "mixtral_8x7b",
    "Mixtral 8x7B",
    (32, 4096, 32, 8, 128, 14336, 32000),
    46.7e9,
    _MAXTEXT,
    experts=Experts(count=8, active=2, d_ff=14336),
)
DEEPSEEK_V3 = _model(
    "deepseek_v3",
    "DeepSeek-V3",
    (61, 7168, 128, 128, 128, 18432, 129280),
    671e9,
    _MAXTEXT,
    latent=LatentAttention(rank=512, rope_dim=64, query_rank=1536, nope_dim=128, value_dim=128),
    experts=Experts(count=256, active=8, d_ff=2048, shared=1, dense_layers=3),
    more=(
        Source("latent", Mark.DERIVED, _MAXTEXT + "; rank of the queries (1,536) recalled, so that 671e9 comes out"),
    ),
)

GEMMA_2B = _model("gemma_2b", "Gemma 2B", (18, 2048, 8, 1, 256, 16384, 256128), 2.51e9, _MAXTEXT, tied=True)
GEMMA_7B = _model("gemma_7b", "Gemma 7B", (28, 3072, 16, 16, 256, 24576, 256128), 8.54e9, _MAXTEXT, tied=True)
GEMMA2_9B = _model(
    "gemma2_9b",
    "Gemma-2 9B",
    (42, 3584, 16, 8, 256, 14336, 256128),
    9.24e9,
    _MAXTEXT,
    tied=True,
    window=SlidingWindow(tokens=4096, layers=21),
)
GEMMA2_27B = _model(
    "gemma2_27b",
    "Gemma-2 27B",
    (46, 4608, 32, 16, 128, 36864, 256128),
    27.2e9,
    _MAXTEXT,
    tied=True,
    window=SlidingWindow(tokens=4096, layers=23),
)
GEMMA3_27B = _model(
    "gemma3_27b",
    "Gemma-3 27B",
    (62, 5376, 32, 16, 128, 21504, 262144),
    27.0e9,
    _MAXTEXT,
    tied=True,
    window=SlidingWindow(tokens=1024, layers=52),
    more=(Source("window", Mark.RECALLED, _MAXTEXT + " for 1,024 tokens; five local layers to one global recalled"),),
)

MODEL_TABLE = (
    PALM_8B, PALM_62B, PALM_540B, MT_NLG_530B, GPT3_175B, GPT_89B, GPT_20B, GPT_6_7B, LLAMA2_7B, LLAMA2_13B,
    LLAMA2_70B, LLAMA3_8B, LLAMA3_1_8B, LLAMA3_70B, LLAMA3_1_405B, MIXTRAL_8X7B, DEEPSEEK_V3, GEMMA_2B, GEMMA_7B,
    GEMMA2_9B, GEMMA2_27B, GEMMA3_27B,
)  # fmt: skip
