"""The command `break-even`: where light stops being worth its delays and its price."""

from __future__ import annotations

from collections.abc import Sequence

from sim.break_evens import break_even
from sim.cli_output import say, say_json, say_table
from sim.commands import shown_progress
from sim.exit_codes import ExitStatus
from sim.report.words import number, percent, seconds
from sim.scenario import load_scenario


def break_even_command(scenario: str, overrides: Sequence[str], workers: int | None, as_json: bool) -> int:
    """Print both break-evens of a scenario."""
    loaded = load_scenario(scenario, overrides)
    with shown_progress(as_json) as progress:
        found = break_even(loaded, workers=workers, progress=progress)
    if as_json:
        say_json(
            {
                "scenario": loaded.name,
                "sentences": found.sentences,
                "times": found.times.to_dict("records"),
                "prices": found.prices.to_dict("records"),
            }
        )
        return ExitStatus.DONE
    lines = []
    for _, row in found.times.iterrows():
        half = 100 * (float(row["ci_high"]) - float(row["ci_low"])) / 2
        shares = (percent(float(row[name]), 1) for name in ("delivered", "static"))
        spread = f" ±{number(half)}" if half > 0 else ""
        change = f"{100 * float(row['difference']):+.2f}{spread}"
        lines.append((f"{int(row['slice_chips']):,}", seconds(float(row["circuits_s"])), *shares, change))
    say_table(("chips", "reconfiguration", "delivered", "static", "points more"), lines)
    say()
    for text in found.sentences:
        say(text)
    return ExitStatus.DONE
