"""A pod that serves and trains in words: its table for the terminal, the sentences of the answer, its picture."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from sim.report.context import Tables, is_absent, table_of
from sim.report.hosts import host_values, rows_of_host
from sim.report.words import fabric_words, fabrics_in_order, host_words, listed, number, percent, seconds

MACHINE_WORDS = {"shared": "shared", "fixed": "divided", "fixed_equal_money": "divided, equal money"}
MEASURE_WORDS = {
    "pod_tokens_in_time": "tokens in time",
    "pod_replicas_wanted": "replicas wanted",
    "pod_replicas_up": "replicas up",
    "pod_start_mean_s": "from wanted to up",
    "training_chip_hours_per_day": "useful training, chip h per day",
    "training_useful_share": "useful share of what training held",
    "serving_chip_hours_per_day": "held by serving, chip h per day",
    "cubes_moved_per_day": "cubes that change sides per day",
    "made_way_per_day": "jobs that make way per day",
    "pod_losses_per_day": "losses per day, replicas included",
    "pod_usd_per_million_tokens": "USD per million tokens in time",
    "training_usd_per_chip_hour": "USD per useful chip h of training",
}
"""Measures in the order in which they are printed, in words."""
CAUSE_WORDS = {
    "no_cube": "no cube to be had",
    "drain": "a job that saves and makes way",
    "circuits": "circuits",
    "preflight": "preflight",
    "weights": "weights and start",
    "move": "planned moves",
    "detecting": "undetected losses",
    "evicting": "eviction",
}
LEAST_SHARE = 0.05
"""Causes of less than this share of the waiting are not named in the sentence."""


def value_text(row: pd.Series) -> str:
    """One value with its interval in the unit that suits it."""
    value = float(row["value"])
    half = (float(row["ci_high"]) - float(row["ci_low"])) / 2
    if not math.isfinite(value):
        return "-"
    if row["unit"] == "1":
        return f"{100 * value:.2f}" + (f"±{100 * half:.2f}" if math.isfinite(half) else "") + " %"
    if row["unit"] == "s":
        return seconds(value)
    return number(value) + (f"±{number(half)}" if math.isfinite(half) else "")


def machines_of_table(table: pd.DataFrame) -> list[str]:
    """The machines, in the order of the table."""
    return list(dict.fromkeys(str(machine) for machine in table["machine"]))


def words_and_values(here: pd.DataFrame) -> Iterator[tuple[str, list[str]]]:
    """Words and values by machine of every measure, services first."""
    machines = machines_of_table(here)
    services = [str(name) for name in dict.fromkeys(here["service"].dropna())]
    for service in (*services, None):
        mine = here[here["service"].isna() if service is None else here["service"] == service]
        for measure, words in MEASURE_WORDS.items():
            rows = mine[mine["measure"] == measure]
            found = {str(row["machine"]): value_text(row) for _, row in rows.iterrows()}
            if any(text != "-" for text in found.values()):
                yield (f"{service}: {words}" if service else words), [found.get(name, "-") for name in machines]


def machine_heads(here: pd.DataFrame) -> list[str]:
    """The head of each machine's column: its name and its cubes."""
    cubes = {str(row["machine"]): int(row["cubes"]) for _, row in here.iterrows()}
    return [f"{MACHINE_WORDS[name]} ({cubes[name]} cubes)" for name in machines_of_table(here)]


