"""Published numbers of the machine: availability, torus, routes, light, jobs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np

from ocs.blast import Part, blast_radius
from ocs.churn import CIRCUITS_SEEN, circuits_per_day
from ocs.circuits import circuits_of, no_circuits, plan_reconfiguration
from ocs.economics import optics_share
from ocs.reconfiguration import ReconfigurationTiming
from sim.closed_forms import (
    CubeOdds,
    cubes_for_promise,
    cubes_held,
    expected_share,
    guaranteed_share,
    machine_repair_availability,
    young_interval_s,
)
from sim.large_job import LargeJob, LargeJobRun, play_large_job
from sim.streams import Streams
from tests.availability.test_closed_forms import EXPECTED, GUARANTEED, SIZES
from tests.topology.test_torus import TABLE as TORI
from tests.validation.rows import Chapter, Reference
from topology.bounds import measure_slice
from topology.fabric import Fabric
from topology.measures import bisection_links, hop_counts
from topology.placement import joined
from topology.pod import POD_GENERATIONS
from topology.routing.channels import torus_of_shape
from topology.routing.degraded import STATED_MIXES, Degradation, StepMix, degradation
from topology.routing.faults import dead_links_of_switch, link_numbers
from topology.routing.loads import even_split_loads
from topology.shape import parse_shape

ISCA = "Jouppi et al., ISCA 2023"
NSDI = "Zu et al., NSDI 2024, as quoted"
INDEPENDENT = "independent closed form"
V4 = POD_GENERATIONS["v4"]
PERCENT = "{:.2f} %"


def _share(form: str, fabric: Fabric, chips: int, host: float) -> float:
    odds = CubeOdds(host=host)
    found = (
        expected_share(fabric, 64, chips, odds)
        if form == "expected"
        else guaranteed_share(fabric, 64, chips, odds, 0.97)
    )
    return 100.0 * (found or 0.0)


def _curves() -> Iterator[Reference]:
    """What the papers say of figure 4, then all points of the independent closed form."""
    stated = ((1024, 0.990, 75.0), (1024, 0.995, 75.0), (2048, 0.990, 50.0), (3072, 0.990, 75.0), (3072, 0.999, 75.0))
    for chips, host, value in stated:
        ours = partial(_share, "guaranteed", Fabric.RECONFIGURABLE, chips, host)
        what = f"{chips} chips, hosts up {100 * host:.1f} %: goodput with circuits"
        yield Reference(what=what, value=value, ours=ours, mark="V", source=f"{ISCA}, figure 4", text="{:.0f} %")
    for form, table in (("expected", EXPECTED), ("guaranteed", GUARANTEED)):
        for (fabric, host), values in table.items():
            for chips, value in zip(SIZES, values, strict=True):
                what = f"{form}, {fabric.value}, {chips} chips, hosts up {100 * host:.1f} %"
                ours, text = partial(_share, form, fabric, chips, host), PERCENT if form == "expected" else "{:.1f} %"
                yield Reference(what=what, value=value, ours=ours, mark="D", source=INDEPENDENT, text=text)


def _cubes(fabric: Fabric, host: float) -> float:
    return float(cubes_for_promise(fabric, {1024: 3}, CubeOdds(host=host), 0.97) or 0)


def _promises() -> Iterator[Reference]:
    for fabric, counts in ((Fabric.RECONFIGURABLE, (63, 56, 51)), (Fabric.STATIC_ALIGNED, (1424, 368, 96))):
        for host, count in zip((0.990, 0.995, 0.999), counts, strict=True):
            what = f"cubes for three 1024-chip slices 97 % of the time, {fabric.value}, hosts up {100 * host:.1f} %"
            ours = partial(_cubes, fabric, host)
            yield Reference(what=what, value=count, ours=ours, mark="D", source=INDEPENDENT, text="{:,.0f}")
    google = "Google, 2026, as quoted"
    what = "healthy cubes of 144 at 95 %, cube availability 0.94"
    yield Reference(
        what=what, value=130, ours=lambda: float(cubes_held(144, 0.94, 0.95)), mark="V2", source=google, text="{:.0f}"
    )


def _repairs() -> Iterator[Reference]:
    table = (
        (1024, 20, 8, 0.390625000), (1024, 20, 20, 0.957764678), (1024, 20, 24, 0.979040394),
        (1024, 20, 32, 0.980378606), (1024, 20, None, 0.980392157), (64, 24, 2, 0.955161872),
    )  # fmt: skip
    for count, repair, crews, value in table:
        what = f"M/M/R//N: {count} components, life 1000 h, repair {repair} h, {crews or 'unlimited'} crews"
        ours = partial(machine_repair_availability, count, 1000, repair, crews)
        yield Reference(what=what, value=value, ours=ours, mark="D", source=INDEPENDENT, text="{:.9f}")
    for between, save, value in ((474, 5, 68.9), (33.07, 2, 11.5), (1440, 5, 120.0)):
        what = f"Young's interval, {between} min between losses, {save} min to save"
        ours = partial(young_interval_s, between, save)
        yield Reference(what=what, value=value, ours=ours, mark="D", source="Young 1974", text="{:.1f} min")


def _tori() -> Iterator[Reference]:
    for text, mean, diameter, cut in TORI:
        shape = parse_shape(text)
        hops: list[tuple[str, float | None, object]] = [
            ("mean hops", mean, lambda s=shape: hop_counts(s).mean_hops),
            ("diameter", diameter, lambda s=shape: float(hop_counts(s).diameter)),
            ("links across the middle", cut, lambda s=shape: float(bisection_links(s))),
        ]
        for name, value, ours in hops:
            if value is not None:
                digits = "{:.4f}" if name == "mean hops" else "{:.0f}"
                assert callable(ours)
                yield Reference(
                    what=f"{text}: {name}", value=value, ours=ours, mark="D", source="independent count", text=digits
                )
    for text, value in (("4x4x4", 100.0), ("4x4x8", 50.0), ("4x4x8_twisted", 87.3), ("4x8x8_twisted", 69.6)):
        yield Reference(
            what=f"{text}: bound of all-to-all per chip",
            value=value,
            ours=lambda t=text: measure_slice(parse_shape(t)).all_to_all_bytes_per_s / 1e9,
            mark="D",
            source="independent bound",
            text="{:.1f} GB/s",
        )
    for text, twisted, value in (("4x4x8", "4x4x8_twisted", 1.63), ("4x8x8", "4x8x8_twisted", 1.31)):
        yield Reference(
            what=f"{text}: gain of the twist in all-to-all (ours: a bound; the measured gain is 0.93 of it)",
            value=value,
            ours=partial(_twist_gain, text, twisted),
            mark="V",
            source=f"{ISCA}, 2.8",
            text="{:.2f}",
        )
    yield Reference(
        what="all-reduce of a v4 pod",
        value=1.1,
        ours=lambda: 2 * measure_slice(parse_shape("16x16x16"), link_bytes_per_s=45e9).ring_all_reduce_bytes_per_s
        * 4095 / 1e15,
        mark="V",
        source="Google Cloud, TPU v4",
        text="{:.2f} PB/s",
    )  # fmt: skip


def _twist_gain(plain: str, twisted: str) -> float:
    rates = [measure_slice(parse_shape(text)).all_to_all_bytes_per_s for text in (twisted, plain)]
    return rates[0] / rates[1]


@cache
def _kept(text: str, dimension: int, method: str = "wild_first") -> float:
    shape = parse_shape(text)
    return float(degradation(shape, dead_links_of_switch(shape, dimension, 5), method).all_to_all_kept)


def _routes() -> Iterator[Reference]:
    for text in ("4x4x4", "4x4x8", "8x8x8"):
        for dimension, name in enumerate("xyz"):
            yield Reference(
                what=f"{text}: all-to-all kept with a switch of {name} dead, wild-first",
                value=(92.2, 101.7),
                ours=lambda t=text, d=dimension: 100 * _kept(t, d),
                mark="V2",
                source=f"{NSDI}, 5.3",
                text="{:.1f} %",
                slow=text == "8x8x8",
            )
    for text, value in (("4x4x4", 1.109), ("8x8x8", 1.127), ("8x8x16", 1.015), ("16x16x16", 1.107)):
        yield Reference(
            what=f"{text}: greatest load with a switch of x dead over healthy, even split", value=value,
            ours=partial(_even_split, text), mark="D", source="independent count of paths", text="{:.3f}",
            slow=text == "16x16x16",
        )  # fmt: skip
    for text, dimension, value in (("4x4x4", 0, 31 / 32), ("4x4x8", 0, 1.0), ("4x4x8", 2, 15 / 16)):
        yield Reference(
            what=f"{text}: all-to-all kept by the best routes, a switch of {'xyz'[dimension]} dead", value=value,
            ours=partial(_kept, text, dimension, "optimal"), mark="D", source="independent linear program",
            text="{:.3f}", slow=True,
        )  # fmt: skip
    yield Reference(
        what="nearest neighbours on the struck ring, wild-first",
        value=50.0,
        ours=lambda: 100 * _struck().ring_kept[0],
        slow=True,
        mark="V2",
        source=NSDI,
        text="{:.0f} %",
    )  # fmt: skip
    for mix, value in zip(STATED_MIXES, (0.5, 1.2, 2.6, 8.6), strict=True):
        yield Reference(
            what=f"step of {mix.name} slower with a dead switch (its traffic is our assumption)",
            value=value,
            ours=lambda m=mix: 100 * _slowdown(m),
            mark="V2",
            source=f"{NSDI}, table 3",
            text="{:.1f} %",
            slow=True,
        )


def _even_split(text: str) -> float:
    shape = parse_shape(text)
    torus, none = torus_of_shape(shape), np.zeros(0, dtype=np.int64)
    dead = link_numbers(torus, dead_links_of_switch(shape, 0, 5))
    return float(even_split_loads(torus, dead).greatest / even_split_loads(torus, none).greatest)


@cache
def _struck() -> Degradation:
    """8x8x8 with a switch of x dead, wild-first."""
    shape = parse_shape("8x8x8")
    return degradation(shape, dead_links_of_switch(shape, 0, 5))


def _slowdown(mix: StepMix) -> float:
    return float(_struck().step_slowdown(mix))


def _light() -> Iterator[Reference]:
    share = optics_share(V4)
    yield Reference(
        what="optics of the whole cost (component prices are assumptions)", value=(0.0, 5.0),
        ours=lambda: 100 * share.cost_share, mark="V", source=f"{ISCA}, 2.10", text="{:.1f} %",
    )  # fmt: skip
    yield Reference(
        what="optics of the whole power", value=(0.0, 3.0), ours=lambda: 100 * share.power_share, mark="V",
        source=f"{ISCA}, 2.10", text="{:.1f} %",
    )  # fmt: skip
    yield Reference(
        what="circuits a day, from 139 admissions of 3.6 cubes", value=CIRCUITS_SEEN.mean,
        ours=lambda: circuits_per_day(139, 3.6), mark="V2", source="figure 13 of NSDI 2024, digitised by others",
        text="{:,.0f}",
    )  # fmt: skip
    plan = plan_reconfiguration(no_circuits(), circuits_of(joined(parse_shape("8x8x16"), range(16))))
    yield Reference(
        what="time to re-form a torus of 1,024 chips, median", value=10.0,
        ours=lambda: float(ReconfigurationTiming().time_s(plan, 0.5)), mark="V2", source="Lockwood, as told",
        text="{:.1f} s",
    )  # fmt: skip
    placement = joined(parse_shape("8x8x8"), range(8))
    yield Reference(
        what="links that one dead switch takes from a slice of 8 cubes", value=8,
        ours=lambda: float(len(blast_radius(V4, {0: placement}, Part.SWITCH, 5).slices[0].links)), mark="V",
        source="MATE; by arithmetic from ISCA 2023", text="{:.0f}",
    )  # fmt: skip


@cache
def _large_jobs() -> tuple[LargeJobRun, ...]:
    return tuple(play_large_job(LargeJob(), Streams(1, replication)) for replication in range(30))


def _large_job() -> Iterator[Reference]:
    source = "AIReSim, arXiv:2603.07041, default table (published 30 runs, sd 33.6 h)"
    for what, value, name, scale, text in (
        ("total time", 9865.97, "total_s", 1 / 3600, "{:,.1f} h"),
        ("productive share", 0.6228, "productive_share", 1.0, "{:.4f}"),
        ("failures", 11145.6, "failures", 1.0, "{:,.1f}"),
        ("of them on good servers", 10457.0, "random", 1.0, "{:,.1f}"),
        ("of them on bad servers", 688.6, "systematic", 1.0, "{:,.1f}"),
        ("manual repairs", 8922.9, "manual_repairs", 1.0, "{:,.1f}"),
        ("host selections", 42.9, "selections", 1.0, "{:.1f}"),
        ("spares taken", 13.9, "spares_taken", 1.0, "{:.1f}"),
    ):
        yield Reference(
            what=f"a job of 256 d on 4,096 servers: {what}", value=value, mark="V", source=source, text=text, slow=True,
            ours=lambda n=name, s=scale: s * float(np.mean([getattr(run, n) for run in _large_jobs()])),
        )  # fmt: skip


def machine_chapters() -> list[Chapter]:
    """All of them, in the order of the page."""
    return [
        Chapter(
            heading="Availability of slices",
            words="Closed forms; that the simulation agrees with them is tested at every point (`closed_form`).",
            rows=list(_curves()),
        ),
        Chapter(heading="Promises", rows=list(_promises())),
        Chapter(heading="Repair and checkpoints", rows=list(_repairs())),
        Chapter(heading="Torus", rows=list(_tori())),
        Chapter(heading="Routes around a dead switch", rows=list(_routes())),
        Chapter(heading="Light", rows=list(_light())),
        Chapter(heading="A very large job", rows=list(_large_job())),
    ]
