"""The command `size` by simulation: cubes for a promise on a machine that lives as a scenario says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sim.cli_output import say, say_json, say_table
from sim.cli_size import shapes_and_counts
from sim.commands import shown_progress
from sim.exit_codes import ExitStatus
from sim.report.words import fabric_words, percent
from sim.scenario import Scenario, load_scenario, scenario_of
from sim.sizing import size_by_simulation
from sim.strict_yaml import Document
from topology.errors import Fault, InputError


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """What the command line says: a scenario with its overrides or an availability of hosts, and how to simulate."""

    slices: str
    time_share: str
    host_availability: str | None
    scenario: str | None
    overrides: Sequence[str]
    running: bool
    horizon: str
    replications: int
    workers: int | None


def size_by_simulation_command(options: SizeOptions, as_json: bool) -> int:
    """Print the fewest cubes per fabric with their limits."""
    faults: list[Fault] = []
    shapes = shapes_and_counts(options.slices, faults)
    if faults:
        raise InputError(faults)
    wanted: dict[str, int] = {}
    for shape, count in shapes:
        wanted[str(shape)] = wanted.get(str(shape), 0) + count
    scenario = _scenario(options)
    with shown_progress(as_json) as progress:
        table = size_by_simulation(
            scenario,
            wanted,
            options.time_share,
            held="running" if options.running else "possible",
            horizon=options.horizon,
            replications=options.replications,
            workers=options.workers,
            progress=progress,
        )
    found = table.astype(object).where(table.notna(), None).to_dict("records")
    rows = [{str(key): value for key, value in row.items()} for row in found]
    if as_json:
        slices = [{"shape": str(shape), "chips": shape.chips, "count": count} for shape, count in shapes]
        say_json({"slices": slices, "scenario": scenario.name, "fabrics": rows})
        return ExitStatus.DONE
    _print(options, rows, ", ".join(f"{count} x {shape}" for shape, count in shapes))
    return ExitStatus.DONE


def _print(options: SizeOptions, rows: Sequence[dict[str, Any]], listed: str) -> None:
    verb = "run" if options.running else "hold"
    lives = f"as in {options.scenario}" if options.scenario else f"hosts up {options.host_availability}"
    say(f"To {verb} {listed} for {options.time_share.strip()} of the time, {lives}, by simulation:")
    header = ("fabric", "cubes", "ruled out below", "sure from", "spare", "share held", "closed form")
    say_table(header, [_line(row) for row in rows])
    say(
        f"{options.replications} histories of {options.horizon} for every size, the same bad luck for all. Below `ruled"
        " out below` the upper 95 % limit of the share of time misses the promise; at `sure from` the lower keeps it."
    )
    say("Limits of switch ports are ignored. Blank: no size up to 2,000 cubes, or no closed form.")


def _line(row: dict[str, Any]) -> tuple[object, ...]:
    held = None if row["share"] is None else percent(float(row["share"]), 2)
    if held is not None and row["ci_low"] is not None:
        held += f" ({percent(float(row['ci_low']), 2)} to {percent(min(1.0, float(row['ci_high'])), 2)})"
    numbers = (row[key] for key in ("cubes", "cubes_low", "cubes_high", "spares"))
    return (fabric_words(row["fabric"]), *numbers, held, row["closed_form"])


def _scenario(options: SizeOptions) -> Scenario:
    """The scenario that is named; else hosts alone, with the published rate of failures and the availability given."""
    if options.scenario is not None:
        return load_scenario(options.scenario, options.overrides)
    hosts = {"failure_rate": "0.08 %/day", "availability": options.host_availability}
    study = {"promise": {"slices": {"4x4x4": 1}}}
    document = Document("--host-availability", {"name": "size", "failures": {"host": hosts}, "study": study})
    return scenario_of(document, options.overrides)
