"""Published times of passes and requests, each with its mark. Recalled rows (R*) are never called published.

R*: recalled, but prefill + decode = total, and latency x MFU gives the model's FLOPs to rounding. Batch 4 of Pope et
al. is irregular (a step slower than that of batch 16) and reported apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from workloads.costs.layouts import Attention
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
    """One published time. `rounding_s`: half of the last printed digit, where that is coarse."""

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
    attention: Attention = Attention.HEADS
    weights: str = "bf16"
    rounding_s: float = 0.0
    irregular: bool = False

    @property
    def name(self) -> str:
        """The row in words."""
        tokens = f"{self.input_tokens}/{self.output_tokens}" if self.output_tokens else f"{self.input_tokens} tokens"
        return f"{self.model} on {self.shape} {self.chip}, {tokens}, batch {self.batch}"


POPE_SOURCE = "Pope et al., arXiv:2211.05102 (V2: secondary texts; R*: recalled, consistent)"
FASTERTRANSFORMER_SOURCE = "NVIDIA FasterTransformer docs/gpt_guide.md, A100-80GB"
LMDEPLOY_SOURCE = "lmdeploy docs/en/benchmark/a100_fp16.md, v0.1.0a1, A100-80GB"


def _pope() -> list[MeasuredRow]:
    rows = []

    def row(
        kind: Kind,
        batch: int,
        tokens: tuple[int, int],
        seconds: float,
        mark: Mark,
        *,
        model: str = "palm_540b",
        shape: str = "4x4x4",
        group: str | None = None,
        attention: Attention = Attention.HEADS,
        weights: str = "bf16",
        rounding_s: float = 0.0,
        irregular: bool = False,
    ) -> None:
        rows.append(
            MeasuredRow(
                group=group or f"pope_{kind.value}",
                kind=kind,
                model=model,
                chip="tpu_v4",
                shape=shape,
                batch=batch,
                input_tokens=tokens[0],
                output_tokens=tokens[1],
                measured_s=seconds,
                mark=mark,
                attention=attention,
                weights=weights,
                rounding_s=rounding_s,
                irregular=irregular,
            )
        )

    by_batch, seen, recalled = Attention.BATCH, Mark.SECONDARY, Mark.RECALLED
    row(Kind.PREFILL, 1, (2048, 0), 0.29, seen, weights="int8", rounding_s=0.005)
    row(Kind.PREFILL, 1, (2048, 0), 0.16, seen, weights="int8", model="palm_62b", shape="2x2x4", rounding_s=0.005)
    row(Kind.DECODE, 512, (1984, 64), 6.0, seen, attention=by_batch, rounding_s=0.5)
    row(Kind.DECODE, 512, (1984, 64), 5.1, seen, attention=by_batch, model="palm_62b", shape="2x2x2", rounding_s=0.05)
    row(Kind.DECODE, 64, (1984, 64), 64 * 0.0369, seen, attention=by_batch)
    for tokens, rows_ms in _POPE_MS.items():
        for batch, prefill, decode in rows_ms:
            odd = batch == 4
            row(Kind.PREFILL, batch, (tokens[0], 0), prefill * 1e-3, recalled, irregular=odd, rounding_s=5e-4)
            row(Kind.DECODE, batch, tokens, decode * 1e-3, recalled, irregular=odd, rounding_s=5e-4)
    for batch, total, mark in ((1024, 4041, seen), (128, 1814, seen)):
        tokens = (20, 8) if batch == 1024 else (60, 20)
        row(Kind.PROMPT_AND_STEPS, batch, tokens, total * 1e-3, mark, group="pope_total")
    for batch, total in ((8, 728), (32, 1058), (128, 1902), (512, 6210)):
        row(Kind.PROMPT_AND_STEPS, batch, (60, 20), total * 1e-3, recalled, model="mt_nlg_530b", group="pope_mt_nlg")
    return rows


_POPE_MS = {
    (20, 8): ((4, 34, 255), (16, 58, 234), (64, 186, 265), (256, 668, 415), (1024, 2785, 1257)),
    (60, 20): ((8, 80, 574), (32, 270, 626), (128, 985, 829), (512, 4167, 1743)),
}
"""PaLM 540B on 64 chips, bf16, 2D weight-stationary: batch, prefill and decode in ms."""

_MT_NLG_MS: dict[tuple[int, int], dict[int, tuple[int | None, ...]]] = {
    (20, 8): {1: (565, 431, 842), 4: (616, 493, 867), 16: (730, 575, 1049), 64: (1191, 942, 1722),
              256: (3341, 2483, 3140)},
    (60, 20): {2: (1515, 1110, 2122), 8: (1631, 1295, 2367), 32: (2361, 1804, 3543), 128: (5406, 4099, 5319)},
    (128, 8): {1: (585, 451, 866), 4: (765, 606, 1097), 16: (1377, 1074, 2104), 64: (4002, 3114, 3578),
               256: (None, 11232, 9614)},
}  # fmt: skip
"""MT-NLG 530B: ms by in/out and batch, on 16 (TP16), 32 (TP32) and 8x3 (TP8, PP3)."""

_GPT_MS: dict[tuple[str, int, int, int], dict[int, float]] = {
    ("gpt3_175b", 8, 128, 8): {1: 489, 2: 509, 4: 630, 8: 750, 16: 1037, 32: 1547},
    ("gpt3_175b", 8, 512, 32): {1: 1720, 2: 1831, 4: 2093, 8: 2630, 16: 3706},
    ("gpt_89b", 8, 128, 8): {1: 279, 4: 318, 8: 378, 16: 525, 32: 787},
    ("gpt_89b", 8, 512, 32): {1: 888, 4: 1133, 8: 1415, 16: 1952},
    ("gpt_20b", 1, 60, 20): {1: 560, 8: 635, 32: 933, 64: 1352, 256: 4141},
    ("gpt_20b", 2, 60, 20): {1: 358, 8: 429, 32: 620, 64: 887, 256: 2424},
    ("gpt_20b", 4, 60, 20): {1: 248, 8: 299, 32: 418, 64: 574, 256: 1574},
    ("gpt_20b", 8, 60, 20): {1: 212, 8: 247, 32: 325, 64: 454, 256: 1152},
    ("gpt_20b", 1, 80, 200): {1: 5609, 64: 8290},
    ("gpt_20b", 2, 80, 200): {1: 3532, 64: 6003},
    ("gpt_20b", 4, 80, 200): {1: 2438, 64: 3815},
    ("gpt_20b", 8, 80, 200): {1: 2053, 64: 3173},
    ("gpt_6_7b", 1, 128, 8): {1: 98.3, 8: 162.5, 32: 400, 64: 718},
    ("gpt_6_7b", 1, 512, 32): {1: 385, 8: 700, 32: 1814, 64: 3306},
}
"""Smaller models: model, GPUs, in, out -> batch: ms."""

_LMDEPLOY_MS: dict[tuple[str, int], dict[int, tuple[float | None, ...]]] = {
    ("llama2_7b", 1): {1: (10, 10, 10, 11), 16: (11, 15, 20, 25), 32: (12, 21, 31, None), 64: (14, None, None, None)},
    ("llama2_13b", 1): {1: (17, 18, 19, 19), 16: (19, 26, 33, None), 32: (21, None, None, None),
                        64: (24, None, None, None)},
    ("llama2_70b", 4): {1: (29, 31, 31, 31), 16: (30, 33, 35, 36), 32: (32, 36, 40, 43), 64: (37, 43, 50, 55)},
}  # fmt: skip
"""Median ms per output token at in/out 128/128, 128/2048, 2048/128, 2048/2048; None where the cache is past 80 GB."""


def _fastertransformer() -> list[MeasuredRow]:
    rows = []

    def row(model: str, shape: str, tokens: tuple[int, int], batch: int, ms: float) -> None:
        group = "fastertransformer_pipeline" if "x" in shape else "fastertransformer"
        rows.append(
            MeasuredRow(
                group=group,
                kind=Kind.REQUEST,
                model=model,
                chip="a100_80gb",
                shape=shape,
                batch=batch,
                input_tokens=tokens[0],
                output_tokens=tokens[1],
                measured_s=ms * 1e-3,
                mark=Mark.VERIFIED,
            )
        )

    for tokens, by_batch in _MT_NLG_MS.items():
        for batch, by_shape in by_batch.items():
            for shape, ms in zip(("16", "32", "8x3"), by_shape, strict=True):
                if ms is not None:
                    row("mt_nlg_530b", shape, tokens, batch, ms)
    for (model, gpus, given, wanted), by in _GPT_MS.items():
        for batch, total_ms in by.items():
            row(model, str(gpus), (given, wanted), batch, total_ms)
    return rows


def _lmdeploy() -> list[MeasuredRow]:
    rows = []
    for (model, gpus), by_batch in _LMDEPLOY_MS.items():
        for batch, times in by_batch.items():
            for tokens, ms in zip(((128, 128), (128, 2048), (2048, 128), (2048, 2048)), times, strict=True):
                if ms is not None:
                    rows.append(
                        MeasuredRow(
                            group="lmdeploy",
                            kind=Kind.TIME_PER_TOKEN,
                            model=model,
                            chip="a100_80gb",
                            shape=str(gpus),
                            batch=batch,
                            input_tokens=tokens[0],
                            output_tokens=tokens[1],
                            measured_s=ms * 1e-3,
                            mark=Mark.VERIFIED,
                            rounding_s=5e-4,
                        )
                    )
    return rows


MEASURED_ROWS = (*_pope(), *_fastertransformer(), *_lmdeploy())
"""All rows, in the order of their sources."""
