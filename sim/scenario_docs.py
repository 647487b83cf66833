"""The page of scenario keys, written from the schema: `python -m sim.scenario_docs > docs/scenario.md`.

Sections document their keys where they are declared. Policies and plug-ins are plain values that know no documentation
of keys, so what their keys mean stands here; a test finds a key without a meaning.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from sim.job_keys import JOB_ASSUMPTIONS, JOB_MEANINGS
from sim.prices import PRICE_ASSUMPTIONS
from sim.request_keys import REQUEST_ASSUMPTIONS, REQUEST_MEANINGS
from sim.scenario import scenario_schema
from sim.scenario_jobs import JOB_PLUG_INS
from sim.scenario_services import PLUG_INS
from sim.scenario_studies import STUDY_PLUG_INS

ASSUMPTIONS = (
    "DisturbanceSection.speed", "DisturbanceSection.start", "DisturbanceSection.length", "DisturbanceSection.horizon",
    "DisturbanceSection.step",
    "FalseAlarms.check", "Screening.coverage", "Parts.lead_time", "Retirement.after", "Retirement.within",
    "HealthPolicy.detection", "RecoveryPolicy.evict", "RecoveryPolicy.circuits", "RecoveryPolicy.preflight",
    "RecoveryPolicy.restore", "RecoveryPolicy.reroute_opt_in", "RecoveryPolicy.rerouted_speed", "PodSection.grid",
    "RecoveryPolicy.reroute_network_share",
    "PodSection.ports",
    "ServiceSection.utilisation", "ServiceSection.activation_reserve", "ServiceSection.max_batch",
    "SwapSection.host_memory", "TiersSection.host_memory",
    "OneQueueSection.transfer", "SpeculationSection.length", *JOB_ASSUMPTIONS, *REQUEST_ASSUMPTIONS, *PRICE_ASSUMPTIONS,
)  # fmt: skip
"""Keys whose default is a guess of this project."""

MEANINGS = {
    **JOB_MEANINGS,
    "HealthPolicy.detection": "Time from a failure to the instant at which it is known.",
    "HealthPolicy.detection_of": "The same for single kinds of component, such as `{ocs: 10 s}`.",
    "HealthPolicy.diagnosis": "Time from detection to the start of a repair.",
    "HealthPolicy.burn_in": "Time from the end of a repair to the return to service.",
    "HealthPolicy.poll": "Failures are known at the next whole multiple of this, after the detection; 0 is at once.",
    "HealthPolicy.false_alarms": "Hosts in order that are taken out by mistake.",
    "HealthPolicy.preflight": "Tests of a slice before each start; their time replaces `recovery.preflight`.",
    "HealthPolicy.screening": "Tests of all hosts in the background.",
    "HealthPolicy.accept_degraded": "Whether slices may take cubes with dead optical ends or flaws that are known.",
    "FalseAlarms.rate": "Alarms per host in service.",
    "FalseAlarms.check": "Time of a check, which finds nothing.",
    "Preflight.end_to_end": "The test that runs something on the slice.",
    "Preflight.intent_driven": "The test that compares links and routes with the plan.",
    "PreflightTest.time": "Time of the test.",
    "PreflightTest.coverage": "Share of hidden faults that the test finds.",
    "PreflightTest.false_alarms": "Share of good slices that the test refuses.",
    "Screening.every": "Each host is tested once in this time.",
    "Screening.coverage": "Share of hidden faults that one test finds.",
    "Screening.false_alarms": "Share of good hosts that one test takes out.",
    **{f"CrewsOf.{kind}": f"Crews that repair a {kind} alone; `repair.crews` serve it where it is left out."
       for kind in ("host", "rack", "in_rack_link", "optical_end", "ocs")},
    **{f"PartsOf.{kind}": f"Spare parts for a {kind}; never lacking where it is left out."
       for kind in ("host", "rack", "in_rack_link", "optical_end", "ocs")},
    "Parts.stock": "Parts on the shelf at the start; each that is taken is ordered anew.",
    "Parts.lead_time": "Time from an order to the part.",
    "TwoStage.automated": "Law of the automated repair, which needs no crew.",
    "TwoStage.manual_share": "Share of cases in which manual repair follows.",
    "TwoStage.manual": "Law of the manual repair.",
    "TwoStage.automated_leaves_bad": "Share of bad hosts left bad where no manual repair follows.",
    "TwoStage.manual_leaves_bad": "Share of bad hosts that manual repair leaves bad.",
    "Retirement.after": "A component that fails so often is retired.",
    "Retirement.within": "The time in which it does.",
    "Retirement.replaced_after": "Time from detection until a new one is in its place; never where it is left out.",
    **{f"DetectionOf.{kind}": f"Detection of a failed {kind}; `health.detection` where it is left out."
       for kind in ("host", "rack", "in_rack_link", "optical_end", "ocs")},
    "RepairPolicy.crews": "How many crews repair at once, switches first; no limit where it is left out.",
    "RepairPolicy.crews_of": "Crews for single kinds of component, such as `{ocs: 1}`.",
    "RepairPolicy.parts": "Spare parts by kind, such as `{host: {stock: 4, lead_time: 7 d}}`.",
    "RepairPolicy.two_stage": "Imperfect repair of hosts, automated and then manual.",
    "RepairPolicy.retire": "When repeat offenders are retired.",
    "RecoveryPolicy.evict": "Time to empty the hosts of a slice after a loss.",
    "RecoveryPolicy.circuits": "Time to set circuits and discover links.",
    "RecoveryPolicy.preflight": "Time to test a slice before a job starts on it.",
    "RecoveryPolicy.restore": "Time to compile and to load the state.",
    "RecoveryPolicy.replace": "After a loss: `replace_one` keeps the good cubes, `move_all` takes others.",
    "RecoveryPolicy.reroute_opt_in": "Share of jobs that agree to run around dead light paths.",
    "RecoveryPolicy.rerouted_speed": "Speed of a rerouted slice, as a share of the healthy one.",
    "RecoveryPolicy.reroute_traffic": "With `all_to_all` or `rings` a rerouted slice runs as the routing room says "
    "for its shape, the dimension of the dead switch and this traffic; `none`: at `rerouted_speed`.",
    "RecoveryPolicy.reroute_network_share": "Share of a healthy step that waits for that traffic.",
    "RecoveryPolicy.failure": "Share of starts that fail at the end of their stages and start over.",
    "RecoveryPolicy.hold": "How long a job stays on its slice, idle, in case the repair comes before it has to leave.",
    **{f"{law}.mean": "Mean; left out where a failure rate or an availability fixes it."
       for law in ("Exponential", "Weibull", "Lognormal", "Gamma")},
    "Weibull.shape": "Below 1 early failures, above 1 wear.",
    "Gamma.shape": "Number of exponential stages; any positive number.",
    "Lognormal.cv": "Standard deviation over mean.",
    "Empirical.values": "Measured times, in any order.",
    "Mixture.parts": "At least two causes, each with its weight and its law.",
    "MixturePart.weight": "Share of lives that follow the law; the shares add up to 1.",
    "MixturePart.law": "The law of these lives.",
    **REQUEST_MEANINGS,
    "LognormalLengths.mean": "Mean of the law before it is cut, in tokens.",
    "LognormalLengths.cv": "Standard deviation over mean, before it is cut.",
    "LognormalLengths.min": "Shorter lengths are drawn again.",
    "LognormalLengths.max": "Longer lengths are drawn again.",
    "FixedLengths.tokens": "The length of all, in tokens.",
    "ChunkedPrefillSection.budget": "Most tokens of one pass; greater than `max_batch`.",
    "StaticSection.wait": "A batch that is not full begins when its head has waited so long since its arrival.",
    "DisaggregatedSection.parts": "Parts of the slice; its longest side must be a multiple of it.",
    "DisaggregatedSection.prefill_parts": "Parts that compute prompts; the others decode.",
    "DisaggregatedSection.over": "Between slices of their own over the `network`, or inside one slice over `ici`.",
    "DisaggregatedSection.link": "What the links of one part carry to another, one way, such as `400 GB/s`; left out: "
    "the network of its chips, or the ICI links of its two cut faces.",
    "DisaggregatedSection.budget": "Most prompt tokens of one pass; whole prompts where it is left out.",
    "SharedPrefix.groups": "Number of different beginnings.",
    "SharedPrefix.tokens": "Length of each, in tokens.",
    "SwapSection.host_memory": "Host memory for what is evicted, per chip of a replica.",
    "SwapSection.link": "What the host link of a chip carries, one way; the chip's own where it is left out.",
    "Contiguous.reserve": "What a request reserves: `max_model_len`, the next `power_of_two`, or its need (`oracle`).",
    "Contiguous.max_model_len": "The longest request, in tokens of prompt and answer; longer ones are refused.",
}  # fmt: skip
"""What the keys of policies and plug-ins mean, as `Class.key`."""

SECTIONS = (
    ("", "Scenario", ""),
    ("pod", "PodSection", ""),
    ("failures", "FailuresSection", ""),
    ("failures.COMPONENT", "ComponentSection", "COMPONENT is host, rack, in_rack_link, optical_end or ocs."),
    ("failures.log", "LogSection", ""),
    ("failures.bad_hosts", "BadHosts", ""),
    ("failures.power_domain", "PowerDomainEvents", ""),
    ("failures.pod", "PodEvents", ""),
    ("failures.slow_hosts", "SlowHosts", ""),
    ("failures.corruption", "SilentCorruption", ""),
    ("failures.flapping_in_rack_links, flapping_optical_ends", "FlappingLinks", ""),
    ("health", "HealthPolicy", ""),
    ("health.detection_of", "DetectionOf", ""),
    ("health.false_alarms", "FalseAlarms", ""),
    ("health.preflight", "Preflight", ""),
    ("health.preflight.TEST", "PreflightTest", "TEST is end_to_end or intent_driven."),
    ("health.screening", "Screening", ""),
    ("repair", "RepairPolicy", ""),
    ("repair.crews_of", "CrewsOf", ""),
    ("repair.parts", "PartsOf", ""),
    ("repair.parts.COMPONENT", "Parts", ""),
    ("repair.two_stage", "TwoStage", ""),
    ("repair.retire", "Retirement", ""),
    ("recovery", "RecoveryPolicy", ""),
    ("maintenance", "MaintenancePolicy", ""),
    ("maintenance.cubes, switches", "Rolling", ""),
    ("study.availability", "AvailabilityStudy", ""),
    ("study.delivered", "DeliveredStudy", ""),
    ("study.promise", "PromiseStudy", ""),
    ("study.operations", "OperationsStudy", ""),
    ("study.large_job", "LargeJobStudy", ""),
    ("study.large_job.job", "LargeJob", ""),
    ("study.passes", "PassesStudy", ""),
    ("study.passes.tables.N", "TimedTable", "N counts from 0."),
    ("study.passes.tables.N.rows.M", "TimedPass", "M counts from 0."),
    ("study.passes.grid", "PassGrid", ""),
    ("study.fleet", "FleetStudy", ""),
    ("study.fleet.one_queue", "OneQueueSection", ""),
    ("study.shared_pod", "SharedPodStudy", ""),
    ("study.shared_pod.services.N", "SharedService", "N counts from 0."),
    ("study.worth", "WorthStudy", ""),
    ("jobs", "JobsSection", ""),
    ("jobs.streams.N", "JobStream", "N counts from 0."),
    ("jobs.log", "JobLogSection", ""),
    ("scheduling", "SchedulingSection", ""),
    ("spares", "SparesPolicy", ""),
    ("serving", "ServingSection", ""),
    ("serving.windows", "WindowsSection", ""),
    ("serving.load_curve", "LoadCurveSection", ""),
    ("serving.disturbance", "DisturbanceSection", ""),
    ("serving.effects", "EffectsSection", ""),
    ("serving.services.N", "ServiceSection", "N counts from 0; `--set` also takes the service's name."),
    ("serving.services.N.requests.pairs", "LengthPairs", ""),
    ("serving.services.N.requests.sessions", "Sessions", ""),
    ("serving.services.N.slo", "SloSection", ""),
    ("serving.services.N.clients", "ClientsSection", ""),
    ("serving.services.N.admission", "AdmissionSection", ""),
    ("serving.services.N.tiers", "TiersSection", ""),
    ("serving.services.N.speculation", "SpeculationSection", ""),
    ("serving.services.N.shared_prefix", "SharedPrefix", ""),
    ("chips.KEY", "ChipSection", "KEY is the name that services use; bytes per second are one way."),
    ("models.KEY", "ModelSection", "KEY is the name that services use; parameters follow from the shape."),
    ("models.KEY.latent", "LatentSection", ""),
    ("models.KEY.experts", "ExpertsSection", ""),
    ("models.KEY.window", "WindowSection", ""),
    ("prices", "PricesSection", "Sources and marks stand in every report, table `flows`."),
    ("run", "RunSection", ""),
    ("expect.N", "Expectation", ""),
)
"""Path, class and a remark of every section, in the order of the page."""

HEAD = """# Keys of a scenario

