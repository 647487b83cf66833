"""The command `replay --request`: one request of a run's window, token by token, simulated again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from sim.cli_output import say, say_json, say_table
from sim.exit_codes import ExitStatus
from sim.files import picture_faults
from sim.run_folder import SCENARIO, blame_changed_tables, read_tables
from sim.scenario import Point, Scenario, expand, load_scenario
from sim.studies.lives import RequestLife, request_life
from sim.studies.token_rows import life_rows
from sim.studies.windows import WindowTask
from sim.tables import text_of_setting
from sim.token_tables import REQUEST_LIFE
from topology.errors import InputError, refuse
from workloads.serving.fields import LEDGER

S_PER_NS, MS_PER_NS = 1e-9, 1e-6
SLOWEST = 5
"""Gaps that are listed, the longest first."""


def replay_request_command(
    run: Path, point: int, request: int, service: str | None, picture: Path | None, as_json: bool
) -> int:
    """Print the life of a request, and draw it; status 1 where the run recorded another one."""
    faults = picture_faults(picture)
    if faults:
        raise InputError(faults)
    tables, points = read_tables(run), expand(load_scenario(str((run / SCENARIO).resolve())))
    if point >= len(points):
        raise refuse("--point", f"the run has points 0 to {len(points) - 1}", "write one of them")
    scenario = points[point].scenario
    index = _service_number(scenario, service)
    assert scenario.serving is not None
    name = scenario.serving.services[index].name
    with blame_changed_tables(run):
        task = _task(scenario, index, request, _of_point(tables["service"], points[point]))
        life = request_life(scenario, task, request)
        same = _is_as_recorded(life, tables.get("requests"), points[point], name)
    rows = life_rows(name, life)
    if picture is not None:
        _draw(picture, rows)
    if as_json:
        say_json({"run": str(run), "point": point, "service": name, "same": same, "tokens": rows, **_lengths(life)})
    else:
        _print_life(name, life, same)
    return ExitStatus.FAILED if same is False else ExitStatus.DONE


def _service_number(scenario: Scenario, service: str | None) -> int:
    if scenario.serving is None:
        raise refuse("--request", "the run has no services", "name a run with `serving`")
    names = [each.name for each in scenario.serving.services]
    if service is None and len(names) > 1:
        raise refuse("--service", "the run has several services", f"write one of {', '.join(names)}")
    if service is not None and service not in names:
        raise refuse("--service", f"`{service[:40]}` is no service of the run", f"write one of {', '.join(names)}")
    return 0 if service is None else names.index(service)


def _task(scenario: Scenario, index: int, request: int, stored: pd.DataFrame) -> WindowTask:
    """The first window with all replicas up, at the rate that the run found."""
    assert scenario.serving is not None
    serving, section = scenario.serving, scenario.serving.services[index]
    if request >= serving.windows.requests:
        what = f"a window has requests 0 to {serving.windows.requests - 1:,}"
        raise refuse("--request", what, "write one of them")
    rates = stored[(stored["service"] == section.name) & (stored["measure"] == "offered_requests_per_s")]
    return WindowTask(service=index, rate_per_s=float(rates["value"].iloc[0]), saturated_per_s=1.0, repetition=0)


def _of_point(table: pd.DataFrame, point: Point) -> pd.DataFrame:
    """Rows whose columns of swept keys say that they belong to a point."""
    for key, value in point.settings.items():
        if key in table.columns:
            table = table[table[key] == text_of_setting(value)]
    return table


def _is_as_recorded(life: RequestLife, table: pd.DataFrame | None, point: Point, service: str) -> bool | None:
    """Whether tokens came when the run says so; None where it recorded no such request, or not its tokens."""
    if table is None or table.empty:
        return None
    rows = _of_point(table, point)
    rows = rows[(rows["service"] == service) & (rows["request"] == life.request)]
    if rows.empty or pd.isna(rows["gaps_ns"].iloc[0]):
        return None
    gaps = [each.gap_ns for each in life.tokens if each.number is not None and each.number > 1]
    return (
        str(rows["gaps_ns"].iloc[0]) == " ".join(map(str, gaps)) and int(rows["arrival_ns"].iloc[0]) == life.arrival_ns
    )


def _lengths(life: RequestLife) -> dict[str, Any]:
    return {
        "request": life.request,
        "arrival_ns": life.arrival_ns,
        "input_tokens": life.input_tokens,
        "output_tokens": life.output_tokens,
    }


def _draw(path: Path, rows: list[dict[str, Any]]) -> None:
    from sim.report.life_pictures import life_of_request
    from sim.report.style import write_picture

    write_picture(path, life_of_request({"request_life": REQUEST_LIFE.make(rows)}).figure)


def _print_life(service: str, life: RequestLife, same: bool | None) -> None:
    """The same for people: the wait for the first token by category, gaps by reason, and the longest ones."""
    say(
        f"Request {life.request:,} of {service}: a prompt of {life.input_tokens:,} and an answer of "
        f"{life.output_tokens:,} tokens, {life.arrival_ns * S_PER_NS:.3f} s after the start of the window"
    )
    if not life.tokens:
        say("It never ran.")
        return
    first, later = life.tokens[0], [each for each in life.tokens[1:] if each.number is not None]
    say(f"First token after {first.at_ns * MS_PER_NS:,.3f} ms ({first.reason}):")
    parts = [(name, int(time_ns)) for name, time_ns in zip(LEDGER, first.ledger_ns, strict=True) if time_ns]
    say_table(("what", "ms"), [(name.replace("_", " "), round(time_ns * MS_PER_NS, 6)) for name, time_ns in parts])
    if later:
        say()
        say("Gaps between tokens, by what made them longer than a plain step:")
        by_reason = {reason: [each.gap_ns for each in later if each.reason == reason] for reason in _reasons(later)}
        rows = [
            (reason, len(gaps), round(sum(gaps) / len(gaps) * MS_PER_NS, 3), round(max(gaps) * MS_PER_NS, 3))
            for reason, gaps in by_reason.items()
        ]
        say_table(("reason", "gaps", "mean ms", "longest ms"), rows)
        say()
        say("The longest:")
        slowest = sorted(later, key=lambda each: (-each.gap_ns, each.at_ns))[:SLOWEST]
        say_table(
            ("token", "ms", "reason", "sequences", "prompt tokens beside"),
            [
                (each.number, round(each.gap_ns * MS_PER_NS, 3), each.reason, each.sequences, each.prompt_tokens)
                for each in slowest
            ],
        )
    last = life.tokens[-1]
    say()
    end = "Last token" if last.number == life.output_tokens else "It left without its last token"
    say(f"{end} after {last.at_ns * S_PER_NS:.6f} s; all parts add up to it, to the nanosecond.")
    if same is not None:
        say("replayed: equal to the stored run" if same else "replayed: NOT equal to the stored run")


def _reasons(later: list[Any]) -> list[str]:
    return list(dict.fromkeys(each.reason for each in later))
