"""What the keys of a pod that serves and trains, and of several pods behind one queue, must hold together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sim.strict_yaml import KeyPath
from topology.pod import CHIPS_PER_CUBE, AnyPod, Pod
from topology.shape import parse_shape
from workloads.autoscaling import MOST_LOOKS
from workloads.load.rates import TraceRates

if TYPE_CHECKING:
    from sim.scenario import Scenario
    from sim.scenario_studies import SharedPodStudy, SharedService

Problem = tuple[KeyPath, str, str]
MOST_REPLICAS = 100_000


def shared_pod_problems(scenario: Scenario, pod: AnyPod) -> Iterator[Problem]:
    """All problems of the study `shared_pod` of one scenario without a sweep."""
    study = scenario.study.shared_pod
    if study is None:
        return
    path: KeyPath = ("study", "shared_pod")
    if not isinstance(pod, Pod):
        yield path, "a flat machine has no cubes to share", "write `pod: {generation: v4}`"
        return
    names = [service.name for service in study.services]
    for index, service in enumerate(study.services):
        where: KeyPath = (*path, "services", index)
        if service.name in names[:index]:
            yield (*where, "name"), f"`{service.name}` names two services", "write another name"
        yield from _slice(scenario, service, where, pod)
        yield from _demand(study, service, where)
    if len(set(study.machines)) < len(study.machines):
        yield (*path, "machines"), "a machine is named twice", "name each once"
    divided = [machine for machine in study.machines if machine != "shared"]
    used = sum(service.cubes for service in study.services)
    if divided and used >= pod.cubes:
        what = f"{used:,} cubes for serving leave nothing of {pod.cubes:,} for training"
        yield (*path, "services", 0, "cubes"), what, "write fewer, or `machines: [shared]`"
    queue = scenario.scheduling.queue
    if "shared" in study.machines and scenario.jobs is not None and queue.kind != "priority":
        what = f"with `{queue.kind}` replicas wait behind jobs, whatever their priority"
        yield ("scheduling", "queue"), what, "write `{kind: priority, notice: true, overtake: true}`"


def one_queue_problems(scenario: Scenario) -> Iterator[Problem]:
    """Several pods behind one queue take jobs in order of arrival, with or without backfill."""
    fleet, queue = scenario.study.fleet, scenario.scheduling.queue
    if fleet is None or fleet.one_queue is None:
        return
    if queue.kind not in ("fifo", "easy"):
        what = f"one queue for several pods is in order of arrival, which `{queue.kind}` is not"
        yield ("scheduling", "queue"), what, "write `fifo` or `easy`, or remove `study.fleet.one_queue`"


def _slice(scenario: Scenario, service: SharedService, where: KeyPath, pod: Pod) -> Iterator[Problem]:
    """The slice of a replica comes from one place, and so does what it serves."""
    services = scenario.serving.services if scenario.serving is not None else ()
    known = next((each for each in services if each.name == service.name), None)
    if known is not None and (service.slice is not None or service.replica_rate is not None):
        key = "slice" if service.slice is not None else "replica_rate"
        yield (*where, key), f"`serving` says so of `{service.name}` already", "remove it, or write another `name`"
        return
    if known is None and (service.slice is None or service.replica_rate is None):
        what = f"no service of `serving` is called `{service.name}`"
        yield (*where, "name"), what, "write one, or `slice` and `replica_rate` here"
        return
    if known is not None and (known.slice is None) == (known.slice_chips is None):
        return  # told of the service itself
    shape = known.shape() if known is not None else parse_shape(service.slice)
    if shape.chips > pod.chips:
        what = f"a replica of {shape.chips:,} chips is larger than the pod of {pod.chips:,}"
        yield (*where, "name" if known is not None else "slice"), what, "write a smaller slice"
    elif service.cubes * CHIPS_PER_CUBE < shape.chips:
        what = f"{service.cubes} cubes hold no replica of {shape.chips:,} chips"
        yield (*where, "cubes"), what, f"write at least {-(-shape.chips // CHIPS_PER_CUBE)}"


def _demand(study: SharedPodStudy, service: SharedService, where: KeyPath) -> Iterator[Problem]:
    """A file that is there, and no more replicas and looks than can be played."""
    demand = service.demand
    if isinstance(demand, TraceRates) and demand.path is None:
        advice = f"set it with `--set {'.'.join(map(str, where))}.demand.path=FILE`: CSV with time_s,requests_per_s"
        yield (*where, "demand"), "no file is named, and opticube ships none", advice
    elif isinstance(demand, TraceRates) and demand.path is not None and not Path(demand.path).is_file():
        yield (*where, "demand", "path"), f"there is no file `{demand.path}`", "check the path"
    if service.least > service.most:
        yield (*where, "least"), f"at least {service.least} and at most {service.most} replicas", "write a smaller one"
    if service.most > MOST_REPLICAS:
        yield (*where, "most"), f"{service.most:,} replicas", f"write at most {MOST_REPLICAS:,}"
    if study.horizon / service.every > MOST_LOOKS:
        what = f"{study.horizon / service.every:,.0f} looks at the demand"
        yield (*where, "every"), what, "write a longer time, or a shorter horizon"
