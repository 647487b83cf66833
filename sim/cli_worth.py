"""The command `worth`: what each change of a scenario is worth, as people and programs read it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sim.cli_output import say, say_json, say_table
from sim.commands import shown_progress
from sim.exit_codes import ExitStatus
from sim.report.words import number, percent
from sim.scenario import load_scenario
from sim.worths import Worth, worth


def worth_command(
    scenario: str, overrides: Sequence[str], knobs: Sequence[str], workers: int | None, as_json: bool
) -> int:
    """Print what each knob is worth, the largest first."""
    loaded = load_scenario(scenario, overrides)
    with shown_progress(as_json) as progress:
        found = worth(loaded, knobs, workers=workers, progress=progress)
    if as_json:
        say_json(_document(found))
    else:
        _print(found)
    return ExitStatus.DONE


def _document(found: Worth) -> dict[str, Any]:
    table = found.table
    return {
        "scenario": found.scenario.name,
        "slice_chips": found.slice_chips,
        "base": dict(found.base),
        "sentence": found.sentence,
        "knobs": table.astype(object).where(table.notna(), None).to_dict("records"),
    }


def _print(found: Worth) -> None:
    base = found.base
    size = "" if found.slice_chips is None else f" ({found.slice_chips:,}-chip slices)"
    said = [
        ("tokens in time", base["tokens_in_time_per_s"], "{} per s"),
        (f"delivered{size}", 100 * base["delivered"], "{} %"),
        ("a million tokens in time", base["usd_per_million_tokens_in_time"], "{} USD"),
        ("a year", base["usd_per_year"], "{} USD"),
    ]
    known = (f"{name} {form.format(number(value))}" for name, value, form in said if math.isfinite(value))
    say("As it is: " + ", ".join(known))
    say()
    header = ("knob", "tokens in time", "delivered", "chip-hours a year", "USD a year", "USD per million tokens")
    say_table(header, [_line(row) for _, row in found.table.iterrows()])
    say()
    say("Relative changes with half of the paired 95 % interval; largest first. " + found.sentence)


def _line(row: Any) -> tuple[str, ...]:
    shares = {name: _change(row, name, lambda value: f"{100 * value:+.3g} %") for name in ("tokens", "delivered")}
    hours = _change(row, "chip_hours", lambda value: f"{value:+,.0f}")
    usd = f"{row['usd_per_year']:+,.0f}" if row["usd_per_year"] else "0"
    money = _change(row, "usd_per_million", lambda value: f"{100 * value:+.3g} %")
    return (str(row["knob"]), shares["tokens"], shares["delivered"], hours, usd, money)


def _change(row: Any, name: str, form: Any) -> str:
    value, low, high = (float(row[key]) for key in (name, f"{name}_low", f"{name}_high"))
    if not math.isfinite(value):
        return ""
    if value == 0 and not math.isfinite(low):
        return "0"
    half = (high - low) / 2
    text = str(form(value))
    if not math.isfinite(half):
        return text
    return f"{text} ±{number(half)}" if name == "chip_hours" else f"{text} ±{percent(half)}"