def blocks_of(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each host availability and fabric, with words for them."""
    for host in host_values(table):
        of_host = rows_of_host(table, host)
        fabrics = fabrics_in_order(list(of_host["fabric"]))
        for fabric in fabrics:
            named = f"{fabric_words(fabric)}, " if len(fabrics) > 1 else ""
            yield f"{named}hosts up {host_words(host)}", of_host[of_host["fabric"] == fabric]


def shared_pod_text(tables: Tables) -> str:
    """Measures of a pod that serves and trains, a column per machine; empty where there are none."""
    if is_absent(tables, "shared_pod"):
        return ""
    blocks = []
    for label, here in blocks_of(table_of(tables, "shared_pod")):
        lines, heads = list(words_and_values(here)), machine_heads(here)
        width = max(len(label), *(len(words) for words, _ in lines))
        widths = [max(len(head), *(len(cells[at]) for _, cells in lines)) for at, head in enumerate(heads)]
        rows = [(label, heads), *lines]
        texts = [
            [words.ljust(width), *(cell.rjust(widths[at]) for at, cell in enumerate(cells))] for words, cells in rows
        ]
        blocks.append("\n".join("  ".join(cells) for cells in texts))
    note = (
        "±: half of the 95 % interval; means over replications. divided: serving and training have cubes of their own."
    )
    return "\n\n".join(["A pod that serves and trains", *blocks, note])


def shared_pod_sentences(tables: Tables) -> Iterator[str]:
    """What sharing is worth, at equal hardware and at equal money; what replicas wait for."""
    if is_absent(tables, "shared_pod"):
        return
    for label, here in blocks_of(table_of(tables, "shared_pod")):
        fabric, host = str(here["fabric"].iloc[0]), float(here["host_availability"].iloc[0])
        same = (
            rows_of_host(table_of(tables, "shared_pod_differences"), host) if len(machines_of_table(here)) > 1 else None
        )
        if same is not None and str(here["machine"].iloc[0]) == "shared":
            for other in machines_of_table(here)[1:]:
                yield _gain(here, same[(same["fabric"] == fabric) & (same["against"] == other)], other, label)
        yield from _money(here, same)
        waits = rows_of_host(table_of(tables, "shared_pod_waits"), host)
        yield from _waiting(here, waits[waits["fabric"] == fabric])


def _gain(here: pd.DataFrame, differences: pd.DataFrame, other: str, label: str) -> str:
    """How the shared pod compares with another machine: useful training and tokens in time, paired."""

    def of(machine: str, measure: str) -> float:
        mine = here[(here["machine"] == machine) & (here["measure"] == measure)]
        return float(mine["value"].mean())

    def gain(measure: str) -> tuple[float, float]:
        mine = differences[differences["measure"] == measure]
        halves = (mine["ci_high"] - mine["ci_low"]) / 2
        return float(mine["difference"].mean()), float(halves.max())

    cubes = {str(row["machine"]): int(row["cubes"]) for _, row in here.iterrows()}
    trained = "training_chip_hours_per_day"
    whole, (more, half) = of(other, trained), gain(trained)
    money = "as many cubes" if other == "fixed" else f"the {cubes[other]} cubes that the same money buys without light"
    spread = f"±{100 * half / whole:.1f}" if whole and math.isfinite(half) else ""
    trains = f"{100 * more / whole:+.1f}{spread} % useful training" if whole else "no training to compare"
    in_time, (points, points_half) = of("shared", "pod_tokens_in_time"), gain("pod_tokens_in_time")
    spread = f"±{100 * points_half:.2f}" if math.isfinite(points_half) else ""
    return (
        f"Shared, {cubes['shared']} cubes give {trains} over {money} divided for good (hosts up "
        f"{label.split('hosts up ')[1]}), with {percent(in_time)} of the tokens in time, {100 * points:+.2f}{spread} "
        "points."
    )


def _money(here: pd.DataFrame, differences: pd.DataFrame | None) -> Iterator[str]:
    """What a million tokens in time of each service cost on every machine, and the paired difference."""
    measure, machines = "pod_usd_per_million_tokens", machines_of_table(here)
    mine = here[(here["measure"] == measure) & here["value"].notna()]
    for service in dict.fromkeys(str(name) for name in mine["service"]):
        usd = {str(row["machine"]): float(row["value"]) for _, row in mine[mine["service"] == service].iterrows()}
        told = []
        for machine in [name for name in machines if name in usd]:
            half = math.nan
            if differences is not None and machine != machines[0]:
                against = differences[(differences["measure"] == measure) & (differences["service"] == service)]
                rows = against[against["against"] == machine]
                half = float(((rows["ci_high"] - rows["ci_low"]) / 2).max())
            spread = f" (the difference ±{number(half)})" if math.isfinite(half) else ""
            told.append(f"{number(usd[machine])} USD {MACHINE_WORDS[machine]}{spread}")
        yield (
            f"A million tokens in time of {service} cost {listed(told)}; serving and training pay by the chip-hours "
            "that they hold (an assumption)."
        )


def _waiting(here: pd.DataFrame, waits: pd.DataFrame) -> Iterator[str]:
    """What the replicas of each service wait for on the shared pod, the largest first."""
    mine = waits[waits["machine"] == "shared"]
    for service in [str(name) for name in dict.fromkeys(mine["service"])]:
        rows = mine[mine["service"] == service].sort_values("seconds_per_day", ascending=False, kind="stable")
        told = here[(here["machine"] == "shared") & (here["service"] == service)]
        start = told.loc[told["measure"] == "pod_start_mean_s", "value"]
        if rows.empty or not float(rows["seconds_per_day"].sum()) or start.empty or not math.isfinite(start.iloc[0]):
            continue
        causes = [
            f"{percent(float(row['share']), 0)} {CAUSE_WORDS[str(row['cause'])]}"
            for _, row in rows.iterrows()
            if float(row["share"]) >= LEAST_SHARE
        ]
        yield (
            f"A replica of {service} is up {seconds(float(start.iloc[0]))} after it is wanted, in the mean; what "
            f"replicas wait for: {listed(causes)}."
        )


def shared_day_alt(tables: Tables) -> str:
    """What the picture of the day shows, for those who do not see it."""
    day = table_of(tables, "shared_pod_day")
    shared = day[day["machine"] == "shared"] if (day["machine"] == "shared").any() else day
    losses = int(shared["serving_losses"].sum()), int(shared.groupby("time_s")["training_losses"].first().sum())
    low, high = (float(end) for end in (shared["replicas_up"].min(), shared["replicas_up"].max()))
    cubes = shared["training_cubes"]
    return (
        "Three line charts one below the other over two days. Demand in requests per second; replicas wanted and up, "
        f"between {number(low)} and {number(high)} up; cubes that train, between {number(float(cubes.min()))} and "
        f"{number(float(cubes.max()))}, on each machine, and cubes out of action. Marks: {losses[0]} losses of "
        f"replicas and {losses[1]} of training jobs on the shared pod. All values are in the table shared_pod_day."
    )
