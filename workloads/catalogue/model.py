"""A language model by shape: parameters, FLOPs and bytes per token follow from layers, widths, heads and experts.

E d_model, F d_ff, H query heads, K key/value heads, h head dimension, L layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from workloads.provenance import Source

BF16_BYTES = 2.0
BYTES_PER_VALUE = MappingProxyType({"bf16": 2.0, "int8": 1.0, "fp8": 1.0})
"""Bytes of one value by the name that a scenario uses for it."""


@dataclass(frozen=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention: one latent vector of `rank` and one rotated key of `rope_dim` per token are cached.

    `query_rank`: rank of the compressed queries. A head has `nope_dim` + `rope_dim` for keys, `value_dim` for values.
    """

    rank: int
    rope_dim: int
    query_rank: int
    nope_dim: int
    value_dim: int


@dataclass(frozen=True, kw_only=True)
class Experts:
    """Mixture of experts: `count` of width `d_ff`, of which a token uses `active`, beside `shared` that all use.

    The first `dense_layers` layers have one feed-forward block of the model's own d_ff in their place.
    """

    count: int
    active: int
    d_ff: int
    shared: int = 0
    dense_layers: int = 0


@dataclass(frozen=True, kw_only=True)
class SlidingWindow:
    """`layers` of the layers see only the last `tokens` tokens."""

    tokens: int
    layers: int


class Part(StrEnum):
    """What a matrix of the model belongs to."""

    ATTENTION = "attention"
    FEED_FORWARD = "feed_forward"
    ROUTED_EXPERTS = "routed_experts"
    EMBEDDING = "embedding"


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """One matrix of `layers` layers, `rows` x `columns`: held `copies` times per layer, `used` times per token.

    `outgoing`: it leads from the model's width to an inner width (the others lead back).
    """

    name: str
    part: Part
    layers: int
    rows: int
    columns: int
    outgoing: bool
    copies: int = 1
    used: int = 1

    @property
    def parameters(self) -> float:
        """Stored parameters over all layers."""
        return float(self.layers * self.copies * self.rows * self.columns)

    @property
    def active_parameters(self) -> float:
        """Parameters that one token is multiplied with, over all layers."""
        return float(self.layers * self.used * self.rows * self.columns)


