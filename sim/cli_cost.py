"""The command `cost`: seconds and bytes of one pass of a model on chips, by part, with bounds and what binds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sim.cli_output import say, say_json, say_table
from sim.exit_codes import ExitStatus
from sim.files import picture_faults
from sim.own_catalogue import Catalogue, catalogue_of
from sim.scenario_faults import nearest
from topology.errors import Fault, InputError, refuse
from topology.shape import Shape
from workloads.catalogue.chip import Chip, Interconnect
from workloads.catalogue.model import BYTES_PER_VALUE
from workloads.collectives import SliceNetwork
from workloads.costs.asking import replica_on
from workloads.costs.layouts import Attention, Layout
from workloads.costs.levels import ladder_of
from workloads.costs.passes import PassCost, Phase, micro_batches, pass_cost, pass_seconds
from workloads.costs.replica import ReplicaCosts

BATCH_MAX = 1_000_000
CONTEXT_MAX = 100_000_000
FAULTS_MAX_CHIPS = 4096
LAYOUT_WORTH_TELLING = 0.02
"""Another layout that saves so much is named."""
KINDS = ("weights", "kv_read", "kv_written", "activations")
"""What bytes are of."""
ROUTES = "wild_first"
"""How slices go round dead links (`opticube topology` compares the methods)."""


@dataclass(frozen=True, kw_only=True)
class CostQuestion:
    """What is asked, as texts and numbers from the command line."""

    model: str
    chip: str
    shape: str
    phase: str
    batch: int
    context: int
    layout: str = Layout.WEIGHT_STATIONARY_2D.value
    attention: str = Attention.HEADS_X_BATCH.value
    weights: str = "bf16"
    kv: str = "bf16"
    stack: str | None = None
    faults: Sequence[str] = ()
    own: Path | None = None
    picture: Path | None = None


def cost_command(question: CostQuestion, as_json: bool) -> int:
    """Print the cost of one pass; InputError with one fault per thing that is wrong."""
    catalogue = catalogue_of(question.own)
    _check_words(question, catalogue)
    replica, stages = replica_of(question, catalogue)
    cost = pass_cost(replica, Phase(question.phase), question.batch, question.context, Layout(question.layout), stages)
    document = cost_document(question, replica, stages, cost)
    if question.picture is not None:
        _draw(question.picture, question, replica, stages)
    if as_json:
        say_json(document)
    else:
        _print_cost(question, replica, document)
    return ExitStatus.DONE


def _draw(path: Path, question: CostQuestion, replica: ReplicaCosts, stages: int) -> None:
    from sim.cost_pictures import draw_pass
    from sim.report.style import write_picture

    phase, layout = Phase(question.phase), Layout(question.layout)
    panels = draw_pass(replica, phase, question.batch, question.context, layout=layout, stages=stages)
    write_picture(path, panels.figure)


def _check_words(question: CostQuestion, catalogue: Catalogue) -> None:
    """All words and numbers of the command line at once."""
    faults = []
    choices = (
        ("MODEL", question.model, list(catalogue.models)),
        ("CHIP", question.chip, list(catalogue.chips)),
        ("--phase", question.phase, [each.value for each in Phase]),
        ("--layout", question.layout, [each.value for each in Layout]),
        ("--attention", question.attention, [each.value for each in Attention]),
        ("--weights", question.weights, list(BYTES_PER_VALUE)),
        ("--kv", question.kv, list(BYTES_PER_VALUE)),
    )
    for where, word, known in choices:
        if word not in known:
            faults.append(Fault(where, f"`{word[:40]}` is not known", nearest(word, known)))
    least = 1 if question.phase == Phase.PREFILL.value else 0
    if not 1 <= question.batch <= BATCH_MAX:
        faults.append(Fault("--batch", f"{question.batch:,} sequences", f"write 1 to {BATCH_MAX:,}"))
    if not least <= question.context <= CONTEXT_MAX:
        faults.append(Fault("--context", f"{question.context:,} tokens", f"write {least} to {CONTEXT_MAX:,}"))
    faults += picture_faults(question.picture)
    if faults:
        raise InputError(faults)


def replica_of(question: CostQuestion, catalogue: Catalogue) -> tuple[ReplicaCosts, int]:
    """The replica that is asked about, and its pipeline stages."""
    chip = catalogue.chips[question.chip]
    replica, stages = replica_on(
        catalogue.models[question.model],
        chip,
        question.shape,
        attention=Attention(question.attention),
        weights=question.weights,
        kv=question.kv,
        stack=question.stack,
    )
    if question.faults:
        replica = replace(replica, network=network_under_faults(chip, replica.network, question.faults))
    return replica, stages


def network_under_faults(chip: Chip, network: SliceNetwork, faults: Sequence[str]) -> SliceNetwork:
    """The slice with dead switches, ports or links: what routing keeps of its rings and of its all-to-all."""
    from ocs.fault_names import dead_links_of_names
    from sim.disk_cache import routes_cache
    from topology.routing.degraded import degradation

    if chip.interconnect is not Interconnect.TORUS or len(network.axes) != 3 or not all(network.wraps):
        raise refuse(
            "--fail", f"{network.text} of {chip.name} has no optical links", "write whole cubes, such as 4x4x4"
        )
    if network.chips > FAULTS_MAX_CHIPS:
        what = f"routes around faults are worked out up to {FAULTS_MAX_CHIPS:,} chips here"
        raise refuse("--fail", what, "write a smaller SHAPE")
    x, y, z = network.axes
    shape = Shape(x, y, z, network.twisted)
    left = degradation(shape, dead_links_of_names(shape, list(faults)), ROUTES, cache=routes_cache())
    if not left.connected or not left.routed:
        raise refuse("--fail", f"{network.text} falls apart", "name fewer faults")
    return replace(network, ring_kept=tuple(left.ring_kept), all_to_all_kept=left.all_to_all_kept)


def memory_share(replica: ReplicaCosts, stages: int, batch: int, context: int) -> float:
    """Share of HBM that weights and the cache of the batch fill, on the busiest chip; above 1 they do not fit."""
    held = float(replica.kv_bytes_per_chip(np.array([batch]))[0]) * batch * context / stages
    weights = replica.model.weight_bytes(replica.weight_value_bytes) / (replica.chips * stages)
    return (weights + held) / replica.chip.hbm_bytes


def cost_document(question: CostQuestion, replica: ReplicaCosts, stages: int, cost: PassCost) -> dict[str, Any]:
    """The JSON document of one pass; bytes are those of all chips together."""
    return {
        "model": replica.model.key,
        "chip": replica.chip.key,
        "shape": question.shape,
        "chips": replica.chips * stages,
        "stages": stages,
        "micro_batches": _micro_batches(question, replica, stages),
        "stack": replica.constants.stack,
        "phase": question.phase,
        "batch": question.batch,
        "context": question.context,
        "layout": question.layout,
        "attention": question.attention,
        "fastest_layout": fastest_layout(question, replica, stages),
        "seconds": float(cost.seconds),
        "lower_bound_s": float(cost.lower_bound_s),
        "upper_bound_s": float(cost.upper_bound_s),
        "binds": str(cost.binds),
        "mfu": float(cost.mfu),
        "memory_share": memory_share(replica, stages, question.batch, question.context),
        "breakdown_s": {part: float(value) for part, value in cost.breakdown_s.items()},
        "bytes": {level: {kind: float(value) for kind, value in kinds.items()} for level, kinds in cost.bytes.items()}
        | {level: dict.fromkeys(KINDS) for level in _blank_levels(replica, cost)},
    }


def _blank_levels(replica: ReplicaCosts, cost: PassCost) -> list[str]:
    """Memories of the chip whose traffic no source tells (CMEM)."""
    return [each.name for each in ladder_of(replica) if each.bytes is not None and each.name not in cost.bytes]


def fastest_layout(question: CostQuestion, replica: ReplicaCosts, stages: int) -> dict[str, Any]:
    """The layout with which this pass takes the least time (the one asked for, if it does too), and that time."""
    times = {
        layout: float(pass_seconds(replica, Phase(question.phase), question.batch, question.context, layout, stages))
        for layout in (Layout(question.layout), *Layout)
    }
    fastest = min(times, key=lambda layout: times[layout])
    return {"layout": fastest.value, "seconds": times[fastest]}


def _micro_batches(question: CostQuestion, replica: ReplicaCosts, stages: int) -> dict[str, int]:
    """How many micro-batches go through the stages, and the sequences of each."""
    each = question.context if question.phase == Phase.PREFILL.value else 1
    cut = micro_batches(np.array(question.batch), np.array(each), stages, replica)
    return {"count": int(cut.parts), "sequences": int(cut.sequences)}


def _print_cost(question: CostQuestion, replica: ReplicaCosts, document: dict[str, Any]) -> None:
    """The same for people."""
    what = "one decode step" if question.phase == Phase.DECODE.value else "one prefill"
    tokens = "of context each" if question.phase == Phase.DECODE.value else "of prompt each"
    say(
        f"{replica.model.name} on {document['chips']:,} x {replica.chip.name} ({question.shape}): {what}, "
        f"batch {question.batch:,}, {question.context:,} tokens {tokens}"
    )
    say(
        f"{_milliseconds(document['seconds'])} (overlapped at peak rates {_milliseconds(document['lower_bound_s'])}, "
        f"one part after the other {_milliseconds(document['upper_bound_s'])}); "
        f"{document['binds']} binds; MFU {100 * document['mfu']:.1f} %"
    )
    if document["memory_share"] > 1.0:
        say(f"It does not fit: weights and cache need {document['memory_share']:.2f} times the memory of these chips.")
    fastest, saved = document["fastest_layout"], 1.0 - document["fastest_layout"]["seconds"] / document["seconds"]
    if saved >= LAYOUT_WORTH_TELLING:
        say(f"`--layout {fastest['layout']}` would take {_milliseconds(fastest['seconds'])}, {100 * saved:.0f} % less.")
    if document["stages"] > 1:
        say(_pipeline_words(document, replica.constants.micro_batch_tokens))
    parts = [(part, 1e3 * value, 100 * value / document["seconds"]) for part, value in document["breakdown_s"].items()]
    say()
    say_table(("part", "ms", "%"), [(name, round(ms, 4), round(share, 1)) for name, ms, share in parts if ms > 0])
    say()
    say_table(
        ("GB, all chips", *KINDS),
        [
            (level, *(None if by.get(kind) is None else round(by[kind] / 1e9, 6) for kind in KINDS))
            for level, by in document["bytes"].items()
        ],
    )
    say()
    say(f"Constants of the stack `{document['stack']}`: {_origin(replica)}.")


def _pipeline_words(document: dict[str, Any], tokens: int) -> str:
    """How the batch goes through the stages, and why another batch may be faster."""
    stages, cut = document["stages"], document["micro_batches"]
    return (
        f"{stages} stages, {cut['count']:,} micro-batch{'es' if cut['count'] > 1 else ''} of {cut['sequences']:,}: a "
        f"batch that {stages} divides is cut in {stages}, then halved while a part is even and has more than "
        f"{tokens:,} tokens (FasterTransformer's rule); so a larger batch that is cut better may take less time."
    )


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.4g} ms"


def _origin(replica: ReplicaCosts) -> str:
    """Which constants were fitted, and on what."""
    marks = [source for source in replica.constants.sources if source.mark.value == "F"]
    if not marks:
        return "none was fitted"
    texts = list(dict.fromkeys(source.text for source in marks))
    return f"{', '.join(source.field for source in marks)} {'; '.join(texts)}"
