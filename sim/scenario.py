"""Scenarios: one YAML file that says what is simulated, read, checked, swept and written back.

    load_scenario   a file or the name of a shipped scenario, with `--set` overrides -> Scenario
    expand          a scenario -> its sweep points in order, each a scenario without a sweep
    resolved_yaml   a scenario -> YAML with every default written out; loading it gives an equal scenario
    scenario_schema the JSON schema of a scenario file

Whatever is wrong with a file is raised as one InputError with one fault per line: where, what is wrong, what to write.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, ValidationError

from sim import (
    own_catalogue,
    prices,
    scenario_clients,
    scenario_jobs,
    scenario_memory,
    scenario_parts,
    scenario_passes,
    scenario_services,
    scenario_speculation,
    scenario_studies,
)
from sim.job_policies import NoCheckpoints, SparesPolicy
from sim.overrides import apply_overrides, swept_overrides
from sim.own_catalogue import Catalogue, ChipSection, ModelSection, Name, catalogue_with
from sim.policies import HealthPolicy, RecoveryPolicy, RepairPolicy
from sim.prices import PricesSection
from sim.quantities import parse_quantity
from sim.repair_policies import MaintenancePolicy
from sim.scenario_checks import check_points, check_scenario
from sim.scenario_faults import FOLDER_NAME, fault_at, faults_of, nearest
from sim.scenario_jobs import Checkpoints, JobsSection, SchedulingSection
from sim.scenario_parts import Expectation, FailuresSection, PodSection, RunSection, Section
from sim.scenario_services import ServingSection
from sim.scenario_studies import StudySection
from sim.strict_yaml import Document, parse_document, read_bytes, scalar_value
from sim.sweep_axes import Axis, axes_of, with_settings
from topology.errors import Fault, InputError, refuse
from topology.units import Unit

_NAME = re.compile(r"[a-z][a-z0-9_]*")


class Scenario(Section):
    """Everything that is simulated. Values at swept keys are the first of their sweep; `expand` gives the points."""

    name: Annotated[str, Field(pattern=FOLDER_NAME)]
    """Short name, used for folders and tables: letters, digits, `_` and `-`."""
    description: str = ""
    """What question the scenario answers, in a sentence."""
    pod: PodSection = PodSection()
    """The machine and its wiring."""
    failures: FailuresSection = FailuresSection()
    """What fails, how often, and how long it takes to repair."""
    health: HealthPolicy = HealthPolicy()
    """How soon failures are known."""
    repair: RepairPolicy = RepairPolicy()
    """Who repairs."""
    recovery: RecoveryPolicy = RecoveryPolicy()
    """How jobs come back after a loss."""
    maintenance: MaintenancePolicy = MaintenancePolicy()
    """Planned drains, component after component."""
    jobs: JobsSection | None = None
    """Which jobs a pod in operation gets."""
    scheduling: SchedulingSection = SchedulingSection()
    """Who is next, and where, on a pod in operation."""
    checkpoint: Checkpoints = NoCheckpoints()
    """What jobs with work save, and when."""
    spares: SparesPolicy = SparesPolicy()
    """Cubes that are kept for jobs that lose some."""
    sweep: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)] | dict[str, dict[str, Any]]] = Field(
        default_factory=dict
    )
    """Keys and the lists of values they take, such as `{pod.fabric: [reconfigurable, any_host]}`: every combination is
    one point, the first key slowest. A name of your own may hold named levels that set several keys at once, such as
    `{data: {poor: {KEY: VALUE}, good: {KEY: VALUE}}}`."""
    study: StudySection = StudySection()
    """What is asked of the machine."""
    serving: ServingSection | None = None
    """Language models that are served on slices, token by token."""
    chips: dict[Name, ChipSection] = Field(default_factory=dict)
    """Chips of your own by key, for services to name."""
    models: dict[Name, ModelSection] = Field(default_factory=dict)
    """Models of your own by key, for services to name."""
    prices: PricesSection = PricesSection()
    """What machines cost: every default is an assumption that says where it comes from."""
    run: RunSection = RunSection()
    """Seed, warm-up, start."""
    expect: tuple[Expectation, ...] = ()
    """Bounds that the results must meet; a missed one makes the run end with status 1."""

    @property
    def catalogue(self) -> Catalogue:
        """All chips and models that services may name."""
        return catalogue_with(self.chips, self.models)[0]


@dataclass(frozen=True, kw_only=True)
class Point:
    """One combination of a sweep: its number in order, the swept settings as written, and its scenario.

    That scenario has no sweep, no expectations and no effects: these belong to the whole.
    """

    index: int
    settings: Mapping[str, object]
    scenario: Scenario


def asks_passes_alone(scenario: Scenario) -> bool:
    """Whether nothing is asked but single passes of models, which need no machine."""
    study = scenario.study
    asked = [name for name in type(study).model_fields if getattr(study, name) is not None]
    return scenario.serving is None and asked == ["passes"]


def shipped_scenarios() -> list[str]:
    """Names of the scenarios that come with opticube, sorted."""
    files = resources.files("scenarios").iterdir()
    return sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))


def load_scenario(path_or_name: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """Load a scenario file, or a shipped one by name, with overrides such as `run.seed=7`; check all its points.

    Raises InputError with one fault per thing that is wrong, EnvironmentFault when a file can not be read.
    """
    document = parse_document(*_content(path_or_name))
    return scenario_of(document, overrides)


def scenario_of(document: Document, overrides: Sequence[str] = ()) -> Scenario:
    """Build and check the scenario of a parsed document."""
    document = apply_overrides(document, overrides)
    axes = _sweep_of(document)
    faults = swept_overrides([(axis.key, key) for axis in axes for key in axis.sets], overrides)
    if faults:
        raise InputError(faults)
    if "sweep" in document.data:
        kept = {axis.key: document.data["sweep"][axis.key] for axis in axes}
        document = Document(document.source, {**document.data, "sweep": kept}, document.places)
    scenario = _validated(_with_settings(document, axes, [0] * len(axes)))
    points = list(_points(document, axes))
    faults = check_points(scenario, [point.scenario for point in points], document)
    if faults:
        raise InputError(faults)
    return scenario


def expand(scenario: Scenario) -> list[Point]:
    """The sweep points of a scenario, in order: the product of the lists, the first key slowest."""
    data = scenario.model_dump(mode="json", exclude_unset=True)
    document = Document(scenario.name, data)
    return list(_points(document, _sweep_of(document)))


def resweep(scenario: Scenario, keys: Mapping[str, Sequence[object] | Mapping[str, object]]) -> Scenario:
    """The same scenario swept over other keys, or named levels; raises InputError where a key or a value is wrong."""
    data = scenario.model_dump(mode="json", exclude_unset=True)
    data["sweep"] = {key: values if isinstance(values, Mapping) else list(values) for key, values in keys.items()}
    return scenario_of(Document(scenario.name, data))


def resolved_yaml(scenario: Scenario) -> str:
    """The scenario with every default written out: all that can change a number. Loads again to an equal scenario."""
    data = scenario.model_dump(mode="json", exclude_none=True)
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)


@cache
def scenario_schema() -> dict[str, Any]:
    """The JSON schema of a scenario file; defaults are given as a file would have them, with units."""
    schema = Scenario.model_json_schema()
    texts = _texts_of_fields()
    for name, section in {**schema["$defs"], Scenario.__name__: schema}.items():
        for field, text in texts.get(name, {}).items():
            section["properties"][field]["description"] = text
    for section in schema["$defs"].values():
        for value in section.get("properties", {}).values():
            if "unit" in value and isinstance(value.get("default"), float):
                value["default"] = Unit(value["unit"]).text(value["default"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "opticube scenario"}


def _texts_of_fields() -> dict[str, dict[str, str]]:
    """The text under each field of each section, by the names of section and field, from the sources."""
    texts: dict[str, dict[str, str]] = {}
    for module in (
        scenario_parts,
        scenario_passes,
        scenario_jobs,
        scenario_clients,
        scenario_memory,
        scenario_speculation,
        scenario_services,
        scenario_studies,
        own_catalogue,
        prices,
        sys.modules[__name__],
    ):
        for section in ast.parse(inspect.getsource(module)).body:
            if not isinstance(section, ast.ClassDef):
                continue
            for base in section.bases:
                texts.setdefault(section.name, {}).update(texts.get(base.id, {}) if isinstance(base, ast.Name) else {})
            for field, after in itertools.pairwise(section.body):
                if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
                    assert isinstance(field.target, ast.Name)
                    assert isinstance(after.value, ast.Constant)
                    texts.setdefault(section.name, {})[field.target.id] = inspect.cleandoc(str(after.value.value))
    return texts


class _Dumper(yaml.SafeDumper):
    """Writes YAML that the strict reader reads back as it was: no aliases, text quoted where it looks like a number."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    quoted = '"' if scalar_value(text) != text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=quoted)


