"""Tables about the whole of a machine: its four flows, the waterfall of its services, what causes take."""

from __future__ import annotations

from sim.load_tables import SERVICE
from sim.table_columns import FABRIC, HOST, IN_UNIT, MEASURE, UNIT
from sim.tables import Column, DType, TableSpec

FLOWS = TableSpec(
    "flows",
    "fabric, host availability, flow and figure; prices are a flow of their own",
    (
        FABRIC,
        HOST,
        Column("flow", DType.TEXT, "", "information, resource, fault, cost, or prices (what money was counted with)"),
        Column("slice_chips", DType.INT_OR_NONE, "chips", "chips per slice, where it applies"),
        Column("service", DType.TEXT, "", "service, where it applies"),
        MEASURE,
        UNIT,
        *IN_UNIT,
        Column("note", DType.TEXT, "", "how it is counted, why it is blank, or the mark and source of a price"),
    ),
)
WATERFALL = TableSpec(
    "waterfall",
    "fabric, host availability, service and step from the peak of its chips to tokens in time",
    (
        FABRIC,
        HOST,
        SERVICE,
        Column("step", DType.TEXT, "", "peak, memory-bound, batched, placed, delivered or in time"),
        Column("tokens_per_s", DType.FLOAT, "1/s", "tokens of answers that are left after the step"),
        Column("share_of_peak", DType.FLOAT, "1", "the same over the peak"),
    ),
)
IDEAL = TableSpec(
    "ideal",
    "fabric, host availability, measure and avoidable cause (`opticube run --ideal`)",
    (
        FABRIC,
        HOST,
        Column("slice_chips", DType.INT_OR_NONE, "chips", "chips per slice, where it applies"),
        Column("service", DType.TEXT, "", "service, where it applies"),
        MEASURE,
        UNIT,
        Column("cause", DType.TEXT, "", "what is removed; `as it is` is the measure itself, the other rows change it"),
        *IN_UNIT,
        Column("ledger", DType.FLOAT, "see unit", "change by the ledger: all that is booked under it; blank: nothing"),
        Column("n", DType.INT, "", "pairs behind the change"),
    ),
)

FLOW_SPECS = (FLOWS, WATERFALL, IDEAL)
