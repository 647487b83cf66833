"""Commands about slices and their light, as the command line sees them; what they do is imported when called."""

from __future__ import annotations

from typing import Annotated

import typer

from sim.cli_options import AsJson


def show_topology(
    shape: Annotated[
        str, typer.Argument(help="A shape, such as 8x8x16 or 4x4x8_twisted, or a number of chips.", show_default=False)
    ],
    faults: Annotated[
        list[str] | None,
        typer.Option("--fail", metavar="COMPONENT", help="ocs:x:0, port:x:0:CUBE:+ or link:X,Y,Z:x. Repeatable."),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            metavar="NAME",
            help="Routes around the faults by this method only: dimension_order, even_split, wild_first (recommended) "
            "or optimal. Repeatable.",
        ),
    ] = None,
    mix: Annotated[
        str | None,
        typer.Option(
            "--mix",
            metavar="MIX",
            help="Rank all shapes of this size for a job: dense_training, embeddings, experts, small_messages, or "
            '"all_to_all=64 MB,all_reduce=16 MB".',
        ),
    ] = None,
    wrap: Annotated[
        str | None,
        typer.Option("--wrap", metavar="AXES", help="Static wiring: axes that close to rings, such as z, yz or none."),
    ] = None,
    pod: Annotated[
        str | None,
        typer.Option("--pod", metavar="NAME", help="v4, v5p or tpu7x: its size and links; v4 links if not."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Say what a shape is worth: distances, bounds of collectives, what is kept when light fails."""
    from sim.cli_topology import TopologyQuestion, topology_command

    question = TopologyQuestion(shape=shape, faults=faults or (), methods=methods or (), pod=pod, wrap=wrap, mix=mix)
    return topology_command(question, as_json)


def show_light(
    pod: Annotated[str, typer.Option("--pod", metavar="NAME", help="v4, v5p or tpu7x.")] = "v4",
    part: Annotated[
        str | None,
        typer.Option(
            "--fail",
            metavar="PART",
            help="What its failure takes: ocs:x:0, or port, fibre, transceiver, in_rack_link, host, rack, power_domain "
            "with a number, such as host:17.",
        ),
    ] = None,
    slices: Annotated[
        str | None,
        typer.Option("--slices", metavar="SHAPE:N,...", help="Slices on the pod, such as 8x8x16:3,4x4x8:2."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Say what the light of a pod costs, loses and takes to switch, and what a failing part takes with it."""
    from sim.cli_light import light_command

    return light_command(pod, part, slices, as_json)