This page is written from the code (`python -m sim.scenario_docs`); `opticube schema` prints the same as JSON schema.

A scenario is one YAML file. Times, rates, sizes of data and power carry a unit (`12 h`, `0.08 %/day`, `50 GB/s`,
`32 GiB`); a bare number in their place is refused. A share may be written `99.5 %` or `0.995`. Words that YAML 1.1
would read as something else (`on`, `12:30`, `2020-01-01`) are text here; `1e5` is a number. Keys given twice, aliases,
tags and tabs are refused. A component that is not named under `failures` never fails.

Every key can be set from the command line, `--set run.seed=7`; a key that is swept is set by its list, `--set
'sweep.pod.fabric=[any_host]'`; `null` takes a key out, be it a section or swept. Lists are swept under `sweep:` only.

Units: ns, us, ms, s, min, h, d, week, year (365 d); bit, kbit, Mbit, Gbit, Tbit; B, kB, MB, GB, TB, PB, KiB, MiB, GiB,
TiB, PiB; W, kW, MW, kWh; USD, kUSD, MUSD; %, ppm; FLOP, GFLOP, TFLOP, PFLOP; and any of these over another, such
as `%/day`.

`assumption` marks defaults that are guesses of this project; replace them by what you know.
"""


def scenario_page() -> str:
    """The page, as Markdown."""
    schema = scenario_schema()
    lines = [HEAD]
    for path, name, remark in SECTIONS:
        section = schema["$defs"].get(name, schema)
        lines += [f"## {path}" if path else "## Top level", "", _intro(section)]
        lines += ["", remark] if remark else []
        lines += ["", *_table(schema, name, section), ""]
    for where, plug_ins in {**PLUG_INS, **JOB_PLUG_INS, **STUDY_PLUG_INS}.items():
        lines += [f"## {where}: kinds", ""]
        for plug_in in plug_ins:
            lines += [f"`{plug_in.kind}`: {_text((plug_in.__doc__ or '').split('    ')[0])}", ""]
            section = schema["$defs"].get(plug_in.__name__)
            if section is not None and set(section["properties"]) != {"kind"}:
                lines += [*_table(schema, plug_in.__name__, section), ""]
    return "\n".join(lines).rstrip() + "\n"


def key_meanings(name: str, section: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each key of a section of the schema with its meaning, empty where there is none."""
    for key, value in section["properties"].items():
        yield key, MEANINGS.get(f"{name}.{key}") or str(value.get("description", ""))


