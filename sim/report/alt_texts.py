"""What a picture shows, in words, for those who do not see it: kind of chart, axes, and the ends of its curves."""

from __future__ import annotations

import math

from sim.report.context import Tables, table_of
from sim.report.curves import promise_curve_rows
from sim.report.effect_words import disturbance_alt, effects_alt
from sim.report.fleet_words import fleet_waits_alt
from sim.report.hosts import host_values, rows_of_host
from sim.report.operations_words import operations_alt
from sim.report.pass_words import contexts_alt, models_alt, times_alt
from sim.report.sentences import headline_chips
from sim.report.shared_words import shared_day_alt
from sim.report.story import failure_instant_s, is_quiet, stage_spans, story_fabrics
from sim.report.token_words import floor_alt, life_alt, traffic_alt
from sim.report.waterfall_words import waterfall_lines
from sim.report.words import category_words, fabric_words, fabrics_in_order, host_words, listed, percent, seconds


def alt_text(name: str, tables: Tables) -> str:
    """The alternative text of the picture `name` (a key of `plots.DRAWINGS`)."""
    tell = {
        "availability": _availability,
        "waterfall": _waterfall,
        "promise": _promise,
        "failure": _failure,
        "slice_sizes": _slice_sizes,
        "ledger": _ledger,
        "chip_hours": _chip_hours,
        "goodput": _goodput,
        "latencies": _latencies,
        "traffic": traffic_alt,
        "floor": floor_alt,
        "life": life_alt,
        "effects": effects_alt,
        "disturbance": disturbance_alt,
        "measured_times": times_alt,
        "models": models_alt,
        "contexts": contexts_alt,
        "shared_day": shared_day_alt,
        "fleet_waits": fleet_waits_alt,
    }.get(name)
    return operations_alt(name, tables) if tell is None else tell(tables)


def _availability(tables: Tables) -> str:
    table = table_of(tables, "availability")
    chips = headline_chips(tables)
    expected = table[(table["form"] == "expected") & (table["slice_chips"] == chips)]
    parts = []
    for host in host_values(expected):
        rows = rows_of_host(expected, host)
        values = [
            f"{fabric_words(fabric)} {percent(float(rows.loc[rows['fabric'] == fabric, 'value'].iloc[0]), 1)}"
            for fabric in fabrics_in_order(list(rows["fabric"]))
        ]
        parts.append(f"hosts up {host_words(host)}: {', '.join(values)}")
    return (
        "Small line charts of the share of the pod in slices over slice size, a row per form of availability and a "
        f"column per host availability. Expected at {chips} chips, {'; '.join(parts)}. All values are in the table."
    )


def _waterfall(tables: Tables) -> str:
    steps = "peak, memory-bound, batched, placed, delivered, in time"
    said = " ".join(waterfall_lines(tables))
    return f"Tokens per second on a log scale after each step ({steps}), a panel per service. {said} The table has all."


def _promise(tables: Tables) -> str:
    rows = promise_curve_rows(table_of(tables, "promise"))
    parts = []
    for host in host_values(rows):
        here = rows_of_host(rows, host)
        for fabric in fabrics_in_order(list(here["fabric"])):
            known = here[(here["fabric"] == fabric) & here["cubes"].notna()].sort_values("slice_chips")
            if len(known):
                first, last = known.iloc[0], known.iloc[-1]
                parts.append(
                    f"{fabric_words(fabric)}, hosts up {host_words(host)}: {int(first['cubes']):,} cubes at "
                    f"{int(first['slice_chips'])} chips, {int(last['cubes']):,} at {int(last['slice_chips'])}"
                )
    return (
        "Line charts of the cubes needed for a promise over slice size, both on log scales, a panel per host "
        f"availability. {'; '.join(parts)}."
    )


def _failure(tables: Tables) -> str:
    table = table_of(tables, "failure_story")
    service = str(table["service"].iloc[0])
    table = table[table["service"] == service]
    parts = []
    for fabric in story_fabrics(table):
        spans = stage_spans(table[table["fabric"] == fabric].sort_values("t_s"))
        busy = [f"{category_words(s.stage)} {seconds(s.end_s - s.start_s)}" for s in spans if not is_quiet(s.stage)]
        rate = table.loc[(table["fabric"] == fabric) & (table["t_s"] >= failure_instant_s(spans)), "tokens_per_s"]
        parts.append(f"{fabric_words(fabric)}: {listed(busy) or 'nothing failed'}; lowest {rate.min():,.0f} tokens/s")
    return (
        f"Tokens per second of {category_words(service)} through one failure, a panel per fabric, stages of recovery "
        f"shaded. {'. '.join(parts)}. Beneath, stacked bars of where the requests caught in it spent their time."
    )


