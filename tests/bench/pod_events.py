"""Speed of the pod's event loop beside a bare SimPy loop with as many timeouts, in one run."""

from __future__ import annotations

import gc
import json
import time

import numpy as np
import simpy

from sim.condition import component_counts
from sim.histories import ComponentKind, FailureMode, Lives
from sim.lifetimes import Exponential
from sim.machine import Machine
from sim.policies import HealthPolicy, RepairPolicy
from sim.processes.failures import start_failures
from sim.streams import Streams
from topology.fabric import Fabric
from topology.pod import POD_GENERATIONS

HOUR_S = 3600.0
HORIZON_US = int(400 * 24 * HOUR_S * 1e6)
DETECTION_US = 60_000_000
LIVES_H = {
    ComponentKind.HOST: (150.0, 10.0),
    ComponentKind.RACK: (1000.0, 10.0),
    ComponentKind.OCS: (1000.0, 24.0),
}
"""Mean life and repair in hours: short lives, so that the loop is what takes the time."""


def rounds_drawn(lives: Lives) -> int:
    """More failures than any component of a population has within the horizon."""
    return int(HORIZON_US / 1e6 / HOUR_S / LIVES_H[lives.mode.kind][0] * 2) + 10


def sources() -> list[Lives]:
    """The populations, with all their draws made ahead."""
    pod, streams = POD_GENERATIONS["v4"], Streams(1, 0)
    populations = []
    for kind, (life_h, repair_h) in LIVES_H.items():
        mode = FailureMode(
            kind=kind,
            count=component_counts(pod)[kind],
            life=Exponential(mean=life_h * HOUR_S),
            repair=Exponential(mean=repair_h * HOUR_S),
        )
        populations.append(Lives(mode, streams))
    for lives in populations:
        for k in range(rounds_drawn(lives)):
            lives.life_us(k)
            lives.repair_us(k)
    return populations


def timed_run(env: simpy.Environment) -> float:
    """Seconds of processor time of the run alone, without the garbage collector (as `timeit` does it)."""
    gc.collect()
    gc.disable()
    begin = time.process_time()
    env.run(until=HORIZON_US)
    seconds = time.process_time() - begin
    gc.enable()
    return seconds


def pod_loop() -> tuple[int, float]:
    """Timeouts and seconds of a v4 pod whose hosts, racks and switches fail, are detected and repaired."""
    env = simpy.Environment()
    machine = Machine(POD_GENERATIONS["v4"], Fabric.RECONFIGURABLE, env)
    start_failures(env, machine, list(sources()), health=HealthPolicy(), repair=RepairPolicy(), horizon_us=HORIZON_US)
    seconds = timed_run(env)
    return len(machine.rows), seconds


def bare_loop() -> tuple[int, float]:
    """Timeouts and seconds of the same delays in as many processes that do nothing else."""
    env = simpy.Environment()
    timeouts = 0

    def wait(delays_us: list[int]) -> simpy.events.ProcessGenerator:
        for delay_us in delays_us:
            yield env.timeout(delay_us)

    for lives in sources():
        rounds = [lives.initial_residual_us()]
        for k in range(rounds_drawn(lives)):
            repair_us = lives.repair_us(k)
            rounds += [np.minimum(repair_us, DETECTION_US), np.maximum(repair_us - DETECTION_US, 0), lives.life_us(k)]
        delays = np.array(rounds)
        for component in range(lives.mode.count):
            own = delays[:, component]
            own = own[np.cumsum(own) < HORIZON_US]
            timeouts += len(own)
            env.process(wait(own.tolist()))
    return timeouts, timed_run(env)


def share_of_bare_simpy(rounds: int = 5) -> dict[str, float]:
    """Events/s of the pod loop, of the bare loop, and their ratio: medians of rounds that take turns."""
    pod_rates, bare_rates, shares = [], [], []
    for _ in range(rounds):
        (events, pod_s), (timeouts, bare_s) = pod_loop(), bare_loop()
        pod_rates.append(events / pod_s)
        bare_rates.append(timeouts / bare_s)
        shares.append(pod_rates[-1] / bare_rates[-1])
    middle = rounds // 2
    return {
        "events_per_s": sorted(pod_rates)[middle],
        "bare_events_per_s": sorted(bare_rates)[middle],
        "share_of_bare_simpy": sorted(shares)[middle],
    }


if __name__ == "__main__":
    print(json.dumps(share_of_bare_simpy()))
