"""The commands `validate`, `schema` and `list`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from sim.cli_output import say, say_json, say_table
from sim.effective import effective_settings
from sim.exit_codes import ExitStatus
from sim.scenario import Scenario, expand, load_scenario, resolved_yaml, scenario_schema, shipped_scenarios
from sim.scenario_faults import nearest
from sim.strict_yaml import parse_document
from topology.errors import Fault, InputError, refuse
from topology.pod import POD_GENERATIONS
from workloads.catalogue.chips import CHIPS
from workloads.catalogue.models import MODELS


def load_all(names: Sequence[str], overrides: Sequence[str]) -> list[tuple[str, Scenario]]:
    """Load every scenario by file or name, and the logs that they replay; faults of all are raised together."""
    faults: list[Fault] = []
    valid: list[tuple[str, Scenario]] = []
    for name in names:
        try:
            valid.append((name, load_scenario(name, overrides)))
            if valid[-1][1].failures.log is not None:
                from sim.build import build_setup

                for point in expand(valid[-1][1]):
                    build_setup(point.scenario)
        except InputError as error:
            faults.extend(error.faults)
    if faults:
        raise InputError(faults)
    return valid


def validate_command(names: Sequence[str], overrides: Sequence[str], as_json: bool) -> int:
    """Check every scenario and print what takes effect."""
    valid = load_all(names, overrides)
    if as_json:
        say_json({"scenarios": [_as_document(name, scenario) for name, scenario in valid]})
        return ExitStatus.DONE
    for name, scenario in valid:
        points = len(expand(scenario))
        say(f"{name}: valid, {points} {'point' if points == 1 else 'points'}")
        say_table(("setting", "value", "mark"), effective_settings(scenario))
    return ExitStatus.DONE


def schema_command() -> int:
    """Print the JSON schema of a scenario file."""
    say_json(scenario_schema())
    return ExitStatus.DONE


def list_command(what: str, as_json: bool) -> int:
    """List scenarios, chips, models, pods, policies, or the accuracy of costs."""
    listings: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "scenarios": _scenarios, "chips": _chips, "models": _models, "pods": _pods, "policies": _policies,
        "accuracy": _accuracy,
    }  # fmt: skip
    if what not in listings:
        raise refuse("opticube list", f"`{what}` can not be listed", nearest(what, list(listings)))
    rows = listings[what]()
    if as_json:
        say_json({what: rows})
    elif rows:
        say_table(list(rows[0]), [list(row.values()) for row in rows])
    return ExitStatus.DONE


def _as_document(name: str, scenario: Scenario) -> dict[str, Any]:
    """What `validate --json` says of one scenario."""
    settings = [{"setting": label, "value": value, "mark": mark} for label, value, mark in effective_settings(scenario)]
    return {
        "scenario": name,
        "points": [{"index": point.index, "settings": dict(point.settings)} for point in expand(scenario)],
        "effective": settings,
        "resolved": json.loads(json.dumps(parse_document(resolved_yaml(scenario).encode(), name).data)),
    }


def _scenarios() -> list[dict[str, Any]]:
    """Name and question of every shipped scenario (those that need a file of yours are listed too)."""
    from importlib import resources

    rows = []
    for name in shipped_scenarios():
        content = resources.files("scenarios").joinpath(f"{name}.yaml").read_bytes()
        rows.append({"name": name, "description": str(parse_document(content, name).data.get("description", ""))})
    return rows


def _chips() -> list[dict[str, Any]]:
    return [
        {
            "key": chip.key,
            "name": chip.name,
            "peak_tflop_per_s": chip.peak_flops_per_s / 1e12,
            "hbm_gb": chip.hbm_bytes / 1e9,
            "hbm_gb_per_s": chip.hbm_bytes_per_s / 1e9,
            "link_gb_per_s": chip.link_bytes_per_s / 1e9,
        }
        for chip in CHIPS.values()
    ]


def _models() -> list[dict[str, Any]]:
    return [
        {
            "key": model.key,
            "name": model.name,
            "parameters_billions": model.parameters / 1e9,
            "layers": model.layers,
            "d_model": model.d_model,
            "heads": model.heads,
            "kv_heads": model.kv_heads,
            "kv_bytes_per_token": model.kv_bytes_per_token(),
        }
        for model in MODELS.values()
    ]


def _accuracy() -> list[dict[str, Any]]:
    """Times of others beside computed ones, row by row."""
    from sim.measured_times import shipped_times
    from workloads.accuracy.errors import row_errors

    return [
        {
            "group": each.row.group,
            "row": each.row.name if each.row.weights == "bf16" else f"{each.row.name}, {each.row.weights}",
            "mark": each.row.mark.value,
            "measured_ms": round(each.row.measured_s * 1e3, 3),
            "computed_ms": round(each.computed_s * 1e3, 3),
            "error_percent": round(100 * each.error, 1),
            "counted": "yes" if each.row.counted else "no",
        }
        for each in row_errors(shipped_times())
    ]


def _pods() -> list[dict[str, Any]]:
    return [
        {
            "generation": name,
            "cubes": pod.cubes,
            "chips": pod.chips,
            "grid": "x".join(map(str, pod.grid)),
            "ports_per_switch": pod.switch_ports,
        }
        for name, pod in POD_GENERATIONS.items()
    ]


def _policies() -> list[dict[str, Any]]:
    """Every plug-in: the place where it is chosen, its kind, its keys, and what it does."""
    from sim.scenario_jobs import JOB_PLUG_INS
    from sim.scenario_services import PLUG_INS
    from sim.scenario_studies import STUDY_PLUG_INS

    return [
        {
            "where": where,
            "kind": plug_in.kind,
            "keys": ", ".join(item.name for item in fields(plug_in) if item.name != "kind"),
            "meaning": (plug_in.__doc__ or "").strip().splitlines()[0],
        }
        for where, plug_ins in {**PLUG_INS, **JOB_PLUG_INS, **STUDY_PLUG_INS}.items()
        for plug_in in plug_ins
    ]