_Dumper.add_representer(str, _represent_text)


def _content(path_or_name: str | Path) -> tuple[bytes, str]:
    """The bytes of a scenario and the name under which its faults are printed."""
    text = str(path_or_name)
    if _NAME.fullmatch(text):
        file = resources.files("scenarios").joinpath(f"{text}.yaml")
        if file.is_file():
            return file.read_bytes(), f"scenarios/{text}.yaml"
        if not Path(text).exists():
            raise refuse(
                text, "there is no shipped scenario of this name, and no such file", nearest(text, shipped_scenarios())
            )
    return read_bytes(Path(text)), text


def _sweep_of(document: Document) -> list[Axis]:
    """The axes of a document's sweep; see `axes_of`."""
    return axes_of(document, list(Scenario.model_fields))


def _with_settings(document: Document, axes: Sequence[Axis], choice: Sequence[int]) -> Document:
    """The document with value number `choice[i]` of the i-th axis in its place."""
    chosen, faults = with_settings(document, axes, choice)
    if faults:
        _validated(chosen)  # a section of the wrong type is the better complaint
        raise InputError(faults)
    return chosen


def _points(document: Document, axes: Sequence[Axis]) -> Iterator[Point]:
    """All points, validated and checked one by one; faults of all of them are raised together, each once."""
    faults: dict[str, Fault] = {}
    points: list[Point] = []
    choices = itertools.product(*(range(len(axis.values)) for axis in axes))
    for index, choice in enumerate(choices):
        chosen = _with_settings(document, axes, choice)
        settings = {axis.key: axis.values[at] for axis, at in zip(axes, choice, strict=True)}
        data = {key: value for key, value in chosen.data.items() if key not in ("sweep", "expect")}
        if isinstance(data.get("serving"), dict):
            data["serving"] = {key: value for key, value in data["serving"].items() if key != "effects"}
        single = Document(chosen.source, data, chosen.places)
        try:
            scenario = _validated(single)
            wrong = [fault_at(chosen, *problem) for problem in check_scenario(scenario)]
        except InputError as error:
            wrong = list(error.faults)
        else:
            points.append(Point(index=index, settings=settings, scenario=scenario))
        faults.update((str(fault), fault) for fault in wrong)
    if faults:
        raise InputError(sorted(faults.values(), key=lambda fault: _line(fault.where)))
    yield from points


def _line(where: str) -> int:
    """The line of a place such as `file.yaml:12: key`, so that faults are listed from top to bottom."""
    match = re.search(r":([0-9]+)(?::|$)", where)
    return int(match.group(1)) if match is not None and not where.startswith("--set ") else 0


def _validated(document: Document) -> Scenario:
    """Types, names and bounds of a document; every fault of it at once."""
    try:
        text = json.dumps(document.data)
        return Scenario.model_validate_json(text, strict=True, context={"parse": parse_quantity})
    except ValidationError as error:
        raise InputError(faults_of(error, document, scenario_schema)) from None
