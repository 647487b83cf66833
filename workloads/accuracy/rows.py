"""One time of a pass or a request that others measured, with source and mark. The times themselves stand in scenarios.

Recalled rows (mark R) are never called published: they are from memory, however consistent (prefill + decode = total,
and latency x MFU gives the model's FLOPs to rounding).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from workloads.costs.layouts import Attention, Layout
from workloads.provenance import Mark


class Kind(StrEnum):
    """What a row times."""

    PREFILL = "prefill"
    """One pass over all prompts."""
    DECODE = "decode"
    """`output` steps; the first one reads `input` tokens of each sequence."""
    REQUEST = "request"
    """The prompt, which gives the first token, and `output` - 1 steps."""
    PROMPT_AND_STEPS = "prompt_and_steps"
    """The prompt and `output` steps."""
    TIME_PER_TOKEN = "time_per_token"
    """The median step of an answer of `output` tokens: at half of it."""


@dataclass(frozen=True, kw_only=True)
class MeasuredRow:
    """One measured time. `rounding_s`: half of the last printed digit, where that is coarse.

    `counted` says whether it counts in the errors of its `group`; known oddities, and rows without a bar, do not.
    """

    group: str
    kind: Kind
    model: str
    chip: str
    shape: str
    batch: int
    input_tokens: int
    output_tokens: int
    measured_s: float
    mark: Mark
    source: str = ""
    attention: Attention = Attention.HEADS
    layout: Layout = Layout.WEIGHT_STATIONARY_2D
    weights: str = "bf16"
    rounding_s: float = 0.0
    counted: bool = True

    @property
    def name(self) -> str:
        """The row in words."""
        tokens = f"{self.input_tokens}/{self.output_tokens}" if self.output_tokens else f"{self.input_tokens} tokens"
        return f"{self.model} on {self.shape} {self.chip}, {tokens}, batch {self.batch}"