@dataclass(frozen=True, kw_only=True)
class Model:
    """A transformer. `parameters` is the nominal count; `padded_heads` is what a sharded program executes.

    `gated`: three feed-forward matrices instead of two. `parallel_block`: attention and feed-forward side by side, with
    one pair of collectives per layer instead of two. `tied_embeddings`: one matrix for input and output.
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
    tied_embeddings: bool
    parameters: float
    latent: LatentAttention | None = None
    experts: Experts | None = None
    window: SlidingWindow | None = None
    sources: tuple[Source, ...]

    def __post_init__(self) -> None:
        """Refuse shapes that no transformer has."""
        counts = (self.layers, self.d_model, self.heads, self.kv_heads, self.head_dim, self.d_ff, self.vocabulary)
        if min(counts) < 1 or self.parameters <= 0:
            raise ValueError(f"model {self.key}: every width and count must be at least 1")
        if self.heads % self.kv_heads or self.padded_heads < self.heads:
            raise ValueError(f"model {self.key}: heads must be a multiple of kv_heads, and padded_heads at least heads")
        experts, window, latent = self.experts, self.window, self.latent
        if experts is not None and not (
            1 <= experts.active <= experts.count
            and experts.shared >= 0
            and experts.d_ff >= 1
            and 0 <= experts.dense_layers <= self.layers
        ):
            raise ValueError(f"model {self.key}: 1 <= active <= count experts, and dense_layers at most layers")
        if window is not None and not (window.tokens >= 1 and 0 <= window.layers <= self.layers):
            raise ValueError(f"model {self.key}: a window of at least 1 token, on at most all layers")
        if latent is not None and min(latent.rank, latent.query_rank, latent.nope_dim, latent.value_dim) < 1:
            raise ValueError(f"model {self.key}: every width of latent attention must be at least 1")

    # -- matrices ----------------------------------------------------------------------------------------------------

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """All matrices of the layers, padding heads included, and the output embedding (norms and biases left out)."""
        vocabulary = Matrix(
            name="unembedding",
            part=Part.EMBEDDING,
            layers=1,
            rows=self.d_model,
            columns=self.vocabulary,
            outgoing=True,
        )
        return (*self._attention_matrices(), *self._feed_forward_matrices(), vocabulary)

    def _attention_matrices(self) -> tuple[Matrix, ...]:
        width, heads, latent = self.d_model, self.padded_heads, self.latent

        def matrix(name: str, rows: int, columns: int, outgoing: bool = True) -> Matrix:
            part = Part.ATTENTION
            return Matrix(name=name, part=part, layers=self.layers, rows=rows, columns=columns, outgoing=outgoing)

        if latent is None:
            out = matrix("attention_out", heads * self.head_dim, width, outgoing=False)
            return matrix("qkv", width, (heads + 2 * self.kv_heads) * self.head_dim), out
        keys_dim = latent.nope_dim + latent.rope_dim
        return (
            matrix("latents", width, latent.query_rank + latent.rank + latent.rope_dim),
            matrix("queries", latent.query_rank, heads * keys_dim),
            matrix("keys_values", latent.rank, heads * (latent.nope_dim + latent.value_dim)),
            matrix("attention_out", heads * latent.value_dim, width, outgoing=False),
        )

    def _feed_forward_matrices(self) -> tuple[Matrix, ...]:
        gates, experts = 2 if self.gated else 1, self.experts

        def pair(part: Part, layers: int, d_ff: int, copies: int = 1, used: int = 1) -> tuple[Matrix, ...]:
            name = part.value
            into = Matrix(
                name=f"{name}_in",
                part=part,
                layers=layers,
                rows=self.d_model,
                columns=gates * d_ff,
                outgoing=True,
                copies=copies,
                used=used,
            )
            back = Matrix(
                name=f"{name}_out",
                part=part,
                layers=layers,
                rows=d_ff,
                columns=self.d_model,
                outgoing=False,
                copies=copies,
                used=used,
            )
            return into, back

        if experts is None:
            return pair(Part.FEED_FORWARD, self.layers, self.d_ff)
        mixed = self.layers - experts.dense_layers
        found = pair(Part.ROUTED_EXPERTS, mixed, experts.d_ff, experts.count, experts.active)
        if experts.dense_layers:
            found = (*pair(Part.FEED_FORWARD, experts.dense_layers, self.d_ff), *found)
        if experts.shared:
            found = (*found, *pair(Part.FEED_FORWARD, mixed, experts.shared * experts.d_ff))
        return found

    @property
    def layer_parameters(self) -> float:
        """Parameters of one layer, of the mean layer where layers differ, that take part in its matrix products."""
        return sum(each.parameters for each in self.matrices if each.part is not Part.EMBEDDING) / self.layers

    @property
    def executed_parameters(self) -> float:
        """Parameters that are stored and multiplied: the nominal ones and the q and o rows of padding heads."""
        extra_heads = self.padded_heads - self.heads
        return self.parameters + 2.0 * extra_heads * self.head_dim * self.d_model * self.layers

    @property
    def active_parameters(self) -> float:
        """Parameters that one token is multiplied with: the executed ones, of the experts only those it uses."""
        idle = sum(each.parameters - each.active_parameters for each in self.matrices)
        return self.executed_parameters - idle

    def weight_bytes(self, value_bytes: float = BF16_BYTES) -> float:
        """Bytes of all stored weights."""
        return self.executed_parameters * value_bytes

    # -- attention ---------------------------------------------------------------------------------------------------

    @property
    def kv_width(self) -> int:
        """Values that one layer caches for one token: 2 K h, or the latent vector and the rotated key."""
        return 2 * self.kv_heads * self.head_dim if self.latent is None else self.latent.rank + self.latent.rope_dim

    @property
    def kv_shards(self) -> int:
        """Most ways in which one token's cache is split over heads: K, or 1 where all heads share a latent vector."""
        return self.kv_heads if self.latent is None else 1

    @property
    def query_width(self) -> int:
        """Width of all queries, padding heads included."""
        dim = self.head_dim if self.latent is None else self.latent.nope_dim + self.latent.rope_dim
        return self.padded_heads * dim

    @property
    def attention_out_width(self) -> int:
        """Width of what attention gives back, padding heads included."""
        return self.padded_heads * (self.head_dim if self.latent is None else self.latent.value_dim)

    def kv_bytes_per_token(self, value_bytes: float = BF16_BYTES) -> float:
        """Bytes of the cache of one token over all layers; a sliding window forgets later, so this is the most."""
        return float(self.kv_width * self.layers) * value_bytes

    def attended_tokens(self, context_tokens: float) -> float:
        """Tokens of a context that the mean layer sees: layers with a sliding window see at most their window."""
        if self.window is None:
            return float(context_tokens)
        local = self.window.layers / self.layers
        return (1.0 - local) * context_tokens + local * min(context_tokens, self.window.tokens)

    def attention_flops_per_pair(self, *, decode: bool = False) -> float:
        """FLOPs of one (query token, key token) pair over all layers: 4 H h L.

        With latent attention a decode works on the latent vectors themselves: 2 H (2 rank + rope) L.
        """
        if decode and self.latent is not None:
            return 2.0 * self.padded_heads * (2 * self.latent.rank + self.latent.rope_dim) * self.layers
        return 2.0 * (self.query_width + self.attention_out_width) * self.layers
