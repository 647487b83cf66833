"""Commands about changes of a scenario, as the command line sees them; what they do is imported when called."""

from __future__ import annotations

from typing import Annotated

import typer

from sim.cli_options import AsJson, Overrides, Workers

Scenario = Annotated[
    str, typer.Argument(help="A scenario file, or the name of a shipped scenario.", show_default=False)
]


def worth_of_knobs(
    scenario: Scenario,
    knobs: Annotated[
        list[str] | None,
        typer.Option(
            "--knob",
            metavar="KEY=VALUE",
            help="A change: a value, a step (repair.crews=+1) or a factor (recovery.circuits=x0.1); several keys of "
            "one change are separated by `;`. Repeatable; those of `study.worth` if left out.",
        ),
    ] = None,
    overrides: Overrides = None,
    workers: Workers = None,
    as_json: AsJson = False,
) -> int:
    """What each change of a scenario is worth, on the same draws, largest first."""
    from sim.cli_worth import worth_command

    return worth_command(scenario, overrides or [], knobs or [], workers, as_json)


def break_even_of_light(
    scenario: Scenario, overrides: Overrides = None, workers: Workers = None, as_json: AsJson = False
) -> int:
    """Where light is no better than static wiring: by the time of a reconfiguration, and by the price of optics."""
    from sim.cli_break_even import break_even_command

    return break_even_command(scenario, overrides or [], workers, as_json)
