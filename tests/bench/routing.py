"""Times of routing with one dead switch of z: loads, linear program, mixing; and how they grow with the slice."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from topology.routing.best import mixed_routes, wild_first_routes
from topology.routing.channels import torus_of_shape
from topology.routing.faults import dead_links_of_switch, link_numbers
from topology.routing.loads import dimension_order_loads, even_split_loads
from topology.routing.optimal import best_flows
from topology.shape import parse_shape

LOAD_SHAPES = ("4x4x4", "8x8x8", "16x16x16", "12x24x32")
PROGRAM_SHAPES = ("4x4x4", "4x4x8", "8x8x8")
MIXING_SHAPES = ("4x4x8", "8x8x8", "16x16x16")


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def routing_cases() -> dict[str, dict[str, float]]:
    """Seconds by case and shape; compiled code is loaded before. Ratios to the least shape tell the growth."""
    cases = {
        "even_split_s": (even_split_loads, LOAD_SHAPES),
        "dimension_order_s": (dimension_order_loads, LOAD_SHAPES),
        "linear_program_s": (best_flows, PROGRAM_SHAPES),
        "mixing_s": (mixed_routes, MIXING_SHAPES),
        "wild_first_s": (wild_first_routes, MIXING_SHAPES),
    }
    found: dict[str, dict[str, float]] = {}
    for name, (work, shapes) in cases.items():
        cube = torus_of_shape(parse_shape("4x4x4"))
        work(cube, np.zeros(1, dtype=np.int64))  # load or compile
        found[name] = {}
        for text in shapes:
            shape = parse_shape(text)
            torus = torus_of_shape(shape)
            links = link_numbers(torus, dead_links_of_switch(shape, 2, 5))
            found[name][text] = _seconds(partial(work, torus, links))
    return found
