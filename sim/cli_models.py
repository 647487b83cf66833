"""Commands about language models on chips, as the command line sees them; what they do is imported when called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sim.cli_options import AsJson


def cost_of_pass(
    model: Annotated[str, typer.Argument(help="A model, such as palm_540b (`opticube list models`).")],
    chip: Annotated[str, typer.Argument(help="A chip, such as tpu_v4 or a100_80gb (`opticube list chips`).")],
    shape: Annotated[str, typer.Argument(help="A slice such as 4x4x4; GPUs: 8 (tensor), 8x3 (tensor x pipeline).")],
    phase: Annotated[str, typer.Option("--phase", help="decode (one step) or prefill (the whole prompt).")],
    batch: Annotated[int, typer.Option("--batch", metavar="B", help="Sequences.")],
    context: Annotated[int, typer.Option("--context", metavar="N", help="Tokens of context, or of prompt, of each.")],
    layout: Annotated[
        str,
        typer.Option("--layout", help="weight_stationary_1d, weight_stationary_2d, weight_gathered_x, _xy or _xyz."),
    ] = "weight_stationary_2d",
    attention: Annotated[
        str, typer.Option("--attention", help="Cache of a decode by heads, batch, heads_x_batch or context.")
    ] = "heads_x_batch",
    weights: Annotated[str, typer.Option("--weights", help="bf16, int8 or fp8.")] = "bf16",
    kv: Annotated[str, typer.Option("--kv", help="Cache: bf16, int8 or fp8.")] = "bf16",
    stack: Annotated[
        str | None, typer.Option("--stack", metavar="NAME", help="Measured software stack; the model's or chip's own.")
    ] = None,
    faults: Annotated[
        list[str] | None, typer.Option("--fail", metavar="COMPONENT", help="ocs:x:0 and the like. Repeatable.")
    ] = None,
    own: Annotated[
        Path | None, typer.Option("--own", metavar="FILE", help="YAML with `chips` and `models` of your own.")
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", metavar="FILE", help="Draw bytes and seconds by level, time over chips: .png, .svg."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Seconds and bytes of one pass of a model on chips: by part, with bounds and what binds."""
    from sim.cli_cost import CostQuestion, cost_command

    question = CostQuestion(
        model=model,
        chip=chip,
        shape=shape,
        phase=phase,
        batch=batch,
        context=context,
        layout=layout,
        attention=attention,
        weights=weights,
        kv=kv,
        stack=stack,
        faults=tuple(faults or ()),
        own=own,
        picture=picture,
    )
    return cost_command(question, as_json)


def plan_replicas(
    model: Annotated[str, typer.Argument(help="A model, such as palm_540b (`opticube list models`).")],
    chip: Annotated[str, typer.Argument(help="A chip, such as tpu_v4 or a100_80gb (`opticube list chips`).")],
    input_tokens: Annotated[int, typer.Option("--input", metavar="N", help="Tokens of a prompt.")],
    output_tokens: Annotated[int, typer.Option("--output", metavar="M", help="Tokens of an answer.")],
    weights: Annotated[str, typer.Option("--weights", help="bf16, int8 or fp8.")] = "bf16",
    kv: Annotated[str, typer.Option("--kv", help="Cache: bf16, int8 or fp8.")] = "bf16",
    limit_prefill: Annotated[
        str | None, typer.Option("--limit-prefill", metavar="TIME", help='Longest prefill, such as "2 s".')
    ] = None,
    limit_token: Annotated[
        str | None, typer.Option("--limit-token", metavar="TIME", help='Longest decode step, such as "50 ms".')
    ] = None,
    limit_chips: Annotated[
        int | None, typer.Option("--limit-chips", metavar="N", help="Most chips of a replica.")
    ] = None,
    own: Annotated[
        Path | None, typer.Option("--own", metavar="FILE", help="YAML with `chips` and `models` of your own.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw the fronts and the roof: .png or .svg.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Where to serve a model: fronts of cost per token and latency over slices, batches and layouts."""
    from sim.cli_plan import PlanQuestion, plan_command

    question = PlanQuestion(
        model=model,
        chip=chip,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        weights=weights,
        kv=kv,
        limit_prefill=limit_prefill,
        limit_token=limit_token,
        limit_chips=limit_chips,
        own=own,
        picture=picture,
    )
    return plan_command(question, as_json)
