"""The picture of `opticube cost`: what one pass moves and takes by level of memory, and the same step over chips."""

from __future__ import annotations

from sim.report.style import Panels
from sim.report.token_pictures import pass_picture
from sim.token_costs import SliceParts, floor_rows, traffic_rows
from sim.token_tables import TOKEN_FLOOR, TRAFFIC
from topology.errors import InputError
from workloads.costs.asking import replica_on
from workloads.costs.floors import step_floor_s, step_parts_s
from workloads.costs.layouts import Layout
from workloads.costs.levels import ladder_of
from workloads.costs.passes import PassCost, Phase, pass_cost
from workloads.costs.replica import ReplicaCosts
from workloads.planning import maximum_context, shape_ladder


def draw_pass(
    replica: ReplicaCosts,
    phase: Phase,
    batch: int,
    context: int,
    *,
    layout: Layout = Layout.WEIGHT_STATIONARY_2D,
    stages: int = 1,
) -> Panels:
    """Bytes and seconds per token by level; of a decode its time over the slices of the chip's ladder too.

    A token is one that a decode makes, or one of a prompt.
    """
    cost = pass_cost(replica, phase, batch, context, layout, stages)
    name = f"{replica.model.name} on {replica.chips * stages:,} x {replica.chip.name}"
    tables = {"traffic": TRAFFIC.make(_traffic(name, replica, phase, batch, context, stages, cost))}
    if phase is Phase.DECODE:
        slices = slices_over_chips(replica, batch, context, layout)
        tables["token_floor"] = TOKEN_FLOOR.make(floor_rows(name, slices))
    return pass_picture(tables)


def _traffic(
    name: str, replica: ReplicaCosts, phase: Phase, batch: int, context: int, stages: int, cost: PassCost
) -> list[dict[str, object]]:
    tokens = batch * (1 if phase is Phase.DECODE else context)
    per_token = {
        level: {kind: float(moved) / tokens for kind, moved in kinds.items()} for level, kinds in cost.bytes.items()
    }
    return traffic_rows(name, ladder_of(replica), replica.chips * stages, per_token, float(cost.seconds) / tokens)


def slices_over_chips(replica: ReplicaCosts, batch: int, context: int, layout: Layout) -> list[SliceParts]:
    """A decode step on every slice of the chip's ladder, with the formats, spread and stack of a replica."""
    found = []
    for shape in shape_ladder(replica.chip):
        try:
            other, stages = replica_on(
                replica.model, replica.chip, shape, attention=replica.attention, constants=replica.constants
            )
        except InputError:  # the model has too few layers, or the chip's network is unknown
            continue
        other = _with_formats(other, replica)
        found.append(
            SliceParts(
                shape=shape,
                chips=other.chips * stages,
                fits=maximum_context(other, batch, stages) >= context,
                parts_s=step_parts_s(other, batch, context, layout, stages),
                floor_s=step_floor_s(other, batch, context, layout),
            )
        )
    return found


def _with_formats(other: ReplicaCosts, replica: ReplicaCosts) -> ReplicaCosts:
    """The same slice with the number formats of a replica."""
    return ReplicaCosts(
        model=other.model,
        chip=other.chip,
        network=other.network,
        attention=other.attention,
        weight_value_bytes=replica.weight_value_bytes,
        kv_value_bytes=replica.kv_value_bytes,
        constants=other.constants,
    )
