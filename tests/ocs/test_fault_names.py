"""Names of faults and the links that they take."""

from __future__ import annotations

import pytest

from ocs.blast import Part, blast_radius
from ocs.fault_names import dead_links_of_names
from ocs.wiring import SIDES, OpticalEnd
from topology.errors import InputError
from topology.placement import joined
from topology.pod import Pod
from topology.routing.faults import DeadLink, dead_links_of_switch
from topology.shape import parse_shape


@pytest.mark.parametrize("text", ["4x4x4", "4x4x8_twisted", "4x8x8_twisted"])
def test_names_take_what_the_parts_take(text: str) -> None:
    """Goal: a name is its part. Method: all switches and all ends of a slice against the blast radius of the part."""
    shape = parse_shape(text)
    pod = Pod(cubes=shape.cubes)
    held = {0: joined(shape, range(shape.cubes))}
    for dimension, axis in enumerate("xyz"):
        for position in range(16):
            named = dead_links_of_names(shape, [f"ocs:{axis}:{position}"])
            assert sorted(named) == sorted(dead_links_of_switch(shape, dimension, position))
            for cube in range(shape.cubes):
                for side in SIDES:
                    end = OpticalEnd(cube, dimension, side, position).number
                    (hit,) = blast_radius(pod, held, Part.FIBRE, end).slices
                    for kind in ("port", "fibre", "transceiver"):
                        name = f"{kind}:{axis}:{position}:{cube}:{side.value}"
                        assert dead_links_of_names(shape, [name]) == hit.links


def test_links_by_name_and_twice() -> None:
    """Goal: links are named by chip and axis, and count once. Method: one on 4x4x8, with the switch that holds it."""
    shape = parse_shape("4x4x8")
    assert dead_links_of_names(shape, ["link:1,2,3:z"]) == (DeadLink((1, 2, 3), 2),)
    both = dead_links_of_names(shape, ["ocs:z:6", "link:1,2,3:z", "port:z:6:0:+"])
    assert both == dead_links_of_names(shape, ["ocs:z:6"])
    mesh = parse_shape("1x2x2")
    assert dead_links_of_names(mesh, ["link:0,0,1:y"]) == (DeadLink((0, 0, 1), 1),)


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        ("4x4x8", "", "is no fault; write ocs:x:0"),
        ("4x4x8", "ocs", "is no fault"),
        ("4x4x8", "ocs:x", "is no fault"),
        ("4x4x8", "switch:x:0", "is no fault"),
        ("4x4x8", "ocs:w:0", "no switch w:0"),
        ("4x4x8", "ocs:x:16", "positions? from 0 to 15"),
        ("4x4x8", "ocs:x:-1", "no switch x:-1"),
        ("4x4x8", "ocs::1", "no switch :1"),
        ("4x4x8", "port:x:0:2:+", "no cube 2; write a number from 0 to 1"),
        ("4x4x8", "port:x:0:1:up", "`up` is no side of a cube; write . or -"),
        ("4x4x8", "port:x:0:1", "is no fault"),
        ("4x4x8", "link:0,0:x", "is no link; write for example"),
        ("4x4x8", "link:0,0,0:q", "is no link"),
        ("4x4x8", "link:4,0,0:x", "no link from chip 4,0,0 up x"),
        ("4x4x8", "host:3", "takes its cube out of the slice"),
        ("2x2x2", "ocs:x:0", "less than a cube and has no light"),
        ("2x2x2", "link:1,0,0:x", "no link from chip 1,0,0 up x"),
        ("1x1x2", "link:0,0,0:x", "no link from chip 0,0,0 up x"),
    ],
)
def test_faults_that_are_none(text: str, name: str, says: str) -> None:
    """Goal: each slip is explained. Method: one of each kind."""
    with pytest.raises(InputError, match=says):
        dead_links_of_names(parse_shape(text), [name])


def test_all_faults_are_told_at_once() -> None:
    """Goal: one line per fault. Method: three bad names among a good one."""
    with pytest.raises(InputError) as caught:
        dead_links_of_names(parse_shape("4x4x8"), ["ocs:x:99", "ocs:x:1", "what", "host:1"])
    assert len(caught.value.faults) == 3
