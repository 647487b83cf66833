"""Knobs: `KEY=VALUE` texts that change one or several keys of a scenario, absolute, by steps (`+1`) or times (`x2`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sim.overrides import split_key
from sim.quantities import AdviceError
from sim.scenario import Scenario
from sim.strict_yaml import parse_value
from sim.trials import with_settings
from topology.errors import Fault, InputError
from topology.units import Unit

UNITS_OF_CHIPS = {
    "peak_flops_per_s": "FLOP/s", "hbm_bytes": "byte", "hbm_bytes_per_s": "byte/s", "link_bytes_per_s": "byte/s",
    "hop_s": "s", "network_bytes_per_s": "byte/s", "network_hop_s": "s",
}  # fmt: skip

NOT_TURNED = ("name", "description", "run", "sweep", "expect")
"""Sections that say how a scenario is run, not what is: differences of trials would not be paired, or about nothing."""

_TIMES = re.compile(r"x\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_STEP = re.compile(r"([+-][0-9]+(?:\.[0-9]+)?)")
_QUANTITY = re.compile(r"([+-]?[0-9][0-9.eE+-]*)(\s*[^0-9.\s].*)")


def turned(scenario: Scenario, knob: str) -> Scenario:
    """The scenario with a knob turned; several keys are separated by `;`. InputError says what is wrong with it."""
    settings: dict[str, object] = {}
    faults: list[Fault] = []
    for part in knob.split(";"):
        key, equals, text = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not text:
            faults.append(Fault(f"--knob {part.strip()}", "this turns nothing", "write `--knob KEY.PATH=VALUE`"))
            continue
        if key in settings:
            faults.append(Fault(f"--knob {knob}", f"`{key}` is turned twice", "turn it once"))
            continue
        if key.split(".")[0] in NOT_TURNED:
            what = f"`{key}` is no part of the machine: what it changes would be another luck, or nothing"
            faults.append(Fault(f"--knob {part.strip()}", what, f"set it for all: `--set {key}={text}`"))
            continue
        try:
            settings[key] = _new_value(scenario, key, text)
        except AdviceError as advice:
            faults.append(Fault(f"--knob {part.strip()}", advice.what, advice.write))
    if faults:
        raise InputError(faults)
    try:
        return with_settings(scenario, settings, f"--knob {knob}")
    except AdviceError as advice:
        raise InputError([Fault(f"--knob {knob}", advice.what, advice.write)]) from None


def _new_value(scenario: Scenario, key: str, text: str) -> object:
    """The value that a knob sets: what is written, or the present one times or plus something."""
    times, step = _TIMES.fullmatch(text), _STEP.fullmatch(text)
    if times is None and step is None:
        return parse_value(text, f"--knob {key}={text}")
    value = present_value(scenario, key)
    number, unit = _split(value, key)
    changed = number * float(times[1]) if times is not None else number + float((step or ("", "0"))[1])
    if unit:
        return f"{changed!r}{unit}"
    return int(changed) if isinstance(value, int) and changed.is_integer() else changed


def present_value(scenario: Scenario, key: str) -> object:
    """What the scenario has at a key, defaults included; of a chip of one's own also what its model has."""
    here: Any = scenario.model_dump(mode="json")
    path = split_key(key)
    for part in path:
        if isinstance(here, Sequence) and not isinstance(here, str):
            names = [item.get("name") if isinstance(item, Mapping) else None for item in here]
            index = names.index(part) if part in names else int(part) if str(part).isdigit() else -1
            here = here[index] if 0 <= index < len(here) else None
        else:
            here = here.get(part) if isinstance(here, Mapping) else None
    if here is None:
        here = _of_catalogue(scenario, path)
    if here is None and key == "pod.cubes" and scenario.pod.kind == "cubes":
        here = getattr(scenario.pod.build(), "cubes", None)
    if here is None:
        raise AdviceError(f"the scenario has no value at `{key}` to start from", "write the new value itself")
    return here


def _of_catalogue(scenario: Scenario, path: Sequence[str | int]) -> object:
    """A figure of a chip of the scenario that it takes over from the catalogue, with its unit."""
    if len(path) != 3 or path[0] != "chips" or path[1] not in scenario.chips:
        return None
    value = getattr(scenario.catalogue.chips[str(path[1])], str(path[2]), None)
    unit = UNITS_OF_CHIPS.get(str(path[2]))
    return Unit(unit).text(float(value)) if unit is not None and isinstance(value, int | float) else value


def _split(value: object, key: str) -> tuple[float, str]:
    """A number and what follows it: the unit of a quantity."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value), ""
    match = _QUANTITY.fullmatch(str(value).strip())
    if match is None:
        shown = str(value) if len(str(value)) <= 40 else f"{str(value)[:40]}..."
        raise AdviceError(f"`{key}` is {shown}, which is no number", "write the new value itself")
    return float(match[1]), match[2]
