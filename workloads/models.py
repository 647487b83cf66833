"""Language models by shape: parameters, FLOPs and bytes per token follow from layers, widths and heads.

E d_model, F d_ff, H query heads, K key/value heads, h head dimension, L layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from topology.errors import refuse
from workloads.provenance import Mark, Source

BF16_BYTES = 2.0
BYTES_PER_VALUE = MappingProxyType({"bf16": 2.0, "int8": 1.0})
"""Bytes of one value by the name that a scenario uses for it."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A dense transformer. `parameters` is the nominal count; `padded_heads` is what a sharded program executes.

    `gated`: three feed-forward matrices instead of two. `parallel_block`: attention and feed-forward side by side, with
    one pair of collectives per layer instead of two.
    """

    key: str
    name: str
    layers: int
    d_model: int
    heads: int
    padded_heads: int
    kv_heads: int
    head_dim: int
    d_ff: int
    gated: bool
    vocabulary: int
    parallel_block: bool
    parameters: float
    sources: tuple[Source, ...]

    def __post_init__(self) -> None:
        """Refuse shapes that no transformer has."""
        counts = (self.layers, self.d_model, self.heads, self.kv_heads, self.head_dim, self.d_ff, self.vocabulary)
        if min(counts) < 1 or self.parameters <= 0:
            raise ValueError(f"model {self.key}: every width and count must be at least 1")
        if self.heads % self.kv_heads or self.padded_heads < self.heads:
            raise ValueError(f"model {self.key}: heads must be a multiple of kv_heads, and padded_heads at least heads")

    @property
    def executed_parameters(self) -> float:
        """Parameters that are stored and multiplied: the nominal ones and the q and o rows of padding heads."""
        extra_heads = self.padded_heads - self.heads
        return self.parameters + 2.0 * extra_heads * self.head_dim * self.d_model * self.layers

    @property
    def ffn_matrices(self) -> int:
        """Feed-forward matrices per layer: three with a gate, else two."""
        return 3 if self.gated else 2

    @property
    def layer_parameters(self) -> float:
        """Parameters of one layer that take part in its matrix products (norms left out)."""
        attention = self.d_model * self.head_dim * (2 * self.padded_heads + 2 * self.kv_heads)
        return float(attention + self.ffn_matrices * self.d_model * self.d_ff)

    def kv_bytes_per_token(self, value_bytes: float = BF16_BYTES) -> float:
        """Bytes of keys and values of one token over all layers: 2 K h L times the bytes of a value."""
        return 2.0 * self.kv_heads * self.head_dim * self.layers * value_bytes

    def weight_bytes(self, value_bytes: float = BF16_BYTES) -> float:
        """Bytes of all stored weights."""
        return self.executed_parameters * value_bytes

    def attention_flops_per_pair(self) -> float:
        """FLOPs of one (query token, key token) pair over all layers: 4 H h L."""
        return 4.0 * self.padded_heads * self.head_dim * self.layers


def _sources(shape_text: str, parameters_text: str) -> tuple[Source, ...]:
    shape_fields = (
        "layers",
        "d_model",
        "heads",
        "kv_heads",
        "head_dim",
        "d_ff",
        "gated",
        "vocabulary",
        "parallel_block",
    )
    listed = tuple(Source(field, Mark.VERIFIED, shape_text) for field in shape_fields)
    return (*listed, Source("parameters", Mark.DERIVED, parameters_text))


_MAXTEXT = "MaxText model configurations (AI-Hypercomputer/maxtext)"
_POPE_CODE = "google-research/scaling_transformer_inference_efficiency, model shapes"
_UNPADDED = Source("padded_heads", Mark.ASSUMED, "heads divide the slice: no padding")

PALM_540B = Model(
    key="palm_540b",
    name="PaLM 540B",
    layers=118,
    d_model=18432,
    heads=48,
    padded_heads=64,
    kv_heads=1,
    head_dim=256,
    d_ff=73728,
    gated=True,
    vocabulary=256128,
    parallel_block=True,
    parameters=540.3e9,
    sources=(
        *_sources(_POPE_CODE, "from the shape (nominal 540e9)"),
        Source(
            "padded_heads", Mark.SECONDARY, "Pope et al., arXiv:2211.05102: 48 heads padded to 64, +18e9 parameters"
        ),
    ),
)

LLAMA3_70B = Model(
    key="llama3_70b",
    name="Llama-3 70B",
    layers=80,
    d_model=8192,
    heads=64,
    padded_heads=64,
    kv_heads=8,
    head_dim=128,
    d_ff=28672,
    gated=True,
    vocabulary=128256,
    parallel_block=False,
    parameters=70.55e9,
    sources=(*_sources(_MAXTEXT, "from the shape"), _UNPADDED),
)

LLAMA3_1_405B = Model(
    key="llama3_1_405b",
    name="Llama-3.1 405B",
    layers=126,
    d_model=16384,
    heads=128,
    padded_heads=128,
    kv_heads=8,
    head_dim=128,
    d_ff=53248,
    gated=True,
    vocabulary=128256,
    parallel_block=False,
    parameters=405.9e9,
    sources=(*_sources(_MAXTEXT, "from the shape"), _UNPADDED),
)

MODELS = MappingProxyType({model.key: model for model in (PALM_540B, LLAMA3_70B, LLAMA3_1_405B)})
"""The catalogue, by key."""


def model_by_key(key: str) -> Model:
    """The model of the catalogue that `key` names; InputError lists the known ones."""
    try:
        return MODELS[key]
    except KeyError:
        raise refuse("model", f"{key!r} is not in the catalogue", f"write one of {', '.join(MODELS)}") from None