def _table(schema: dict[str, Any], name: str, section: dict[str, Any]) -> list[str]:
    lines = ["| key | meaning | value | default |", "| --- | --- | --- | --- |"]
    required = section.get("required", [])
    for key, meaning in key_meanings(name, section):
        if key == "kind" and name not in ("PodSection",):
            continue
        value = section["properties"][key]
        mark = ", assumption" if f"{name}.{key}" in ASSUMPTIONS else ""
        default = "required" if key in required else _default(value) + mark
        lines.append(f"| `{key}` | {_text(meaning)} | {_kind(schema, value)} | {default} |")
    return lines


def _intro(section: dict[str, Any]) -> str:
    return _text(str(section.get("description", "")))


def _text(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _default(value: dict[str, Any]) -> str:
    default = value.get("default")
    if default is None:
        return "none"
    if isinstance(default, list):
        return ", ".join(str(item) for item in default) or "none"
    if default == "":
        return "none"
    return "see below" if isinstance(default, dict) and default else f"`{default}`" if default != {} else "none"


def _kind(schema: dict[str, Any], value: dict[str, Any]) -> str:
    """What may be written, in a few words."""
    if "unit" in value:
        unit = str(value["unit"])
        return {"s": "time", "1/s": "rate", "1": "share"}.get(unit, unit)
    if "enum" in value:
        return ", ".join(f"`{item}`" for item in value["enum"])
    if "const" in value:
        return f"`{value['const']}`"
    if "$ref" in value:
        target = schema["$defs"][value["$ref"].rsplit("/", 1)[-1]]
        return _kind(schema, target) if "enum" in target else "mapping"
    for key in ("anyOf", "oneOf", "allOf"):
        if key in value:
            kinds = [_kind(schema, choice) for choice in value[key] if choice.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    if value.get("type") == "array":
        return f"list of {_kind(schema, value['items'])}" if isinstance(value.get("items"), dict) else "list"
    names = {
        "integer": "whole number",
        "number": "number",
        "string": "text",
        "object": "mapping",
        "boolean": "true or false",
    }
    return names.get(str(value.get("type")), "any value")


if __name__ == "__main__":
    sys.stdout.write(scenario_page())
