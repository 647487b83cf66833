"""The command `topology`: what a shape of slice is worth, whole and with dead switches, ports or links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim.cli_output import say, say_json, say_table
from sim.exit_codes import ExitStatus
from topology.bounds import (
    LINK_BYTES_PER_S,
    LINK_OF_GENERATION,
    MEASURED_ALL_TO_ALL,
    Collective,
    SliceMeasures,
    measure_slice,
    twist_gain,
)
from topology.errors import refuse
from topology.pod import pod_of_generation
from topology.ranking import shapes_of_chips
from topology.shape import Shape, parse_shape

AXES = "xyz"
OPTIMAL = "optimal"
OPTIMAL_MAX_CHIPS = 512
"""Larger slices are given to the linear program only when it is asked for by name."""
CHIPS_MAX = 65_536
COLLECTIVE_WORDS = {
    Collective.ALL_TO_ALL: "all-to-all",
    Collective.ALL_REDUCE: "ring all-reduce",
    Collective.ALL_GATHER: "all-gather",
    Collective.REDUCE_SCATTER: "reduce-scatter",
    Collective.NEAREST_NEIGHBOUR: "nearest neighbours",
}


def topology_command(
    shape_text: str, faults: Sequence[str], methods: Sequence[str], generation: str | None, as_json: bool
) -> int:
    """Print the measures of a shape and, under faults, what each method of routing keeps."""
    shape = parse_shape(shape_text, "SHAPE")
    link = LINK_BYTES_PER_S
    if generation is not None:
        pod = pod_of_generation(generation, "--pod")
        link = LINK_OF_GENERATION[pod.name]
        if shape.chips > pod.chips:
            what = f"{shape} has {shape.chips} chips, more than the {pod.chips} of pod {pod.name}"
            raise refuse("SHAPE", what, "write a smaller shape or another --pod")
    if shape.chips > CHIPS_MAX:
        what = f"{shape} has {shape.chips:,} chips; no pod comes near {CHIPS_MAX:,}"
        raise refuse("SHAPE", what, "write a smaller shape")
    if methods and not faults:
        raise refuse("--method", "a method is chosen for routes around a fault", "add --fail, such as --fail ocs:x:0")
    measures = measure_slice(shape, None, link)
    kept = kept_under_faults(shape, faults, methods) if faults else {}
    if as_json:
        say_json(_document(measures, link, faults, kept))
        return ExitStatus.DONE
    _print_whole(measures, link)
    if faults:
        _print_faults(faults, kept, methods, shape)
    else:
        _print_neighbours(shape, link)
    return ExitStatus.DONE


def kept_under_faults(shape: Shape, faults: Sequence[str], methods: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """What each method keeps, by its name: all-to-all, rings per axis, whether the slice holds together.

    Without `methods` all are used, the linear program up to OPTIMAL_MAX_CHIPS chips. InputError for unknown names.
    """
    from ocs.fault_names import dead_links_of_names
    from sim.disk_cache import routes_cache
    from sim.scenario_faults import nearest
    from topology.routing.degraded import STATED_MIXES, degradation
    from topology.routing.methods import Method

    known = [method.value for method in Method]
    for name in methods:
        if name not in known:
            raise refuse("--method", f"`{name}` is no method of routing", nearest(name, known))
    chosen = list(dict.fromkeys(methods)) or [
        name for name in known if name != OPTIMAL or shape.chips <= OPTIMAL_MAX_CHIPS
    ]
    dead, cache = dead_links_of_names(shape, faults), routes_cache()
    found = {}
    for name in chosen:
        left = degradation(shape, dead, name, cache=cache)
        found[name] = {
            "all_to_all_kept": left.all_to_all_kept,
            "ring_kept": dict(zip(AXES, left.ring_kept, strict=True)),
            "connected": left.connected,
            "routed": left.routed,
            "unserved_pairs": left.unserved_pairs,
            "gap": left.gap,
            "step_slowdown": {mix.name: left.step_slowdown(mix) for mix in STATED_MIXES},
        }
    return found


def _document(
    measures: SliceMeasures, link: float, faults: Sequence[str], kept: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """The one JSON document. Rates at full links; a single chip has none (null)."""
    shape = measures.shape
    document: dict[str, Any] = {
        "shape": str(shape),
        "chips": shape.chips,
        "cubes": shape.cubes,
        "wraparound": list(measures.wraps),
        "twisted": shape.twisted,
        "diameter": measures.diameter,
        "mean_hops": measures.mean_hops,
        "bisection_links": measures.bisection_links,
        "link_bytes_per_s": link,
    }
    for collective in Collective:
        name = "ring_all_reduce" if collective is Collective.ALL_REDUCE else collective.value
        document[f"{name}_bytes_per_s_per_chip"] = measures.bytes_per_s(collective)
    document["latency_floor_s"] = {each.value: measures.floor_s(each) for each in Collective}
    if shape.is_twistable:
        document["twist_gain"] = twist_gain(shape)
    if faults:
        document |= {"faults": list(faults), "methods": kept}
    else:
        document["shapes_of_this_size"] = [
            {
                "shape": str(other),
                "all_to_all_bytes_per_s_per_chip": measure_slice(other, None, link).all_to_all_bytes_per_s,
            }
            for other in shapes_of_chips(shape.chips)
        ]
    return document


def _print_whole(measures: SliceMeasures, link: float) -> None:
    """The slice without faults."""
    shape = measures.shape
    rings = "".join(axis for axis, ring in zip(AXES, measures.wraps, strict=True) if ring)
    cubes = f"{shape.cubes} {'cube' if shape.cubes == 1 else 'cubes'}" if shape.cubes else "less than a cube"
    say(f"{shape}: {shape.chips:,} chips, {cubes}, {f'rings along {chr(44).join(rings)}' if rings else 'no rings'}")
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
    _print_measured(measures)


def _microseconds(measures: SliceMeasures, collective: Collective) -> str:
    return f"{measures.floor_s(collective) * 1e6:g} us"


def _print_measured(measures: SliceMeasures) -> None:
    """What was measured on this shape, beside the bound."""
    shape = measures.shape
    if shape.twisted:
        say(f"The twist gains {twist_gain(shape):.3f} times the all-to-all of {Shape(*shape.dimensions)}.")
    for each in MEASURED_ALL_TO_ALL:
        if each.shape != str(shape):
            continue
        if each.twist_gain == each.twist_gain:
            share = each.twist_gain / twist_gain(shape)
            say(f"Measured: {each.twist_gain:g} times, {share:.2f} of the ideal gain ({each.source.text}).")
        else:
            share = each.bytes_per_s / measure_slice(shape).all_to_all_bytes_per_s
            say(f"Measured: {each.bytes_per_s / 1e9:g} GB/s, {share:.2f} of the bound ({each.source.text}).")


def _print_neighbours(shape: Shape, link: float) -> None:
    """All shapes of the same number of chips."""
    others = shapes_of_chips(shape.chips)
    if len(others) < 2:
        return
    say()
    say(f"All shapes of {shape.chips:,} chips:")
    rows = []
    for other in others:
        found = measure_slice(other, None, link)
        rows.append(
            (str(other), found.diameter, found.bisection_links, f"{found.all_to_all_bytes_per_s / 1e9:.1f} GB/s")
        )
    say_table(("shape", "diameter", "bisection", "all-to-all per chip"), rows)


def _print_faults(faults: Sequence[str], kept: dict[str, dict[str, Any]], methods: Sequence[str], shape: Shape) -> None:
    """What each method keeps."""
    say()
    say(f"With {', '.join(faults)} dead, kept of the best healthy routes:")
    rows: list[tuple[str, ...]] = []
    for name, left in kept.items():
        if not left["connected"]:
            rows.append((name, "cut in two", "", "", ""))
        elif not left["routed"]:
            rows.append((name, "no route", "", "", ""))
        else:
            rings = [f"{100 * left['ring_kept'][axis]:.1f} %" for axis in AXES]
            rows.append((name, f"{100 * left['all_to_all_kept']:.1f} %", *rings))
    say_table(("method", "all-to-all", "rings x", "rings y", "rings z"), rows)
    _print_slowdowns(kept)
    if OPTIMAL not in kept and not methods:
        say(f"Best routes of {shape.chips:,} chips take minutes: `--method {OPTIMAL}` computes and keeps them.")


def _print_slowdowns(kept: dict[str, dict[str, Any]]) -> None:
    """How much longer steps of the stated mixes take."""
    routed = {name: left["step_slowdown"] for name, left in kept.items() if left["routed"]}
    if not routed:
        return
    mixes = list(next(iter(routed.values())))
    say()
    say("A step takes longer by (shares of the network in a step: assumption; published 0.5 to 8.6 %):")
    rows = [(name, *(f"{100 * slowdown[mix]:.1f} %" for mix in mixes)) for name, slowdown in routed.items()]
    say_table(("method", *mixes), rows)
