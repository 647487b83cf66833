"""Scenarios: defaults, sweeps, overrides, and the resolved form that loads again to the same thing."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from sim.scenario import (
    Scenario,
    expand,
    load_scenario,
    resolved_yaml,
    resweep,
    scenario_of,
    scenario_schema,
    shipped_scenarios,
)
from sim.scenario_docs import key_meanings, scenario_page
from sim.strict_yaml import Document, parse_document
from tests.scenario.bad_scenarios import BASE
from tests.shared_data import shared_file
from topology.errors import InputError
from topology.fabric import Fabric

NEEDS_FILE = {
    "availability_lanl": ("failures.log.path", "failures/lanl_system_18.csv.gz"),
    "availability_gpu_faults": ("failures.log.path", "failures/gpu_fault_trace_day_000_180.json"),
    "availability_gpu_hardware": ("failures.log.path", "failures/gpu_fault_trace_day_000_180.json"),
    "philly_month": ("jobs.log.path", "cluster_jobs/philly_2017_11.csv"),
    "azure_hour": ("serving.services.0.requests.path", "llm_requests/azure_2023_conv.csv"),
    "mooncake_prefix": ("serving.services.0.requests.path", "llm_requests/mooncake_conversation_0000_1200s.jsonl"),
}


def loaded(text: str, *overrides: str) -> Scenario:
    """The scenario of a text."""
    return scenario_of(parse_document(text.encode(), "test.yaml"), overrides)


def shipped(name: str) -> Scenario:
    """A shipped scenario, with its real file where it needs one."""
    if name not in NEEDS_FILE:
        return load_scenario(name)
    key, file = NEEDS_FILE[name]
    return load_scenario(name, [f"{key}={shared_file(file)}"])


@pytest.mark.parametrize("name", shipped_scenarios())
def test_shipped_scenarios(name: str, tmp_path: Path) -> None:
    """Goal: every shipped scenario is valid, says its question, and survives being written out."""
    scenario = shipped(name)
    assert scenario.name == name
    assert scenario.description
    file = tmp_path / "scenario.yaml"
    file.write_text(resolved_yaml(scenario), encoding="utf-8")
    again = load_scenario(file)
    assert again == scenario
    assert resolved_yaml(again) == resolved_yaml(scenario)
    assert [point.scenario for point in expand(again)] == [point.scenario for point in expand(scenario)]
    for point in expand(scenario):
        file.write_text(resolved_yaml(point.scenario), encoding="utf-8")
        assert load_scenario(file) == point.scenario


@pytest.mark.parametrize("name", shipped_scenarios())
def test_shipped_scenarios_open_with_their_question(name: str) -> None:
    """Goal: a reader knows what a file is for. Method: its first line is a comment with a question."""
    text = (Path(__file__).resolve().parents[2] / "scenarios" / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# Question: ")
    assert "?" in text.split("name:")[0]


@pytest.mark.parametrize("name", sorted(NEEDS_FILE))
def test_scenarios_without_their_file_say_where_it_is_published(name: str) -> None:
    """Goal: the files of others are not shipped, and people can find them. Method: load without a path."""
    with pytest.raises(InputError) as caught:
        load_scenario(name)
    (fault,) = caught.value.faults
    assert f"--set {NEEDS_FILE[name][0]}=FILE" in fault.write
    assert "github.com/" in fault.write


def test_sweep_points_come_in_order() -> None:
    """Goal: points are the product of the lists, the first key slowest. Method: two keys of two values."""
    points = expand(loaded(BASE.replace("sweep:", "sweep:\n  run.seed: [7, 8]")))
    assert [dict(point.settings) for point in points] == [
        {"run.seed": 7, "pod.fabric": "reconfigurable"},
        {"run.seed": 7, "pod.fabric": "static_aligned"},
        {"run.seed": 8, "pod.fabric": "reconfigurable"},
        {"run.seed": 8, "pod.fabric": "static_aligned"},
    ]
    assert [point.index for point in points] == [0, 1, 2, 3]
    assert points[3].scenario.run.seed == 8
    assert points[3].scenario.pod.fabric is Fabric.STATIC_ALIGNED
    assert points[3].scenario.sweep == {}
    assert points[3].scenario.expect == ()


def test_levels_set_several_keys() -> None:
    """Goal: a named level is one value of an axis and sets all its keys, whatever the level before it set, also once
    written back. Method: two levels of two keys beside the fabrics; the points of the resolved file."""
    levels = "data: {poor: {run.seed: 7, repair.crews: 1}, good: {run.seed: 8, repair.crews: 2}}"
    scenario = loaded(BASE.replace("sweep:", f"sweep:\n  {levels}"))
    for read in (scenario, loaded(resolved_yaml(scenario))):
        points = expand(read)
        assert [point.settings["data"] for point in points] == ["poor", "poor", "good", "good"]
        assert [point.scenario.run.seed for point in points] == [7, 7, 8, 8]
        assert [point.scenario.repair.crews for point in points] == [1, 1, 2, 2]
    again = resweep(scenario, {"data": {"other": {"run.seed": 9}}})
    assert [(point.settings, point.scenario.run.seed) for point in expand(again)] == [({"data": "other"}, 9)]


def test_points_are_checked_one_by_one() -> None:
    """Goal: an impossible point is refused with its line. Method: sweep the pod below a slice size."""
    with pytest.raises(InputError) as caught:
        loaded(BASE.replace("sweep:", "sweep:\n  pod.cubes: [16, 4]").replace(", grid: 2x2x4", ""))
    assert any("larger than the pod of 256" in fault.what for fault in caught.value.faults)
    assert all(fault.where.startswith("test.yaml:") for fault in caught.value.faults)


def test_overrides_are_values_of_yaml() -> None:
    """Goal: `--set` reaches every key. Method: numbers, quantities, lists, mappings, entries by number and by name."""
    scenario = loaded(
        BASE,
        "run.seed=7",
        "health.detection=2 min",
        "sweep.pod.fabric=[any_host]",
        "failures.rack={failure_rate: 1 %/day, repair: {mean: 4 h}}",
        "serving.services.0.load=0.5",
        "serving.services.chat.router=random",
        "expect=[]",
    )
    assert scenario.run.seed == 7
    assert scenario.health.detection == 120.0
    assert scenario.pod.fabric is Fabric.ANY_HOST
    assert scenario.failures.rack is not None
    assert scenario.serving is not None
    assert scenario.serving.services[0].load == 0.5
    assert scenario.serving.services[0].router == "random"
    assert scenario.expect == ()


def test_a_null_takes_out_a_section_or_a_swept_key() -> None:
    """Goal: a log can take the place of the hosts of a shipped scenario. Method: set section and sweep to null."""
    log = shared_file("failures/lanl_system_18.csv.gz")
    scenario = load_scenario(
        "availability",
        ["sweep.failures.host.availability=null", "failures.host=null", f"failures.log={{format: lanl, path: {log}}}"],
    )
    assert scenario.failures.host is None
    assert list(scenario.sweep) == ["pod.fabric"]
    assert len(expand(scenario)) == 4


@pytest.mark.parametrize(
    "key", ["run", "run.seed", "pod", "expect", "description", "health.detection", "study.promise"]
)
def test_a_null_leaves_the_default(key: str) -> None:
    """Goal: every key that may be left out can be taken out. Method: null against a file without the key."""
    text = BASE.replace("sweep:\n  pod.fabric: [reconfigurable, static_aligned]\n", "")
    base = parse_document(text.encode(), "base")
    data = copy.deepcopy(base.data)
    here = data
    *parents, last = key.split(".")
    for part in parents:
        here = here[part]
    here.pop(last, None)
    assert scenario_of(base, [f"{key}=null"]) == scenario_of(Document("base", data))


def test_a_null_for_what_is_needed_says_so() -> None:
    """Goal: taking out too much is explained. Method: a key without a default."""
    with pytest.raises(InputError, match="key `name` is missing; write"):
        scenario_of(parse_document(BASE.encode(), "base"), ["name=null"])


def test_what_is_not_named_never_fails() -> None:
    """Goal: failures are opt-in. Method: an empty section of failures names nothing."""
    scenario = loaded("name: x\nstudy: {promise: {slices: {4x4x4: 1}}}\n")
    assert scenario.failures.named() == {}
    assert scenario.pod.build().chips == 4096


def test_sizes_may_be_chips_shapes_or_cores() -> None:
    """Goal: people write sizes as they know them. Method: 1024 chips in four ways."""
    text = "name: x\nstudy: {availability: {slice_chips: [SIZE]}}\n"
    found = [
        loaded(text.replace("SIZE", size)).study.availability for size in ("1024", "8x8x16", "v4-2048", "v5p-2048")
    ]
    assert [study.slice_chips for study in found if study is not None] == [(1024,)] * 4


def test_names_escape_no_folder(tmp_path: Path) -> None:
    """Goal: a name finds shipped scenarios only. Method: paths in place of names are files or nothing."""
    for name in ("../sim/cli", "scenarios/../../etc/passwd", "smoke.yaml", ""):
        with pytest.raises(InputError):
            load_scenario(name)


def test_text_that_looks_like_a_number_survives() -> None:
    """Goal: resolved YAML is read as it was meant. Method: descriptions that YAML could take for something else."""
    for text in ("1e5", "on", "12:30", "null", "~", "0.5", "a: b", "# no", "é ü", "'", '"', "-", "x" * 300, "- a"):
        scenario = loaded("name: x\ndescription: |-\n  " + text + "\nstudy: {promise: {slices: {4x4x4: 1}}}\n")
        assert scenario.description == text
        assert loaded(resolved_yaml(scenario)) == scenario


def test_the_schema_knows_every_key() -> None:
    """Goal: editors can check a scenario. Method: the sections and some keys are in the schema, with texts."""
    schema = scenario_schema()
    assert list(schema["properties"])[:3] == ["name", "description", "pod"]
    assert schema["additionalProperties"] is False
    sections = schema["$defs"]
    assert "default" in sections["HealthPolicy"]["properties"]["detection"]
    assert all("description" in value for value in sections["ServiceSection"]["properties"].values())


def test_every_key_has_a_meaning() -> None:
    """Goal: no key is undocumented. Method: all keys of all sections of the schema, kinds left out."""
    bare = [
        f"{name}.{key}"
        for name, section in scenario_schema()["$defs"].items()
        if "properties" in section
        for key, meaning in key_meanings(name, section)
        if not meaning and key != "kind"
    ]
    assert bare == []


def test_the_page_of_keys_is_up_to_date() -> None:
    """Goal: the documentation can not disagree with the code. Method: `docs/scenario.md` is what the code writes."""
    page = Path(__file__).resolve().parents[2] / "docs" / "scenario.md"
    message = "write it again: python -m sim.scenario_docs > docs/scenario.md"
    assert page.read_text(encoding="utf-8") == scenario_page(), message
