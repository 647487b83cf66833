"""Chips and models of one's own, from the sections `chips` and `models` of a scenario or of a file of their own.

An entry may start from one of the catalogue (`like: llama3_70b`) and change what differs; else it says everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from sim.scenario_faults import KEY_NAME, PRINTED_NAME, nearest
from sim.scenario_parts import Count, Section
from topology.errors import InputError, refuse
from topology.units import Unit
from workloads.catalogue.chip import Chip, Interconnect
from workloads.catalogue.chips import CHIPS
from workloads.catalogue.model import Experts, LatentAttention, Model, SlidingWindow
from workloads.catalogue.models import MODELS
from workloads.catalogue.stacks import STACKS
from workloads.provenance import Mark, Source

FlopRate = Annotated[float, Unit("FLOP/s", low=1e6, high=1e21)]
ByteRate = Annotated[float, Unit("byte/s", low=1e3, high=1e18)]
Memory = Annotated[float, Unit("byte", low=1e6, high=1e18)]
HopTime = Annotated[float, Unit("s", high=1.0)]
"""Bounds far outside of any machine: times of passes stay numbers within them."""
Name = Annotated[str, Field(pattern=KEY_NAME)]
PrintedName = Annotated[str, Field(pattern=PRINTED_NAME)]
Entry = TypeVar("Entry", Chip, Model)
Problem = tuple[tuple[str | int, ...], str, str]

OWN = "yours"
"""Source of what a user says."""


class ChipSection(Section):
    """A chip of one's own."""

    like: str | None = None
    """Key of a chip of the catalogue that it resembles; what is left out is as there."""
    name: PrintedName | None = None
    """Name in tables."""
    family: str | None = None
    """Whose measured software stack it is taken to have: `tpu`, `a100`, `h100`, `rtx_4090`."""
    interconnect: Literal["torus", "switch"] | None = None
    """`torus`: links along the axes of a slice; `switch`: one switch between all chips of a node."""
    peak_flops_per_s: FlopRate | None = None
    """Peak of bf16 products, such as `275 TFLOP/s`."""
    hbm_bytes: Memory | None = None
    """Size of its memory, such as `32 GiB`."""
    hbm_bytes_per_s: ByteRate | None = None
    """Rate of its memory, such as `1200 GB/s`."""
    link_bytes_per_s: ByteRate | None = None
    """One way: of one of two links per axis (torus), or of the chip (switch)."""
    hop_s: HopTime | None = None
    """Time of one hop, or of one step through the switch, such as `1 us`."""
    axes: Annotated[int, Field(ge=1, le=3)] | None = None
    """Dimensions of its torus."""
    ring_chips: Count | None = None
    """An axis closes to a ring where it is made of whole multiples of so many chips."""
    node_chips: Count | None = None
    """Chips behind one switch."""
    network_bytes_per_s: ByteRate | None = None
    """Network between nodes, one way, per chip."""
    network_hop_s: HopTime | None = None
    """Time of one step between nodes."""


class LatentSection(Section):
    """Multi-head latent attention."""

    rank: Count
    """Values of the latent vector that is cached per token."""
    rope_dim: Count
    """Values of the rotated key that is cached beside it."""
    query_rank: Count
    """Rank of the compressed queries."""
    nope_dim: Count
    """Width of a head's key beside the rotated part."""
    value_dim: Count
    """Width of a head's values."""


class ExpertsSection(Section):
    """Mixture of experts."""

    count: Count
    """Experts per layer."""
    active: Count
    """Experts that one token uses."""
    d_ff: Count
    """Inner width of an expert."""
    shared: Annotated[int, Field(ge=0)] = 0
    """Experts that all tokens use."""
    dense_layers: Annotated[int, Field(ge=0)] = 0
    """First layers with one block of the model's own `d_ff` in their place."""


class WindowSection(Section):
    """Sliding window."""

    tokens: Count
    """Last tokens that a local layer sees."""
    layers: Count
    """Layers that are local."""


class ModelSection(Section):
    """A model of one's own."""

    like: str | None = None
    """Key of a model of the catalogue that it resembles; what is left out is as there."""
    name: PrintedName | None = None
    """Name in tables."""
    layers: Count | None = None
    """Layers."""
    d_model: Count | None = None
    """Width."""
    heads: Count | None = None
    """Query heads."""
    padded_heads: Count | None = None
    """Query heads as they are executed, padding included; `heads` where it is left out."""
    kv_heads: Count | None = None
    """Key and value heads: 1 is multi-query, `heads` is multi-head."""
    head_dim: Count | None = None
    """Width of a head."""
    d_ff: Count | None = None
    """Inner width of the feed-forward block."""
    gated: bool | None = None
    """Three feed-forward matrices in place of two."""
    vocabulary: Count | None = None
    """Tokens that there are."""
    parallel_block: bool | None = None
    """Attention and feed-forward side by side."""
    tied_embeddings: bool | None = None
    """One matrix for input and output."""
    latent: LatentSection | None = None
    """Multi-head latent attention."""
    experts: ExpertsSection | None = None
    """Mixture of experts."""
    window: WindowSection | None = None
    """Layers with a sliding window."""


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """Chips and models by key: the catalogue's and one's own."""

    chips: Mapping[str, Chip]
    models: Mapping[str, Model]


PLAIN = Catalogue(chips=CHIPS, models=MODELS)


