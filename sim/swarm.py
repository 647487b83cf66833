"""`opticube swarm`: random pods in operation, every invariant checked after each verb, then all jobs must finish.

The number of a case is the seed that draws it, so one number replays what failed, on any machine.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.cli_output import say, say_json
from sim.executors import map_tasks, open_executor
from sim.exit_codes import ExitStatus
from sim.metrics.chip_hours import chip_us_by_use
from sim.metrics.ledger import job_ledgers
from sim.metrics.uses import RUN_USES, Use
from sim.processes.operations import simulate_operations
from sim.swarm_cases import DAY_US, all_troubles, crowded_case, finite_case
from sim.trace import Trace, Verb
from topology.pod import Pod
from workloads.jobs.job import Job

WORK_TOLERANCE_US = 60
"""Rounding of the useful time of a job, which is cut by every save and loss, against its work."""
CROWDED_EVERY = 5


class SwarmError(AssertionError):
    """What must always be true of a log is not."""


@dataclass(frozen=True, kw_only=True)
class Played:
    """One number of the swarm: what happened in its cases, or what broke (`broken`: one line)."""

    number: int
    jobs: int = 0
    losses: int = 0
    moves: int = 0
    broken: str | None = None


def check_log(trace: Trace, jobs: Sequence[Job], *, all_finish: bool) -> None:
    """Raise SwarmError unless chip-hours and ledgers of a log add up exactly, and to each other.

    With `all_finish` every job that was not rejected has finished, and its useful time is its work.
    """
    for warmup_us in (0, DAY_US // 2):
        uses, ledgers = chip_us_by_use(trace, warmup_us), job_ledgers(trace, warmup_us)
        _demand(uses[Use.UNACCOUNTED] == 0 and min(uses.values()) >= 0, "chip-hours do not add up", uses)
        for ledger in ledgers:
            whole = ledger.unaccounted_us == 0 and min(ledger.us.values()) >= 0
            _demand(whole, f"the ledger of job {ledger.job} does not add up", ledger)
        running = sum(ledger.chips * ledger.us[use] for ledger in ledgers for use in RUN_USES)
        _demand(running == sum(uses[use] for use in RUN_USES), "ledgers and chip-hours differ", running)
    ledgers = job_ledgers(trace)
    _demand([ledger.job for ledger in ledgers] == sorted(job.id for job in jobs), "a job has no ledger", len(jobs))
    work = {job.id: job.work_us for job in jobs}
    for ledger in ledgers:
        if all_finish:
            _demand(bool(ledger.rejected) or ledger.finished_us is not None, f"job {ledger.job} never finished", ledger)
        if ledger.finished_us is not None:
            over_us = ledger.us[Use.USEFUL] - (work[ledger.job] or 0)
            _demand(-1 <= over_us <= WORK_TOLERANCE_US, f"job {ledger.job} did more or less than its work", over_us)


def _demand(holds: bool, what: str, shown: object) -> None:
    if not holds:
        raise SwarmError(f"{what}: {shown}")


def cases_of(number: int) -> Iterator[tuple[dict[str, Any], bool]]:
    """The cases of one number, and whether all of their jobs must finish."""
    case = finite_case(number)
    yield case, True
    if isinstance(case["pod"], Pod):
        yield case | all_troubles(number, case["pod"]), False
    if number % CROWDED_EVERY == 0:
        crowded = crowded_case(number)
        yield crowded, False
        yield crowded | all_troubles(number, crowded["pod"]), False


def play(number: int) -> Played:
    """Play the cases of one number; raises what breaks."""
    jobs = losses = moves = 0
    for case, all_finish in cases_of(number):
        trace = simulate_operations(**case)
        check_log(trace, case["jobs"], all_finish=all_finish)
        verbs = [row[1] for row in trace.rows]
        jobs += len(case["jobs"])
        losses += verbs.count(Verb.LOSE.value)
        moves += verbs.count(Verb.MOVE.value)
    return Played(number=number, jobs=jobs, losses=losses, moves=moves)


def played(number: int) -> Played:
    """As `play`, with what broke told in one line (a task)."""
    try:
        return play(number)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        what = " ".join(f"{type(error).__name__}: {error}".split())[:400]
        return Played(number=number, broken=f"{what} ({Path(where.filename).name}:{where.lineno})")


def run_swarm(
    runs: int, seed: int, *, workers: int | None = 1, watch: Callable[[Played], None] | None = None
) -> list[Played]:
    """Play the numbers `seed` to `seed + runs - 1`, on `workers` processes (None: one per core), in order."""
    done: list[Played] = []
    with open_executor(workers) as executor:
        for one in map_tasks(executor, played, [(number,) for number in range(seed, seed + runs)]):
            done.append(one)
            if watch is not None:
                watch(one)
    return done


def swarm_command(runs: int, seed: int, workers: int | None, as_json: bool) -> int:
    """Play, print what broke with the command that replays it; status 1 where something did."""
    if not as_json:
        say(f"swarm: {runs:,} random pods, seeds {seed} to {seed + runs - 1}")
    done = run_swarm(runs, seed, workers=workers, watch=None if as_json else _tell)
    broken = [one for one in done if one.broken is not None]
    sums = {name: sum(getattr(one, name) for one in done) for name in ("jobs", "losses", "moves")}
    if as_json:
        told = [{"seed": one.number, "broken": one.broken, "replay": _replay(one.number)} for one in broken]
        say_json({"runs": runs, "seed": seed, **sums, "failures": told})
    elif not broken:
        kept = "invariants held after each verb, all sums are exact, and all jobs finished once failures stopped"
        say(f"{sums['jobs']:,} jobs, {sums['losses']:,} losses, {sums['moves']:,} moves: {kept}")
    else:
        say(f"{len(broken)} of {runs} failed")
    return ExitStatus.FAILED if broken else ExitStatus.DONE


def _tell(one: Played) -> None:
    if one.broken is not None:
        say(f"seed {one.number}: {one.broken}")
        say(f"  replay: {_replay(one.number)}")


def _replay(number: int) -> str:
    return f"opticube swarm --runs 1 --seed {number}"
