"""Columns that many tables of a run have in common."""

from __future__ import annotations

from sim.tables import Column, DType

FABRIC = Column("fabric", DType.TEXT, "", "reconfigurable, static_aligned, static_contiguous or any_host")
HOST = Column("host_availability", DType.FLOAT, "1", "long-run share of time a host is up, rack left out")
CHIPS = Column("slice_chips", DType.INT, "chips", "chips per slice")
CHIPS_OR_NONE = Column("slice_chips", DType.INT_OR_NONE, "chips", "chips per slice; blank where it does not apply")
VALUE = Column("value", DType.FLOAT, "1", "the estimate, a share of the pod's chips")
LOW = Column("ci_low", DType.FLOAT, "1", "lower end of the 95 % interval; blank where no variation was seen")
HIGH = Column("ci_high", DType.FLOAT, "1", "upper end of the 95 % interval; blank where no variation was seen")
MEASURE = Column("measure", DType.TEXT, "", "name of the measure")
UNIT = Column("unit", DType.TEXT, "", "unit of the value")
IN_UNIT = (
    Column("value", DType.FLOAT, "see unit", "the estimate"),
    Column("ci_low", DType.FLOAT, "see unit", "lower end of the 95 % interval"),
    Column("ci_high", DType.FLOAT, "see unit", "upper end of the 95 % interval"),
)
BETTER = Column("better", DType.TEXT, "", "higher or lower: which way is an improvement; blank where neither")
