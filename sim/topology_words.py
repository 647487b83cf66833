"""What the command `topology` tells people: tables of a slice, of its shapes, of what is kept under faults."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sim.cli_output import say, say_table
from topology.bounds import Collective, SliceMeasures, measure_slice, measured_beside, twist_gain
from topology.ranking import RankedShape, shapes_of_chips
from topology.shape import Shape

AXES = "xyz"
NO_ROUTE = "no route"
COLLECTIVE_WORDS = {
    Collective.ALL_TO_ALL: "all-to-all",
    Collective.ALL_REDUCE: "ring all-reduce",
    Collective.ALL_GATHER: "all-gather",
    Collective.REDUCE_SCATTER: "reduce-scatter",
    Collective.NEAREST_NEIGHBOUR: "nearest neighbours",
}


def print_whole(measures: SliceMeasures, link: float) -> None:
    """The slice without faults: distances, bounds, and what was measured beside them."""
    shape = measures.shape
    rings = ",".join(axis for axis, ring in zip(AXES, measures.wraps, strict=True) if ring)
    cubes = f"{shape.cubes} {'cube' if shape.cubes == 1 else 'cubes'}" if shape.cubes else "less than a cube"
    say(f"{shape}: {shape.chips:,} chips, {cubes}, {f'rings along {rings}' if rings else 'no rings'}")
    say_table(
        ("measure", "value"),
        [
            ("diameter", f"{measures.diameter} hops"),
            ("mean distance", f"{measures.mean_hops:.4f} hops"),
            ("links across the middle", f"{measures.bisection_links:,}"),
        ],
    )
    if shape.chips == 1:
        return
    say()
    say(f"Bounds at links of {link / 1e9:g} GB/s each way, and least time of a small message:")
    rows = [
        (COLLECTIVE_WORDS[each], f"{measures.bytes_per_s(each) / 1e9:.1f} GB/s per chip", _microseconds(measures, each))
        for each in Collective
    ]
    say_table(("collective", "bound", "floor"), rows)
    if measures.wraps == shape.wraps:
        _print_measured(shape)


def _microseconds(measures: SliceMeasures, collective: Collective) -> str:
    return f"{measures.floor_s(collective) * 1e6:g} us"


def _print_measured(shape: Shape) -> None:
    """What was measured on this shape, beside the bound, and why it is less."""
    if shape.twisted:
        say(f"The twist gains {twist_gain(shape):.3f} times the all-to-all of {Shape(*shape.dimensions)}, as a bound.")
    seen = measured_beside(shape)
    if seen is None:
        return
    source = seen.measured.source.text
    if not shape.twisted:
        say(f"Measured: {seen.measured.bytes_per_s / 1e9:g} GB/s, {seen.share_of_bound:.2f} of the bound ({source}).")
        return
    say(f"Measured: {seen.measured.twist_gain:g} times, {seen.share_of_bound:.2f} of the ideal gain ({source}).")
    say("The difference is one of efficiency: where all links are loaded alike (4x4x4, twisted slices) all-to-all")
    say("reaches 0.75 to 0.76 of its bound, on the plain 4x4x8, whose x and y run at half load, 0.80 (our reading).")


def print_neighbours(shape: Shape, link: float) -> None:
    """All shapes of the same number of chips."""
    others = shapes_of_chips(shape.chips)
    if len(others) < 2:
        return
    say()
    say(f"All shapes of {shape.chips:,} chips (`--mix` ranks them for a job):")
    rows = []
    for other in others:
        found = measure_slice(other, None, link)
        rows.append(
            (str(other), found.diameter, found.bisection_links, f"{found.all_to_all_bytes_per_s / 1e9:.1f} GB/s")
        )
    say_table(("shape", "diameter", "bisection", "all-to-all per chip"), rows)


def print_ranking(shape: Shape, mix: Mapping[Collective, float], ranked: Sequence[RankedShape]) -> None:
    """Which shape a job should ask for."""
    parts = ", ".join(f"{COLLECTIVE_WORDS[each]} of {size / 1e6:,.4g} MB" for each, size in mix.items() if size)
    say(f"Shapes of {shape.chips:,} chips for a step with {parts}:")
    best = ranked[0].mix_s
    rows = [
        (
            str(each.shape),
            f"{each.mix_s * 1e3:.4g} ms",
            f"{each.mix_s / best:.2f}" if best else "",
            each.measures.diameter,
            each.measures.bisection_links,
            f"{each.measures.all_to_all_bytes_per_s / 1e9:.1f} GB/s",
        )
        for each in ranked
    ]
    say_table(("shape", "network time", "over the best", "diameter", "bisection", "all-to-all per chip"), rows)
    say(f"Ask for {ranked[0].shape}. All chips take part in every collective, one after the other, at full links.")


def print_faults(faults: Sequence[str], kept: dict[str, dict[str, Any]], recommended: str) -> None:
    """What each method keeps, its virtual channels and proof, and why some have no routes."""
    say()
    say(f"With {', '.join(faults)} dead, kept of the best healthy routes (rings with all three axes busy):")
    if not all(left["connected"] for left in kept.values()):
        say("The slice is cut in two: some chips reach no others, whatever the routes.")
        return
    rows = [_row(name, left) for name, left in kept.items()]
    header = ("method", "all-to-all", "gap", "rings x", "rings y", "rings z", "virtual channels", "deadlock")
    say_table(header, rows)
    if len(faults) == 1 and faults[0].startswith("ocs:"):
        say("Published for one dead switch: all-to-all 92.2 to 101.7 %, struck rings half (NSDI 2024, 5.3).")
    if any(0 < share < 1 for left in kept.values() for share in left["ring_kept"].values()):
        say("Rings of an axis that carries the detours of another slow down with it.")
    _print_reasons(kept, recommended)
    _print_slowdowns(kept)


def _row(name: str, left: dict[str, Any]) -> tuple[str, ...]:
    rings = [_share_or(left["ring_kept"][axis]) for axis in AXES]
    proof = {None: "", True: "proved free", False: "may deadlock: refused"}[left["deadlock_free"]]
    if left["routed"] and left["deadlock_free"] is None:
        proof = "not proved: too large"
    channels = "" if left["virtual_channels"] is None else str(left["virtual_channels"])
    gap = f"{100 * left['gap']:.1f} %" if left["routed"] else ""
    return (name, _share_or(left["all_to_all_kept"]), gap, *rings, channels, proof)


def _share_or(kept: float) -> str:
    return f"{100 * kept:.1f} %" if kept > 0 else NO_ROUTE


def _print_reasons(kept: dict[str, dict[str, Any]], recommended: str) -> None:
    """In words: why a method has no route, and which to choose."""
    for name, left in kept.items():
        if left["unserved_pairs"]:
            say(f"{name}: {left['unserved_pairs']:,} pairs of chips have {NO_ROUTE} of its form. {_WHY[name]}".rstrip())
        elif left["routed"] and not all(left["ring_kept"].values()):
            say(f"{name}: some dead link of a ring has no detour of its form.")
    chosen = kept.get(recommended)
    if chosen is not None and chosen["routed"] and len(kept) > 1:
        say(
            f"Recommended: {recommended}, which needs {chosen['virtual_channels']} virtual channels whatever the fault."
        )


_WHY = {
    "dimension_order": "A dead switch cuts a ring of two or more cubes once per cube, and it knows no other ring.",
    "wild_first": "One hop aside does not pass these faults.",
    "even_split": "",
    "optimal": "",
}


def _print_slowdowns(kept: dict[str, dict[str, Any]]) -> None:
    """How much longer steps of the stated mixes take."""
    routed = {name: left["step_slowdown"] for name, left in kept.items() if left["routed"]}
    if not routed:
        return
    mixes = list(next(iter(routed.values())))
    say()
    say("A step takes longer by (shares of the network in a step: assumption; published 0.5 to 8.6 %):")
    rows = [
        (name, *(f"{100 * slowdown[mix]:.1f} %" if math.isfinite(slowdown[mix]) else NO_ROUTE for mix in mixes))
        for name, slowdown in routed.items()
    ]
    say_table(("method", *mixes), rows)