def chip_of(key: str, section: ChipSection) -> Chip:
    """The chip that a section describes; ValueError says what is missing or impossible."""
    said = {name: value for name, value in section if value is not None and name != "like"}
    if "interconnect" in said:
        said["interconnect"] = Interconnect(said["interconnect"])
    sources = tuple(Source(name, Mark.ASSUMED, OWN) for name in said)
    if section.like is not None:
        base = _known("like", section.like, CHIPS)
        kept = tuple(source for source in base.sources if source.field not in said)
        return replace(base, key=key, **{"name": key, **said}, sources=(*kept, *sources))
    optional = ("name", "hop_s", "axes", "ring_chips", "node_chips", "network_bytes_per_s", "network_hop_s")
    _complete(ChipSection, said, optional)
    return Chip(key=key, **{"name": key, "hop_s": 1e-6, **said}, sources=sources)


def model_of(key: str, section: ModelSection) -> Model:
    """The model that a section describes; its parameters follow from its shape. ValueError says what is wrong."""
    said: dict[str, Any] = {name: value for name, value in section if value is not None and name != "like"}
    for name, kind in (("latent", LatentAttention), ("experts", Experts), ("window", SlidingWindow)):
        if name in said:
            said[name] = kind(**dict(said[name]))
    sources = tuple(Source(name, Mark.ASSUMED, OWN) for name in said)
    if section.like is None:
        _complete(ModelSection, said, ("name", "padded_heads", "latent", "experts", "window"))
    else:
        base = _known("like", section.like, MODELS)
        whole = {item.name: getattr(base, item.name) for item in fields(Model)}
        padded = base.padded_heads if base.padded_heads != base.heads and "heads" not in said else None
        kept = tuple(source for source in base.sources if source.field not in said)
        said, sources = {**whole, "padded_heads": padded, "name": key, **said}, (*kept, *sources)
    said["padded_heads"] = said.get("padded_heads") or said["heads"]
    model = Model(**{"name": key, **said, "key": key, "parameters": 1.0, "sources": sources})
    bare = replace(model, padded_heads=model.heads)
    embeddings = (1 if model.tied_embeddings else 2) * model.vocabulary * model.d_model
    return replace(model, parameters=bare.layers * bare.layer_parameters + embeddings)


def _known(where: str, key: str, known: Mapping[str, Entry]) -> Entry:
    if key not in known:
        raise ValueError(f"{where}: `{key[:40]}` is not in the catalogue: {nearest(key, list(known))}")
    return known[key]


def _complete(section: type[Section], said: Mapping[str, Any], optional: tuple[str, ...]) -> None:
    """All keys are there that an entry needs that is like no other."""
    needed = [name for name in section.model_fields if name not in ("like", *optional)]
    missing = [name for name in needed if name not in said]
    if missing:
        raise ValueError(f"{', '.join(missing)} missing: write them, or `like:` with a key of the catalogue")


def catalogue_with(
    chips: Mapping[str, ChipSection], models: Mapping[str, ModelSection]
) -> tuple[Catalogue, list[Problem]]:
    """The catalogue with one's own entries, and what is wrong with these: path, what, what to write."""
    problems: list[Problem] = []
    own_chips: dict[str, Chip] = {}
    own_models: dict[str, Model] = {}
    families = list(dict.fromkeys(entry.family for entry in STACKS))
    for key, chip_section in chips.items():
        try:
            own_chips[key] = chip_of(key, chip_section)
            family = own_chips[key].family
            if family not in families:
                advice = nearest(family, families)
                problems.append((("chips", key, "family"), f"no stack is known for family `{family}`", advice))
        except ValueError as error:
            problems.append((("chips", key), *_parts(error)))
        if key in CHIPS:
            problems.append((("chips", key), f"`{key}` is in the catalogue", "write another key"))
    for key, model_section in models.items():
        try:
            own_models[key] = model_of(key, model_section)
        except ValueError as error:
            problems.append((("models", key), *_parts(error)))
        if key in MODELS:
            problems.append((("models", key), f"`{key}` is in the catalogue", "write another key"))
    return Catalogue(chips={**CHIPS, **own_chips}, models={**MODELS, **own_models}), problems


def _parts(error: ValueError) -> tuple[str, str]:
    """What is wrong, and what to write, from an error's text."""
    what, colon, write = str(error).rpartition(": ")
    return (what, write) if colon and write.startswith("write") else (str(error), "change the entry")


def catalogue_of(path: Path | None) -> Catalogue:
    """The catalogue with the entries of a file of one's own; InputError with the line of each fault."""
    if path is None:
        return PLAIN
    from pydantic import ValidationError

    from sim.quantities import parse_quantity
    from sim.scenario_faults import fault_at, faults_of
    from sim.strict_yaml import parse_document, read_bytes

    document = parse_document(read_bytes(path), str(path))
    own = {key: value for key, value in document.data.items() if key in ("chips", "models")}
    if not own:
        raise refuse(str(path), "the file has neither `chips` nor `models`", "write one of these sections")
    try:
        read = OwnSections.model_validate(own, context={"parse": parse_quantity})
    except ValidationError as error:
        raise InputError(faults_of(error, document, OwnSections.model_json_schema)) from None
    catalogue, problems = catalogue_with(read.chips, read.models)
    if problems:
        raise InputError([fault_at(document, path_of, what, write) for path_of, what, write in problems])
    return catalogue


class OwnSections(Section):
    """The two sections of a file of one's own; a scenario has them too."""

    chips: dict[Name, ChipSection] = Field(default_factory=dict)
    """Chips of one's own by key."""
    models: dict[Name, ModelSection] = Field(default_factory=dict)
    """Models of one's own by key."""
