"""The catalogue of models, by key."""

from __future__ import annotations

from types import MappingProxyType

from topology.errors import refuse
from workloads.catalogue.model import Model
from workloads.catalogue.model_table import MODEL_TABLE

MODELS = MappingProxyType({model.key: model for model in MODEL_TABLE})
"""The catalogue, by key."""


def model_by_key(key: str) -> Model:
    """The model of the catalogue that `key` names; InputError lists the known ones."""
    try:
        return MODELS[key]
    except KeyError:
        raise refuse("model", f"{key!r} is not in the catalogue", f"write one of {', '.join(MODELS)}") from None
