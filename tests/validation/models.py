"""Published numbers of language models: passes, memory, traffic, requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

from sim.measured_times import shipped_times
from tests.serving.test_chunked_gain import in_chunks_s, llama_costs
from tests.serving.test_waste import chat
from tests.validation.rows import Chapter, Reference
from tests.workloads.test_models_chips import KV_BYTES
from tests.workloads.test_other_stacks import JETSTREAM as JETSTREAM_ROWS
from workloads.accuracy.errors import RowError, group_errors, row_errors
from workloads.catalogue.gpus import A100_40GB
from workloads.catalogue.models import MODELS
from workloads.catalogue.tpus import TPU_V4, TPU_V5E
from workloads.costs.asking import replica_on
from workloads.costs.attention_io import AttentionIo
from workloads.costs.layouts import Attention, Layout, kv_replication
from workloads.costs.passes import Phase, pass_cost, pass_seconds
from workloads.costs.replica import ReplicaCosts
from workloads.kv_cache import Paged

POPE = "Pope et al., arXiv:2211.05102, as quoted"
STREAM = "JetStream on PyTorch, benchmarks/summary.md"
BOOK = "JAX scaling book"
JETSTREAM = (*JETSTREAM_ROWS, ("llama3_8b", "bf16", 128, 2048, 8249), ("llama3_8b", "int8", 256, 2048, 10873))
OWN = ("gpt_89b", "gpt_20b", "gpt_6_7b", "llama3_1_8b")
"""Models that the reference table of caches does not hold."""


@cache
def time_errors() -> tuple[RowError, ...]:
    """Every measured time beside ours."""
    return row_errors(shipped_times())


def group_lines() -> list[str]:
    """Errors by group."""
    lines = []
    for group in group_errors(time_errors()):
        counted = str(group.rows) if group.counted else f"({group.rows})"
        values = (group.mean, group.worst, group.mean_beyond_rounding, group.worst_beyond_rounding)
        lines.append(f"| {group.group} | {counted} | " + " | ".join(f"{100 * value:.1f} %" for value in values) + " |")
    return lines


def time_lines() -> list[str]:
    """Every row."""
    lines = []
    for each in time_errors():
        row, name = each.row, each.row.name if each.row.counted else f"({each.row.name})"
        weights = "" if row.weights == "bf16" else f", {row.weights}"
        what = f"{row.kind.value.replace('_', ' ')}: {name}{weights}"
        times = [f"{1e3 * value:,.4g} ms" for value in (row.measured_s, each.computed_s)]
        lines.append(
            f"| {what} | {times[0]} | {times[1]} | {100 * each.error:+.1f} % | {row.mark.value} | {row.source} |"
        )
    return lines


def _contexts() -> Iterator[Reference]:
    room = 0.3 * 64 * TPU_V4.hbm_bytes
    multi_head = replace(MODELS["palm_540b"], heads=64, kv_heads=64, head_dim=128)
    for name, model, attention, values in (
        ("multi-head", multi_head, Attention.HEADS, (1320, 330)),
        ("multi-query by heads", MODELS["palm_540b"], Attention.HEADS, (660, 165)),
        ("multi-query by batch", MODELS["palm_540b"], Attention.BATCH, (43_000, 10_700)),
    ):
        held = model.kv_bytes_per_token() * kv_replication(model, 64, attention)
        for batch, value in zip((128, 512), values, strict=True):
            yield Reference(
                what=f"longest context in 30 % of the memory of 64 TPU v4, {name}, batch {batch}", value=value,
                ours=lambda h=held, b=batch: room / (b * h), mark="V2", source=POPE, text="{:,.0f}",
            )  # fmt: skip


def _memory() -> Iterator[Reference]:
    for key, value in KV_BYTES.items():
        if key not in OWN:
            yield Reference(
                what=f"cache per token of {key}", value=value, ours=MODELS[key].kv_bytes_per_token, mark="D",
                source="published configurations", text="{:,.0f} B",
            )  # fmt: skip
    io, dao = AttentionIo(tokens=1024, head_dim=64, heads=64 * 16), "Dao et al., FlashAttention, as quoted"
    for name, value, ours in (
        ("naive", 40.3, partial(io.naive_bytes, training=True)),
        ("tiled", 4.4, partial(io.tiled_bytes, A100_40GB, training=True)),
    ):
        yield Reference(
            what=f"traffic of GPT-2 attention, 1,024 tokens, {name}", value=value, ours=lambda o=ours: o() / 1e9,
            mark="V2", source=dao, text="{:.1f} GB",
        )  # fmt: skip
    replica, _ = replica_on(MODELS["llama2_13b"], TPU_V5E, "2x4")
    for batch, value in ((1, 4.98), (8, 12.13), (16, 20.30)):
        yield Reference(
            what=f"bound of a step of Llama-2 13B on 8 v5e, 8,192 tokens, batch {batch}", value=value,
            ours=lambda b=batch: 1e3 * float(pass_cost(replica, Phase.DECODE, b, 8192).lower_bound_s), mark="V",
            source=BOOK, text="{:.2f} ms",
        )  # fmt: skip
    for shape, milliseconds in (("2x4", 17.0), ("4x4", 8.5)):
        small, _ = replica_on(MODELS["llama3_70b"], TPU_V5E, shape, weights="int8", kv="int8")
        yield Reference(
            what=f"bound of a step of Llama-3 70B, int8, on {shape} v5e, 8,192 tokens, batch 32", value=milliseconds,
            ours=lambda r=small: 1e3 * float(pass_cost(r, Phase.DECODE, 32, 8192).lower_bound_s), mark="V",
            source=BOOK, text="{:.1f} ms",
        )  # fmt: skip
    table = llama_costs()
    for chunk in (512, 2048):
        yield Reference(
            what=f"what chunks of {chunk:,} add to a prefill of 4,096, Llama-2 70B on 4 A100", value=(0.0, 25.0),
            ours=lambda c=chunk: 100 * (in_chunks_s(table, c) / table.prefill_s(4096) - 1), mark="V2",
            source="Sarathi-Serve, arXiv:2403.02310, as quoted (chunks of 512)", text="{:.1f} %",
        )  # fmt: skip
    yield Reference(
        what="cache memory that holds no token, paged, a saturated chat", value=(0.0, 4.0),
        ours=lambda: 100 * (1 - chat(Paged()).kv_waste["used"]), mark="V", source="Kwon et al., arXiv:2309.06180",
        text="{:.1f} %", slow=True,
    )  # fmt: skip


def _jetstream(replica: ReplicaCosts, batch: int, context: int) -> float:
    """Output tokens per second: steps at one context, and a prompt of 256 tokens per 200 of output."""
    prompt = float(pass_seconds(replica, Phase.PREFILL, 1, 256, Layout.WEIGHT_STATIONARY_1D)) / 200
    step = float(pass_seconds(replica, Phase.DECODE, batch, context, Layout.WEIGHT_STATIONARY_1D))
    return 1.0 / (step / batch + prompt)


def _prefills() -> Iterator[Reference]:
    replica, _ = replica_on(MODELS["llama2_7b"], TPU_V5E, "2x4")
    for key, formats, batch, held, rate in JETSTREAM:
        served, _ = replica_on(MODELS[key], TPU_V5E, "2x4", weights=formats, kv=formats)
        chips = "8 v5e" if held == 2048 else f"8 v5e, cache that rolls over {held:,}"
        for reading, context in ((f"the whole cache of {held:,} is read", held), ("a mean context of 600", 600)):
            yield Reference(
                what=f"{key}, {formats}, batch {batch}, {chips}, if {reading}", value=rate,
                ours=partial(_jetstream, served, batch, context), mark="V", source=STREAM, text="{:,.0f} tokens/s",
            )  # fmt: skip
    times = ((16, 5.7), (64, 6.2), (128, 7.7), (256, 11.6), (512, 20.2), (1024, 38.4), (2048, 78.2))
    for tokens, value in times:
        yield Reference(
            what=f"prefill of Llama-2 7B, {tokens} tokens, 8 v5e (device inferred)", value=value,
            ours=lambda n=tokens: 1e3 * float(pass_seconds(replica, Phase.PREFILL, 1, n)), mark="V",
            source=STREAM, text="{:.1f} ms",
        )  # fmt: skip


def model_chapters() -> list[Chapter]:
    """All of them, in the order of the page."""
    return [
        Chapter(
            heading="Passes of language models, errors by group",
            words="In brackets: rows that do not count (irregular, recalled and doubtful, or of stacks that nothing "
            "was fitted on). Constants were fitted on every second row of the groups that count (docs/costs.md).",
            heads=("group", "rows", "mean", "worst", "mean beyond rounding", "worst beyond rounding"),
            lines=group_lines,
        ),
        Chapter(heading="Passes of language models, row by row", lines=time_lines),
        Chapter(heading="Other stacks, on which nothing was fitted", rows=list(_prefills())),
        Chapter(heading="Memory and traffic", rows=[*_contexts(), *_memory()]),
    ]
