"""Pictures of one slice: every link and circuit is drawn where it is, and the same bytes each time."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from ocs.circuits import circuits_of
from sim.dead_switches import SwitchSlowdowns
from sim.report.slice_pictures import (
    circuits_on_switches,
    loads_of_links,
    segments_of,
    slice_in_space,
    slowdown_over_dead_switches,
)
from sim.report.style import png_bytes, svg_text
from topology.placement import joined
from topology.routing.channels import torus_of_shape
from topology.routing.faults import dead_links_of_switch
from topology.shape import parse_shape


@pytest.mark.parametrize(("text", "links", "wraps"), [("4x4x8_twisted", 384, 80), ("4x4x4", 192, 48), ("2x2x2", 12, 0)])
def test_every_link_is_drawn(text: str, links: int, wraps: int) -> None:
    """Goal: a link is one piece, a wraparound two stubs out of the slice. Method: count pieces per link."""
    shape = parse_shape(text)
    pieces = Counter(piece.channel for piece in segments_of(shape))
    assert len(pieces) == links
    assert sum(count == 2 for count in pieces.values()) == wraps
    for piece in segments_of(shape):
        length = np.abs(np.array(piece.end) - np.array(piece.start)).sum()
        assert length == pytest.approx(1.0 if pieces[piece.channel] == 1 else 0.42)


def test_a_link_shows_its_busier_direction() -> None:
    """Goal: no direction hides the other. Method: load one channel downwards; its link upwards shows it."""
    shape = parse_shape("4x4x4")
    torus = torus_of_shape(shape)
    load = np.zeros(torus.head.size)
    load[torus.chip_number((1, 2, 3)) * 6 + 1] = 2.5
    shown = loads_of_links(shape, load)
    assert shown[torus.chip_number((0, 2, 3)) * 6] == 2.5
    assert shown.sum() == 5.0


def test_a_slice_in_space() -> None:
    """Goal: a panel per case, dead links crossed, the same bytes again. Method: 4x4x4 with and without a switch."""
    shape = parse_shape("4x4x4")
    dead = dead_links_of_switch(shape, 2, 5)
    torus = torus_of_shape(shape)
    whole = np.where(torus.head >= 0, 1.0, 0.0)
    hit = whole * 1.1
    hit[torus.chip_number(dead[0].chip) * 6 + 4] = hit[torus.chip_number((*dead[0].chip[:2], 0)) * 6 + 5] = 0.0
    drawn = [slice_in_space(shape, {"whole": whole, "one switch dead": hit}, dead) for _ in range(2)]
    first, second = (png_bytes(panels.figure) for panels in drawn)
    assert first == second
    assert len(drawn[0]) == 2
    text = svg_text(drawn[0].figure)
    assert "one switch dead" in text
    assert "dead link" in text


def test_circuits_on_the_48_switches() -> None:
    """Goal: dots are circuits. Method: dots of each dimension against the rows of its first switch, by cube."""
    placement = joined(parse_shape("4x8x8_twisted"), [9, 2, 60, 33])
    panels = circuits_on_switches(placement, [5])
    rows = circuits_of(placement)
    for dimension in range(3):
        dots = sorted(
            (placement.cubes[int(line.get_ydata()[0])], placement.cubes[int(line.get_xdata()[0])])  # type: ignore[index]
            for line in panels[dimension].get_lines()
        )
        assert dots == sorted((plus, minus) for switch, plus, minus in rows.tolist() if switch == 16 * dimension)
    assert [panels[dimension].get_title(loc="left") for dimension in range(3)] == [
        "x: rings of 2", "y: rings of 2", "z: rings of 2",
    ]  # fmt: skip
    assert "dead switch" in svg_text(panels.figure)
    alone = circuits_on_switches(joined(parse_shape("4x4x4"), [7]))
    assert "closes on itself" in svg_text(alone.figure)
    assert "wraparound" not in svg_text(alone.figure)


def test_slowdown_over_dead_switches() -> None:
    """Goal: medians are drawn, extremes shown. Method: two methods with known values."""
    values = {"wild_first": np.array([[1.0, 1.0, 1.0], [1.1, 1.2, 1.4]]), "optimal": np.array([[1.0] * 3, [1.02] * 3])}
    (axes,) = slowdown_over_dead_switches(
        SwitchSlowdowns(dead=(0, 1), orders=np.zeros((3, 48), dtype=np.int64), by_method=values), title="4x4x8"
    )
    curves = {str(line.get_label()): list(np.asarray(line.get_ydata(), dtype=float)) for line in axes.get_lines()}
    assert curves["wild-first"] == [1.0, 1.2]
    assert curves["best routes"] == [1.0, 1.02]
    assert "dead switches, of 48" in svg_text(axes.get_figure(root=True))  # type: ignore[arg-type]
