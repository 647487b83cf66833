"""The run behind `delivered`: a pod on which as many equal slices as it can hold are in demand without end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import simpy

from sim.histories import ComponentKind, Outages, sorted_outages
from sim.machine import Machine
from sim.policies import HealthPolicy, RecoveryPolicy, RepairPolicy, with_preflight
from sim.processes.dispatch import Dispatcher, make_job
from sim.processes.failures import Source, start_failures
from sim.processes.job_events import JobEvents
from sim.processes.jobs import run_job
from sim.streams import Streams
from sim.trace import Trace
from topology.boxes import check_fabric
from topology.fabric import Fabric
from topology.placement import hosts_of_slice, slices_per_host
from topology.pod import AnyPod
from topology.shape import Shape


def jobs_in_demand(pod: AnyPod, slice_chips: int) -> int:
    """Slices of a size that a healthy pod of ideal wiring holds: floor(C / n), and by hosts below a cube."""
    return pod.hosts // hosts_of_slice(pod, slice_chips) * slices_per_host(slice_chips)


def one_failure(
    kind: ComponentKind, component: int, *, start_us: int, end_us: int, down_throughout: Sequence[int], horizon_us: int
) -> list[Outages]:
    """Sources for a picture of one failure: `component` is down in [start_us, end_us), hosts `down_throughout` always.

    The hosts that are down throughout make the picture honest: they take the spare blocks that a static pod would
    otherwise move to.
    """
    always = sorted_outages(
        ComponentKind.HOST,
        max(down_throughout, default=0) + 1,
        horizon_us,
        np.array(down_throughout, dtype=np.int64),
        np.zeros(len(down_throughout), dtype=np.int64),
        np.full(len(down_throughout), horizon_us, dtype=np.int64),
    )
    one = sorted_outages(
        kind, component + 1, horizon_us, np.array([component]), np.array([start_us]), np.array([end_us])
    )
    return [always, one]


def simulate_delivered(
    pod: AnyPod,
    fabric: Fabric,
    slice_chips: int,
    sources: Sequence[Source],
    *,
    health: HealthPolicy,
    repair: RepairPolicy,
    recovery: RecoveryPolicy,
    streams: Streams,
    horizon_us: int,
    jobs: int | None = None,
    shape: Shape | None = None,
    runs_at_start: bool = True,
    check_invariants: bool = False,
) -> Trace:
    """Play failures against jobs that want slices of `slice_chips` chips for ever, first in, first out.

    `jobs` is `jobs_in_demand` unless given. `sources` are the populations that fail (draws or a log's outages); those
    that a fabric does not have (switches of static pods) are left out. With `runs_at_start` the jobs placed at time 0
    run at once, as in the midst of operation; otherwise their first start takes its stages too. Which jobs agree to run
    around dead light is drawn from the stream `jobs.reroute_opt_in`. Raises InputError for a fabric or a slice that
    the pod does not have, ValueError for populations larger than the pod.
    """
    check_fabric(fabric, pod)
    recovery = with_preflight(recovery, health)
    count = jobs_in_demand(pod, slice_chips) if jobs is None else jobs
    env = simpy.Environment()
    machine = Machine(pod, fabric, env, check_invariants=check_invariants)
    dispatcher = Dispatcher(env, machine, recovery)
    events = JobEvents(env, machine, dispatcher, recovery)
    clinic = start_failures(env, machine, sources, health=health, repair=repair, horizon_us=horizon_us, streams=streams)
    events.preflight = clinic.preflight
    opted_in = (streams.uniforms("jobs.reroute_opt_in", 0, count) < recovery.reroute_opt_in).tolist()
    for number in range(count):
        job = make_job(number, pod, slice_chips, reroute_opt_in=opted_in[number], shape=shape)
        env.process(run_job(env, job, machine, dispatcher, events, recovery, runs_at_start=runs_at_start))
    env.run(until=horizon_us)
    return Trace(
        fabric=fabric,
        hosts=pod.hosts,
        horizon_us=horizon_us,
        slice_chips=slice_chips,
        jobs=count,
        rows=machine.rows,
        placements=machine.placements,
    )
