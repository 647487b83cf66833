"""Real logs and traces, which lie beside a checkout: other analyses of the same files, measured requests, and ours."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

from sim.failure_logs import placed_by_number
from sim.log_analysis import LogAnalysis, analysis_of
from sim.metrics.availability import expected_share, guaranteed_share, time_at_capacity
from sim.metrics.segments import Segments, segments_of
from tests.failures.test_failure_logs import SIZES, gpu, lanl
from tests.serving.test_vllm_replay import TESTED, Replay, replayed
from tests.validation.rows import Chapter, Reference
from topology.fabric import Fabric
from topology.pod import POD_GENERATIONS

LANL = "the log of Los Alamos system 18, by another program"
GPUS = "the GPU server fault trace, days 0 to 180, by another program"
V4 = POD_GENERATIONS["v4"]


@cache
def _lanl() -> Segments:
    log = lanl()
    return segments_of(V4, [log.outages(placed_by_number(log, 1024), 1024)], log.window_us)


def _lanl_rows() -> Iterator[Reference]:
    for fabric, chips, value in (
        (Fabric.RECONFIGURABLE, 1024, 92.45), (Fabric.STATIC_ALIGNED, 1024, 90.91),
        (Fabric.RECONFIGURABLE, 3072, 75.00), (Fabric.STATIC_ALIGNED, 3072, 55.91),
        (Fabric.RECONFIGURABLE, 4096, 69.79),
    ):  # fmt: skip
        yield Reference(
            what=f"expected, {fabric.value}, {chips} chips", value=value, mark="D", source=LANL, text="{:.2f} %",
            ours=lambda f=fabric, c=chips: 100 * expected_share(time_at_capacity(_lanl(), V4, f, c)).value, slow=True,
        )  # fmt: skip
    held = (96.875, 96.875, 93.75, 87.5, 75.0, 50.0, 75.0, 0.0)
    for chips, value in zip(SIZES, held, strict=True):
        yield Reference(
            what=f"guaranteed, reconfigurable, {chips} chips", value=value, mark="D", source=LANL, text="{:.2f} %",
            ours=lambda c=chips: 100 * guaranteed_share(
                time_at_capacity(_lanl(), V4, Fabric.RECONFIGURABLE, c), 0.97
            ).value, slow=True,
        )  # fmt: skip
    for what, value, name, text in (
        ("hours between outages of a node", 7509.0, "mtbf_h", "{:,.0f} h"),
        ("hours between outages of all", 7.335, "gap_mean_h", "{:.3f} h"),
    ):
        yield Reference(
            what=what, value=value, ours=partial(_of_lanl, name), mark="D", source=LANL, text=text, slow=True
        )


def _of_lanl(name: str) -> float:
    return float(getattr(analysis_of(lanl()), name))


@cache
def _gpus() -> LogAnalysis:
    return analysis_of(gpu(window=("0 d", "180 d")))


def _gpu_rows() -> Iterator[Reference]:
    for what, value, name, text in (
        ("hours between outages of a server", 5485.7, "mtbf_h", "{:,.1f} h"),
        ("mean repair", 153.27, "repair_mean_h", "{:.2f} h"),
    ):
        yield Reference(
            what=what, value=value, mark="D", source=GPUS, text=text, slow=True,
            ours=lambda n=name: float(getattr(_gpus(), n)),
        )  # fmt: skip
    yield Reference(
        what="share of time that a server is out, first to last event", value=2.91, mark="D", source=GPUS,
        text="{:.2f} %", slow=True,
        ours=lambda: 100 * (1 - analysis_of(gpu(window=("3.8955", "179.9823"))).availability),
    )  # fmt: skip


@cache
def _replay() -> Replay:
    return replayed()


def _mean(name: str, which: int) -> float:
    return float(getattr(_replay(), name)[which][TESTED].mean())


def _requests() -> Iterator[Reference]:
    """Means of the 150 requests on which nothing was fitted (those measured are read out of the file)."""
    source = "vLLM 0.19 on an RTX 4090, requests 150 to 299 (LLMServingSim's file)"
    for what, name, value, scale, text in (
        ("mean time to first token", "ttft_s", 101.68, 1.0, "{:.2f} s"),
        ("mean time per later token", "tpot_s", 30.64, 1e3, "{:.2f} ms"),
        ("mean time of a whole answer", "end_to_end_s", 121.2, 1.0, "{:.1f} s"),
    ):
        yield Reference(
            what=what, value=value, mark="V", source=source, text=text, slow=True,
            ours=lambda n=name, s=scale: s * _mean(n, 0),
        )  # fmt: skip


def log_chapters() -> list[Chapter]:
    """All of them, in the order of the page."""
    return [
        Chapter(heading="Real failures", rows=[*_lanl_rows(), *_gpu_rows()]),
        Chapter(
            heading="Requests that were measured",
            words="Errors request by request are in `tests/serving/test_vllm_replay.py`.",
            rows=list(_requests()),
        ),
    ]


def measured_means() -> dict[str, float]:
    """Means of the measured requests, to write the references above."""
    return {name: _mean(name, 1) for name in ("ttft_s", "tpot_s", "end_to_end_s")}
