"""The tables of a run: what each column means. `docs/tables.md` is written from these declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from sim.fleet_tables import FLEET, FLEET_PODS, FLEET_QUEUES, FLEET_WAITS
from sim.flow_tables import FLOW_SPECS
from sim.load_tables import DISTURBANCE, LATENCIES, LOAD_CURVE, REQUESTS, SERVICE
from sim.pass_tables import ERRORS_OF_TIMES, MEASURED_TIMES, PASSES
from sim.replay_tables import REPLAY_SPECS
from sim.shared_tables import SHARED_SPECS
from sim.table_columns import BETTER, CHIPS, CHIPS_OR_NONE, FABRIC, HIGH, HOST, IN_UNIT, LOW, MEASURE, UNIT, VALUE
from sim.tables import Column, DType, TableSpec, text_of_setting
from sim.token_tables import REQUEST_LIFE, TOKEN_FLOOR, TRAFFIC

AVAILABILITY = TableSpec(
    "availability",
    "fabric, host availability, slice size and form of availability",
    (
        FABRIC,
        HOST,
        CHIPS,
        Column("form", DType.TEXT, "", "expected, expected_with_light, guaranteed or delivered"),
        Column("time_share", DType.FLOAT, "1", "share of time of a guaranteed value; blank for other forms"),
        VALUE,
        LOW,
        HIGH,
        Column("replications", DType.INT, "", "independent histories behind the estimate"),
        Column("closed_form", DType.FLOAT, "1", "the value for independent hosts; blank where none holds"),
        Column("agrees", DType.BOOL_OR_NONE, "", "whether estimate and closed form agree; blank where none holds"),
        Column("shuffle_low", DType.FLOAT, "1", "lowest value over shuffles of a log; blank without"),
        Column("shuffle_high", DType.FLOAT, "1", "highest value over shuffles of a log"),
    ),
)
REPLICATIONS = TableSpec(
    "replications",
    "replication of one availability estimate, or of one measure of a pod in operation or of a very large job",
    (
        FABRIC,
        HOST,
        CHIPS_OR_NONE,
        Column("form", DType.TEXT, "", "expected, expected_with_light, delivered, or a measure of jobs"),
        Column("replication", DType.INT, "", "number of the history (of the shuffle, for a log)"),
        Column("value", DType.FLOAT, "of the form", "value of the form in this history alone; NaN: nothing to measure"),
    ),
)
DIFFERENCES = TableSpec(
    "differences",
    "pair of fabrics, or of values of a swept key, compared on the same draws",
    (
        FABRIC,
        Column("compared", DType.TEXT, "", "pod.fabric, or the swept key of which two values are compared"),
        Column("against", DType.TEXT, "", "what is subtracted: the static fabric, or the first value of the key"),
        HOST,
        CHIPS_OR_NONE,
        Column("form", DType.TEXT, "", "expected, expected_with_light, delivered, or a measure of jobs"),
        Column("difference", DType.FLOAT, "of the form", "mean over replications of the paired differences"),
        Column("ci_low", DType.FLOAT, "of the form", "lower end of the paired 95 % t-interval"),
        Column("ci_high", DType.FLOAT, "of the form", "upper end of the paired 95 % t-interval"),
        Column("replications", DType.INT, "", "pairs"),
    ),
)
PROMISE = TableSpec(
    "promise",
    "fabric and host availability, for one set of slices",
    (
        FABRIC,
        HOST,
        Column("slices", DType.TEXT, "", "the promised slices, as 8x8x16:3 (or chips alone, 1024:3)"),
        Column("time_share", DType.FLOAT, "1", "share of time for which all are held at once"),
        Column("cubes", DType.INT_OR_NONE, "cubes", "fewest cubes that hold the promise; blank where not known"),
        Column("chips", DType.INT_OR_NONE, "chips", "the same in chips"),
    ),
)
CLIFF = TableSpec(
    "cliff",
    "fabric and host availability",
    (
        FABRIC,
        HOST,
        Column("cliff_chips", DType.INT_OR_NONE, "chips", "smallest slice with expected availability under 50 %"),
    ),
)
SERVICES = TableSpec(
    "service",
    "fabric, host availability, service and measure",
    (
        FABRIC,
        HOST,
        SERVICE,
        MEASURE,
        UNIT,
        *IN_UNIT,
        Column("n", DType.INT, "", "replications behind the estimate"),
        BETTER,
    ),
)
SERVICE_REPLICATIONS = TableSpec(
    "service_replications",
    "replication of one measure of a service, or of a pod that serves and trains",
    (
        FABRIC,
        HOST,
        SERVICE,
        MEASURE,
        Column("replication", DType.INT, "", "number k of n: windows, histories and losses k, k + n, k + 2 n, ..."),
        Column("value", DType.FLOAT, "of the measure", "the measure from these alone; NaN: nothing to measure"),
    ),
)
EFFECTS = TableSpec(
    "effects",
    "combination of swept values, compared with the first of each on the same draws",
    (
        FABRIC,
        HOST,
        SERVICE,
        MEASURE,
        Column("name", DType.TEXT, "", "what the scenario calls the combination; empty where it does not"),
        Column("changed", DType.INT, "", "how many swept values are not the first of theirs"),
        Column("value", DType.FLOAT, "of the measure", "mean over replications"),
        Column("ci_low", DType.FLOAT, "of the measure", "lower end of its 95 % t-interval"),
        Column("ci_high", DType.FLOAT, "of the measure", "upper end"),
        Column("ratio", DType.FLOAT, "1", "so many times the first combination; geometric mean of paired ratios"),
        Column("ratio_low", DType.FLOAT, "1", "lower end of its paired 95 % t-interval; blank without variation"),
        Column("ratio_high", DType.FLOAT, "1", "upper end"),
        Column("one_by_one", DType.FLOAT, "1", "product of the ratios of its changes, each made alone"),
        Column("same_ratio", DType.FLOAT, "1", "so many times the one in which only the first key has its first value"),
        Column("same_low", DType.FLOAT, "1", "lower end of its paired 95 % t-interval; blank without variation"),
        Column("same_high", DType.FLOAT, "1", "upper end"),
        Column("interaction", DType.FLOAT, "log", "log of the ratio minus the sum of logs of the single changes"),
        Column("interaction_low", DType.FLOAT, "log", "lower end of its paired 95 % t-interval"),
        Column("interaction_high", DType.FLOAT, "log", "upper end"),
        Column("replications", DType.INT, "", "pairs behind the ratio; fewer where a value is 0"),
    ),
)
SLICE_SIZES = TableSpec(
    "slice_sizes",
    "service and slice shape, one replica of it alone",
    (
        SERVICE,
        Column("shape", DType.TEXT, "chips", "slice of one replica"),
        Column("chips", DType.INT, "chips", "chips of one replica"),
        Column("fits", DType.BOOL, "", "weights and one longest request fit its memory"),
        Column("meets", DType.BOOL, "", "the limits are met at a tenth of its saturated rate, or more"),
        Column("ttft_p50_s", DType.FLOAT, "s", "median time to first token of an otherwise idle replica"),
        Column("ttft_p99_s", DType.FLOAT, "s", "99th percentile of the time to first token of an idle replica"),
        Column("tpot_p50_s", DType.FLOAT, "s", "median time per later token of an idle replica"),
        Column("capacity_requests_per_s", DType.FLOAT, "1/s", "greatest rate within the limits, one replica"),
        Column("requests_per_s_per_1024_chips", DType.FLOAT, "1/s", "that rate for 1024 chips of such replicas"),
        Column("chip_s_per_token", DType.FLOAT, "chip s", "chip-seconds per token where requests never run out"),
    ),
)
LEDGER = TableSpec(
    "ledger",
    "fabric, host availability, service, scope and category of waiting",
    (
        FABRIC,
        HOST,
        SERVICE,
        Column("scope", DType.TEXT, "", "all requests of the steady windows, or those caught in one failure"),
        Column("category", DType.TEXT, "", "where a request's time goes; the categories add up to its whole time"),
        Column("seconds_per_request", DType.FLOAT, "s", "mean over requests"),
        Column("share", DType.FLOAT, "1", "share of the whole time"),
    ),
)
CHIP_HOURS = TableSpec(
    "chip_hours",
    "fabric, host availability, slice size and use",
    (
        FABRIC,
        HOST,
        CHIPS,
        Column("use", DType.TEXT, "", "what the chips did; each chip is at each instant in the first use that applies"),
        Column("chip_hours", DType.FLOAT, "chip h", "mean over replications of the delivered study"),
        Column("share", DType.FLOAT, "1", "share of all chip-hours of the pod"),
    ),
)
FAILURE_STORY = TableSpec(
    "failure_story",
    "instant (a second, or more of a long recovery) of one failure of one replica",
    (
        FABRIC,
        SERVICE,
        Column("t_s", DType.FLOAT, "s", "time from the loss"),
        Column("tokens_per_s", DType.FLOAT, "1/s", "tokens delivered per second until the next row"),
        Column("stage", DType.TEXT, "", "what the lost replica does: running, detecting, evicting, ..."),
        Column("replicas_up", DType.INT, "", "replicas that serve"),
    ),
)
OPERATIONS = TableSpec(
    "operations",
    "fabric, host availability and measure of a pod in operation",
    (FABRIC, HOST, MEASURE, UNIT, *IN_UNIT, Column("n", DType.INT, "", "replications behind the estimate"), BETTER),
)
LARGE_JOB = TableSpec(
    "large_job",
    "measure of one very large job on flat servers",
    (FABRIC, HOST, MEASURE, UNIT, *IN_UNIT, Column("n", DType.INT, "", "runs behind the estimate"), BETTER),
)
OPERATIONS_CHIP_HOURS = TableSpec(
    "operations_chip_hours",
    "fabric, host availability and use of chips on a pod in operation",
    (
        FABRIC,
        HOST,
        Column("use", DType.TEXT, "", "what the chips did; each chip is at each instant in the first use that applies"),
        Column("operators", DType.TEXT, "", "what operators call it (assumption); several uses may share a name"),
        Column("chip_hours", DType.FLOAT, "chip h", "mean over replications"),
        Column("share", DType.FLOAT, "1", "share of all chip-hours of the pod"),
    ),
)
JOB_SIZES = TableSpec(
    "job_sizes",
    "fabric, host availability and slice size of jobs",
    (
        FABRIC,
        HOST,
        CHIPS,
        Column("arrived", DType.FLOAT, "jobs", "jobs that arrived after the warm-up, mean over replications"),
        Column("rejected", DType.FLOAT, "jobs", "of them those that the pod could never hold"),
        Column("finished", DType.FLOAT, "jobs", "of them those that finished by the horizon"),
        Column(
            "wait_mean_s",
            DType.FLOAT,
            "s",
            "mean time from arrival to the first slice, or to the horizon",
        ),
        Column("slowdown_mean", DType.FLOAT, "1", "mean of time from arrival to end over work; blank where none ended"),
    ),
)
JOB_PROFILES = TableSpec(
    "job_profiles",
    "fabric, host availability and profile of jobs",
    (
        FABRIC,
        HOST,
        Column("profile", DType.TEXT, "", "profile of the jobs, `none` for those without; no rows where none has any"),
        Column("arrived", DType.FLOAT, "jobs", "jobs that arrived after the warm-up, mean over replications"),
        Column("finished", DType.FLOAT, "jobs", "of them those that finished by the horizon"),
        Column("wait_mean_s", DType.FLOAT, "s", "mean time from arrival to the first slice, or to the horizon"),
        Column("ettr", DType.FLOAT, "1", "productive time over time since the first running, weighted by chips"),
        Column("losses", DType.FLOAT, "jobs", "losses of running jobs, mean over replications"),
        Column("lost_s_per_loss", DType.FLOAT, "s", "running that a loss undoes; blank without losses"),
        Column("back_s_per_loss", DType.FLOAT, "s", "detection, eviction and start stages per loss, queueing aside"),
    ),
)
FAILURES_FELT = TableSpec(
    "failures_felt",
    "fabric, host availability and kind of component",
    (
        FABRIC,
        HOST,
        Column("kind", DType.TEXT, "", "kind of the component that failed"),
        Column("failures", DType.FLOAT, "", "failures after the warm-up, mean over replications"),
        Column("felt", DType.FLOAT, "", "of them those that stopped a running job"),
        Column("jobs_lost", DType.FLOAT, "", "losses of running jobs that they caused"),
        Column("chips_per_failure", DType.FLOAT, "chips", "chips of the jobs that one failure stops: its blast radius"),
    ),
)
RECOVERY_STAGES = TableSpec(
    "recovery_stages",
    "fabric, host availability and stage of recovery",
    (
        FABRIC,
        HOST,
        Column("stage", DType.TEXT, "", "stage between the loss of a running job and its running again"),
        Column(
            "seconds_per_loss", DType.FLOAT, "s", "mean over losses after the warm-up, those that are not over included"
        ),
        Column("share", DType.FLOAT, "1", "share of all time of recovery"),
    ),
)
PROMISE_MONTHS = TableSpec(
    "promise_months",
    "fabric, host availability and month of a pod in operation with a promise",
    (
        FABRIC,
        HOST,
        Column("slices", DType.TEXT, "", "the promised slices, as 8x8x16:3"),
        Column("time_share", DType.FLOAT, "1", "share of each month for which all are to be held at once"),
        Column("month", DType.INT, "", "number of the month: a calendar month where a log has dates, else 30 d"),
        Column("start_date", DType.TEXT, "", "date on which it begins; empty without dates"),
        Column("start_s", DType.FLOAT, "s", "its start from that of the run, after the warm-up"),
        Column("end_s", DType.FLOAT, "s", "its end"),
        Column("held", DType.FLOAT, "1", "share of it for which all could be held, mean over replications"),
        Column("ci_low", DType.FLOAT, "1", "lower end of the 95 % t-interval; NaN where there is none"),
        Column("ci_high", DType.FLOAT, "1", "upper end"),
        Column("kept", DType.FLOAT, "1", "share of the replications in which that was enough"),
        Column("replications", DType.INT, "", "replications behind it"),
    ),
)
SUMMARY_COLUMNS = (
    Column("scenario", DType.TEXT, "", "name of the scenario"),
    Column("point", DType.INT_OR_NONE, "", "number of the sweep point; blank where a row is about the whole run"),
    FABRIC,
    Column("slice_chips", DType.INT_OR_NONE, "chips", "chips per slice, where it applies"),
    SERVICE,
    MEASURE,
    UNIT,
    *IN_UNIT,
    Column("n", DType.INT_OR_NONE, "", "replications behind the estimate"),
    BETTER,
)
SUMMARY = TableSpec("summary", "sweep point, slice size, service and measure", SUMMARY_COLUMNS)

SPECS = {
    spec.name: spec
    for spec in (
        AVAILABILITY,
        REPLICATIONS,
        DIFFERENCES,
        PROMISE,
        CLIFF,
        SERVICES,
        SERVICE_REPLICATIONS,
        EFFECTS,
        SLICE_SIZES,
        LEDGER,
        CHIP_HOURS,
        FAILURE_STORY,
        LOAD_CURVE,
        DISTURBANCE,
        LATENCIES,
        REQUESTS,
        REQUEST_LIFE,
        TRAFFIC,
        TOKEN_FLOOR,
        OPERATIONS,
        OPERATIONS_CHIP_HOURS,
        JOB_SIZES,
        JOB_PROFILES,
        FAILURES_FELT,
        RECOVERY_STAGES,
        *REPLAY_SPECS,
        PROMISE_MONTHS,
        LARGE_JOB,
        *SHARED_SPECS,
        FLEET,
        FLEET_PODS,
        FLEET_QUEUES,
        FLEET_WAITS,
        MEASURED_TIMES,
        ERRORS_OF_TIMES,
        PASSES,
        *FLOW_SPECS,
        SUMMARY,
    )
}

IMPLIED_KEYS = ("pod.fabric", "failures.host.availability")
"""Swept keys that the tables' own columns already show."""


def make_table(name: str, rows: Sequence[Mapping[str, Any]], settings: Mapping[str, object]) -> pd.DataFrame:
    """A declared table with the swept keys of its point, `settings`, as further columns behind the declared ones.

    Keys that a declared column shows (`pod.fabric`, the availability of hosts) are left out, except in `summary`, which
    has no column for the availability of hosts. Mappings are written as JSON (see `text_of_setting`).
    """
    table = SPECS[name].make(list(rows))
    implied = ("pod.fabric",) if name == "summary" else IMPLIED_KEYS
    for key, value in settings.items():
        if key not in implied:
            table[key] = pd.Series([text_of_setting(value)] * len(table), dtype="string")
    return table
