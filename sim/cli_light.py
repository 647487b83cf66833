"""The command `light`: what the optics of a pod cost, lose and take to switch, and what the failure of a part takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ocs.blast import BlastRadius, Part, blast_radius, parts_of_pod
from ocs.churn import ADMISSIONS_SEEN, CIRCUITS_SEEN, circuits_of_replacement, circuits_per_day
from ocs.circuits import circuits_of, no_circuits, plan_reconfiguration
from ocs.economics import (
    FIGURE_SOURCES,
    PUBLISHED_COST_SHARE_MAX,
    PUBLISHED_POWER_SHARE_MAX,
    PUBLISHED_SOURCE,
    OpticsFigures,
    optics_share,
)
from ocs.optics import BUDGET_SOURCES, INSERTION_LOSS_SOURCES, InsertionLoss, OpticalBudget
from ocs.qualification import Qualification, SlowestLink
from ocs.reconfiguration import ReconfigurationTiming
from ocs.repatching import RepatchCrew
from ocs.wiring import switch_number
from sim.cli_output import say, say_json, say_table
from sim.cli_size import shapes_and_counts
from sim.exit_codes import ExitStatus
from sim.scenario_faults import nearest
from topology.errors import Fault, InputError, refuse
from topology.placement import Placement, joined
from topology.pod import OPTICAL_ENDS_PER_CUBE, POSITIONS_PER_FACE, SWITCHES_PER_POD, Pod, pod_of_generation
from topology.provenance import Mark
from topology.shape import Shape, parse_shape

AXES = "xyz"
CUBES_PER_JOB_SEEN = 3.6
"""24,200 circuits of 139 jobs a day (D)."""
SLICES_SHOWN = ("4x4x4", "4x4x8", "8x8x8", "8x8x16", "12x16x16")
MARK_WORDS = {
    Mark.VERIFIED: "published",
    Mark.SECONDARY: "reported",
    Mark.DERIVED: "derived",
    Mark.FITTED: "fitted",
    Mark.ASSUMED: "assumption",
}


def light_command(generation: str, part: str | None, slices: str | None, as_json: bool) -> int:
    """Print the light of a pod; with `part`, what its failure takes from slices that fill cubes 0, 1, ... in order."""
    pod = pod_of_generation(generation, "--pod")
    if part is None:
        if slices is not None:
            _placements(pod, slices)  # what is wrong with them is told first
            raise refuse(
                "--slices", "slices are placed to see what a failure takes", "add --fail, such as --fail host:3"
            )
        document = light_of_pod(pod)
        if as_json:
            say_json(document)
        else:
            _print_light(document)
        return ExitStatus.DONE
    kind, number = part_of_name(part)
    if number >= parts_of_pod(pod, kind):
        what = f"pod {pod.name} has no {kind.value} {number}"
        raise refuse("--fail", what, f"write a number from 0 to {parts_of_pod(pod, kind) - 1:,}")
    placements = _placements(pod, slices)
    taken = blast_radius(pod, placements, kind, number)
    if as_json:
        say_json(_blast_document(part.strip(), pod, placements, taken))
    else:
        _print_blast(part.strip(), pod, placements, taken)
    return ExitStatus.DONE


def light_of_pod(pod: Pod) -> dict[str, Any]:
    """All figures of a pod's light, as the JSON document: shares, budget, times of reconfiguration, circuits per day.

    Times in seconds, losses in dB, power in watts, cost in chips.
    """
    share, budget, loss = optics_share(pod), OpticalBudget(), InsertionLoss()
    crew = RepatchCrew()
    seen = circuits_per_day(ADMISSIONS_SEEN.mean, CUBES_PER_JOB_SEEN)
    return {
        "pod": pod.name,
        "cubes": pod.cubes,
        "switches": SWITCHES_PER_POD,
        "ports_per_switch": pod.switch_ports,
        "spare_ports_per_switch": pod.spare_ports,
        "optical_ends": pod.cubes * OPTICAL_ENDS_PER_CUBE,
        "circuits_when_full": pod.cubes * SWITCHES_PER_POD,
        "cost_share": share.cost_share,
        "cost_share_published_max": PUBLISHED_COST_SHARE_MAX,
        "power_share": share.power_share,
        "power_share_published_max": PUBLISHED_POWER_SHARE_MAX,
        "power_w": share.power_w,
        "budget_db": {
            "transceivers_bear": budget.transceivers_bear_db,
            "outside_the_switch": budget.fixed_db,
            "switch_may_lose": budget.switch_may_lose_db,
            "median_of_switch": loss.median_db,
            "p99_of_switch": loss.p99_db,
        },
        "connections_refused_share": loss.share_above(budget.switch_may_lose_db),
        "reconfiguration": [_times(parse_shape(text)) for text in SLICES_SHOWN],
        "circuits_per_day": {
            "jobs": ADMISSIONS_SEEN.mean,
            "cubes_per_job": CUBES_PER_JOB_SEEN,
            "made": seen,
            "published_mean": CIRCUITS_SEEN.mean,
            "of_one_replaced_cube": circuits_of_replacement(Shape(8, 8, 16)),
        },
        "repatch_s": crew.time_s(1),
        "figures": [
            {
                "figure": source.field,
                "value": value[source.field],
                "mark": MARK_WORDS[source.mark],
                "source": source.text,
            }
            for sources, value in (
                (FIGURE_SOURCES, asdict(OpticsFigures())),
                (BUDGET_SOURCES, asdict(budget)),
                (INSERTION_LOSS_SOURCES, asdict(loss)),
            )
            for source in sources
        ],
    }


def _times(shape: Shape) -> dict[str, Any]:
    """How long a slice waits for all its circuits, made anew and tested."""
    timing, tests = ReconfigurationTiming(), Qualification()
    plan = plan_reconfiguration(no_circuits(), circuits_of(joined(shape, range(shape.cubes))))
    links, slowest = len(plan.make), SlowestLink(timing, tests)
    median, p99 = (float(slowest.quantile_s(share, links)) for share in (0.5, 0.99))
    mirrors = timing.mirrors_s(plan)
    return {
        "shape": str(shape),
        "circuits": links,
        "mirrors_s": mirrors,
        "slowest_link_median_s": median,
        "slowest_link_p99_s": p99,
        "all_median_s": mirrors + median + timing.discovery,
        "no_crew_share": tests.all_pass_share(links),
    }


def part_of_name(text: str, where: str = "--fail") -> tuple[Part, int]:
    """The part and its number from `host:17`, `ocs:x:0` and the like. InputError for what is no part."""
    kind, *rest = text.strip().split(":")
    kinds = [part.value for part in Part]
    shown = text.strip() if len(text.strip()) <= 40 else f"{text.strip()[:40]}..."
    if kind not in kinds:
        raise refuse(where, f"`{shown}` is no part of a pod", f"{nearest(kind, kinds)}, with a number, such as host:17")
    numbers = [int(each) if each.isascii() and each.isdigit() and len(each) < 8 else -1 for each in rest]
    if kind == Part.SWITCH and len(rest) == 2 and rest[0] in tuple(AXES) and 0 <= numbers[1] < POSITIONS_PER_FACE:
        return Part.SWITCH, switch_number(AXES.index(rest[0]), numbers[1])
    if kind == Part.SWITCH or len(rest) != 1 or numbers[0] < 0:
        example = "ocs:x:0, with x, y or z and a position from 0 to 15" if kind == Part.SWITCH else f"{kind}:0"
        raise refuse(where, f"`{shown}` names no {kind}", f"write for example {example}")
    return Part(kind), numbers[0]


def _placements(pod: Pod, text: str | None) -> dict[int, Placement]:
    """Slices on cubes 0, 1, ... in order; as many 8x8x8 as fit if none are named."""
    faults: list[Fault] = []
    wanted = [(Shape(8, 8, 8), pod.cubes // 8)] if text is None else shapes_and_counts(text, faults)
    faults += [
        Fault("--slices", f"{shape} is less than a cube and has no light", "write shapes of whole cubes")
        for shape, _ in wanted
        if shape.is_sub_cube
    ]
    if faults:
        raise InputError(faults)
    needed = sum(shape.cubes * count for shape, count in wanted)
    if needed > pod.cubes:
        what = f"these slices need {needed:,} cubes, pod {pod.name} has {pod.cubes}"
        raise refuse("--slices", what, "write fewer or smaller slices, or a larger --pod")
    found: dict[int, Placement] = {}
    first = 0
    for shape, count in wanted:
        for _ in range(count):
            found[len(found)] = joined(shape, range(first, first + shape.cubes))
            first += shape.cubes
    return found


def _blast_document(part: str, pod: Pod, placements: dict[int, Placement], taken: BlastRadius) -> dict[str, Any]:
    """What a failure takes, as JSON."""
    return {
        "pod": pod.name,
        "part": part,
        "slices_placed": [str(placement.shape) for placement in placements.values()],
        "circuits": len(taken.circuits),
        "cubes": list(taken.cubes),
        "chips_down": taken.chips_down,
        "chips_hit": taken.chips_hit,
        "slices": [
            {
                "slice": hit.slice,
                "shape": str(placements[hit.slice].shape),
                "cubes": list(placements[hit.slice].cubes),
                "chips_down": hit.chips_down,
                "links": [{"chip": list(link.chip), "axis": AXES[link.axis]} for link in hit.links],
            }
            for hit in taken.slices
        ],
    }


def _print_blast(part: str, pod: Pod, placements: dict[int, Placement], taken: BlastRadius) -> None:
    """What a failure takes, for people."""
    say(
        f"{part} of pod {pod.name} fails: {_told(len(taken.circuits), 'circuit', 'goes', 'go')} dark, "
        f"{_told(len(taken.cubes), 'cube', 'loses', 'lose')} a part or a circuit, "
        f"{_told(taken.chips_down, 'chip', 'goes', 'go')} down."
    )
    if not taken.slices:
        say("No slice is hit.")
        return
    rows: list[Sequence[object]] = []
    for hit in taken.slices:
        placement = placements[hit.slice]
        by_axis = [sum(link.axis == axis for link in hit.links) for axis in range(len(AXES))]
        cubes = f"{placement.cubes[0]} to {placement.cubes[-1]}"
        rows.append((hit.slice, str(placement.shape), cubes, hit.chips_down, *by_axis))
    say_table(("slice", "shape", "cubes", "chips down", "links x", "links y", "links z"), rows)
    say("Slices take cubes 0, 1, ... in order; `--slices` names others.")


def _told(count: int, noun: str, one: str, many: str) -> str:
    """A count with its noun and verb."""
    return f"{count:,} {noun} {one}" if count == 1 else f"{count:,} {noun}s {many}"


def _print_light(found: dict[str, Any]) -> None:
    """The light of a pod, for people."""
    say(
        f"Pod {found['pod']}: {found['cubes']} cubes on {found['switches']} switches of {found['ports_per_switch']} "
        f"ports ({found['spare_ports_per_switch']} spare), {found['circuits_when_full']:,} circuits when full."
    )
    rows = [
        (name, f"{100 * found[f'{name}_share']:.1f} %", f"< {100 * found[f'{name}_share_published_max']:g} %")
        for name in ("cost", "power")
    ]
    say_table(("optics, share of the machine", "here", "published"), rows)
    say(f"({PUBLISHED_SOURCE.text}; figures below)")
    budget = found["budget_db"]
    say()
    say(
        f"A link bears {budget['transceivers_bear']:g} dB, loses {budget['outside_the_switch']:.2f} outside the "
        f"switch: the switch may lose {budget['switch_may_lose']:.2f}."
    )
    say(f"It loses {budget['median_of_switch']:g} dB (median), 99 of 100 less than {budget['p99_of_switch']:g}, so")
    say(f"{100 * found['connections_refused_share']:.2g} % of the connections are out of budget and refused.")
    say()
    say("Making all circuits of a slice; it waits for its slowest link, which is tested and tried again if it fails:")
    times = [
        (
            each["shape"],
            each["circuits"],
            f"{1e3 * each['mirrors_s']:.1f} ms",
            f"{each['slowest_link_median_s']:.2f} s",
            f"{each['slowest_link_p99_s']:.2f} s",
            f"{each['all_median_s']:.1f} s",
        )
        for each in found["reconfiguration"]
    ]
    say_table(("shape", "circuits", "mirrors", "slowest link", "99 % below", "with routes"), times)
    day = found["circuits_per_day"]
    say()
    say(
        f"{day['jobs']:g} jobs a day of {day['cubes_per_job']:g} cubes make {day['made']:,.0f} circuits a day (seen: "
        f"{day['published_mean']:,.0f}); one replaced cube makes {day['of_one_replaced_cube']}."
    )
    say(f"A crew moves the fibre of a bad port to a spare one in {found['repatch_s'] / 3600:g} h.")
    say()
    figures = [(each["figure"], f"{each['value']:g}", each["mark"], each["source"]) for each in found["figures"]]
    say_table(("figure", "value", "mark", "source"), figures)
