"""The pictures of the pages, one per room, drawn by the project's own code; `docs/pictures/`, light and dark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sim.cost_pictures import draw_pass
from sim.report.operations import cubes_over_time
from sim.report.palette import PAGE_COLOURS
from sim.report.slice_pictures import circuits_on_switches, slice_in_space
from sim.report.style import Panels, svg_text
from sim.scenario import scenario_of
from sim.simulation import run
from sim.strict_yaml import parse_document
from tests.docs.pages import DOCS, blocks_of
from topology.placement import joined
from topology.routing.channels import torus_of_shape
from topology.routing.faults import dead_links_of_switch, link_numbers
from topology.routing.loads import even_split_loads
from topology.shape import parse_shape
from workloads.catalogue.chips import CHIPS
from workloads.catalogue.models import MODELS
from workloads.costs.asking import replica_on
from workloads.costs.passes import Phase

FOLDER = DOCS / "pictures"
DARK = "-dark"


def _topology() -> Panels:
    """Load of every link of 4x4x8 when every chip sends to every chip, without a fault and with one dead switch."""
    shape = parse_shape("4x4x8")
    torus, dead = torus_of_shape(shape), dead_links_of_switch(shape, 2, 5)
    whole, hit = (even_split_loads(torus, link_numbers(torus, links)).load for links in ((), dead))
    return slice_in_space(shape, {"all switches work": whole / whole.max(), "switch z:5 dead": hit / whole.max()}, dead)


def _ocs() -> Panels:
    """The circuits of an 8x8x16 slice on 16 cubes that stand anywhere, one of its switches dead."""
    cubes = [3, 4, 7, 8, 9, 12, 20, 21, 22, 30, 31, 33, 40, 47, 55, 60]
    return circuits_on_switches(joined(parse_shape("8x8x16"), cubes), dead_switches=[37])


def _workloads() -> Panels:
    """A decode step of Llama-3 70B on one cube, by level of memory, and over the size of the slice."""
    replica, stages = replica_on(MODELS["llama3_70b"], CHIPS["tpu_v4"], "4x4x4")
    return draw_pass(replica, Phase.DECODE, 32, 2048, stages=stages)


def _sim() -> Panels:
    """Six days of 16 cubes in operation, as the page of the room has them: jobs, failures, repairs."""
    page = DOCS / "rooms" / "sim.md"
    (text,) = [block.text for block in blocks_of(page) if block.language == "yaml"]
    scenario = scenario_of(parse_document(text.encode(), page.name), ["study.operations.replications=1"])
    return cubes_over_time(run(scenario, workers=1).tables)


PICTURES: dict[str, Callable[[], Panels]] = {
    "topology": _topology, "ocs": _ocs, "workloads": _workloads, "sim": _sim
}  # fmt: skip
"""By room."""


def dark(svg: str) -> str:
    """The same picture for dark pages."""
    for colour, (_, instead) in PAGE_COLOURS.items():
        svg = svg.replace(colour, instead)
    return svg


def files_of(room: str) -> dict[str, str]:
    """The files of a room's picture by name."""
    svg = svg_text(PICTURES[room]().figure)
    return {f"{room}.svg": svg, f"{room}{DARK}.svg": dark(svg)}


def write_pictures(folder: Path = FOLDER) -> None:
    """Draw them all anew."""
    folder.mkdir(exist_ok=True)
    for room in PICTURES:
        for name, text in files_of(room).items():
            (folder / name).write_text(text, encoding="utf-8")
