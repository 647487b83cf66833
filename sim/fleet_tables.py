"""The tables of several pods: what each column means."""

from __future__ import annotations

from sim.tables import Column, DType, TableSpec

_FABRIC = Column("fabric", DType.TEXT, "", "fabric of all pods")
_HOST = Column("host_availability", DType.FLOAT, "1", "long-run share of time a host is up, rack left out")

_MEASURE = (
    Column("measure", DType.TEXT, "", "name of the measure"),
    Column("unit", DType.TEXT, "", "unit of the value"),
    Column("value", DType.FLOAT, "see unit", "the estimate"),
    Column("ci_low", DType.FLOAT, "see unit", "lower end of the 95 % interval"),
    Column("ci_high", DType.FLOAT, "see unit", "upper end of the 95 % interval"),
    Column("n", DType.INT, "", "replications behind the estimate"),
    Column("better", DType.TEXT, "", "higher or lower: which way is an improvement; blank where neither"),
)
_PODS = Column("pods", DType.INT, "pods", "pods of the fleet")

FLEET = TableSpec("fleet", "measure of several pods, jobs placed when they arrive", (_FABRIC, _HOST, _PODS, *_MEASURE))
_QUEUES = Column("queues", DType.TEXT, "", "own: one for each pod; one: one for all; one_less_own: paired difference")
FLEET_QUEUES = TableSpec(
    "fleet_queues",
    "measure of several pods, by queues",
    (_FABRIC, _HOST, _PODS, _QUEUES, *_MEASURE),
)
FLEET_WAITS = TableSpec(
    "fleet_waits",
    "wait of jobs of several pods, by queues",
    (
        _FABRIC,
        _HOST,
        _QUEUES,
        Column("longer_than_s", DType.FLOAT, "s", "a wait from arrival to the first slice, or to the horizon"),
        Column("share", DType.FLOAT, "1", "share of jobs that wait longer, over all replications"),
    ),
)
FLEET_PODS = TableSpec(
    "fleet_pods",
    "pod of several with own queues, means over replications",
    (
        _FABRIC,
        _HOST,
        Column("pod", DType.INT, "", "number of the pod"),
        Column("jobs", DType.FLOAT, "jobs", "jobs placed on it that arrived after the warm-up"),
        Column("utilisation", DType.FLOAT, "1", "share of its chip-hours that jobs hold"),
        Column("useful_share", DType.FLOAT, "1", "share of its chip-hours that is useful"),
        Column("wait_mean_s", DType.FLOAT, "s", "mean time from arrival to the first slice, or to the horizon"),
        Column("losses", DType.FLOAT, "jobs", "losses of running jobs"),
    ),
)
