"""The study `promise`: cubes needed to hold a set of slices, and the slice size at which each fabric falls off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim import closed_forms
from sim.build import Setup
from sim.metrics.promises import chips_promised, cubes_for_promise_in_boxes, slices_text
from topology.fabric import Fabric
from topology.pod import CHIPS_PER_CUBE
from topology.shape import parse_shape

Row = dict[str, Any]


def promise_rows(setup: Setup, host_availability: float) -> list[Row]:
    """One row for the promise of the scenario, and one for each single size of its study.

    A real log has no closed form: its cubes stay blank. `static_contiguous` of several cubes has none either: there the
    cubes are found by simulation, up to the largest promised slice.
    """
    study = setup.scenario.study
    if study.promise is None:
        return []
    slices, time_share = study.promise.slices, study.promise.time_share
    cubes = _cubes(setup, chips_promised(slices), time_share)
    rows = [_row(setup, slices_text(slices), time_share, cubes, host_availability)]
    most = max(slices.values())
    for size in _sizes(setup):
        cubes = _cubes(setup, {size: most}, time_share)
        rows.append(_row(setup, f"{size}:{most}", time_share, cubes, host_availability))
    return rows


def _sizes(setup: Setup) -> Sequence[int]:
    study = setup.scenario.study.availability
    return [] if study is None else [size for size in study.slice_chips if size >= CHIPS_PER_CUBE]


def _cubes(setup: Setup, chips: dict[int, int], time_share: float) -> int | None:
    if not setup.is_independent:
        return None
    cubes = closed_forms.cubes_for_promise(setup.fabric, chips, setup.odds, time_share)
    if cubes is None and setup.fabric is Fabric.STATIC_CONTIGUOUS and max(chips) <= _largest_promised(setup):
        cubes = cubes_for_promise_in_boxes(chips, setup.odds, time_share, setup.streams(0))
    return cubes


def _largest_promised(setup: Setup) -> int:
    """Boxes are searched by simulation, which takes long for the largest: no further than the scenario promises."""
    promise = setup.scenario.study.promise
    return 0 if promise is None else max(parse_shape(shape).chips for shape in promise.slices)


def _row(setup: Setup, slices: str, time_share: float, cubes: int | None, host_availability: float) -> Row:
    return {
        "fabric": setup.fabric.value,
        "host_availability": host_availability,
        "slices": slices,
        "time_share": time_share,
        "cubes": cubes,
        "chips": None if cubes is None else cubes * CHIPS_PER_CUBE,
    }


def cliff_row(setup: Setup, expected_by_chips: dict[int, float], host_availability: float) -> Row:
    """The smallest slice of the study whose `expected` availability is under one half."""
    return {
        "fabric": setup.fabric.value,
        "host_availability": host_availability,
        "cliff_chips": closed_forms.cliff_chips(expected_by_chips),
    }
