"""From the words of a user to a replica: shape, number formats, software stack."""

from __future__ import annotations

from topology.errors import refuse
from workloads.catalogue.chip import Chip
from workloads.catalogue.model import Model
from workloads.catalogue.stack import StackConstants
from workloads.catalogue.stacks import constants_of
from workloads.collectives import network_rate, sends_between_nodes
from workloads.costs.layouts import Attention, bytes_per_value
from workloads.costs.replica import ReplicaCosts
from workloads.costs.shapes import replica_shape


def replica_on(
    model: Model,
    chip: Chip,
    shape: str,
    *,
    attention: Attention = Attention.HEADS_X_BATCH,
    weights: str = "bf16",
    kv: str = "bf16",
    stack: str | None = None,
    constants: StackConstants | None = None,
) -> tuple[ReplicaCosts, int]:
    """A replica of `model` on chips of `shape` (one stage of it), and its pipeline stages; InputError for bad words."""
    network, stages = replica_shape(chip, shape)
    if stages > model.layers:
        what = f"{model.name} has {model.layers} layers, fewer than {stages} stages"
        raise refuse("SHAPE", what, "write fewer stages")
    replica = ReplicaCosts(
        model=model,
        chip=chip,
        network=network,
        attention=attention,
        weight_value_bytes=bytes_per_value(weights, "--weights"),
        kv_value_bytes=bytes_per_value(kv, "--kv"),
        constants=constants or constants_of(chip, stack, model),
    )
    if sends_between_nodes(chip, network.chips, stages):
        network_rate(chip, network.chips * stages)  # refuses a chip whose network nobody knows
    return replica, stages
