"""The catalogue of chips, by key."""

from __future__ import annotations

from types import MappingProxyType

from topology.errors import refuse
from workloads.catalogue.chip import Chip
from workloads.catalogue.gpus import GPUS
from workloads.catalogue.tpus import TPUS

CHIPS = MappingProxyType({chip.key: chip for chip in (*TPUS, *GPUS)})
"""The catalogue, by key."""


def chip_by_key(key: str) -> Chip:
    """The chip of the catalogue that `key` names; InputError lists the known ones."""
    try:
        return CHIPS[key]
    except KeyError:
        raise refuse("chip", f"{key!r} is not in the catalogue", f"write one of {', '.join(CHIPS)}") from None
