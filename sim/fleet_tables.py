"""The tables of several pods behind one queue: what each column means."""

from __future__ import annotations

from sim.tables import Column, DType, TableSpec

_FABRIC = Column("fabric", DType.TEXT, "", "fabric of all pods")
_HOST = Column("host_availability", DType.FLOAT, "1", "long-run share of time a host is up, rack left out")

FLEET = TableSpec(
    "fleet",
    "measure of several pods behind one queue",
    (
        _FABRIC,
        _HOST,
        Column("pods", DType.INT, "pods", "pods of the fleet"),
        Column("measure", DType.TEXT, "", "name of the measure"),
        Column("unit", DType.TEXT, "", "unit of the value"),
        Column("value", DType.FLOAT, "see unit", "the estimate"),
        Column("ci_low", DType.FLOAT, "see unit", "lower end of the 95 % interval"),
        Column("ci_high", DType.FLOAT, "see unit", "upper end of the 95 % interval"),
        Column("n", DType.INT, "", "replications behind the estimate"),
        Column("better", DType.TEXT, "", "higher or lower: which way is an improvement; blank where neither"),
    ),
)
FLEET_PODS = TableSpec(
    "fleet_pods",
    "pod behind one queue, means over replications",
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
