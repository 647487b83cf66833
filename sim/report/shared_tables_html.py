"""Tables of a pod that serves and trains, and of several pods, for the page."""

from __future__ import annotations

from sim.report.context import Tables, table_of
from sim.report.fleet_words import QUEUE_WORDS, fleet_values, queue_values
from sim.report.html_tables import HtmlTable
from sim.report.shared_words import (
    CAUSE_WORDS,
    MACHINE_WORDS,
    blocks_of,
    machine_heads,
    machines_of_table,
    words_and_values,
)
from sim.report.words import number, percent


def shared_pod_html(tables: Tables) -> HtmlTable:
    """Measures: a row per service and measure, a column per machine."""
    table = table_of(tables, "shared_pod")
    rows: list[list[str]] = []
    heads: list[str] = []
    for label, here in blocks_of(table):
        heads = machine_heads(here)
        rows.append([label])
        rows += [[words, *cells] for words, cells in words_and_values(here)]
    return HtmlTable(
        caption="A pod that serves and trains: means over replications, ± half of the 95 % interval",
        heads=["measure", *heads],
        rows=rows,
    )


def shared_waits_html(tables: Tables) -> HtmlTable:
    """Seconds of waiting of replicas per day by cause, a column per machine."""
    table = table_of(tables, "shared_pod_waits")
    machines = machines_of_table(table)
    rows: list[list[str]] = []
    for label, here in blocks_of(table):
        for service in dict.fromkeys(str(name) for name in here["service"]):
            rows.append([f"{service}, {label}"])
            mine = here[here["service"] == service]
            for cause, words in CAUSE_WORDS.items():
                found = {str(row["machine"]): row for _, row in mine[mine["cause"] == cause].iterrows()}
                cells = [
                    f"{number(float(found[name]['seconds_per_day']))} ({percent(float(found[name]['share']), 0)})"
                    for name in machines
                ]
                rows.append([words, *cells])
    return HtmlTable(
        caption="What replicas that are wanted wait for: seconds of replicas per day, and the share of all waiting",
        heads=["cause", *(MACHINE_WORDS[name] for name in machines)],
        rows=rows,
    )


def fleet_html(tables: Tables) -> HtmlTable:
    """Measures of several pods behind one queue: a row per measure."""
    rows: list[list[str]] = []
    for label, here in blocks_of(table_of(tables, "fleet")):
        rows.append([label])
        rows += [[words, value] for words, value in fleet_values(here)]
    return HtmlTable(caption="Several pods, jobs placed when they arrive", heads=["measure", "value"], rows=rows)


def fleet_queues_html(tables: Tables) -> HtmlTable:
    """Pods with queues of their own, behind one, and the difference: a row per measure."""
    rows: list[list[str]] = []
    for label, here in blocks_of(table_of(tables, "fleet_queues")):
        rows.append([label])
        rows += [[words, *cells] for words, cells in queue_values(here)]
    return HtmlTable(
        caption="The same jobs, failures and pods: means over replications, ± half of the 95 % interval (paired)",
        heads=["measure", *QUEUE_WORDS.values()],
        rows=rows,
    )
