"""Commands that judge a run by another, as the command line sees them; what they do is imported when called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sim.cli_options import AsJson, Workers

JUnit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write the verdicts as JUnit XML.")]
Markdown = Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="Write what changed as Markdown.")]
Benchmark = Annotated[
    Path | None, typer.Option("--benchmark", metavar="FILE", help="Write the values as JSON: name, unit, value, range.")
]


def check_target(
    target: Annotated[str, typer.Argument(help="A scenario to run, or a run folder.", show_default=False)],
    baseline: Annotated[Path, typer.Option("--baseline", metavar="FILE", help="The stored numbers to compare with.")],
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="On top of the baseline's settings; kept by --update."),
    ] = None,
    update: Annotated[bool, typer.Option("--update", help="Write the baseline in place of comparing.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on inconclusive measures too.")] = False,
    workers: Workers = None,
    junit: JUnit = None,
    markdown: Markdown = None,
    benchmark: Benchmark = None,
    as_json: AsJson = False,
) -> int:
    """Judge a scenario or run by a stored baseline: pass, fail or inconclusive, at most 1 % false alarms."""
    from sim.regression.checks import CheckOptions, check_command
    from sim.regression.pages import Pages

    options = CheckOptions(
        target=target,
        baseline=baseline,
        overrides=overrides or (),
        update=update,
        strict=strict,
        workers=workers,
        pages=Pages(junit=junit, markdown=markdown, benchmark=benchmark),
        as_json=as_json,
    )
    return check_command(options)


def compare_runs(
    run_a: Annotated[Path, typer.Argument(help="A run folder.", show_default=False)],
    run_b: Annotated[Path, typer.Argument(help="A run folder.", show_default=False)],
    fail_if: Annotated[
        list[str] | None,
        typer.Option("--fail-if", metavar="RULE", help='Fail on "delivered[slice_chips=1024] < -0.5 pp". Repeatable.'),
    ] = None,
    junit: JUnit = None,
    markdown: Markdown = None,
    benchmark: Benchmark = None,
    as_json: AsJson = False,
) -> int:
    """Judge the second run by the first, measure by measure."""
    from sim.regression.checks import compare_command
    from sim.regression.pages import Pages

    pages = Pages(junit=junit, markdown=markdown, benchmark=benchmark)
    return compare_command(run_a, run_b, fail_if or [], as_json, pages)
