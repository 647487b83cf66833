"""Every key of a scenario against values that nobody means: refused with advice or taken, never a fault of ours."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from sim.build import build_setup
from sim.scenario import expand, scenario_of
from sim.strict_yaml import Document, KeyPath, parse_document
from tests.scenario.bad_scenarios import BASE
from topology.errors import InputError

FULL = BASE.replace(
    "      slo:", "      cache: {kind: contiguous, max_model_len: 8192}\n      router: random\n      slo:"
).replace(
    "ocs: {failure_rate: 0.04 %/day, repair: {kind: exponential,",
    "ocs: {failure_rate: 0.04 %/day, repair: {kind: weibull, shape: 2,",
)

HOSTILE: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2, 0.5, 1e308, -1e308, float("nan"), float("inf"), 2**62, 10**18, "", " ", "x", "0", "1e400",
    "0 s", "1 ns", "1 us", "1e11 s", "1e300 s", "-5 s", "5 GB", "1e-300 s", "99.999999999 %", "1e-12", "0 %/day",
    "1e5 1/s", "1e-30 1/s", "1 1/year", "9x9x9", "1x1x1", "v4-8", "0x0x0", "99999999999x1x1", "a" * 5000, "\u2603",
    [], [[]], [None], {}, {"": 0}, {"kind": "nothing"}, {"kind": None}, {"kind": []},
)  # fmt: skip


def leaves(data: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """The paths of all values, sections and lists among them."""
    if path:
        yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from leaves(value, (*path, key))


DOCUMENT = parse_document(FULL.encode(), "full.yaml")
PATHS = list(leaves(DOCUMENT.data))


def named(path: KeyPath) -> str:
    """A path as the id of a test."""
    return ".".join(map(str, path))


def changed(path: KeyPath, value: Any) -> Document:
    """The document with a value at a path, all places kept."""
    data = json.loads(json.dumps(DOCUMENT.data))
    here = data
    for part in path[:-1]:
        here = here[part]
    here[path[-1]] = value
    return Document(DOCUMENT.source, data, DOCUMENT.places)


def check(path: KeyPath, values: Iterable[Any]) -> None:
    """What is taken builds; what is refused says where, what, and what to write, in a line that can be read."""
    for value in values:
        try:
            points = expand(scenario_of(changed(path, value)))
            for point in points:
                build_setup(point.scenario)
        except InputError as error:
            for fault in error.faults:
                assert fault.where, (value, fault)
                assert fault.what, (value, fault)
                assert fault.write, (value, fault)
                assert len(str(fault)) < 1_500, (value, fault)


@pytest.mark.parametrize("path", PATHS, ids=named)
def test_hostile_values_are_refused_or_taken(path: KeyPath) -> None:
    """Goal: no value of any key breaks us. Method: at every key some of the hostile values, others at the next key."""
    first = 5 * PATHS.index(path)
    check(path, [HOSTILE[(first + step) % len(HOSTILE)] for step in range(5)])


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=named)
def test_all_hostile_values_are_refused_or_taken(path: KeyPath) -> None:
    """Goal: the same, without gaps. Method: every hostile value at every key."""
    check(path, HOSTILE)
