"""The command `log`: what a failure log holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sim.cli_output import say, say_json, say_table
from sim.exit_codes import ExitStatus
from sim.failure_log_formats import LogFormat
from sim.failure_logs import read_failure_logs
from sim.law_fits import Fit
from sim.log_analysis import LogAnalysis, analysis_of
from sim.report.words import number, percent, seconds
from sim.scenario_faults import nearest
from topology.errors import refuse


def log_command(
    file: Path,
    log_format: str | None,
    components: int | None,
    window: tuple[str, str] | None,
    causes: Sequence[str],
    as_json: bool,
) -> int:
    """Print the analysis of a log, one block per kind of component that it names."""
    known = [each.value for each in LogFormat]
    if log_format is not None and log_format not in known:
        raise refuse("--format", f"`{log_format}` is no format of a log", nearest(log_format, known))
    logs = read_failure_logs(file, log_format=log_format, components=components, window=window, causes=causes)
    found = [analysis_of(log) for log in logs]
    if as_json:
        first, *others = (analysis.as_dict() for analysis in found)
        say_json({**first, **({"others": others} if others else {})})
        return ExitStatus.DONE
    for index, analysis in enumerate(found):
        if index:
            say()
        _print(analysis)
    return ExitStatus.DONE


def _print(log: LogAnalysis) -> None:
    """One kind of component, from the whole to the single."""
    known = "" if log.components_known else " (as many as are named: give --components for the population)"
    say(f"{log.path}: {log.format}, {log.kind}")
    say_table(("what", "value"), _facts(log, known))
    if log.causes:
        say()
        rows = [(cause, count, percent(count / sum(log.causes.values()))) for cause, count in log.causes.items()]
        say_table(("cause", "outages", "share"), rows)
    say()
    say("Time that whole groups are up, against independent failures (the gap is what bursts are worth):")
    header = ("group of", "random", "consecutive", "independent")
    say_table(header, [_burst(b.size, b.random_all_up, b.consecutive_all_up, b.independent_all_up) for b in log.bursts])
    if log.offenders:
        say()
        say(
            f"Repeat offenders (variance over mean of outages per component: {number(log.dispersion)}, 1 if all alike):"
        )
        say_table(("name", "outages", "down"), [(o.name, o.outages, f"{number(o.down_h)} h") for o in log.offenders])
    say()
    say("Fits, best first (least AIC):")
    fits = [*(("life", fit) for fit in log.life_fits), *(("repair", fit) for fit in log.repair_fits)]
    say_table(("of", "law", "mean", "aic"), [_fit(what, fit) for what, fit in fits])
    say()
    say("As independent components in a scenario (bursts are lost; `failures: {log: {path: ...}}` keeps them):")
    for line in log.failures_yaml.splitlines():
        say(line)


def _facts(log: LogAnalysis, known: str) -> list[tuple[str, str]]:
    quantiles = ", ".join(f"{name} {_hours(hours)}" for name, hours in log.repair_quantiles_h.items())
    return [
        ("components", f"{log.components:,}{known}, {log.components_with_outages:,} with an outage"),
        ("window", f"{log.window_from} to {log.window_to}, {number(log.window_h)} h"),
        ("outages", f"{log.outages:,} ({log.open_outages} open, {log.zero_length_outages} of length zero, "
                    f"{log.overlapping_outages} overlapping)"),
        ("availability", f"{log.availability:.6f}, {number(log.mean_down)} down on average"),
        ("time between failures", f"{_hours(log.mtbf_h)} of one component, {_hours(log.system_mtbf_h)} of all"),
        ("gaps between starts", f"mean {_hours(log.gap_mean_h)}, median {_hours(log.gap_median_h)}, "
                                f"cv {number(log.gap_cv)}, {log.simultaneous_starts} of zero"),
        ("repair", f"mean {_hours(log.repair_mean_h)}, cv {number(log.repair_cv)}"),
        ("repair quantiles", quantiles or "no outage has ended"),
    ]  # fmt: skip


def _hours(hours: float) -> str:
    return seconds(hours * 3600.0) if math.isfinite(hours) else "unknown"


def _burst(size: int, random: float, consecutive: float | None, independent: float) -> tuple[Any, ...]:
    return size, round(random, 4), None if consecutive is None else round(consecutive, 4), round(independent, 4)


def _fit(what: str, fit: Fit) -> tuple[Any, ...]:
    shape = [f"{name} {getattr(fit.law, name):.3g}" for name in ("shape", "cv") if hasattr(fit.law, name)]
    return what, " ".join([fit.law.kind, *shape]), seconds(fit.law.mean_s), round(fit.aic, 1)
