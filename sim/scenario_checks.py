"""What the keys of a scenario must hold together: the impossible is refused with the path of the key to change.

Each check is a generator of problems (path, what is wrong, what to write) and looks at one part of a scenario.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from sim.condition import component_counts
from sim.histories import US_PER_S, failure_mode, too_many_outages
from sim.measure_names import MEASURES, bound_unit
from sim.other_failures import OtherFailures
from sim.own_catalogue import Catalogue, catalogue_with
from sim.quantities import AdviceError, parse_quantity
from sim.repair_policies import PartsOf
from sim.scenario_comparisons import disturbance_problems, effects_problems
from sim.scenario_faults import PUBLISHED, fault_at, nearest, split_advice
from sim.scenario_job_checks import job_problems, maintenance_problems
from sim.scenario_shared_checks import one_queue_problems, shared_pod_problems
from sim.scenario_together import cache_faults, draft_faults, link_faults
from sim.strict_yaml import Document, KeyPath
from topology.errors import Fault, InputError
from topology.fabric import Fabric
from topology.pod import HOSTS_PER_CUBE, POD_GENERATIONS, AnyPod, FlatPod
from topology.shape import parse_shape
from workloads.accuracy.errors import Catalogues
from workloads.collectives import gather_bytes_per_s
from workloads.kv_cache import Contiguous, require_fit
from workloads.load.laws import AzureConversation
from workloads.load.replay import TraceRequests
from workloads.serving.clients import check_shares

if TYPE_CHECKING:
    from sim.scenario import Scenario
    from sim.scenario_parts import Expectation
    from sim.scenario_services import ServiceSection

Problem = tuple[KeyPath, str, str]


def check_scenario(scenario: Scenario) -> list[Problem]:
    """All problems of one scenario without a sweep, in the order of its sections."""
    problems = [*_pod(scenario), *catalogue_with(scenario.chips, scenario.models)[1]]
    pod = None if problems else _built(scenario, problems)
    problems += [*_failures(scenario), *_nothing_asked(scenario), *_passes(scenario)]
    if pod is not None:
        problems += [*job_problems(scenario, pod), *maintenance_problems(scenario, pod)]
        problems += shared_pod_problems(scenario, pod)
        problems += one_queue_problems(scenario)
        problems += [*_log_fits(scenario, pod), *_sizes(scenario, pod), *_services(scenario, pod)]
    if pod is not None and not problems:
        problems += _outages(scenario, pod)
    return problems


def check_points(scenario: Scenario, points: Sequence[Scenario], document: Document) -> list[Fault]:
    """Faults of the expectations: measures that nobody produces, unreadable bounds, filters without a match."""
    faults: list[Fault] = []
    for index, expectation in enumerate(scenario.expect):
        for path, what, write in _expectation(expectation, ("expect", index), points):
            faults.append(fault_at(document, path, what, write))
    faults += [fault_at(document, *problem) for problem in effects_problems(scenario)]
    return faults


def _pod(scenario: Scenario) -> Iterator[Problem]:
    """A generation, or cubes, or a flat machine: one of them, with what belongs to it."""
    pod = scenario.pod
    if pod.kind == "flat":
        if pod.hosts is None:
            yield ("pod",), "a flat machine without `hosts`", "write `hosts: 400`"
        for key in ("generation", "cubes", "grid", "ports"):
            if getattr(pod, key) is not None:
                yield ("pod", key), f"a flat machine has no {key}", "remove it, or remove `kind: flat`"
        if pod.fabric is not Fabric.ANY_HOST:
            yield ("pod", "fabric"), f"a flat machine can not be {pod.fabric}", "write `fabric: any_host`"
        return
    if pod.hosts is not None:
        yield ("pod", "hosts"), "the hosts of a pod of cubes follow from its cubes", "remove it, or write `kind: flat`"
    if pod.generation is not None and pod.generation not in POD_GENERATIONS:
        yield (
            ("pod", "generation"),
            f"pod generation `{pod.generation}` is not known",
            nearest(pod.generation, list(POD_GENERATIONS)),
        )
    if pod.generation is not None and pod.cubes is not None:
        yield ("pod", "cubes"), "`generation` and `cubes` both say how many cubes there are", "keep one of the two"
    elif pod.grid is not None and pod.cubes is None:
        yield ("pod", "grid"), "a grid without `cubes`", "write `cubes:` beside it"


def _built(scenario: Scenario, problems: list[Problem]) -> AnyPod | None:
    """The pod, or None and one more problem where it can not be built."""
    try:
        return scenario.pod.build()
    except InputError as error:
        problems += [(tuple(fault.where.split(".")), fault.what, fault.write) for fault in error.faults]
        return None


def _failures(scenario: Scenario) -> Iterator[Problem]:
    """Every named component must know its life and its repair; a log takes the place of the hosts."""
    failures, flat = scenario.failures, scenario.pod.kind == "flat"
    for kind in failures.named():
        path: KeyPath = ("failures", kind.value)
        if flat and kind.value != "host":
            yield path, f"a flat machine has no {kind.value}", "remove it"
            continue
        try:
            failure_mode(
                kind, 1, **failures.given(kind, scenario.repair.two_stage), rest_s=scenario.health.rest_s(kind.value)
            )
        except ValueError as error:
            yield (path, *split_advice(str(error)))
    yield from _idle_repairs(scenario)
    if failures.log is None:
        return
    log = failures.log
    if failures.host is not None:
        yield ("failures", "host"), "hosts fail by `failures.log` already", "remove one of the two"
    if log.path is None:
        advice = f"set it with `--set failures.log.path=FILE`; {PUBLISHED[log.format]}"
        yield ("failures", "log"), "no file is named, and opticube ships none", advice
    elif not Path(log.path).is_file():
        yield ("failures", "log", "path"), f"there is no file `{log.path}`", f"check the path; {PUBLISHED[log.format]}"
    if log.shuffles > 1 and log.place == "by_number":
        yield ("failures", "log", "shuffles"), "nodes placed by number are not shuffled", "write `place: shuffled`"


def _idle_repairs(scenario: Scenario) -> Iterator[Problem]:
    """Repairs of what never fails, and two repairs of the same, would change nothing without a word."""
    failures, repair = scenario.failures, scenario.repair
    named = [kind.value for kind in failures.named()]
    if repair.two_stage is not None and failures.host is None:
        yield ("repair", "two_stage"), "no host fails by a law, so nobody is repaired", "write `failures.host`"
    if repair.two_stage is not None and failures.host is not None and failures.host.repair is not None:
        what = "`repair.two_stage` is the repair of hosts already"
        yield ("failures", "host", "repair"), what, "remove one of the two"
    if failures.bad_hosts is not None and failures.host is None:
        yield ("failures", "bad_hosts"), "no host fails by a law", "write `failures.host`"
    for item in fields(PartsOf):
        if getattr(repair.parts, item.name) is not None and item.name not in named:
            yield ("repair", "parts", item.name), f"no {item.name} fails by a law", f"write `failures.{item.name}`"


def _outages(scenario: Scenario, pod: AnyPod) -> Iterator[Problem]:
    """No history may hold more outages than a computer can."""
    counts, study = component_counts(pod), scenario.study
    for kind in scenario.failures.named():
        given = scenario.failures.given(kind, scenario.repair.two_stage)
        mode = failure_mode(kind, counts[kind], **given, rest_s=scenario.health.rest_s(kind.value))
        for name in ("availability", "delivered", "operations", "shared_pod", "fleet"):
            part = getattr(study, name)
            logged = scenario.failures.log is not None and name == "availability"
            if part is not None and not logged and too_many_outages(mode, part.horizon):
                what = f"about {mode.failures_per_s * part.horizon:.2g} outages of {kind.value} in each replication"
                write = f"write longer lives (`failures.{kind.value}`), or a shorter horizon"
                yield ("study", name, "horizon"), what, write


def _log_fits(scenario: Scenario, pod: AnyPod) -> Iterator[Problem]:
    """A log of more components than the pod has hosts can not be replayed on it."""
    log = scenario.failures.log
    if log is not None and log.components is not None and log.components > pod.hosts:
        what = f"{log.components:,} components are more than the {pod.hosts:,} hosts of the pod"
        yield ("failures", "log", "components"), what, "write a larger pod or fewer components"


def _nothing_asked(scenario: Scenario) -> Iterator[Problem]:
    """A scenario must ask for something, and measure for a while."""
    study = scenario.study
    asked = [name for name in type(study).model_fields if name != "worth"]  # which compares what the others ask
    if scenario.serving is None and all(getattr(study, name) is None for name in asked):
        what = "the scenario asks for nothing"
        yield (), what, f"write `study:` with {', '.join(asked)}, or `serving:`"
    warmup_us = round(scenario.run.warmup * US_PER_S)
    for name in ("availability", "delivered", "operations", "shared_pod", "fleet"):
        part, path = getattr(study, name), ("study", name, "horizon")
        if part is not None and round(part.horizon * US_PER_S) <= warmup_us:
            what = "the horizon ends within the warm-up `run.warmup`" if warmup_us else "the horizon is under 1 us"
            yield path, what, "write a longer horizon or a shorter warm-up"
    yield from _told_by_histories(scenario)
    yield from disturbance_problems(scenario)
    serving = scenario.serving
    if serving is not None and serving.weights == "availability" and study.availability is None:
        what = "`availability` needs the histories of `study.availability`, which is not there"
        yield ("serving", "weights"), what, "write `study.availability`, or `weights: healthy`"


def _passes(scenario: Scenario) -> Iterator[Problem]:
    """Rows of measured times must be complete, and all words known (own chips and models too, once they are right)."""
    known, wrong = catalogue_with(scenario.chips, scenario.models)
    if scenario.study.passes is not None and not wrong:
        yield from scenario.study.passes.problems(Catalogues(models=known.models, chips=known.chips))


def _told_by_histories(scenario: Scenario) -> Iterator[Problem]:
    """Curves from failure histories know renewals of components and logs only."""
    causes = [f"failures.{item.name}" for item in fields(OtherFailures) if getattr(scenario.failures, item.name)]
    causes += ["maintenance"] if scenario.maintenance.is_on else []
    causes += ["health"] if scenario.health.gives_false_alarms else []
    causes += [f"repair.{key}" for key in ("two_stage", "retire") if getattr(scenario.repair, key) is not None]
    for name in ("availability", "delivered", "promise"):
        if causes and getattr(scenario.study, name) is not None:
            what = f"this study does not see {', '.join(f'`{cause}`' for cause in causes)}"
            yield ("study", name), what, "ask `study.operations`, which does, or remove them"


def _sizes(scenario: Scenario, pod: AnyPod) -> Iterator[Problem]:
    """No slice may be larger than the pod; no size may be given twice."""
    study = scenario.study
    for name, part in (("availability", study.availability), ("delivered", study.delivered)):
        sizes = part.slice_chips if part is not None else ()
        for index, chips in enumerate(sizes):
            path: KeyPath = ("study", name, "slice_chips", index)
            if chips > pod.chips:
                yield (
                    path,
                    f"a slice of {chips:,} chips is larger than the pod of {pod.chips:,}",
                    f"write at most {pod.chips}",
                )
            elif chips in sizes[:index]:
                yield path, f"{chips} is given twice", "remove one of the two"
    for text in study.promise.slices if study.promise is not None else ():
        try:
            parse_shape(text)
        except InputError as error:
            yield ("study", "promise", "slices", text), error.faults[0].what, error.faults[0].write


def _services(scenario: Scenario, pod: AnyPod) -> Iterator[Problem]:
    """Every service must be complete, and all their slices must fit the pod together."""
    services = scenario.serving.services if scenario.serving is not None else ()
    names = [service.name for service in services]
    known = scenario.catalogue
    used = 0
    for index, service in enumerate(services):
        path: KeyPath = ("serving", "services", index)
        if service.name in names[:index]:
            yield (*path, "name"), f"`{service.name}` names two services", "write another name"
        if service.model not in known.models:
            advice = nearest(service.model, list(known.models))
            yield (*path, "model"), f"model `{service.model}` is not known", advice
        if service.chip not in known.chips:
            yield (*path, "chip"), f"chip `{service.chip}` is not known", nearest(service.chip, list(known.chips))
        if (service.slice is None) == (service.slice_chips is None):
            yield path, "a service needs either `slice` or `slice_chips`", "write for example `slice: 8x8x16`"
            continue
        yield from _load(service, path, scenario.serving.windows.requests if scenario.serving is not None else 1)
        yield from _batching(service, path)
        yield from _clients(service, path)
        yield from _cache(service, path)
        yield from _fits(service, path, pod, used)
        yield from _memory(service, path, known)
        recorded = scenario.serving.windows.record if scenario.serving is not None else 0
        for key, what, advice in draft_faults(service, known, recorded):
            yield (*path, key), what, advice
        used += service.replicas * service.shape().chips


def _load(service: ServiceSection, path: KeyPath, requests: int) -> Iterator[Problem]:
    """How many requests arrive, and that a window of them ends (of a load this is known when it runs)."""
    own_rate = isinstance(service.requests, AzureConversation | TraceRequests)  # known without reading the trace
    if service.load is not None and service.rate is not None:
        yield (*path, "rate"), "`load` and `rate` both say how many requests arrive", "keep one of the two"
    elif service.load is None and service.rate is None and not own_rate:
        yield path, "nothing says how many requests arrive", "write `load: 0.7` or `rate: 5 requests/s`"
    asked = service.load is not None or service.rate is not None
    if asked and isinstance(service.requests, TraceRequests) and service.requests.rate_factor != 1:
        what = "`rate_factor` and the service's `load` or `rate` both say how fast the trace runs"
        yield (*path, "requests", "rate_factor"), what, "keep one of the two"
    fault = service.rate_fault(service.rate, requests) if service.rate is not None else None
    if fault is not None:
        yield (*path, "rate"), *fault


def _clients(service: ServiceSection, path: KeyPath) -> Iterator[Problem]:
    """The longest backoff must be a time, classes must be shares, and a central queue predicts nothing."""
    try:
        service.clients.rule()
    except ValueError as fault:
        yield (*path, "clients"), str(fault), "write fewer attempts, or shorter times"
    try:
        check_shares(service.priorities)
    except ValueError as fault:
        yield (*path, "priorities"), str(fault), "write such as `[20 %, 80 %]`"
    if service.router == "central" and service.admission.predicted_ttft is not None:
        what = "a central queue predicts no time to first token"
        yield (*path, "admission"), what, "leave out `predicted_ttft`, or write another `router`"


def _batching(service: ServiceSection, path: KeyPath) -> Iterator[Problem]:
    """The batch must have an end, and leave room in the token budget for prompts."""
    fault = service.batching_fault()
    if fault is not None:
        yield (*path, "batching"), *fault


def _cache(service: ServiceSection, path: KeyPath) -> Iterator[Problem]:
    """Prefixes must be named to be shared; what is wrong with a trace is told with its longest request."""
    try:
        fault = next(cache_faults(service), None)
    except InputError:
        return
    if fault is not None:
        yield (*path, fault[0]), *fault[1:]


def _fits(service: ServiceSection, path: KeyPath, pod: AnyPod, used: int) -> Iterator[Problem]:
    """The slices of a service must fit what the services before it have left of the pod."""
    shape = service.shape()
    key = "slice" if service.slice is not None else "slice_chips"
    if isinstance(pod, FlatPod):
        room = pod.hosts // shape.hosts
    elif shape.is_sub_cube:
        room = pod.cubes * (HOSTS_PER_CUBE // shape.hosts)
    else:
        room = pod.cubes // shape.cubes
    if room == 0:
        what = f"a slice of {shape.chips:,} chips is larger than the pod of {pod.chips:,}"
        yield (*path, key), what, f"write a shape of at most {pod.chips} chips"
    elif service.replicas > room:
        what = f"{service.replicas} replicas of {shape.chips:,} chips do not fit a pod of {pod.chips:,}"
        yield (*path, "replicas"), what, f"write at most {room}"
    elif used + service.replicas * shape.chips > pod.chips:
        what = f"all services together need {used + service.replicas * shape.chips:,} chips, the pod has {pod.chips:,}"
        yield (*path, "replicas"), what, "write fewer replicas or smaller slices"


def _memory(service: ServiceSection, path: KeyPath, known: Catalogue) -> Iterator[Problem]:
    """Weights and one longest request must fit the memory of a slice; a trace is read for its longest request."""
    network = service.network_of(service.shape())
    if service.model not in known.models or service.chip not in known.chips or network is None:
        return
    if service.activation_reserve >= service.utilisation:
        yield (*path, "activation_reserve"), "the reserve leaves nothing of `utilisation`", "write a smaller share"
        return
    key = "slice" if service.slice is not None else "slice_chips"
    model, chip = known.models[service.model], known.chips[service.chip]
    if service.parts > 1 and service.link_of(service.shape(), chip) is None:
        what = f"no source tells how much {chip.name} moves between parts"
        yield (*path, "batching", "link"), what, "write such as `link: 400 GB/s`"
    for found in link_faults(service, chip):
        yield (*path, found[0]), *found[1:]
    try:
        gather_bytes_per_s(chip, network)
        require_fit(model, chip, network, service.longest_reserved_tokens, service.memory())
        if isinstance(service.cache, Contiguous) and service.cache.reserve == "max_model_len":
            limit, longest = service.cache.max_model_len, service.requests.longest_tokens
            if longest > limit:
                what = f"room for {limit:,} tokens is reserved, the longest request takes {longest:,}"
                yield (*path, "cache", "max_model_len"), what, f"write at least {longest}"
        if service.requests.natural_rate_per_s == 0.0:
            what = "all requests of the trace arrive at one instant"
            yield (*path, "requests"), what, "give a trace with at least two arrival times"
    except InputError as error:
        for fault in error.faults:
            of_slice = fault.where in ("slice", "chip")
            yield (
                (*path, key if of_slice else "requests"),
                fault.what if of_slice else f"{fault.where}: {fault.what}",
                fault.write,
            )


def _expectation(expectation: Expectation, path: KeyPath, points: Sequence[Scenario]) -> Iterator[Problem]:
    """A bound on a measure that the run produces, at one point at least."""
    measure = MEASURES.get(expectation.measure)
    if measure is None:
        yield (
            (*path, "measure"),
            f"measure `{expectation.measure}` is not known",
            nearest(expectation.measure, list(MEASURES)),
        )
        return
    if not any(measure.is_produced(point) for point in points):
        yield (*path, "measure"), f"this scenario does not produce `{expectation.measure}`", f"write `{measure.needs}`"
    if expectation.at_least is None and expectation.at_most is None:
        yield path, "the expectation has no bound", "write `at_least: ...` or `at_most: ...`"
    for key in ("at_least", "at_most"):
        bound = getattr(expectation, key)
        try:
            if bound is not None:
                parse_quantity(bound, bound_unit(expectation.measure))
        except AdviceError as advice:
            yield (*path, key), advice.what, advice.write
    fabrics = list(dict.fromkeys(point.pod.fabric.value for point in points))
    if expectation.fabric is not None and expectation.fabric not in fabrics:
        yield (*path, "fabric"), f"no point has fabric `{expectation.fabric}`", f"write one of {', '.join(fabrics)}"
    hosts = list(dict.fromkeys(point.failures.host.availability for point in points if point.failures.host is not None))
    if expectation.host_availability is not None and expectation.host_availability not in hosts:
        known = ", ".join(f"{share:g}" for share in hosts if share is not None) or "none: leave it out"
        yield (*path, "host_availability"), "no point has this availability of hosts", f"write one of {known}"
    services = [service.name for point in points[:1] if point.serving is not None for service in point.serving.services]
    services += [name for point in points[:1] if point.study.passes is not None for name in point.study.passes.lines]
    if expectation.service is not None and expectation.service not in services:
        yield (
            (*path, "service"),
            f"no service is called `{expectation.service}`",
            nearest(expectation.service, services),
        )
    if expectation.slice_chips is not None:
        sizes = sorted({chips for point in points for chips in measure.sizes(point)})
        if expectation.slice_chips not in sizes:
            yield (
                (*path, "slice_chips"),
                "the study has no slices of this size",
                f"write one of {', '.join(map(str, sizes))}",
            )
