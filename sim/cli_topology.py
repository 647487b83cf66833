"""The command `topology`: what a shape of slice is worth, whole and with dead switches, ports or links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sim.cli_output import say_json
from sim.exit_codes import ExitStatus
from sim.quantities import AdviceError, parse_quantity
from sim.scenario_faults import nearest
from sim.topology_words import print_faults, print_neighbours, print_ranking, print_whole
from topology.bounds import (
    LINK_BYTES_PER_S,
    LINK_OF_GENERATION,
    Collective,
    SliceMeasures,
    measure_slice,
    measured_beside,
    twist_gain,
)
from topology.errors import Fault, InputError, refuse
from topology.pod import Pod, pod_of_generation
from topology.ranking import JOB_MIXES, RankedShape, rank_shapes, shapes_of_chips
from topology.shape import Shape, parse_shape, shape_of_chips
from topology.torus import ALL_WRAPS, NO_WRAPS, Wraps
from topology.units import Unit

AXES = "xyz"
OPTIMAL = "optimal"
RECOMMENDED = "wild_first"
"""Few virtual channels whatever the fault, and close to the best routes."""
OPTIMAL_MAX_CHIPS = 512
"""Larger slices are given to the linear program only when it is asked for by name."""
CHIPS_MAX = 65_536
FAULTS_MAX_CHIPS = 10_240
"""Routes of all pairs grow with the square of the chips; the largest pod has fewer."""
BYTES = Unit("byte", low=0.0)


@dataclass(frozen=True, kw_only=True)
class TopologyQuestion:
    """What is asked, as texts: a shape or a number of chips, faults, methods, pod, axes that wrap, mix of a job."""

    shape: str
    faults: Sequence[str] = ()
    methods: Sequence[str] = ()
    pod: str | None = None
    wrap: str | None = None
    mix: str | None = None


def topology_command(question: TopologyQuestion, as_json: bool) -> int:
    """Print the measures of a shape and, under faults, what each method of routing keeps; or rank shapes for a mix."""
    shape = _shape(question.shape)
    pod, link = _pod(question.pod, shape)
    if shape.chips > CHIPS_MAX:
        what = f"{shape} has {shape.chips:,} chips; no pod comes near {CHIPS_MAX:,}"
        raise refuse("SHAPE", what, "write a smaller shape")
    if question.faults and shape.chips > FAULTS_MAX_CHIPS:
        what = f"routes around faults are worked out up to {FAULTS_MAX_CHIPS:,} chips, {shape} has {shape.chips:,}"
        raise refuse("--fail", what, "write a smaller shape, or leave --fail out")
    _check_together(question)
    wraps = None if question.wrap is None else wraps_of_text(question.wrap, shape)
    if question.mix is not None:
        _check_ranking(shape)
        mix = mix_of_text(question.mix)
        ranked = rank_shapes(shape.chips, mix, pod, link)
        if as_json:
            say_json(_ranking_document(shape, mix, ranked, link))
        else:
            print_ranking(shape, mix, ranked)
        return ExitStatus.DONE
    measures = measure_slice(shape, wraps, link)
    faults = list(dict.fromkeys(name.strip() for name in question.faults))
    kept = kept_under_faults(shape, faults, question.methods, wraps) if faults else {}
    if as_json:
        say_json(_document(measures, link, faults, kept, wraps))
        return ExitStatus.DONE
    print_whole(measures, link)
    if faults:
        print_faults(faults, kept, RECOMMENDED)
        if OPTIMAL not in kept and not question.methods:
            _say_how_to_get_best_routes(shape)
    elif wraps is None:
        print_neighbours(shape, link)
    return ExitStatus.DONE


def _say_how_to_get_best_routes(shape: Shape) -> None:
    from sim.cli_output import say

    say(f"Best routes of {shape.chips:,} chips take up to minutes: `--method {OPTIMAL}` computes and keeps them.")


def _shape(text: str) -> Shape:
    """A shape, or the most cubic one of a number of chips."""
    stripped = text.strip()
    if stripped.isascii() and stripped.isdigit() and len(stripped) < 10:
        return shape_of_chips(int(stripped), "SHAPE")
    return parse_shape(text, "SHAPE")


def _pod(generation: str | None, shape: Shape) -> tuple[Pod | None, float]:
    """The pod, if one was named, and its links; v4 links without one. InputError for a shape that does not fit."""
    if generation is None:
        return None, LINK_BYTES_PER_S
    pod = pod_of_generation(generation, "--pod")
    if shape.chips > pod.chips:
        what = f"{shape} has {shape.chips} chips, more than the {pod.chips} of pod {pod.name}"
        raise refuse("SHAPE", what, "write a smaller shape or another --pod")
    return pod, LINK_OF_GENERATION[pod.name]


def _check_together(question: TopologyQuestion) -> None:
    """Options that make no sense together."""
    if question.methods and not question.faults:
        raise refuse("--method", "a method is chosen for routes around a fault", "add --fail, such as --fail ocs:x:0")
    if question.mix is not None and (question.faults or question.wrap is not None):
        other = "--fail" if question.faults else "--wrap"
        what = f"--mix ranks the whole shapes that circuits form, which {other} does not go with"
        raise refuse("--mix", what, f"leave out one of --mix and {other}")


def _check_ranking(shape: Shape) -> None:
    """A ranking needs a network."""
    if shape.chips == 1:
        raise refuse("--mix", "a single chip has no network, and one shape", "write a larger SHAPE, or leave --mix out")


def wraps_of_text(text: str, shape: Shape, where: str = "--wrap") -> Wraps:
    """Axes that close to rings on static wiring: `x`, `yz`, `xyz` or `none`. InputError for others, for rings of less
    than a cube, and for a twist, which needs all."""
    axes = text.strip().lower()
    if axes != "none" and (not axes or set(axes) - set(AXES) or len(set(axes)) < len(axes)):
        shown = text if len(text) <= 20 else f"{text[:20]}..."
        raise refuse(where, f"`{shown}` names no axes", "write x, y, z or several such as yz, or none")
    wraps = NO_WRAPS if axes == "none" else ("x" in axes, "y" in axes, "z" in axes)
    if shape.is_sub_cube and wraps != NO_WRAPS:
        raise refuse(where, f"{shape} is less than a cube: a mesh without rings", "write none, or leave --wrap out")
    if shape.twisted and wraps != ALL_WRAPS:
        raise refuse(where, f"{shape} is twisted: all its axes close to rings", "leave --wrap out")
    return wraps


def mix_of_text(text: str, where: str = "--mix") -> dict[Collective, float]:
    """Bytes per step by collective: a name of `JOB_MIXES`, or `all_to_all=64 MB,all_reduce=16 MB`. InputError else."""
    named = JOB_MIXES.get(text.strip())
    if named is not None:
        return dict(named)
    known = [each.value for each in Collective]
    faults: list[Fault] = []
    mix: dict[Collective, float] = {}
    for part in text.split(","):
        name, equals, size = (piece.strip() for piece in part.partition("="))
        shown = part.strip() if len(part.strip()) <= 40 else f"{part.strip()[:40]}..."
        if not equals:
            mixes = f"write one of {', '.join(JOB_MIXES)}, or for example `all_to_all=64 MB,all_reduce=16 MB`"
            faults.append(Fault(where, f"`{shown}` is no mix", mixes))
        elif name not in known:
            faults.append(Fault(where, f"`{shown}` names no collective", nearest(name, known)))
        elif Collective(name) in mix:
            faults.append(Fault(where, f"{name} is there twice", "write each collective once"))
        else:
            try:
                mix[Collective(name)] = parse_quantity(size, BYTES)
            except AdviceError as advice:
                faults.append(Fault(where, f"{name}: {advice.what}", advice.write))
    if faults:
        raise InputError(faults)
    if not any(mix.values()):
        raise refuse(where, "a mix needs bytes of at least one collective", "write for example `all_to_all=64 MB`")
    return mix


def kept_under_faults(
    shape: Shape, faults: Sequence[str], methods: Sequence[str] = (), wraps: Wraps | None = None
) -> dict[str, dict[str, Any]]:
    """What each method keeps, by its name: all-to-all, rings per axis, whether the slice holds together, its proof.

    Without `methods` all are used, the linear program up to OPTIMAL_MAX_CHIPS chips. InputError for unknown names.
    """
    from ocs.fault_names import dead_links_of_names
    from sim.disk_cache import routes_cache
    from topology.routing.degraded import STATED_MIXES, degradation
    from topology.routing.methods import Method

    known = [method.value for method in Method]
    for name in methods:
        if name not in known:
            raise refuse("--method", f"`{name[:40]}` is no method of routing", nearest(name, known))
    chosen = list(dict.fromkeys(methods)) or [
        name for name in known if name != OPTIMAL or shape.chips <= OPTIMAL_MAX_CHIPS
    ]
    dead, cache = dead_links_of_names(shape, faults, wraps=wraps), routes_cache()
    found = {}
    for name in chosen:
        left = degradation(shape, dead, name, wraps=wraps, cache=cache)
        found[name] = {
            "all_to_all_kept": left.all_to_all_kept,
            "ring_kept": dict(zip(AXES, left.ring_kept, strict=True)),
            "ring_kept_alone": dict(zip(AXES, left.ring_kept_alone, strict=True)),
            "connected": left.connected,
            "routed": left.routed,
            "unserved_pairs": left.unserved_pairs,
            "gap": left.gap,
            "virtual_channels": left.virtual_channels,
            "deadlock_free": left.deadlock_free,
            "step_slowdown": {mix.name: left.step_slowdown(mix) for mix in STATED_MIXES},
        }
    return found


def _document(
    measures: SliceMeasures, link: float, faults: Sequence[str], kept: dict[str, dict[str, Any]], wraps: Wraps | None
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
    seen = measured_beside(shape) if wraps is None else None
    if seen is not None:
        document["measured"] = {
            "twist_gain": seen.measured.twist_gain,
            "all_to_all_bytes_per_s_per_chip": seen.measured.bytes_per_s,
            "share_of_bound": seen.share_of_bound,
            "source": seen.measured.source.text,
        }
    if faults:
        document |= {"faults": list(faults), "recommended": RECOMMENDED, "methods": kept}
    elif wraps is None:
        document["shapes_of_this_size"] = [
            {
                "shape": str(other),
                "all_to_all_bytes_per_s_per_chip": measure_slice(other, None, link).all_to_all_bytes_per_s,
            }
            for other in shapes_of_chips(shape.chips)
        ]
    return document


def _ranking_document(
    shape: Shape, mix: Mapping[Collective, float], ranked: Sequence[RankedShape], link: float
) -> dict[str, Any]:
    """The JSON document of a ranking, the best shape first."""
    return {
        "chips": shape.chips,
        "link_bytes_per_s": link,
        "mix_bytes": {each.value: size for each, size in mix.items()},
        "best": str(ranked[0].shape),
        "shapes": [
            {
                "shape": str(each.shape),
                "step_s": each.mix_s,
                "diameter": each.measures.diameter,
                "bisection_links": each.measures.bisection_links,
                "all_to_all_bytes_per_s_per_chip": each.measures.all_to_all_bytes_per_s,
            }
            for each in ranked
        ],
    }
