"""The tables of a pod that serves and trains: what each column means."""

from __future__ import annotations

from sim.tables import Column, DType, TableSpec

_FABRIC = Column("fabric", DType.TEXT, "", "fabric of the scenario's pod: that of the machine `shared`")
_HOST = Column("host_availability", DType.FLOAT, "1", "long-run share of time a host is up, rack left out")
_MACHINE = Column("machine", DType.TEXT, "", "shared, fixed (divided for good) or fixed_equal_money")
_SERVICE = Column("service", DType.TEXT, "", "name of the service; blank for the whole pod")

SHARED_POD = TableSpec(
    "shared_pod",
    "machine, service and measure of a pod that serves and trains",
    (
        _FABRIC,
        _HOST,
        _MACHINE,
        Column("cubes", DType.INT, "cubes", "cubes of the machine"),
        _SERVICE,
        Column("measure", DType.TEXT, "", "name of the measure"),
        Column("unit", DType.TEXT, "", "unit of the value"),
        Column("value", DType.FLOAT, "see unit", "the estimate"),
        Column("ci_low", DType.FLOAT, "see unit", "lower end of the 95 % interval"),
        Column("ci_high", DType.FLOAT, "see unit", "upper end of the 95 % interval"),
        Column("n", DType.INT, "", "replications behind the estimate"),
        Column("better", DType.TEXT, "", "higher or lower: which way is an improvement; blank where neither"),
    ),
)
SHARED_POD_WAITS = TableSpec(
    "shared_pod_waits",
    "machine, service and cause for which a replica that is wanted is not up",
    (
        _FABRIC,
        _HOST,
        _MACHINE,
        _SERVICE,
        Column(
            "cause",
            DType.TEXT,
            "",
            "no_cube, drain (a job saves and makes way), circuits, preflight, weights, move, detecting, evicting",
        ),
        Column("seconds_per_day", DType.FLOAT, "s/day", "seconds of replicas per day, mean over replications"),
        Column("share", DType.FLOAT, "1", "share of all waiting of the service's replicas"),
    ),
)
SHARED_POD_CHIP_HOURS = TableSpec(
    "shared_pod_chip_hours",
    "machine and use of its chips; serving counts as useful while replicas are up",
    (
        _FABRIC,
        _HOST,
        _MACHINE,
        Column("use", DType.TEXT, "", "what the chips did; each chip is at each instant in the first use that applies"),
        Column("chip_hours", DType.FLOAT, "chip h", "mean over replications"),
        Column("share", DType.FLOAT, "1", "share of all chip-hours of the machine"),
    ),
)
SHARED_POD_DIFFERENCES = TableSpec(
    "shared_pod_differences",
    "pair of machines, service and measure, compared on the same draws",
    (
        _FABRIC,
        _HOST,
        _MACHINE,
        Column("against", DType.TEXT, "", "the machine that is subtracted"),
        _SERVICE,
        Column("measure", DType.TEXT, "", "name of the measure"),
        Column("difference", DType.FLOAT, "of the measure", "mean over replications of the paired differences"),
        Column("ci_low", DType.FLOAT, "of the measure", "lower end of the paired 95 % t-interval"),
        Column("ci_high", DType.FLOAT, "of the measure", "upper end of the paired 95 % t-interval"),
        Column("replications", DType.INT, "", "pairs"),
    ),
)
SHARED_POD_DAY = TableSpec(
    "shared_pod_day",
    "machine, service and look, ten minutes apart, at two days with most losses in the first replication",
    (
        _FABRIC,
        _HOST,
        _MACHINE,
        _SERVICE,
        Column("time_s", DType.FLOAT, "s", "from the start of the run, a Monday at 0 h"),
        Column("demand_per_s", DType.FLOAT, "1/s", "requests per second that are asked for"),
        Column("replicas_wanted", DType.FLOAT, "replicas", "replicas that scaling wants"),
        Column("replicas_up", DType.FLOAT, "replicas", "replicas that serve, a slowed one as its speed"),
        Column("training_cubes", DType.FLOAT, "cubes", "chips on which training runs, in cubes"),
        Column("cubes_out", DType.FLOAT, "cubes", "cubes of which a host, the rack or a link is down"),
        Column("serving_losses", DType.FLOAT, "", "replicas of the service lost until the next look"),
        Column("training_losses", DType.FLOAT, "", "jobs of training lost until the next look"),
    ),
)
REPLICA_CURVES = TableSpec(
    "replica_curves",
    "service and rate of requests at one replica, as autoscaling counts with it",
    (
        _FABRIC,
        _HOST,
        _SERVICE,
        Column("requests_per_s", DType.FLOAT, "1/s", "requests that come to the replica"),
        Column("in_time_per_s", DType.FLOAT, "1/s", "of them those that are served in time (by their tokens)"),
        Column("capacity_per_s", DType.FLOAT, "1/s", "greatest rate within the limits of the service"),
    ),
)
SHARED_SPECS = (
    SHARED_POD,
    SHARED_POD_WAITS,
    SHARED_POD_CHIP_HOURS,
    SHARED_POD_DIFFERENCES,
    SHARED_POD_DAY,
    REPLICA_CURVES,
)