def _slice_sizes(tables: Tables) -> str:
    table = table_of(tables, "slice_sizes")
    parts = []
    for service in dict.fromkeys(str(name) for name in table["service"]):
        rows = table[(table["service"] == service) & table["ttft_p99_s"].gt(0)].sort_values("chips")
        ends = [
            f"{seconds(float(row['ttft_p99_s']))} and {float(row['chip_s_per_token']):.3g} chip-seconds per token at "
            f"{int(row['chips'])} chips"
            for row in ([rows.iloc[0], rows.iloc[-1]] if len(rows) > 1 else [row for _, row in rows.iterrows()])
        ]
        parts.append(f"{category_words(service)}: {listed(ends) or 'no slice has numbers'}")
    return (
        "Line charts over slice size, above the 99th percentile of the time to first token with its limit, below the "
        f"chip-seconds per token. {'. '.join(parts)}."
    )


def _goodput(tables: Tables) -> str:
    table = table_of(tables, "load_curve")
    parts = []
    for service in dict.fromkeys(str(name) for name in table["service"]):
        rows = table[table["service"] == service].sort_values("offered_requests_per_s")
        first, last = rows.iloc[0], rows.iloc[-1]
        ends = [
            f"{percent(float(row['slo_attainment']), 0)} at {float(row['offered_requests_per_s']):.3g} requests/s"
            for row in (first, last)
        ]
        knee = rows.loc[rows["is_goodput_rate"].astype(bool), "offered_requests_per_s"]
        kept = f"the promise is kept up to {float(knee.iloc[0]):.3g} requests/s" if len(knee) else "no knee was found"
        parts.append(f"{category_words(service)}: {listed(ends)} in time, {kept}")
    return (
        "Line charts over the rate of requests, above the share in time, below requests in time per second. "
        f"{'. '.join(parts)}. All values are in the table."
    )


def _latencies(tables: Tables) -> str:
    table = table_of(tables, "latencies")
    parts = []
    for service in dict.fromkeys(str(name) for name in table["service"]):
        rows = table[(table["service"] == service) & (table["measure"] == "ttft") & (table["share"] == 0.5)]
        rows = rows.sort_values("load")
        ends = [
            f"{seconds(float(row['seconds']))} at {percent(float(row['load']), 0)} load"
            for _, row in rows.iloc[[0, -1]].iterrows()
        ]
        parts.append(f"{category_words(service)}: median first token {listed(ends)}")
    return (
        "Cumulative distributions of the time to the first token, the time per later token, the gap between tokens and "
        f"the whole answer, a line per load. {'. '.join(parts)}."
    )


def _ledger(tables: Tables) -> str:
    table = table_of(tables, "ledger")
    table = table[(table["scope"] == "all") & (table["fabric"] == table["fabric"].iloc[0])]
    parts = []
    for service in dict.fromkeys(str(name) for name in table["service"]):
        rows = table[table["service"] == service]
        rows = rows_of_host(rows, host_values(rows)[0])
        top = rows.sort_values("share", ascending=False, kind="stable").head(3)
        shares = [
            f"{category_words(str(row['category']))} {percent(float(row['share']), 0)}" for _, row in top.iterrows()
        ]
        parts.append(f"{category_words(service)}: most goes to {listed(shares)}")
    return (
        f"Stacked bars of the mean seconds of a request by category. {'. '.join(parts)}. All values are in the table."
    )


def _chip_hours(tables: Tables) -> str:
    table = table_of(tables, "chip_hours")
    useful = table[table["use"] == "useful"]
    values = [float(value) for value in useful["share"] if math.isfinite(float(value))]
    span = f" Useful: between {percent(min(values), 0)} and {percent(max(values), 0)}." if values else ""
    return (
        "Stacked bars of chip-hours by use, in percent of the pod, a bar per slice size and fabric, a panel per host "
        f"availability.{span} All values are in the table."
    )
