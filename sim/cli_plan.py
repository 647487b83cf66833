"""The command `plan`: on which slice, at which batch and in which layout a model is served fast, or cheaply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sim.cli_output import say, say_json, say_table
from sim.exit_codes import ExitStatus
from sim.files import picture_faults
from sim.own_catalogue import Catalogue, catalogue_of
from sim.quantities import AdviceError, parse_quantity
from sim.scenario_faults import nearest
from topology.errors import Fault, InputError, refuse
from topology.units import Unit
from workloads.catalogue.model import BYTES_PER_VALUE
from workloads.costs.asking import replica_on
from workloads.costs.layouts import Attention
from workloads.costs.passes import Phase
from workloads.costs.replica import ReplicaCosts
from workloads.kv_cache import DEFAULT_SETTINGS
from workloads.planning import Choice, Workload, choices, front, maximum_context, smallest_shape

TOKENS_MAX = 10_000_000
SECONDS = Unit("s", open_ends=True)
SHOWN = 12
"""Rows of a front that people see; JSON has all."""


@dataclass(frozen=True, kw_only=True)
class PlanQuestion:
    """What is asked, as texts and numbers from the command line."""

    model: str
    chip: str
    input_tokens: int
    output_tokens: int
    weights: str = "bf16"
    kv: str = "bf16"
    limit_prefill: str | None = None
    limit_token: str | None = None
    limit_chips: int | None = None
    own: Path | None = None
    picture: Path | None = None


def plan_command(question: PlanQuestion, as_json: bool) -> int:
    """Print the fronts of both phases, the smallest slice that fits, and what it holds; InputError for bad words."""
    catalogue = catalogue_of(question.own)
    limits = _checked_limits(question, catalogue)
    model, chip = catalogue.models[question.model], catalogue.chips[question.chip]
    workload = Workload(
        input_tokens=question.input_tokens,
        output_tokens=question.output_tokens,
        weights=question.weights,
        kv=question.kv,
    )
    smallest = smallest_shape(model, chip, workload, attention=Attention.CONTEXT)  # which spreads it evenly, always
    if smallest is None:
        what = f"no slice of {chip.name} that is looked at holds {model.name} and one request"
        raise refuse("MODEL", what, "write a smaller model, shorter requests, or `--weights int8`")
    chips_limit = float(question.limit_chips) if question.limit_chips is not None else np.inf
    fronts = {phase: front(choices(model, chip, workload, phase), limits[phase], chips_limit) for phase in Phase}
    replica, stages = replica_on(model, chip, smallest, weights=question.weights, kv=question.kv)
    even = replace(replica, attention=Attention.CONTEXT)
    document = {
        "model": model.key,
        "chip": chip.key,
        "input": question.input_tokens,
        "output": question.output_tokens,
        "weights": question.weights,
        "kv": question.kv,
        "smallest_slice": smallest,
        "smallest_slice_chips": replica.chips * stages,
        "maximum_context": {str(batch): int(maximum_context(even, batch, stages)) for batch in (1, 8, 64, 512)},
        "fronts": {phase.value: [asdict(each) for each in fronts[phase]] for phase in Phase},
    }
    if question.picture is not None:
        _draw(question.picture, fronts, replica, stages, workload)
    if as_json:
        say_json(document)
    else:
        _print_plan(model.name, chip.name, document, fronts)
    return ExitStatus.DONE


def _draw(
    path: Path, fronts: dict[Phase, tuple[Choice, ...]], smallest: ReplicaCosts, stages: int, workload: Workload
) -> None:
    """Write the picture of a plan as PNG or SVG."""
    from sim.report.plan_pictures import plan_picture
    from sim.report.style import write_picture

    write_picture(path, plan_picture(fronts, smallest, stages, workload).figure)


def _checked_limits(question: PlanQuestion, catalogue: Catalogue) -> dict[Phase, float]:
    """All words and numbers of the command line at once; the limits of latency by phase."""
    faults = []
    for where, word, known in (
        ("MODEL", question.model, list(catalogue.models)),
        ("CHIP", question.chip, list(catalogue.chips)),
        ("--weights", question.weights, list(BYTES_PER_VALUE)),
        ("--kv", question.kv, list(BYTES_PER_VALUE)),
    ):
        if word not in known:
            faults.append(Fault(where, f"`{word[:40]}` is not known", nearest(word, known)))
    for where, tokens in (("--input", question.input_tokens), ("--output", question.output_tokens)):
        if not 1 <= tokens <= TOKENS_MAX:
            faults.append(Fault(where, f"{tokens:,} tokens", f"write 1 to {TOKENS_MAX:,}"))
    if question.limit_chips is not None and question.limit_chips < 1:
        faults.append(Fault("--limit-chips", f"{question.limit_chips} chips", "write at least 1"))
    faults += picture_faults(question.picture)
    limits = dict.fromkeys(Phase, float(np.inf))
    for phase, where, text in (
        (Phase.PREFILL, "--limit-prefill", question.limit_prefill),
        (Phase.DECODE, "--limit-token", question.limit_token),
    ):
        if text is not None:
            try:
                limits[phase] = parse_quantity(text, SECONDS)
            except AdviceError as advice:
                faults.append(Fault(where, advice.what, advice.write))
    if faults:
        raise InputError(faults)
    return limits


def _print_plan(model: str, chip: str, document: dict[str, Any], fronts: dict[Phase, tuple[Choice, ...]]) -> None:
    """The same for people: at most `SHOWN` rows per front, evenly over it, ends included."""
    say(
        f"{model} on {chip}, prompts of {document['input']:,} and answers of {document['output']:,} tokens: the "
        f"smallest slice that fits is {document['smallest_slice']} ({document['smallest_slice_chips']:,} chips)"
    )
    held = ", ".join(f"{tokens:,} at batch {batch}" for batch, tokens in document["maximum_context"].items())
    share = 100 * (DEFAULT_SETTINGS.utilisation - DEFAULT_SETTINGS.activation_reserve)
    say(
        "It holds at most so many tokens per sequence, with the cache split by context, weights and cache in "
        f"{share:.0f} % of its memory: {held}."
    )
    words = {Phase.PREFILL: "Prefill: seconds for all prompts of a batch", Phase.DECODE: "Decode: seconds per step"}
    for phase, rows in fronts.items():
        say()
        say(f"{words[phase]} against chip-seconds per token, nothing better in both ({len(rows)} ways):")
        if not rows:
            say("none within the limits")
            continue
        say_table(
            ("ms", "chip-ms per token", "slice", "chips", "batch", "layout", "cache by", "MFU %", "binds"),
            [_row(each) for each in _some(rows)],
        )


def _some(rows: Sequence[Choice]) -> list[Choice]:
    """At most `SHOWN` rows, evenly, both ends included."""
    if len(rows) <= SHOWN:
        return list(rows)
    return [rows[round(index)] for index in np.linspace(0, len(rows) - 1, SHOWN)]


def _row(choice: Choice) -> tuple[object, ...]:
    return (
        round(1e3 * choice.latency_s, 3),
        round(1e3 * choice.cost_chip_s, 4),
        choice.shape,
        choice.chips,
        choice.batch,
        choice.layout.value,
        choice.attention.value,
        round(100 * choice.mfu, 1),
        choice.binds,
    )
