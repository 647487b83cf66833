"""Names of the pictures of a run, as a scenario, `Result.plot` and the files in `plots/` have them."""

from __future__ import annotations

from enum import StrEnum


class PictureName(StrEnum):
    """A picture, in the order of the report."""

    AVAILABILITY = "availability"
    WATERFALL = "waterfall"
    PROMISE = "promise"
    FAILURE = "failure"
    SLICE_SIZES = "slice_sizes"
    LEDGER = "ledger"
    CHIP_HOURS = "chip_hours"
    OPERATIONS = "operations"
    RECOVERY = "recovery"
    CUBES = "cubes"
    WAIT = "wait"
    SHARED_DAY = "shared_day"
    FLEET_WAITS = "fleet_waits"
    GOODPUT = "goodput"
    LATENCIES = "latencies"
    TRAFFIC = "traffic"
    FLOOR = "floor"
    DISTURBANCE = "disturbance"
    EFFECTS = "effects"
    LIFE = "life"
    MEASURED_TIMES = "measured_times"
    MODELS = "models"
    CONTEXTS = "contexts"
