"""Pods: numbering, generations, grids, and what is refused."""

from __future__ import annotations

import pytest

from topology.errors import InputError
from topology.pod import POD_GENERATIONS, FlatPod, Pod, grid_nearest_cube, places_of, pod_of_generation, stated_grid


def test_v4_counts_are_the_published_ones() -> None:
    """Goal: the v4 pod is the published machine. Method: compare counts with ISCA 2023, sections 2.1 to 2.3."""
    pod = POD_GENERATIONS["v4"]
    assert (pod.cubes, pod.hosts, pod.chips) == (64, 1024, 4096)
    assert (pod.switches, pod.switch_ports, pod.spare_ports) == (48, 136, 8)
    assert (POD_GENERATIONS["v5p"].chips, POD_GENERATIONS["v5p"].switch_ports) == (8960, 288)
    assert (POD_GENERATIONS["tpu7x"].chips, POD_GENERATIONS["tpu7x"].switch_ports) == (9216, 296)


@pytest.mark.parametrize("name", sorted(POD_GENERATIONS))
def test_numbers_and_coordinates_of_cubes_agree(name: str) -> None:
    """Goal: cubes are numbered row-major. Method: walk the grid in row-major order and convert both ways."""
    pod = POD_GENERATIONS[name]
    for cube, at in enumerate(places_of(pod.grid)):
        assert pod.cube_coordinates(cube) == at
        assert pod.cube_at(*at) == cube
    assert pod.cube_at(pod.grid[0], -1, 0) == pod.cube_at(0, pod.grid[1] - 1, 0)
    if name == "v4":
        assert pod.cube_at(2, 3, 1) == 16 * 2 + 4 * 3 + 1


def test_stated_grids() -> None:
    """Goal: grids are those of the design. Method: the four stated ones, all others below 200 by exhaustion."""
    assert [stated_grid(c) for c in (25, 64, 140, 144)] == [(5, 5, 1), (4, 4, 4), (4, 5, 7), (4, 6, 6)]
    for cubes in range(1, 200):
        x, y, z = grid_nearest_cube(cubes)
        assert x <= y <= z
        assert x * y * z == cubes
        surfaces = [
            a * b + b * (cubes // (a * b)) + a * (cubes // (a * b))
            for a in range(1, cubes + 1)
            for b in range(1, cubes // a + 1)
            if cubes % (a * b) == 0
        ]
        assert x * y + y * z + x * z == min(surfaces)


def test_free_pods_take_stated_grid_and_switches() -> None:
    """Goal: a pod of any number of cubes works. Method: look at defaults below and above 64 cubes."""
    assert Pod(cubes=56).switch_ports == 136
    assert Pod(cubes=65).switch_ports == 138
    assert Pod(cubes=25).grid == (5, 5, 1)
    assert Pod(cubes=12, grid=(1, 3, 4)).grid == (1, 3, 4)
    assert FlatPod(hosts=10).chips == 40


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"cubes": 0}, "at least 1"),
        ({"cubes": -4}, "at least 1"),
        ({"cubes": 64, "grid": (4, 4, 5)}, "for example 4x4x4"),
        ({"cubes": 64, "grid": (-4, -4, 4)}, "product is 64"),
        ({"cubes": 64, "grid": (8, 8)}, "product is 64"),
        ({"cubes": 69, "ports": 136}, "at most 68 cubes"),
    ],
)
def test_impossible_pods_are_refused(options: dict[str, object], part: str) -> None:
    """Goal: a pod that can not be is refused with what to write. Method: one case per reason."""
    with pytest.raises(InputError, match=part):
        Pod(**options)  # type: ignore[arg-type]


def test_unknown_generation_and_empty_flat_pod() -> None:
    """Goal: known names are listed. Method: an unknown one, and a flat pod without hosts."""
    assert pod_of_generation("v4").cubes == 64
    with pytest.raises(InputError, match="v4, v5p, tpu7x"):
        pod_of_generation("v6")
    with pytest.raises(InputError, match="at least 1"):
        FlatPod(hosts=0)
