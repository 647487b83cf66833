"""How well a software stack uses a family of chips: shares of the catalogue's peaks, and times that do not shrink."""

from __future__ import annotations

from dataclasses import dataclass

from workloads.provenance import Source


@dataclass(frozen=True, kw_only=True)
class StackConstants:
    """Constants of one software stack on one chip family. At most three are fitted; `sources` says which, on what.

    `attention_efficiency`: share of the peak that attention over a prompt reaches. `kv_efficiency`: share of the HBM
    rate at which keys and values are read. `layer_fixed_s`: per layer and pass; `collective_fixed_s`: per gather,
    scatter or all-to-all; `step_s`: per step of one, of which n chips take log2 n. `pass_fixed_s`, `sequence_fixed_s`:
    per pass, and per sequence that gets a token (sampling); `prompt_layer_fixed_s`: per layer of a pass with prompts.
    `elementwise_passes`: how often values of the model's width go to and from memory per layer, beside the products.
    `knee`: power of the norm that joins computing and reading weights: 2 is a soft knee, large values a sharp one.
    `shared_kv_reads`: query heads of a group read K and V once, not each from L2. `tiled_attention`: FlashAttention.
    `all_logits`: a prompt gets logits for all its tokens. `micro_batch_tokens`: most tokens of a micro-batch.
    `models`: keys of the models that were measured with it.
    """

    family: str
    stack: str
    models: tuple[str, ...] = ()
    matmul_efficiency: float
    network_efficiency: float
    hbm_efficiency: float
    attention_efficiency: float
    kv_efficiency: float
    layer_fixed_s: float
    collective_fixed_s: float = 0.0
    step_s: float = 0.0
    pass_fixed_s: float = 0.0
    sequence_fixed_s: float = 0.0
    prompt_layer_fixed_s: float = 0.0
    elementwise_passes: float = 0.0
    knee: float
    shared_kv_reads: bool = True
    tiled_attention: bool = True
    all_logits: bool = False
    micro_batch_tokens: int = 1024
    sources: tuple[Source, ...]

    def __post_init__(self) -> None:
        """Refuse shares outside (0, 1], negative times or a knee below 1."""
        shares = (self.matmul_efficiency, self.network_efficiency, self.hbm_efficiency)
        if not all(0 < share <= 1 for share in (*shares, self.attention_efficiency, self.kv_efficiency)):
            raise ValueError("efficiencies must lie in (0, 1]")
        times = (
            self.layer_fixed_s,
            self.collective_fixed_s,
            self.step_s,
            self.pass_fixed_s,
            self.sequence_fixed_s,
            self.prompt_layer_fixed_s,
            self.elementwise_passes,
        )
        if min(times) < 0 or self.knee < 1 or self.micro_batch_tokens < 1:
            raise ValueError("times must not be negative, knee and micro_batch_tokens at least 1")
