"""Random small pods in operation: anything may fail; then failures stop and every job must finish.

Replay one case: `opticube swarm --runs 1 --seed NUMBER`.
"""

from __future__ import annotations

import json

import pytest

from sim.cli import command_status
from sim.metrics.chip_hours import chip_us_by_use
from sim.metrics.uses import Use
from sim.processes.operations import simulate_operations
from sim.swarm import SwarmError, check_log, run_swarm
from sim.swarm_cases import DAY_US, all_troubles, crowded_case, finite_case


def run_cases(seed: int, runs: int) -> int:
    """Play so many; how often jobs moved."""
    done = run_swarm(runs, seed)
    assert [(one.number, one.broken) for one in done if one.broken is not None] == []
    return sum(one.moves for one in done)


def test_swarm_in_operation() -> None:
    """Goal: safety under any faults, exact sums, then liveness; moves too. Method: 40 random cases, all invariants
    after each verb; failures stop after two days and every job that fits the pod has finished by the horizon."""
    assert run_cases(0, 40) > 5


@pytest.mark.slow
def test_large_swarm_in_operation() -> None:
    """Goal: the same, 400 more times. Method: as above."""
    assert run_cases(40, 400) > 50


def test_cases_are_wild() -> None:
    """Goal: a swarm draws all kinds of things. Method: 60 cases: every fabric, queue, troubles on and off, movers."""
    cases = [finite_case(number) for number in range(60)]
    assert len({case["fabric"] for case in cases}) == 4
    assert len({type(case["queue"]) for case in cases}) == 5
    assert len({case["pod"].hosts for case in cases}) >= 6
    troubles = [all_troubles(number, crowded_case(number)["pod"]) for number in range(20)]
    assert {more["repair"].crews for more in troubles} == {None, 2}
    assert {more["health"].accept_degraded for more in troubles} == {True, False}


def test_a_broken_log_is_found(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: the swarm can fail, and says how to see it again. Method: chip-hours that lose a microsecond; a job that
    never finishes; by the command as by Python."""
    case = finite_case(3)
    trace = simulate_operations(**(case | {"horizon_us": DAY_US}))
    with pytest.raises(SwarmError, match="never finished"):
        check_log(trace, case["jobs"], all_finish=True)
    monkeypatch.setattr("sim.swarm.chip_us_by_use", lambda *given: chip_us_by_use(*given) | {Use.UNACCOUNTED: 1})
    assert command_status(["swarm", "--runs", "2", "--seed", "7", "--workers", "1"]) == 1
    out = capsys.readouterr().out
    assert "seed 8: SwarmError: chip-hours do not add up" in out
    assert "replay: opticube swarm --runs 1 --seed 8" in out
    assert command_status(["swarm", "--runs", "1", "--seed", "7", "--workers", "1", "--json"]) == 1
    (failure,) = json.loads(capsys.readouterr().out)["failures"]
    assert failure["replay"] == "opticube swarm --runs 1 --seed 7"


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: one line when all is well, the same for any number of workers.
    Method: three runs; one with a seed that it draws and tells; bad numbers refused."""
    told = []
    for workers in ("1", "2"):
        assert command_status(["swarm", "--runs", "3", "--seed", "5", "--workers", workers]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert "invariants held after each verb" in told[0]
    assert command_status(["swarm", "--runs", "1", "--workers", "1"]) == 0
    assert "swarm: 1 random pods, seeds " in capsys.readouterr().out
    for bad in (["--runs", "0"], ["--runs", "2000000"], ["--seed", "-1"], ["--seed", "x"]):
        assert command_status(["swarm", *bad]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
